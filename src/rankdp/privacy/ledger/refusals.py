"""What a refused release is told: requested, spent, remaining, short by how much, and what would still fit.

Exact numbers, shown to at most nine decimals or six digits: what is spent rounded up, what is left rounded down.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from rankdp.errors import BudgetExceeded, InputError
from rankdp.privacy.composition import Account, Sums
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.zcdp import rho_of


def exponent(value: Fraction) -> int:
    """The power of ten of a positive number's first digit, give or take one."""
    return math.floor(math.log10(value.numerator) - math.log10(value.denominator))


def shown(value: Fraction, up: bool = True) -> str:
    """A rational for people: as it is where that is short, else six digits, rounded up or down."""
    if value.denominator == 1 and value < 10**9:
        return str(value)
    if value > 0 and (10**9 * value).denominator == 1:
        return f"{float(value):.12g}"
    if value <= 0:
        return str(value)
    unit = _unit(value)
    return f"{float((math.ceil if up else math.floor)(value / unit) * unit):.6g}"


def exceeded(
    whose: str, account: Account, asked: Guarantee, place: tuple[str, str] | None, words: str | None
) -> BudgetExceeded:
    """The refusal with all its numbers; ``whose`` names the budget, ``words`` say how the release was converted."""
    after, _ = account.charged(asked, place)
    terms, before, then = account.terms, account.standing(), after.standing()
    fits = largest_fit(account, asked, place)
    remaining = max(terms.epsilon - before.epsilon, Fraction(0))
    short_by = max(then.epsilon - terms.epsilon, Fraction(0))
    told = [
        f"{whose} has a budget of epsilon {shown(terms.epsilon)}",
        f"requested {shown(asked.epsilon)}" + (f" ({words})" if words else ""),
        f"spent {shown(before.epsilon)} (counted by {before.method})",
        f"remaining {shown(remaining, up=False)}",
        f"short by {shown(short_by)}",
    ]
    if asked.delta and not short_by:
        allowed = terms.delta / 2 if after.mode == "split" else terms.delta
        told.append(f"delta: requested {shown(asked.delta)}, spent {shown(account.total().delta)} of {shown(allowed)}")
    told.append(
        f"an epsilon of {shown(fits, up=False)} would still fit"
        + (f" with delta {shown(asked.delta)}" if asked.delta else "")
        if fits
        else "nothing of this kind fits any more"
    )
    return BudgetExceeded("; ".join(told), asked.epsilon, before.epsilon, remaining, short_by, fits)


def largest_fit(account: Account, asked: Guarantee, place: tuple[str, str] | None) -> Fraction:
    """The largest epsilon that fits in place of the one asked for, with the same delta and kind of noise."""

    def fits(epsilon: Fraction) -> bool:
        if epsilon == 0:
            return True
        try:
            rho = float(rho_of(epsilon, asked.delta)) if asked.rho is not None and asked.delta else None
        except InputError:
            return False  # too small for any Gaussian noise
        return account.charged(replace(asked, epsilon=epsilon, rho=rho, renyi=()), place)[0].standing().holds

    basic = max(account.terms.epsilon - _others(account, place), Fraction(0))
    low = basic if fits(basic) else Fraction(0)
    if account.mode == "basic" or not account.terms.delta or (account.mode == "open" and not asked.delta):
        return low
    high = account.terms.epsilon
    for _ in range(30 if asked.rho is None else 14):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low if low in (0, basic) else math.floor(low / (unit := _unit(low))) * unit


def _others(account: Account, place: tuple[str, str] | None) -> Fraction:
    """The epsilons that basic composition adds to one more release: in its partition, those of its own part alone."""
    if place is None:
        return account.total().epsilon
    partition, part = place
    own = account.parts.get(partition, {}).get(part, Sums())
    return replace(account, parts={**account.parts, partition: {part: own}}).total().epsilon


def _unit(value: Fraction) -> Fraction:
    """The sixth digit of a positive number."""
    return Fraction(10) ** (exponent(value) - 5)
