"""Tables: whatever holds rows, opened as columns of text with row numbers.

    open_table(source) -> Table        files, frames, tables of engines; a Table stays what it is
    table.batches(columns)             Arrow batches, with where each one begins; files and frames
    queries.asked(table, columns)      the same columns as a lazy Narwhals frame of trimmed texts

Files are read by this process into Arrow: CSV behind a guard, JSON by Python's parser, Excel by calamine, Parquet by
Arrow. Frames come as Arrow. What lives on an engine (a DuckDB relation or file, a Spark DataFrame, any other lazy frame
of Narwhals) stays there.

Input is untrusted. Memory is taken by batches, never by what a file announces, and the rows that arrive are compared
with the rows announced. What a library raises becomes one sentence.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from rankdp.data.adapters import LIST_NAMES, wide_lists
from rankdp.data.cells import FOUND_KEY, Batch, Kind, arrow_table, declared_items, in_a_sentence, row_number, text_of
from rankdp.data.columns import ITEM_NAMES, check_names, first_known, listed_names
from rankdp.data.formats.csv import open_text
from rankdp.data.formats.excel import open_sheet
from rankdp.data.formats.parquet import open_checked, read_group, validate
from rankdp.data.formats.texts import TextFile, bare_suffix, known_encoding, lines_of, whole
from rankdp.errors import InputError, Setting, system_problem
from rankdp.lazy import LazyModule
from rankdp.progress import tell

nw: Any = LazyModule("narwhals")
pa: Any = LazyModule("pyarrow")
duckdb: Any = LazyModule("duckdb")

ROWS_AT_ONCE = 1 << 19
_ROW_BYTES = 64
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".xlsx", ".parquet", ".pq")
LIBRARIES = ("narwhals", "pyspark", "py4j", "polars", "grpc")
"""Whose exceptions about a table become a sentence."""


def open_table(
    source: Any, table: str | None = None, *, sheet: str | None = None, encoding: str | None = None
) -> Table:
    """Open whatever holds rows.

    Parameters
    ----------
    source
        A path or pattern of files, or a list of them; a ``.duckdb`` file, a frame (pandas, Polars, PyArrow, a Hugging
        Face dataset or anything with an Arrow stream), or what stays on its engine: a DuckDB relation or connection, a
        Spark DataFrame, a lazy frame of Narwhals or of a library that it knows.
    table
        The name of the table, where ``source`` is a ``.duckdb`` file or a connection.
    sheet
        The name of the sheet, where ``source`` is an Excel workbook with several.
    encoding
        The encoding of text files, such as "windows-1252"; UTF-8, or UTF-16 with a byte order mark, if not given.
    """
    if is_paths(source):
        paths = [os.fspath(source)] if isinstance(source, (str, os.PathLike)) else [os.fspath(path) for path in source]
        if len(paths) == 1 and (paths[0].endswith((".duckdb", ".ddb")) or table is not None):
            return _duckdb_table(_duckdb_file(paths[0]), paths[0], table)
        return find_files(*paths, sheet=sheet, encoding=encoding)
    if sheet is not None or encoding is not None:
        name = "encoding" if sheet is None else "sheet"
        raise InputError(Setting(name), f" is for files, got {sheet or encoding!r} for a table that is open already")
    if isinstance(source, (_Files, Frame, EngineTable)) and table is None:
        return source  # type: ignore[return-value]
    home = type(source).__module__.partition(".")[0]
    if home in ("duckdb", "_duckdb") and hasattr(source, "cursor"):
        return _duckdb_table(source, "DuckDB", table)
    if table is not None:
        raise InputError(f"table names a table of a connection or a .duckdb file; got {table!r} for another table")
    if home in ("duckdb", "_duckdb", "pyspark", "narwhals", "ibis", "dask") or type(source).__name__ == "LazyFrame":
        return EngineTable(source, {"pyspark": "Spark table"}.get(home, "table"))
    return Frame(_dataset_rows(source) if home == "datasets" else source)


def _dataset_rows(dataset: Any) -> Any:
    """All rows of a dataset of Hugging Face, of one that streams too."""
    if not hasattr(dataset, "iter"):
        raise InputError(f"this dataset has the parts {', '.join(map(str, dataset))}: choose one of them")
    tables = list(dataset.with_format("arrow").iter(ROWS_AT_ONCE))
    if not tables:
        raise InputError("dataset: there are no rows")
    return pa.concat_tables(tables)


def is_paths(source: Any) -> bool:
    """Whether this is a path, or a list of paths."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(path, (str, os.PathLike)) for path in source)
    return isinstance(source, (str, os.PathLike))


