"""The CSV files in which the ballots of Scottish councils are collected: the content of a BLT file with commas.

    3,2,                                   candidates and seats
    27,1,                                  27 ballots that rank candidate 1 alone
    25,1,2,
    "Candidate 1","Ann Ross","Labour",     the candidates in the order of their numbers
    …
    "Forfar and District",                 the ward

Recognised by two whole numbers on the first line and ``Candidate 1`` at the start of a later one. Candidates of one
name are kept apart by their numbers.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from rankdp.data.cells import check_item
from rankdp.data.formats.blt import kept_apart, seats_note
from rankdp.data.formats.texts import bare_suffix, lines_of, whole
from rankdp.data.orders import CountedOrders
from rankdp.errors import InputError

_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*"?[0-9]{1,4}"?\s*,\s*"?[0-9]{1,4}"?\s*,*\s*')
_CANDIDATE = re.compile(r"candidate\s+[0-9]+", re.IGNORECASE)


def is_scottish(path: str) -> bool:
    """Whether a file is of this kind."""
    if bare_suffix(path) != ".csv" or not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return _HEAD.fullmatch(file.readline(100)) is not None and b"andidate 1" in file.read(1 << 24)


def counted_ward(path: str, encoding: str | None = None) -> CountedOrders:
    """The candidates of a ward and its distinct ballots with their counts."""
    rows: list[tuple[int, list[str]]] = []
    for line, text in lines_of(path, whole(path, encoding)):
        cells = [cell.strip() for cell in next(csv.reader(io.StringIO(text)), [])]
        if any(cells):
            rows.append((line, [cells[0], *filter(None, cells[1:])]))
    count = int(rows[0][1][0])
    named = [(line, cells) for line, cells in rows if _CANDIDATE.fullmatch(cells[0])]
    if len(named) != count or any(len(cells) < 2 for _, cells in named):
        raise InputError(f"{path}: the first line says {count} candidates, and {len(named)} are named")
    names = [f"{cells[1]} ({cells[2]})" if len(cells) > 2 else cells[1] for _, cells in named]
    names, notes = kept_apart(names)
    for name in names:
        check_item(name, lambda: f"{path}: the candidate's name")
    counted = []
    for line, cells in rows[1 : rows.index(named[0])]:
        if not all(re.fullmatch(r"[0-9]{1,9}", cell) for cell in cells):
            raise InputError(f"{path}, line {line}: a ballot must be its count and candidates' numbers")
        many, *order = map(int, cells)
        if any(not 1 <= one <= count for one in order):
            raise InputError(f"{path}, line {line}: a candidate must be a number from 1 to {count}")
        counted.append((many, [[one - 1] for one in order]))
    ward = [", ".join(filter(None, cells)).strip('"') for line, cells in rows if line > named[-1][0]]
    notes.append(seats_note(int(rows[0][1][1])))
    return CountedOrders.of(path, names, counted, None, notes, "".join(ward[:1]))
