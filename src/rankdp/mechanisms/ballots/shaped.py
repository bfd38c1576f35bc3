"""Counts plus exact noise whose shape is fitted to what one ballot can do; what Borda scores and chosen margins share.

Law, delta = 0: counts + K-norm noise at the rate eps/s, where K holds whatever one ballot adds to the counts, so that
neighbours differ by a point of s K: s = 1 where a ballot comes or goes, s = 2 where one is replaced, because K = -K.

Law, delta > 0: counts + independent discrete Gaussian noise, rho-zCDP with rho = D^2/(2 sigma^2), D^2 the squared l2
sensitivity.

Counts are released on a grid of step 1/g, g a power of two: at a large epsilon noise in whole steps would be too
coarse. Counts and noise are then counted in steps, and s is g times as large.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np

from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.central import CentralNoise
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.noise import discrete_gaussian
from rankdp.privacy.zcdp import deviation_for
from rankdp.types import Floats, Longs

_FASTEST = Fraction(1, 2)  # the rate at which whole steps of the dilation cost less than a hundredth of the variance
_FINEST = 1 << 20


class Shape(Protocol):
    """K-norm noise in integers at one rate."""

    def sample(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws, one a row."""

    @property
    def variance(self) -> float:
        """Of a number."""


class ShapedNoise(CentralNoise[BallotProtection]):
    """Releases so many numbers with noise; ``shape`` and ``l2_squared`` say which numbers.

    Parameters
    ----------
    numbers
        How many there are.
    protection, epsilon, delta, share
        As for ``CentralNoise``; noise is K-norm noise where delta is 0.
    """

    def __init__(
        self, numbers: int, protection: BallotProtection, epsilon: Real, delta: Real = 0, share: Real = 1
    ) -> None:
        super().__init__(protection, epsilon, delta, share)
        self.items = numbers
        self.grid = 1
        while self.grid < _FINEST and self._coarse:
            self.grid *= 2

    @property
    def shape(self) -> Shape:
        """The K-norm noise, in steps of the grid."""
        raise NotImplementedError

    @property
    def l2_squared(self) -> int:
        """How far neighbours' counts can be apart in squared l2."""
        raise NotImplementedError

    @property
    def _coarse(self) -> bool:
        return self.rate > _FASTEST if self.rho is None else self.sigma < 2

    @property
    def rate(self) -> Fraction:
        """Of the K-norm noise, in steps of the grid."""
        return self.epsilon * self.share / (self.protection.moved * self.grid)

    @property
    def sigma(self) -> Fraction:
        """The discrete Gaussian standard deviation, in steps of the grid, rounded up."""
        assert self.rho is not None
        return deviation_for(self.l2_squared * self.grid**2, self.rho * self.share)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on a number, in the scale of the counts."""
        steps = self.shape.variance if self.rho is None else float(self.sigma) ** 2
        return steps / self.grid**2

    @property
    def parameters(self) -> dict[str, float]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variance": self.noise_variance, "grid": 1 / self.grid, **gaussian}

    def noise(self, count: int, bits: Bits) -> Floats:
        """``count`` independent draws of the noise, one a row, in the scale of the counts."""
        if self.rho is None:
            steps = self.shape.sample(count, bits)
        else:
            steps = discrete_gaussian(self.sigma, count * self.items, bits).reshape(count, self.items)
        return steps / self.grid

    def sample(self, counts: Longs, bits: Bits) -> Floats:
        """The noisy counts, multiples of the grid's step."""
        return np.asarray(self.samples(counts, 1, bits)[0])

    def samples(self, counts: Longs, count: int, bits: Bits) -> Floats:
        """``count`` independent releases of the same counts, one a row, for rehearsals and audits."""
        return counts + self.noise(count, bits)
