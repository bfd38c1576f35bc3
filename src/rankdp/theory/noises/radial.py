"""Generalised normal noise and uniform noise in an l_p ball: the level sets of both are l_p balls.

The ball's noise is bounded, so it never meets a pure epsilon, but any delta, whatever epsilon is. Its coordinates
depend on each other (except in the cube): N = r G / (sum of ``|G_i|^p`` + E)^(1/p) with G generalised normal and E
exponential (Barthe, Guédon, Mendelson and Naor, 2005).

Two coordinates of either are R (u1, u2) with a radius R independent of the direction u on the l_p circle. With v the
ratio of the smaller to the larger of the two sizes, whose density on (0, 1) is 2g, g(v) = p (1 + v^p)^(-2/p) / B(1/p,
1/p), the difference of the coordinates is plus or minus R (1 + v) c or R (1 - v) c with c = (1 + v^p)^(-1/p), so

    P(N - N' > d) = 1/2 integral over v of g(v) [P(R > d / ((1+v) c)) + P(R > d / ((1-v) c))].

The radius has R^p/a^p ~ Gamma(2/p) for the generalised normal of scale a, and R^p/r^p ~ Beta(2/p, (n-2)/p + 1) for two
coordinates of the ball of radius r in n dimensions.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rankdp.checks import whole
from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.score_noise import ScoreNoise, check_shape
from rankdp.theory.quadrature import boundary, log_table, log_trapezoid, unit_rule
from rankdp.types import Floats


class _Radial(ScoreNoise):
    """Coordinates of which ``|N/scale|^power`` has a law of shape 1/power; two have a radius and a direction."""

    p: float

    @property
    def power(self) -> float:
        """p, or 1 for the cube."""
        return self.p if self.p < math.inf else 1.0

    @property
    @abstractmethod
    def scale(self) -> float:
        """What a coordinate is divided by."""

    @abstractmethod
    def _above(self, k: float, t: Floats) -> Floats:
        """P(T > t) for the law T of shape k/power that belongs to one coordinate."""

    @abstractmethod
    def _radius_above(self, t: Floats) -> Floats:
        """P((R/scale)^p > t)."""

    @property
    @abstractmethod
    def _mean_size(self) -> float:
        """``E|N/scale|``."""

    @property
    @abstractmethod
    def _difference_grid(self) -> tuple[float, float, float, float]:
        """First, last and width of the cells in which differences are tabulated, and the step of their quadrature."""

    _reach: float = math.inf  # the largest difference of two coordinates

    def _tail(self, size: Floats) -> Floats:
        return self._above(1, (size / self.scale) ** self.power) / 2

    def _tail_excess(self, size: Floats) -> Floats:
        """``E|N|/2`` P(T_2 > t) - x P(N > x), t = (x/scale)^power and T_2 of twice the shape."""
        t = (size / self.scale) ** self.power
        return np.maximum(self.scale * self._mean_size * self._above(2, t) - size * self._above(1, t), 0) / 2

    def _range(self, d: Floats, sign: int) -> tuple[Floats, Floats]:
        """The v for which the radius can reach d."""
        return np.zeros_like(d), np.ones_like(d)

    def _difference(self, d: Floats) -> Floats:
        """The integral of the module's docstring for each d."""
        x, rest, weights = unit_rule(self._difference_grid[3])
        log_beta = 2 * math.lgamma(1 / self.p) - math.lgamma(2 / self.p)
        total = np.zeros_like(d)
        for sign in (1, -1):
            low, high = self._range(d, sign)
            width = high - low
            v = low[:, None] + width[:, None] * x
            log_c = -np.log1p(v**self.p) / self.p
            lean = 1 + v if sign > 0 else (1 - high)[:, None] + width[:, None] * rest
            t = np.exp(np.minimum(self.p * (np.log(d / self.scale)[:, None] - np.log(lean) - log_c), 700))
            total += width * ((np.exp(2 * log_c) * self._radius_above(t)) @ weights)
        return np.asarray(self.p * math.exp(-log_beta) * total / 2)

    @cached_property
    def _difference_table(self) -> Callable[[Floats], Floats]:
        low, high, step, _ = self._difference_grid
        return log_table(lambda z: self._difference(1 / (np.exp(-z) + 1 / self._reach)), low, high, step)

    def difference_survival(self, d: ArrayLike) -> Floats:
        """P(N - N' > d) by the integral of the module's docstring, off by 1e-9 at most.

        Tabulated once in log(d/(1 - d/reach)), which is smooth at both ends.
        """
        d = np.asarray(d, dtype=float)
        with np.errstate(divide="ignore"):
            z = np.log(d) - np.log1p(-np.minimum(d / self._reach, 1))
        return np.where(d > 0, self._difference_table(z), 0.5)


