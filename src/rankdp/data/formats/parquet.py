"""Parquet, by PyArrow: rank columns are read and written as dictionaries, so that no text is made per cell.

Input is untrusted. A row group is read by itself and must deliver as many rows as the footer announces, so that no
column can slip against another. Memory is taken by batches, never by what the footer claims.
Arrow hands on codes and texts as they are in the file, so every batch is validated before it is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankdp.data.cells import Kind, first_line, items_metadata, row_number
from rankdp.data.formats.texts import TableFile
from rankdp.errors import InputError
from rankdp.lazy import LazyModule
from rankdp.progress import tell

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")
pq: Any = LazyModule("pyarrow.parquet")

ROWS_AT_ONCE = 1 << 19


def open_parquet(path: str) -> ParquetFile:
    """A file, its columns looked at."""
    with open_checked(path) as file:
        return ParquetFile(path, file.schema_arrow.names, file.schema_arrow, file.metadata)


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file: columns of texts come as dictionaries, unless they are plain."""

    schema: Any
    facts: Any
    """The footer itself, since the Arrow schema in it lacks the texts that were added at the end."""

    @property
    def footer(self) -> Any:
        """The number of rows, and metadata."""
        return self.facts

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the columns hold."""
        return {field.name: kind_of(field.type) for field in self.schema}

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Any, None, None]:
        """Row group by row group."""
        kinds, done = self.kinds, 0
        with open_checked(self.path, [name for name in columns if kinds[name] == "text" and name not in plain]) as file:
            for group in range(file.num_row_groups):
                for batch in _read_group(self.path, file, group, columns, batch_rows or ROWS_AT_ONCE):
                    yield batch
                    done += batch.num_rows
                    tell("reading", done, self.facts.num_rows)

    def where(self, row: int) -> str:
        """The file and the row."""
        return f"{self.path}, {row_number(row)}"


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


def open_checked(path: str, coded: Sequence[str] = ()) -> Any:
    """A `pyarrow.parquet.ParquetFile` whose footer can be read; flat columns in `coded` are read as dictionaries."""
    try:
        file = pq.ParquetFile(path, read_dictionary=list(coded), pre_buffer=False)
        metadata, _ = file.metadata, file.schema_arrow.names
        groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise InputError(f"{path}: this is not a whole Parquet file (damaged or cut short?)") from None
    if min(groups, default=0) < 0 or sum(groups) != metadata.num_rows:
        raise _damaged(path, f"it announces {metadata.num_rows} rows, and {sum(groups)} in its row groups")
    return file


def _damaged(path: str, how: str) -> InputError:
    return InputError(f"{path}: the file is damaged ({how})")


def _read_group(path: str, file: Any, group: int, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
    """The record batches of one row group, each validated; refused when it does not hold the rows that it announces."""
    announced, rows = file.metadata.row_group(group).num_rows, 0
    try:
        stream = file.iter_batches(batch_rows, [group], list(columns), use_threads=True)
        batch = next(stream, None)
        _check_values(path, file, group, columns)
        while batch is not None:
            validate(batch)
            rows += batch.num_rows
            yield batch
            batch = next(stream, None)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(path, first_line(error)) from None
    if rows != announced:
        raise _damaged(path, f"row group {group + 1} announces {announced} rows and holds {rows}")


def validate(batch: Any) -> None:
    """What `batch.validate(full=True)` does, in a quarter of the time for dictionary codes."""
    batch.validate()
    for column in batch.columns:
        if not pa.types.is_dictionary(column.type):
            column.validate(full=True)
            continue
        column.dictionary.validate(full=True)
        codes = pc.min_max(column.indices)
        if codes["min"].is_valid and not 0 <= codes["min"].as_py() <= codes["max"].as_py() < len(column.dictionary):
            raise pa.ArrowIndexError("a cell points outside its column's dictionary")


def _check_values(path: str, file: Any, group: int, columns: Sequence[str]) -> None:
    """Refuse a row group whose columns announce another number of values than it has rows.

    Only once a reader of these columns was made, which refuses what is wrong with them: PyArrow's facts about a column
    that cannot be read end the process.
    """
    facts = file.metadata.row_group(group)
    for number in range(len(file.schema)):
        name = file.schema.column(number).path
        if name in columns and (values := facts.column(number).num_values) != facts.num_rows:
            raise _damaged(
                path, f"row group {group + 1} announces {facts.num_rows} rows and {values} values of {name!r}"
            )


class ParquetSink:
    """Writes Arrow batches, gathered into row groups of about half a million rows."""

    def __init__(self, temporary: str) -> None:
        self._temporary = temporary
        self._writer: Any = None
        self._pending: list[Any] = []
        self._rows = 0

    def write(self, batch: Any) -> None:
        """Append one batch."""
        self._pending.append(batch)
        self._rows += batch.num_rows
        if self._rows >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        schema = self._pending[0].schema
        if self._writer is None:
            # statistics would take as long as everything else; differences of ids take half the time of the ids
            whole = {field.name: "DELTA_BINARY_PACKED" for field in schema if pa.types.is_integer(field.type)}
            coded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
            self._writer = pq.ParquetWriter(
                self._temporary, schema, use_dictionary=coded, column_encoding=whole, write_statistics=False
            )
        self._writer.write_table(pa.Table.from_batches(self._pending, schema), ROWS_AT_ONCE)
        self._pending, self._rows = [], 0

    def finish(self, items: Sequence[str], from_data: bool) -> None:
        """Add the list of items, which may have grown since the first batch, and close the file."""
        if self._pending:
            self._flush()
        metadata = items_metadata(items, from_data)
        self._writer.add_key_value_metadata({key.decode(): text.decode() for key, text in metadata.items()})
        self._writer.close()

    def abandon(self) -> None:
        """Let go of the file."""
        if self._writer is not None:
            self._writer.close()
