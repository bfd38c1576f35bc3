"""Tables: whatever holds rows, opened as columns of text with row numbers.

    open_table(source) -> Table        files, frames, tables of engines
    table.batches(columns)             Arrow batches, with where each one begins; files and frames
    asked(table, columns)              the same columns as a lazy Narwhals frame of trimmed texts

Files are read by this process into Arrow: CSV behind a guard, JSON by Python's parser, Parquet by Arrow. Frames come as
Arrow. An expression about them runs on Arrow at once where there are few rows, else in DuckDB inside the process, which
pulls the batches and writes to disk what does not fit into memory. What lives on an engine (a DuckDB relation or file,
a Spark DataFrame, any other lazy frame of Narwhals) stays there, and the expression goes to it.

Input is untrusted. Memory is taken by batches, never by what a file announces, and the rows that arrive are compared
with the rows announced. What a library raises becomes one sentence.
"""

from __future__ import annotations

import atexit
import glob
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from typing import Any

from rankdp.data.cells import (
    FOUND_KEY,
    SPACES,
    Batch,
    Kind,
    arrow_table,
    declared_items,
    decoded,
    in_a_sentence,
    row_number,
)
from rankdp.data.columns import check_names
from rankdp.data.formats.csv import open_text
from rankdp.data.formats.parquet import open_checked, read_group, validate
from rankdp.errors import InputError, Setting, Unsupported, system_problem
from rankdp.progress import tell

BATCH_ROWS = 1 << 19
ROW = "rd_row"
"""The column of row numbers beside those of a table: the number of the file times 2^40, and the row in it."""
FEW_ROWS = 1 << 16
"""Up to so many rows an expression takes less time on Arrow than DuckDB takes to plan it."""
_FILE = 1 << 40
_ROW_BYTES = 64
_LIBRARIES = ("narwhals", "pyspark", "py4j", "polars", "grpc")
_EDGE = "[" + "".join(f"\\x{{{ord(space):x}}}" for space in SPACES) + "]"


def open_table(source: Any, table: str | None = None) -> Table:
    """Open whatever holds rows.

    Parameters
    ----------
    source
        A path or pattern of files, a ``.duckdb`` file, a frame (pandas, Polars, PyArrow, a Hugging Face dataset or
        anything with an Arrow stream), or what stays on its engine: a DuckDB relation or connection, a Spark DataFrame,
        a lazy frame of Narwhals or of a library that it knows.
    table
        The name of the table, where ``source`` is a ``.duckdb`` file or a connection.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        duck = path.endswith((".duckdb", ".ddb"))
        return _duckdb_table(_duckdb_file(path), path, table) if duck or table is not None else find_files(path)
    home = type(source).__module__.partition(".")[0]
    if home in ("duckdb", "_duckdb") and hasattr(source, "cursor"):
        return _duckdb_table(source, "DuckDB", table)
    if table is not None:
        raise InputError(f"table names a table of a connection or a .duckdb file; got {table!r} beside another table")
    if home in ("duckdb", "_duckdb", "pyspark", "narwhals", "ibis", "dask") or type(source).__name__ == "LazyFrame":
        return EngineTable(source, {"pyspark": "Spark table"}.get(home, "table"))
    if home == "datasets":  # Hugging Face's: with_format gives all columns as Arrow
        source = source.with_format("arrow")[:]
    return Frame(source)


def check_rows(what: str, announced: int | None, rows: int) -> None:
    """Refuse a table that did not deliver the rows that it announces."""
    if announced is not None and rows != announced:
        raise InputError(f"{what}: the table is damaged (it announces {announced:,} rows and delivers {rows:,})")


def kind_of(kind: Any) -> Kind:
    """What a column of an Arrow type holds."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return "number"
    if pa.types.is_nested(kind):
        return "nested"
    return "text" if kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null()) else "other"


# -- files -------------------------------------------------------------------------------------------------------


def find_files(pattern: str) -> Files:
    """The files that a path or pattern means, their headers looked at."""
    paths = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not paths:
        raise InputError(f"{pattern}: there is no such file")
    try:
        parquet = [path for path in paths if _is_parquet(path)]
        if parquet and len(parquet) != len(paths):
            raise InputError(f"{pattern}: some of the files are Parquet and some are not")
        return ParquetFiles(pattern, paths) if parquet else TextFiles(pattern, paths)
    except OSError as error:
        raise system_problem(str(error.filename or pattern), error, "read") from None


