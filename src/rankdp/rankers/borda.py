"""Borda's rule: rank items by the mean of the ranks that voters gave them, 1 for the best."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankdp.data.rankings import Rankings
from rankdp.errors import InputError

Unlisted = Literal["shared", "left out"]
"""What a voter who did not list an item says about it: the mean of the ranks that are left, or nothing."""


def mean_ranks(rankings: Rankings, *, unlisted: Unlisted = "shared") -> NDArray[np.float64]:
    """Each item's mean rank; lower is better.

    The items that a voter did not list share the ranks that are left: (l + 1 + m)/2 each, after l listed of m items.
    With ``unlisted="left out"`` an item's mean is over the voters who listed it, NaN if none did.
    """
    if unlisted not in ("shared", "left out"):
        raise InputError(f"unlisted must be shared or left out, got {unlisted!r}")
    orders, m = rankings.orders, len(rankings.items)
    listed = orders >= 0
    items = orders[listed]
    twice = 2 * np.broadcast_to(np.arange(1, orders.shape[1] + 1), orders.shape)[listed]
    if unlisted == "left out":
        with np.errstate(invalid="ignore"):
            means: NDArray[np.float64] = np.bincount(items, twice, m) / (2 * np.bincount(items, minlength=m))
            return means
    lengths = rankings.lengths.astype(np.int64)
    shared = lengths + 1 + m
    # every voter gives every item the shared rank, and then puts those right that are listed
    corrections = np.bincount(items, twice - np.repeat(shared, lengths), m).astype(np.float64)
    return (int(shared.sum()) + corrections) / (2 * len(rankings))
