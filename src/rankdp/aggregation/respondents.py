"""How many respondents a win rate needs, from public numbers alone.

One voter's unbiased estimate h varies by the noise, at most the largest public variance V over original pairs of
positions, and by the voters' own differences, at most 1/4. An interval of z standard errors reaches no further than c
on either side of every win rate, whatever the voters think, once

    n >= z^2 (V + 1/4) / c^2,    z the normal quantile of (1 + level)/2.

``every=True`` asks that all m(m-1)/2 intervals hold at once: Bonferroni, level 1 - (1 - level) / (m(m-1)/2) each.
"""

from __future__ import annotations

import math

from rankdp.aggregation.estimates import quantile
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.estimators import pair_estimator
from rankdp.mechanisms.registry import mechanism as build
from rankdp.mechanisms.registry import serving
from rankdp.privacy.exact import Real, positive


def compare(
    items: int, epsilon: Real, half_width: float, level: float = 0.95, *, every: bool = False
) -> list[tuple[str, int]]:
    """Every mechanism whose noise can be undone with the respondents it needs, the fewest first."""
    needed, refusal = [], ""
    for name in serving(items):
        try:
            needed.append((name, required_voters(items, epsilon, half_width, name, level, every=every)))
        except Unsupported as problem:
            refusal = str(problem)
    if not needed:
        raise Unsupported(refusal)
    return sorted(needed, key=lambda pair: pair[1])


def required_voters(
    items: int,
    epsilon: Real,
    half_width: float,
    mechanism: str = "auto",
    level: float = 0.95,
    *,
    every: bool = False,
    bias: float = 0.0,
) -> int:
    """The respondents that make each pair's interval no wider than ``half_width`` on either side, in the worst case.

    "auto" is the mechanism that needs the fewest on average; an allowed ``bias`` is taken off the half width.
    """
    if isinstance(half_width, bool) or not isinstance(half_width, (int, float)) or not 0 < half_width < 1:
        raise InputError(f"half_width must be a share between 0 and 1, got {half_width!r}")
    z = quantile(level)
    built = build(mechanism, items, positive(epsilon), objective="aggregate")
    assert isinstance(built, RankingMechanism)
    found = pair_estimator(built, bias)
    if found.bias >= half_width:
        raise InputError(f"half_width must be above the bias that is left, {found.bias:g}, got {half_width!r}")
    if every:
        z = quantile(1 - (1 - level) / math.comb(built.items, 2))
    return math.ceil(z**2 * (found.largest_variance + 0.25) / (half_width - found.bias) ** 2)
