"""The loops that read Parquet pages: headers, runs of indices, and the rows that they make.

The bytes come from a stranger. Every position is compared with the end of what may be read before it is read, and
a number from the file is compared with its bounds before it is used; a kernel that meets anything unusual says so,
and Arrow is asked instead. The format is described in Apache Parquet's `parquet.thrift` and `Encodings.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdp.data.order_kernels import all_complete
from rankdp.jit import kernel

Bytes = NDArray[np.uint8]
Table = NDArray[np.int64]

ODD = -1
"""What a kernel answers that met something unusual."""

# the columns of a table of pages
KIND, BODY, STORED, SIZE, VALUES, ENCODING, LEVELS, PACKED = range(8)
DATA, DICTIONARY, DATA_2 = 0, 2, 3
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
# the columns of a table of runs
FIRST, PLACE, BITS = range(3)
# the columns of a table of facts
KEY, TYPE, NUMBER = range(3)
BASE = 64
_DEEPEST = 10
_MOST_BITS = 31
_TILE = 512


@kernel
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """A ULEB128 number below 2^63 and the position after it, which is ODD if there is none before `end`."""
    number = 0
    for place in range(9):
        if at >= end:
            return 0, ODD
        byte = int(data[at])
        at += 1
        number |= (byte & 127) << (7 * place)
        if byte < 128:
            return number, at
    return 0, ODD


@kernel
def facts_of(data: Bytes, at: int, facts: Table) -> tuple[int, int]:
    """List what is in a Thrift struct (compact protocol), if `facts` has the rows; how much, and where it ends or ODD.

    KEY is the way to a value: the numbers of the fields that lead to it, as digits of a number in base 64; the elements
    of a list have the list's. TYPE is the protocol's, NUMBER the value of a number or truth value, else the length.
    """
    end, count, depth = len(data), 0, 0
    keys, fields, types = np.zeros(_DEEPEST, np.int64), np.zeros(_DEEPEST, np.int64), np.zeros(_DEEPEST, np.int64)
    left = np.full(_DEEPEST, -1, np.int64)  # elements of a list that are still to come; -1 in a struct
    while at != ODD and at <= end and count < len(facts):
        if left[depth] == 0:
            depth -= 1
            continue
        listed = left[depth] > 0
        if listed:
            left[depth] -= 1
            kind, key = types[depth], keys[depth]
        else:
            if at == end:
                break
            kind, step = data[at] & 15, np.int64(data[at] >> 4)
            at += 1
            if kind == 0:
                if depth == 0:
                    return count, at
                depth -= 1
                continue
            fields[depth] += step
            # the long form of a field's number begins with no step, and is needed by no field that matters
            if step == 0 or fields[depth] >= BASE:
                break
            key = keys[depth] * BASE + fields[depth]
        number = 0
        if kind <= 2:  # in a struct the type itself says true (1) or false (2)
            number, at = 2 - kind, at + listed
        elif kind == 3:
            at += 1
        elif kind <= 6:
            number, at = _varint(data, at, end)
            number = (number >> 1) ^ -(number & 1)
        elif kind == 7:
            at += 8
        elif kind == 8:
            number, at = _varint(data, at, end)
            at = at + number if at != ODD and number <= end - at else ODD
        elif kind in (9, 12) and depth + 1 < _DEEPEST:
            depth += 1
            keys[depth], fields[depth], left[depth] = key, 0, -1
            if kind == 9:
                if at == end:
                    break
                number, types[depth] = int(data[at] >> 4), data[at] & 15
                at += 1
                if number == 15:
                    number, at = _varint(data, at, end)
                left[depth] = number
        else:
            break
        facts[count, KEY], facts[count, TYPE], facts[count, NUMBER] = key, kind, number
        count += 1
    return 0, ODD


@kernel
def pages_of(data: Bytes, optional: bool, pages: Table) -> int:
    """List the pages that a column chunk consists of, as many as `pages` has rows; how many there are, or ODD.

    LEVELS is the length of the definition levels: 0 if there are none, ODD if the page itself begins with it.
    PACKED says whether the page is compressed, as far as the codec is one that does.
    """
    facts, fields = np.empty((64, 3), np.int64), np.empty((BASE, BASE), np.int64)
    at, count = 0, 0
    while at < len(data):
        known, at = facts_of(data, at, facts)
        if at == ODD or count == len(pages):
            return ODD
        fields[:9] = ODD
        for fact in range(known):
            if facts[fact, KEY] < 9 * BASE and facts[fact, TYPE] in (1, 2, 5):
                fields[facts[fact, KEY] // BASE, facts[fact, KEY] % BASE] = facts[fact, NUMBER]
        kind, size, stored = fields[0, 1], fields[0, 2], fields[0, 3]
        levels, packed = 0, 1
        if kind == DATA:
            values, encoding, level_encoding = fields[5, 1], fields[5, 2], fields[5, 3]
            levels = ODD if optional else 0
            if level_encoding < 0 or (optional and level_encoding != RLE) or fields[5, 4] < 0:
                return ODD
        elif kind == DICTIONARY:
            values, encoding = fields[7, 1], fields[7, 2]
        elif kind == DATA_2:
            values, encoding, levels = fields[8, 1], fields[8, 4], fields[8, 5]
            packed = abs(fields[8, 7])  # compressed if nothing is said
            nulls, rows, repetitions = fields[8, 2], fields[8, 3], fields[8, 6]
            if nulls != 0 or rows != values or repetitions != 0 or levels < 0 or levels > min(size, stored):
                return ODD
            if not optional and levels != 0:
                return ODD
        else:
            return ODD
        if values < 0 or size < 0 or stored < 0 or stored > len(data) - at:
            return ODD
        pages[count, KIND], pages[count, BODY], pages[count, STORED], pages[count, SIZE] = kind, at, stored, size
        pages[count, VALUES], pages[count, ENCODING] = values, encoding
        pages[count, LEVELS], pages[count, PACKED] = levels, packed
        count += 1
        at += stored
    return count


@kernel
def _no_blank(data: Bytes, at: int, end: int, values: int) -> bool:
    """Whether the definition levels, runs of single bits, begin with `values` ones."""
    seen = 0
    while seen < values:
        head, at = _varint(data, at, end)
        if at == ODD or at >= end or head < 2:
            return False
        if head & 1 == 0:
            if data[at] != 1:
                return False
            at += 1
            seen += head >> 1
            continue
        groups = head >> 1
        if groups > end - at:
            return False
        for group in range(groups):
            missing = values - seen
            full = 255 if missing >= 8 else (1 << max(missing, 0)) - 1
            if data[at + group] & full != full:
                return False
            seen += 8
        at += groups
    return True


@kernel
def runs_of(data: Bytes, pages: Table, optional: bool, plain_bits: int, runs: Table) -> int:
    """List the runs in the data pages of one column, as many as `runs` has rows; how many there are, or ODD.

    A run begins at row FIRST. Its values lie one after the other from bit PLACE of `data`, BITS bits each; or, where
    PLACE is negative, they are all -1 - PLACE. Runs are counted on from a last one that marks the end. A page of
    plain numbers is one run.
    """
    count, row = 0, 0
    for page in range(len(pages)):
        at, values = pages[page, BODY], pages[page, VALUES]
        end, levels = at + pages[page, SIZE], pages[page, LEVELS]
        if levels == ODD:
            if end - at < 4:
                return ODD
            levels = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            levels |= np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
            at += 4
        if levels > end - at or (optional and not _no_blank(data, at, at + levels, values)):
            return ODD
        at += levels
        if pages[page, ENCODING] == PLAIN:
            if count == len(runs) or values > (end - at) * 8 // plain_bits:
                return ODD
            runs[count, FIRST], runs[count, PLACE], runs[count, BITS] = row, 8 * at, plain_bits
            count += 1
            row += values
            continue
        last = row + values
        if row < last and at >= end:
            return ODD
        bits = np.int64(data[at]) if row < last else 0
        at += 1
        if bits > _MOST_BITS:
            return ODD
        size = (bits + 7) // 8
        while row < last:
            head, at = _varint(data, at, end)
            length = head >> 1
            if at == ODD or length == 0 or count == len(runs):
                return ODD
            if head & 1:
                if length > last or length * bits > end - at:
                    return ODD
                place = 8 * at
                at += length * bits
                length = min(8 * length, last - row)
            else:
                if length > last - row or size > end - at:
                    return ODD
                value = 0
                for byte in range(size):
                    value |= int(data[at + byte]) << (8 * byte)
                place = -1 - value
                at += size
            runs[count, FIRST], runs[count, PLACE], runs[count, BITS] = row, place if bits else -1, bits
            count += 1
            row += length
    if count == len(runs):
        return ODD
    runs[count, FIRST], runs[count, PLACE], runs[count, BITS] = row, -1, 0
    return count + 1


@kernel
def _run_at(runs: Table, low: int, high: int, row: int) -> int:
    """The run, of those from `low` to before `high`, that holds a row."""
    while high - low > 1:
        middle = (low + high) // 2
        if runs[middle, FIRST] <= row:
            low = middle
        else:
            high = middle
    return low


@kernel
def _word(words: NDArray[np.uint64], place: int) -> np.uint64:
    """The 64 bits from bit `place` on."""
    word, shift = np.uint64(place) >> np.uint64(6), np.uint64(place) & np.uint64(63)
    # two shifts, because a shift by all 64 bits is not defined
    return np.uint64(words[word] >> shift | words[word + np.uint64(1)] << np.uint64(1) << (np.uint64(63) - shift))


@kernel
def _unpack(
    words: NDArray[np.uint64],
    place: int,
    bits: int,
    meaning: NDArray[np.int32],
    orders: NDArray[np.int32],
    column: int,
) -> None:
    """Fill a column of a few rows from values that lie one after the other from bit `place` on."""
    mask, beyond = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits), np.uint64(len(meaning) - 1)
    eights = len(orders) & ~7 if bits <= 8 else 0
    for first in range(0, eights, 8):
        value = _word(words, place + first * bits)
        for row in range(first, first + 8):
            orders[row, column] = meaning[min(value & mask, beyond)]
            value >>= np.uint64(bits)
    for row in range(eights, len(orders)):
        orders[row, column] = meaning[min(_word(words, place + row * bits) & mask, beyond)]


@kernel
def rows_of(
    words: NDArray[np.uint64],
    runs: Table,
    starts: NDArray[np.int64],
    meaning: NDArray[np.int32],
    tables: NDArray[np.int64],
    first: int,
    orders: NDArray[np.int32],
) -> bool:
    """Fill `orders` with the rows from `first` on; True if every row lists each index below the width.

    Column j has the runs from `starts[j]` to before `starts[j + 1]`, the last one being the end, and its values are
    looked up in `meaning[tables[j] : tables[j + 1]]`, whose last entry stands for all values beyond the others. The
    rows are filled column by column in tiles that stay in the processor's fastest memory. True spares the check.
    """
    rows, width = orders.shape
    at = np.empty(width, np.int64)
    for column in range(width):
        at[column] = _run_at(runs, starts[column], starts[column + 1] - 1, first)
    complete = True
    for begin in range(0, rows, _TILE):
        tile = orders[begin : begin + _TILE]
        for column in range(width):
            table = meaning[tables[column] : tables[column + 1]]
            row, last = first + begin, first + begin + len(tile)
            while row < last:
                run = at[column]
                stop = min(last, runs[run + 1, FIRST])
                place, bits = runs[run, PLACE], runs[run, BITS]
                part = tile[row - first - begin : stop - first - begin]
                if place < 0:
                    part[:, column] = table[min(-1 - place, len(table) - 1)]
                else:
                    _unpack(words, place + (row - runs[run, FIRST]) * bits, bits, table, part, column)
                at[column] += np.int64(stop == runs[run + 1, FIRST])
                row = stop
        complete = complete and 0 < width <= 64 and all_complete(tile)
    return complete
