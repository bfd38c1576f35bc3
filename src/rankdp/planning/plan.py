"""Plan: what accuracy an epsilon buys, or which epsilon an accuracy needs, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdp.checks import one_of, share, whole
from rankdp.errors import InputError, settings
from rankdp.planning.situation import (
    EVERYDAY,
    LEAST,
    MEASURES,
    MOST,
    PAIRS,
    TOP,
    Measure,
    Request,
    Situation,
    needed_epsilon,
)
from rankdp.privacy.exact import Real, positive, rational

if TYPE_CHECKING:
    from rankdp.report.results import Table


def _loaded(module: str, name: str) -> Callable[..., Situation]:
    """A situation whose module is loaded when it is needed, so that a plan starts quickly."""
    return lambda **public: getattr(import_module(f"rankdp.planning.{module}"), name)(**public)


SITUATIONS: dict[str, Callable[..., Situation]] = {
    "ranking": _loaded("ranking_plans", "OneRanking"),
    "comparisons": _loaded("comparison_plans", "ManyComparisons"),
    "scores": _loaded("score_plans", "ScoreVector"),
    "election": _loaded("election_plans", "ManyBallots"),
}
_CURVE_POINTS = 8
_WORTH_PUBLISHING = 0.8  # the share of a top list's members that belong there


@dataclass(frozen=True, slots=True)
class Choice:
    """One option: the epsilon it needs (or was given) and what it delivers at the plan's epsilon."""

    name: str
    epsilon: float
    accuracy: dict[str, float]
    detail: dict[str, Any]


