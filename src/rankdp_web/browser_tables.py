"""What a browser needs to draw a synthetic ranking exactly as Python does: a mechanism's integer tables, as plain JSON.

A *law* on the integers first, first+1, … is

    cuts     floor(2^64 F(k)), as ``rankdp.privacy.cut_tables`` has them: they decide all but one draw in 2^57
    weights  the whole numbers that F is made of, or
    ratios   pairs (top, bottom) with w(k+1)/w(k) = top/bottom, from k = 0 on, or
    poisson  the pair (top, bottom) with w(k+1)/w(k) = top / (bottom (k + 1)), up to the size: they decide the rest

All of it is public: epsilon, the mechanism and the number of items determine it. Numbers are decimal text, since
JavaScript's own numbers have 53 bits. ``static/sampler.js`` reads the tables; no other code of the page draws noise.

Four samplers serve every survey: a table of all outputs (``outputs``, up to five items), ``reinsertion``, ``tiers``,
which has tables for each division of the output and, where there are several, the law of the offset, and ``ball``,
which has no table but its radius: the page counts rankings itself and takes e^epsilon from the epsilon that it shows,
rounded down at 2^-500. A fifth, ``top``, does the same for lists of the first items. Other mechanisms have weights that
are not rational, or no such tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import TABLE_UP_TO, RankingMechanism
from rankdp.mechanisms.rankings.kendall_ball import KendallBall
from rankdp.mechanisms.rankings.offset_tiers import OffsetTiers
from rankdp.mechanisms.rankings.optimal import Optimal
from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.mechanisms.rankings.tier_tables import KeptTables
from rankdp.mechanisms.rankings.tiers import Tiers
from rankdp.mechanisms.rankings.top_ball import TopBall
from rankdp.mechanisms.registry import Protect, mechanism
from rankdp.privacy.cut_tables import CutTable
from rankdp.privacy.exact import Real
from rankdp.theory.estimators import rank_estimator

MOST_ITEMS = 100
_PAIRS_UP_TO = 10  # items of which majorities are worth knowing
NAMES = ("optimal", "reinsertion", "tiers", "offset-tiers", "kendall-ball")


def browser_tables(made: RankingMechanism) -> dict[str, Any]:
    """The tables of a mechanism for ``static/sampler.js``.

    Parameters
    ----------
    made
        Optimal or reinsertion of up to five items, reinsertion, tiers or offset-tiers of any number, kendall-ball or
        top-ball, with which the page draws a list of the first items.
    """
    if isinstance(made, TopBall):
        return {"sampler": "top", "items": made.items, "length": made.lists, "radius": made.radius}
    if isinstance(made, KendallBall):
        return {"sampler": "ball", "items": made.items, "radius": made.radius}
    if isinstance(made, (Optimal, Reinsertion)) and made.items <= TABLE_UP_TO:
        law = made.exact_law(0)  # whole numbers, whatever the bits
        weights = _texts(int(low) for low, high in law if low == high)
        return {"sampler": "outputs", "items": made.items, "outputs": {**_cuts(made._outputs), "weights": weights}}
    if isinstance(made, Reinsertion):
        weight, m = made.weight, made.items
        ratios = _ratios(m, lambda d: ((m - d) ** 2 * weight.denominator, (d + 1) * weight.numerator))
        return {"sampler": "reinsertion", "items": m, "taken": {**_cuts(made._taken), "ratios": ratios}}
    if isinstance(made, Tiers):
        return _tier_tables(made)
    raise Unsupported(
        f"mechanism must be one of {', '.join(NAMES)} in a survey (optimal up to {TABLE_UP_TO} items): "
        f"{made.name} for {made.items} items has no table that a browser can draw from exactly"
    )


def _tier_tables(made: Tiers) -> dict[str, Any]:
    offsets = made._offset_table if isinstance(made, OffsetTiers) else None
    return {
        "sampler": "tiers",
        "items": made.items,
        "offsets": offsets and {**_cuts(offsets), "weights": ["1"] * made.offsets},
        "attempts": made._tables.attempts(1),
        "shapes": [_shape(part, made.weight) for part in made._tables.tables],
    }


def _shape(part: KeptTables, weight: Fraction) -> dict[str, Any]:
    mean = part.accepting.mean
    left = _texts((mean / weight).as_integer_ratio())
    sure, unsure = part.accepting.cuts
    assert (unsure - sure <= 1).all()
    return {
        "sizes": list(part.sizes),
        "left": [{"size": size, **_cuts(table), "poisson": left} for size, table in part.left.items()],
        "accept": {
            "sure": _texts(sure.tolist()),
            "mean": _texts(mean.as_integer_ratio()),
            "mode": min(sum(part.sizes), math.floor(mean)),
        },
    }


def survey_mechanism(
    name: str, items: int, epsilon: Real, protect: Protect = "position", top: int | None = None
) -> RankingMechanism:
    """The mechanism of this name, or for "auto" the one for browsers whose mean ranks are the most precise.

    Where whole rankings are protected that is the Kendall ball for as many items as it reaches. Where one position is,
    up to 10 items, majorities between two items must be known as well, for orders such as Kemeny's.

    Parameters
    ----------
    name
        A name as in ``rankdp.mechanisms.mechanism``.
    items
        How many items are ranked.
    epsilon
        The privacy of what ``protect`` says.
    protect
        "position" or "ranking".
    top
        How many items respondents list, where they rank the best ones only.
    """
    if top is not None:
        return mechanism(name, items, epsilon, protect=protect, top=top)
    if name == "auto" and protect == "ranking" and KendallBall.serves(items):
        name = "kendall-ball"
    if name == "auto":
        names = [each for each in NAMES[:-1] if each != "optimal" or items <= TABLE_UP_TO]
        wanted = "pairs" if items <= _PAIRS_UP_TO else "ranks"
        able = [mechanism(each, items, epsilon, protect=protect) for each in names]
        return min((made for made in able if wanted in made.debiasable), key=_rank_variance)
    made = mechanism(name, items, epsilon, protect=protect)
    browser_tables(made)  # or refused
    return made


def _rank_variance(made: RankingMechanism) -> float:
    """What the noise adds to the variance of one respondent's unbiased ranks; infinite where it cannot be debiased."""
    try:
        return float(f"{rank_estimator(made).mean_variance:.9g}")  # the simpler one of equals
    except Unsupported:
        return math.inf


def _cuts(table: CutTable) -> dict[str, Any]:
    return {"first": table.first, "cuts": _texts(table.cuts.tolist())}


def _ratios(last: int, ratio: Callable[[int], tuple[int, int]]) -> list[list[str]]:
    return [_texts(ratio(k)) for k in range(last)]


def _texts(numbers: Iterable[int]) -> list[str]:
    return [str(number) for number in numbers]