@contextmanager
def a_file(path: str, what: str) -> Iterator[None]:
    """Open a file of ``what`` in the block; a directory is refused, and what the system says becomes a sentence."""
    if Path(path).is_dir():
        raise InputError(f"{path}: this is a directory, not a file of {what}")
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise system_problem(path, error, "read") from None


def one_file(path: str, kind: str) -> Files:
    """The one file at this path, Parquet or text as ``kind`` says."""
    if not Path(path).stat().st_size:
        raise InputError(f"{path}: the file is empty")
    return ParquetFiles(path, [path]) if kind == "parquet" else TextFiles(path, [path])


def _is_parquet(path: str) -> bool:
    """Whether its ending or its first bytes say so."""
    with Path(path).open("rb") as file:
        return Path(path).suffix == ".parquet" or file.read(4) == b"PAR1"


class _Files:
    """Files with the same columns."""

    rows: int | None = None
    declared_items: list[str] | None = None
    items_from_data = False
    """Whether the list that the table carries was found in its rows."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        self.what, self.paths = what, paths
        self.kinds: dict[str, Kind] = {}

    def _same_columns(self, path: str, kinds: dict[str, Kind]) -> None:
        self.kinds = self.kinds or kinds
        if kinds != self.kinds:
            raise InputError(f"{path}: its columns are not those of {self.paths[0]}")


class ParquetFiles(_Files):
    """Parquet files, one after the other."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        super().__init__(what, paths)
        self._groups: list[tuple[int, int, int]] = []
        self.rows = 0
        for number, path in enumerate(paths):
            with open_checked(path) as file:
                self._same_columns(path, {field.name: kind_of(field.type) for field in file.schema_arrow})
                check_names(file.schema_arrow.names, path)
                # the footer's own texts: the Arrow schema kept beside them hides those that were added at the end
                self.declared_items = declared_items(file.metadata) if len(paths) == 1 else None
                self.items_from_data = FOUND_KEY in (file.metadata.metadata or {})
                start = 0
                for group in range(file.num_row_groups):
                    self._groups.append((number, group, start))
                    start += file.metadata.row_group(group).num_rows
                self.rows += start

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Batch, None, None]:
        """Row group by row group; columns of texts come as dictionaries, unless they are ``plain``."""
        coded, done = [name for name in columns if self.kinds[name] == "text" and name not in plain], 0
        for number, mine in groupby(self._groups, itemgetter(0)):
            path = self.paths[number]
            with open_checked(path, coded) as file:
                for _, group, start in mine:
                    for batch in read_group(path, file, group, columns, batch_rows or BATCH_ROWS, use_threads=True):
                        yield number, start, batch
                        start += batch.num_rows
                        done += batch.num_rows
                        tell("reading", done, self.rows)

    def where(self, file: int, row: int) -> str:
        """The file and the row."""
        return f"{self.paths[file]}, {row_number(row)}"


