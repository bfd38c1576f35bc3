"""Generalised normal noise, and what it shares with the uniform ball (``noise_ball``): its level sets are l_p balls.

Two coordinates of either are R (u1, u2) with a radius R independent of the direction u on the l_p circle. With v the
ratio of the smaller to the larger of the two sizes, whose density on (0, 1) is 2g, g(v) = p (1 + v^p)^(-2/p) / B(1/p,
1/p), the difference of the coordinates is plus or minus R (1 + v) c or R (1 - v) c with c = (1 + v^p)^(-1/p), so

    P(N - N' > d) = 1/2 integral over v of g(v) [P(R > d / ((1+v) c)) + P(R > d / ((1-v) c))].

The radius has R^p/a^p ~ Gamma(2/p) for the generalised normal of scale a, and R^p/r^p ~ Beta(2/p, (n-2)/p + 1) for two
coordinates of the ball of radius r in n dimensions (Barthe, Guédon, Mendelson and Naor, 2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError
from rankdp.theory.noises.contract import FloatArray, ScoreNoise, check_alpha, check_epsilon, check_number, check_shift
from rankdp.theory.quadrature import log_trapezoid, unit_rule


def unit_scale(p: float) -> float:
    """h(p) = sqrt(Gamma(1/p) / Gamma(3/p)): the scale at which a generalised normal has variance one (Prop. 4.11)."""
    return math.exp((math.lgamma(1 / p) - math.lgamma(3 / p)) / 2)


def direction(p: float, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """g(v) and c(v) of the module's docstring."""
    size = np.log1p(v**p) / p
    log_beta = 2 * math.lgamma(1 / p) - math.lgamma(2 / p)
    return np.exp(math.log(p) - 2 * size - log_beta), np.exp(-size)


@lru_cache(maxsize=256)
def _mean_sum(p: float) -> float:
    """``E|u1 - u2|`` = 4 times the integral of g(v) c(v) / 2 over (0, 1)."""
    v, _, weights = unit_rule()
    g, c = direction(p, v)
    return float(2 * np.sum(weights * g * c))


def spline_table(tail: Callable[[FloatArray], FloatArray], low: float, high: float, step: float) -> Piecewise:
    """log(2 tail) from a table in the logarithm of d, for speed: 1e-10 off at most at a step of 0.15/p."""
    cells = max(40, math.ceil((high - low) / step))
    width = (high - low) / cells
    values = tail(low + width * np.arange(-3.0, cells + 4))
    return Piecewise(low, width, np.log(np.maximum(2 * values, 1e-300)))