def check_rows(what: str, announced: int | None, rows: int) -> None:
    """Refuse a table that did not deliver the rows that it announces."""
    if announced is not None and rows != announced:
        raise InputError(f"{what}: the table is damaged (it announces {announced:,} rows and delivers {rows:,})")


def kind_of(kind: Any) -> Kind:
    """What a column of an Arrow type holds."""
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


def find_files(*patterns: str, sheet: str | None = None, encoding: str | None = None) -> Files:
    """The files that paths or patterns mean, their headers looked at. Parameters as in ``open_table``."""
    what = patterns[0] if len(patterns) == 1 else f"{patterns[0]} and {len(patterns) - 1} more"
    paths = list[str]()
    for pattern in patterns:
        found = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
        if not found:
            raise InputError(f"{pattern}: there is no such file")
        paths += found
    real = [os.path.realpath(path) for path in paths]
    if twice := next((path for at, path in enumerate(paths) if real[at] in real[:at]), None):
        raise InputError(f"{twice}: the file is given twice")
    encoding = None if encoding is None else known_encoding(encoding)
    try:
        parquet = [path for path in paths if _is_parquet(path)]
        if parquet and len(parquet) != len(paths):
            raise InputError(f"{what}: some of the files are Parquet and some are not")
        excel = {path for path in paths if Path(path).suffix.lower() == ".xlsx"}
        for path in paths:
            if sheet is not None and path not in excel:
                raise InputError(f"{path}: ", Setting("sheet"), " is for Excel workbooks (.xlsx)")
            if encoding and (parquet or path in excel):
                raise InputError(f"{path}: ", Setting("encoding"), " is for text files")
        if parquet:
            return ParquetFiles(what, paths)
        opened = [open_sheet(path, sheet) if path in excel else open_text(path, encoding) for path in paths]
        return TextFiles(what, opened)
    except OSError as error:
        raise system_problem(str(error.filename or what), error, "read") from None


def listed_items(items: Iterable[Any] | str | os.PathLike[str]) -> Iterable[Any]:
    """The list as given, or that of a file: one name per line, or the column `item` of a table."""
    if not isinstance(items, (str, os.PathLike)):
        return items
    path = os.fspath(items)
    with a_file(path, "items"):
        if bare_suffix(path) not in _TABLES:
            return [name for _, line in lines_of(path, whole(path)) if (name := line.strip())]
        table = find_files(path)
        column = first_known(list(table.kinds), ITEM_NAMES)
        if column is None:
            listed = listed_names(list(table.kinds))
            raise InputError(f"{path}: a list of items needs the column item; the columns are {listed}")
        cells = [text_of(cell) for _, _, batch in table.batches([column]) for cell in batch.column(column).to_pylist()]
        return [name for name in cells if name]


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


def _is_parquet(path: str) -> bool:
    """Whether its ending or its first bytes say so."""
    if not Path(path).is_dir() and not Path(path).stat().st_size:
        raise InputError(f"{path}: the file is empty")
    with Path(path).open("rb") as file:
        return Path(path).suffix.lower() in (".parquet", ".pq") or file.read(4) == b"PAR1"


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
            raise InputError(f"{path}: its columns differ from the columns of {self.paths[0]}")


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
                # the footer itself: the Arrow schema in it lacks the texts that were added at the end
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
                    for batch in read_group(path, file, group, columns, batch_rows or ROWS_AT_ONCE):
                        yield number, start, batch
                        start += batch.num_rows
                        done += batch.num_rows
                        tell("reading", done, self.rows)

    def where(self, file: int, row: int) -> str:
        """The file and the row."""
        return f"{self.paths[file]}, {row_number(row)}"


class TextFiles(_Files):
    """CSV, JSON or Excel files; the cells of a CSV file come as dictionaries of texts, or as texts if ``plain``."""

    def __init__(self, what: str, files: Sequence[TextFile]) -> None:
        super().__init__(what, [file.path for file in files])
        self._files = files
        for file in files:
            self._same_columns(file.path, dict.fromkeys(file.names, "text"))
        check_names(files[0].names, files[0].path)

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

    def __init__(self, frame: Any, what: str = "frame") -> None:
        self.what = what
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
        rows = batch_rows or ROWS_AT_ONCE
        if self._relation is not None:
            yield from numbered(batch.select(list(columns)) for batch in self._relation(rows))
            return
        for file, start, batch in numbered(self._table.select(list(columns)).to_batches(rows)):
            validate(batch)
            yield file, start, batch

    def where(self, file: int, row: int) -> str:
        """The row, if rows have an order."""
        return self.what if self._relation is not None else f"{self.what}, {row_number(row)}"


