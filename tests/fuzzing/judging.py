"""What rankdp makes of a file, compared with what PyArrow, Python's csv module or a few lines here make of it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankdp.data.ballots import Ballots
from rankdp.data.cleaning import USUAL, WRITE_INS
from rankdp.data.columns import recognise
from rankdp.data.comparisons import Comparisons
from rankdp.data.files import open_rankings
from rankdp.data.rankings import Rankings
from rankdp.errors import RankdpError

from .forging import Case

MISSING = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-"}


class Miscount(Exception):
    """rankdp accepted a file and saw something else in it than was there."""


def judge(case: Case, path: Path) -> str:
    """Read the file, which is at `path`, and compare: `accepted` or `refused`; any exception is a finding."""
    try:
        reading = {"rankings": _read_rankings, "votes": _read_votes, "ballots": Ballots.read}
        read: Any = reading[case.holds](path)
    except RankdpError as error:
        if "\n" in str(error) or not str(error):
            raise Miscount(f"a refusal is not one sentence: {error!s:.200}") from None
        return "refused"
    if case.holds == "votes":
        _compare_votes(case, read)
    elif case.holds == "ballots":
        _compare_ballots(case, read)
    elif case.ending == "blt":
        _compare_blt(case, read[0])
    elif case.ending in ("parquet", "csv", "csv.gz", "jsonl"):
        _compare_rankings(case, *read)
    else:
        _compare_preflib(case, read[0])
    return "accepted"


def _read_rankings(path: Path) -> tuple[Rankings, Any]:
    with open_rankings(path, ties="listed", batch_rows=17) as reader:
        return Rankings.concatenate(reader), reader


def _read_votes(path: Path) -> tuple[Comparisons, dict[str, int]]:
    votes = Comparisons.read(path, items_from_data=True)
    return votes, dict(zip(votes.items, votes.count().half_wins.tolist(), strict=True))


def _same(ours: Any, theirs: Any, what: str) -> None:
    if ours != theirs:
        raise Miscount(f"{what}: rankdp has {str(ours)[:300]}, and the file {str(theirs)[:300]}")


def _columns(case: Case, names: list[str]) -> list[list[Any]]:
    """The cells of some columns, read without rankdp."""
    if case.ending == "parquet":
        try:
            # by row group: where pages hold more than their group announces, PyArrow's ways to read a whole file differ
            file = pq.ParquetFile(io.BytesIO(case.data))
            groups = [file.read_row_group(group, names, use_threads=False) for group in range(file.num_row_groups)]
            for table in groups:
                table.validate(full=True)
            return [[cell for table in groups for cell in table.column(name).to_pylist()] for name in names]
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise Miscount(f"accepted, but PyArrow says: {error!s:.200}") from None
    if case.ending == "jsonl":
        decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).decode
        rows = [decode(line) for line in case.data.decode("utf-8-sig").split("\n") if line.strip()]
        return [[row.get(name) for row in rows] for name in names]
    data = gzip.decompress(case.data) if case.ending == "csv.gz" else case.data
    text = data.decode("utf-8-sig", "surrogateescape")  # columns that are not used may hold anything
    first = text.split("\n", 1)[0]
    separator = "," if "," in first else next((mark for mark in "\t;" if mark in first), ",")
    csv.field_size_limit(1 << 30)
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    header = [name.strip() for name in header]
    if any(len(row) != len(header) for row in rows):
        raise Miscount("accepted, but a line has more or fewer fields than the header")
    return [[row[header.index(name)] for row in rows] for name in names]


def _text(cell: Any) -> str:
    """What a cell says, without spaces around it; nothing is the empty text."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bytes):
        cell = cell.decode()
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell.strip() if isinstance(cell, str) else str(int(cell) if cell == int(cell) else cell)


def _name(cell: Any) -> str:
    text = _text(cell)
    return "" if text in MISSING else text


def _compare_rankings(case: Case, rankings: Rankings, reader: Any) -> None:
    columns = reader.columns
    voter = [] if columns.voter is None else [columns.voter]
    ids, *cells = [*([] if voter else [[]]), *_columns(case, [*voter, *columns.ranks])]
    if columns.layout == "ranked":
        said = [list(enumerate(map(_name, row))) for row in zip(*cells, strict=True)]
        ranked = [sorted((int(float(rank)), number) for number, rank in entries if rank) for entries in said]
        rows = [tuple(columns.items[number] for _, number in entries) for entries in ranked]
        voters = [_text(cell) for cell in ids]
    elif columns.layout == "wide":
        rows = [tuple(name for name in map(_name, row) if name) for row in zip(*cells, strict=True)]
        voters = [_text(cell) for cell in ids]
    else:
        listed = defaultdict(list)
        for cell, item, rank in zip(ids, *cells, strict=True):
            entries = listed[_text(cell)]
            if _name(rank):
                entries.append((float(rank), len(entries), _name(item)))
        rows = [tuple(item for _, _, item in sorted(entries)) for entries in listed.values()]
        voters = list(listed)
    _same(len(rankings), len(rows), "rows")
    _same(list(rankings), rows, "rankings")
    if voter:
        _same([_text(voter) for voter in rankings.voters.tolist()], voters, "voters")


