"""Planning for one ranking: what the ranking mechanisms keep of its order, from closed forms (Xu).

Where the number of voters is known, also how wide the interval of a win rate is that all their rankings give together,
in the worst case: z sqrt((V + 1/4)/n), as in ``aggregation.respondents``.
"""

from __future__ import annotations

import math

from rankdp.aggregation.respondents import quantile
from rankdp.checks import whole
from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.tiers import Tiered
from rankdp.mechanisms.registry import MECHANISMS, mechanism, named, respondents_for_one, serving
from rankdp.planning.situation import EXACT, PAIRS, TOP, WIN_RATE, Measure, Request, Situation
from rankdp.privacy.guarantee import ITEM_POSITION
from rankdp.theory.estimators import pair_estimator

_MOST_ITEMS = 10_000


class OneRanking(Situation):
    """One person's ranking of ``items`` items, released as a synthetic ranking; one of ``voters``, if that is known."""

    measures: tuple[Measure, ...] = (PAIRS, EXACT, TOP)
    protects = ITEM_POSITION

    def __init__(self, items: int, voters: int | None = None) -> None:
        self.items = whole("items", items, 2, _MOST_ITEMS)
        self.voters = None if voters is None else whole("voters", voters, 1)
        if voters is not None:
            self.measures = (*self.measures, WIN_RATE)
        self.subject = f"a ranking of {items} items"
        self.options = serving(items)
        self.slow = frozenset(name for name in self.options if MECHANISMS[name].slow)

    def options_for_top(self, k: int) -> tuple[str, ...]:
        """With tiers for it: the top list and the rest."""
        tiered = [name for name in self.options if issubclass(MECHANISMS[name], Tiered)]
        tiered = [name for name in tiered if not MECHANISMS[name].has_offsets]  # whose cuts are nobody's choice
        return (*self.options, *(named(name, [k, self.items - k]) for name in tiered))

    def respondents(self, option: str, epsilon: float) -> float | None:
        """From the unbiased estimator of the mechanism."""
        return respondents_for_one(mechanism(option, self.items, epsilon))

    def advice(self, best: str, epsilon: float) -> str:
        """What ``auto`` takes by default, if that is another one."""
        taken = type(mechanism("auto", self.items, epsilon)).name
        return "" if taken == best else f"By default privatize takes {taken}, which needs the fewest respondents."

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """From the mechanism's own public numbers."""
        built = mechanism(option, self.items, epsilon)
        try:
            if measure is PAIRS:
                return built.expected_concordance()
            if measure is WIN_RATE:
                assert self.voters is not None
                variance = pair_estimator(built).largest_variance + 0.25
                return quantile(request.level) * math.sqrt(variance / self.voters)
            if option in MECHANISMS and self.items > built.planned_up_to.get(measure.name, self.items):
                return math.nan
            if measure is EXACT:
                return math.exp(built.log_prob_of_no_change())
            return built.top_overlap(request.top)
        except Unsupported:
            return math.nan
