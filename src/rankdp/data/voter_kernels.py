"""The loops of bounding: voters get numbers, rows are dealt out to their voters, and each voter's smallest hashes stay.

Compiled on first use, free of the GIL. `comparisons` says what is hashed and why; `weights` is empty when every row
counts once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

MD5_SINES = np.array([int(abs(math.sin(step + 1)) * 2**32) for step in range(64)], np.uint32)
MD5_TURNS = np.array([7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21], np.uint32)


@kernel
def _spread(value: np.uint64) -> np.uint64:
    """A mixing of 64 bits (the finaliser of SplitMix64), for places in hash tables."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def number_whole(values: Any, slots: Int32, ids: Int64, count: int, out: Int32) -> tuple[int, int]:
    """Number distinct whole numbers from 0 on; (rows done, how many distinct), short of the end if `ids` is full."""
    mask = np.uint64(len(slots) - 1)
    for row in range(len(values)):
        value = np.int64(values[row])
        place = _spread(np.uint64(value)) & mask
        while True:
            code = slots[place]
            if code < 0:
                if count == len(ids):
                    return row, count
                code = np.int32(count)
                slots[place], ids[count] = code, value
                count += 1
                break
            if ids[code] == value:
                break
            place = (place + np.uint64(1)) & mask
        out[row] = code
    return len(values), count


@kernel
def refill_whole(slots: Int32, ids: Int64, count: int) -> None:
    """Put numbered ids into larger, empty slots."""
    mask = np.uint64(len(slots) - 1)
    for code in range(count):
        place = _spread(np.uint64(ids[code])) & mask
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        slots[place] = code


