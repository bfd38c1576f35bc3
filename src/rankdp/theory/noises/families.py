"""Laplace and Gaussian noise, and the sum of both: everything in closed form.

A score that was estimated from data and then privatized carries a normal error plus Laplace noise. With Z ~ N(0, t^2)
and L Laplace of rate r (scale 1/r), A = exp(r^2 t^2/2 - r x) Phi(x/t - r t) and B the same at -x,

    P(Z + L > x) = G(r, x) = Q(x/t) + (A - B)/2.

A difference L - L' of two such has survival (1/2 + r x/4) e^(-r x) = S - (r/2) dS/dr where S = e^(-r x)/2 is that of L.
Hence P(Z + L - L' > x) = G - (r/2) dG/dr, and dG/dr = ((r t^2 - x) A - (r t^2 + x) B)/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rankdp.checks import share
from rankdp.errors import Unsupported
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.theory.quadrature import boundary, excess_table
from rankdp.types import Floats

ROOT = math.sqrt(2.0)


@dataclass(frozen=True)
class Laplace(ScoreNoise):
    """Laplace noise of variance one: density ``exp(-sqrt(2) |x|) / sqrt(2)``, scale b = 1/sqrt(2)."""

    name: ClassVar[str] = "laplace"

    def log_density(self, x: ArrayLike) -> Floats:
        """``-sqrt(2) |x| - log(2)/2``."""
        return np.asarray(-ROOT * np.abs(np.asarray(x, dtype=float)) - math.log(2) / 2)

    def _tail(self, size: Floats) -> Floats:
        return np.asarray(np.exp(-ROOT * size) / 2)

    def _tail_quantile(self, tail: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(2 * tail) / ROOT)

    def _tail_excess(self, size: Floats) -> Floats:
        return np.asarray(np.exp(-ROOT * size) / (2 * ROOT))

    def difference_survival(self, d: ArrayLike) -> Floats:
        """(1/2 + a/4) exp(-a) with a = sqrt(2) d: the integral of (78)."""
        a = ROOT * np.asarray(d, dtype=float)
        return np.asarray((0.5 + a / 4) * np.exp(-a))

    @property
    def mean_difference(self) -> float:
        """3/(2 sqrt(2)), (79)."""
        return 3 / (2 * ROOT)

    def _renyi(self, alpha: float, shift: float) -> float:
        """By (27), t = sqrt(2) shift: t + log(1 - (1 - e^(-(2 alpha - 1) t)) (alpha-1)/(2 alpha-1)) / (alpha-1)."""
        t = ROOT * shift
        if alpha == math.inf:
            return t
        if alpha == 1:
            return t + math.expm1(-t)
        return t + math.log1p((alpha - 1) / (2 * alpha - 1) * math.expm1(-(2 * alpha - 1) * t)) / (alpha - 1)

    def _delta(self, epsilon: float, shift: float) -> float:
        """1 - exp((eps - sqrt(2) shift)/2) where that is positive."""
        return -math.expm1((epsilon - ROOT * shift) / 2)

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """eps/sqrt(2) at alpha = inf, (30); numerically below, as Remark 4.6 says."""
        return epsilon / ROOT if alpha == math.inf else super().largest_shift(alpha, epsilon)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(rng.laplace(0, 1 / ROOT, shape))


@dataclass(frozen=True)
class Gaussian(ScoreNoise):
    """Standard normal noise."""

    name: ClassVar[str] = "gaussian"

    def log_density(self, x: ArrayLike) -> Floats:
        """-x^2/2 - log(2 pi)/2."""
        return np.asarray(-np.square(np.asarray(x, dtype=float)) / 2 - math.log(2 * math.pi) / 2)

    def _tail(self, size: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr(-size))

    def _tail_quantile(self, tail: Floats) -> Floats:
        return np.asarray(-scipy.special.ndtri(tail))

    def _tail_excess(self, size: Floats) -> Floats:
        """phi(x) - x Q(x)."""
        return self.density(size) - size * self._tail(size)

    def difference_survival(self, d: ArrayLike) -> Floats:
        """Q(d/sqrt(2)): the difference has variance 2."""
        return self.survival(np.asarray(d, dtype=float) / ROOT)

    @property
    def mean_difference(self) -> float:
        """2/sqrt(pi), Section 4.3."""
        return 2 / math.sqrt(math.pi)

    def _renyi(self, alpha: float, shift: float) -> float:
        """(31); infinite at alpha = inf."""
        return alpha * shift**2 / 2

    def _delta(self, epsilon: float, shift: float) -> float:
        """Phi(r/2 - eps/r) - e^eps Phi(-r/2 - eps/r) with r = shift (Balle and Wang, 2018)."""
        more, less = scipy.special.log_ndtr([shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift]).tolist()
        return -math.exp(more) * math.expm1(epsilon + less - more)

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """sqrt(2 eps/alpha), (31)."""
        return math.sqrt(2 * epsilon / alpha)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(rng.standard_normal(shape))


@dataclass(frozen=True)
class NormalLaplace(ScoreNoise):
    """A normal error plus Laplace noise: variance one in all, the ``laplace_share`` of it from the Laplace part."""

    laplace_share: float
    name: ClassVar[str] = "normal-laplace"

    def __post_init__(self) -> None:
        share("laplace_share", self.laplace_share)

    @property
    def _normal(self) -> float:
        """The standard deviation of the normal part."""
        return math.sqrt(1 - self.laplace_share)

    @property
    def _rate(self) -> float:
        """1/b; the Laplace part has variance 2 b^2."""
        return math.sqrt(2 / self.laplace_share)

    def _log_side(self, x: Floats, deviation: float) -> Floats:
        """log A, and log B at -x."""
        bend = self._rate * deviation
        return np.asarray(bend**2 / 2 - self._rate * x + scipy.special.log_ndtr(x / deviation - bend))

    def _sides(self, x: Floats, deviation: float) -> tuple[Floats, Floats]:
        """A and B."""
        return np.exp(self._log_side(x, deviation)), np.exp(self._log_side(-x, deviation))

    def log_density(self, x: ArrayLike) -> Floats:
        """log of r (A + B)/2."""
        x, t = np.asarray(x, dtype=float), self._normal
        return np.logaddexp(self._log_side(x, t), self._log_side(-x, t)) + math.log(self._rate / 2)

    def _tail(self, size: Floats) -> Floats:
        a, b = self._sides(size, self._normal)
        return np.asarray(scipy.special.ndtr(-size / self._normal) + (a - b) / 2)

    def _tail_quantile(self, tail: Floats) -> Floats:
        """All quantiles of practical probability lie within 60 standard deviations."""
        return boundary(lambda size: self._tail(size) > tail, np.zeros_like(tail), np.full_like(tail, 60.0))

    def _tail_excess(self, size: Floats) -> Floats:
        """The normal part's own excess plus (A + B)/(2 r): minus its derivative is the survival function."""
        t, (a, b) = self._normal, self._sides(size, self._normal)
        bell = np.exp(-((size / t) ** 2) / 2) / math.sqrt(2 * math.pi)
        return np.asarray(t * bell - size * scipy.special.ndtr(-size / t) + (a + b) / (2 * self._rate))

    @cached_property
    def _excess_table(self) -> Callable[[Floats], Floats]:
        return excess_table(self.excess, math.log(1e-11), math.log(60), 0.06)

    def quick_excess(self, x: ArrayLike) -> Floats:
        """``excess`` from a table: a plan asks for it at a million places."""
        return self._excess_table(np.asarray(x, dtype=float))

    def difference_survival(self, d: ArrayLike) -> Floats:
        """G - (r/2) dG/dr with the normal parts' difference in t."""
        d, rate, t = np.asarray(d, dtype=float), self._rate, ROOT * self._normal
        a, b = self._sides(d, t)
        slope = ((rate * t**2 - d) * a - (rate * t**2 + d) * b) / 2
        return np.asarray(scipy.special.ndtr(-d / t) + (a - b) / 2 - rate / 2 * slope)

    @property
    def mean_difference(self) -> float:
        """Twice the integral of ``difference_survival``, by Gauss quadrature on stretches of half a deviation."""
        node, weight = np.polynomial.legendre.leggauss(12)
        starts = np.arange(0, 60, 0.5)[:, None]
        return float(2 * np.sum(self.difference_survival(starts + (node + 1) / 4) @ weight) / 4)

    def _renyi(self, alpha: float, shift: float) -> float:
        raise Unsupported("sampling error protects nobody: a normal-laplace error has no Rényi divergence to state")

    def _delta(self, epsilon: float, shift: float) -> float:
        raise Unsupported("sampling error protects nobody: a normal-laplace error has no delta to state")

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(rng.normal(0, self._normal, shape) + rng.laplace(0, 1 / self._rate, shape))