@dataclass(frozen=True, repr=False)
class Plan:
    """The answer: the recommended option at ``epsilon``, the alternatives, a plain sentence, and a curve if asked."""

    situation: Situation
    request: Request
    measure: Measure
    target: float | None
    epsilon: float
    choices: tuple[Choice, ...]
    sentences: tuple[str, ...]

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """A grid from well below the smallest epsilon of interest to a few times the largest one."""
        finite = [one.epsilon for one in self.choices if math.isfinite(one.epsilon)] or [self.epsilon]
        low, high = min(*finite, EVERYDAY) / 50, min(max(*finite, EVERYDAY) * 3, MOST)
        knots = [*finite, 0.6 * min(finite)]  # where curves are steep
        grid = np.geomspace(max(low, LEAST), high, _CURVE_POINTS).tolist()
        return tuple(sorted({*grid, *(knot for knot in knots if grid[0] < knot < high)}))

    @cached_property
    def curves(self) -> dict[str, tuple[float, ...]]:
        """The measure at those epsilons, by option; NaN for slow options except where the plan computed it anyway."""
        return {
            choice.name: tuple(
                math.nan
                if choice.name in self.situation.slow and epsilon not in (self.epsilon, choice.epsilon)
                else self.situation.accuracy(choice.name, self.measure, epsilon, self.request)
                for epsilon in self.epsilons
            )
            for choice in self.choices
        }

    @cached_property
    def respondents(self) -> dict[str, float | None]:
        """By option: how many respondents are worth one true ranking to an unbiased aggregate, where that is known.

        Not part of the choices: it may need compiled code, and the plan itself is quick.
        """
        return {choice.name: self.situation.respondents(choice.name, self.epsilon) for choice in self.choices}

    @property
    def recommended(self) -> Choice:
        """The best option for the measure that was asked for."""
        return self.choices[0]

    def explain(self) -> str:
        """What to do, in plain words."""
        return " ".join(self.sentences)

    @property
    def compares_respondents(self) -> bool:
        """Whether it is known how many respondents are worth one true ranking."""
        return any(needed is not None for needed in self.respondents.values())

    def table(self) -> Table:
        """What each option needs, where that was asked, and what it gives at the plan's epsilon."""
        from rankdp.report.results import Table

        measures = self.situation.measures
        at = f"at epsilon {short(self.epsilon)}: "
        heads = ["option", *(["epsilon needed"] if self.target is not None else [])]
        heads += [(at if place == 0 else "") + self.request.words(measure) for place, measure in enumerate(measures)]
        heads += [self.situation.respondents_head] if self.compares_respondents else []
        rows = []
        for choice in self.choices:
            needs = "–" if math.isnan(choice.accuracy[self.measure.name]) else short(choice.epsilon)
            needed = self.respondents[choice.name] if self.compares_respondents else None
            rows.append(
                [
                    choice.name,
                    *([needs] if self.target is not None else []),
                    *(measure.show(choice.accuracy[measure.name]) for measure in measures),
                    *(["–" if needed is None else f"{float(f'{needed:.3g}'):,g}"] if self.compares_respondents else []),
                ]
            )
        return Table(heads, rows)

    def __repr__(self) -> str:
        return f"{self.explain()}\n{self.table().text()}"

    def _repr_html_(self) -> str:
        from rankdp.report.document import Report

        return Report(title="Plan", records=[], facts=dict, headline=self.explain(), tables=[self.table()]).notebook()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; numbers that are not known are null."""
        from rankdp.report.document import plain

        facts = {
            "subject": self.situation.subject,
            "protects": self.situation.protects,
            "measure": self.measure.name,
            "top": self.request.top,
            "level": self.request.level,
            "target": self.target,
            "epsilon": _exact(self.epsilon),
            "recommended": self.recommended.name,
            "choices": [
                {
                    "name": one.name,
                    "epsilon": _exact(one.epsilon),
                    **one.accuracy,
                    "detail": one.detail,
                    "respondents": self.respondents[one.name],
                }
                for one in self.choices
            ],
            "curve": {"epsilon": self.epsilons, **self.curves},
            "assumptions": self.situation.assumptions,
            "explanation": self.explain(),
        }
        return dict(plain(facts))


def plan(
    situation: str,
    *,
    epsilon: Real | None = None,
    pairs: float | None = None,
    exact: float | None = None,
    overlap: float | None = None,
    half_width: float | None = None,
    right_winner: float | None = None,
    tally: float | None = None,
    win_rate: float | None = None,
    top: int | None = None,
    level: float = 0.95,
    **public: Any,
) -> Plan:
    """What accuracy an epsilon buys, or which epsilon an accuracy needs. Give exactly one of the two.

    Parameters
    ----------
    situation
        "ranking", "comparisons", "scores" or "election".
    epsilon
        The privacy whose accuracy is asked for.
    pairs
        Ask for this share of all pairs in order.
    exact
        Ask for the exact order with this probability.
    overlap
        Ask for this share of the true top list among the released one.
    half_width
        Ask for an interval of a score of this half-width.
    right_winner
        Ask for the right winner of an election with this probability.
    tally
        Ask for an interval of a tally of votes of this half-width, for elections that publish tallies.
    win_rate
        Ask for an interval of a win rate of this half-width, of ``voters`` privatized rankings together.
    top
        The length of the top list; 3 if not given.
    level
        The confidence of intervals.
    **public
        The public numbers of the situation. For a ranking: ``items``, optionally ``voters`` and ``protect``. For
        comparisons: ``items``, ``comparisons`` and ``protect``, optionally ``max_per_voter``, ``delta`` and ``spread``.
        For scores: ``items`` and ``bounds``, optionally ``law`` and ``delta``. For an election: ``items``, ``voters``
        and ``rule``, optionally ``protect`` and ``delta``.

    Returns
    -------
    Plan
        Every mechanism with what it delivers, the best first.
    """
    one_of("situation", situation, SITUATIONS)
    targets = {"pairs": pairs, "exact": exact, "overlap": overlap, "half_width": half_width}
    targets |= {"right_winner": right_winner, "tally": tally, "win_rate": win_rate}
    asked = [name for name, value in targets.items() if value is not None]
    given = [*(["epsilon"] if epsilon is not None else []), *asked]
    if not given:
        raise InputError("give ", *settings(["epsilon", *targets], " or "), ", got nothing")
    if len(given) > 1:
        raise InputError("give only one of ", *settings(given, " and "))
    try:
        described = SITUATIONS[situation](**public)
    except TypeError as problem:
        raise InputError(f"a plan for {situation}: {str(problem).partition('__init__() ')[2]}") from None
    longest = described.items - 1
    if top is not None:
        described.options = described.options_for_top(whole("top", top, 1, longest))
    request = Request(min(3, longest) if top is None else top, share("level", level))
    if epsilon is not None:
        return _what_epsilon_buys(
            described, request, float(positive(epsilon)), described.measures[0] if top is None else TOP
        )
    measure = MEASURES[asked[0]]
    if measure not in described.measures:
        known = settings(one.name for one in described.measures)
        raise InputError(f"a plan for {situation} can be asked for ", *known, ", got ", *settings([measure.name]))
    return _what_accuracy_needs(described, request, measure, measure.check(targets[asked[0]]))  # type: ignore[arg-type]


def _exact(epsilon: float) -> str | None:
    """An epsilon as in every JSON of rankdp: exact, as text; None if it is infinite."""
    return str(rational(float(f"{epsilon:.12g}"))) if math.isfinite(epsilon) else None


def _what_epsilon_buys(situation: Situation, request: Request, epsilon: float, measure: Measure) -> Plan:
    if not LEAST <= epsilon <= MOST:
        raise InputError(f"epsilon must be between {LEAST:g} and {MOST:g} for a plan, got {epsilon:g}")
    choices = _choices(situation, request, measure, epsilon, dict.fromkeys(situation.options, epsilon))
    best = choices[0]
    known = [kind for kind in situation.measures if not math.isnan(best.accuracy[kind.name])]
    *phrases, last = [request.phrase(kind, best.accuracy[kind.name]) for kind in known]
    given = f"{', '.join(phrases)} and {last}" if phrases else last
    sentence = f"At epsilon {short(epsilon)}, {best.name} on {situation.subject} gives {given}."
    return Plan(situation, request, measure, None, epsilon, choices, (sentence, *situation.assumptions))


def _what_accuracy_needs(situation: Situation, request: Request, measure: Measure, target: float) -> Plan:
    needs: dict[str, float] = {}
    for name in sorted(situation.options, key=lambda option: option in situation.slow):
        found = min(needs.values(), default=math.inf)
        near = found if name in situation.slow and math.isfinite(found) else None
        needs[name] = needed_epsilon(situation, name, measure, target, request, near)
    least = min(needs.values())
    shown = request.phrase(measure, target)
    if math.isinf(least):
        choices = _choices(situation, request, measure, EVERYDAY, needs)
        sentences = [f"For {situation.subject}, no epsilon up to {MOST:,.0f} gives {shown}."]
        sentences += _reachable(situation, request, choices[0].name)
        return Plan(situation, request, measure, target, EVERYDAY, choices, (*sentences, *situation.assumptions))
    choices = _choices(situation, request, measure, least, needs)
    known = [one for one in choices if not math.isnan(one.accuracy[measure.name])]
    others = ", ".join(f"{one.name} {short(one.epsilon)}" for one in known[1:3])  # the table has all of them
    sentences = [
        f"For {situation.subject}, {shown} needs an epsilon of about {short(least)} with {choices[0].name}"
        + (f" ({others})." if others else ".")
    ]
    if least > 2 * EVERYDAY:
        sentences.append(f"An epsilon of {short(least)} offers almost no protection of {situation.protects}.")
        sentences += _reachable(situation, request, choices[0].name)
    return Plan(situation, request, measure, target, least, choices, (*sentences, *situation.assumptions))


def _choices(
    situation: Situation, request: Request, measure: Measure, epsilon: float, needs: dict[str, float]
) -> tuple[Choice, ...]:
    """All options with what they deliver at ``epsilon``, the best first; ties keep simple options first."""
    found = [
        Choice(
            name,
            needs[name],
            {one.name: situation.accuracy(name, one, epsilon, request) for one in situation.measures},
            dict(situation.detail(name, epsilon)),
        )
        for name in situation.options
    ]

    def rank(one: Choice) -> tuple[float, float]:
        value = one.accuracy[measure.name]
        merit = -math.inf if math.isnan(value) else round(value if measure.share else -value, 9)
        return round(one.epsilon, 9), -merit

    return tuple(sorted(found, key=rank))


def _reachable(situation: Situation, request: Request, name: str) -> list[str]:
    """What an everyday epsilon gives: pairs in order, and the longest top list that is mostly right."""
    if PAIRS not in situation.measures:
        return []
    best = max(
        situation.options,
        key=lambda option: (situation.accuracy(option, PAIRS, EVERYDAY, request), option == name),
    )
    pairs = situation.accuracy(best, PAIRS, EVERYDAY, request)
    expected = f"At epsilon {EVERYDAY:g} expect {request.phrase(PAIRS, pairs)} with {best}"
    lists = {
        k: situation.accuracy(best, TOP, EVERYDAY, Request(k, request.level))
        for k in range(1, max(1, min(10, situation.items // 4)) + 1)
    }
    good = [k for k, kept in lists.items() if kept >= _WORTH_PUBLISHING]
    if good:
        k = max(good)
        return [f"{expected}; consider publishing only the top {k}, of which {lists[k]:.0%} would belong there."]
    if all(math.isnan(kept) for kept in lists.values()):
        return [f"{expected}."]
    k = max(lists, key=lambda one: lists[one] if not math.isnan(lists[one]) else -1)
    return [f"{expected}; a published top {k} would hold {lists[k]:.0%} of the true one."]


def short(epsilon: float) -> str:
    """Three digits, no exponent."""
    if math.isinf(epsilon):
        return "beyond reach"
    return f"{float(f'{epsilon:.3g}'):,g}"
