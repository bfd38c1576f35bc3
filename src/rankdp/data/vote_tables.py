"""Where votes lie, for counting in process: Parquet files, CSV files and Arrow frames as streams of record batches."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rankdp.data.comparisons import Kind
from rankdp.data.formats.csv import CsvText, read_header
from rankdp.data.tables import row_number
from rankdp.errors import InputError, system_problem

if TYPE_CHECKING:
    from rankdp.data.vote_pages import PageFile

PAGED_ROWS = 1 << 18  # fewer are not worth the compiling of what reads pages
BATCH_ROWS = 1 << 19  # large enough for threads to meet rarely at the lock of the interpreter

Batch = tuple[int, int, Any]
"""(which file, the number of its first row in that file, an Arrow record batch that lasts until the next one)"""


class Table(Protocol):
    """Votes that can be read again and again, batch by batch."""

    @property
    def what(self) -> str:
        """The table, in words."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Every column and what it holds."""

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """The batches, dealt out to at most so many threads; each stream in the order of rows."""

    def where(self, file: int, row: int) -> str:
        """Where a row stands, in words."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, if that is known beforehand."""


def kind_of(kind: Any) -> Kind:
    """What a column of an Arrow type holds."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return "number"
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.null())
    return "text" if kind in texts else "other"


def find_files(pattern: str) -> ParquetFiles | CsvFiles:
    """The files that a path or pattern means, their headers looked at."""
    paths = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not paths:
        raise InputError(f"{pattern}: there is no such file")
    parquet = [path for path in paths if _is_parquet(path)]
    if parquet and len(parquet) != len(paths):
        raise InputError(f"{pattern}: some of the files are Parquet and some are not")
    return ParquetFiles(pattern, paths) if parquet else CsvFiles(pattern, paths)


def _is_parquet(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise system_problem(path, error, "read") from None


class ParquetFiles:
    """Parquet files, one after the other; threads take turns at row groups."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.what, self.paths = what, paths
        self._groups: list[tuple[int, int, int]] = []
        self.kinds: dict[str, Kind] = {}
        self._texts: set[str] = set()
        self._rows = 0
        for number, path in enumerate(paths):
            try:
                file = pq.ParquetFile(path)
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise InputError(f"{path}: this is not a whole Parquet file (damaged or cut short?)") from None
            kinds = {field.name: kind_of(field.type) for field in file.schema_arrow}
            if number and kinds != self.kinds:
                raise InputError(f"{path}: its columns are not those of {paths[0]}")
            self.kinds = kinds
            self._texts = {name for name, kind in kinds.items() if kind == "text"}
            start = 0
            for group in range(file.num_row_groups):
                self._groups.append((number, group, start))
                start += file.metadata.row_group(group).num_rows
            self._rows += start
            file.close()

    @property
    def rows(self) -> int | None:
        """How many rows the files' footers announce."""
        return self._rows

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """Every so-many-th row group to each thread."""
        threads = max(1, min(threads, len(self._groups)))
        return [self._stream(columns, self._groups[first::threads], threads > 1) for first in range(threads)]

    def _stream(self, columns: Sequence[str], groups: Sequence[tuple[int, int, int]], alone: bool) -> Iterator[Batch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        coded = [name for name in columns if name in self._texts]
        opened = -1
        file: Any = None
        for number, group, start in groups:
            path = self.paths[number]
            try:
                if number != opened:
                    opened, file = number, pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False)
                    pages = None if self._rows < PAGED_ROWS else _pages(path, file)
                paged = iter(()) if pages is None else pages.batches(group, columns, BATCH_ROWS)
                for row, batch in _batches(file, group, columns, paged, not alone):
                    yield number, start + row, batch
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{path}: the file is damaged ({str(error).splitlines()[0]})") from None

    def where(self, file: int, row: int) -> str:
        """The file and the row."""
        return f"{self.paths[file]}, row {row + 1}"


def _pages(path: str, file: Any) -> PageFile:
    from rankdp.data.vote_pages import PageFile

    return PageFile(path, file)


