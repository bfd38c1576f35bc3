"""Expressions about tables: columns of trimmed texts with row numbers, and where an expression about them runs.

`asked(table, columns)` gives a Narwhals frame. For files and frames it is an Arrow table where there are few rows, else
a relation of DuckDB inside this process, which pulls the batches and writes to disk what does not fit into memory. For
what lives on an engine it is a lazy frame there. Whoever writes an expression does not see the difference.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from shutil import rmtree
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from rankdp.data.cells import SPACES, Kind, decoded, in_a_sentence
from rankdp.data.tables import LIBRARIES, EngineTable, Held, Table

ROW = "rd_row"
"""The extra column of row numbers: the number of the file times 2^40, plus the row in it."""
FEW_ROWS = 1 << 16
"""Up to this number of rows, Arrow finishes before DuckDB has planned the expression."""
FILE = 1 << 40
MEMORY = 3
"""GiB that DuckDB may hold, or its own limit (80% of the machine's memory) where that is less; the rest goes to disk.
10^8 votes of 2 million voters took 8.3 GB without it, and with it 3.8 GB and 12 to 23% more processor time."""
_EDGE = "[" + "".join(f"\\x{{{ord(space):x}}}" for space in SPACES) + "]"


def cell_text(name: str, kind: Kind, whole: bool) -> Any:
    """What a cell says: no spaces around it, whole numbers without a point, nothing for a NaN.

    Unless the whole column is at hand, the engine looks for a space at an edge before it trims, which takes longer.
    """
    column = nw.col(name)
    if kind == "number":
        return _number_text(column)
    text = column.cast(nw.String)
    if kind == "whole":
        return text
    trimmed = text.str.strip_chars(SPACES)
    return trimmed if whole else nw.when(text.str.contains(f"^{_EDGE}|{_EDGE}$")).then(trimmed).otherwise(text)


def _number_text(column: Any) -> Any:
    number = column.cast(nw.Float64)
    whole = number.is_finite() & (number == number.floor()) & (number.abs() < 2.0**63)
    # engines stop at a number that a cast cannot hold, also in a row that takes the other branch
    safe = nw.when(whole).then(number).otherwise(nw.lit(0.0)).cast(nw.Int64).cast(nw.String)
    said = nw.when(whole).then(safe).otherwise(number.cast(nw.String))
    return nw.when(number.is_nan()).then(nw.lit(None, nw.String)).otherwise(said)


class _Stream:
    """Columns of a file or frame as trimmed texts with row numbers: an Arrow stream that can be opened many times."""

    def __init__(self, table: Held, columns: Sequence[str]) -> None:
        self._table, self._columns = table, list(dict.fromkeys(columns))
        self.schema = pa.schema([*((name, pa.string()) for name in self._columns), (ROW, pa.int64())])
        self.problem: Exception | None = None
        """What was refused, whatever DuckDB makes of it."""
        self._begun: Iterator[Any] | None = None

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        begun, self._begun = self._begun or self._batches(), None
        return pa.RecordBatchReader.from_batches(self.schema, begun).__arrow_c_stream__(requested_schema)

    def few(self) -> Any:
        """All rows as an Arrow table if there are at most ``FEW_ROWS``, else None: the stream goes on from there."""
        if (self._table.rows or 0) > FEW_ROWS:
            return None
        held, rows, batches = list[Any](), 0, self._batches()
        with in_a_sentence(self._table.what):
            for batch in batches:
                held.append(batch)
                rows += batch.num_rows
                if rows > FEW_ROWS:
                    self._begun = chain(held, batches)
                    return None
        return pa.Table.from_batches(held, self.schema)

    def _batches(self) -> Generator[Any, None, None]:
        try:
            for file, start, batch in self._table.batches(self._columns):
                yield self._texts(batch, file * FILE + start)
        except Exception as error:
            self.problem = error
            raise

    def _texts(self, batch: Any, first: int) -> Any:
        kinds = self._table.kinds
        plain = pa.table({name: _plain(batch.column(name)) for name in self._columns})
        texts = [cell_text(name, kinds[name], whole=True).alias(name) for name in self._columns]
        cells = nw.from_native(plain, eager_only=True).select(*texts).to_native() if texts else plain
        columns = [cells.column(name).combine_chunks().cast(pa.string()) for name in self._columns]
        rows = pa.array(np.arange(first, first + batch.num_rows))
        return pa.RecordBatch.from_arrays([*columns, rows], schema=self.schema)


def _plain(column: Any) -> Any:
    """A column of a type that Narwhals knows: dictionaries of texts may stay, columns of nothing are texts."""
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        return decoded(column)
    return column if column.type.value_type == pa.string() else decoded(column.dictionary).take(column.indices)


@dataclass(frozen=True, slots=True)
class Asked:
    """Columns of a table as trimmed texts, for expressions of Narwhals."""

    what: str
    frame: Any
    """The columns, lazily or of few rows at once; in files and frames with a column ``ROW``."""
    has_rows: bool
    """Whether there is that column."""
    moved: Callable[[Any], Any]
    """Moves a small Arrow table to the same engine, for a join."""
    problem: Callable[[], Exception | None] = lambda: None
    """What the reader refused while an expression ran."""

    def run(self, expression: Any) -> Any:
        """The result as an Arrow table; whatever an engine raises becomes one sentence."""
        try:
            with in_a_sentence(self.what, *LIBRARIES):
                return (expression.collect("pyarrow") if hasattr(expression, "collect") else expression).to_native()
        except Exception:
            if problem := self.problem():
                with in_a_sentence(self.what):
                    raise problem from None
            raise

    @property
    def first(self) -> list[Any]:
        """The number of the first row of a group, an expression, where rows have numbers."""
        return [nw.col(ROW).min()] if self.has_rows else []

    def example(self, rows: Any, columns: Sequence[str]) -> dict[str, Any]:
        """Cells of the first of these rows, and its number; of any of them where rows have no numbers."""
        some = rows.select(*columns, ROW).sort(ROW) if self.has_rows else rows.select(*columns)
        (cells,) = self.run(some.head(1)).to_pylist()
        return dict(cells)

    def distinct(self, column: str) -> set[str | None]:
        """Every text that occurs in a column."""
        return set(self.run(self.frame.select(column).unique())[column].to_pylist())


def place(table: Table, row: int | None) -> str:
    """The place of the row with this number; the table itself where rows have no numbers."""
    return table.what if row is None else table.where(*divmod(row, FILE))  # type: ignore[union-attr]


@contextmanager
def asked(table: Table, columns: Sequence[str]) -> Iterator[Asked]:
    """Open columns of a table, which must hold texts or numbers, for expressions."""
    if isinstance(table, EngineTable):
        texts = [cell_text(name, table.kinds[name], whole=False).alias(name) for name in dict.fromkeys(columns)]
        yield Asked(table.what, table.frame.select(*texts), False, lambda small: _moved(table.frame, small))
        return
    stream = _Stream(table, columns)
    if (few := stream.few()) is not None:
        eager = partial(nw.from_native, eager_only=True)
        yield Asked(table.what, eager(few), True, eager)
        return
    with _duckdb(os.getpid()).cursor() as connection:

        def moved(small: Any) -> Any:
            return nw.from_native(connection.from_arrow(small))

        yield Asked(table.what, moved(stream), True, moved, lambda: stream.problem)


def _moved(frame: Any, small: Any) -> Any:
    """A small Arrow table, moved to where a lazy frame is."""
    native = frame.to_native()
    if frame.implementation.is_duckdb():  # a relation of the same connection
        columns = zip(small.column_names, small.columns, strict=True)
        lists = [f"unnest([{', '.join(map(_literal, column.to_pylist()))}]) AS {name}" for name, column in columns]
        return nw.from_native(native.query("rd_asked", f"SELECT {', '.join(lists)}"))
    session = native.sparkSession if frame.implementation.is_spark_like() else None
    return nw.from_native(small, eager_only=True).lazy(frame.implementation, session=session)


def _literal(value: str | int) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"{value}::BIGINT"


@cache
def _duckdb(_process: int) -> Any:
    """DuckDB in this process; what does not fit into memory goes to a directory that nobody else can read."""
    import duckdb

    spilled = tempfile.mkdtemp(prefix="rankdp-")
    atexit.register(rmtree, spilled, ignore_errors=True)
    connection = duckdb.connect(config={"temp_directory": spilled, "autoload_known_extensions": False})
    limit, unit = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0].split()
    if unit == "TiB" or (unit == "GiB" and float(limit) > MEMORY):
        connection.execute(f"SET memory_limit = '{MEMORY}GiB'")
    # DuckDB does not know how long a stream is, and would hold it in memory to join the few items to it
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    atexit.register(connection.close)
    return connection
