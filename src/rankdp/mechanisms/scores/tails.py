"""Privacy of the law ``exp(-rate (|j|/scale)^p)`` on the integers: hockey-stick delta, Rényi curve, scale, variance.

Let N have this law with p > 1, and let a neighbour shift it by s <= K. The law is log-concave, so its likelihood ratios
are monotone, and the events {N >= t} distinguish N from N + s best. ``P(N + s >= t)`` grows with s. So every
hockey-stick divergence is largest at s = K, and so is every Rényi divergence, which is a mixture of them.

**Delta.** With ``w(j) = rate (|j|/scale)^p`` and t the smallest integer where ``w(t+K) - w(t) > eps``,

    delta(eps) = P(N >= t) - e^eps P(N >= t + K)    (for p = 2: Canonne, Kamath, Steinke 2020, Theorem 7;
                                                      the discrete form of Balle and Wang 2018).

It is bounded from above: a tail is summed term by term over its first integers, and the monotone rest lies between two
incomplete gamma functions, ``integral from T of f <= sum over j >= T of f(j) <= f(T) + the same integral``. Floats are
accurate to 1e-12 here and are allowed 1e-10. They cannot decide on which side of eps a difference of exponents very
close to it lies, so t is where eps minus a margin is passed. The terms that this adds are negative, by at most twice
the margin relative to the first tail, which is enlarged by as much.

**Rényi.** ``exp((a-1) D_a) = E exp((a-1)(w(N+K) - w(N)))``, a sum of exp(h), ``h(t) = -a w(t) + (a-1) w(t+K)``. On a
block of integers from l to r the concave part of h lies below its tangent and the convex part below its chord. Their
sum is linear, and the average of its exponential is at most the average at the two ends. Beyond the last block, to the
right, h' is negative and falls further (h' = -w'(t) (1 - (a-1) ((1+K/t)^(p-1) - 1)), a product of growing factors); to
the left, h <= -w. Both tails are geometric. Every step is an upper bound.

Every pure eps-DP mechanism obeys the curve of randomized response, ``D_a <= log((e^(a eps) + e^((1-a) eps)) / (1 +
e^eps)) / (a-1)`` (Bun, Steinke 2016, Proposition 3.3).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError

#: the orders at which a guarantee states its Rényi curve
ORDERS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)

_SLACK = 1e-10
_LEAST = 1e-300  # above what underflow can hide
_TERMS = 2048  # of a tail that are added one by one
_BLOCKS = 8192
_DROP = 60.0  # blocks reach until h has fallen by this much
_FLAT = 1e-25  # below, exp(-w) is 1 in a float
_WEIGHTLESS = 800.0  # exp(-800) is far below _LEAST
_LARGEST_EXPONENT = 1e9  # above, floats are too coarse for h, and no bound is given
_SIGNIFICANT = 24  # bits of a calibrated scale


@dataclass(frozen=True)
class PowerTails:
    """Sums over the law ``exp(-rate (|j|/scale)^p)``, in floating point with stated bounds."""

    p: float
    rate: float
    scale: float

    def exponent(self, t: float) -> float:
        """w(t)."""
        with suppress(OverflowError):
            return float(self.rate * (abs(t) / self.scale) ** self.p)
        return math.inf

    def slope(self, t: float) -> float:
        """w'(t) for t > 0."""
        return float(self.rate * self.p * (t / self.scale) ** (self.p - 1) / self.scale)

    def integral(self, start: float, power: int = 0) -> float:
        """The integral of t^power exp(-w(t)) from ``start`` on."""
        from scipy.special import gammaincc, gammaln

        shape = (power + 1) / self.p
        whole = math.exp(gammaln(shape) + (power + 1) * math.log(self.scale) - shape * math.log(self.rate)) / self.p
        if self.exponent(start) < _FLAT:  # the exponent underflows for a large p; the part before ``start`` does not
            return float(whole - start ** (power + 1) / (power + 1))
        return float(whole * gammaincc(shape, self.exponent(start)))

    def _terms(self, start: int) -> NDArray[np.float64]:
        magnitudes = np.abs(np.arange(_TERMS, dtype=np.float64) + start)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-self.rate * (magnitudes / self.scale) ** self.p))

    def tail(self, start: int) -> tuple[float, float]:
        """Bounds of the sum of exp(-w(j)) over j >= start, for any integer."""
        if start <= 0:
            low, high = self.tail(1 - start)
            return max(0.0, self.whole[0] - high), self.whole[1] - low
        first, rest = float(self._terms(start).sum()), self.integral(start + _TERMS)
        largest = math.exp(-self.exponent(start + _TERMS))
        return (first + rest) * (1 - _SLACK), (first + rest + largest) * (1 + _SLACK) + _LEAST

    @cached_property
    def whole(self) -> tuple[float, float]:
        """Bounds of the sum over all integers."""
        low, high = self.tail(1)
        return 1 + 2 * low, 1 + 2 * high

    @property
    def variance(self) -> float:
        """The variance of the law, accurate to many digits: beyond the first terms the sum is an integral."""
        squares = (np.arange(_TERMS) + 1.0) ** 2
        with suppress(OverflowError):
            second = float(squares @ self._terms(1)) + self.integral(_TERMS + 0.5, power=2)
            return 2 * second / sum(self.whole) * 2
        return math.inf

    def delta(self, epsilon: float, steps: int) -> float:
        """An upper bound of the hockey-stick delta between the law and its shift by ``steps``; p > 1."""
        margin = 1e-11 * (1 + self.p) * (1 + epsilon)  # terms that are not 0 in a float have exponents below 750
        start = self._threshold(epsilon - margin, steps)
        first = self.tail(start)[1] * (1 + 2 * margin)
        excess = first - math.exp(min(epsilon, 700.0)) * self.tail(start + steps)[0]
        return min(1.0, max(excess, 0.0) / self.whole[0] + _LEAST)

    def _threshold(self, epsilon: float, steps: int) -> int:
        """The smallest integer t with w(t + steps) - w(t) > epsilon; the difference grows with t.

        The search ends where w exceeds 800: beyond, floats cannot distinguish t from t + steps, and the sum of all
        weights is below ``_LEAST``. If w(t + steps) is infinite in a float, t > -steps/2 counts as above.
        """
        low, high = -steps // 2 - 1, 1 + math.ceil(self.scale * math.pow(_WEIGHTLESS / self.rate, 1 / self.p))
        while high - low > 1:
            middle = (low + high) // 2
            far = self.exponent(middle + steps)
            if (math.isinf(far) and 2 * middle > -steps) or far - self.exponent(middle) > epsilon:
                high = middle
            else:
                low = middle
        return high

    def renyi(self, order: float, steps: int) -> float:
        """An upper bound of the Rényi divergence of this order between the law and its shift by ``steps``; p > 1."""
        less = order - 1
        growth = math.expm1(math.log1p(1 / less) / (self.p - 1)) if (self.p - 1) * 700 > math.log1p(1 / less) else 1e300
        peak = steps / growth  # where h' is 0 on the right
        if self.exponent(peak + steps) * order > _LARGEST_EXPONENT:
            return math.inf
        right, left = self._reach(peak, order, steps)
        edges = np.unique(np.rint(np.linspace(-left, right + 1, _BLOCKS + 1)))
        first, last = edges[:-1], edges[1:] - 1
        sums, top = self._blocks(first, last, order, steps)
        slope = -order * self.slope(right) + less * self.slope(right + steps)
        beyond = math.exp(-order * self.exponent(right) + less * self.exponent(right + steps) - top) / -math.expm1(
            slope
        )
        before = math.exp(-self.exponent(left) - top) / math.expm1(self.slope(left))
        return float(top + math.log((sums + beyond + before) * (1 + _SLACK) / self.whole[0])) / less * (1 + 1e-12)

    def _reach(self, peak: float, order: float, steps: int) -> tuple[int, int]:
        """How far the blocks extend to the right and to the left of 0."""

        def h(t: float) -> float:
            return -order * self.exponent(t) + (order - 1) * self.exponent(t + steps)

        wide, floor = self.scale, h(peak) - _DROP
        while h(peak + wide) > floor:
            wide *= 1.5
        left = float(steps)
        while -self.exponent(left) > floor:
            left *= 1.5
        return math.ceil(peak + wide) + 1, math.ceil(left) + 1

    def _blocks(
        self, first: NDArray[np.float64], last: NDArray[np.float64], order: float, steps: int
    ) -> tuple[float, float]:
        """The bound over the blocks as a pair (sum, top) that stands for sum * exp(top)."""
        less, middle = order - 1, (first + last) / 2
        sizes = np.abs(middle) / self.scale
        w, slopes = self.rate * sizes**self.p, np.sign(middle) * self.rate * self.p * sizes ** (self.p - 1) / self.scale
        lines = []
        for end in (first, last):
            chord = self.rate * (np.abs(end + steps) / self.scale) ** self.p
            rounding = 1e-15 * (self.p + 4) * (order * (w + np.abs(slopes * (end - middle))) + less * chord)
            lines.append(-order * (w + slopes * (end - middle)) + less * chord + rounding)
        top = max(float(line.max()) for line in lines)
        counts = last - first + 1
        return float(sum(counts @ np.exp(line - top) for line in lines)) / 2, top


