"""Rank columns of Parquet files, from packed dictionary indices to rows of orders without a stop in between.

A reader that serves every table makes an array of each column, which is then read again to make rows of it. Here
the pages are decompressed, the runs of packed indices in them are listed, and the rows are filled from the runs
(see `page_kernels`). What most writers make of whole numbers and of text with few distinct values is read so: flat
columns, pages of version 1 and 2, dictionaries or plain numbers, no nulls. Everything else is left to Arrow, and so
is every complaint: a row that breaks a rule is read again by Arrow, whose way knows what to say. Small row groups are
Arrow's too, because they do not repay the import of the kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankdp.data.cells import Coded, Known
from rankdp.data.checks import LARGE, OK, IntArray, first_problem
from rankdp.data.parquet_chunks import CODECS, LeftToArrow, decompressed, footer

_MOST_BYTES = 1 << 26  # of the rank columns in a row group, which are held in memory
_MOST_NUMBER = 1 << 10
_BITS = {"INT32": 32, "INT64": 64}

Table = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Column:
    """A rank column's place among the file's columns, and how its values are stored."""

    number: int
    optional: bool
    bits: int
    """Of a number; 0 for text."""
    dtype: str
    """Of a number, as the table means it: one of 8 bits may be stored in 32."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What the footer says of a column in a row group: where it is, and how it is compressed."""

    start: int
    stored: int
    size: int
    codec: str | None


class GroupReader:
    """Reads the rank columns of one row group after the other."""

    def __init__(self, path: str, file: Any, ranks: Sequence[str]) -> None:
        self._path, self._rows = path, list[int]()
        if file.metadata.num_rows * len(ranks) < LARGE or sys.byteorder != "little":
            return
        try:
            self._columns = _recognised(file, ranks)
            rows, self._chunks = footer(path, len(file.schema))
            self._rows = rows if sum(rows) == file.metadata.num_rows else []
        except (LeftToArrow, OSError):
            return

    def read(self, number: int) -> Group | None:
        """The packed columns of a row group; None if it must be left to Arrow."""
        if number >= len(self._rows) or self._rows[number] * len(self._columns) < LARGE:
            return None
        rows, columns = self._rows[number], self._columns
        try:
            places = [_place(self._chunks[number, column.number].tolist(), rows) for column in columns]
            if sum(place.size for place in places) > _MOST_BYTES:
                return None
            with Path(self._path).open("rb", buffering=0) as file:
                chunks = [_Chunk(file, place, column) for place, column in zip(places, columns, strict=True)]
            return _group(chunks, rows)
        except (LeftToArrow, OSError):
            return None


def _place(facts: list[int], rows: int) -> _Place:
    codec, values, size, stored, data, dictionary = facts
    start = dictionary if 0 < dictionary < data else data
    if values != rows or codec not in CODECS or start < 0 or size < 0 or not 0 <= stored <= 2 * _MOST_BYTES:
        raise LeftToArrow
    return _Place(start, stored, size, CODECS[codec])


def _recognised(file: Any, ranks: Sequence[str]) -> list[_Column]:
    """The rank columns, if all of them are flat columns of text or of whole numbers."""
    import pyarrow as pa

    schema = file.schema
    places = {schema.column(number).path: number for number in range(len(schema))}
    columns = []
    for name in ranks:
        kind = file.schema_arrow.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        column = schema.column(places[name]) if name in places else None
        if column is None or column.max_repetition_level or column.max_definition_level > 1:
            raise LeftToArrow
        optional, physical = bool(column.max_definition_level), column.physical_type
        if physical in _BITS and pa.types.is_signed_integer(kind):
            columns.append(_Column(places[name], optional, _BITS[physical], str(kind)))
        elif physical == "BYTE_ARRAY" and str(kind) in ("string", "large_string"):
            columns.append(_Column(places[name], optional, 0, ""))
        else:
            raise LeftToArrow
    return columns


