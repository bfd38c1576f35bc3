"""Files to read, most of them damaged: number n of a seed is always the same file."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Case:
    """One file: what it should hold, its ending, and its bytes."""

    holds: str
    """`rankings`, `votes` or `ballots`."""
    ending: str
    data: bytes


def case(seed: int, number: int) -> Case:
    """File `number` of a seed."""
    rng = random.Random(f"{seed}/{number}")
    chosen = rng.choice(originals())
    data = chosen.data
    forges = {"parquet": _damage, "csv": _forge_csv, "csv.gz": _damage, "jsonl": _forge_json}
    forge: Callable[[bytes, random.Random], bytes] = forges.get(chosen.ending, _forge_preflib)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 5)) if number % 50 else 0):
        data = (forge if rng.random() < 0.6 else _damage)(data, rng)
    return Case(chosen.holds, chosen.ending, data)


@cache
def originals() -> list[Case]:
    """Whole files of every kind."""
    return [*_parquet_files(), *_csv_files(), *_preflib_files(), *_found_files() * 3]


def _orders(rows: int, items: int, width: int) -> list[list[int]]:
    rng = random.Random(f"{rows} {items} {width}")
    return [rng.sample(range(items), width) for _ in range(rows)]


def _parquet_files() -> list[Case]:
    cases = []
    for kind, options in itertools.product(
        ("dictionary", "string", "int64", "int8"),
        (
            {"compression": "none"},
            {"compression": "snappy", "data_page_version": "2.0", "row_group_size": 25},
            {"compression": "zstd", "data_page_size": 40, "write_batch_size": 16},
            {"compression": "none", "use_dictionary": False, "store_schema": False},
        ),
    ):
        options["write_statistics"] = kind == "string"
        for table in _ranking_tables(kind):
            cases.append(Case("rankings", "parquet", _parquet(table, options)))
        for table in _vote_tables(kind):
            cases.append(Case("votes", "parquet", _parquet(table, options)))
    return cases


def _parquet(table: pa.Table, options: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _items(column: list[int | None], kind: str) -> pa.Array:
    if kind.startswith("int"):
        return pa.array(column, kind)
    texts = pa.array([None if item is None else f"item {item}" for item in column])
    return texts.dictionary_encode() if kind == "dictionary" else texts


def _ranking_tables(kind: str) -> list[pa.Table]:
    orders = _orders(60, 5, 3)
    columns = {f"rank_{rank + 1}": _items([order[rank] for order in orders], kind) for rank in range(3)}
    ids = pa.array(range(60)) if kind.startswith("int") else pa.array([f"v{row}" for row in range(60)])
    blank = _items([order[2] if row % 3 else None for row, order in enumerate(orders)], kind)
    long = [(row, item, rank) for row, order in enumerate(orders[:20]) for rank, item in enumerate(order, 1)]
    voters, items, ranks = (list(column) for column in zip(*long, strict=True))
    return [
        pa.table({"voter": ids, **columns}),
        pa.table({**columns, "rank_3": blank, "eps": pa.array([0.5 + row for row in range(60)])}),
        pa.table({"voter": pa.array(voters), "item": _items(items, kind), "rank": pa.array(ranks)}),
    ]


def _vote_tables(kind: str) -> list[pa.Table]:
    pairs = _orders(60, 5, 2)
    left, right = (_items([pair[side] for pair in pairs], kind) for side in (0, 1))
    voters = pa.array([row // 4 for row in range(60)])
    words = [("model_a", "model_b", "tie")[row % 3] for row in range(60)]
    return [
        pa.table({"winner": left, "loser": right, "voter": voters}),
        pa.table({"item_1": left, "item_2": right, "outcome": pa.array([(1.0, 0.0, 0.5)[r % 3] for r in range(60)])}),
        pa.table({"model_a": left, "model_b": right, "winner": words, "weight": pa.array([r % 4 for r in range(60)])}),
    ]


def _csv_files() -> list[Case]:
    texts = {"rankings": [], "votes": []}
    orders = _orders(40, 5, 3)
    names = ["tea", "water", 'so "called" milk', "juice, cold", "x\u00e9"]

    def quoted(item: int) -> str:
        return '"' + names[item].replace('"', '""') + '"' if item in (2, 3) else names[item]

    wide = [f"v{row},{','.join(quoted(item) for item in order)}" for row, order in enumerate(orders)]
    texts["rankings"] += [
        "\n".join(["voter,rank_1,rank_2,rank_3", *wide]) + "\n",
        "\r\n".join(["voter;age;rank_1;rank_2", *(f" {r} ;{r % 7};{quoted(o[0])};NA" for r, o in enumerate(orders))]),
        "\ufeffrank_1\trank_2\n" + "\n\n".join(f"{quoted(o[0])}\t{quoted(o[1]) if o[2] else ''}" for o in orders),
        "voter,item,rank,eps\n"
        + "".join(f"{r},{quoted(i)},{k},{r + 1}.5\n" for r, o in enumerate(orders) for k, i in enumerate(o, 1)),
        'rank_1,"note"\n' + "".join(f'{quoted(o[0])},"two\nlines, {r}"\n' for r, o in enumerate(orders)),
    ]
    texts["votes"] += [
        "winner,loser,voter\n" + "".join(f"{quoted(o[0])},{quoted(o[1])},{r // 3}\n" for r, o in enumerate(orders)),
        "item_1;item_2;outcome\n" + "".join(f"{o[0]};{o[1]};{('1', '0', '0.5')[o[2] % 3]}\n" for o in orders),
        "model_a,model_b,winner,weight\r\n"
        + "".join(f"{o[0]},{o[1]},{('model_a', 'Tie', str(o[1]))[o[2] % 3]},{o[2]}\r\n" for o in orders),
    ]
    return [Case(holds, "csv", text.encode()) for holds, kind in texts.items() for text in kind]


def _preflib_files() -> list[Case]:
    names = "".join(f"# ALTERNATIVE NAME {item}: item {item}\n" for item in range(1, 6))
    bodies = {
        "soc": "7: 1,2,3,4,5\n3: 5,4,3,2,1\n1: 2,1,3,5,4\n",
        "soi": "7: 1,2\n3: 5\n1: 2,1,3\n",
        "toc": "7: 1,{2,3},4,5\n3: {5,4,3,2,1}\n1: 2,1,3,5,4\n",
        "toi": "7: 1,{2,3}\n3: 5\n1: {2,1},3\n",
    }
    counts = "# NUMBER ALTERNATIVES: 5\n# NUMBER VOTERS: 11\n# NUMBER UNIQUE ORDERS: 3\n"
    heads = {"": f"# FILE NAME: x\n{counts}{names}", "bare": f"# TITLE: y\n{names}"}
    return [
        Case("rankings", kind, (head + body).encode())
        for kind, body in bodies.items()
        for head in heads.values()
        for _ in range(3)  # as often as the many kinds of Parquet files would have it
    ]


def _found_files() -> list[Case]:
    """Files as survey tools, arenas and elections write them."""
    orders = _orders(40, 5, 3)
    ranked = [{item: rank for rank, item in enumerate(order, 1)} for order in orders]
    grid = "id,Rank [a],Rank [b],Rank [c],Rank [d],Rank [e]\n" + "".join(
        f"{row},{','.join(str(ranks.get(item, '')) for item in range(5))}\n" for row, ranks in enumerate(ranked)
    )
    marks = "model_a,model_b,winner_model_a,winner_model_b,winner_tie\n" + "".join(
        f"m{o[0]},m{o[1]},{','.join(str(int(o[2] % 3 == place)) for place in range(3))}\n" for o in orders
    )
    records = "Cast Vote Record,P,M Choice 1 of 3,M Choice 2 of 3,M Choice 3 of 3\n" + "".join(
        f"{r},x,{('undervote', 'overvote', f'c{o[0]}')[min(o[1], 2)]},c{o[1]},c{o[2]}\n" for r, o in enumerate(orders)
    )
    poll = [{"voter": r, "rank_1": f"i{o[0]}", "rank_2": f"i{o[1]}", "more": {"x": [o]}} for r, o in enumerate(orders)]
    votes = [{"model_a": f"m{o[0]}", "model_b": f"m{o[1]}", "winner": ("model_a", "tie")[o[2] % 2]} for o in orders]
    blt = "5 2\n-3\n" + "".join(f"{r % 3 + 1} {o[0] + 1} {o[1] + 1}={o[2] + 1} 0\n" for r, o in enumerate(orders))
    wide = "rank_1,rank_2\n" + "".join(f"i{o[0]},i{o[1]}\n" for o in orders)
    return [
        Case("rankings", "csv", grid.encode()),
        Case("votes", "csv", marks.encode()),
        Case("ballots", "csv", records.encode()),
        Case("rankings", "jsonl", "\n".join(map(json.dumps, poll)).encode()),
        Case("votes", "jsonl", "".join(json.dumps(row) + "\n" for row in votes).encode()),
        Case("rankings", "blt", f'{blt}0\n"a" "b" "c" "d" "e"\n"t"\n'.encode()),
        Case("rankings", "csv.gz", gzip.compress(wide.encode(), mtime=0)),
    ]


def _damage(data: bytes, rng: random.Random) -> bytes:
    """Bits, bytes and stretches changed, removed, repeated or put in, anywhere."""
    copy = bytearray(data)
    if not copy:
        return data
    at = rng.randrange(len(copy))
    end = min(len(copy), at + rng.choice((1, 2, 4, 9, 40)))
    match rng.randrange(8):
        case 0 | 1:
            copy[at] ^= 1 << rng.randrange(8)
        case 2:
            copy[at] = rng.choice((0, 1, 10, 34, 44, 127, 128, 255))
        case 3:
            copy[at:end] = rng.randbytes(end - at)
        case 4:
            del copy[at:end]
        case 5:
            copy[at:at] = rng.randbytes(rng.randrange(1, 9))
        case 6:
            copy[at:at] = copy[at:end]
        case 7:
            del copy[at if rng.random() < 0.5 else -rng.randrange(1, 20) :]
    return bytes(copy)


def _forge_csv(data: bytes, rng: random.Random) -> bytes:
    """Separators, quotes and line ends where there were none, fields that are long, headers of another kind."""
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    fields = lines[row].split(b",")
    place = rng.randrange(len(fields))
    match rng.randrange(9):
        case 0:
            at = rng.randrange(len(data) + 1)
            mark = rng.choice((b'"', b",", b"\n", b"\r", b"\r\n", b"\t", b";", b"\0", b"\xff", "\u2028".encode(), b" "))
            return data[:at] + mark + data[at:]
        case 1:
            fields[place] = rng.choice((b"", b"NA", b"-", b"nan", b"null", b'""', b'" "', b" ", b"\xc2\xa0", b"1e999"))
        case 2:
            fields[place] = rng.choice((b"x", b"9")) * rng.choice((5000, 140_000))
        case 3:
            fields[place] = fields[rng.randrange(len(fields))]
        case 4:
            fields.insert(place, rng.choice((b"", b"tea")))
        case 5:
            del fields[place]
        case 6:
            lines[0] = rng.choice((b"voter,rank_1,rank_2,rank_3", b"rank_" + b"9" * 5000, b'"voter', b"item,rank", b""))
            return b"\n".join(lines)
        case 7:
            lines.insert(row, rng.choice(lines))
        case 8:
            return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n")))
    lines[row] = b",".join(fields)
    return b"\n".join(lines)


def _forge_json(data: bytes, rng: random.Random) -> bytes:
    """Values of other kinds, keys twice or not at all, nesting, numbers that are too large."""
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    values = (b"null", b"1", b"-1.5", b"true", b"[]", b"{}", b'"x"', b'""', b"1e999", b"9" * 30, b"NaN", b'"\\ud800"')
    match rng.randrange(6):
        case 0 | 1:
            cut = lines[row].split(b": ")
            at = rng.randrange(len(cut))
            cut[at] = rng.choice(values) + b"," * (at < len(cut) - 1) + cut[at][-9:] * (at > 0)
            lines[row] = b": ".join(cut)
        case 2:
            lines[row] = lines[row].replace(b"{", b'{"model_a": "m1", "rank_1": "i1", ', 1)
        case 3:
            lines[row] = rng.choice((b"", b"[]", b"{}", b"[" * 5000, b"{" * 5000, lines[row] * 2, b"\xff"))
        case 4:
            lines.insert(row, rng.choice(lines))
        case 5:
            lines[row] = lines[row].replace(b'"', rng.choice((b"'", b'\\"', b"")), rng.randrange(1, 3))
    return b"\n".join(lines)


def _forge_preflib(data: bytes, rng: random.Random) -> bytes:
    """Numbers of the header and of orders changed, also both so that they agree; lines removed and repeated."""
    lines = data.decode("utf-8", "replace").split("\n")
    row = rng.randrange(len(lines))
    match rng.randrange(6):
        case 0 | 1:
            digits = [place for place, mark in enumerate(lines[row]) if mark.isdigit()]
            if digits:
                at = rng.choice(digits)
                new = rng.choice((str(rng.randrange(12)), "", "-1", "9" * 30, "1" * 5000, "\u0663", "\u00b2", "1.5"))
                lines[row] = lines[row][:at] + new + lines[row][at + 1 :]
        case 2:
            del lines[row]
        case 3:
            lines.insert(row, rng.choice(lines))
        case 4:
            count = rng.choice((8, 200, 10**13, 10**18, 2**63, 10**40))
            lines = [line.replace("VOTERS: 11", f"VOTERS: {count + 4}") for line in lines]
            lines = [f"{count}:{line[2:]}" if line.startswith("7:") else line for line in lines]
        case 5:
            marks = ("{", "}", ",", ",,", ":", "#", " ", "{}", "\u2028", "\x1c", "\r")
            at = rng.randrange(len(lines[row]) + 1)
            lines[row] = lines[row][:at] + rng.choice(marks) + lines[row][at:]
    return "\n".join(lines).encode()
