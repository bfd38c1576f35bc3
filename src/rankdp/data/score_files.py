"""Files of scores: a column of names and a column of numbers, read whole, checked once and written whole.

The columns are recognised by the names people give them (item, name, id; score, value), or named by the caller; others
are not read and are told as left out. Every name is there once and not blank; every score is a number. CSV (`.csv`,
`.tsv`) and Parquet (`.parquet`, `.pq`) are read, and JSON (`.json`, a list of records) is written as well.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.atomic import known_ending
from rankdp.data.columns import recognise_scores
from rankdp.data.formats.csv import CsvText, read_header
from rankdp.data.formats.parquet import check_flat, open_checked, read_group
from rankdp.errors import InputError, system_problem

_READ = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_BATCH_ROWS = 1 << 16
_WRITTEN = {**_READ, ".json": "json"}


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Names and scores in the order of the file."""

    names: tuple[Any, ...]
    scores: NDArray[np.float64]
    item_column: str
    score_column: str
    left_out: tuple[str, ...]


def read_scores(
    path: str | os.PathLike[str], item_column: str | None = None, score_column: str | None = None
) -> ScoreTable:
    """The names and scores of a file, or one sentence that says what is wrong with it and where."""
    name = os.fspath(path)
    if Path(name).is_dir():
        raise InputError(f"{name}: this is a directory, not a file of scores")
    kind = _READ[known_ending(name, tuple(_READ))]
    try:
        if not Path(name).exists():
            raise InputError(f"{name}: there is no such file")
        if not Path(name).stat().st_size:
            raise InputError(f"{name}: the file is empty")
        return (_read_csv if kind == "csv" else _read_parquet)(name, item_column, score_column)
    except OSError as error:
        raise system_problem(name, error, "read") from None


def _read_csv(path: str, item_column: str | None, score_column: str | None) -> ScoreTable:
    header, separator, _ = read_header(path)
    item, score = recognise_scores(header, path, item_column, score_column)
    places = header.index(item), header.index(score)
    records = list(CsvText(path, header, separator, ()).records())
    names, texts = ([record[place].strip() for _, record in records] for place in places)
    return _table(names, texts, header, (item, score), [f"{path}, line {line}" for line, _ in records], path)


def _read_parquet(path: str, item_column: str | None, score_column: str | None) -> ScoreTable:
    names: list[Any] = []
    values: list[Any] = []
    with open_checked(path) as file:
        header = file.schema_arrow.names
        item, score = recognise_scores(header, path, item_column, score_column)
        check_flat(path, file, [item, score])
        for group in range(file.num_row_groups):
            for batch in read_group(path, file, group, [item, score], _BATCH_ROWS):
                names += batch.column(item).to_pylist()
                values += batch.column(score).to_pylist()
    names = [name.strip() if isinstance(name, str) else name for name in names]
    return _table(names, values, header, (item, score), [f"{path}, row {row + 1}" for row in range(len(names))], path)


def _table(
    names: list[Any],
    values: list[Any],
    header: Sequence[str],
    columns: tuple[str, str],
    where: list[str],
    path: str,
) -> ScoreTable:
    """The checked table; ``where`` says in which line or row each entry stands."""
    if not names:
        raise InputError(f"{path}: there are no rows")
    seen: dict[Any, str] = {}
    for name, place in zip(names, where, strict=True):
        if name is None or name == "" or name != name:
            raise InputError(f"{place}: the {columns[0]} is blank")
        if name in seen:
            raise InputError(f"{place}: {columns[0]} {name!r} is there twice, first in {seen[name].split(', ')[-1]}")
        seen[name] = place
    scores = np.array([_score(value, columns[1], place) for value, place in zip(values, where, strict=True)])
    return ScoreTable(tuple(names), scores, *columns, tuple(name for name in header if name not in columns))


def _score(value: Any, column: str, place: str) -> float:
    if value is None or value == "":
        raise InputError(f"{place}: the {column} is blank")
    try:
        if isinstance(value, (bool, bytes)):
            raise TypeError  # noqa: TRY301
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{place}: the {column} must be a number, got {value!r}") from None
    if not np.isfinite(number):
        raise InputError(f"{place}: the {column} must be a finite number, got {number}")
    return number


def encoded(path: str | os.PathLike[str], table: ScoreTable, scores: NDArray[np.float64]) -> bytes:
    """The table with other scores, in the format that the ending of ``path`` says."""
    return _encoders[_WRITTEN[known_ending(path, tuple(_WRITTEN))]](table, scores)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a target whose format is not known, before anything is read."""
    known_ending(path, tuple(_WRITTEN))


def _csv_bytes(table: ScoreTable, scores: NDArray[np.float64]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([table.item_column, table.score_column])
    writer.writerows(zip(table.names, scores.tolist(), strict=True))
    return text.getvalue().encode()


def _json_bytes(table: ScoreTable, scores: NDArray[np.float64]) -> bytes:
    names = [name if isinstance(name, (str, int, float)) else str(name) for name in table.names]
    records = [
        {table.item_column: name, table.score_column: score} for name, score in zip(names, scores.tolist(), strict=True)
    ]
    return (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()


def _parquet_bytes(table: ScoreTable, scores: NDArray[np.float64]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    columns = {table.item_column: pa.array(table.names), table.score_column: pa.array(scores)}
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


_encoders = {"csv": _csv_bytes, "json": _json_bytes, "parquet": _parquet_bytes}
