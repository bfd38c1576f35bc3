"""The loops that touch every cell of a large table of orders, compiled on first use and free of the GIL.

Imported only when a table is large enough to repay the import (see `orders`). The rows are walked once, and
the *first* broken row is the one reported, so that the sentence a person reads does not depend on how the
work was cut; which rule it breaks is for `orders` to say.
"""

from __future__ import annotations

import numpy as np

from rankdp.jit import kernel
from rankdp.types import Ints, Longs


@kernel
def _all_bits(width: int) -> np.uint64:
    """A word with the lowest `width` bits set, for 1 to 64 of them."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width)


@kernel
def all_complete(orders: Ints) -> bool:
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
def first_broken(orders: Ints, items: int) -> int:
    """The first row that is empty, repeats an item, lists one after a blank, or holds an index outside; or -1."""
    rows, width = orders.shape
    if 0 < width == items <= 64 and all_complete(orders):
        return -1
    last_seen = np.full(items, -1, np.int64)
    for row in range(rows):
        ended, broken = False, width == 0 or orders[row, 0] < 0
        for column in range(width):
            item = orders[row, column]
            if item == -1:
                ended = True
            elif ended or item < 0 or item >= items or last_seen[item] == row:
                broken = True
            else:
                last_seen[item] = row
        if broken:
            return row
    return -1


@kernel
def gather(codes: Ints, meaning: Ints, starts: Longs, orders: Ints) -> bool:
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
