"""The loops that touch every cell of a large table of orders, compiled and free of the GIL.

Imported only when a table is large enough to repay the import (see `checks`). The rows are walked once, and
the *first* broken row is the one reported, so that the sentence a person reads does not depend on how the
work was cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, int64, njit
from numba import types as numba_types
from numpy.typing import NDArray

OK, REPEATED, GAP, EMPTY, OUTSIDE = range(5)
_BLOCK = 2048

types: Any = numba_types
_FIXED = types.Array(int32, 2, "C", readonly=True)
_FLAT = types.Array(int32, 1, "C", readonly=True)
_STARTS = types.Array(int64, 1, "C", readonly=True)
_REPORT = types.Tuple((int64, int64, int64))


@njit(_REPORT(_FIXED, int64, int64), cache=True, nogil=True)
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


@njit(_REPORT(_FIXED, int64), cache=True, nogil=True)
def check_rows(orders: NDArray[np.int32], items: int) -> tuple[int, int, int]:
    """(rule, row, column) of the first broken row, or (OK, -1, -1)."""
    rows, width = orders.shape
    if items <= 64:
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
                report: tuple[int, int, int] = _check_row(orders, row, items)
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


@njit(types.void(_FIXED, _FLAT, _STARTS, int32[:, ::1]), cache=True, nogil=True)
def gather(
    codes: NDArray[np.int32], meaning: NDArray[np.int32], starts: NDArray[np.int64], orders: NDArray[np.int32]
) -> None:
    """Turn columns of dictionary codes into rows of item indices.

    `codes[j]` is column j (-1 where blank) and `meaning[starts[j] + code]` the item that a code stands for;
    one entry before each start holds the -1 of a blank.
    """
    width, rows = codes.shape[0], orders.shape[0]
    for row in range(rows):
        for column in range(width):
            orders[row, column] = meaning[starts[column] + codes[column, row]]


@njit(types.void(_FIXED, int32[:, ::1]), cache=True, nogil=True)
def transpose(orders: NDArray[np.int32], columns: NDArray[np.int32]) -> None:
    """Copy rows to columns, block by block (a plain transposed copy misses the cache at every cell)."""
    rows, width = orders.shape
    for first in range(0, rows, _BLOCK):
        last = min(first + _BLOCK, rows)
        for column in range(width):
            for row in range(first, last):
                columns[column, row] = orders[row, column]
