"""What a release costs a budget for another unit of protection.

| the release protects | the budget protects | it costs |
|---|---|---|
| one comparison | one voter with at most c comparisons | c eps, delta (e^(c eps) - 1)/(e^eps - 1), c^2 rho |
| one item's position | one whole ranking | the local-DP epsilon that the mechanism states |
| one whole ranking | one item's position | eps: neighbours are some of all pairs |
| a voter's comparisons | one comparison, or its outcome | eps: one comparison is some of a voter's |
| one comparison | its outcome | eps: an outcome is some of a comparison |

The first is group privacy, a chain of c changes. The chain leaves every voter's number of comparisons as it is, so that
number is public in the converted promise, and it is the caller who knows that nobody has more than c.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

from rankdp.errors import InputError
from rankdp.privacy.exact import exp_bounds
from rankdp.privacy.guarantee import ITEM_POSITION, WHOLE_RANKING, Guarantee
from rankdp.privacy.ledger.refusals import exponent, shown

COMPARISON, OUTCOME = "one comparison", "one comparison's outcome"
_VOTER = re.compile(r"one voter with at most (\d+) comparisons")
_STRONGER = {
    COMPARISON: (_VOTER,),
    OUTCOME: (_VOTER, re.compile(COMPARISON)),
    ITEM_POSITION: (re.compile(WHOLE_RANKING),),
}


def converted(guarantee: Guarantee, protects: str, convert: bool) -> tuple[Guarantee, str | None]:
    """The guarantee in the budget's unit, and the words that say how it got there."""
    if guarantee.protects == protects:
        return guarantee, None
    found = _conversion(guarantee, protects)
    if found is None or not convert:
        how = "and no conversion is known" if found is None else f"unless converted (convert=True): {found[1]}"
        raise InputError(
            f"a budget that protects {protects!r} must not pay for a release that protects {guarantee.protects!r}, "
            f"{how}"
        )
    return found


def _conversion(guarantee: Guarantee, protects: str) -> tuple[Guarantee, str] | None:
    voter = _VOTER.fullmatch(protects)
    if voter and guarantee.protects == COMPARISON:
        return _group(guarantee, protects, int(voter[1]))
    if protects == WHOLE_RANKING and guarantee.protects == ITEM_POSITION:
        whole = replace(guarantee.to_local_dp(), rho=None, renyi=())
        return whole, f"epsilon {shown(whole.epsilon)} between any two rankings, from {shown(guarantee.epsilon)}"
    if any(unit.fullmatch(guarantee.protects) for unit in _STRONGER.get(protects, ())):
        return replace(guarantee, protects=protects), f"{guarantee.protects} is protected, which is more"
    return None


def _group(guarantee: Guarantee, protects: str, size: int) -> tuple[Guarantee, str]:
    """Group privacy: ``size`` changes one after another. delta (e^(c eps) - 1)/(e^eps - 1), rounded up."""
    delta = guarantee.delta
    if delta and guarantee.epsilon:
        bits = 128 + 2 * math.ceil(size * guarantee.epsilon)
        least, _ = exp_bounds(size * guarantee.epsilon, bits)
        _, most = exp_bounds(guarantee.epsilon, bits)
        if least == 0 or most == 1 << bits:
            raise InputError(
                f"delta must stay below 1 for {size} comparisons of a voter, got epsilon {guarantee.epsilon}"
            )
        delta *= (Fraction(1 << bits, least) - 1) / (Fraction(1 << bits, most) - 1)
    elif delta:
        delta *= size
    if delta >= 1:
        raise InputError(f"delta must stay below 1 for {size} comparisons of a voter, got {shown(delta)}")
    if delta != guarantee.delta:
        unit = Fraction(10) ** (exponent(delta) - 15)
        delta = math.ceil(delta / unit) * unit
    rho = None if guarantee.rho is None else math.nextafter(size**2 * guarantee.rho, math.inf)
    group = replace(guarantee, protects=protects, epsilon=size * guarantee.epsilon, delta=delta, rho=rho, renyi=())
    words = (
        f"{size} comparisons of a voter, epsilon {size} x {shown(guarantee.epsilon)} = {shown(group.epsilon)}; "
        "how many comparisons a voter has is taken as public, and nobody has more"
    )
    return group, words
