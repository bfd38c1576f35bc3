"""The loops of counting in process: cells to item numbers, rows to counts, and the choice of a voter's comparisons.

Compiled on first use, free of the GIL. Item numbers below `items` are known items, others unknown ones, and -1 is a
blank. `problems[k]` counts the rows with problem k (see `comparisons.PROBLEMS`) and `firsts[k]` keeps the first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

MD5_SINES = np.array([int(abs(math.sin(step + 1)) * 2**32) for step in range(64)], np.uint32)
MD5_TURNS = np.array([7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21], np.uint32)

NAMED = 16
_NO_OUTCOME, _STRANGE_OUTCOME, _LEFT_OUT = 3, 4, 5


@kernel
def look_up(codes: Int32, table: Int32, out: Int32) -> None:
    """out = table[code + 1]; the first entry of the table is for a blank."""
    for row in range(len(codes)):
        out[row] = table[codes[row] + 1]


@kernel
def look_up_numbers(values: Any, base: int, table: Int32, out: Int32) -> bool:
    """out = table[value - base]; False as soon as a value is not in the table."""
    size = np.uint64(len(table))
    for row in range(len(values)):
        place = np.uint64(np.int64(values[row]) - base)
        if place >= size:
            return False
        item = table[place]
        if item < 0:
            return False
        out[row] = item
    return True


@kernel
def judge(left: Int32, right: Int32, codes: Int32, table: Int32, outcome: Int8) -> None:
    """What each outcome cell means: a word's meaning, or from NAMED on an item that must be one of the two."""
    for row in range(len(codes)):
        meaning = table[codes[row] + 1]
        if meaning >= NAMED:
            item = meaning - NAMED
            meaning = 0 if item == left[row] else 1 if item == right[row] else _STRANGE_OUTCOME
        outcome[row] = meaning


@kernel
def judge_numbers(values: NDArray[np.float64], outcome: Int8) -> None:
    """1, 0 and 0.5 as outcomes; NaN is a missing one."""
    for row in range(len(values)):
        value = values[row]
        if value == 1.0:
            outcome[row] = 0
        elif value == 0.0:
            outcome[row] = 1
        elif value == 0.5:
            outcome[row] = 2
        else:
            outcome[row] = _NO_OUTCOME if value != value else _STRANGE_OUTCOME


@kernel
def check_weights(values: NDArray[np.float64], most: int, out: Int64) -> None:
    """Whole numbers from 0 to `most` as they are, everything else as -1."""
    for row in range(len(values)):
        value = values[row]
        out[row] = np.int64(value) if 0 <= value <= most and value == np.floor(value) else -1


@kernel
def _problem(left: Any, right: Any, outcome: Any, weight: Any, voter: Any, items: int) -> int:
    """The number of the first problem that a row has; 0 if it has none."""
    if outcome == _STRANGE_OUTCOME:
        return 1
    if weight < 0:
        return 2
    if voter < 0:
        return 3
    if left < 0 or right < 0:
        return 4
    if left >= items or right >= items:
        return 5
    if outcome == _NO_OUTCOME:
        return 6
    if left == right:
        return 7
    return 8 if outcome == _LEFT_OUT else 0


@kernel
def _note(problem: int, row: int, problems: Int64, firsts: Int64) -> None:
    if problems[problem] == 0:
        firsts[problem] = row
    problems[problem] += 1


@kernel
def _all_fine(left: Int32, right: Int32, outcome: Int8, weights: Int64, items: int) -> bool:
    """Whether no row has a problem: one pass without branches, which most batches need and no more."""
    end, bad = np.uint32(items), 0
    for row in range(len(left)):
        i, j = left[row], right[row]
        bad |= int((np.uint32(i) >= end) | (np.uint32(j) >= end) | (i == j) | (outcome[row] > 2))
    for row in range(len(weights)):
        bad |= int(weights[row] < 0)
    return bad == 0


@kernel
def tally_wins(
    left: Int32, right: Int32, outcome: Int8, weights: Int64, items: int, wins: Int64, problems: Int64, firsts: Int64
) -> None:
    """wins[i] += half-wins of item i. `weights` is empty when every row counts once."""
    weighted, fine = len(weights) > 0, _all_fine(left, right, outcome, weights, items)
    for row in range(len(left)):
        i, j, verdict = left[row], right[row], outcome[row]
        weight = weights[row] if weighted else np.int64(1)
        if not fine:
            problem = _problem(i, j, verdict, weight, 0, items)
            if problem:
                _note(problem, row, problems, firsts)
                continue
        half = 2 - 2 * (verdict & 1) - (verdict >> 1)
        wins[i] += half * weight
        wins[j] += (2 - half) * weight


@kernel
def tally_pairs(
    left: Int32, right: Int32, outcome: Int8, weights: Int64, items: int, table: Int64, problems: Int64, firsts: Int64
) -> None:
    """table[i * items + j] += half-wins of item i over item j."""
    weighted, fine = len(weights) > 0, _all_fine(left, right, outcome, weights, items)
    for row in range(len(left)):
        i, j, verdict = np.int64(left[row]), np.int64(right[row]), outcome[row]
        weight = weights[row] if weighted else np.int64(1)
        if not fine:
            problem = _problem(i, j, verdict, weight, 0, items)
            if problem:
                _note(problem, row, problems, firsts)
                continue
        tie = verdict >> 1
        ahead, behind = (j, i) if verdict == 1 else (i, j)
        table[ahead * items + behind] += (2 - tie) * weight
        if tie:
            table[behind * items + ahead] += weight


@kernel
def sort_out(
    left: Int32,
    right: Int32,
    outcome: Int8,
    weights: Int64,
    voters: Int32,
    items: int,
    contents: Any,
    kept_weights: Int64,
    kept_voters: Int32,
    problems: Int64,
    firsts: Int64,
) -> int:
    """Write the rows without a problem one after the other; how many there are.

    A row's content is `winner * items + loser`, or `items^2 + low * items + high` for a tie.
    """
    weighted, known_voters = len(weights) > 0, len(voters) > 0
    kept = 0
    for row in range(len(left)):
        i, j, verdict = np.int64(left[row]), np.int64(right[row]), outcome[row]
        weight = weights[row] if weighted else np.int64(1)
        voter = voters[row] if known_voters else np.int32(0)
        problem = _problem(i, j, verdict, weight, voter, items)
        if problem:
            _note(problem, row, problems, firsts)
            continue
        if verdict == 2:
            contents[kept] = items * items + min(i, j) * items + max(i, j)
        else:
            contents[kept] = i * items + j if verdict == 0 else j * items + i
        if weighted:
            kept_weights[kept] = weight
        if known_voters:
            kept_voters[kept] = voter
        kept += 1
    return kept


@kernel
def tally_contents(contents: Any, items: int, table: Int64) -> None:
    """table[i * items + j] += half-wins of item i over item j, from contents."""
    square = items * items
    for row in range(len(contents)):
        content = np.int64(contents[row])
        if content < square:
            table[content] += 2
        else:
            low, high = (content - square) // items, (content - square) % items
            table[low * items + high] += 1
            table[high * items + low] += 1


@kernel
def split_contents(contents: Any, items: int, left: Int32, right: Int32, halves: Int8) -> None:
    """The two items of each content and the half-wins of the left one."""
    square = items * items
    for row in range(len(contents)):
        content = np.int64(contents[row])
        tie = content >= square
        pair = content - square if tie else content
        left[row], right[row] = pair // items, pair % items
        halves[row] = 1 if tie else 2


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
