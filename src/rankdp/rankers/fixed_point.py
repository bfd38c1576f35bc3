"""Exponentials and arctangents of fixed-point numbers: integers that count units of 2^-192.

Sums, differences and multiplications by whole numbers are exact. Every other operation here (a product, a quotient, a
root, each rounded down, a constant, a series cut where its terms vanish) is off by at most 2 units, of which `exp` and
`arctan_share` make fewer than 400 and double them at most 8 times: 2^17 units, and what links do with the result
multiplies that by less than 2^10. So everything is within ERROR = 2^-160 of its formula, whatever the arguments.
"""

from __future__ import annotations

import math
from functools import cache

BITS = 192
ONE = 1 << BITS
ERROR = 2.0**-160
"""Bounds the error of every function of this module, and of every link's exact slopes."""

_HALVINGS = 8


def from_float(value: float) -> int:
    """A double as a fixed-point number, rounded down below 2^-192."""
    top, bottom = value.as_integer_ratio()
    return (top << BITS) // bottom


def to_float(value: int) -> float:
    """The nearest double."""
    return value / ONE


def product(one: int, other: int) -> int:
    """one times other."""
    return one * other >> BITS


def quotient(one: int, other: int) -> int:
    """one over other."""
    return (one << BITS) // other


@cache
def _log_two() -> int:
    """log 2 = 2 atanh(1/3) = 2 sum over k of 3^-(2k+1) / (2k+1)."""
    total, power, k = 0, 2 * ONE // 3, 1
    while power:
        total, power, k = total + power // k, power // 9, k + 2
    return total


def exp(x: int) -> int:
    """e^-x for x >= 0: the power of two taken out, the rest divided by 2^8, Taylor's series, and 8 squares."""
    twos, rest = divmod(x, _log_two())
    if twos > BITS:
        return 0
    rest >>= _HALVINGS
    total, term, k = ONE, ONE, 1
    while abs(term) > 1:
        term = -(term * rest >> BITS) // k
        total, k = total + term, k + 1
    for _ in range(_HALVINGS):
        total = total * total >> BITS
    return total >> twos


def arctan_share(w: int) -> int:
    """atan(w)/w for 0 <= w <= 1.

    With v = w/(1 + sqrt(1 + w^2)) it is 2/(1 + sqrt(1 + w^2)) atan(v)/v; after 8 such halvings a series.
    """
    factor = ONE
    for _ in range(_HALVINGS):
        root = ONE + math.isqrt((ONE << BITS) + w * w)
        factor, w = 2 * factor * ONE // root, w * ONE // root
    square, total, term, k = w * w >> BITS, ONE, ONE, 3
    while abs(term) > 1:
        term = -(term * square >> BITS)
        total, k = total + term // k, k + 2
    return product(factor, total)


@cache
def pi() -> int:
    """4 atan(1)."""
    return 4 * arctan_share(ONE)
