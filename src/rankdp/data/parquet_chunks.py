"""What both readers of Parquet pages rely on: where the columns of a file lie, and pages as they were once.

Both (`parquet_reading` for rank columns, `vote_pages` for votes) know the common kind of file and leave everything else
to Arrow, damage included, which Arrow then describes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd"}
"""By their numbers in parquet.thrift."""
_MOST_FOOTER = 1 << 24
_PLACE = ((4, 5), (5, 6), (6, 6), (7, 6), (9, 6), (11, 6))
"""Codec, values, size in memory and in the file, start of data and dictionary: fields of `ColumnMetaData`, types."""


class LeftToArrow(Exception):
    """The file holds something that is not read here."""


def footer(path: str, columns: int) -> tuple[list[int], NDArray[np.int64]]:
    """The rows of each row group, and for each of its columns the numbers in `_PLACE`, -1 where one is not given.

    Arrow could tell, but where the file is damaged, asking it may end the process.
    """
    from rankdp.data import page_kernels as kernels

    with Path(path).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
        if magic != b"PAR1" or length > min(size - 8, _MOST_FOOTER):
            raise LeftToArrow
        file.seek(size - 8 - length)
        told = np.frombuffer(file.read(length), np.uint8)
    facts = np.empty((length, 3), np.int64)
    count, _ = kernels.facts_of(told, 0, facts)
    keys, types, numbers = facts[:count].T
    rows = numbers[keys == _key(4, 3)]
    # a file name, or a word on encryption, beside the facts about a column
    if np.isin(keys, [_key(4, 1, 1), _key(4, 1, 8), _key(4, 1, 9)]).any():
        raise LeftToArrow
    chunk = np.cumsum(keys == _key(4, 1, 3)) - 1
    places = np.full((len(rows) * columns, len(_PLACE)), -1, np.int64)
    if not count or chunk[-1] + 1 != len(places):
        raise LeftToArrow
    for fact, (field, kind) in enumerate(_PLACE):
        here = (keys == _key(4, 1, 3, field)) & (types == kind)
        places[chunk[here], fact] = numbers[here]
    return rows.tolist(), places.reshape(len(rows), columns, -1)


def _key(*fields: int) -> int:
    """The way through the footer by the fields of `FileMetaData`, as the kernel writes it."""
    from rankdp.data import page_kernels as kernels

    key = 0
    for field in fields:
        key = key * kernels.BASE + field
    return key


def decompressed(body: memoryview, size: int, codec: str) -> bytes:
    """The bytes of a page, if there are as many as its header says."""
    import pyarrow as pa

    # a codec alone does not tell a page that is shorter, and leaves in the rest whatever was in memory
    try:
        if codec == "snappy":
            if _snappy_size(body) != size:
                raise LeftToArrow
            return bytes(pa.Codec(codec).decompress(body, size, asbytes=True))
        with pa.CompressedInputStream(pa.BufferReader(body), codec) as stream:
            whole = bytes(stream.read(size + 1))
    except (pa.ArrowException, OSError):
        raise LeftToArrow from None
    if len(whole) != size:
        raise LeftToArrow
    return whole


def _snappy_size(body: memoryview) -> int:
    size = 0
    for place, byte in enumerate(body[:5]):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            return size
    return -1
