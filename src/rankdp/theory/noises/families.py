"""Laplace and Gaussian noise: everything in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.theory.noises.contract import FloatArray, ScoreNoise, check_alpha, check_epsilon, check_shift

ROOT = math.sqrt(2.0)


@dataclass(frozen=True)
class Laplace(ScoreNoise):
    """Laplace noise of variance one: density ``exp(-sqrt(2) |x|) / sqrt(2)``, scale b = 1/sqrt(2)."""

    name: ClassVar[str] = "laplace"
    log_concave: ClassVar[bool] = True

    def log_density(self, x: ArrayLike) -> FloatArray:
        """``-sqrt(2) |x| - log(2)/2``."""
        return np.asarray(-ROOT * np.abs(np.asarray(x, dtype=float)) - math.log(2) / 2)

    def survival(self, x: ArrayLike) -> FloatArray:
        """exp(-sqrt(2) x)/2 above 0."""
        x = np.asarray(x, dtype=float)
        half = np.exp(-ROOT * np.abs(x)) / 2
        return np.asarray(np.where(x > 0, half, 1 - half))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """-log(2 (1-u))/sqrt(2) above the median."""
        u = np.asarray(u, dtype=float)
        tail = np.minimum(u, 1 - u)
        with np.errstate(divide="ignore"):
            return np.asarray(np.sign(0.5 - u) * np.log(2 * tail) / ROOT)

    def excess(self, x: ArrayLike) -> FloatArray:
        """exp(-sqrt(2) x)/(2 sqrt(2)) above 0; E(N-x)+ - E(N-x)- = -x gives the rest."""
        x = np.asarray(x, dtype=float)
        return np.asarray(np.exp(-ROOT * np.abs(x)) / (2 * ROOT) + np.maximum(-x, 0))

    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """(1/2 + a/4) exp(-a) with a = sqrt(2) d: the integral of (78)."""
        a = ROOT * np.asarray(d, dtype=float)
        return np.asarray((0.5 + a / 4) * np.exp(-a))

    @property
    def mean_difference(self) -> float:
        """3/(2 sqrt(2)), (79)."""
        return 3 / (2 * ROOT)

    def renyi(self, alpha: float, shift: float) -> float:
        """By (27), t = sqrt(2) shift: t + log(1 - (1 - e^(-(2 alpha - 1) t)) (alpha-1)/(2 alpha-1)) / (alpha-1)."""
        alpha, t = check_alpha(alpha), ROOT * check_shift(shift)
        if alpha == math.inf:
            return t
        if alpha == 1:
            return t + math.expm1(-t)
        return t + math.log1p((alpha - 1) / (2 * alpha - 1) * math.expm1(-(2 * alpha - 1) * t)) / (alpha - 1)

    def delta(self, epsilon: float, shift: float) -> float:
        """1 - exp((eps - sqrt(2) shift)/2) where that is positive."""
        return max(0.0, -math.expm1((check_epsilon(epsilon) - ROOT * check_shift(shift)) / 2))

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """eps/sqrt(2) at alpha = inf, (30); numerically below, as Remark 4.6 says."""
        return epsilon / ROOT if alpha == math.inf else super().largest_shift(alpha, epsilon)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws."""
        return np.asarray(rng.laplace(0, 1 / ROOT, shape))


@dataclass(frozen=True)
class Gaussian(ScoreNoise):
    """Standard normal noise."""

    name: ClassVar[str] = "gaussian"
    log_concave: ClassVar[bool] = True

    def log_density(self, x: ArrayLike) -> FloatArray:
        """-x^2/2 - log(2 pi)/2."""
        return np.asarray(-np.square(np.asarray(x, dtype=float)) / 2 - math.log(2 * math.pi) / 2)

    def survival(self, x: ArrayLike) -> FloatArray:
        """The Q function."""
        from scipy.special import ndtr

        return np.asarray(ndtr(-np.asarray(x, dtype=float)))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """The probit."""
        from scipy.special import ndtri

        return np.asarray(ndtri(u))

    def excess(self, x: ArrayLike) -> FloatArray:
        """phi(x) - x Q(x)."""
        return self.density(x) - np.asarray(x, dtype=float) * self.survival(x)

    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """Q(d/sqrt(2)): the difference has variance 2."""
        return self.survival(np.asarray(d, dtype=float) / ROOT)

    @property
    def mean_difference(self) -> float:
        """2/sqrt(pi), Section 4.3."""
        return 2 / math.sqrt(math.pi)

    def renyi(self, alpha: float, shift: float) -> float:
        """alpha shift^2 / 2, (31); infinite at alpha = inf."""
        alpha, shift = check_alpha(alpha), check_shift(shift)
        return 0.0 if shift == 0 else alpha * shift**2 / 2

    def delta(self, epsilon: float, shift: float) -> float:
        """Phi(r/2 - eps/r) - e^eps Phi(-r/2 - eps/r) with r = shift (Balle and Wang, 2018)."""
        from scipy.special import log_ndtr

        epsilon, r = check_epsilon(epsilon), check_shift(shift)
        if r == 0:
            return 0.0
        more, less = float(log_ndtr(r / 2 - epsilon / r)), epsilon + float(log_ndtr(-r / 2 - epsilon / r))
        return max(0.0, -math.exp(more) * math.expm1(less - more))

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """sqrt(2 eps/alpha), (31)."""
        return math.sqrt(2 * epsilon / alpha)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws."""
        return np.asarray(rng.standard_normal(shape))
