"""Algorithm 1 of Xu, Sun and Cheng by one call, with the paper's parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankdp.data.rankings import Rankings
from rankdp.errors import InputError
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.release import Release
from rankdp.publish.privatize import privatize


def algorithm1(
    rankings: Rankings | ArrayLike, epsilon: Real | Iterable[Real], *, bits: Bits | None = None
) -> Release[Any]:
    """Synthetic rankings by Algorithm 1: Mallows' model around each ranking, q = exp(epsilon/(m-1)) per pair in order.

    Guaranteed: epsilon-ranking DP (Definition 3) for every row, exactly; the draw uses integers only. It protects one
    item's position, so two rankings that differ everywhere are told apart by up to exp(m epsilon/2), which the
    guarantee states as ``whole_ranking_epsilon``.

    Not guaranteed: that majorities survive. Theorem 1(1) holds for one ranking and fails for a population
    (``xu/erratum-theorem1``); ``rankdp.aggregate`` undoes the noise.

    Parameters
    ----------
    rankings
        ``Rankings``, or an array in the paper's notation: one row per user, entry i the rank of item i, 1 the best.
    epsilon
        One for all, or one per row (the epsilon_u of Section 5.2).
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.

    Returns
    -------
    Release
        ``Rankings``, or ranks as an array where an array was given.
    """
    if isinstance(rankings, Rankings):
        return privatize(rankings, epsilon, mechanism="kendall", bits=bits)
    ranks = np.atleast_2d(np.asarray(rankings))
    for row, one in enumerate(ranks, 1):
        if sorted(one.tolist()) != list(range(1, len(one) + 1)):
            raise InputError(f"rankings must have each rank from 1 to {len(one)} once per row, got {one} in row {row}")
    names = [str(item + 1) for item in range(ranks.shape[1])]
    release = privatize(Rankings.from_ranks(ranks, items=names), epsilon, mechanism="kendall", bits=bits)
    drawn = np.argsort(release.value.orders, axis=1) + 1
    return Release(drawn.reshape(np.shape(rankings)), release.guarantee, release.provenance)