class TextFiles(_Files):
    """CSV or JSON files; the cells of a CSV file come as dictionaries of texts, or as texts if ``plain``."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        super().__init__(what, paths)
        self._files = [open_text(path) for path in paths]
        for file in self._files:
            self._same_columns(file.path, file.kinds)
        check_names(self._files[0].names, paths[0])

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Batch, None, None]:
        """File by file."""
        coded = [name for name in columns if name not in plain]
        least = 1 << 22 if batch_rows is None else max(1 << 20, batch_rows * _ROW_BYTES)
        for number, file in enumerate(self._files):
            blocks = file.batches(max(least, file.size * 64), coded, plain)
            yield from numbered(blocks, number, batch_rows)

    def where(self, file: int, row: int) -> str:
        """The file and the line."""
        return self._files[file].line(row)


# -- frames and tables of engines --------------------------------------------------------------------------------


class Frame:
    """A table in memory, or a DuckDB relation that is run again for every reading."""

    def __init__(self, frame: Any) -> None:
        self.what = "frame"
        self._relation = next(
            (getattr(frame, name) for name in ("to_arrow_reader", "fetch_arrow_reader") if hasattr(frame, name)), None
        )
        with in_a_sentence(self.what):
            if self._relation is not None:
                with self._relation(1) as reader:
                    schema, self.rows = reader.schema, None
            else:
                self._table = arrow_table(frame)
                schema, self.rows = self._table.schema, len(self._table)
        check_names(schema.names, self.what)
        self.declared_items = declared_items(schema)
        self.items_from_data = FOUND_KEY in (schema.metadata or {})
        self.kinds: dict[str, Kind] = {field.name: kind_of(field.type) for field in schema}

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Batch, None, None]:
        """The rows of these columns, as they are."""
        rows = batch_rows or BATCH_ROWS
        if self._relation is not None:
            yield from numbered(batch.select(list(columns)) for batch in self._relation(rows))
            return
        for file, start, batch in numbered(self._table.select(list(columns)).to_batches(rows)):
            validate(batch)
            yield file, start, batch

    def where(self, file: int, row: int) -> str:
        """The row, if rows have an order."""
        return self.what if self._relation is not None else f"{self.what}, {row_number(row)}"


class EngineTable:
    """A table that stays on its engine, as a lazy frame of Narwhals."""

    rows: int | None = None
    declared_items: list[str] | None = None
    items_from_data = False

    def __init__(self, native: Any, what: str) -> None:
        import narwhals as nw

        self.what = what
        with in_a_sentence(what, *_LIBRARIES):
            self.frame = nw.from_native(native).lazy()
            schema = self.frame.collect_schema()
        check_names(schema.names(), what)
        self.kinds: dict[str, Kind] = {name: _kind(dtype) for name, dtype in schema.items()}
        # DuckDB's types that Narwhals does not know, and that can be texts
        duck = zip(self.kinds, map(str, getattr(native, "types", ())), strict=False)
        self.kinds |= {name: "text" for name, kind in duck if kind in ("UUID", '"NULL"')}


Files = ParquetFiles | TextFiles
Held = Files | Frame
"""A table that this process reads, again and again, in batches in the order of its rows."""
Table = Held | EngineTable


def numbered(batches: Iterable[Any], file: int = 0, most: int | None = None) -> Generator[Batch, None, None]:
    """Batches of one file with the numbers of their first rows, cut into batches of at most so many rows."""
    start = 0
    for whole in batches:
        size = most or max(1, whole.num_rows)
        for first in range(0, whole.num_rows, size):
            yield file, start + first, whole.slice(first, size)
        start += whole.num_rows


def _duckdb_file(path: str) -> Any:
    """A DuckDB file, opened for reading only."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    import duckdb

    try:
        return duckdb.connect(path, read_only=True)
    except duckdb.Error as error:
        raise InputError(f"{path}: DuckDB cannot open it ({str(error).splitlines()[0]})") from None


def _duckdb_table(connection: Any, what: str, table: str | None) -> EngineTable:
    import duckdb

    if table is None:
        raise InputError(f"{what}: ", Setting("table"), " must name the table that holds the rows")
    try:
        return EngineTable(connection.table(table), f"{what}, {table}")
    except duckdb.CatalogException:
        raise InputError(f"{what}: there is no table called {table!r}") from None


# -- expressions -------------------------------------------------------------------------------------------------


def _kind(dtype: Any) -> Kind:
    import narwhals as nw

    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype.is_nested():
        return "nested"
    return "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else "other"


def cell_text(name: str, kind: Kind, whole: bool) -> Any:
    """What a cell says, an expression: no spaces around it, whole numbers without a point, nothing for a NaN.

    Parameters
    ----------
    name
        The column.
    kind
        What it holds.
    whole
        Whether all rows are at hand. An engine looks for a space at an edge before it trims, since that takes longer.
    """
    import narwhals as nw

    column = nw.col(name)
    if kind == "number":
        return _number_text(column)
    text = column.cast(nw.String)
    if kind == "whole":
        return text
    trimmed = text.str.strip_chars(SPACES)
    return trimmed if whole else nw.when(text.str.contains(f"^{_EDGE}|{_EDGE}$")).then(trimmed).otherwise(text)


def _number_text(column: Any) -> Any:
    import narwhals as nw

    number = column.cast(nw.Float64)
    whole = number.is_finite() & (number == number.floor()) & (number.abs() < 2.0**63)
    # engines stop at a number that a cast cannot hold, also in a row that takes the other branch
    safe = nw.when(whole).then(number).otherwise(nw.lit(0.0)).cast(nw.Int64).cast(nw.String)
    said = nw.when(whole).then(safe).otherwise(number.cast(nw.String))
    return nw.when(number.is_nan()).then(nw.lit(None, nw.String)).otherwise(said)