def _batches(
    file: Any, group: int, columns: Sequence[str], paged: Iterator[Any], use_threads: bool
) -> Iterator[tuple[int, Any]]:
    """First rows and batches of a row group: from its pages as far as these are understood, the rest from Arrow."""
    done, start = 0, 0
    for batch in paged:
        yield done, batch
        done += batch.num_rows
    if done == file.metadata.row_group(group).num_rows:
        return
    for batch in file.iter_batches(BATCH_ROWS, [group], list(columns), use_threads=use_threads):
        batch.validate(full=True)  # Arrow believes a damaged file's codes and texts
        known = min(max(done - start, 0), batch.num_rows)
        yield start + known, batch.slice(known)
        start += batch.num_rows


class CsvFiles:
    """CSV files with the same columns; every cell that is read comes as a dictionary of texts."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        self.what, self.paths = what, paths
        self._headers: list[tuple[list[str], str, int]] = []
        for path in paths:
            try:
                self._headers.append(read_header(path))
            except OSError as error:
                raise system_problem(path, error, "read") from None
        names = self._headers[0][0]
        for path, (other, _, _) in zip(paths, self._headers, strict=True):
            if sorted(other) != sorted(names):
                raise InputError(f"{path}: its columns are not those of {paths[0]}")
        self.kinds: dict[str, Kind] = dict.fromkeys(names, "text")
        if len(self.kinds) != len(names):
            twin = next(name for at, name in enumerate(names) if name in names[:at])
            raise InputError(f"{paths[0]}: two columns are called {twin!r}")

    rows: int | None = None

    @property
    def separator(self) -> str:
        """What stands between the fields."""
        return self._headers[0][1]

    def _text(self, file: int, columns: Sequence[str]) -> CsvText:
        names, separator, _ = self._headers[file]
        return CsvText(self.paths[file], names, separator, columns)

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """One stream: Arrow's reader looks ahead by itself."""
        return [self._stream(columns)]

    def _stream(self, columns: Sequence[str]) -> Iterator[Batch]:
        for number in range(len(self.paths)):
            start = 0
            for batch in self._text(number, columns).batches(max(1 << 22, self._headers[number][2] * 64)):
                yield number, start, batch
                start += batch.num_rows

    def where(self, file: int, row: int) -> str:
        """The file and the line."""
        return self._text(file, ()).line(row)


class Frame:
    """A table in memory, or a DuckDB relation that is run anew for every reading."""

    def __init__(self, frame: Any) -> None:
        import pyarrow as pa

        self.what = "frame"
        self._relation = frame if hasattr(frame, "to_arrow_reader") or hasattr(frame, "fetch_arrow_reader") else None
        if self._relation is not None:
            reader = self._reader(1)
            self.kinds: dict[str, Kind] = {field.name: kind_of(field.type) for field in reader.schema}
            reader.close()
            return
        if not isinstance(frame, pa.Table):
            if not hasattr(frame, "__arrow_c_stream__"):
                kinds = "pandas, Polars, DuckDB, PyArrow"
                raise InputError(f"frame must be an Arrow-compatible table ({kinds}), got {type(frame).__name__}")
            try:
                frame = pa.table(frame)
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise InputError(f"frame: Arrow cannot hold it ({str(error).splitlines()[0]})") from None
        self._table = frame
        names = frame.column_names
        if twin := next((name for at, name in enumerate(names) if name in names[:at]), None):
            raise InputError(f"frame: two columns are called {twin!r}")
        self.kinds = {field.name: kind_of(field.type) for field in frame.schema}

    def whole(self) -> Any:
        """All rows, as an Arrow table."""
        return self._table if self._relation is None else self._reader(BATCH_ROWS).read_all()

    def _reader(self, rows: int) -> Any:
        relation: Any = self._relation
        ask = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
        return ask(rows)

    @property
    def rows(self) -> int | None:
        """The rows of a table in memory."""
        return None if self._relation is not None else len(self._table)

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """Every so-many-th batch to each thread."""
        if self._relation is not None:
            return [_numbered(batch.select(list(columns)) for batch in self._reader(BATCH_ROWS))]
        batches = list(_numbered(iter(self._table.select(list(columns)).to_batches(BATCH_ROWS))))
        threads = max(1, min(threads, len(batches)))
        return [iter(batches[first::threads]) for first in range(threads)]

    def where(self, file: int, row: int) -> str:
        """The row, if rows have an order."""
        return self.what if self._relation is not None else f"{self.what}, {row_number(row)}"


def _numbered(batches: Iterator[Any]) -> Iterator[Batch]:
    start = 0
    for batch in batches:
        yield 0, start, batch
        start += batch.num_rows
