"""How many respondents a win rate needs, from public numbers alone.

One voter's unbiased estimate h varies by the noise, at most the largest public variance V over original pairs of
positions, and by the voters' own differences, at most 1/4. An interval of z standard errors reaches no further than c
on either side of every win rate, whatever the voters think, once

    n >= z^2 (V + 1/4) / c^2,    z the normal quantile of (1 + level)/2.

``every=True`` asks that all m(m-1)/2 intervals hold at once: Bonferroni, level 1 - (1 - level) / (m(m-1)/2) each.
"""

from __future__ import annotations

import math

from rankdp.checks import share
from rankdp.errors import Unsupported
from rankdp.inference.draws import reach
from rankdp.mechanisms.rankings.kendall_ball import KendallBall
from rankdp.mechanisms.rankings.tiers import read_name
from rankdp.mechanisms.registry import COSTLY, Protect, serving
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import UNITS
from rankdp.report.document import Report
from rankdp.report.results import Table, listed
from rankdp.theory.estimators import pair_estimator

_RADII_UP_TO = 12  # items: trying every radius takes a second; 14 items would take ten


def compare(
    items: int,
    epsilon: Real,
    half_width: float,
    level: float = 0.95,
    *,
    every: bool = False,
    protect: Protect = "position",
) -> list[tuple[str, int]]:
    """Every mechanism that can be debiased, with the respondents it needs, the fewest first.

    Of the Kendall ball that protects whole rankings, the radius that needs the fewest is part of the name.

    Parameters
    ----------
    items, epsilon, half_width, level, every, protect
        As for ``required_voters``.
    """
    names, refusal = [*serving(items)], ""
    if protect == "ranking" and items <= _RADII_UP_TO:
        names += [f"{KendallBall.name}-{radius}" for radius in range(math.comb(items, 2))]
    needed: dict[str, tuple[str, int]] = {}
    for name in names:
        try:
            count = required_voters(items, epsilon, half_width, name, level, every=every, protect=protect)
        except Unsupported as problem:
            refusal = str(problem)
            continue
        kind = read_name(name)[0]
        if kind not in needed or count < needed[kind][1]:
            needed[kind] = name, count
    if not needed:
        raise Unsupported(refusal)
    return sorted(needed.values(), key=lambda pair: pair[1])


def required_voters(
    items: int,
    epsilon: Real,
    half_width: float,
    mechanism: str = "auto",
    level: float = 0.95,
    *,
    every: bool = False,
    protect: Protect = "position",
) -> int:
    """How many respondents make the interval of every win rate as short as asked, in the worst case.

    Parameters
    ----------
    items
        How many items each respondent ranks.
    epsilon
        The privacy of every ranking.
    half_width
        How far an interval may reach to either side, as a share: 0.03 is 3 points.
    mechanism
        What privatizes the rankings; "auto" is the one that needs the fewest respondents on average.
    level
        The confidence of each interval.
    every
        Whether the confidence is that of all intervals together.
    protect
        What epsilon protects: "position", one item's position in a ranking, or "ranking", the whole ranking.
    """
    share("half_width", half_width)
    z = reach(share("level", level))
    built = build(mechanism, items, positive(epsilon), protect=protect)
    estimator = pair_estimator(built)
    if every:
        z = reach(1 - (1 - level) / math.comb(built.items, 2))
    return math.ceil(z**2 * (estimator.largest_variance + 0.25) / half_width**2)


def compare_report(
    items: int,
    epsilon: Real,
    half_width: float,
    level: float = 0.95,
    *,
    every: bool = False,
    protect: Protect = "position",
) -> Report:
    """The report of that comparison.

    Parameters
    ----------
    items, epsilon, half_width, level, every, protect
        As for ``required_voters``.
    """
    needed = compare(items, epsilon, half_width, level, every=every, protect=protect)
    best, fewest = needed[0]
    chosen = f"--mechanism {best}" + (" --protect ranking" if protect == "ranking" else "")
    bad = [name for name, count in needed if count > COSTLY * fewest]
    warning = f"Over {COSTLY} times as many are needed at this epsilon with {listed(bad)}."
    return Report(
        title=(
            f"Respondents for ±{100 * half_width:g} points on every pair of {items} items at epsilon {epsilon} for "
            f"{UNITS[protect]}"
        ),
        records=[{"mechanism": name, "respondents": count} for name, count in needed],
        facts=lambda: {"protect": protect, "respondents": dict(needed), "recommended": best},
        tables=[Table(["mechanism", "respondents"], [[name, f"{count:,}"] for name, count in needed])],
        headline=f"{fewest:,} respondents suffice with {best}, whatever they prefer.",
        words=[warning] if bad else [],
        command=f"rankdp privatize RANKINGS PRIVATE --epsilon {epsilon} {chosen}",
    )