@dataclass(frozen=True)
class GeneralizedNormal(_Radial):
    """Generalised normal noise of variance one: density ``K exp(-|x/h|^p)``, h = h(p), K = p/(2 h Gamma(1/p)).

    p = 1 is Laplace, p = 2 Gaussian; below 1 the density has a spike at 0 and heavy tails.
    """

    p: float
    name: ClassVar[str] = "generalized-normal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", check_shape(self.p, 0.02, 100))

    @cached_property
    def scale(self) -> float:
        """h(p) = sqrt(Gamma(1/p) / Gamma(3/p)), at which the variance is one (Proposition 4.11)."""
        return math.exp((math.lgamma(1 / self.p) - math.lgamma(3 / self.p)) / 2)

    @cached_property
    def _log_top(self) -> float:
        return math.log(self.p / 2) - math.log(self.scale) - math.lgamma(1 / self.p)

    def log_density(self, x: ArrayLike) -> Floats:
        """``log K - |x/h|^p``."""
        return np.asarray(self._log_top - np.abs(np.asarray(x, dtype=float) / self.scale) ** self.p)

    def _above(self, k: float, t: Floats) -> Floats:
        return np.asarray(scipy.special.gammaincc(k / self.p, t))

    def _radius_above(self, t: Floats) -> Floats:
        return self._above(2, t)

    def _tail_quantile(self, tail: Floats) -> Floats:
        return np.asarray(self.scale * scipy.special.gammainccinv(1 / self.p, 2 * tail) ** (1 / self.p))

    @property
    def _mean_size(self) -> float:
        return math.exp(math.lgamma(2 / self.p) - math.lgamma(1 / self.p))

    @property
    def _difference_grid(self) -> tuple[float, float, float, float]:
        low, high = math.log(1e-11) - self._log_top, math.log(self.scale) + math.log(600) / self.p + 0.7
        return low, high, min(0.15, 0.15 / self.p), 1 / 16 if self.p <= 1 else 1 / 24 if self.p < 4 else 1 / 64

    @property
    def _excess_grid(self) -> tuple[float, float, float]:  # type: ignore[override]
        low, high = math.log(1e-11) + math.log(self.mean_difference), math.log(self.scale) + math.log(600) / self.p
        return low, high, min(0.15, 0.15 / self.p)

    @cached_property
    def mean_difference(self) -> float:
        """``E R E|u1 - u2|``: E R = h Gamma(3/p)/Gamma(2/p), the other twice the integral of g(v) c(v)."""
        v, _, weights = unit_rule()
        log = math.lgamma(3 / self.p) - 2 * math.lgamma(1 / self.p) + math.log(2 * self.p * self.scale)
        return math.exp(log) * float(np.sum(weights * np.exp(-3 * np.log1p(v**self.p) / self.p)))

    def _log_integral(self, shift: float, exponent: Callable[[Floats, Floats], Floats]) -> float:
        """log of the integral of K exp(exponent(``|x/h|, |x-r|/h``)) over x, in three parts that meet at 0 and at r."""
        r = shift / self.scale
        far = math.log(700) / self.p + 2 * math.log(2 + r) + 12
        low = -60 - 60 * max(0.0, 1 / self.p - 1) / 10

        def outer(z: Floats, first: float, second: float) -> Floats:
            x = np.exp(z)
            return np.asarray(z + exponent(x + first, x + second))

        def inner(z: Floats) -> Floats:
            left, right = r / (1 + np.exp(-z)), r / (1 + np.exp(z))
            return np.asarray(exponent(left, right) + np.log(left) + np.log(right) - math.log(r))

        parts = [
            log_trapezoid(lambda z: outer(z, 0.0, r), low, far),
            log_trapezoid(lambda z: outer(z, r, 0.0), low, far),
            log_trapezoid(inner, low, -low),
        ]
        return float(scipy.special.logsumexp(parts)) + self._log_top + math.log(self.scale)

    def _renyi(self, alpha: float, shift: float) -> float:
        """(33), (r/h)^p, at alpha = inf for p <= 1 and infinite for p > 1; by quadrature for finite alpha.

        At alpha = 1 it is ``E|(N-r)/h|^p - 1/p``.
        """
        p = self.p
        pure = (shift / self.scale) ** p if p <= 1 else math.inf
        if alpha == math.inf:
            return pure
        if alpha == 1:
            return max(0.0, math.exp(self._log_integral(shift, lambda x, y: p * np.log(y) - x**p)) - 1 / p)
        log = self._log_integral(shift, lambda x, y: (alpha - 1) * y**p - alpha * x**p)
        return min(max(0.0, log / (alpha - 1)), pure)

    def _delta(self, epsilon: float, shift: float) -> float:
        """The mass where the log-ratio ``(|x-r|^p - |x|^p)/h^p`` exceeds eps, less e^eps times its shifted mass.

        The ratio falls from 0 to r, so that set ends at some b below r (below 0 if p > 1 and eps >= (r/h)^p); for p < 1
        it also falls towards -inf and the set begins at some -a. It is empty if p <= 1 and eps >= (r/h)^p.
        """
        p, r = self.p, shift / self.scale
        share = epsilon / r**p  # the set is where (|x-r|^p - |x|^p)/r^p exceeds it; x = r z or x = -r e^t
        if p <= 1 and share >= 1:
            return 0.0

        def inside(t: Floats) -> bool:
            if t < 0:
                return bool(math.exp(p * math.log1p(math.exp(t))) - math.exp(p * t) > share)
            return bool(math.exp(p * t) * math.expm1(p * math.log1p(math.exp(-t))) > share)

        far = np.array(min(600.0, 700 / p))
        edge = -r * np.exp(boundary(lambda t: inside(t) == (p < 1), np.array(-700 / p), far))
        end = float(
            r * boundary(lambda z: (1 - z) ** p - z**p > share, np.zeros(()), np.ones(())) if share < 1 else edge
        )
        start = -math.inf if p >= 1 or inside(far) else float(edge)
        return self._mass(start, end, 0.0) - math.exp(min(epsilon, 700)) * self._mass(start, end, r)

    def _mass(self, start: float, end: float, shift: float) -> float:
        """P(start < N/h + shift < end)."""
        low, high = (start - shift) * self.scale, (end - shift) * self.scale
        return float(self.survival(low) - self.survival(high) if low > 0 else self.cdf(high) - self.cdf(low))

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """h eps^(1/p) at alpha = inf for p <= 1, (34); 0 there for p > 1."""
        if alpha == math.inf:
            return self.scale * epsilon ** (1 / self.p) if self.p <= 1 else 0.0
        return super().largest_shift(alpha, epsilon)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws: a sign times h G^(1/p), G ~ Gamma(1/p)."""
        size = rng.standard_gamma(1 / self.p, shape) ** (1 / self.p)
        return np.asarray(self.scale * np.where(rng.random(shape) < 0.5, -size, size))


@dataclass(frozen=True)
class Ball(_Radial):
    """Uniform in the l_p ball of R^n, scaled to variance one in each coordinate; p = inf is the cube.

    Coordinates depend on each other, except in the cube. No finite epsilon is ever met, but delta can be as small as
    one likes, whatever epsilon is: the volume that a shift moves out of the ball.
    """

    p: float
    n: int
    name: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", math.inf if self.p == math.inf else check_shape(self.p, 0.1, 100))
        object.__setattr__(self, "n", whole("n", self.n, 2))

    @property
    def independent(self) -> bool:  # type: ignore[override]
        """Only the cube."""
        return self.p == math.inf

    @property
    def _shape(self) -> tuple[float, float]:
        """``|N1/r|^p ~ Beta(1/p, (n-1)/p + 1)``, and ``|N1/r|`` is uniform in the cube."""
        return (1.0, 1.0) if self.independent else (1 / self.p, (self.n - 1) / self.p + 1)

    @cached_property
    def scale(self) -> float:
        """The radius r, from E[N1^2] = r^2 B(3a, b)/B(a, b) = 1 with (a, b) the shape."""
        a, b = self._shape
        return math.exp((scipy.special.betaln(a, b) - scipy.special.betaln(3 * a, b)) / 2)

    def log_density(self, x: ArrayLike) -> Floats:
        """``log p - log(2 r B(a, b)) + (b - 1) log(1 - |x/r|^p)`` with a = 1/p, b = (n-1)/p + 1."""
        size = np.abs(np.asarray(x, dtype=float)) / self.scale
        a, b = self._shape
        top = math.log(self.power / (2 * self.scale)) - scipy.special.betaln(a, b)
        return np.where(size < 1, top + scipy.special.xlog1py(b - 1, -(np.minimum(size, 1) ** self.power)), -np.inf)

    def _above(self, k: float, t: Floats) -> Floats:
        a, b = self._shape
        return np.asarray(scipy.special.betaincc(k * a, b, np.minimum(t, 1)))

    def _radius_above(self, t: Floats) -> Floats:
        a, b = self._shape
        return np.asarray(scipy.special.betaincc(2 * a, b - a, np.minimum(t, 1)))

    def _tail_quantile(self, tail: Floats) -> Floats:
        return np.asarray(self.scale * scipy.special.betainccinv(*self._shape, 2 * tail) ** (1 / self.power))

    @property
    def _mean_size(self) -> float:
        a, b = self._shape
        return math.exp(scipy.special.betaln(2 * a, b) - scipy.special.betaln(a, b))

    @property
    def _reach(self) -> float:  # type: ignore[override]
        return self.scale * (2 ** (1 - 1 / self.p) if self.p > 1 else 1.0)

    @property
    def _difference_grid(self) -> tuple[float, float, float, float]:
        return math.log(self._reach) - 30, math.log(self._reach) + 30, min(0.05, 0.3 / self.p), 1 / 24

    def _range(self, d: Floats, sign: int) -> tuple[Floats, Floats]:
        """The v in (0, 1) with (1 + sign v) c(v) > d/r: an interval from 0, or to 1 where the left side rises."""
        rising = sign > 0 and self.p > 1

        def reached(v: Floats) -> Floats:
            return np.asarray((1 + sign * v) * np.exp(-np.log1p(v**self.p) / self.p) > d / self.scale)

        none, all_of_it = super()._range(d, sign)
        edge = boundary(lambda v: reached(v) != rising, none, all_of_it)
        return (edge, all_of_it) if rising else (none, edge)

    def difference_survival(self, d: ArrayLike) -> Floats:
        """For two coordinates of one draw; triangular for the cube."""
        if not self.independent:
            return super().difference_survival(d)
        return np.asarray((1 - np.clip(np.asarray(d, dtype=float) / (2 * self.scale), 0, 1)) ** 2 / 2)

    def degree_factor(self, k: int) -> float:
        """E of a k-homogeneous function of N, over its value for the generalised normal with independent coordinates.

        N is r/h times that vector over S^(1/p), and their ratio is independent of S ~ Gamma(n/p + 1).
        """
        if self.independent:
            raise Unsupported("degree_factor is for finite p, got the cube")
        moment = math.lgamma(self.n / self.p + 1) - math.lgamma((self.n + k) / self.p + 1)
        return (self.scale / GeneralizedNormal(self.p).scale) ** k * math.exp(moment)

    @property
    def mean_difference(self) -> float:
        """That of the generalised normal times ``degree_factor(1)``; 2/sqrt(3) for the cube."""
        if self.independent:
            return 2 / math.sqrt(3)
        return GeneralizedNormal(self.p).mean_difference * self.degree_factor(1)

    def _renyi(self, alpha: float, shift: float) -> float:
        """Infinite: part of the ball moves to where there was none."""
        return math.inf

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """0: see ``renyi``."""
        return 0.0

    def _delta(self, epsilon: float, shift: float) -> float:
        """``P(|N1| <= shift/2)``, whatever epsilon: the volume that the shift moves out of the ball."""
        return float(self.cdf(shift / 2) - self.survival(shift / 2))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Draws whose last axis is the vector: ``r G / (sum of |G|^p + E)^(1/p)``, E exponential."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.independent:  # any shape will do
            return np.asarray(rng.uniform(-self.scale, self.scale, shape))
        if not shape or shape[-1] != self.n:
            raise InputError(f"shape must end in n = {self.n}, the ball's dimension, got {shape!r}")
        power = rng.standard_gamma(1 / self.p, shape)
        total = power.sum(axis=-1, keepdims=True) + rng.standard_exponential((*shape[:-1], 1))
        size = self.scale * (power / total) ** (1 / self.p)
        return np.asarray(np.where(rng.random(shape) < 0.5, -size, size))
