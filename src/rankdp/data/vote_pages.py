"""Row groups of dictionary-coded Parquet columns as Arrow dictionaries, decoded here.

In a table of votes the same few texts or numbers come again and again, and writers store such a column as a
dictionary and bit-packed codes. A reader that serves every table makes values of the codes; for counting the codes
themselves are enough, and unpacking them takes half a nanosecond each. What is relied on of the format (Apache Parquet,
`parquet.thrift` and `Encodings.md`): a chunk is a PLAIN dictionary page and data pages (version 1 or 2,
RLE_DICTIONARY), each with definition levels, if the column may be null, and codes.

Anything else is left to Arrow: other encodings and types, nulls, and damage, which Arrow then describes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data import page_kernels, vote_page_kernels
from rankdp.data.page_kernels import (
    DICTIONARY,
    ENCODING,
    KIND,
    LEVELS,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    SIZE,
    VALUES,
)
from rankdp.data.parquet_chunks import CODECS, LeftToArrow, decompressed, footer
from rankdp.data.vote_page_kernels import CODE, MISSING

_MOST_BYTES = 1 << 26  # of a page, and of a column in a row group, which is held in memory
_MOST_PAGES = 1 << 14
_KINDS = {"INT32": ("int32",), "INT64": ("int64",), "BYTE_ARRAY": ("string", "large_string")}


class PageFile:
    """A Parquet file that Arrow has opened, and a second way into it."""

    def __init__(self, path: str, opened: Any) -> None:
        self._path, self._opened = path, opened
        schema = opened.schema
        self._places = {schema.column(place).path: place for place in range(len(schema))}
        self._columns: dict[str, _Column] = {}
        self._chunks = np.empty((0, 0, 0), np.int64)
        with suppress(LeftToArrow, OSError):
            _, self._chunks = footer(path, len(schema))

    def batches(self, group: int, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of so many rows from the start of a row group, ending early at what is not understood.

        A batch lasts until the next one is asked for: it lies in memory that is used again.
        """
        import pyarrow as pa

        total = self._opened.metadata.row_group(group).num_rows
        try:
            columns = [self._open(group, name, total) for name in names]
            for start in range(0, total, rows):
                size = min(rows, total - start)
                yield pa.RecordBatch.from_arrays([column.take(size) for column in columns], names=list(names))
        except (LeftToArrow, OSError, pa.ArrowException):
            return

    def _open(self, group: int, name: str, rows: int) -> _Column:
        import pyarrow as pa

        place = self._places.get(name)
        if place is None or group >= len(self._chunks):
            raise LeftToArrow
        facts = self._opened.schema.column(place)
        kind = self._opened.schema_arrow.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        flat = facts.max_repetition_level == 0 and facts.max_definition_level <= 1
        if not flat or str(kind) not in _KINDS.get(facts.physical_type, ()) or sys.byteorder != "little":
            raise LeftToArrow
        if name not in self._columns:
            self._columns[name] = _Column(facts)
        self._columns[name].open(self._path, self._chunks[group, place].tolist(), rows)
        return self._columns[name]


class _Column:
    """A column of one row group after the other: its dictionary, and its codes page by page."""

    def __init__(self, facts: Any) -> None:
        self._optional, self._physical = facts.max_definition_level == 1, facts.physical_type
        self._data, self._codes = np.empty(0, np.uint8), np.empty(0, np.int32)
        self._pages = np.empty((_MOST_PAGES, 8), np.int64)
        self._words = np.empty(0, np.uint64)
        self._page = self._data
        self._state = np.zeros(CODE + 1, np.int64)

    def open(self, path: str, chunk: list[int], rows: int) -> None:
        """Read the column of a row group, about which the footer says `chunk`."""
        codec, _, _, size, _, start = chunk
        if codec not in CODECS or start <= 0 or not 0 < size <= _MOST_BYTES:
            raise LeftToArrow
        self._codec = CODECS[codec]
        self._data = _room(self._data, size)
        _read(path, start, self._data[:size])
        pages = self._pages[: max(0, page_kernels.pages_of(self._data[:size], self._optional, self._pages))]
        if not _are_coded(pages, rows):
            raise LeftToArrow
        self._words = _room(self._words, int(pages[:, SIZE].max()) // 8 + 2)
        first, *later = pages.tolist()
        self._load(first)
        self._values = _dictionary(self._page, first[VALUES], self._physical)
        self._values.validate(full=True)
        self._later = iter(later)
        self._state[:] = 0

    def take(self, rows: int) -> Any:
        """The next rows as a dictionary."""
        import pyarrow as pa

        self._codes = _room(self._codes, rows)
        codes, done = self._codes[:rows], 0
        while done < rows:
            if not self._state[MISSING]:
                self._open_next()
            part = codes[done : done + int(self._state[MISSING])]
            if not vote_page_kernels.decode(self._page, self._words, self._state, len(self._values), part):
                raise LeftToArrow
            done += len(part)
        return pa.DictionaryArray.from_arrays(pa.array(codes), self._values, safe=False)

    def _open_next(self) -> None:
        page = next(self._later)
        self._load(page)
        if not vote_page_kernels.open_page(self._page, page[VALUES], page[LEVELS], self._state):
            raise LeftToArrow

    def _load(self, page: list[int]) -> None:
        """Put the body of a page, decompressed, into `_page`, which lies in `_words`."""
        _, start, stored, size, _, _, levels, packed = page
        body = self._data[start : start + stored]
        self._page = self._words.view(np.uint8)[:size]
        if self._codec is None or not packed:
            if stored != size:
                raise LeftToArrow
            self._page[:] = body
            return
        levels = max(levels, 0)
        self._page[:levels] = body[:levels]
        if levels < size:
            rest = decompressed(body[levels:].data, size - levels, self._codec)
            self._page[levels:] = np.frombuffer(rest, np.uint8)


def _read(path: str, start: int, out: NDArray[np.uint8]) -> None:
    """Fill an array with bytes of a file."""
    with Path(path).open("rb", buffering=0) as file:
        file.seek(start)
        if file.readinto(out.data) != len(out):
            raise LeftToArrow


def _are_coded(pages: NDArray[np.int64], rows: int) -> bool:
    """Whether the pages are a dictionary and then codes for so many rows."""
    if len(pages) < 2 or pages[:, SIZE].max() > _MOST_BYTES or pages[1:, VALUES].sum() != rows:
        return False
    coded = np.isin(pages[1:, ENCODING], (PLAIN_DICTIONARY, RLE_DICTIONARY)).all()
    listed = (pages[:, KIND] == DICTIONARY).tolist() == [True] + [False] * (len(pages) - 1)
    return bool(coded) and listed and pages[0, ENCODING] in (PLAIN, PLAIN_DICTIONARY)


def _room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array, or a new one if it is too short."""
    return array if len(array) >= size else np.empty(size, array.dtype)


def _dictionary(page: NDArray[np.uint8], values: int, kind: str) -> Any:
    """A dictionary page as an Arrow array."""
    import pyarrow as pa

    if kind != "BYTE_ARRAY":
        dtype = np.dtype("<i4" if kind == "INT32" else "<i8")
        if len(page) != values * dtype.itemsize:
            raise LeftToArrow
        return pa.array(page.view(dtype).copy())
    if len(page) < 4 * values:
        raise LeftToArrow
    texts, ends = np.empty(len(page), np.uint8), np.empty(values + 1, np.int32)
    if not vote_page_kernels.split_texts(page, texts, ends):
        raise LeftToArrow
    return pa.StringArray.from_buffers(values, pa.py_buffer(ends), pa.py_buffer(texts))
