"""A page is what it was before it was compressed, or it is left to Arrow."""

import pyarrow as pa
import pytest

from rankdp.data.parquet_chunks import CODECS, LeftToArrow, decompressed

PAGE = bytes(range(256)) * 40


@pytest.mark.parametrize("codec", [codec for codec in CODECS.values() if codec])
def test_a_page_comes_back_whole_or_not_at_all(codec):
    """Too long and too short a size are told, though Arrow's codecs fill the gap with what was in memory."""
    body = memoryview(pa.Codec(codec).compress(PAGE, asbytes=True))
    assert decompressed(body, len(PAGE), codec) == PAGE
    for damaged, size in ((body, len(PAGE) + 1), (body, len(PAGE) - 1), (body[:-3], len(PAGE)), (body[:0], len(PAGE))):
        with pytest.raises(LeftToArrow):
            decompressed(damaged, size, codec)
