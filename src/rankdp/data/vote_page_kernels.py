"""The loops that read columns of votes from Parquet pages, a batch of codes at a time.

They follow the rules of `page_kernels`: every position is compared with the end before it is read, and what is
unusual is answered with False, so that Arrow is asked instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.page_kernels import ODD, Bytes, _no_blank, _varint, _word
from rankdp.jit import kernel

AT, BITS, MISSING, RUN, PLACE, CODE = range(6)
"""How far a page is decoded: the byte after the present run; the bits of a code; the values still to come in the page
and in the run; the bit where the run goes on, or -1 if it repeats a code; that code."""

_MOST_BITS = 31

State = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def _four_bytes(data: Bytes, at: Any) -> Any:
    number = np.int64(0)
    for byte in range(4):
        number |= np.int64(data[at + byte]) << (8 * byte)
    return number


@kernel
def split_texts(data: Bytes, texts: Bytes, ends: NDArray[np.int32]) -> bool:
    """Separate the texts of a PLAIN page from their lengths, which stand before them in four bytes."""
    at, end = 0, 0
    ends[0] = 0
    for text in range(1, len(ends)):
        if at + 4 > len(data):
            return False
        size = _four_bytes(data, at)
        at += 4
        if size > len(data) - at:
            return False
        texts[end : end + size] = data[at : at + size]
        at, end = at + size, end + size
        ends[text] = end
    return at == len(data)


@kernel
def open_page(data: Bytes, values: int, levels: int, state: State) -> bool:
    """Set `state` before the first code of a page whose definition levels take so many bytes (see `pages_of`)."""
    at = 0
    if levels == ODD:
        if len(data) < 4:
            return False
        at, levels = 4, _four_bytes(data, 0)
    if levels > len(data) - at or ((at or levels) and not _no_blank(data, at, at + levels, values)):
        return False
    at += levels
    if at >= len(data) or data[at] > _MOST_BITS:
        return False
    state[AT], state[BITS], state[MISSING], state[RUN] = at + 1, data[at], values, 0
    return True


@kernel
def decode(data: Bytes, words: Words, state: State, limit: int, out: NDArray[np.int32]) -> bool:
    """Go on decoding a page until `out` is full; False if a run is damaged or a code is not below `limit`.

    `words` is the memory of `data` and at least one word more.
    """
    done = 0
    while done < len(out):
        if state[RUN] == 0 and not _next_run(data, state):
            return False
        part = out[done : done + min(state[RUN], len(out) - done)]
        if state[PLACE] < 0:
            part[:] = state[CODE]
        else:
            _unpack(words, state[PLACE], state[BITS], part)
            state[PLACE] += len(part) * state[BITS]
        state[RUN] -= len(part)
        done += len(part)
    state[MISSING] -= done
    most = np.int32(0)
    for row in range(len(out)):
        most = max(most, out[row])
    if state[MISSING] == 0 and (state[AT] < len(data) or state[RUN] > 7):
        return False  # the last group of eight may be filled up; if more is left over, the page is not what it seems
    return bool(most < limit)


@kernel
def _next_run(data: Bytes, state: State) -> bool:
    """Codes come in runs: `2 * times` and one code, or `2 * groups + 1` and so many times eight packed codes."""
    head, at = _varint(data, state[AT], len(data))
    length, bits = head >> 1, state[BITS]
    if at == ODD or length == 0:
        return False
    if head & 1:
        if length > len(data) or length * bits > len(data) - at:
            return False
        state[AT], state[RUN], state[PLACE] = at + length * bits, 8 * length, 8 * at
        return True
    size = (bits + 7) >> 3
    if size > len(data) - at:
        return False
    code = np.int64(0)
    for byte in range(size):
        code |= np.int64(data[at + byte]) << (8 * byte)
    state[AT], state[RUN], state[PLACE], state[CODE] = at + size, length, -1, min(code, np.int64((1 << 31) - 1))
    return True


@kernel
def _unpack(words: Words, place: Any, bits: Any, out: NDArray[np.int32]) -> None:
    """Numbers that lie one after the other from bit `place` on: four from one word where they fit."""
    mask, step = np.uint64((1 << bits) - 1), np.uint64(bits)
    fours = len(out) & ~3 if bits <= 16 else 0
    for row in range(0, fours, 4):
        word = _word(words, place + row * bits)
        for lane in range(4):
            out[row + lane] = word & mask
            word >>= step
    for row in range(fours, len(out)):
        out[row] = _word(words, place + row * bits) & mask
