"""Laplace and Gaussian noise, the sum of both, and staircase noise: everything in closed form.

A score that was estimated from data and then privatized carries a normal error plus Laplace noise. With Z ~ N(0, t^2)
and L Laplace of rate r (scale 1/r), A = exp(r^2 t^2/2 - r x) Phi(x/t - r t) and B the same at -x,

    P(Z + L > x) = G(r, x) = Q(x/t) + (A - B)/2.

A difference L - L' of two such has survival (1/2 + r x/4) e^(-r x) = S - (r/2) dS/dr where S = e^(-r x)/2 is that of L.
Hence P(Z + L - L' > x) = G - (r/2) dG/dr, and dG/dr = ((r t^2 - x) A - (r t^2 + x) B)/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rankdp.checks import number, positive, share
from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.theory.quadrature import boundary
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
    """A normal error plus Laplace noise: total variance one, the ``laplace_share`` of it from the Laplace part."""

    laplace_share: float
    name: ClassVar[str] = "normal-laplace"
    _excess_grid: ClassVar[tuple[float, float, float]] = (math.log(1e-11), math.log(60), 0.06)  # type: ignore[misc]

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


@dataclass(frozen=True)
class Staircase(ScoreNoise):
    """Staircase noise scaled to variance one; a shift of up to ``step`` costs exactly ``epsilon`` (Geng et al., 2015).

    gamma defaults to 1/(1 + e^(eps/2)), the best for the expected absolute error. With q = e^-eps and step width D, the
    density is a q^k on ``[kD, (k+g)D)`` and a q^(k+1) on ``[(k+g)D, (k+1)D)`` of ``|x|``. So f(x + D) = q f(x) for x >=
    0, and so it is with the tail P(N > x) and with its integral above x. In one period the tail is linear between its
    values 1/2 at 0, s at gD and q/2 at D.

    Coordinates are independent here; the paper's Appendix A.4 puts the staircase on the l1 norm of the whole vector
    instead, and Theorem 3.3 covers only that one: a product of staircases is not log-concave.
    """

    epsilon: float
    gamma: float | None = None
    name: ClassVar[str] = "staircase"

    def __post_init__(self) -> None:
        epsilon = positive("epsilon", self.epsilon)
        if not 1e-6 <= epsilon <= 500:
            raise InputError(f"epsilon of a staircase must lie between 1e-6 and 500, got {self.epsilon!r}")
        gamma = 1 / (1 + math.exp(epsilon / 2)) if self.gamma is None else self.gamma
        if number("gamma", gamma, 0) > 1:
            raise InputError(f"gamma must be a number from 0 to 1, got {self.gamma!r}")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "gamma", float(gamma))

    @property
    def _g(self) -> float:
        assert self.gamma is not None
        return self.gamma

    @property
    def _q(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _gap(self) -> float:
        """1 - q."""
        return -math.expm1(-self.epsilon)

    @cached_property
    def step(self) -> float:
        """D, from E[N^2] = 1: the sums over k of q^k, k q^k and k^2 q^k are geometric."""
        q, g, gap = self._q, self._g, self._gap
        s0, s1, s2 = 1 / gap, q / gap**2, q * (1 + q) / gap**3
        inner = g * s2 + g**2 * s1 + g**3 / 3 * s0
        outer = (1 - g) * s2 + (1 - g**2) * s1 + (1 - g**3) / 3 * s0
        return math.sqrt((g + q * (1 - g)) * s0 / (inner + q * outer))

    @cached_property
    def _top(self) -> float:
        """a D: the density at 0, in units of 1/D."""
        return self._gap / (2 * (self._g + self._q * (1 - self._g)))

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        """The knots 0, g and 1 of a period, in units of D, and the tail there."""
        q, g = self._q, self._g
        return np.array([0.0, g, 1.0]), np.array([0.5, q * (self._top * (1 - g) + 0.5), q / 2])

    def log_density(self, x: ArrayLike) -> Floats:
        """log a - eps times the number of steps down from 0 to x."""
        places = np.abs(np.asarray(x, dtype=float)) / self.step
        down = np.maximum(np.floor(places - self._g) + 1, 0)
        return np.asarray(math.log(self._top / self.step) - self.epsilon * down)

    def _periods(self, size: Floats) -> tuple[Floats, Floats]:
        """q^k, and the place in period k."""
        k = np.floor(size / self.step)
        return np.exp(-self.epsilon * k), size / self.step - k

    def _tail(self, size: Floats) -> Floats:
        share, rest = self._periods(size)
        return np.asarray(share * np.interp(rest, *self._tails))

    def _tail_quantile(self, tail: Floats) -> Floats:
        """Period from the logarithm of the tail, then one of two straight lines."""
        with np.errstate(divide="ignore"):
            k = np.maximum(np.floor(-np.log(2 * tail) / self.epsilon), 0)
        k = np.where(np.isfinite(k), k, 0)
        knots, tails = self._tails
        rest = np.interp(tail * np.exp(self.epsilon * k), tails[::-1], knots[::-1])
        return np.where(tail > 0, (k + rest) * self.step, np.inf)

    def _tail_excess(self, size: Floats) -> Floats:
        """The tail integrated once more: the rest of this period, and the later ones."""
        share, rest = self._periods(size)
        later = _integral(np.zeros(1), *self._tails)[0] * self._q / self._gap
        return np.asarray(share * (_integral(rest, *self._tails) + later) * self.step)

    @cached_property
    def _difference_knots(self) -> tuple[Floats, Floats, Floats, Floats]:
        """(theta, T, C0, C1): the density of N - N' at mD + theta is q^m (2T + (m+1) C0 + (m/q) C1).

        T is the integral of f(y) f(y + theta) over y > 0, C0 that of f(v) f(theta - v) over [0, theta], C1 that of
        f(v) f(D + theta - v) over [theta, D]. In between the density is linear: its only knots are 0, D and the
        fractional part of 2g.
        """
        q, g = self._q, self._g
        theta = np.array([0.0, (2 * g) % 1.0, 1.0])
        low = np.where(
            theta < g, g - theta + q * theta + q**2 * (1 - g), q * g + q**2 * (1 - theta) + q**3 * (theta - g)
        )
        n00 = np.maximum(np.minimum(theta, g) - np.maximum(theta - g, 0), 0)
        n01 = np.minimum(g, np.maximum(theta - g, 0))
        c0 = n00 + 2 * q * n01 + q**2 * (theta - n00 - 2 * n01)
        m00 = np.maximum(g - np.maximum(theta, 1 + theta - g), 0)
        m01 = np.maximum(g - theta, 0) - m00
        c1 = m00 + 2 * q * m01 + q**2 * (1 - theta - m00 - 2 * m01)
        scale = self._top**2
        return theta, low / -math.expm1(-2 * self.epsilon) * scale, c0 * scale, c1 * scale

    def difference_survival(self, d: ArrayLike) -> Floats:
        """Exact: a quadratic between knots (see ``_difference_knots``), closed geometric sums beyond the period."""
        d = np.asarray(d, dtype=float) / self.step
        m = np.floor(d)
        theta, t, c0, c1 = self._difference_knots
        q, gap = self._q, self._gap
        total = [float(np.trapezoid(part, theta)) for part in (t, c0, c1)]
        s0, s1 = 1 / gap, (m + 1) / gap + q / gap**2  # sums over j > m of q^j and j q^j, without their factor q^(m+1)
        beyond = q * (2 * total[0] * s0 + total[1] * (s1 + s0) + total[2] / q * s1)
        knots = [2 * t[i] + (m + 1) * c0[i] + m / q * c1[i] for i in range(3)]
        return np.asarray(np.exp(-self.epsilon * m) * (_integral(d - m, theta, knots) + beyond))

    @cached_property
    def mean_difference(self) -> float:
        """4 times the integral of S (1 - S) over x > 0, S the tail; S^2 is a quadratic between knots."""
        knots, tails = self._tails
        squares = (tails[:-1] ** 2 + tails[:-1] * tails[1:] + tails[1:] ** 2) / 3 @ np.diff(knots)
        return float(4 * (self.excess(0.0) - squares * self.step / -math.expm1(-2 * self.epsilon)))

    def _pieces(self, shift: float) -> tuple[Floats, Floats, Floats]:
        """(log length, log f(x), log f(x-r)) over pieces of the line on which both are constant.

        Beyond r and below 0 one period stands for all, with its length divided by 1 - q: right for every functional
        that is homogeneous of degree one in the two densities.
        """
        jumps = (np.arange(math.floor(shift / self.step) + 3) + self._g) * self.step
        ends = np.array([-self.step, 0.0, shift, shift + self.step])
        edges = np.concatenate([ends, jumps, -jumps, shift + jumps, shift - jumps])
        edges = np.unique(np.clip(edges, ends[0], ends[-1]))
        middle = (edges[1:] + edges[:-1]) / 2
        lengths = np.diff(edges) / np.where((middle > 0) & (middle < shift), 1, self._gap)
        return np.log(lengths), self.log_density(middle), self.log_density(middle - shift)

    def _renyi(self, alpha: float, shift: float) -> float:
        """Exact sums over pieces; eps times the number of steps begun, at alpha = inf."""
        if alpha == math.inf:
            return self.epsilon * math.ceil(shift / self.step * (1 - 1e-14))
        length, here, there = self._pieces(shift)
        if alpha == 1:
            return float(np.sum(np.exp(length + here) * (here - there)))
        return max(0.0, float(scipy.special.logsumexp(length + alpha * here + (1 - alpha) * there)) / (alpha - 1))

    def _delta(self, epsilon: float, shift: float) -> float:
        """The exact hockey-stick sum over pieces."""
        length, here, there = self._pieces(shift)
        lead = here - there - epsilon
        lead = np.where(lead < 1e-12 * max(epsilon, 1.0), 0, lead)
        return float(np.sum(np.exp(length + here) * -np.expm1(-lead)))

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """At alpha = inf, as many whole steps as eps pays for."""
        if alpha == math.inf:
            return self.step * math.floor(epsilon / self.epsilon * (1 + 1e-14))
        return super().largest_shift(alpha, epsilon)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """A sign, a geometric period, one of its two parts, and a uniform place in it."""
        k = rng.geometric(self._gap, shape) - 1
        g, q, u = self._g, self._q, rng.random(shape)
        inner = rng.random(shape) < g / (g + q * (1 - g))
        place = k + np.where(inner, g * u, g + (1 - g) * u)
        return np.asarray(np.where(rng.random(shape) < 0.5, -1.0, 1.0) * place * self.step)


def _integral(start: Floats, knots: Floats, values: Floats | list[Floats]) -> Floats:
    """The integral from ``start`` to 1 of the function that is linear between its ``values`` at the three knots."""
    area = np.zeros_like(start)
    for i in range(2):
        width = knots[i + 1] - knots[i]
        if width > 0:
            left = np.clip(start, knots[i], knots[i + 1])
            value = values[i] + (values[i + 1] - values[i]) * (left - knots[i]) / width
            area = area + (knots[i + 1] - left) * (value + values[i + 1]) / 2
    return area