def calibrate(p: Fraction, rate: Fraction, steps: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The smallest scale, rounded up to 24 bits, at which the delta of a shift by ``steps`` is at most ``delta``."""
    wanted, target = float(epsilon), math.nextafter(float(delta), 0)

    def enough(scale: float) -> bool:
        return PowerTails(float(p), float(rate), scale).delta(wanted, steps) <= target

    high = float(steps)
    while not enough(high):
        high *= 2
        if high > 2.0**58:
            raise InputError(f"no noise of shape p = {p} gives epsilon {epsilon} with delta {delta} in 64-bit integers")
    low = high / 2
    while enough(low) and low > 2.0**-20:
        low, high = low / 2, low
    for _ in range(_SIGNIFICANT + 4):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    unit = Fraction(2) ** (math.frexp(high)[1] - _SIGNIFICANT)
    scale = math.ceil(Fraction(high) / unit) * unit
    while not enough(float(scale)):
        scale += unit
    return scale


def pure_renyi(epsilon: float, order: float) -> float:
    """The Rényi curve that every eps-DP mechanism obeys, rounded up: the curve of randomized response."""
    inner = math.log1p(math.exp((1 - 2 * order) * epsilon)) - math.log1p(math.exp(-epsilon))
    return rounded_up(epsilon + inner / (order - 1), epsilon, order)


def laplace_renyi(epsilon: float, steps: int, order: float) -> float:
    """The discrete form of Jeong's (27), rounded up: three geometric sums for a shift by ``steps``.

    With r = exp(-eps/K), C = (1-r)/(1+r) and a the order, the sum of P(j)^a P(j-K)^(1-a) is C e^((a-1) eps) times
    1/(1-r) over j <= 0, e^(-(2a-1) eps)/(1-r) over j >= K, and the sum of r^((2a-1) j) over 0 < j < K in between.
    """
    rate, double = epsilon / steps, 2 * order - 1
    between = math.expm1(-rate) / math.expm1(-double * rate) * (math.exp(-double * rate) - math.exp(-double * epsilon))
    inner = math.log((1 + math.exp(-double * epsilon) + between) / (1 + math.exp(-rate)))
    return min(rounded_up(epsilon + inner / (order - 1), epsilon, order), pure_renyi(epsilon, order))


def rounded_up(value: float, epsilon: float, order: float) -> float:
    """A Rényi epsilon plus the possible error of a logarithm near 1, divided by order - 1; never above epsilon."""
    least = math.nextafter(epsilon * (1 + 1e-15), math.inf)
    return min(least, max(value, 0.0) * (1 + 1e-12) + 4e-15 / (order - 1) + 1e-15 * epsilon)
