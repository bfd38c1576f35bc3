"""Rules that only count: Borda's mean ranks, Copeland's majorities, and wins (Cai, Section 3).

No model of the outcomes is needed, but for wins every item should meet the others alike: who is compared more often
wins more often. A tie is half a win for each side.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from rankdp.checks import one_of
from rankdp.data.counts import PairCounts
from rankdp.data.rankings import Rankings
from rankdp.types import Floats

Unlisted = Literal["shared", "left out"]
"""What a voter who did not list an item says about it: the mean of the ranks that are left, or nothing."""


def mean_ranks(rankings: Rankings, *, unlisted: Unlisted = "shared") -> Floats:
    """Borda's rule: each item's mean rank, 1 for the best; lower is better.

    Parameters
    ----------
    rankings
        One order for each voter, whole or partial.
    unlisted
        With ``"shared"`` the items that a voter did not list share the ranks that are left: (l + 1 + m)/2 each, after l
        listed of m items. With ``"left out"`` an item's mean is over the voters who listed it, NaN if none did.

    Returns
    -------
    Floats
        One mean for each item.
    """
    one_of("unlisted", unlisted, get_args(Unlisted))
    orders, m = rankings.orders, len(rankings.items)
    listed = orders >= 0
    items = orders[listed]
    twice = 2 * np.broadcast_to(np.arange(1, orders.shape[1] + 1), orders.shape)[listed]
    if unlisted == "left out":
        with np.errstate(invalid="ignore"):
            means: Floats = np.bincount(items, twice, m) / (2 * np.bincount(items, minlength=m))
            return means
    lengths = rankings.lengths.astype(np.int64)
    shared = lengths + 1 + m
    # every voter gives every item the shared rank, and those that are listed are then corrected
    corrections = np.bincount(items, twice - np.repeat(shared, lengths), m).astype(np.float64)
    return (int(shared.sum()) + corrections) / (2 * len(rankings))


def wins(counts: PairCounts) -> Floats:
    """Each item's wins, exact, a tie as a half.

    Parameters
    ----------
    counts
        How often each item beat each other item.
    """
    return counts.half_wins / 2


def majorities(counts: PairCounts) -> Floats:
    """Copeland's own rule: against how many others each item won more often than it lost, an even score as a half.

    Parameters
    ----------
    counts
        How often each item beat each other item.
    """
    lead = np.sign(counts.half_wins_first - counts.half_wins_second) + 1
    m = len(counts.items)
    halves = np.bincount(counts.first, lead, m).astype(np.float64) + np.bincount(counts.second, 2 - lead, m)
    return halves / 2
