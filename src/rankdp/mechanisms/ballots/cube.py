"""Noisy margins of a few pairs: each ballot adds -1, 0 or 1 to every one of them, so it moves them within a cube.

Pairs are chosen beforehand, or from what was released before. With k of them K = [-1, 1]^k; for pairs without a cycle,
as neighbours in an order are, every corner is some ballot's, and no additive noise that is eps-DP fits better (Hardt
and Talwar 2010). The squared l2 sensitivity is k s^2. The rest is that of ``shaped``.

*Law.* Z_t are the integer points of {-t..t-1}^k, (2t)^k of them. Draw t >= 1 with weight t^k e^(-rate t), a uniform
point of Z_t, and a sign. With tau(x) the least t with x in Z_t,

    P(x) = sum over t >= tau(x) of c e^(-rate t), averaged over x and -x,    proportional to
    e^(-rate tau(x)) + e^(-rate tau(-x)).

*Proof of eps.* A change d of the counts has entries of at most s, so Z_t + d lies in Z_(t+s) and tau changes by at most
s; rate s = eps.

*Variance.* A uniform number from {-t..t-1} has the mean square t^2/3 + 1/6. For a small rate t is nearly gamma
distributed, and the variance (k+1)(k+2) s^2/(3 eps^2): a sixth of that of Laplace noise on many pairs, 2 k^2 s^2/eps^2.
"""

from __future__ import annotations

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.permutohedron import draw_below, draw_dilations, mean_squared_dilation
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.shaped import ShapedNoise
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.types import Longs

MOST_PAIRS = 200
_LARGEST = 1 << 52


class CubeNoise:
    """Integer vectors with P(x) proportional to e^(-rate tau(x)) + e^(-rate tau(-x)).

    Parameters
    ----------
    numbers
        k, from 1 to 200.
    rate
        Epsilon over s, where neighbours' numbers differ by at most s each.
    """

    def __init__(self, numbers: int, rate: Real) -> None:
        self.numbers, self.rate = whole("numbers", numbers, 1, MOST_PAIRS), positive(rate, "rate")
        if self.numbers / self.rate > _LARGEST:
            raise InputError(f"epsilon is too small for {numbers} pairs: noise at the rate {rate!s} exceeds 52 bits")

    def sample(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws, one a row."""
        dilations = draw_dilations(self.numbers, self.rate, count, bits)
        inside = draw_below(np.repeat(2 * dilations, self.numbers), bits).reshape(count, self.numbers)
        drawn = inside - dilations[:, None]
        return np.where((bits.words(count) & np.uint64(1)).astype(np.bool_)[:, None], drawn, -drawn)

    @property
    def variance(self) -> float:
        """Of each number."""
        return mean_squared_dilation(self.numbers, self.rate) / 3 + 1 / 6


def cube_of(points: Longs) -> Longs:
    """tau(x) for each row x.

    Parameters
    ----------
    points
        Integers along the last axis.
    """
    return np.asarray(np.maximum(points + 1, -points).max(axis=-1))


class ChosenMargins(ShapedNoise):
    """Releases the margins of some pairs.

    Parameters
    ----------
    pairs
        How many, from 1 to 200.
    protection, epsilon, delta, share
        As for ``ShapedNoise``.
    """

    def __init__(
        self, pairs: int, protection: BallotProtection, epsilon: Real, delta: Real = 0, share: Real = 1
    ) -> None:
        super().__init__(whole("pairs", pairs, 1, MOST_PAIRS), protection, epsilon, delta, share)

    @property
    def shape(self) -> CubeNoise:
        """Noise in the cube."""
        return CubeNoise(self.items, self.rate)

    @property
    def l2_squared(self) -> int:
        """How far neighbours' margins can be apart in squared l2."""
        return self.protection.chosen_l2_squared(self.items)
