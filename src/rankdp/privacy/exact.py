"""Exact numbers: rationals as the user wrote them, and rigorous integer bounds on exp(-x).

Nothing here rounds silently. A float is read as the shortest decimal that denotes it (0.1 means one tenth, as
its author meant), and ``exp_bounds`` encloses the real number exp(-x) between two integers.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, TypeGuard

from rankdp.errors import InputError, Setting

Real: TypeAlias = int | float | str | Decimal | Fraction

_LONGEST_EXPONENT = 5  # a sign and four digits
_LN2_BELOW = Fraction(6931471805599453094172321214581765, 10**34)


def rational(value: Real, name: str = "epsilon") -> Fraction:
    """``value`` as the exact rational its author wrote: 0.1 and "0.1" are 1/10, "1/3" is a third."""
    try:
        if isinstance(value, bool):
            raise TypeError  # noqa: TRY301
        if isinstance(value, (int, Fraction)):
            return Fraction(value)
        text = str(value).strip()
        if len(text.lower().partition("e")[2]) > _LONGEST_EXPONENT:  # 1e999999999 would fill the memory with zeros
            raise OverflowError  # noqa: TRY301
        return Fraction(text)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InputError(Setting(name), f" must be a finite number, got {value!s}") from None


def one_each(value: object) -> TypeGuard[Iterable[Real]]:
    """Whether the value is several numbers, one per row, instead of one for all (text and 0-d arrays are one)."""
    return isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", None) != 0


def positive(value: Real, name: str = "epsilon") -> Fraction:
    """``value`` as an exact rational above zero, or a refusal."""
    try:
        exact = rational(value, name)
    except InputError:
        exact = Fraction(0)
    if exact <= 0:
        raise InputError(Setting(name), f" must be a finite number above 0, got {value!s}")
    return exact


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with 0 <= lo <= 2**bits * exp(-x) <= hi <= 2**bits and hi - lo <= 2, for x >= 0.

    ``decimal`` rounds its exponential correctly (half-even), so stepping one unit outwards encloses the
    value; the argument, a rational, is enclosed first.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x > (bits + 1) / _LN2_BELOW:  # exp(-x) < 2**-(bits + 1)
        return 0, 1
    digits = bits * 302 // 1000 + 12 + len(str(math.ceil(x)))
    with decimal.localcontext(decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)) as context:
        context.rounding = decimal.ROUND_FLOOR
        below = Decimal(x.numerator) / Decimal(x.denominator)
        context.rounding = decimal.ROUND_CEILING
        above = Decimal(x.numerator) / Decimal(x.denominator)
        context.rounding = decimal.ROUND_HALF_EVEN
        low, high = (-above).exp().next_minus(), (-below).exp().next_plus()
    low_top, low_bottom = low.as_integer_ratio()
    high_top, high_bottom = high.as_integer_ratio()
    return max(0, (low_top << bits) // low_bottom), min(1 << bits, -(-(high_top << bits) // high_bottom))


def exp_enclosure(low: Fraction, high: Fraction, bits: int) -> tuple[int, int]:
    """Integers around 2**bits * exp(-x) for every x >= 0 between ``low`` and ``high``."""
    return exp_bounds(max(high, Fraction(0)), bits)[0], exp_bounds(max(low, Fraction(0)), bits)[1]


def upwards(value: float) -> float:
    """A float above a positive value that was computed with a relative error of up to 1e-12."""
    return math.nextafter(value * (1 + 1e-12), math.inf)


def exponent(value: Fraction) -> int:
    """The power of ten of a positive number's first digit, give or take one."""
    return math.floor(math.log10(value.numerator) - math.log10(value.denominator))


def sixth_digit(value: Fraction) -> Fraction:
    """The unit of a positive number's sixth digit."""
    return Fraction(10) ** (exponent(value) - 5)


def shown(value: Fraction, up: bool = True) -> str:
    """A rational for people: exact if that takes at most nine decimals, else six digits, rounded up or down."""
    if value.denominator == 1 and value < 10**9:
        return str(value)
    if value > 0 and (10**9 * value).denominator == 1:
        return f"{float(value):.12g}"
    if value <= 0:
        return str(value)
    unit = sixth_digit(value)
    return f"{float((math.ceil if up else math.floor)(value / unit) * unit):.6g}"
