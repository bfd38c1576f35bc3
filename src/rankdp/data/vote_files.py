"""Where votes lie: Parquet files, CSV files and frames as streams of Arrow batches.

Input is untrusted. Memory is taken by batches, never by what a file announces, and the rows that arrive are compared
with the rows announced. What a library raises becomes one sentence.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankdp.data.atomic import fingerprint
from rankdp.data.columns import check_names
from rankdp.data.formats.csv import text_header
from rankdp.data.formats.parquet import open_checked, read_group
from rankdp.data.frames import declared_items
from rankdp.data.tables import Kind, arrow_table, in_a_sentence, row_number
from rankdp.errors import InputError, system_problem
from rankdp.progress import tell

BATCH_ROWS = 1 << 19  # large enough for threads to meet rarely at the lock of the interpreter

Batch = tuple[int, int, Any]
"""(which file, the number of its first row in that file, an Arrow record batch)"""


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
    return "text" if kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null()) else "other"


def find_files(pattern: str) -> ParquetFiles | TextFiles:
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


def _is_parquet(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4) == b"PAR1"


def _hashed(paths: Sequence[str]) -> list[bytes]:
    """SHA-256 of each file's bytes."""
    return [bytes.fromhex(fingerprint(path)["sha256"]) for path in paths]


class ParquetFiles:
    """Parquet files, one after the other; threads take turns at row groups."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        self.what, self.paths, self.rows = what, paths, 0
        self.declared_items: list[str] | None = None
        self.kinds: dict[str, Kind] = {}
        self._groups: list[tuple[int, int, int]] = []
        for number, path in enumerate(paths):
            with open_checked(path) as file:
                kinds = {field.name: kind_of(field.type) for field in file.schema_arrow}
                if number and kinds != self.kinds:
                    raise InputError(f"{path}: its columns are not those of {paths[0]}")
                self.kinds, start = kinds, 0
                self.declared_items = declared_items(file.metadata) if len(paths) == 1 else None
                for group in range(file.num_row_groups):
                    self._groups.append((number, group, start))
                    start += file.metadata.row_group(group).num_rows
                self.rows += start

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """Every so-many-th row group to each thread."""
        threads = max(1, min(threads, len(self._groups)))
        self._done = 0
        return [self._stream(columns, self._groups[first::threads], threads == 1) for first in range(threads)]

    def _stream(self, columns: Sequence[str], groups: Sequence[tuple[int, int, int]], alone: bool) -> Iterator[Batch]:
        coded = [name for name in columns if self.kinds[name] == "text"]
        opened, file = -1, None
        for number, group, start in groups:
            if number != opened:
                opened, file = number, open_checked(self.paths[number], coded)
            for batch in read_group(self.paths[number], file, group, columns, BATCH_ROWS, use_threads=alone):
                yield number, start, batch
                start += batch.num_rows
                self._done += batch.num_rows
                tell("counting", self._done, self.rows)

    def digests(self) -> list[bytes]:
        """A hash of each file."""
        return _hashed(self.paths)

    def where(self, file: int, row: int) -> str:
        """The file and the row."""
        return f"{self.paths[file]}, {row_number(row)}"


class TextFiles:
    """CSV or JSON Lines files with the same columns; every cell of a CSV file comes as a dictionary of texts."""

    rows: int | None = None
    declared_items: list[str] | None = None

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        self.what, self.paths = what, paths
        self._headers = [text_header(path) for path in paths]
        self.kinds: dict[str, Kind] = self._headers[0].kinds
        for header in self._headers:
            if header.kinds != self.kinds:
                raise InputError(f"{header.path}: its columns are not those of {paths[0]}")
        check_names(self._headers[0].names, paths[0])

    @property
    def plain(self) -> bool:
        """Whether any program reads these as CSV files with one header line."""
        return all(header.heads == 1 for header in self._headers)

    @property
    def separator(self) -> str:
        """What stands between the fields."""
        return self._headers[0].separator

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """One stream: Arrow's reader looks ahead by itself."""
        return [self._stream(columns)]

    def _stream(self, columns: Sequence[str]) -> Iterator[Batch]:
        for number, header in enumerate(self._headers):
            yield from _numbered(header.open(columns, ()).batches(max(1 << 22, header.size * 64)), number)

    def digests(self) -> list[bytes]:
        """A hash of each file."""
        return _hashed(self.paths)

    def where(self, file: int, row: int) -> str:
        """The file and the line."""
        return self._headers[file].open((), ()).line(row)


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
        self.kinds: dict[str, Kind] = {field.name: kind_of(field.type) for field in schema}

    def whole(self) -> Any:
        """All rows, as an Arrow table."""
        return self._table if self._relation is None else self._relation(BATCH_ROWS).read_all()

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """Every so-many-th batch to each thread."""
        if self._relation is not None:
            return [_numbered(batch.select(list(columns)) for batch in self._relation(BATCH_ROWS))]
        table = self._table.select(list(columns))
        table.validate(full=True)
        batches = list(_numbered(iter(table.to_batches(BATCH_ROWS))))
        threads = max(1, min(threads, len(batches)))
        return [iter(batches[first::threads]) for first in range(threads)]

    def digests(self) -> list[bytes]:
        """A hash of all rows."""
        text = hashlib.sha256()
        for row in self.whole().to_pylist():
            text.update(repr(sorted(row.items())).encode())
        return [text.digest()]

    def where(self, file: int, row: int) -> str:
        """The row, if rows have an order."""
        return self.what if self._relation is not None else f"{self.what}, {row_number(row)}"


Table = ParquetFiles | TextFiles | Frame
"""Votes that can be read again and again: in `streams` of batches, one for each thread, in the order of rows."""


def _numbered(batches: Iterator[Any], file: int = 0) -> Iterator[Batch]:
    start = 0
    for batch in batches:
        yield file, start, batch
        start += batch.num_rows