@kernel
def _spread_text(data: Bytes, start: Any, stop: Any) -> np.uint64:
    value = np.uint64(stop - start)
    for at in range(start, stop):
        value = (value ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    return _spread(value)


@kernel
def number_texts(
    data: Bytes, offsets: Any, slots: Int32, texts: Bytes, ends: Int64, count: int, out: Int32, begin: int
) -> tuple[int, int]:
    """Number distinct texts from 0 on, from row `begin`; (rows done, how many), short of the end if there is no room.

    Text k is `texts[ends[k]:ends[k + 1]]`.
    """
    mask = np.uint64(len(slots) - 1)
    for row in range(begin, len(offsets) - 1):
        start, stop = np.int64(offsets[row]), np.int64(offsets[row + 1])
        place = _spread_text(data, start, stop) & mask
        while True:
            code = slots[place]
            if code < 0:
                end = ends[count] + stop - start
                if count + 1 == len(ends) or end > len(texts):
                    return row, count
                for at in range(stop - start):
                    texts[ends[count] + at] = data[start + at]
                code = np.int32(count)
                slots[place] = code
                count += 1
                ends[count] = end
                break
            same = ends[code + 1] - ends[code] == stop - start
            at = 0
            while same and at < stop - start:
                same = texts[ends[code] + at] == data[start + at]
                at += 1
            if same:
                break
            place = (place + np.uint64(1)) & mask
        out[row] = code
    return len(offsets) - 1, count


@kernel
def refill_texts(slots: Int32, texts: Bytes, ends: Int64, count: int) -> None:
    """Put numbered texts into larger, empty slots."""
    mask = np.uint64(len(slots) - 1)
    for code in range(count):
        place = _spread_text(texts, ends[code], ends[code + 1]) & mask
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        slots[place] = code


@kernel
def count_voters(voters: Int32, weights: Int64, rows: Int64, amounts: Int64) -> None:
    """rows[voter] += 1 and, if rows have weights, amounts[voter] += weight."""
    weighted = len(weights) > 0
    for row in range(len(voters)):
        rows[voters[row]] += 1
        if weighted:
            amounts[voters[row]] += weights[row]


@kernel
def deal(voters: Int32, contents: Any, weights: Int64, places: Int64, dealt: Any, dealt_weights: Int64) -> None:
    """Put each content (and weight) in the next free place of its voter."""
    weighted = len(weights) > 0
    for row in range(len(voters)):
        place = places[voters[row]]
        places[voters[row]] = place + 1
        dealt[place] = contents[row]
        if weighted:
            dealt_weights[place] = weights[row]


@kernel
def _left(value: np.uint32, bits: np.uint32) -> np.uint32:
    return np.uint32((value << bits) | (value >> (np.uint32(32) - bits)))


@kernel
def _byte_swapped(value: np.uint32) -> np.uint64:
    swapped = (value >> np.uint32(24)) | ((value >> np.uint32(8)) & np.uint32(0xFF00))
    swapped |= ((value << np.uint32(8)) & np.uint32(0xFF0000)) | (value << np.uint32(24))
    return np.uint64(np.uint32(swapped))


@kernel
def md5_start(message: Bytes, length: Any, words: Words, sines: Words, turns: Words) -> np.uint64:
    """The first 8 bytes of the MD5 (RFC 1321) of `message[:length]` as a number, the first byte the highest.

    `message` has room for the padding, a multiple of 64 bytes; `words` for one block; `MD5_SINES`, `MD5_TURNS`.
    """
    blocks = (length + 8) // 64 + 1
    message[length] = 0x80
    message[length + 1 : blocks * 64 - 8] = 0
    for at in range(8):
        message[blocks * 64 - 8 + at] = (length * 8 >> (8 * at)) & 255
    a0, b0 = np.uint32(0x67452301), np.uint32(0xEFCDAB89)
    c0, d0 = np.uint32(0x98BADCFE), np.uint32(0x10325476)
    for block in range(blocks):
        for at in range(16):
            place = block * 64 + at * 4
            words[at] = (
                np.uint32(message[place])
                | np.uint32(message[place + 1]) << np.uint32(8)
                | np.uint32(message[place + 2]) << np.uint32(16)
                | np.uint32(message[place + 3]) << np.uint32(24)
            )
        a, b, c, d = a0, b0, c0, d0
        for step in range(16):
            mixed = np.uint32(a + ((b & c) | (~b & d)) + sines[step] + words[step])
            a, d, c, b = d, c, b, np.uint32(b + _left(mixed, turns[step & 3]))
        for step in range(16, 32):
            mixed = np.uint32(a + ((d & b) | (~d & c)) + sines[step] + words[(5 * step + 1) & 15])
            a, d, c, b = d, c, b, np.uint32(b + _left(mixed, turns[4 | (step & 3)]))
        for step in range(32, 48):
            mixed = np.uint32(a + (b ^ c ^ d) + sines[step] + words[(3 * step + 5) & 15])
            a, d, c, b = d, c, b, np.uint32(b + _left(mixed, turns[8 | (step & 3)]))
        for step in range(48, 64):
            mixed = np.uint32(a + (c ^ (b | ~d)) + sines[step] + words[(7 * step) & 15])
            a, d, c, b = d, c, b, np.uint32(b + _left(mixed, turns[12 | (step & 3)]))
        a0, b0, c0, d0 = np.uint32(a0 + a), np.uint32(b0 + b), np.uint32(c0 + c), np.uint32(d0 + d)
    return (_byte_swapped(a0) << np.uint64(32)) | _byte_swapped(b0)


@kernel
def _write_pair(message: Bytes, at: Any, content: Any, items: int, keys: Bytes) -> Any:
    """The text of a pair, `winner>loser` or `low=high` by key, and where it ends."""
    square, digits = items * items, keys.shape[1]
    tie = content >= square
    pair = content - square if tie else content
    one, two = pair // items, pair % items
    if tie:
        for digit in range(digits):
            if keys[one, digit] != keys[two, digit]:
                if keys[one, digit] > keys[two, digit]:
                    one, two = two, one
                break
    for digit in range(digits):
        message[at + digit] = keys[one, digit]
        message[at + digits + 1 + digit] = keys[two, digit]
    message[at + digits] = 61 if tie else 62
    return at + 2 * digits + 1


@kernel
def _write_number(message: Bytes, at: Any, number: int) -> Any:
    size, rest = 1, number // 10
    while rest:
        size, rest = size + 1, rest // 10
    rest = number
    for digit in range(size - 1, -1, -1):
        message[at + digit] = 48 + rest % 10
        rest //= 10
    return at + size


@kernel
def _sort(contents: Any, weights: Int64, first: int, last: int) -> None:
    """Sort a stretch of contents, their weights with them (Shell's method: short, and most stretches are)."""
    weighted = len(weights) > 0
    gap = 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap:
        for row in range(first + gap, last):
            content, at = contents[row], row
            weight = weights[row] if weighted else np.int64(1)
            while at - gap >= first and contents[at - gap] > content:
                contents[at] = contents[at - gap]
                if weighted:
                    weights[at] = weights[at - gap]
                at -= gap
            contents[at] = content
            if weighted:
                weights[at] = weight
        gap //= 3


@kernel
def _offer(hash: np.uint64, content: Any, size: int, most: int, hashes: Any, contents: Any) -> int:
    """Keep the `most` smallest hashes in a heap, the largest on top; how many are kept now."""
    if size < most:
        at = size
        while at and hashes[(at - 1) >> 1] < hash:
            hashes[at], contents[at] = hashes[(at - 1) >> 1], contents[(at - 1) >> 1]
            at = (at - 1) >> 1
        hashes[at], contents[at] = hash, content
        return size + 1
    if hash < hashes[0]:
        at, child = 0, 1
        while child < size:
            child += int(child + 1 < size and hashes[child + 1] > hashes[child])
            if hashes[child] <= hash:
                break
            hashes[at], contents[at] = hashes[child], contents[child]
            at, child = child, 2 * child + 1
        hashes[at], contents[at] = hash, content
    return size


@kernel
def choose(
    dealt: Any,
    weights: Int64,
    starts: Int64,
    begin: int,
    end: int,
    most: int,
    items: int,
    keys: Bytes,
    texts: Bytes,
    ends: Int64,
    sines: Words,
    turns: Words,
    hashes: NDArray[np.uint64],
    chosen: Any,
) -> int:
    """The contents kept of the voters from `begin` to `end`, one after the other in `chosen`; how many.

    `dealt[starts[v]:starts[v + 1]]` are the contents of voter v (they are sorted here), whose id is
    `texts[ends[v]:ends[v + 1]]`. `hashes` has room for `most`.
    """
    weighted = len(weights) > 0
    words = np.empty(16, np.uint32)
    message = np.empty(256, np.uint8)
    kept = 0
    for voter in range(begin, end):
        first, last = starts[voter], starts[voter + 1]
        total = last - first
        if weighted:
            total = np.int64(0)
            for row in range(first, last):
                total += weights[row]
        if total <= most:
            for row in range(first, last):
                for _ in range(weights[row] if weighted else 1):
                    chosen[kept] = dealt[row]
                    kept += 1
            continue
        length = ends[voter + 1] - ends[voter]
        if length + 192 > len(message):
            message = np.empty(2 * length + 192, np.uint8)
        for at in range(length):
            message[at] = texts[ends[voter] + at]
        message[length] = 124
        _sort(dealt, weights, first, last)
        size, occurrence, pair_end = 0, 0, 0
        for row in range(first, last):
            if row == first or dealt[row] != dealt[row - 1]:
                occurrence = 0
                pair_end = _write_pair(message, length + 1, np.int64(dealt[row]), items, keys)
                message[pair_end] = 124
            for _ in range(weights[row] if weighted else 1):
                occurrence += 1
                stop = _write_number(message, pair_end + 1, occurrence)
                digest = md5_start(message, stop, words, sines, turns)
                size = _offer(digest, dealt[row], size, most, hashes, chosen[kept:])
        kept += size
    return kept
