"""Tables of features: a column of ids and columns of numbers, CSV or Parquet.

Columns that hold no numbers are left out, and told; a blank or missing number is refused, with its row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.formats.csv import read_header
from rankdp.errors import InputError, system_problem
from rankdp.types import Floats

USER_COLUMNS = ("user_id", "user", "voter", "voter_id", "id")
ITEM_COLUMNS = ("item", "name", "item_name", "item_id", "id")


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Rows of numbers, each with an id."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    values: Floats
    left_out: tuple[str, ...]


def read_features(
    path: str | os.PathLike[str],
    known: Sequence[str],
    id_column: str | None = None,
    columns: Iterable[str] | None = None,
) -> Features:
    """The ids and features of a file; ``columns`` chooses some, all columns of numbers by default."""
    name = os.fspath(path)
    table = _read(name)
    header = list(table.column_names)
    for column in header:
        if header.count(column) > 1:
            raise InputError(f"{name}: two columns are called {column!r}")
    own = _id_column(name, header, known, id_column)
    ids = tuple(str(cell) if cell is not None else "" for cell in table.column(own).to_pylist())
    _check_ids(name, own, ids)
    wanted = None if columns is None else list(columns)
    for column in wanted or ():
        if column not in header:
            raise InputError(f"{name}: there is no column {column!r}; the columns are {', '.join(header)}")
    others = [column for column in header if column != own]
    numbers = [column for column in others if _is_number(table, column)]
    chosen = numbers if wanted is None else wanted
    for column in chosen:
        if column not in numbers:
            raise InputError(f"{name}: column {column!r} must hold numbers, to be a feature")
    if not chosen:
        raise InputError(f"{name}: there is no column of numbers beside {own!r}; at least one feature is needed")
    values = np.column_stack([_numbers(name, table, column) for column in chosen])
    return Features(ids, tuple(chosen), values, tuple(column for column in others if column not in chosen))


def _read(name: str) -> Any:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    ending = Path(name).suffix.lower()
    if ending not in (".csv", ".tsv", ".parquet", ".pq"):
        raise InputError(f"{name}: the ending must be one of .csv, .tsv, .parquet, .pq, got {ending!r}")
    try:
        if not Path(name).is_file():
            raise InputError(f"{name}: there is no such file")
        if ending in (".parquet", ".pq"):
            table = pq.read_table(name)
        else:
            separator = read_header(name)[1]
            table = pyarrow.csv.read_csv(name, parse_options=pyarrow.csv.ParseOptions(delimiter=separator))
    except pa.ArrowException as problem:
        reason = str(problem).partition("\n")[0]
        raise InputError(f"{name}: the file could not be read as a table ({reason})") from None
    except OSError as problem:
        raise system_problem(name, problem, "read") from None
    if not table.num_rows:
        raise InputError(f"{name}: there are no rows")
    return table


def _id_column(name: str, header: Sequence[str], known: Sequence[str], asked: str | None) -> str:
    present = {column.strip().lower().replace(" ", "_"): column for column in reversed(header)}
    column = asked if asked is not None else next((present[usual] for usual in known if usual in present), None)
    if column is None or column not in header:
        hint = f"is {asked!r}" if asked is not None else f"must be given (or be called {', '.join(known)})"
        raise InputError(f"{name}: the column of ids {hint}, and the columns are {', '.join(header)}")
    return column


def _check_ids(name: str, column: str, ids: tuple[str, ...]) -> None:
    seen: dict[str, int] = {}
    for row, identifier in enumerate(ids, 1):
        if not identifier.strip():
            raise InputError(f"{name}, row {row}: the {column} is blank")
        if identifier in seen:
            raise InputError(
                f"{name}, row {row}: {column} {identifier!r} is there twice, first in row {seen[identifier]}"
            )
        seen[identifier] = row


def _is_number(table: Any, column: str) -> bool:
    import pyarrow as pa

    kind = table.schema.field(column).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _numbers(name: str, table: Any, column: str) -> Floats:
    import pyarrow as pa

    cells = table.column(column)
    if cells.null_count:
        row = cells.is_null().to_pylist().index(True) + 1
        raise InputError(f"{name}, row {row}: {column} is blank; every feature needs a number")
    values = cells.cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"{name}, row {row + 1}: {column} must be a finite number, got {values[row]}")
    return np.asarray(values)