def _compare_votes(case: Case, read: tuple[Comparisons, dict[str, int]]) -> None:
    votes, ours = read
    columns = votes.columns
    used = [name for name in (*columns.told, columns.weight) if name is not None]
    cells = dict(zip(used, _columns(case, used), strict=True))
    theirs = dict.fromkeys(votes.items, 0)
    for row, (left, right) in enumerate(zip(cells[columns.left], cells[columns.right], strict=True)):
        weight = 1 if columns.weight is None else int(float(cells[columns.weight][row]))
        first, second = _name(left), _name(right)
        outcome = "" if columns.outcome is None else _text(_as_number(cells[columns.outcome][row], columns.style))
        if columns.marks:
            said = [_text(cells[name][row]).lower() in ("1", "1.0", "true") for name in columns.marks]
            share = (2, 0, 1)[said.index(True)]
            theirs[first] += share * weight
            theirs[second] += (2 - share) * weight
            continue
        share = _share(columns.style.words.get(outcome.lower(), outcome) if columns.outcome else 0, first, second)
        theirs[first] += share * weight
        theirs[second] += (2 - share) * weight
    _same(ours, theirs, "half-wins")


def _as_number(cell: Any, style: Any) -> Any:
    """Where outcomes are numbers, yes is 1 and no is 0."""
    return int(cell) if isinstance(cell, bool) and style.numbers else cell


def _compare_ballots(case: Case, ballots: Ballots) -> None:
    header = case.data.decode("utf-8-sig", "surrogateescape").split("\n", 1)[0]
    separator = "," if "," in header else next((mark for mark in "\t;" if mark in header), ",")
    names = [name.strip() for name in next(csv.reader([header], delimiter=separator))]
    recognised = recognise(names, "case")
    theirs = Counter[tuple[str, ...]]()
    for row in zip(*_columns(case, list(recognised.ranks)), strict=True):
        listed: list[str] = []
        for cell in map(_name, row):
            kind = USUAL.kind(cell)
            if kind == "overvote":
                break
            name = WRITE_INS if kind == "write-in" else cell
            if name and name not in listed and kind != "skipped":
                listed.append(name)
        theirs[tuple(listed)] += 1
    ours = {
        tuple(ballots.items[item] for item in order if item >= 0): int(many)
        for order, many in zip(ballots.orders, ballots.weights, strict=True)
    }
    _same(ours, {order: many for order, many in theirs.items() if many}, "ballots")


def _compare_blt(case: Case, rankings: Rankings) -> None:
    text = re.sub(r"#[^\n]*", "", re.sub(r'"[^"]*"', "", case.data.decode("utf-8-sig")))
    quoted = re.findall(r'"([^"\n]*)"', re.sub(r"^#[^\n]*", "", case.data.decode("utf-8-sig"), flags=re.MULTILINE))
    tokens = text.replace(",", " ").split()
    count, at, gone = int(tokens[0]), 2, set()
    while tokens[at].startswith("-"):
        gone.add(int(tokens[at][1:]))
        at += 1
    plain = [name.strip() for name in quoted[:count]]
    names = [name if plain.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(plain, 1)]
    theirs = Counter[tuple[str, ...]]()
    while tokens[at] != "0":
        end = tokens.index("0", at + 1)
        listed = [int(one) for token in tokens[at + 1 : end] if token != "-" for one in token.split("=")]
        order = tuple(names[one - 1] for one in listed if one not in gone)
        theirs[order] += int(tokens[at]) if order else 0
        at = end + 1
    _same(len(quoted) >= count, True, "names")
    _same(dict(Counter(rankings)), {order: many for order, many in theirs.items() if many}, "orders")


def _share(outcome: Any, first: str, second: str) -> int:
    """The half-wins of the first item: 2, 0 or 1."""
    if outcome in (0, first):
        return 2
    if outcome in (1, second):
        return 0
    if outcome in (2, 5):  # a tie, or both bad, which counts as one
        return 1
    raise Miscount(f"accepted the outcome {outcome!r} between {first!r} and {second!r}")


def _compare_preflib(case: Case, rankings: Rankings) -> None:
    names, orders = {}, Counter[tuple[str, ...]]()
    numbers = {}
    for line in case.data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = line.strip()
        if line.startswith("#"):
            key, _, value = line[1:].partition(":")
            words = key.upper().split()
            if words[:2] == ["ALTERNATIVE", "NAME"]:
                name = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", "\0", value.strip())
                names[int(words[2])] = " ".join(name.replace("\0", " ").split()) if "\0" in name else name
            elif words[:1] == ["NUMBER"]:
                numbers[" ".join(words[1:])] = value.strip()
        elif line:
            count, _, order = line.partition(":")
            orders[tuple(names[int(number)] for number in re.findall(r"\d+", order))] += int(count.strip())
    _same(dict(Counter(rankings)), {order: many for order, many in orders.items() if many}, "orders")
    _same(len(rankings), int(numbers.get("VOTERS", len(rankings))), "voters announced")
    _same(rankings.items, tuple(names.values()), "items")
