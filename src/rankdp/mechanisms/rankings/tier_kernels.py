"""Compiled loops of the mechanisms that sort items into tiers. They draw nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel
from rankdp.mechanisms.rankings.sampling_kernels import _uniform


@kernel(effort=lambda row, words, *_: 2 * len(words))
def draw_kept(
    row: int,
    words: NDArray[np.uint64],
    kept: NDArray[np.int64],
    ids: NDArray[np.int64],
    starts: NDArray[np.int64],
    firsts: NDArray[np.int64],
    cuts: NDArray[np.uint64],
    shapes: NDArray[np.int64],
    accepted: NDArray[np.uint64],
) -> tuple[int, int, bool]:
    """Write the j_b of the rows (shape, j_1..j_B) from ``row`` on, with one word per tier and one for acceptance.

    The tables come from ``PackedTables``. Returns the next row, the words used, and whether the loop stopped at an
    attempt that its words do not decide.
    """
    tiers, cursor = ids.shape[1], 0
    while row < len(kept) and cursor + tiers < len(words):
        shape, total = kept[row, 0], 0
        for tier in range(tiers):
            table, word = ids[shape, tier], words[cursor + tier]
            cell, end = starts[table], starts[table + 1]
            while end - cell > 16:
                middle = (cell + end) // 2
                cell, end = (middle, end) if cuts[middle - 1] < word else (cell, middle)
            for at in range(cell, end):  # the first cut that is not below the word, without a branch
                cell += np.int64(cuts[at] < word)
            if cuts[cell] == word:
                return row, cursor, True
            stay = shapes[shape, tier] - firsts[table] - (cell - starts[table])
            kept[row, 1 + tier] = stay
            total += stay
        word = words[cursor + tiers]
        if word >= accepted[shape, 0, total] and word <= accepted[shape, 1, total]:
            return row, cursor, True
        cursor += tiers + 1
        row += int(word < accepted[shape, 0, total])
    return row, cursor, False


@kernel(effort=1)
def deal(
    orders: NDArray[np.int32],
    kept: NDArray[np.int64],
    halves: NDArray[np.uint32],
    out: NDArray[np.int32],
    shapes: NDArray[np.int64],
) -> tuple[int, int]:
    """Keep random items of row u, j_b of them in tier b for kept[u] = (shape, j_1..j_B), and deal the others out.

    Its tiers have the sizes shapes[shape]. The kept items fill the tiers one after the other. The others are put first
    into the tiers, in random order; each kept item then swaps places with a random item of its tier so far, or with
    none, so that every tier is in random order.
    Returns rows done and halves used, as ``reinsert`` does.
    """
    rows, items = orders.shape
    tiers = shapes.shape[1]
    leaving, gone = np.empty(items, dtype=np.int32), np.empty(items, dtype=np.int32)
    staying = np.empty(items + 1, dtype=np.int32)
    cursor = 0 * rows  # a bare 0 would have the called kernels compiled twice
    for u in range(rows):
        begun = cursor
        many = items
        for tier in range(tiers):
            many -= kept[u, 1 + tier]
        for i in range(items):
            leaving[i] = i
            gone[i] = 0
        for i in range(many):
            drawn, cursor = _uniform(halves, cursor, items - i)
            if drawn < 0:
                return u, begun
            item = leaving[i + drawn]
            leaving[i + drawn] = leaving[i]
            leaving[i] = item
            gone[item] = 1
        stay = 0
        for i in range(items):  # by arithmetic and not by branches
            staying[stay] = i
            stay += 1 - gone[i]
        place, used, at = 0, 0, 0
        for tier in range(tiers):
            start, end = place, place + shapes[kept[u, 0], tier]
            filled = end - kept[u, 1 + tier]
            while place < filled:
                out[u, place] = orders[u, leaving[used]]
                place += 1
                used += 1
            while place < end:
                other = start
                if place > start:
                    drawn, cursor = _uniform(halves, cursor, place - start + 1)
                    if drawn < 0:
                        return u, begun
                    other += drawn
                out[u, place] = out[u, other]
                out[u, other] = orders[u, staying[at]]
                place += 1
                at += 1
    return rows, cursor


@kernel(effort=6)
def log_kept_sum(words: NDArray[np.int32], tiers: int, log_weight: float) -> NDArray[np.float64]:
    """log of the sum of z^|S| over all sets S, the empty one included, on which a word never falls.

    ending[b] is the sum over sets whose largest letter is b - 1 (0: none). A letter c can be added to sets whose
    largest letter is at most c. In logarithms, O(m B).
    """
    rows, items = words.shape
    sums = np.empty(rows, dtype=np.float64)
    ending = np.empty(tiers + 1, dtype=np.float64)
    for u in range(rows):
        ending[0] = 0.0
        ending[1:] = -np.inf
        for i in range(items):
            letter = words[u, i] + 1
            top = 0.0
            for b in range(letter + 1):
                top = max(top, ending[b])
            inside = 0.0
            for b in range(letter + 1):
                inside += np.exp(ending[b] - top)
            ending[letter] = np.logaddexp(ending[letter], log_weight + top + np.log(inside))
        top = ending.max()
        sums[u] = top + np.log(np.exp(ending - top).sum())
    return sums
