"""Gaussian noise: zero-concentrated DP and what it means as (epsilon, delta).

Gaussian noise of standard deviation s on a vector that neighbours change by at most D in l2 is rho-zCDP with rho =
D^2/(2 s^2); so is discrete Gaussian noise on integers (Canonne, Kamath, Steinke 2020, Theorem 14). rho-zCDP implies
(eps, delta)-DP with

    delta = min over a > 1 of exp((a-1)(a rho - eps)) (1 - 1/a)^a / (a-1)    (there, Proposition 12).
"""

from __future__ import annotations

import math
from fractions import Fraction

from rankdp.errors import InputError


def log_delta_of(rho: float, epsilon: float) -> float:
    """The logarithm of the smallest delta that rho-zCDP gives at this epsilon.

    The order is found by golden-section search; whatever order is found, the bound holds.
    """

    def log_delta(log_order: float) -> float:
        less_one = math.exp(log_order)
        order = 1 + less_one
        return less_one * (order * rho - epsilon) + order * math.log1p(-1 / order) - log_order

    low, high = -20.0, 20.0
    step = (math.sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = high - step * (high - low), low + step * (high - low)
        if log_delta(left) < log_delta(right):
            high = right
        else:
            low = left
    return min(0.0, log_delta((low + high) / 2))


def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down, whose zCDP is (epsilon, delta)-DP."""
    if not 0 < delta < 1:
        raise InputError(f"delta must be above 0 and below 1 for Gaussian noise, got {delta}")
    eps = float(epsilon)
    target = math.log(delta.numerator) - math.log(delta.denominator) - 1e-9  # of any size, where exp would be 0
    low, high = 0.0, eps  # rho-zCDP is never better than rho in epsilon
    for _ in range(200):
        middle = (low + high) / 2
        if log_delta_of(middle, eps) <= target:
            low = middle
        else:
            high = middle
    if low == 0:
        raise InputError(f"no Gaussian noise gives epsilon {epsilon} with delta {delta}")
    return Fraction(low)


def deviation_for(l2_squared: int, rho: Fraction) -> Fraction:
    """The standard deviation, rounded up, of Gaussian noise that is rho-zCDP for this squared l2 sensitivity."""
    return Fraction(math.isqrt(math.ceil(l2_squared / (2 * rho) * 2**40)) + 1, 2**20)