def _kind(dtype: Any) -> Kind:
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype.is_nested():
        return "nested"
    return "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else "other"


def _loosely_compared(frame: Any, columns: Sequence[str]) -> list[str]:
    """The columns whose collation ignores capitals; no row is looked at.

    With such a collation equal ballots come together that are not the same, under the spelling of one of them, and a
    vote meets several listed items.
    """
    if frame.implementation.is_spark_like():
        return [name for name, kind in getattr(frame.to_native(), "dtypes", ()) if "collate" in kind]
    if not columns or not frame.implementation.is_duckdb():
        return []
    like_it = [nw.when(nw.lit(False)).then(nw.col(name).max()).otherwise(nw.lit("a")) for name in columns]
    told = [(text == nw.lit("A")).alias(name) for name, text in zip(columns, like_it, strict=True)]
    (found,) = frame.head(0).select(*told).collect("pyarrow").to_native().to_pylist()
    return [name for name, same in found.items() if same]


class EngineTable:
    """A table that stays on its engine, as a lazy frame of Narwhals."""

    rows: int | None = None
    declared_items: list[str] | None = None
    items_from_data = False

    def __init__(self, native: Any, what: str) -> None:
        self.what = what
        with in_a_sentence(what, *LIBRARIES):
            self.frame = nw.from_native(native).lazy()
            schema = self.frame.collect_schema()
            check_names(schema.names(), what)
            self.kinds: dict[str, Kind] = {name: _kind(dtype) for name, dtype in schema.items()}
            loose = _loosely_compared(self.frame, [name for name, kind in self.kinds.items() if kind == "text"])
        if loose:
            raise InputError(
                f"{what}: the collation of the column {loose[0]!r} takes different texts for the same one, so that one "
                "row could change how others are read; use a binary collation"
            )
        # DuckDB's types that Narwhals does not know, and that can be texts
        duck = zip(self.kinds, map(str, getattr(native, "types", ())), strict=False)
        self.kinds |= {name: "text" for name, kind in duck if kind in ("UUID", '"NULL"')}


Files = ParquetFiles | TextFiles
Held = Files | Frame
"""A table that this process reads, again and again, in batches in the order of its rows."""
Table = Held | EngineTable


def held(table: Table) -> Held:
    """A table that this process reads; of one that lives on an engine, its rows."""
    if not isinstance(table, EngineTable):
        return table
    native = table.frame.to_native()
    with in_a_sentence(table.what, *LIBRARIES):
        rows = native if table.frame.implementation.is_duckdb() else table.frame.collect("pyarrow").to_native()
        return Frame(rows, table.what)


def spread(table: Table) -> Table:
    """A table with one column of lists that is called as in ``LIST_NAMES`` as one in memory with a column per place.

    Any other table stays as it is.
    """
    lists = [name for name, kind in table.kinds.items() if kind == "nested" and name.strip().lower() in LIST_NAMES]
    if len(lists) != 1:
        return table
    rows = held(table)
    batches = [batch for _, _, batch in rows.batches(list(rows.kinds))]
    if not batches:
        raise InputError(f"{table.what}: there are no rows")
    return Frame(wide_lists(pa.Table.from_batches(batches), lists[0]), table.what)


def numbered(batches: Iterable[Any], file: int = 0, most: int | None = None) -> Generator[Batch, None, None]:
    """Batches of one file with the numbers of their first rows, cut into batches of at most ``most`` rows."""
    start = 0
    for batch in batches:
        size = most or max(1, batch.num_rows)
        for first in range(0, batch.num_rows, size):
            yield file, start + first, batch.slice(first, size)
        start += batch.num_rows


def _duckdb_file(path: str) -> Any:
    """A DuckDB file, opened for reading only."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        return duckdb.connect(path, read_only=True)
    except duckdb.Error as error:
        raise InputError(f"{path}: DuckDB cannot open it ({str(error).splitlines()[0]})") from None


def _duckdb_table(connection: Any, what: str, table: str | None) -> EngineTable:
    if table is None:
        raise InputError(f"{what}: ", Setting("table"), " must name the table that holds the rows")
    try:
        return EngineTable(connection.table(table), f"{what}, {table}")
    except duckdb.CatalogException:
        raise InputError(f"{what}: there is no table called {table!r}") from None
