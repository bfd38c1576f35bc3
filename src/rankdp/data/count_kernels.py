"""Compiled loops that count comparisons and walk over counted pairs. Sums of half-wins are exact integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Pairs = tuple[Int32, Int32, Int64, Int64]


@kernel
def first_bad_row(left: Int32, right: Int32, halves: Int8, items: int) -> int:
    """The first row with an index outside the items, an item against itself, or not 0, 1 or 2 half-wins; -1 if none."""
    for row in range(len(left)):
        i, j, half = left[row], right[row], halves[row]
        if i < 0 or j < 0 or i >= items or j >= items or i == j or half < 0 or half > 2:
            return row
    return -1


@kernel
def tally_dense(left: Int32, right: Int32, halves: Int8, items: int, table: Int64) -> int:
    """table[i * items + j] += 2^32 + half-wins of i, for the pair i < j of each row; returns the first bad row, or -1.

    One word holds how many rows and how many half-wins: enough for 2^30 rows.
    """
    one_row = np.int64(1 << 32)
    for row in range(len(left)):
        i, j, half = np.int64(left[row]), np.int64(right[row]), np.int64(halves[row])
        if i < 0 or j < 0 or i >= items or j >= items or i == j or half < 0 or half > 2:
            return row
        table[np.uint64(min(i, j) * items + max(i, j))] += one_row + (half if i < j else 2 - half)
    return -1


@kernel
def pairs_of_rows(table: Int64, items: int, first: Int32, second: Int32, ahead: Int64, behind: Int64) -> int:
    """The compared pairs of a table of `tally_dense`, in order; returns how many there are.

    Each pair is written where the next one belongs and stays there if it was compared: no branch to mispredict.
    """
    low = np.int64((1 << 32) - 1)
    k = 0
    for i in range(items):
        for j in range(i + 1, items):
            word = table[i * items + j]
            half = word & low
            first[k], second[k], ahead[k], behind[k] = i, j, half, 2 * (word >> 32) - half
            k += word != 0
    return k


@kernel
def pairs_of_dense(table: Int64, items: int) -> Pairs:
    """The compared pairs of a table whose cells hold the half-wins of the row's item over the column's, in order."""
    count = 0
    for i in range(items):
        for j in range(i + 1, items):
            count += (table[i * items + j] | table[j * items + i]) != 0
    first, second = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    ahead, behind = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    k = 0
    for i in range(items):
        for j in range(i + 1, items):
            a, b = table[i * items + j], table[j * items + i]
            first[k], second[k], ahead[k], behind[k] = i, j, a, b
            k += (a | b) != 0
    return first[:k], second[:k], ahead[:k], behind[:k]


@kernel
def deal(left: Int32, right: Int32, halves: Int8, ends: Int64, words: NDArray[np.uint32]) -> None:
    """Deal rows to their smaller item: those of item i come to lie from ends[i] to ends[i + 1].

    One word per row: the larger item and, in the two lowest bits, the half-wins of the smaller one.
    """
    ends[:] = 0
    for row in range(len(left)):
        ends[min(left[row], right[row]) + 1] += 1
    for i in range(len(ends) - 1):
        ends[i + 1] += ends[i]
    place = ends[:-1].copy()
    for row in range(len(left)):
        i, j, half = left[row], right[row], np.int32(halves[row])
        if i > j:
            i, j, half = j, i, np.int32(2) - half
        words[place[i]] = (np.uint32(j) << np.uint32(2)) | np.uint32(half)
        place[i] += 1


@kernel
def tally_dealt(
    ends: Int64, words: NDArray[np.uint32], first: Int32, second: Int32, ahead: Int64, behind: Int64
) -> int:
    """Sum the dealt rows into pairs, in order; returns how many pairs there are."""
    items = len(ends) - 1
    seen = np.zeros(items, np.int64)
    won = np.zeros(items, np.int64)
    touched = np.empty(items, np.int32)
    k = 0
    for i in range(items):
        count = 0
        for place in range(ends[i], ends[i + 1]):
            word = words[place]
            j = np.int64(word >> np.uint32(2))
            if seen[j] == 0:
                touched[count] = j
                count += 1
            seen[j] += 1
            won[j] += np.int64(word & np.uint32(3))
        if count * 16 > items - i:  # walking over all the later items is quicker than sorting
            count = 0
            for later in range(i + 1, items):
                if seen[later] != 0:
                    touched[count] = later
                    count += 1
        else:
            touched[:count].sort()
        for place in range(count):
            j = np.int64(touched[place])
            first[k], second[k], ahead[k], behind[k] = i, j, won[j], 2 * seen[j] - won[j]
            seen[j] = 0
            won[j] = 0
            k += 1
    return k


@kernel
def tally_rankings(orders: Int32, table: Int64) -> None:
    """table[i * items + j] += 2 for every ranking that lists i above j."""
    items = np.int64(np.sqrt(len(table)) + 0.5)
    rows, width = orders.shape
    for row in range(rows):
        for a in range(width):
            i = np.int64(orders[row, a])
            if i < 0:
                break
            for b in range(a + 1, width):
                j = np.int64(orders[row, b])
                if j < 0:
                    break
                table[i * items + j] += 2


@kernel
def records(first: Int32, second: Int32, ahead: Int64, behind: Int64, items: int) -> Int64:
    """Each item's half-wins in row 0 and half-losses in row 1."""
    sums = np.zeros((2, items), np.int64)
    k, pairs = 0, len(first)
    while k < pairs:
        i, won, lost = first[k], np.int64(0), np.int64(0)
        while k < pairs and first[k] == i:
            j, a, b = np.uint32(second[k]), ahead[k], behind[k]
            won += a
            lost += b
            sums[0, j] += b
            sums[1, j] += a
            k += 1
        sums[0, i] += won
        sums[1, i] += lost
    return sums


@kernel
def reached(first: Int32, second: Int32, ahead: Int64, behind: Int64, items: int, sweeps: int) -> tuple[Any, Any]:
    """How many items item 0 beats directly or through others, and how many beat it; -1 if the sweeps ran out.

    A sweep goes through the pairs in order and stops as soon as every item is reached, which in a well-mixed
    design happens after a few items.
    """
    counts = np.empty(2, np.int64)
    for side in range(2):
        marked = np.zeros(items, np.bool_)
        marked[0] = True
        count = 1
        settled = items == 1
        for _ in range(sweeps):
            before = count
            for k in range(len(first)):
                i, j = first[k], second[k]
                if marked[i] != marked[j]:
                    down, up = (ahead[k], behind[k]) if side == 0 else (behind[k], ahead[k])
                    if (marked[i] and down > 0) or (marked[j] and up > 0):
                        marked[i] = True
                        marked[j] = True
                        count += 1
                        if count == items:
                            break
            if count in (items, before):
                settled = True
                break
        counts[side] = count if settled else -1
    return counts[0], counts[1]
