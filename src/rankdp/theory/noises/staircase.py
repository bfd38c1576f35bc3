"""Staircase noise (Geng et al., 2015): the density falls by e^-eps from step to step; every functional is exact.

With q = e^-eps and step width D, the density is a q^k on ``[kD, (k+g)D)`` and a q^(k+1) on ``[(k+g)D, (k+1)D)`` of
``|x|``. So f(x + D) = q f(x) for x >= 0, and integrals over a half-line are those over one period divided by 1 - q.
Coordinates are independent here; the paper's Appendix A.4 puts the staircase on the l1 norm of the whole vector
instead, and Theorem 3.3 covers only that one: a product of staircases is not log-concave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError
from rankdp.theory.noises.contract import FloatArray, ScoreNoise, check_alpha, check_epsilon, check_number, check_shift


@dataclass(frozen=True)
class Staircase(ScoreNoise):
    """Staircase noise scaled to variance one; a shift of up to ``step`` costs exactly ``epsilon``.

    gamma defaults to 1/(1 + e^(eps/2)), the best for the expected absolute error.
    """

    epsilon: float
    gamma: float | None = None
    name: ClassVar[str] = "staircase"

    def __post_init__(self) -> None:
        epsilon = check_number(self.epsilon, "epsilon", "a finite number above 0", 0.0)
        if not 1e-6 <= epsilon <= 500:
            raise InputError(f"epsilon of a staircase must lie between 1e-6 and 500, got {self.epsilon!r}")
        gamma = 1 / (1 + math.exp(epsilon / 2)) if self.gamma is None else self.gamma
        gamma = check_number(gamma, "gamma", "a number from 0 to 1", 0.0, least=True)
        if gamma > 1:
            raise InputError(f"gamma must be a number from 0 to 1, got {self.gamma!r}")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "gamma", gamma)

    @property
    def _g(self) -> float:
        assert self.gamma is not None
        return self.gamma

    @cached_property
    def _q(self) -> float:
        return math.exp(-self.epsilon)

    @cached_property
    def step(self) -> float:
        """D, from E[N^2] = 1: the sums over k of q^k, k q^k and k^2 q^k are geometric."""
        q, g, gap = self._q, self._g, -math.expm1(-self.epsilon)
        s0, s1, s2 = 1 / gap, q / gap**2, q * (1 + q) / gap**3
        inner = g * s2 + g**2 * s1 + g**3 / 3 * s0
        outer = (1 - g) * s2 + (1 - g**2) * s1 + (1 - g**3) / 3 * s0
        return math.sqrt((g + q * (1 - g)) * s0 / (inner + q * outer))

    @cached_property
    def _top(self) -> float:
        """a: the density at 0."""
        return -math.expm1(-self.epsilon) / (2 * self.step * (self._g + self._q * (1 - self._g)))

    def log_density(self, x: ArrayLike) -> FloatArray:
        """log a - eps times the number of steps down from 0 to x."""
        places = np.abs(np.asarray(x, dtype=float)) / self.step
        return np.asarray(math.log(self._top) - self.epsilon * np.maximum(np.floor(places - self._g) + 1, 0))

    def survival(self, x: ArrayLike) -> FloatArray:
        """q^k times what is left of period k and all later ones."""
        x = np.asarray(x, dtype=float)
        tail = self._tail(np.abs(x))
        return np.where(x > 0, tail, 1 - tail)

    def _tail(self, x: FloatArray) -> FloatArray:
        k = np.floor(x / self.step)
        rest = x / self.step - k
        left = np.maximum(self._g - rest, 0) + self._q * np.minimum(1 - rest, 1 - self._g)
        whole = (self._g + self._q * (1 - self._g)) * self._q / -math.expm1(-self.epsilon)
        return np.asarray(np.exp(-self.epsilon * k) * (left + whole) * self._top * self.step)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Period from the logarithm of the tail, then one of two straight lines."""
        u = np.asarray(u, dtype=float)
        tail = 2 * np.minimum(u, 1 - u)
        with np.errstate(divide="ignore"):
            k = np.maximum(np.floor(-np.log(tail) / self.epsilon), 0)
        k = np.where(np.isfinite(k), k, 0)
        scaled = tail * np.exp(self.epsilon * k) * -1 / math.expm1(-self.epsilon)  # in units of one period's mass
        used = (1 / -math.expm1(-self.epsilon) - scaled) * (self._g + self._q * (1 - self._g))
        inside = np.where(used <= self._g, used, self._g + (used - self._g) / self._q)
        x = np.where(tail > 0, (k + np.clip(inside, 0, 1)) * self.step, np.inf)
        return np.asarray(np.sign(u - 0.5) * x)

    def excess(self, x: ArrayLike) -> FloatArray:
        """The tail integrated once more: a quadratic in each half-step, geometric from period to period."""
        x = np.asarray(x, dtype=float)
        size = np.abs(x)
        k = np.floor(size / self.step)
        rest = size / self.step - k
        g, q, gap = self._g, self._q, -math.expm1(-self.epsilon)
        height, width = np.maximum(g - rest, 0), np.minimum(1 - rest, 1 - g)
        period = g + q * (1 - g)
        whole = period * q / gap  # the later periods' mass
        moment = g**2 / 2 + q * (1 - g) * g + q * (1 - g) ** 2 / 2  # of one period, the integral of its tail
        later = q / gap * (moment + period * q / gap)
        here = height**2 / 2 + height * q * (1 - g) + q * width**2 / 2 + whole * (height + width)
        tail = np.exp(-self.epsilon * k) * (here + later) * self._top * self.step**2
        return np.asarray(tail + np.maximum(-x, 0))

    @cached_property
    def _difference_knots(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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
        scale = self._top**2 * self.step
        return theta, low / -math.expm1(-2 * self.epsilon) * scale, c0 * scale, c1 * scale

    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """Exact: a quadratic between knots (see ``_difference_knots``), closed geometric sums beyond the period."""
        d = np.asarray(d, dtype=float) / self.step
        m = np.floor(d)
        rest = d - m
        theta, t, c0, c1 = self._difference_knots
        q, gap = self._q, -math.expm1(-self.epsilon)
        total = [float(np.sum(np.diff(theta) * (part[1:] + part[:-1])) / 2) for part in (t, c0, c1)]
        k = m + 1
        s0, s1 = 1 / gap, k / gap + q / gap**2  # sums over j >= k of q^j and j q^j, without their factor q^k
        beyond = q * (2 * total[0] * s0 + total[1] * (s1 + s0) + total[2] / q * s1)
        knots = 2 * t[:, None] + (m.ravel() + 1) * c0[:, None] + m.ravel() / q * c1[:, None]
        here = self._above(rest.ravel(), theta, knots).reshape(rest.shape)
        return np.asarray(np.exp(-self.epsilon * m) * (here + beyond) * self.step)

    @staticmethod
    def _above(rest: FloatArray, theta: FloatArray, knots: FloatArray) -> FloatArray:
        """The integral from ``rest`` to 1 of the function that is linear between its values ``knots`` at ``theta``."""
        area = np.zeros_like(rest)
        for i in range(2):
            width = theta[i + 1] - theta[i]
            if width > 0:
                start = np.clip(rest, theta[i], theta[i + 1])
                value = knots[i] + (knots[i + 1] - knots[i]) * (start - theta[i]) / width
                area += (theta[i + 1] - start) * (value + knots[i + 1]) / 2
        return area

    @cached_property
    def _mean_difference(self) -> float:
        """Twice the integral of the difference's survival, which is a quadratic between knots: Simpson is exact."""
        periods = math.ceil(45 / self.epsilon) + 2
        theta = self._difference_knots[0]
        ends = np.unique((np.arange(periods)[:, None] + theta[None, :]).ravel()) * self.step
        low, high = ends[:-1], ends[1:]
        at = [self.difference_survival(x) for x in (low * (1 + 1e-15), (low + high) / 2, high * (1 - 1e-15))]
        return float(2 * np.sum((high - low) * (at[0] + 4 * at[1] + at[2]) / 6))

    @property
    def mean_difference(self) -> float:
        """Twice the integral of ``difference_survival``."""
        return self._mean_difference

    def _pieces(self, shift: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(log length, log f(x), log f(x-r)) over pieces of the line on which both are constant.

        Beyond r and below 0 one period stands for all, with its length divided by 1 - q: right for every functional
        that is homogeneous of degree one in the two densities.
        """
        step, g, r = self.step, self._g, shift
        jumps = (np.arange(-1, math.floor(r / step) + 3) + g) * step
        outer = np.unique(np.concatenate([[0.0, step], np.clip(jumps, 0, step), np.clip((jumps - r), 0, step)]))
        inner = np.unique(np.concatenate([[0.0, r], np.clip(jumps, 0, r), np.clip(r - jumps, 0, r)]))
        lengths, here, there = [], [], []
        for edges, first, second, share in (
            (outer, 0.0, r, -math.expm1(-self.epsilon)),  # x < 0: f(u), f(u + r), u = -x
            (outer, r, 0.0, -math.expm1(-self.epsilon)),  # x > r: f(u + r), f(u), u = x - r
            (inner, 0.0, None, 1.0),  # in between: f(u), f(r - u)
        ):
            width = np.diff(edges)
            middle = (edges[1:] + edges[:-1])[width > 0] / 2
            lengths.append(np.log(width[width > 0] / share))
            here.append(self.log_density(middle + first))
            there.append(self.log_density(r - middle if second is None else middle + second))
        return np.concatenate(lengths), np.concatenate(here), np.concatenate(there)

    def renyi(self, alpha: float, shift: float) -> float:
        """Exact sums over pieces; eps times the number of steps begun, at alpha = inf."""
        alpha, shift = check_alpha(alpha), check_shift(shift)
        if shift == 0:
            return 0.0
        if alpha == math.inf:
            return self.epsilon * math.ceil(shift / self.step * (1 - 1e-14))
        length, here, there = self._pieces(shift)
        if alpha == 1:
            return float(np.sum(np.exp(length + here) * (here - there)))
        terms = length + alpha * here + (1 - alpha) * there
        top = float(np.max(terms))
        return max(0.0, (top + math.log(float(np.sum(np.exp(terms - top))))) / (alpha - 1))

    def delta(self, epsilon: float, shift: float) -> float:
        """The exact hockey-stick sum over pieces."""
        epsilon, shift = check_epsilon(epsilon), check_shift(shift)
        if shift == 0:
            return 0.0
        length, here, there = self._pieces(shift)
        lead = here - there - epsilon
        lead = np.where(lead < 1e-12 * max(epsilon, 1.0), 0, lead)
        return float(np.sum(np.exp(length + here) * -np.expm1(-lead)))

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """At alpha = inf, as many whole steps as eps pays for."""
        if alpha == math.inf:
            return self.step * math.floor(epsilon / self.epsilon * (1 + 1e-14))
        return super().largest_shift(alpha, epsilon)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """A sign, a geometric period, one of its two parts, and a uniform place in it."""
        k = rng.geometric(-math.expm1(-self.epsilon), shape) - 1
        g, q, u = self._g, self._q, rng.random(shape)
        inner = rng.random(shape) < g / (g + q * (1 - g))
        place = k + np.where(inner, g * u, g + (1 - g) * u)
        return np.asarray(np.where(rng.random(shape) < 0.5, -1.0, 1.0) * place * self.step)
