"""What a release costs a budget for another unit of protection.

| the release protects | the budget protects | it costs |
|---|---|---|
| one voter | one voter with at most c comparisons | eps: such a voter is a voter |
| one comparison | one voter with at most c comparisons | c eps, delta (e^(c eps) - 1)/(e^eps - 1), c^2 rho |
| one item's position | one whole ranking | the local-DP epsilon that the mechanism states |
| one whole ranking | one item's position | eps: neighbours are a special case of two rankings |
| one voter | one comparison | 2 eps, delta (e^eps + 1), 4 rho: it may move from one voter to another |
| one voter | one comparison's outcome | eps: an outcome stays with its voter |
| one comparison | its outcome | eps: an outcome is part of a comparison |
| one voter | one ballot | 2 eps, delta (e^eps + 1), 4 rho: one ballot is removed, another added |

The second is group privacy, a chain of c changes. The chain leaves every voter's number of comparisons as it is, so
that number is public in the converted guarantee, and the caller must know that no voter has more than c in the table
that was counted (a row of weight w is w comparisons). A table that was bounded per voter is never released under "one
comparison" (``publish.rank`` refuses it), so the chain never involves a choice of rows.

A release that protects voters weighs each voter's rows itself and holds for any change of all rows of one voter,
whatever the bound: it needs no conversion. Replacing a comparison by one of *another* voter changes the rows of two
voters. That is a chain of two changes, whatever the weights: one comparison is removed, the other added. In the same
way, replacing a ballot is removing one and adding another. The reverse does not hold: a release under "one ballot" may
state how many there are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from rankdp.errors import InputError, Setting
from rankdp.privacy.exact import exp_bounds, exponent, shown
from rankdp.privacy.guarantee import (
    BALLOT,
    COMPARISON,
    ITEM_POSITION,
    OUTCOME,
    VOTER,
    VOTER_OF,
    VOTERS_BALLOT,
    WHOLE_RANKING,
    Guarantee,
    is_voter,
)


def converted(guarantee: Guarantee, protects: str, convert: bool) -> tuple[Guarantee, str | None]:
    """The guarantee in the budget's unit, and a description of the conversion."""
    if guarantee.protects == protects:
        return guarantee, None
    if _covers(guarantee.protects, protects):
        return replace(guarantee, protects=protects), None
    conversion = _conversion(guarantee, protects)
    if conversion is None or not convert:
        known = ("unless converted (", Setting("convert", True), f"): {conversion[1]}") if conversion else ()
        raise InputError(
            f"a budget that protects {protects!r} must not pay for a release that protects {guarantee.protects!r}, ",
            *(known or ("and no conversion is known",)),
        )
    return conversion


def _covers(given: str, protects: str) -> bool:
    """Whether a guarantee for one unit of voters includes another: all voters, or voters with fewer comparisons."""
    few, fewer = VOTER_OF.fullmatch(given), VOTER_OF.fullmatch(protects)
    return is_voter(given) and is_voter(protects) and (not few or (fewer is not None and int(few[1]) >= int(fewer[1])))


def _conversion(guarantee: Guarantee, protects: str) -> tuple[Guarantee, str] | None:
    voter = VOTER_OF.fullmatch(protects)
    if voter and guarantee.protects == COMPARISON:
        size = int(voter[1])
        return _group(
            guarantee,
            protects,
            size,
            f"{size} comparisons of a voter",
            "; how many comparisons a voter has is taken as public, and no voter has more",
        )
    if protects == COMPARISON and is_voter(guarantee.protects):
        return _group(guarantee, protects, 2, "2 voters, because a comparison may move from one to the other")
    if protects == BALLOT and guarantee.protects in (VOTER, VOTERS_BALLOT):
        return _group(guarantee, protects, 2, "2 changes, because one ballot goes and another comes")
    if protects == WHOLE_RANKING and guarantee.protects == ITEM_POSITION:
        whole = replace(guarantee.to_local_dp(), rho=None, renyi=())
        return whole, f"epsilon {shown(whole.epsilon)} between any two rankings, from {shown(guarantee.epsilon)}"
    stronger = {OUTCOME: guarantee.protects == COMPARISON or is_voter(guarantee.protects)}
    if (stronger | {ITEM_POSITION: guarantee.protects == WHOLE_RANKING}).get(protects):
        return replace(guarantee, protects=protects), f"{guarantee.protects} is protected, which is more"
    return None


def _group(guarantee: Guarantee, protects: str, size: int, who: str, more: str = "") -> tuple[Guarantee, str]:
    """Group privacy: ``size`` changes one after another. delta (e^(c eps) - 1)/(e^eps - 1), rounded up."""
    delta = guarantee.delta
    if delta and guarantee.epsilon:
        bits = 128 + 2 * math.ceil(size * guarantee.epsilon)
        least, _ = exp_bounds(size * guarantee.epsilon, bits)
        _, most = exp_bounds(guarantee.epsilon, bits)
        if least == 0 or most == 1 << bits:
            raise InputError(f"delta must stay below 1 for {who}, got epsilon {guarantee.epsilon}")
        delta *= (Fraction(1 << bits, least) - 1) / (Fraction(1 << bits, most) - 1)
    elif delta:
        delta *= size
    if delta >= 1:
        raise InputError(f"delta must stay below 1 for {who}, got {shown(delta)}")
    if delta != guarantee.delta:
        unit = Fraction(10) ** (exponent(delta) - 15)
        delta = math.ceil(delta / unit) * unit
    rho = None if guarantee.rho is None else math.nextafter(size**2 * guarantee.rho, math.inf)
    group = replace(guarantee, protects=protects, epsilon=size * guarantee.epsilon, delta=delta, rho=rho, renyi=())
    words = f"{who}, epsilon {size} x {shown(guarantee.epsilon)} = {shown(group.epsilon)}{more}"
    return group, words
