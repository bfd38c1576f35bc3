"""Uniform noise in an l_p ball: bounded, so it never meets a pure epsilon, but any delta, whatever epsilon is.

Its coordinates depend on each other (except in the cube): N = r G / (sum of ``|G_i|^p`` + E)^(1/p) with G generalised
normal and E exponential (Barthe, Guédon, Mendelson and Naor, 2005). See ``noise_radial`` for two of them at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.contract import FloatArray, ScoreNoise, check_alpha, check_epsilon, check_number, check_shift
from rankdp.theory.noises.radial import GeneralizedNormal, direction, spline_table, unit_scale
from rankdp.theory.quadrature import unit_rule


@dataclass(frozen=True)
class Ball(ScoreNoise):
    """Uniform in the l_p ball of R^n, scaled to variance one in each coordinate; p = inf is the cube.

    Coordinates depend on each other, except in the cube. No finite epsilon is ever met, but delta can be as small as
    one likes, whatever epsilon is: the volume that a shift moves out of the ball.
    """

    p: float
    n: int
    name: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        p = check_number(self.p, "p", "a number of at least 0.1 (inf for the cube)", 0.1, least=True)
        if isinstance(self.n, bool) or not isinstance(self.n, (int, np.integer)) or self.n < 2:
            raise InputError(f"n must be a whole number of at least 2, got {self.n!r}")
        if 100 < p < math.inf:
            raise InputError(f"p must be at most 100 or inf, got {self.p!r}")
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "n", int(self.n))

    @property
    def log_concave(self) -> bool:  # type: ignore[override]
        """p >= 1: Theorem 3.3 covers the joint density."""
        return self.p >= 1

    @property
    def independent(self) -> bool:  # type: ignore[override]
        """Only the cube."""
        return self.p == math.inf

    @cached_property
    def radius(self) -> float:
        """r, from E[N1^2] = r^2 Gamma(3/p) Gamma(n/p + 1) / (Gamma(1/p) Gamma((n+2)/p + 1)) = 1."""
        if self.independent:
            return math.sqrt(3)
        p, n = self.p, self.n
        ratio = math.lgamma(1 / p) + math.lgamma((n + 2) / p + 1) - math.lgamma(3 / p) - math.lgamma(n / p + 1)
        return math.exp(ratio / 2)

    def _shape(self) -> tuple[float, float]:
        """``|N1/r|^p ~ Beta(1/p, (n-1)/p + 1)``."""
        return (1 / self.p, (self.n - 1) / self.p + 1)

    def log_density(self, x: ArrayLike) -> FloatArray:
        """``log p - log(2 r B(a, b)) + (b - 1) log(1 - |x/r|^p)`` with a = 1/p, b = (n-1)/p + 1."""
        size = np.abs(np.asarray(x, dtype=float)) / self.radius
        if self.independent:
            return np.where(size <= 1, -math.log(2 * self.radius), -np.inf)
        a, b = self._shape()
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        with np.errstate(divide="ignore"):
            shape = (b - 1) * np.log1p(-(np.minimum(size, 1) ** self.p))
        return np.where(size < 1, math.log(self.p / (2 * self.radius)) - log_beta + shape, -np.inf)

    def survival(self, x: ArrayLike) -> FloatArray:
        """Half of an incomplete beta function above 0."""
        from scipy.special import betaincc

        x = np.asarray(x, dtype=float)
        size = np.minimum(np.abs(x) / self.radius, 1)
        half = (1 - size) / 2 if self.independent else betaincc(*self._shape(), size**self.p) / 2
        return np.asarray(np.where(x > 0, half, 1 - half))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """r times the (1/p)-th power of a Beta quantile."""
        from scipy.special import betainccinv

        u = np.asarray(u, dtype=float)
        tail = 2 * np.minimum(u, 1 - u)
        size = 1 - tail if self.independent else betainccinv(*self._shape(), tail) ** (1 / self.p)
        return np.asarray(np.sign(u - 0.5) * self.radius * size)

    def excess(self, x: ArrayLike) -> FloatArray:
        """From the partial mean r B(2/p, b)/(2 B(1/p, b)) of the size, less x P(N > x)."""
        from scipy.special import betaincc

        x = np.asarray(x, dtype=float)
        size = np.minimum(np.abs(x) / self.radius, 1)
        if self.independent:
            return np.asarray(self.radius * (1 - size) ** 2 / 4 + np.maximum(-x, 0))
        a, b = self._shape()
        mean = math.exp(math.lgamma(2 * a) + math.lgamma(a + b) - math.lgamma(2 * a + b) - math.lgamma(a)) / 2
        above = mean * betaincc(2 * a, b, size**self.p) - size * betaincc(a, b, size**self.p) / 2
        return np.asarray(self.radius * np.maximum(above, 0) + np.maximum(-x, 0))

    @cached_property
    def _reach(self) -> float:
        """The largest difference of two coordinates."""
        return self.radius * (2 ** (1 - 1 / self.p) if self.p > 1 else 1.0)

    def _difference_exact(self, d: FloatArray) -> FloatArray:
        """The integral of ``noise_radial``, each part only over the v where the radius can reach d."""
        from scipy.special import betaincc

        x, rest, weights = unit_rule()
        shape = (2 / self.p, (self.n - 2) / self.p + 1)
        total = np.zeros_like(d)
        for sign in (1, -1):
            low, high = self._range(d / self.radius, sign)
            width = high - low
            v = low[:, None] + width[:, None] * x
            g, c = direction(self.p, v)
            lean = 1 + v if sign > 0 else (1 - high)[:, None] + width[:, None] * rest
            ratio = np.minimum(d[:, None] / (self.radius * np.maximum(lean * c, 1e-300)), 1)
            total += width * np.sum(weights * g * betaincc(*shape, ratio**self.p), axis=1)
        return total / 2

    def _range(self, ratio: FloatArray, sign: int) -> tuple[FloatArray, FloatArray]:
        """The v in (0, 1) with (1 + sign v) c(v) > ratio: an interval from 0, or to 1 where the left side rises."""
        rising = sign > 0 and self.p > 1

        def value(v: FloatArray) -> FloatArray:
            return np.asarray((1 + sign * v) * np.exp(-np.log1p(v**self.p) / self.p))

        low, high = np.zeros_like(ratio), np.ones_like(ratio)
        for _ in range(60):
            middle = (low + high) / 2
            go_right = (value(middle) > ratio) != rising
            low, high = np.where(go_right, middle, low), np.where(go_right, high, middle)
        return (low, np.ones_like(low)) if rising else (np.zeros_like(high), high)

    @cached_property
    def _difference_table(self) -> tuple[float, float, Any]:
        # The middle of the range in the logit of d/reach: smooth at both ends.
        low, high = -30.0, 30.0

        def tail(z: FloatArray) -> FloatArray:
            return self._difference_exact(self._reach / (1 + np.exp(-z)))

        return low, high, spline_table(tail, low, high, min(0.05, 0.3 / self.p))

    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """P(N1 - N2 > d) for two coordinates of one draw, tabulated once; triangular for the cube."""
        d = np.asarray(d, dtype=float)
        ratio = np.clip(d / self._reach, 0, 1) if not self.independent else np.clip(d / (2 * self.radius), 0, 1)
        if self.independent:
            return np.asarray((1 - ratio) ** 2 / 2)
        low, high, spline = self._difference_table
        with np.errstate(divide="ignore"):
            z = np.log(ratio) - np.log1p(-ratio)
        inside = np.exp(spline(np.clip(z, low, high))) / 2
        return np.where(ratio >= 1, 0.0, inside)

    def degree_factor(self, k: int) -> float:
        """E of a k-homogeneous function of N, over its value for the generalised normal with independent coordinates.

        N is r/h times that vector over S^(1/p), and their ratio is independent of S ~ Gamma(n/p + 1).
        """
        if self.independent:
            raise Unsupported("degree_factor is for finite p, got the cube")
        moment = math.lgamma(self.n / self.p + 1) - math.lgamma((self.n + k) / self.p + 1)
        return (self.radius / unit_scale(self.p)) ** k * math.exp(moment)

    @property
    def mean_difference(self) -> float:
        """That of the generalised normal times ``degree_factor(1)``; 2/sqrt(3) for the cube."""
        if self.independent:
            return 2 / math.sqrt(3)
        return GeneralizedNormal(self.p).mean_difference * self.degree_factor(1)

    def renyi(self, alpha: float, shift: float) -> float:
        """Infinite for any shift: part of the ball moves to where there was none."""
        check_alpha(alpha)
        return math.inf if check_shift(shift) > 0 else 0.0

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """0: see ``renyi``."""
        return 0.0

    def delta(self, epsilon: float, shift: float) -> float:
        """``P(|N1| <= shift/2)``, whatever epsilon: the volume that the shift moves out of the ball."""
        check_epsilon(epsilon)
        return float(self.cdf(check_shift(shift) / 2) - self.survival(check_shift(shift) / 2))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draws whose last axis is the vector: ``r G / (sum of |G|^p + E)^(1/p)``, E exponential."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.independent:  # any shape will do
            return np.asarray(rng.uniform(-self.radius, self.radius, shape))
        if not shape or shape[-1] != self.n:
            raise InputError(f"shape must end in n = {self.n}, the ball's dimension, got {shape!r}")
        power = rng.standard_gamma(1 / self.p, shape)
        total = power.sum(axis=-1, keepdims=True) + rng.standard_exponential((*shape[:-1], 1))
        size = self.radius * (power / total) ** (1 / self.p)
        return np.asarray(np.where(rng.random(shape) < 0.5, -size, size))