class _Chunk:
    """One column of a row group: the table of its data pages, their bodies, and what their dictionary says."""

    def __init__(self, file: BinaryIO, place: _Place, column: _Column) -> None:
        from rankdp.data import page_kernels as kernels

        self.column, self._codec = column, place.codec
        file.seek(place.start)
        self._data = memoryview(file.read(place.stored))
        if len(self._data) != place.stored:
            raise LeftToArrow
        table = np.empty((len(self._data) // 8 + 1, 8), np.int64)  # no header is shorter
        count = kernels.pages_of(np.frombuffer(self._data, np.uint8), column.optional, table)
        if count < 1 or table[:count, kernels.SIZE].sum() > place.size:
            raise LeftToArrow
        pages = table[:count].tolist()
        self.names: list[Any] | None = None
        if pages[0][kernels.KIND] == kernels.DICTIONARY:
            self.names = _dictionary(self._body(pages[0]), pages[0], column)
        pages = pages[self.names is not None :]
        expected = (kernels.PLAIN,) if self.names is None else (kernels.PLAIN_DICTIONARY, kernels.RLE_DICTIONARY)
        if any(page[kernels.KIND] == kernels.DICTIONARY or page[kernels.ENCODING] not in expected for page in pages):
            raise LeftToArrow
        if self.names is None and not column.bits:
            raise LeftToArrow
        self.bodies = [self._body(page) for page in pages]
        self.pages: Table = table[count - len(pages) : count].copy()

    def _body(self, page: list[int]) -> bytes:
        """A page as it was before it was compressed. (What stands before the values in version 2 never is.)"""
        _, start, stored, size, _, _, levels, packed = page
        if self._codec is None or not packed:
            if stored != size:
                raise LeftToArrow
            return bytes(self._data[start : start + stored])
        if levels <= 0:
            return decompressed(self._data[start : start + stored], size, self._codec)
        rest = decompressed(self._data[start + levels : start + stored], size - levels, self._codec)
        return bytes(self._data[start : start + levels]) + rest


def _dictionary(body: bytes, page: list[int], column: _Column) -> list[Any]:
    """What the codes stand for: texts (bytes, all of them, if one is no text), numbers written as texts."""
    from rankdp.data import page_kernels as kernels

    count = page[kernels.VALUES]
    if page[kernels.ENCODING] not in (kernels.PLAIN, kernels.PLAIN_DICTIONARY):
        raise LeftToArrow
    if column.bits:
        if len(body) * 8 != count * column.bits:
            raise LeftToArrow
        return list(map(str, np.frombuffer(body, f"<i{column.bits // 8}").astype(column.dtype).tolist()))
    cells, at = [], 0
    while at < len(body):
        end = at + 4 + int.from_bytes(body[at : at + 4], "little")
        cells.append(body[at + 4 : end])
        at = end
    if at != len(body) or len(cells) != count:
        raise LeftToArrow
    try:
        return [cell.decode() for cell in cells]
    except UnicodeDecodeError:
        return cells


def _group(chunks: Sequence[_Chunk], rows: int) -> Group:
    """The chunks with their bytes put together, all runs listed, and `rows` of them in each."""
    from rankdp.data import page_kernels as kernels

    bodies = [body for chunk in chunks for body in chunk.bodies]
    size = sum(map(len, bodies))
    # whole words and one more, which the kernels may look at
    data = np.frombuffer(b"".join([*bodies, bytes(16 - size % 8)]), np.uint8)
    runs, values, start = [], [], 0
    for chunk in chunks:
        sizes, column = chunk.pages[:, kernels.SIZE], chunk.column
        chunk.pages[:, kernels.BODY] = start + np.cumsum(sizes) - sizes
        start += int(sizes.sum())
        # no writer begins another run within eight values, but at the end of a page
        table = np.empty((rows // 8 + 2 * len(sizes) + 2, 3), np.int64)
        count = kernels.runs_of(data, chunk.pages, column.optional, column.bits, table)
        if count < 1 or table[count - 1, kernels.FIRST] != rows:
            raise LeftToArrow
        runs.append(table[:count].copy())
        values.append(_plain_values(data, runs[-1], column) if chunk.names is None else chunk.names)
    starts = np.cumsum([0, *map(len, runs)])
    return Group(0, rows, data.view(np.uint64), np.concatenate(runs), starts, values)


def _plain_values(data: NDArray[np.uint8], runs: Table, column: _Column) -> list[str]:
    """The numbers up to the largest in a plain column, which are their own codes as long as they are small."""
    largest = -1
    for (first, place, _), (end, _, _) in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
        if end > first:
            numbers = np.frombuffer(data, f"<i{column.bits // 8}", end - first, place // 8)
            if numbers.min() < 0:
                raise LeftToArrow
            largest = max(largest, int(numbers.max()))
    if largest > min(_MOST_NUMBER, np.iinfo(column.dtype).max):
        raise LeftToArrow
    return list(map(str, range(largest + 1)))


@dataclass(frozen=True, slots=True)
class Group:
    """The packed rank columns of a row group or of some of its rows: where the runs are and what values stand for."""

    first: int
    rows: int
    _words: NDArray[np.uint64]
    _runs: Table
    _starts: Table
    _values: list[list[Any]]

    def part(self, first: int, most: int) -> Group:
        """At most so many of the rows."""
        return replace(self, first=self.first + first, rows=min(most, self.rows - first))

    def coded(self, known: Known) -> list[Coded]:
        """The columns as codes and values; the codes are left out where every value is a known item."""
        if all(isinstance(value, str) and value in known for values in self._values for value in values):
            return [Coded(np.empty(0, np.int32), values, 0) for values in self._values]
        codes, _ = self._filled([np.arange(len(values) + 1, dtype=np.int32) for values in self._values])
        return [Coded(codes[:, column], values, 0) for column, values in enumerate(self._values)]

    def orders(self, tables: Sequence[IntArray], items: int) -> IntArray | None:
        """The rows, each value looked up in its column's table; None if a row breaks a rule."""
        orders, complete = self._filled([np.append(table, np.int32(-2)) for table in tables])
        fine = (complete and orders.shape[1] <= items) or first_problem(orders, items)[0] == OK
        return orders if fine else None

    def _filled(self, tables: Sequence[IntArray]) -> tuple[IntArray, bool]:
        from rankdp.data import page_kernels as kernels

        orders = np.empty((self.rows, len(tables)), np.int32)
        ends, meaning = np.cumsum([0, *map(len, tables)]), np.concatenate(tables)
        return orders, kernels.rows_of(self._words, self._runs, self._starts, meaning, ends, self.first, orders)
