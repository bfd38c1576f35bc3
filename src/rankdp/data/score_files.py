"""Files of scores: a column of names and a column of numbers, read whole, checked once and written whole.

The columns are recognised by the names people give them (item, name, id; score, value), or named by the caller; others
are not read and are told as left out. Every name is there once and not blank; every score is a number. Every file of a
table is read; CSV, Parquet and JSON (`.json`, a list of records) are written.
"""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.atomic import known_ending
from rankdp.data.cells import Where
from rankdp.data.columns import recognise_scores, refuse_nested
from rankdp.data.formats.texts import codec
from rankdp.data.tables import Frame, Held, a_file, find_files
from rankdp.errors import InputError
from rankdp.lazy import LazyModule
from rankdp.types import Floats

pa: Any = LazyModule("pyarrow")
pq: Any = LazyModule("pyarrow.parquet")

_TABLES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_READ = (*_TABLES, ".jsonl", ".ndjson", ".json", ".xlsx")
_WRITTEN = {**_TABLES, ".json": "json"}


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Names and scores in the order of the file."""

    names: tuple[Any, ...]
    scores: Floats
    item_column: str
    score_column: str
    left_out: tuple[str, ...]


def read_scores(
    path: str | os.PathLike[str], item_column: str | None = None, score_column: str | None = None, **opening: Any
) -> ScoreTable:
    """The names and scores of a file, or one sentence that says what is wrong with it and where.

    ``opening`` are ``sheet`` and ``encoding``, as in `rankdp.data.tables.open_table`.
    """
    name = os.fspath(path)
    with a_file(name, "scores"):
        known_ending(Path(name).with_suffix("") if codec(name) else name, _READ)
        return _scores(find_files(name, **opening), item_column, score_column)


def scores_of_frame(frame: Any) -> ScoreTable:
    """The names and scores of a table in memory, by the rules of files."""
    return _scores(Frame(frame))


def _scores(table: Held, item_column: str | None = None, score_column: str | None = None) -> ScoreTable:
    """The checked table."""
    path, header, where = table.what, list(table.kinds), partial(table.where, 0)
    item, score = columns = recognise_scores(header, path, item_column, score_column)
    refuse_nested(path, table.kinds, columns)
    cells = [
        cell
        for _, _, batch in table.batches(columns, plain=columns)
        for cell in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    ]
    if not cells:
        raise InputError(f"{path}: there are no rows")
    names: dict[Any, int] = {}
    for row, (value, _) in enumerate(cells):
        name = value.strip() if isinstance(value, str) else value
        if name is None or name == "" or name != name:
            raise InputError(f"{where(row)}: the {item} is blank")
        if name in names:
            first = where(names[name]).split(", ")[-1]
            raise InputError(f"{where(row)}: {item} {name!r} is there twice, first in {first}")
        names[name] = row
    scores = np.array([_score(value, score, row, where) for row, (_, value) in enumerate(cells)])
    return ScoreTable(tuple(names), scores, item, score, tuple(name for name in header if name not in columns))


def _score(value: Any, column: str, row: int, where: Where) -> float:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise InputError(f"{where(row)}: the {column} is blank")
    try:
        number = float(str(value) if isinstance(value, (bool, bytes)) else value)  # which are no numbers
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where(row)}: the {column} must be a number, got {value!r}") from None
    if not np.isfinite(number):
        raise InputError(f"{where(row)}: the {column} must be a finite number, got {number}")
    return number


def check_ending(path: str | os.PathLike[str]) -> str:
    """The format in which scores are written, by the ending of the file; another ending is refused."""
    return _WRITTEN[known_ending(path, tuple(_WRITTEN))]


def encoded(path: str | os.PathLike[str], table: ScoreTable, scores: Floats) -> bytes:
    """The table with other scores, in the format that the ending of ``path`` says."""
    columns, form = (table.item_column, table.score_column), check_ending(path)
    if form == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table([pa.array(table.names), pa.array(scores)], columns), sink)
        return bytes(sink.getvalue().to_pybytes())
    rows = zip(table.names, scores.tolist(), strict=True)
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([columns, *rows])
        return text.getvalue().encode()
    named = ((name if isinstance(name, (str, int, float)) else str(name), score) for name, score in rows)
    records = [dict(zip(columns, row, strict=True)) for row in named]
    return (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()
