"""Copeland counting: rank items by how many comparisons they won (Cai, Section 3).

No model of the outcomes is needed, but every item should meet the others alike: who is compared more often wins more
often. A tie is half a win for each side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError


def wins(counts: PairCounts) -> NDArray[np.float64]:
    """Each item's wins, exact, a tie as a half."""
    return counts.half_wins / 2


def majorities(counts: PairCounts) -> NDArray[np.float64]:
    """Against how many others each item won more often than it lost, an even score as a half: Copeland's own rule."""
    lead = np.sign(counts.half_wins_first - counts.half_wins_second) + 1
    m = len(counts.items)
    halves = np.bincount(counts.first, lead, m).astype(np.float64) + np.bincount(counts.second, 2 - lead, m)
    return halves / 2


def order(scores: ArrayLike) -> NDArray[np.int32]:
    """The items from the highest score to the lowest; equal ones in the order of the items."""
    return np.argsort(-_scores(scores), kind="stable").astype(np.int32)


def ranks(scores: ArrayLike) -> NDArray[np.int32]:
    """1 + the number of items with a higher score: equal scores share the better rank."""
    values = _scores(scores)
    higher = len(values) - np.searchsorted(np.sort(values), values, side="right")
    return (higher + 1).astype(np.int32)


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InputError("scores must be one number for each item")
    return values
