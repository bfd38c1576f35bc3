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

from rankdp.data.formats.csv import read_header
from rankdp.errors import InputError, system_problem

ITEM_NAMES = ("item", "name", "id", "item_name", "item_id", "candidate", "model", "player", "product")
SCORE_NAMES = ("score", "value", "rating", "points")
_READ = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
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
    kind = _kind(name, _READ)
    try:
        if not Path(name).exists():
            raise InputError(f"{name}: there is no such file")
        if not Path(name).stat().st_size:
            raise InputError(f"{name}: the file is empty")
        return (_read_csv if kind == "csv" else _read_parquet)(name, item_column, score_column)
    except OSError as error:
        raise system_problem(name, error, "read") from None


def _kind(name: str, known: dict[str, str]) -> str:
    ending = Path(name).suffix.lower()
    if ending not in known:
        raise InputError(f"{name}: the ending must be one of {', '.join(known)}, got {ending!r}")
    return known[ending]


def _read_csv(path: str, item_column: str | None, score_column: str | None) -> ScoreTable:
    header, separator, _ = read_header(path)
    item, score = _columns(path, header, item_column, score_column)
    places = header.index(item), header.index(score)
    lines, names, texts = [], [], []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            records = csv.reader(file, delimiter=separator)
            next(records)
            for record in records:
                if not record:
                    continue
                if len(record) != len(header):
                    raise InputError(
                        f"{path}, line {records.line_num}: the line has {len(record)} fields "
                        f"and the header {len(header)}"
                    )
                lines.append(records.line_num)
                names.append(record[places[0]].strip())
                texts.append(record[places[1]].strip())
    except UnicodeDecodeError:
        raise InputError(f"{path}: the text is not valid UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{path}, line {records.line_num}: the file could not be read as CSV ({error})") from None
    return _table(names, texts, header, (item, score), [f"{path}, line {line}" for line in lines], path)


def _read_parquet(path: str, item_column: str | None, score_column: str | None) -> ScoreTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            header = file.schema_arrow.names
            item, score = _columns(path, header, item_column, score_column)
            table = file.read([item, score])
    except pa.ArrowException:
        raise InputError(f"{path}: this is not a whole Parquet file (damaged or cut short?)") from None
    names, values = table.column(item).to_pylist(), table.column(score).to_pylist()
    return _table(names, values, header, (item, score), [f"{path}, row {row + 1}" for row in range(len(names))], path)


def _columns(path: str, header: Sequence[str], item_column: str | None, score_column: str | None) -> tuple[str, str]:
    """The names of the two columns."""
    for name in header:
        if list(header).count(name) > 1:
            raise InputError(f"{path}: two columns are called {name!r}")
    found = []
    for what, asked, known in (("item", item_column, ITEM_NAMES), ("score", score_column, SCORE_NAMES)):
        present = {name.strip().lower().replace(" ", "_"): name for name in reversed(header)}
        column = asked if asked is not None else next((present[name] for name in known if name in present), None)
        if column is None or column not in header:
            hint = f"is {asked!r}" if asked is not None else f"must be given (or be called {', '.join(known[:3])})"
            raise InputError(f"{path}: {what}_column {hint}, and the columns are {', '.join(header)}")
        found.append(column)
    if found[0] == found[1]:
        raise InputError(f"{path}: item_column and score_column must be two columns, got {found[0]!r} for both")
    return found[0], found[1]


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
        if isinstance(name, (list, dict)):
            raise InputError(f"{place}: the {columns[0]} must be a text or a number, got {name!r}")
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
    return _encoders[_kind(os.fspath(path), _WRITTEN)](table, scores)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a target whose format is not known, before anything is read."""
    _kind(os.fspath(path), _WRITTEN)


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
