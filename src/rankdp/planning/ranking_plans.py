"""Planning for one ranking: what the ranking mechanisms keep of its order, from closed forms (Xu).

If the number of voters is known, the plan also has the half-width of a win rate's interval from all their rankings, in
the worst case: z sqrt((V + 1/4)/n), as in ``aggregation.respondents``.

``promises`` puts the two promises side by side: one position at epsilon, the whole answer at epsilon and at twice that.
"""

from __future__ import annotations

import math
from typing import get_args

from rankdp.checks import one_of, whole
from rankdp.errors import Unsupported
from rankdp.inference.draws import reach
from rankdp.mechanisms.rankings.kendall_ball import KendallBall
from rankdp.mechanisms.rankings.tiers import Tiered
from rankdp.mechanisms.rankings.top_ball import MOST_LISTED, TopBall
from rankdp.mechanisms.registry import (
    MECHANISMS,
    Protect,
    Purpose,
    compared_by,
    mechanism,
    named,
    respondents_for_one,
    serving,
)
from rankdp.mechanisms.shuffled import outside_sentence
from rankdp.planning.situation import EXACT, PAIRS, TOP, WIN_RATE, Measure, Request, Situation
from rankdp.privacy.guarantee import UNITS, odds_factor
from rankdp.theory.estimators import pair_estimator

_MOST_ITEMS = 10_000

_OUTSIDE = 1000  # answers in the sentence on what outsiders learn; a survey uses its own number


class OneRanking(Situation):
    """One person's ranking of ``items`` items, released as a synthetic ranking; one of ``voters``, if that is known."""

    measures: tuple[Measure, ...] = (PAIRS, EXACT, TOP)

    def __init__(self, items: int, voters: int | None = None, protect: Protect = "position") -> None:
        one_of("protect", protect, get_args(Protect))
        self.protect, self.protects = protect, UNITS[protect]
        self.items = whole("items", items, 2, _MOST_ITEMS)
        self.voters = None if voters is None else whole("voters", voters, 1)
        if voters is not None:
            self.measures = (*self.measures, WIN_RATE)
        self.subject = f"a ranking of {items} items"
        self.options = serving(items)
        if protect == "ranking":  # finding the position epsilon of a slow one takes many builds; the ball is better
            self.options = tuple(name for name in self.options if not MECHANISMS[name].slow)
        self.slow = frozenset(name for name in self.options if MECHANISMS[name].slow)

    def options_for_top(self, k: int) -> tuple[str, ...]:
        """Adds mechanisms with two tiers, the top list and the rest, and the ball on top lists for whole rankings."""
        tiered = [name for name in self.options if issubclass(MECHANISMS[name], Tiered)]
        tiered = [name for name in tiered if not MECHANISMS[name].has_offsets]  # offsets choose the cuts
        balls = [f"{TopBall.name}-{k}"] if self.protect == "ranking" and k <= MOST_LISTED else []
        return (*self.options, *(named(name, [k, self.items - k]) for name in tiered), *balls)

    @property
    def respondents_head(self) -> str:
        """Says by which statistic, because the table of promises counts mean ranks."""
        return f"respondents for one ({compared_by(self.items, self.protect)})"

    def respondents(self, option: str, epsilon: float) -> float | None:
        """From the unbiased estimator of the mechanism; none for lists, which tell less than rankings."""
        made = mechanism(option, self.items, epsilon, protect=self.protect)
        return respondents_for_one(made, self.protect) if made.lists is None else None

    def advice(self, best: str, epsilon: float) -> str:
        """What ``auto`` uses by default, if that is another mechanism."""
        taken = type(mechanism("auto", self.items, epsilon, protect=self.protect)).name
        return (
            ""
            if taken == best
            else f"By default privatize uses {taken}, because averages need the fewest respondents with it."
        )

    def promises(self, epsilon: float) -> tuple[list[str], list[list[str]], str]:
        """One position and the whole answer side by side: heads, rows and a recommendation; no rows for long lists."""
        heads = ["promise", "mechanism", "two whole answers", "pairs kept", "answers for one (mean ranks)"]
        if not KendallBall.serves(self.items):
            long = (
                f"Above {KendallBall.most_items} items, protecting the whole answer keeps almost nothing of its order."
            )
            return heads, [], long
        rows = []
        asked: list[tuple[str, Protect, float]] = [
            ("one position", "position", epsilon),
            ("whole answer", "ranking", epsilon),
            ("whole answer", "ranking", 2 * epsilon),
        ]
        for words, protect, at in asked:
            made = mechanism("auto", self.items, at, protect=protect)
            needed = respondents_for_one(made, "ranking")
            rows.append(
                [
                    f"{words} at {at:.3g}",
                    made.name,
                    f"a factor of {odds_factor(made.local_epsilon())}",
                    f"{made.expected_concordance():.0%}",
                    "–" if needed is None else f"{needed:,.3g}",
                ]
            )
        choice = "If single items are sensitive, protect the position; if the whole answer is, protect the ranking."
        outside = outside_sentence(mechanism("auto", self.items, epsilon, protect="ranking"), _OUTSIDE)
        return heads, rows, f"{choice} {outside}"

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """From the mechanism's own public numbers."""
        purpose: Purpose = "aggregate" if measure is WIN_RATE else "order"
        built = mechanism(option, self.items, epsilon, purpose=purpose, protect=self.protect)
        try:
            if measure is PAIRS:
                return built.expected_concordance()
            if measure is WIN_RATE:
                assert self.voters is not None
                variance = pair_estimator(built).largest_variance + 0.25
                return reach(request.level) * math.sqrt(variance / self.voters)
            if option in MECHANISMS and self.items > built.planned_up_to.get(measure.name, self.items):
                return math.nan
            if measure is EXACT:
                return math.exp(built.log_prob_of_no_change())
            return built.top_overlap(request.top)
        except Unsupported:
            return math.nan