class _Stream:
    """Columns of a file or frame as trimmed texts with row numbers: an Arrow stream that can be opened many times."""

    def __init__(self, table: Held, columns: Sequence[str]) -> None:
        import pyarrow as pa

        self._table, self._columns = table, list(dict.fromkeys(columns))
        self.schema = pa.schema([*((name, pa.string()) for name in self._columns), (ROW, pa.int64())])
        self.problem: Exception | None = None
        """What was refused, whatever DuckDB makes of it."""
        self._begun: Iterator[Any] | None = None

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        begun, self._begun = self._begun or self._batches(), None
        return pa.RecordBatchReader.from_batches(self.schema, begun).__arrow_c_stream__(requested_schema)

    def few(self) -> Any:
        """All rows as an Arrow table if there are at most ``FEW_ROWS``, else None: the stream goes on from there."""
        import pyarrow as pa

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
                yield self._texts(batch, file * _FILE + start)
        except Exception as error:
            self.problem = error
            raise

    def _texts(self, batch: Any, first: int) -> Any:
        import narwhals as nw
        import numpy as np
        import pyarrow as pa

        kinds = self._table.kinds
        plain = pa.table({name: _plain(batch.column(name)) for name in self._columns})
        texts = [cell_text(name, kinds[name], whole=True).alias(name) for name in self._columns]
        cells = nw.from_native(plain, eager_only=True).select(*texts).to_native() if texts else plain
        columns = [cells.column(name).combine_chunks().cast(pa.string()) for name in self._columns]
        rows = pa.array(np.arange(first, first + batch.num_rows))
        return pa.RecordBatch.from_arrays([*columns, rows], schema=self.schema)


def _plain(column: Any) -> Any:
    """A column of a type that Narwhals knows: dictionaries of texts may stay, columns of nothing are texts."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        return decoded(column)
    return column if column.type.value_type == pa.string() else decoded(column.dictionary).take(column.indices)


@dataclass(frozen=True, slots=True)
class Asked:
    """Columns of a table as trimmed texts, to be asked by expressions of Narwhals.

    Parameters
    ----------
    what
        The table, for messages.
    frame
        The columns, lazily or of few rows at once; in files and frames with a column ``ROW``.
    has_rows
        Whether there is that column.
    beside
        Puts a small Arrow table beside them, to be joined with.
    problem
        What the reader refused while an expression ran.
    """

    what: str
    frame: Any
    has_rows: bool
    beside: Callable[[Any], Any]
    problem: Callable[[], Exception | None] = lambda: None

    def run(self, expression: Any) -> Any:
        """The result as an Arrow table; whatever an engine raises becomes one sentence."""
        try:
            with in_a_sentence(self.what, *_LIBRARIES):
                return (expression.collect("pyarrow") if hasattr(expression, "collect") else expression).to_native()
        except Exception:
            if problem := self.problem():
                with in_a_sentence(self.what):
                    raise problem from None
            raise

    def distinct(self, column: str) -> set[str | None]:
        """Every text that occurs in a column."""
        return set(self.run(self.frame.select(column).unique())[column].to_pylist())


@contextmanager
def asked(table: Table, columns: Sequence[str]) -> Iterator[Asked]:
    """Open columns of a table for expressions.

    Parameters
    ----------
    table
        The table.
    columns
        The columns; they must hold texts or numbers.
    """
    import narwhals as nw

    if isinstance(table, EngineTable):
        texts = [cell_text(name, table.kinds[name], whole=False).alias(name) for name in dict.fromkeys(columns)]
        yield Asked(table.what, table.frame.select(*texts), False, lambda small: _beside(table.frame, small))
        return
    stream = _Stream(table, columns)
    if (few := stream.few()) is not None:
        eager = partial(nw.from_native, eager_only=True)
        yield Asked(table.what, eager(few), True, eager)
        return
    with _duckdb(os.getpid()).cursor() as connection:

        def beside(small: Any) -> Any:
            return nw.from_native(connection.from_arrow(small))

        yield Asked(table.what, beside(stream), True, beside, lambda: stream.problem)


def _beside(frame: Any, small: Any) -> Any:
    """A small Arrow table where a lazy frame is."""
    import narwhals as nw

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
    try:
        import duckdb
    except ImportError:
        raise Unsupported("counting needs DuckDB, which is not installed: pip install duckdb") from None
    spilled = tempfile.mkdtemp(prefix="rankdp-")
    atexit.register(rmtree, spilled, ignore_errors=True)
    connection = duckdb.connect(config={"temp_directory": spilled, "autoload_known_extensions": False})
    # DuckDB does not know how long a stream is, and would hold it in memory to join the few items to it
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    atexit.register(connection.close)
    return connection
