"""The contract of every noise on scores: Y = X + sigma N, each coordinate of N symmetric, unimodal, of variance one.

For a symmetric unimodal density f the privacy of a shift grows with the shift, so the supremum over all shifts
up to ``shift`` (which Rényi DP (5b) and (eps, delta)-DP ask for) is the value at ``shift`` itself. Proof: for
alpha > 1 the integral of f(x)^alpha f(x-r)^(1-alpha) pairs a symmetric decreasing function with a symmetric
increasing one, whose level sets are complements of intervals around r, and the mass of an interval of fixed
length falls as it moves away from 0. For the hockey-stick, delta + e^eps is the integral of max(f(x), e^eps
f(x-r)), in layers the length of the union of two intervals around 0 and r, which grows with r.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError

FloatArray = NDArray[np.float64]


class ScoreNoise(ABC):
    """One family of noise with its parameters; a frozen dataclass, so that it can be compared, hashed and printed."""

    name: ClassVar[str]
    log_concave: ClassVar[bool] = False
    """Whether sorting is the optimal decoder for i.i.d. scores: the coordinates' density is log-concave."""
    independent: ClassVar[bool] = True
    """Whether the coordinates are independent (all families but the balls)."""

    @abstractmethod
    def log_density(self, x: ArrayLike) -> FloatArray:
        """log f(x) of one coordinate; -inf outside the support."""

    def density(self, x: ArrayLike) -> FloatArray:
        """f(x) of one coordinate."""
        return np.exp(self.log_density(x))

    @abstractmethod
    def survival(self, x: ArrayLike) -> FloatArray:
        """P(N > x), accurate in the far tail."""

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(N <= x) = P(N > -x), accurate in the far tail."""
        return self.survival(-np.asarray(x, dtype=float))

    @abstractmethod
    def quantile(self, u: ArrayLike) -> FloatArray:
        """The x with P(N <= x) = u."""

    @abstractmethod
    def excess(self, x: ArrayLike) -> FloatArray:
        """E[max(N - x, 0)], the integral of the survival function above x."""

    def quick_excess(self, x: ArrayLike) -> FloatArray:
        """``excess``, perhaps from a table (good to 1e-9)."""
        return self.excess(x)

    @abstractmethod
    def difference_survival(self, d: ArrayLike) -> FloatArray:
        """P(N - N' > d) for d >= 0: the chance that a pair of scores sigma d apart changes order."""

    @property
    @abstractmethod
    def mean_difference(self) -> float:
        """``E|N - N'|``, the noise's only part in the first-order error (19)."""

    @abstractmethod
    def renyi(self, alpha: float, shift: float) -> float:
        """The largest ``D_alpha(N || N + r)`` over r up to ``shift``, alpha in [1, inf]; 1 is Kullback-Leibler."""

    @abstractmethod
    def delta(self, epsilon: float, shift: float) -> float:
        """The smallest delta for which a shift of at most ``shift`` is (epsilon, delta)-DP."""

    @abstractmethod
    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draws of N, for simulations; a release never uses it."""

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """The largest shift with ``renyi(alpha, shift) <= epsilon``; 0 if there is none."""
        return grow(lambda shift: self.renyi(alpha, shift) <= epsilon)


def grow(allowed: Callable[[float], bool]) -> float:
    """The largest allowed positive number, if the allowed ones are an interval from 0; 0 if it is below 1e-12."""
    low, high = 0.0, 1.0
    while allowed(high):
        low, high = high, high * 8
        if high > 1e12:
            return math.inf
    if low == 0:
        while not allowed(high / 8):
            high /= 8
            if high < 1e-12:
                return 0.0
        low = high / 8
    while high - low > 1e-13 * high:  # bisection in the logarithm, then on the line: about 50 steps
        middle = math.sqrt(low * high) if high > 1.5 * low else (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
        if middle in (low, high) and high - low <= 4e-16 * high:
            break
    return low


def check_number(value: Any, argument: str, rule: str, above: float, least: bool = False) -> float:
    """``value`` as a float above (or at least, with ``least``) a bound; the refusal names argument, rule and value."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or not (number >= above if least else number > above):
        raise InputError(f"{argument} must be {rule}, got {value!r}")
    return number


def check_alpha(alpha: float) -> float:
    """An order of Rényi divergence: at least 1, infinity allowed."""
    return check_number(alpha, "alpha", "a number of at least 1 (inf for pure DP)", 1.0, least=True)


def check_shift(shift: float) -> float:
    """A shift in units of sigma: finite and not negative."""
    number = check_number(shift, "shift", "a finite number of at least 0", 0.0, least=True)
    if math.isinf(number):
        raise InputError(f"shift must be a finite number of at least 0, got {shift!r}")
    return number


def check_epsilon(epsilon: float) -> float:
    """A privacy loss: finite and not negative."""
    number = check_number(epsilon, "epsilon", "a finite number of at least 0", 0.0, least=True)
    if math.isinf(number):
        raise InputError(f"epsilon must be a finite number of at least 0, got {epsilon!r}")
    return number
