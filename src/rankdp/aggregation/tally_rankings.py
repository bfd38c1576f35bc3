"""Counting and summing over synthetic rankings: one pass, tables as large as the number of pairs of items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel


@kernel
def tally_positions(orders: NDArray[np.int32], landed: NDArray[np.int64]) -> None:
    """landed[i, b] grows by the rankings that have item i at position b."""
    rows, length = orders.shape
    for u in range(rows):
        for b in range(length):
            landed[orders[u, b], b] += 1


@kernel
def tally_pairs(orders: NDArray[np.int32], scores: NDArray[np.float64], cells: NDArray[np.float64]) -> None:
    """cells[i, j] grows, for rankings with i at b1 before j at b2, by 1, scores[b1, b2] and its square."""
    rows, length = orders.shape
    for u in range(rows):
        for b1 in range(length - 1):
            first = cells[orders[u, b1]]
            for b2 in range(b1 + 1, length):
                score = scores[b1, b2]
                cell = first[orders[u, b2]]
                cell[0] += 1.0
                cell[1] += score
                cell[2] += score * score
