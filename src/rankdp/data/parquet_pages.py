"""Parquet files of complete columns, written page by page without a general-purpose encoder.

A writer that serves every table encodes dictionary indices one value at a time, which for ten columns of items
costs more than privatizing them. The tables written here are of one kind, and their pages are nearly the arrays
in memory. What is relied on of the format (Apache Parquet, `parquet.thrift` and `Encodings.md`):

- a file is `PAR1`, the column chunks of one row group after the other, the footer, the footer's length in four
  bytes, and `PAR1`; headers and footer are Thrift structures in the compact protocol;
- every column is required, so that pages hold values only: no definition or repetition levels;
- a chunk of items is a dictionary page with all item names (PLAIN: length in four bytes, UTF-8) and data pages
  (version 1, RLE_DICTIONARY) of one byte with the bit width and one bit-packed run: the count of groups of eight
  values as ULEB128 of `2 * groups + 1`, then the values, the lowest bit first, the last group filled with zeros;
- ids and epsilons are PLAIN data pages: the little-endian numbers themselves.

Nothing is compressed: packed indices do not get smaller, and snappy needs 10 ns to save 4 of the 8 bytes of an id,
which is half of the whole time per row. A batch makes one page in each column, and pages are kept until they are
worth a row group.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.checks import LARGE, IntArray
from rankdp.version import __version__

_GROUP_BYTES = 1 << 23
_MAGIC = b"PAR1"

# the numbers of parquet.thrift
_INT32, _INT64, _FLOAT, _DOUBLE, _BYTE_ARRAY = 1, 2, 4, 5, 6
_REQUIRED, _UTF8, _UINT_32, _UINT_64 = 0, 0, 13, 14
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_UNCOMPRESSED = 0
_PLAIN_KINDS: dict[str, tuple[int, int | None]] = {
    "int32": (_INT32, None),
    "int64": (_INT64, None),
    "uint32": (_INT32, _UINT_32),
    "uint64": (_INT64, _UINT_64),
    "float": (_FLOAT, None),
    "double": (_DOUBLE, None),
}


class Long(int):
    """A whole number of 64 bits; a plain int is one of 32."""


Thrift = Any  # int, Long, bytes, a list of one kind, or a struct: a dict from field numbers (ascending) to values


def varint(number: int) -> bytes:
    """ULEB128: seven bits in a byte, the lowest first, the high bit set in all but the last."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _kind(value: Thrift) -> int:
    """The compact protocol's number for a value's type."""
    return {int: 5, Long: 6, bytes: 8, list: 9, dict: 12}[type(value)]


def thrift(value: Thrift) -> bytes:
    """A value in Thrift's compact protocol; a struct's field that is None is left out."""
    if isinstance(value, int):
        return varint(2 * value if value >= 0 else -2 * value - 1)
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, list):
        kind = _kind(value[0])
        head = bytes([len(value) << 4 | kind]) if len(value) < 15 else bytes([0xF0 | kind]) + varint(len(value))
        return head + b"".join(map(thrift, value))
    parts, before = [], 0
    for field, content in value.items():
        if content is not None:
            # the numbers used here grow by less than 16, so that the short form always fits
            parts += [bytes([(field - before) << 4 | _kind(content)]), thrift(content)]
            before = field
    return b"".join(parts) + b"\0"


def bit_width(items: int) -> int:
    """The bits of an index into a list of so many items: at least one, as readers expect."""
    return max(1, (items - 1).bit_length())


