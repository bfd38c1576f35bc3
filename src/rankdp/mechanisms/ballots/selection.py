"""Only a winner, or only the first k: chosen by their exact integer scores, with no score released.

Between neighbours the changes of all scores lie in an interval of length D. A choice does not change when all scores
move by the same amount, so the changes may be assumed to lie in [0, D]. Votes for first places: D = 1 if a ballot is
added or removed, 2 if one is replaced. Centred Borda scores: 2(m-1) and 4(m-1).

*Permute-and-flip* (McKenna and Sheldon 2020): in random order, an item with score q is chosen with probability
e^(-eps (max - q)/D), else passed. With x_s = e^(eps q_s/D) and M the largest of them, an item r wins with probability

    P(r) = x_r times the integral over w from 0 to 1/M of the product over s other than r of (1 - w x_s).

Proof of eps: let x' come from larger scores, x <= x' <= e^eps x. P'(r) <= e^eps P(r), because x_r grows by at most
e^eps, the product falls and the range is shorter. P'(r) >= e^-eps P(r): put w = v e^-eps; the range then reaches
beyond 1/M, and v e^-eps x'_s <= v x_s. It is never worse than the exponential mechanism. Its zCDP is eps^2/2, as for
any eps-DP mechanism: it lacks the bounded range that gives the exponential mechanism its eps^2/8.

*Top sets* (the canonical loss of Shekelyan and Loukides 2022, arXiv 2201.13376): the loss of a set S of k items is the
largest score outside S minus the smallest inside, or 0 if that is negative; S is released with weight
e^(-eps loss/(2D)). Proof: both scores move within [0, D], so a loss changes by at most D, and this is the exponential
mechanism. Its range is bounded: eps^2/8-zCDP (Cesar and Rogers 2021). Exact sampling: sort the scores, q_0 >= q_1 >= …
A set other than the first k has a first item j < k outside and a last item i >= k inside. Its loss is q_j - q_i. It
contains all items before j, and any k - j - 1 of the i - j - 1 items between them. So (j, i) is drawn with weight
C(i-j-1, k-j-1) e^(-eps loss/(2D)), then the items between them uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import Real, exp_bounds, positive, upwards
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import uniform_below
from rankdp.privacy.powers import Enclosure, below_exp
from rankdp.types import Floats, Longs


class _Selection:
    _concentrated: int

    def __init__(self, protection: BallotProtection, spread: int, epsilon: Real) -> None:
        self.protection, self.spread, self.epsilon = protection, whole("spread", spread, 1), positive(epsilon)

    @property
    def rho(self) -> Fraction:
        """The rho of zCDP."""
        return self.epsilon**2 / self._concentrated

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP for the unit of protection."""
        return Guarantee(self.protection.protects, self.epsilon, local=False, rho=upwards(float(self.rho)))


class PermuteAndFlip(_Selection):
    """Releases one item with the largest score, or nearly.

    Parameters
    ----------
    protection
        What is protected.
    spread
        D, in the units of the scores.
    epsilon
        The guarantee's.
    """

    _concentrated = 2

    def sample(self, scores: Longs, bits: Bits) -> int:
        """The item that is released.

        Parameters
        ----------
        scores
            One integer for each item.
        bits
            Where the choice comes from.
        """
        gaps = [int(scores.max()) - score for score in scores.tolist()]

        def exactly(item: int) -> Enclosure:
            exponent = self.epsilon * gaps[item] / self.spread
            return lambda precision: (exponent, exponent)

        exponents = np.array(gaps) * float(self.epsilon / self.spread)
        taken = below_exp(exponents, 2.0**-40 * (1 + exponents), exactly, bits)
        order = list(range(len(scores)))
        while True:  # an item of the largest score is always taken
            item = order.pop(int(uniform_below(len(order), 1, bits)[0]))
            if taken[item]:
                return item

    def probabilities(self, scores: Longs) -> Floats:
        """How likely each item is released: P(r), in floating point.

        Parameters
        ----------
        scores
            One integer for each item.
        """
        weights = np.exp((scores - scores.max()) * float(self.epsilon / self.spread))
        nodes, parts = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)  # exact for polynomials of that degree
        passed = 1 - np.outer((nodes + 1) / 2, weights)
        products = [np.delete(passed, item, axis=1).prod(axis=1) for item in range(len(scores))]
        return np.asarray(weights * (np.array(products) @ parts / 2))


class TopSet(_Selection):
    """Releases a set of k items, which are the first k or nearly.

    Parameters
    ----------
    protection
        What is protected.
    spread
        D, in the units of the scores.
    epsilon
        The guarantee's.
    k
        How many are released.
    """

    _concentrated = 8

    def __init__(self, protection: BallotProtection, spread: int, epsilon: Real, k: int) -> None:
        super().__init__(protection, spread, epsilon)
        self.k = whole("k", k, 1)

    def sample(self, scores: Longs, bits: Bits) -> Longs:
        """The indices of the released items; their order carries no information.

        Parameters
        ----------
        scores
            One integer for each item, at least k of them.
        bits
            Where the choice comes from.
        """
        k, m = whole("k", self.k, 1, len(scores)), len(scores)
        ranked = np.argsort(-scores, kind="stable")
        falling = scores[ranked].tolist()
        ends = [(outside, inside) for outside in range(k) for inside in range(k, m)]
        losses = [0, *(falling[outside] - falling[inside] for outside, inside in ends)]
        sets = [1, *(math.comb(inside - outside - 1, k - outside - 1) for outside, inside in ends)]
        cell = int(CutTable(self._weights(losses, sets)).sample(1, bits)[0])
        if cell == 0:
            return np.sort(ranked[:k])
        outside, inside = ends[cell - 1]
        between = list(range(outside + 1, inside))
        drawn = [between.pop(int(uniform_below(len(between), 1, bits)[0])) for _ in range(k - outside - 1)]
        return np.sort(ranked[[*range(outside), *drawn, inside]])

    def _weights(self, losses: list[int], sets: list[int]) -> Callable[[int], Weights]:
        """The number of sets with these ends, times e^(-eps loss/(2D))."""
        rate = self.epsilon / (2 * self.spread)

        def weights(bits: int) -> Weights:
            precision = bits + sum(sets).bit_length() + 8
            bounds = [exp_bounds(rate * loss, precision) for loss in losses]
            return Weights(
                [n * low for n, (low, _) in zip(sets, bounds, strict=True)],
                [n * high for n, (_, high) in zip(sets, bounds, strict=True)],
            )

        return weights
