"""Noisy wins (Cai, Algorithm 2): count each item's half-wins and add exact integer noise.

Law: half-wins + independent discrete Laplace noise of scale S/eps, S the l1 sensitivity of the unit of protection (4,
or 4c for a voter with at most c comparisons). Proof of eps: P(k)/P(k + v) <= exp(abs(v) eps / S) for each coordinate,
and the l1 norms of the shifts add up to at most S.

With delta > 0: discrete Gaussian noise instead, rho-zCDP with rho = D^2/(2 sigma^2), D the l2 sensitivity; better for
voters with many comparisons.

What follows is post-processing: ranking by noisy wins; and, where only outcomes are secret, fitting the Bradley-Terry
model, for which wins are sufficient once the design is public.
"""

from __future__ import annotations

import math
from fractions import Fraction

from rankdp.errors import InputError
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive, rational
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for, rho_of
from rankdp.types import Longs


class NoisyWins:
    """Releases the vector of half-wins."""

    def __init__(self, protection: Protection, epsilon: Real, delta: Real = 0) -> None:
        self.protection = protection
        self.epsilon = positive(epsilon)
        self.delta = rational(delta, "delta")
        if not 0 <= self.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {delta!s}")
        self.rho = rho_of(self.epsilon, self.delta) if self.delta else None

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP, or (eps, delta)-DP, for the unit of protection."""
        rho = None if self.rho is None else float(self.rho)
        return Guarantee(self.protection.protects, self.epsilon, self.delta, local=False, rho=rho)

    @property
    def scale(self) -> Fraction:
        """The discrete Laplace scale, in half-wins."""
        return self.protection.half_win_l1 / self.epsilon

    @property
    def sigma(self) -> Fraction:
        """The discrete Gaussian standard deviation, in half-wins, rounded up."""
        assert self.rho is not None
        return deviation_for(self.protection.half_win_l2_squared, self.rho)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one item's *wins* (half-wins / 2)."""
        if self.rho is not None:
            return float(self.sigma) ** 2 / 4
        r = math.exp(-1 / self.scale)
        return 2 * r / (1 - r) ** 2 / 4

    @property
    def parameters(self) -> dict[str, float]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variance": self.noise_variance, **gaussian}

    def noise(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws of the noise, in half-wins."""
        if self.rho is not None:
            return discrete_gaussian(self.sigma, count, bits)
        return discrete_laplace(self.scale, count, bits)

    def sample(self, half_wins: Longs, bits: Bits) -> Longs:
        """The noisy half-wins: integers, possibly negative."""
        return half_wins + self.noise(len(half_wins), bits)