def pack(orders: IntArray, bits: int) -> NDArray[np.uint8] | None:
    """Each column's indices, bit-packed in whole groups of eight: a row of bytes per column; None if one is blank."""
    rows, width = orders.shape
    size = -(-rows // 8) * bits
    if orders.size >= LARGE:
        from rankdp.data import order_kernels as kernels

        words = np.zeros((width, -(-size // 4)), np.uint32)
        return words.view(np.uint8)[:, :size] if kernels.pack(np.ascontiguousarray(orders), bits, words) else None
    if (orders[:, -1] < 0).any():
        return None
    cells = orders.T.astype(np.uint32)[:, :, None] >> np.arange(bits, dtype=np.uint32) & 1
    padded = np.zeros((width, size * 8), np.uint8)
    padded[:, : rows * bits] = cells.reshape(width, -1)
    return np.packbits(padded, axis=1, bitorder="little")


def _data_header(values: int, size: int, encoding: int) -> bytes:
    return thrift({1: _DATA_PAGE, 2: size, 3: size, 5: {1: values, 2: encoding, 3: _RLE, 4: _RLE}})


def _dictionary_page(names: Sequence[str]) -> list[Any]:
    texts = [name.encode() for name in names]
    body = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return [thrift({1: _DICTIONARY_PAGE, 2: len(body), 3: len(body), 7: {1: len(names), 2: _PLAIN}}), body]


def _plain_page(array: Any) -> list[Any]:
    """A page with the numbers of an Arrow array without nulls, as they lie in memory."""
    size = array.type.bit_width // 8
    numbers = memoryview(array.buffers()[1])[array.offset * size : (array.offset + len(array)) * size]
    return [_data_header(len(array), len(numbers), _PLAIN), numbers]


def supports(kind: Any) -> bool:
    """Whether a column of this Arrow type can be written here."""
    return str(kind) in _PLAIN_KINDS


class PageWriter:
    """Writes row groups by an Arrow schema whose columns are dictionaries of text or of a kind that `supports`."""

    def __init__(self, path: str, schema: Any) -> None:
        self.schema = schema
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed by close
        self._at = self._file.write(_MAGIC)
        self._groups: list[Thrift] = []
        self._rows, self._items = 0, tuple[str, ...]()
        self._pages: list[list[Any]] = [[] for _ in schema]
        self._pending, self._bytes = 0, 0

    def write(self, orders: IntArray, items: tuple[str, ...], front: Sequence[Any], back: Sequence[Any]) -> bool:
        """Append rows: the columns of `orders`, with the Arrow arrays of numbers that stand before and after them.

        False if a row ends in a blank; then nothing is appended.
        """
        rows, bits = len(orders), bit_width(len(items))
        packed = pack(orders, bits)
        if packed is None:
            return False
        if items[: len(self._items)] != self._items:
            self._end_group()
        self._items = items
        run = bytes([bits]) + varint(-(-rows // 8) << 1 | 1)
        head = _data_header(rows, len(run) + packed.shape[1], _RLE_DICTIONARY) + run
        pages = [*map(_plain_page, front), *([head, column] for column in packed), *map(_plain_page, back)]
        for column, page in zip(self._pages, pages, strict=True):
            column += page
            self._bytes += sum(map(len, page))
        self._pending += rows
        if self._bytes >= _GROUP_BYTES:
            self._end_group()
        return True

    def _end_group(self) -> None:
        if not self._pending:
            return
        names = _dictionary_page(self._items)
        start, chunks = self._at, []
        for field, pages in zip(self.schema, self._pages, strict=True):
            chunks.append(self._chunk(field, pages, None if supports(field.type) else names))
            pages.clear()
        size = self._at - start
        self._groups.append({1: chunks, 2: Long(size), 3: Long(self._pending), 5: Long(start), 6: Long(size)})
        self._rows += self._pending
        self._pending, self._bytes = 0, 0

    def _chunk(self, field: Any, pages: Sequence[Any], names: Sequence[Any] | None) -> Thrift:
        """Write one column of the row group; what the footer says about it."""
        start = self._at
        if names:
            self._put(names)
        data = self._at
        self._put(pages)
        size = self._at - start
        meta = {
            1: _BYTE_ARRAY if names else _PLAIN_KINDS[str(field.type)][0],
            2: [_PLAIN, _RLE_DICTIONARY] if names else [_PLAIN],
            3: [field.name.encode()],
            4: _UNCOMPRESSED,
            5: Long(self._pending),
            6: Long(size),
            7: Long(size),
            9: Long(data),
            11: Long(start) if names else None,
        }
        return {2: Long(0), 3: meta}

    def _put(self, parts: Sequence[Any]) -> None:
        for part in parts:
            self._file.write(part)
            self._at += len(part)

    def finish(self, metadata: Mapping[str, str]) -> None:
        """Write the last row group and the footer with these texts, and close the file."""
        self._end_group()
        # with the Arrow schema at hand, Arrow's readers give dictionaries back as dictionaries (and see only its texts)
        schema = self.schema.with_metadata(metadata)
        texts = {**metadata, "ARROW:schema": base64.b64encode(schema.serialize()).decode()}
        footer = thrift(
            {
                1: 2,
                2: [{4: b"schema", 5: len(self.schema)}, *map(_schema_element, self.schema)],
                3: Long(self._rows),
                4: self._groups,
                5: [{1: key.encode(), 2: text.encode()} for key, text in texts.items()],
                6: f"rankdp version {__version__} (build 0)".encode(),
            }
        )
        self._put([footer, len(footer).to_bytes(4, "little"), _MAGIC])
        self._file.close()

    def close(self) -> None:
        """Let go of the file, whatever is in it."""
        self._file.close()


def _schema_element(field: Any) -> Thrift:
    name = field.name.encode()
    if not supports(field.type):
        return {1: _BYTE_ARRAY, 3: _REQUIRED, 4: name, 6: _UTF8, 10: {1: {}}}
    physical, converted = _PLAIN_KINDS[str(field.type)]
    return {1: physical, 3: _REQUIRED, 4: name, 6: converted}
