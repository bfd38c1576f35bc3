"""Algorithms 1 and 2 of Cai, Chakraborty and Wang by one call, with the papers' parameters.

Votes are a ``PairCounts``, ``Comparisons`` or a square matrix of wins: row i, column j says how often i beat j, a tie
is half a win for each side (Remark 3). Neighbours differ in one comparison: its outcome, or which pair it compares
(Section 2). How many comparisons there are is public.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.checks import positive as positive_number
from rankdp.checks import whole
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import COMPARISON, Guarantee
from rankdp.privacy.noise import discrete_laplace
from rankdp.privacy.release import Release, released
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import link as find_link
from rankdp_papers.cai.algorithms import best_first, paper_ridge

_FINE = 1 << 40  # grid points per unit of the noise
_TOLERANCE = 1e-10  # of the solver's gradient


def algorithm1(
    votes: Any,
    epsilon: Real,
    *,
    gamma: float | None = None,
    c0: float = 1.0,
    lam: float | None = None,
    link: str = "logistic",
    bits: Bits | None = None,
) -> Release[dict[str, float]]:
    """Scores by Algorithm 1: the minimiser of the negative log-likelihood plus ``gamma/2 |theta|^2 + w . theta``.

    w has independent Laplace entries of scale lam, by default exactly 8 kappa_1/epsilon. The ridge is gamma, by
    default c0 sqrt(d log n) with d = 2 (number of comparisons)/n in the place of the n p of Theorem 2.2.

    Guaranteed: epsilon-DP for one comparison by Proposition 2.1, for the exact minimiser with real-valued noise. The
    noise here is Laplace on a grid of 2^-40 and the solver stops at a gradient of 1e-10, so the guarantee is marked
    ``idealized``: the digits of the scores can reveal a comparison (``cai/erratum-solver``).

    Not guaranteed: anything about all comparisons of one voter. ``rankdp.rank`` closes both gaps, at half the noise.

    Parameters
    ----------
    votes
        Counts, comparisons or a matrix of wins, see the module.
    epsilon
        The privacy of one comparison.
    gamma
        The ridge, at least 4 kappa_2/epsilon.
    c0
        The constant of Theorem 2.2, which the paper leaves open; used where ``gamma`` is not given.
    lam
        The scale of the noise, at least 8 kappa_1/epsilon.
    link
        A link that satisfies (A0) to (A2).
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.

    Returns
    -------
    Release
        The score of each item. They are not centred: the ridge leaves their mean to the noise.
    """
    counts, exact, chosen = _counts(votes), positive(epsilon), find_link(link)
    items, bits = len(counts.items), bits or SecureBits()
    least_noise, least_ridge = 8 * chosen.kappa_1 / float(exact), 4 * chosen.kappa_2 / float(exact)
    scale = least_noise if lam is None else positive_number("lam", lam)
    comparisons = int(counts.comparisons.sum())
    ridge = paper_ridge(items, comparisons, positive_number("c0", c0)) if gamma is None else gamma
    if scale < least_noise:
        raise InputError(f"lam must be at least 8 kappa_1/epsilon = {least_noise:g} (Proposition 2.1), got {scale:g}")
    if positive_number("gamma", ridge) < least_ridge:
        raise InputError(f"gamma must be at least 4 kappa_2/epsilon = {least_ridge:g} (Proposition 2.1), got {ridge:g}")
    noise = discrete_laplace(Fraction(scale) * _FINE, items, bits) / _FINE
    scores = fit(counts, ridge=ridge, link=chosen, linear=noise, tolerance=_TOLERANCE).theta
    value = dict(zip(counts.items, scores.tolist(), strict=True))
    guarantee = Guarantee(COMPARISON, exact, local=False, idealized=True)
    facts = {"lambda": scale, "gamma": ridge, "link": link, "comparisons": comparisons}
    return released(value, guarantee, "Cai, Algorithm 1", facts, bits)


def algorithm2(votes: Any, epsilon: Real, k: int, *, bits: Bits | None = None) -> Release[list[str]]:
    """The top k by Algorithm 2: the k items with the most noisy wins, noise of scale 2/epsilon.

    The paper calls ranking by wins Copeland's method. In rankdp it is called ``wins``; rankdp's ``copeland`` counts
    beaten opponents, as the literature on voting does.

    Guaranteed: epsilon-DP for one comparison, exactly: discrete Laplace noise on integers (half-wins), and the choice
    of the top k only looks at noisy wins. Equal noisy wins are ordered by lot.

    Not guaranteed: anything about all comparisons of one voter, nor that the top k is found; with few comparisons per
    pair, wins reward items that were compared often (``cai/figure2``).

    Parameters
    ----------
    votes
        Counts, comparisons or a matrix of wins, see the module.
    epsilon
        The privacy of one comparison.
    k
        How many items to return.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.

    Returns
    -------
    Release
        The items, the one with the most noisy wins first.
    """
    counts, exact, bits = _counts(votes), positive(epsilon), bits or SecureBits()
    whole("k", k, 1, len(counts.items))
    wins = NoisyWins(Protection("comparison"), exact).sample(counts.half_wins, bits)
    lots = np.argsort(bits.words(len(counts.items)))
    value = [counts.items[item] for item in best_first(wins, lots)[:k]]
    guarantee = Guarantee(COMPARISON, exact, local=False)
    return released(value, guarantee, "Cai, Algorithm 2", {"k": k, "scale": float(2 / exact)}, bits)


def _counts(votes: Any) -> PairCounts:
    if isinstance(votes, PairCounts):
        return votes
    if not isinstance(votes, Comparisons):
        return PairCounts.from_dense(votes)
    if votes.steps != 1:
        raise InputError("votes must be whole comparisons here, got comparisons weighed per voter; use rankdp.rank")
    return votes.count()
