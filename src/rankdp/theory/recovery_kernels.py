"""Compiled inner loops of the recovery formulas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

FloatArray = NDArray[np.float64]


@kernel
def in_top(above: FloatArray, k: int, out: FloatArray) -> None:
    """out[t, i] = P(at most k - 1 items other than i are above threshold t), for the first k items.

    ``above[t, j]`` is the probability that item j is above threshold t, items independent. The count among the items
    from k on is a Poisson-binomial by dynamic programming; the first k are added around each i from both sides.
    """
    thresholds, n = above.shape
    rest = np.empty(k + 1)
    tails = np.empty((k + 1, k + 1))
    for t in range(thresholds):
        rest[:] = 0.0
        rest[0] = 1.0
        for j in range(k, n):
            p = above[t, j]
            if p > 0:
                for m in range(k, 0, -1):
                    rest[m] += p * (rest[m - 1] - rest[m])
                rest[0] *= 1 - p
        total = 0.0
        for m in range(k):  # tails[k, a] = P(rest <= k - 1 - a)
            total += rest[m]
            tails[k, k - 1 - m] = total
        tails[k, k] = 0.0
        for i in range(k - 1, 0, -1):
            p = above[t, i]
            for a in range(k):
                tails[i, a] = tails[i + 1, a] + p * (tails[i + 1, a + 1] - tails[i + 1, a])
            tails[i, k] = 0.0
        rest[:] = 0.0
        rest[0] = 1.0
        for i in range(k):
            chance = 0.0
            for a in range(i + 1):
                chance += rest[a] * tails[i + 1, a]
            out[t, i] = chance
            p = above[t, i]
            for m in range(i + 1, 0, -1):
                rest[m] += p * (rest[m - 1] - rest[m])
            rest[0] *= 1 - p


@kernel
def inversions(y: FloatArray, out: NDArray[np.int64]) -> None:
    """out[r] = the number of pairs i < j with y[r, i] > y[r, j], by insertion: fast where rows are nearly sorted."""
    rows, n = y.shape
    row = np.empty(n)
    for r in range(rows):
        moved = 0
        for i in range(n):
            value = y[r, i]
            j = i
            while j > 0 and row[j - 1] > value:
                row[j] = row[j - 1]
                j -= 1
            moved += i - j
            row[j] = value
        out[r] = moved


@kernel
def order_chances(masses: FloatArray, orders: NDArray[np.int64], out: FloatArray) -> None:
    """out[o] = P(X_o0 < X_o1 < ...) for independent coordinates with these masses in the cells of a line.

    ``orders`` are all permutations in lexicographic order, so that consecutive ones share their beginnings. Within one
    cell two coordinates are in either order with chance 1/2.
    """
    n, cells = masses.shape
    partial = np.zeros((n + 1, cells))  # partial[d, c]: the first d in order, all below the middle of cell c
    partial[0, :] = 1.0
    ends = np.ones(n + 1)
    for o in range(len(orders)):
        start = 0
        if o > 0:
            while orders[o, start] == orders[o - 1, start]:
                start += 1
        for d in range(start, n):
            total = 0.0
            item = orders[o, d]
            for c in range(cells):
                step = masses[item, c] * partial[d, c]
                partial[d + 1, c] = total + step / 2
                total += step
            ends[d + 1] = total
        out[o] = ends[n]
