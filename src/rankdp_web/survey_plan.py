"""What an epsilon means for a survey, from public numbers alone.

An answer's unbiased place of an item varies by the noise, at most the largest public variance V over original places,
and by the respondents' own differences, at most (m - 1)^2 / 4 for m items. The difference of two mean places of n
answers therefore has a standard deviation of at most 2 sqrt((V + (m - 1)^2 / 4) / n), whatever respondents think; two
items whose true mean places are one place apart come out in the right order with a probability of at least
Phi(1 / that), by the normal law of means.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from rankdp.checks import whole
from rankdp.errors import InputError, Unsupported
from rankdp.inference.draws import reach
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.top_ball import TopBall
from rankdp.mechanisms.registry import Protect
from rankdp.privacy.exact import positive
from rankdp.theory.estimators import rank_estimator
from rankdp_web.browser_tables import MOST_ITEMS, survey_mechanism


def sure(epsilon: float) -> str:
    """How sure, in percent, someone who was 50:50 can become, rounded up."""
    return f"{math.ceil(1000 / (1 + math.exp(-min(epsilon, 700)))) / 10:g}"


def kept(made: RankingMechanism) -> str:
    """The share of pairs whose order an answer keeps; of lists, the share of items that stay listed."""
    if isinstance(made, TopBall):
        return f"{1 - float(made.list_law()[: made.length, made.length].mean()):.0%}"
    return f"{made.expected_concordance():.0%}"


def worst_error(made: RankingMechanism, answers: int) -> float:
    """The largest standard error of a mean place; infinite where the noise cannot be removed."""
    try:
        return math.sqrt((rank_estimator(made).largest_variance + (made.items - 1) ** 2 / 4) / answers)
    except Unsupported:
        return math.inf


@lru_cache(maxsize=256)
def meaning(items: int, epsilon: str, answers: int, protect: Protect = "ranking", top: int = 0) -> dict[str, Any]:
    """The numbers of the two sentences below the slider.

    Parameters
    ----------
    items
        How many items are ranked.
    epsilon
        The privacy of what ``protect`` says.
    answers
        How many answers the organiser expects.
    protect
        "ranking" or "position".
    top
        How many items respondents list; 0 where they rank all.

    Returns
    -------
    dict
        ``sure``, ``answers``, ``reach`` (half the length of the 95% interval of a mean place, at worst), ``right`` (the
        probability in percent that two items one place apart come out in the right order, at worst; empty below 55).
    """
    whole("items", items, 2, MOST_ITEMS)
    whole("answers", answers, 1)
    exact = positive(epsilon.replace(",", "."))
    if exact > 10:
        raise InputError(f"epsilon must be at most 10, got {epsilon}")
    made = survey_mechanism("auto", items, exact, protect, whole("top", top, 0, items - 1) or None)
    known = {"sure": sure(float(exact)), "answers": f"{answers:,}"}
    error = worst_error(made, answers)
    right = math.floor(100 * NormalDist().cdf(1 / (2 * error)))
    return known | {"reach": f"{reach(0.95) * error:.1f}", "right": str(min(right, 99)) if right >= 55 else ""}
