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
from rankdp.types import Floats

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

    Parameters
    ----------
    path
        The file.
    item_column, score_column
        The columns, where their names are not the usual ones.
    **opening
        ``sheet`` and ``encoding``, as in `rankdp.data.tables.open_table`.
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
        if isinstance(value, (bool, bytes)):
            raise TypeError  # noqa: TRY301
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where(row)}: the {column} must be a number, got {value!r}") from None
    if not np.isfinite(number):
        raise InputError(f"{where(row)}: the {column} must be a finite number, got {number}")
    return number


def encoded(path: str | os.PathLike[str], table: ScoreTable, scores: Floats) -> bytes:
    """The table with other scores, in the format that the ending of ``path`` says."""
    return _encoders[_WRITTEN[known_ending(path, tuple(_WRITTEN))]](table, scores)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a target whose format is not known, before anything is read."""
    known_ending(path, tuple(_WRITTEN))


def _csv_bytes(table: ScoreTable, scores: Floats) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([table.item_column, table.score_column])
    writer.writerows(zip(table.names, scores.tolist(), strict=True))
    return text.getvalue().encode()


def _json_bytes(table: ScoreTable, scores: Floats) -> bytes:
    names = [name if isinstance(name, (str, int, float)) else str(name) for name in table.names]
    records = [
        {table.item_column: name, table.score_column: score} for name, score in zip(names, scores.tolist(), strict=True)
    ]
    return (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()


def _parquet_bytes(table: ScoreTable, scores: Floats) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    columns = {table.item_column: pa.array(table.names), table.score_column: pa.array(scores)}
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


_encoders = {"csv": _csv_bytes, "json": _json_bytes, "parquet": _parquet_bytes}
