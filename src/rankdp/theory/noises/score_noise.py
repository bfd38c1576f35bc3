"""The contract of every noise on scores: Y = X + sigma N, each coordinate of N symmetric, unimodal, of variance one.

For a symmetric unimodal density f the privacy of a shift grows with the shift, so the supremum over all shifts
up to ``shift`` (which Rényi DP (5b) and (eps, delta)-DP ask for) is the value at ``shift`` itself. Proof: for
alpha > 1 the integral of f(x)^alpha f(x-r)^(1-alpha) pairs a symmetric decreasing function with a symmetric
increasing one, whose level sets are complements of intervals around r, and the mass of an interval of fixed
length falls as it moves away from 0. For the hockey-stick, delta + e^eps is the integral of max(f(x), e^eps
f(x-r)), in layers the length of the union of two intervals around 0 and r, which grows with r.

A family states what it is for sizes x >= 0 (``_tail``, ``_tail_quantile``, ``_tail_excess``) and for checked arguments
(``_renyi``, ``_delta``); symmetry and checks are here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import number
from rankdp.errors import InputError, Unsupported
from rankdp.theory.quadrature import excess_table
from rankdp.types import Floats


class ScoreNoise(ABC):
    """One family of noise with its parameters; a frozen dataclass, so that it can be compared, hashed and printed."""

    name: ClassVar[str]
    independent: bool = True
    """Whether the coordinates are independent (all families but the balls)."""

    @abstractmethod
    def log_density(self, x: ArrayLike) -> Floats:
        """log f(x) of one coordinate; -inf outside the support."""

    def density(self, x: ArrayLike) -> Floats:
        """f(x) of one coordinate."""
        return np.exp(self.log_density(x))

    def survival(self, x: ArrayLike) -> Floats:
        """P(N > x), accurate in the far tail."""
        x = np.asarray(x, dtype=float)
        tail = self._tail(np.abs(x))
        return np.where(x > 0, tail, 1 - tail)

    def cdf(self, x: ArrayLike) -> Floats:
        """P(N <= x) = P(N > -x), accurate in the far tail."""
        return self.survival(-np.asarray(x, dtype=float))

    def quantile(self, u: ArrayLike) -> Floats:
        """The x with P(N <= x) = u."""
        u = np.asarray(u, dtype=float)
        return np.asarray(np.sign(u - 0.5) * self._tail_quantile(np.minimum(u, 1 - u)))

    def excess(self, x: ArrayLike) -> Floats:
        """E[max(N - x, 0)], the integral of the survival function above x: E(N-x)+ - E(N-x)- = -x."""
        x = np.asarray(x, dtype=float)
        return np.asarray(self._tail_excess(np.abs(x)) + np.maximum(-x, 0))

    _excess_grid: tuple[float, float, float] | None = None
    """First and last cell of a table of the excess, in the logarithm, and their width; None if it is quick anyway."""

    @cached_property
    def _excess_table(self) -> Callable[[Floats], Floats]:
        return excess_table(self.excess, *self._excess_grid) if self._excess_grid else self.excess

    def quick_excess(self, x: ArrayLike) -> Floats:
        """``excess``, perhaps from a table (good to 1e-9): a plan asks for it at a million places."""
        return self._excess_table(np.asarray(x, dtype=float))

    @abstractmethod
    def _tail(self, size: Floats) -> Floats:
        """P(N > size)."""

    @abstractmethod
    def _tail_quantile(self, tail: Floats) -> Floats:
        """The size with P(N > size) = tail, tail <= 1/2."""

    @abstractmethod
    def _tail_excess(self, size: Floats) -> Floats:
        """E[max(N - size, 0)]."""

    @abstractmethod
    def difference_survival(self, d: ArrayLike) -> Floats:
        """P(N - N' > d) for d >= 0: the chance that a pair of scores sigma d apart changes order."""

    @property
    @abstractmethod
    def mean_difference(self) -> float:
        """``E|N - N'|``, the noise's only part in the first-order error (19)."""

    def renyi(self, alpha: float, shift: float) -> float:
        """The largest ``D_alpha(N || N + r)`` over r up to ``shift``, alpha in [1, inf]; 1 is Kullback-Leibler."""
        alpha, shift = check_alpha(alpha), number("shift", shift, 0)
        return self._renyi(alpha, shift) if shift else 0.0

    def delta(self, epsilon: float, shift: float) -> float:
        """The smallest delta for which a shift of at most ``shift`` is (epsilon, delta)-DP."""
        epsilon, shift = number("epsilon", epsilon, 0), number("shift", shift, 0)
        return max(0.0, self._delta(epsilon, shift)) if shift else 0.0

    @abstractmethod
    def _renyi(self, alpha: float, shift: float) -> float: ...

    @abstractmethod
    def _delta(self, epsilon: float, shift: float) -> float: ...

    def largest_shift(self, alpha: float, epsilon: float) -> float:
        """The largest shift with ``renyi(alpha, shift) <= epsilon``; 0 if there is none."""
        return grow(lambda shift: self.renyi(alpha, shift) <= epsilon)

    @abstractmethod
    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Draws of N, for simulations; a release never uses it."""


def grow(allowed: Callable[[float], bool]) -> float:
    """The largest allowed positive number, if the allowed ones are an interval from 0; 0 if it is below 1e-12."""
    low, high = 1e-12, 1.0
    if not allowed(low):
        return 0.0
    while allowed(high):
        low, high = high, high * 8
        if high > 1e12:
            return math.inf
    while low < (middle := math.sqrt(low) * math.sqrt(high)) < high and high - low > 1e-15 * high:
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def check_alpha(alpha: Any) -> float:
    """An order of Rényi divergence: at least 1, infinity allowed."""
    return math.inf if alpha == math.inf else number("alpha", alpha, 1)


def check_shape(value: Any, least: float, most: float) -> float:
    """A shape p within limits."""
    p = number("p", value)
    if not least <= p <= most:
        raise InputError(f"p must be a number from {least:g} to {most:g}, got {value!r}")
    return p


def check_independent(noise: ScoreNoise) -> None:
    """Refuse noise whose coordinates depend on each other."""
    if not noise.independent:
        raise Unsupported(f"the {noise.name} noise has dependent coordinates: only simulation can tell")
