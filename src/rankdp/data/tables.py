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
from pathlib import Path
from typing import Any

from rankdp.data.adapters import LIST_NAMES, wide_lists
from rankdp.data.cells import FOUND_KEY, Batch, Kind, arrow_table, declared_items, in_a_sentence, row_number, text_of
from rankdp.data.columns import ITEM_NAMES, check_names, first_known, listed_names
from rankdp.data.formats.csv import read_header
from rankdp.data.formats.excel import open_sheet
from rankdp.data.formats.jsonlines import read_keys
from rankdp.data.formats.parquet import ROWS_AT_ONCE, kind_of, open_parquet, validate
from rankdp.data.formats.texts import TableFile, bare_suffix, broken, known_encoding, lines_of, opened, whole
from rankdp.errors import InputError, Setting, system_problem
from rankdp.lazy import LazyModule

nw: Any = LazyModule("narwhals")
pa: Any = LazyModule("pyarrow")
duckdb: Any = LazyModule("duckdb")

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
    if isinstance(source, (Files, Frame, EngineTable)) and table is None:
        return source
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
        return Files(what, [_opened(path, sheet, encoding) for path in paths])
    except OSError as error:
        raise system_problem(str(error.filename or what), error, "read") from None


def _opened(path: str, sheet: str | None, encoding: str | None) -> TableFile:
    """A file, its columns looked at."""
    excel, parquet = Path(path).suffix.lower() == ".xlsx", _is_parquet(path)
    if sheet is not None and not excel:
        raise InputError(f"{path}: ", Setting("sheet"), " is for Excel workbooks (.xlsx)")
    if encoding and (parquet or excel):
        raise InputError(f"{path}: ", Setting("encoding"), " is for text files")
    if parquet or excel:
        return open_parquet(path) if parquet else open_sheet(path, sheet)
    try:
        return (read_keys if _holds_json(path, encoding) else read_header)(path, encoding)
    except OSError as error:
        raise broken(path, error) from None


def _holds_json(path: str, encoding: str | None) -> bool:
    """Whether a file is JSON, by its ending or, where that does not say, by its first character."""
    if bare_suffix(path) in (".csv", ".tsv", ".txt"):
        return False
    if bare_suffix(path) in (".jsonl", ".ndjson", ".json"):
        return True
    with opened(path, encoding=encoding) as file:
        return file.read(64).lstrip()[:1] in (b"{", b"[")


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


class Files:
    """Files with the same columns, one after the other."""

    def __init__(self, what: str, files: Sequence[TableFile]) -> None:
        self.what, self.paths, self._files = what, [file.path for file in files], files
        self.kinds = files[0].kinds
        for file in files:
            check_names(file.names, file.path)
            if file.kinds != self.kinds:
                raise InputError(f"{file.path}: its columns differ from the columns of {self.paths[0]}")
        footers = [file.footer for file in files]
        self.rows = None if None in footers else sum(footer.num_rows for footer in footers)
        alone = footers[0] if len(files) == 1 else None
        self.declared_items = None if alone is None else declared_items(alone)
        self.items_from_data = alone is not None and FOUND_KEY in (alone.metadata or {})
        """Whether the list that the table carries was found in its rows."""

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Batch, None, None]:
        """File by file; cells of text come as dictionaries if the format can, or as texts if ``plain``."""
        for number, file in enumerate(self._files):
            yield from numbered(file.batches(columns, plain, batch_rows), number, batch_rows)

    def where(self, file: int, row: int) -> str:
        """The file and the line."""
        return self._files[file].where(row)


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
        tables = [name for (name,) in connection.cursor().execute("SHOW TABLES").fetchall()]
        listed = f", one of {listed_names(tables)}" if tables else ""
        raise InputError(f"{what}: ", Setting("table"), f" must name the table that holds the rows{listed}")
    try:
        return EngineTable(connection.table(table), f"{what}, {table}")
    except duckdb.CatalogException:
        raise InputError(f"{what}: there is no table called {table!r}") from None
