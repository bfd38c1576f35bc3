"""The loops that touch every cell of a large table of orders, compiled on first use and free of the GIL.

Imported only when a table is large enough to repay the import (see `checks`). The rows are walked once, and
the *first* broken row is the one reported, so that the sentence a person reads does not depend on how the
work was cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

OK, REPEATED, GAP, EMPTY, OUTSIDE = range(5)
_BLOCK = 2048


@kernel
def _check_row(orders: NDArray[np.int32], row: int, items: int) -> tuple[int, int, int]:
    """One row, rule by rule: the slow way, which knows what to say."""
    ended = False
    for column in range(orders.shape[1]):
        item = orders[row, column]
        if item == -1:
            ended = True
            continue
        if item < 0 or item >= items:
            return OUTSIDE, row, column
        if ended:
            return GAP, row, column
        if items <= 64:
            for before in range(column):
                if orders[row, before] == item:
                    return REPEATED, row, column
    if orders.shape[1] == 0 or orders[row, 0] == -1:
        return EMPTY, row, 0
    return OK, -1, -1


@kernel
def _all_bits(width: int) -> np.uint64:
    """A word with the lowest `width` bits set, for 1 to 64 of them."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width)


@kernel
def all_complete(orders: NDArray[np.int32]) -> bool:
    """Whether each row, of 1 to 64 cells, lists every index below its width: that many bits, and none beyond."""
    rows, width = orders.shape
    every = _all_bits(width)
    for row in range(rows):
        seen, union = np.uint64(0), np.uint32(0)
        for column in range(width):
            item = orders[row, column]
            seen |= np.uint64(1) << (np.uint64(item) & np.uint64(63))
            union |= np.uint32(item)
        if seen != every or union >= 64:
            return False
    return True


@kernel
def check_rows(orders: NDArray[np.int32], items: int) -> tuple[int, int, int]:
    """(rule, row, column) of the first broken row, or (OK, -1, -1)."""
    rows, width = orders.shape
    if items <= 64:
        if 0 < width == items and all_complete(orders):
            return OK, -1, -1
        for row in range(rows):
            # no branches: a set of bits, the bits met twice, and whether any index lies outside 0..items-1
            seen, twice, odd = np.uint64(0), np.uint64(0), 0
            for column in range(width):
                item = orders[row, column]
                bit = np.uint64(1) << (np.uint64(item) & np.uint64(63))
                twice |= seen & bit
                seen |= bit
                odd |= int(np.uint32(item) >= np.uint32(items))
            if twice or odd or width == 0:
                report = _check_row(orders, row, items)
                if report[0] != OK:
                    return report
        return OK, -1, -1
    last_seen = np.full(items, -1, np.int64)
    for row in range(rows):
        report = _check_row(orders, row, items)
        end = report[2] if report[0] != OK else width
        for column in range(end):
            item = orders[row, column]
            if item < 0:
                break
            if last_seen[item] == row:
                return REPEATED, row, column
            last_seen[item] = row
        if report[0] != OK:
            return report
    return OK, -1, -1


@kernel
def gather(
    codes: NDArray[np.int32], meaning: NDArray[np.int32], starts: NDArray[np.int64], orders: NDArray[np.int32]
) -> bool:
    """Turn columns of dictionary codes into rows of item indices; True if every row lists each index below the width.

    `codes[j]` is column j (-1 where blank) and `meaning[starts[j] + code]` the item that a code stands for;
    one entry before each start holds the -1 of a blank. True spares the check; False says nothing.
    """
    width, rows = codes.shape[0], orders.shape[0]
    every = _all_bits(width) if 1 <= width <= 64 else np.uint64(0)
    complete = bool(every != 0)
    for row in range(rows):
        seen, union = np.uint64(0), np.uint32(0)
        for column in range(width):
            item = meaning[starts[column] + codes[column, row]]
            orders[row, column] = item
            seen |= np.uint64(1) << (np.uint64(item) & np.uint64(63))
            union |= np.uint32(item)
        complete &= bool(seen == every and union < 64)
    return complete


@kernel
def transpose(orders: NDArray[np.int32], columns: NDArray[np.int32]) -> None:
    """Copy rows to columns, block by block (a plain transposed copy misses the cache at every cell)."""
    rows, width = orders.shape
    for first in range(0, rows, _BLOCK):
        last = min(first + _BLOCK, rows)
        for column in range(width):
            for row in range(first, last):
                columns[column, row] = orders[row, column]


@kernel
def pack(orders: NDArray[np.int32], bits: int, packed: NDArray[np.uint32]) -> bool:
    """Write each column's values one after the other, `bits` bits each and the lowest first, into a row of `packed`.

    All columns fill their words in step, so that the inner loops run over the cells of one row, side by side in
    memory. A value whose bits cross the end of a word continues in the next one. False if a row ends in a blank.
    """
    rows, width = orders.shape
    held = np.zeros(width, np.uint32)
    filled, word, listed = 0, 0, True
    for row in range(rows):
        for column in range(width):
            held[column] |= np.uint32(orders[row, column]) << np.uint32(filled)
        listed &= orders[row, width - 1] >= 0
        filled += bits
        if filled >= 32:
            filled -= 32
            for column in range(width):
                packed[column, word] = held[column]
                # two shifts, because a shift by all 32 bits is not defined
                held[column] = np.uint32(orders[row, column]) >> np.uint32(bits - filled - 1) >> np.uint32(1)
            word += 1
    if filled:
        for column in range(width):
            packed[column, word] = held[column]
    return listed
