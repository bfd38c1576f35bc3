"""Counting rankings: each row's place among all permutations (its Lehmer code), and how many rows stand at each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel


@kernel
def count_rankings(orders: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    """Add the rows of ``orders``, permutations of 0..m-1, to ``counts``; what is no permutation goes to the last cell.

    The code of a row is read from left to right: the digit of an element is how many smaller ones are still to come,
    to the mixed base m, m-1, …, 1.
    """
    rows, items = orders.shape
    for u in range(rows):
        used = 0
        code = 0
        proper = True
        for j in range(items):
            value = orders[u, j]
            if value < 0 or value >= items or (used >> value) & 1:
                proper = False
                break
            smaller = value
            below = used & ((1 << value) - 1)
            while below:
                below &= below - 1
                smaller -= 1
            code = code * (items - j) + smaller
            used |= 1 << value
        counts[code if proper else len(counts) - 1] += 1


@kernel
def count_places(orders: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    """Add to ``counts[i, j]`` how often item i stands at place j; counts[i, m] is where it does not stand at all."""
    rows, items = orders.shape
    place = np.empty(items, dtype=np.int64)
    for u in range(rows):
        place[:] = items
        for j in range(items):
            value = orders[u, j]
            if 0 <= value < items:
                place[value] = j
        for i in range(items):
            counts[i, place[i]] += 1