def excess_table(
    excess: Callable[[FloatArray], FloatArray], low: float, high: float, step: float
) -> Callable[[FloatArray], FloatArray]:
    """The excess of a symmetric noise from a table in log(abs(x)) between ``low`` and ``high``, 0 beyond."""
    spline = spline_table(lambda z: excess(np.exp(z)), low, high, step)

    def quick(x: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            z = np.log(np.abs(x))
        above = np.where(z > high, 0.0, np.exp(spline(np.clip(z, low, high))) / 2)
        return np.asarray(above + np.maximum(-x, 0))

    return quick


class Piecewise:
    """In equal cells, the polynomials through the 8 edges around each; ``values`` begin 3 edges below ``low``.

    Plain NumPy: loading a library of splines takes longer than a plan.
    """

    def __init__(self, low: float, width: float, values: FloatArray) -> None:
        self.low, self.width = low, width
        powers = np.arange(-3.0, 5.0)[:, None] ** np.arange(7, -1, -1)
        windows = np.lib.stride_tricks.sliding_window_view(values, len(powers))
        self.coefficients = np.linalg.solve(powers, windows.T)  # highest power first, a column for each cell

    def __call__(self, z: FloatArray) -> FloatArray:
        """The value at z, which lies in the cells."""
        place = (z - self.low) / self.width
        cell = np.minimum(place.astype(np.intp), self.coefficients.shape[1] - 1)
        place = place - cell
        total = self.coefficients[0].take(cell)
        for coefficient in self.coefficients[1:]:
            total = total * place + coefficient.take(cell)
        return np.asarray(total)


@dataclass(frozen=True)
class GeneralizedNormal(ScoreNoise):
    """Generalised normal noise of variance one: density ``K exp(-|x/h|^p)``, h = h(p), K = p/(2 h Gamma(1/p)).

    p = 1 is Laplace, p = 2 Gaussian; below 1 the density has a spike at 0 and heavy tails.
    """

    p: float
    name: ClassVar[str] = "generalized-normal"

    def __post_init__(self) -> None:
        p = check_number(self.p, "p", "a number from 0.02 to 100", 0.02, least=True)
        if p > 100:
            raise InputError(f"p must be a number from 0.02 to 100, got {self.p!r}")
        object.__setattr__(self, "p", p)

    @property
    def log_concave(self) -> bool:  # type: ignore[override]
        """p >= 1."""
        return self.p >= 1

    @cached_property
    def scale(self) -> float:
        """h(p)."""
        return unit_scale(self.p)

    @cached_property
    def _log_top(self) -> float:
        return math.log(self.p / 2) - math.log(self.scale) - math.lgamma(1 / self.p)

    def log_density(self, x: ArrayLike) -> FloatArray:
        """``log K - |x/h|^p``."""
        return np.asarray(self._log_top - np.abs(np.asarray(x, dtype=float) / self.scale) ** self.p)

    def survival(self, x: ArrayLike) -> FloatArray:
        """Q(1/p, (x/h)^p)/2 above 0, Q the regularised upper incomplete gamma function."""
        from scipy.special import gammaincc

        x = np.asarray(x, dtype=float)
        half = gammaincc(1 / self.p, np.abs(x / self.scale) ** self.p) / 2
        return np.asarray(np.where(x > 0, half, 1 - half))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """h times the (1/p)-th power of a Gamma quantile."""
        from scipy.special import gammainccinv

        u = np.asarray(u, dtype=float)
        size = gammainccinv(1 / self.p, 2 * np.minimum(u, 1 - u)) ** (1 / self.p)
        return np.asarray(np.sign(u - 0.5) * self.scale * size)

    def excess(self, x: ArrayLike) -> FloatArray:
        """h Gamma(2/p)/(2 Gamma(1/p)) Q(2/p, (x/h)^p) - x P(N > x) above 0."""
        from scipy.special import gammaincc

        x = np.asarray(x, dtype=float)
        size = np.abs(x)
        power = (size / self.scale) ** self.p
        mean = self.scale / 2 * math.exp(math.lgamma(2 / self.p) - math.lgamma(1 / self.p))
        above = mean * gammaincc(2 / self.p, power) - size * gammaincc(1 / self.p, power) / 2
        return np.asarray(np.maximum(above, 0) + np.maximum(-x, 0))

    @cached_property
    def _excess_table(self) -> Callable[[FloatArray], FloatArray]:
        low = math.log(1e-11) + math.log(self.mean_difference)
        high = math.log(self.scale) + math.log(600) / self.p
        return excess_table(self.excess, low, high, min(0.15, 0.15 / self.p))

    def quick_excess(self, x: ArrayLike) -> FloatArray:
        """``excess`` by the same kind of table as the difference."""
        return self._excess_table(np.asarray(x, dtype=float))

    def _difference_exact(self, d: FloatArray) -> FloatArray:
        """The integral of the module's docstring for each d."""
        from scipy.special import gammaincc

        v, rest, weights = unit_rule(1 / 16 if self.p <= 1 else 1 / 24 if self.p < 4 else 1 / 64)
        g, c = direction(self.p, v)
        total = np.zeros_like(d)
        for lean in (1 + v, rest):  # 1 + v and 1 - v
            log = self.p * (np.log(np.maximum(d, 1e-300))[:, None] - np.log(self.scale * lean * c))
            reach = np.exp(np.minimum(log, 700))
            total += gammaincc(2 / self.p, reach) @ (weights * g)
        return np.asarray(total / 2)

    @cached_property
    def _difference_table(self) -> tuple[float, float, Piecewise]:
        low = math.log(1e-11) - self._log_top
        high = math.log(self.scale) + (math.log(600) + 0.7 * self.p) / self.p
        spline = spline_table(lambda z: self._difference_exact(np.exp(z)), low, high, min(0.15, 0.15 / self.p))
        return low, high, spline

    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """P(N - N' > d) by the integral of the module's docstring, tabulated once for each p; off by 1e-9 at most."""
        d = np.asarray(d, dtype=float)
        low, high, spline = self._difference_table
        with np.errstate(divide="ignore"):
            z = np.log(d)
        near = np.exp(spline(np.clip(z, low, high))) / 2
        return np.where(z > high, 0.0, np.where(z < low, 0.5 - np.exp(self._log_top - math.log(2) / self.p) * d, near))

    @property
    def mean_difference(self) -> float:
        """``E R E|u1 - u2|``, E R = h Gamma(3/p)/Gamma(2/p)."""
        return self.scale * math.exp(math.lgamma(3 / self.p) - math.lgamma(2 / self.p)) * _mean_sum(self.p)

    def _log_integral(self, shift: float, exponent: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
        """log of the integral of K exp(exponent(``|x/h|, |x-r|/h``)) over x, in three parts that meet at 0 and at r."""
        r = shift / self.scale
        far = math.log(700) / self.p + 2 * math.log(2 + r) + 12
        low = -60 - 60 * max(0.0, 1 / self.p - 1) / 10

        def outer(z: FloatArray, first: float, second: float) -> FloatArray:
            x = np.exp(z)
            return np.asarray(z + exponent(x + first, x + second))

        def inner(z: FloatArray) -> FloatArray:
            left, right = r / (1 + np.exp(-z)), r / (1 + np.exp(z))
            return np.asarray(exponent(left, right) + np.log(left) + np.log(right) - math.log(r))

        parts = [
            log_trapezoid(lambda z: outer(z, 0.0, r), low, far),
            log_trapezoid(lambda z: outer(z, r, 0.0), low, far),
            log_trapezoid(inner, low, -low),
        ]
        top = max(parts)
        total = top + math.log(sum(math.exp(part - top) for part in parts))
        return total + self._log_top + math.log(self.scale)

    def renyi(self, alpha: float, shift: float) -> float:
        """(33), (r/h)^p, at alpha = inf for p <= 1 and infinite for p > 1; by quadrature for finite alpha.

        At alpha = 1 it is ``E|(N-r)/h|^p - 1/p``.
        """
        alpha, shift = check_alpha(alpha), check_shift(shift)
        p = self.p
        if shift == 0:
            return 0.0
        pure = (shift / self.scale) ** p
        if alpha == math.inf:
            return pure if p <= 1 else math.inf
        if alpha == 1:
            return max(0.0, math.exp(self._log_integral(shift, lambda x, y: p * np.log(y) - x**p)) - 1 / p)
        log = self._log_integral(shift, lambda x, y: (alpha - 1) * y**p - alpha * x**p)
        return float(min(max(0.0, log / (alpha - 1)), pure if p <= 1 else math.inf))

    def delta(self, epsilon: float, shift: float) -> float:
        """The mass where the log-ratio ``(|x-r|^p - |x|^p)/h^p`` exceeds eps, less e^eps times its shifted mass.

        The ratio falls from 0 to r, so that set ends at some b below r (below 0 if p > 1 and eps >= (r/h)^p); for p < 1
        it also falls towards -inf and the set begins at some -a. It is empty if p <= 1 and eps >= (r/h)^p.
        """
        epsilon, shift = check_epsilon(epsilon), check_shift(shift)
        p, r = self.p, shift / self.scale
        if r == 0 or (p <= 1 and epsilon >= r**p):
            return 0.0
        share = epsilon / r**p  # the set is where (|x-r|^p - |x|^p)/r^p exceeds it; x = r z or x = -r e^t

        def right(z: float) -> float:
            return float((1 - z) ** p - z**p - share)

        def left(t: float) -> float:
            if t < 0:
                return float(math.exp(p * math.log1p(math.exp(t))) - math.exp(p * t) - share)
            return float(math.exp(p * t) * math.expm1(p * math.log1p(math.exp(-t))) - share)

        far = min(600.0, 700 / p)
        end = r * self._root(right, 0.0, 1.0) if share < 1 else -r * math.exp(self._root(left, -700 / p, far))
        start = -math.inf if p >= 1 or left(far) > 0 else -r * math.exp(self._root(left, -700 / p, far))
        return max(0.0, self._mass(start, end, 0.0) - math.exp(min(epsilon, 700)) * self._mass(start, end, r))

    @staticmethod
    def _root(function: Callable[[float], float], low: float, high: float) -> float:
        from scipy.optimize import brentq

        if function(low) * function(high) > 0:
            return low if abs(function(low)) < abs(function(high)) else high
        return float(brentq(function, low, high, xtol=1e-15, rtol=1e-14))

    def _mass(self, start: float, end: float, shift: float) -> float:
        """P(start < N/h + shift < end)."""
        low, high = (start - shift) * self.scale, (end - shift) * self.scale
        if low > 0:
            return float(self.survival(low) - self.survival(high))
        return float(self.cdf(high) - self.cdf(low))

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """h eps^(1/p) at alpha = inf for p <= 1, (34); 0 there for p > 1."""
        if alpha == math.inf:
            return self.scale * epsilon ** (1 / self.p) if self.p <= 1 else 0.0
        return super().largest_shift(alpha, epsilon)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws: a sign times h G^(1/p), G ~ Gamma(1/p)."""
        size = rng.standard_gamma(1 / self.p, shape) ** (1 / self.p)
        return np.asarray(self.scale * np.where(rng.random(shape) < 0.5, -size, size))
