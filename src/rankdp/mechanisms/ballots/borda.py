"""Noisy Borda scores: the centred scores of all ballots plus exact noise.

On a ballot an item scores the items below it minus the items above it (``Ballots.centred_borda``): m - 1, m - 3, …,
1 - m if the ballot is complete. The scores add up to 0, so the direction that says nothing about the order costs
nothing.

Law, delta = 0: scores + K-norm noise at the rate eps/s, where K is the permutohedron (``permutohedron``), which holds
the scores of every ballot. Neighbours differ by a point of s K: s = 1 if a ballot is added or removed, s = 2 if one is
replaced, because K = -K.

Law, delta > 0: scores + independent discrete Gaussian noise, rho-zCDP with rho = D^2/(2 sigma^2), D^2 = s^2 m (m^2 -
1)/3 the squared l2 sensitivity.

Scores are released on a grid of step 1/g, g a power of two, because noise in whole points would be too coarse at a
large epsilon. Scores and noise are then counted in steps, and s is g times as large.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.mechanisms.ballots.permutohedron import MOST_ITEMS, PermutohedronNoise
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.central import CentralNoise
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.noise import discrete_gaussian
from rankdp.privacy.zcdp import deviation_for
from rankdp.types import Floats, Longs

_FASTEST = Fraction(1, 2)  # the rate at which whole steps of the dilation cost less than a hundredth of the variance
_FINEST = 1 << 20


class NoisyBorda(CentralNoise[BallotProtection]):
    """Releases the centred Borda scores of ballots.

    ``noise_variance`` is v, such that the noise on a difference of two scores has the variance 2 v (a mean over all
    pairs). Any sum of scores with factors a that add up to 0 has the variance v norm(a)^2.

    Parameters
    ----------
    items
        The number of items, from 2 to 500.
    protection, epsilon, delta, share
        As in ``CentralNoise``; with delta 0 the noise is K-norm noise.
    """

    def __init__(
        self, items: int, protection: BallotProtection, epsilon: Real, delta: Real = 0, share: Real = 1
    ) -> None:
        super().__init__(protection, epsilon, delta, share)
        self.items = whole("items", items, 2, MOST_ITEMS)
        self.grid = 1
        while self.grid < _FINEST and self._coarse:
            self.grid *= 2

    @property
    def shape(self) -> PermutohedronNoise:
        """The K-norm noise, in steps of the grid."""
        return PermutohedronNoise(self.items, self.rate)

    @property
    def _coarse(self) -> bool:
        return self.rate > _FASTEST if self.rho is None else self.sigma < 2

    @property
    def rate(self) -> Fraction:
        """The rate of the K-norm noise, in steps of the grid."""
        return self.epsilon * self.share / (self.protection.moved * self.grid)

    @property
    def sigma(self) -> Fraction:
        """The discrete Gaussian standard deviation, in steps of the grid, rounded up."""
        assert self.rho is not None
        return deviation_for(self.protection.borda_l2_squared(self.items) * self.grid**2, self.rho * self.share)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on a score, in points."""
        steps = self.shape.variance if self.rho is None else float(self.sigma) ** 2
        return steps / self.grid**2

    @property
    def parameters(self) -> dict[str, float]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variance": self.noise_variance, "grid": 1 / self.grid, **gaussian}

    def noise(self, count: int, bits: Bits) -> Floats:
        """``count`` independent draws of the noise, one per row, in points."""
        if self.rho is None:
            steps = self.shape.sample(count, bits)
        else:
            steps = discrete_gaussian(self.sigma, count * self.items, bits).reshape(count, self.items)
        return steps / self.grid

    def sample(self, scores: Longs, bits: Bits) -> Floats:
        """The noisy scores, multiples of the grid's step.

        Parameters
        ----------
        scores
            Centred Borda scores.
        bits
            Where the noise comes from.
        """
        return np.asarray(self.samples(scores, 1, bits)[0])

    def samples(self, scores: Longs, count: int, bits: Bits) -> Floats:
        """``count`` independent releases of the same scores, one per row, for rehearsals and audits."""
        return scores + self.noise(count, bits)
