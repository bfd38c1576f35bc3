"""A normal error plus Laplace noise: what a score carries that was estimated from data and then privatized.

With Z ~ N(0, t^2) and L Laplace of rate r (scale 1/r), A = exp(r^2 t^2/2 - r x) Phi(x/t - r t) and B the same at -x,

    P(Z + L > x) = G(r, x) = Q(x/t) + (A - B)/2.

A difference L - L' of two such has survival (1/2 + r x/4) e^(-r x) = S - (r/2) dS/dr where S = e^(-r x)/2 is that of L.
Hence P(Z + L - L' > x) = G - (r/2) dG/dr, and dG/dr = ((r t^2 - x) A - (r t^2 + x) B)/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.contract import FloatArray, ScoreNoise


@dataclass(frozen=True)
class NormalLaplace(ScoreNoise):
    """Variance one in all, the ``laplace_share`` of it, above 0 and below 1, from the Laplace part."""

    laplace_share: float
    name: ClassVar[str] = "normal-laplace"
    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.laplace_share < 1:
            raise InputError(f"laplace_share must be above 0 and below 1, got {self.laplace_share!r}")

    @property
    def _normal(self) -> float:
        """The standard deviation of the normal part."""
        return math.sqrt(1 - self.laplace_share)

    @property
    def _rate(self) -> float:
        """1/b; the Laplace part has variance 2 b^2."""
        return math.sqrt(2 / self.laplace_share)

    def _log_side(self, x: FloatArray, deviation: float) -> FloatArray:
        """log A, and log B at -x."""
        from scipy.special import log_ndtr

        bend = self._rate * deviation
        return np.asarray(bend**2 / 2 - self._rate * x + log_ndtr(x / deviation - bend))

    def _sides(self, x: FloatArray, deviation: float) -> tuple[FloatArray, FloatArray]:
        """A and B."""
        return np.exp(self._log_side(x, deviation)), np.exp(self._log_side(-x, deviation))

    def log_density(self, x: ArrayLike) -> FloatArray:
        """log of r (A + B)/2."""
        x, t = np.asarray(x, dtype=float), self._normal
        return np.logaddexp(self._log_side(x, t), self._log_side(-x, t)) + math.log(self._rate / 2)

    def survival(self, x: ArrayLike) -> FloatArray:
        """G(r, x)."""
        from scipy.special import ndtr

        x = np.asarray(x, dtype=float)
        a, b = self._sides(x, self._normal)
        return np.asarray(ndtr(-x / self._normal) + (a - b) / 2)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """By bisection; all quantiles of practical probability lie within 60 standard deviations."""
        u = np.asarray(u, dtype=float)
        low, high = np.full(u.shape, -60.0), np.full(u.shape, 60.0)
        for _ in range(60):
            middle = (low + high) / 2
            below = self.cdf(middle) < u
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)

    def excess(self, x: ArrayLike) -> FloatArray:
        """The normal part's own excess plus (A + B)/(2 r): minus its derivative is the survival function."""
        from scipy.special import ndtr

        x, t = np.asarray(x, dtype=float), self._normal
        a, b = self._sides(x, t)
        bell = np.exp(-((x / t) ** 2) / 2) / math.sqrt(2 * math.pi)
        return np.asarray(t * bell - x * ndtr(-x / t) + (a + b) / (2 * self._rate))

    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """G - (r/2) dG/dr with the normal parts' difference in t."""
        from scipy.special import ndtr

        d, rate, t = np.asarray(d, dtype=float), self._rate, math.sqrt(2) * self._normal
        a, b = self._sides(d, t)
        slope = ((rate * t**2 - d) * a - (rate * t**2 + d) * b) / 2
        return np.asarray(ndtr(-d / t) + (a - b) / 2 - rate / 2 * slope)

    @property
    def mean_difference(self) -> float:
        """Twice the integral of ``difference_survival``, by Gauss quadrature on stretches of half a deviation."""
        node, weight = np.polynomial.legendre.leggauss(12)
        starts = np.arange(0, 60, 0.5)[:, None]
        return float(2 * np.sum(self.difference_survival(starts + (node + 1) / 4) @ weight) / 4)

    def renyi(self, alpha: float, shift: float) -> float:
        """Not a mechanism's noise: part of it is error."""
        raise Unsupported("sampling error protects nobody: a normal-laplace error has no Rényi divergence to state")

    def delta(self, epsilon: float, shift: float) -> float:
        """Not a mechanism's noise: part of it is error."""
        raise Unsupported("sampling error protects nobody: a normal-laplace error has no delta to state")

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws."""
        return np.asarray(rng.normal(0, self._normal, shape) + rng.laplace(0, 1 / self._rate, shape))
