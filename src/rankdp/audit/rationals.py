"""Logarithms between rationals: ``decimal`` rounds them correctly, so a little outwards encloses them."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

_DIGITS = 180


def log_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around log(value), for value > 0, at most 1e-170 (1 + log) apart.

    The quotient is off by a relative 10^-179, so its logarithm by as much, and rounding that by a unit in its last
    place: a hundred such units outwards are enough, also where the logarithm is 0.
    """
    with decimal.localcontext(decimal.Context(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)) as context:
        logarithm = (Decimal(value.numerator) / Decimal(value.denominator)).ln(context)
    unit = Fraction(10) ** (max(logarithm.adjusted(), 0) + 3 - _DIGITS)
    return Fraction(logarithm) - unit, Fraction(logarithm) + unit


def show(value: Fraction | float, digits: int = 4) -> str:
    """A number for a sentence, in so many significant digits."""
    number = float(value)
    return "infinite" if math.isinf(number) else "none" if math.isnan(number) else f"{number:.{digits}g}"
