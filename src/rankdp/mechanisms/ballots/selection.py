"""Only a winner, or only the first k: chosen by their exact integer scores, with no score released.

Let D be how much further one score can move than another between neighbours: the changes of all scores lie in an
interval of length D. A choice does not change when all scores move alike, so they may be taken to lie in [0, D]. Votes
for first places: D = 1 where a ballot comes or goes, 2 where one is replaced. Centred Borda scores: 2(m-1) and 4(m-1).

*Permute-and-flip* (McKenna and Sheldon 2020): in random order, an item with score q is taken with probability
e^(-eps (max - q)/D), else passed. With x_s = e^(eps q_s/D) and M the largest of them, an item r wins with probability

    P(r) = x_r times the integral over w from 0 to 1/M of the product over s other than r of (1 - w x_s).

Proof of eps: let x' come from larger scores, x <= x' <= e^eps x. P'(r) <= e^eps P(r), because x_r grows by at most
e^eps, the product falls and the range is shorter. P'(r) >= e^-eps P(r): put w = v e^-eps; the range then reaches
beyond 1/M, and v e^-eps x'_s <= v x_s. It is never worse than the exponential mechanism. Its zCDP is that of any eps-DP
mechanism, eps^2/2: it has not the bounded range to which the exponential mechanism owes its eps^2/8.

*Joint top k* (Gillenwater, Joseph, Munoz Medina and Ribero 2022): with q_(i) the i-th largest score, a sequence s of k
items loses the largest q_(i) - q_(s_i), and is released with weight e^(-eps loss/(2D)). Proof: both scores move within
[0, D], so that a loss moves by at most D: the exponential mechanism. Its range is bounded: eps^2/8-zCDP (Cesar and
Rogers 2021). Drawn exactly: e^(-a loss) is the integral of a e^(-a v) over v >= loss. So first a threshold v is drawn
with weight N(v) e^(-a v), N(v) the number of sequences of loss up to v, then one of these uniformly. Its i-th item has
n_i(v) - (i-1) choices, n_i(v) how many scores are at least q_(i) - v, because the items before it are among those. N is
constant between differences of scores, which is where the cut points are.
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
        """Of zCDP."""
        return self.epsilon**2 / self._concentrated

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP for the unit of protection."""
        return Guarantee(self.protection.protects, self.epsilon, local=False, rho=upwards(float(self.rho)))


class PermuteAndFlip(_Selection):
    """Releases one item, which has the largest score or nearly.

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


class JointTopK(_Selection):
    """Releases a sequence of k items, which are the first k or nearly.

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
        """The items that are released, the first one first.

        Parameters
        ----------
        scores
            One integer for each item, at least k of them.
        bits
            Where the choice comes from.
        """
        whole("k", self.k, 1, len(scores))
        ranked = np.argsort(-scores, kind="stable")
        falling = scores[ranked]
        losses = np.unique(np.maximum(falling[: self.k, None] - falling, 0))
        choices = [
            np.searchsorted(-falling, losses - falling[place], side="right") - place for place in range(self.k)
        ]  # by place and loss
        sequences = [math.prod(int(count[cell]) for count in choices) for cell in range(len(losses))]
        threshold = int(CutTable(self._segments(losses.tolist(), sequences)).sample(1, bits)[0])
        left = ranked.tolist()  # the items that qualify for a place come first, and so many of them are left
        chosen = [left.pop(int(uniform_below(int(count[threshold]), 1, bits)[0])) for count in choices]
        return np.array(chosen, dtype=np.int64)

    def _segments(self, losses: list[int], sequences: list[int]) -> Callable[[int], Weights]:
        """Of the thresholds from one loss to the next: N(v) times the integral of e^(-a v)."""
        rate = self.epsilon / (2 * self.spread)

        def weights(bits: int) -> Weights:
            precision = bits + max(sequences).bit_length() + 8
            ends = [exp_bounds(rate * loss, precision) for loss in losses] + [(0, 0)]
            low = [n * max(0, ends[i][0] - ends[i + 1][1]) for i, n in enumerate(sequences)]
            high = [n * (ends[i][1] - ends[i + 1][0]) for i, n in enumerate(sequences)]
            return Weights(low, high)

        return weights
