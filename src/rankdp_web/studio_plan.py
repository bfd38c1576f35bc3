"""Goals in words become an epsilon, and curves that a slider can follow: ``rankdp.plan`` on public numbers, drawn once.

The server computes the accuracy of every option at a dozen epsilons and draws smooth curves through them; the page
reads the values at the slider's epsilon off those curves. So the slider needs no server, and nothing here needs data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.registry import mechanism
from rankdp.planning.election_plans import ManyBallots
from rankdp.planning.plan import Plan, plan, short
from rankdp.planning.plan_report import smooth
from rankdp.privacy import guarantee
from rankdp.report.plots import COLOURS
from rankdp.types import Floats
from rankdp_web.studio_draft import Draft
from rankdp_web.studio_kinds import Goal

LEAST, MOST = 0.02, 20.0
"""The ends of the slider; beyond the second nothing is protected."""
_GRID, _POINTS = 12, 91
_SHORT = 30
"""Up to this many items a curve is computed at all points; with more that takes seconds."""
_LEFT, _TOP, _WIDTH, _HEIGHT = 58, 12, 528, 230
_DIGITS = 3
_WEAK = 0.99  # a snooper who can become surer than this makes a poor recommendation
_POINT = 0.01  # of accuracy: the curves' own error, and what nobody would notice


@dataclass(frozen=True, slots=True)
class Curve:
    """One option: its line in the picture, the numbers behind it, and the epsilon that the goal needs with it."""

    name: str
    colour: str
    points: str
    values: tuple[float, ...]
    needed: str


@dataclass(frozen=True, slots=True)
class Card:
    """One of three offers: its epsilon, how sure a snooper can become, and how good the result is."""

    name: str
    epsilon: str
    sure: str
    good: str
    recommended: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The planner's answer for the page."""

    plan: Plan
    curves: tuple[Curve, ...]
    epsilons: tuple[float, ...]
    label: str
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    target_y: float | None
    option: str = ""
    cards: tuple[Card, ...] = ()
    said: str = ""
    """A sentence where the goal cannot be reached, or needs an epsilon that buys nothing."""

    @property
    def for_page(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {
            "epsilons": self.epsilons,
            "share": self.plan.measure.share,
            "left": _LEFT,
            "width": _WIDTH,
            "least": self.epsilons[0],
            "most": self.epsilons[-1],
            "curves": {curve.name: curve.values for curve in self.curves},
        }


def public_numbers(draft: Draft) -> dict[str, Any]:
    """What the planner is told: nothing but public numbers."""
    known: dict[str, Any] = {"items": draft.ranked}
    if draft.kind == "scores":
        return {**known, "bounds": draft.numeric_bounds}
    if draft.number is not None:
        known[draft.what.number] = draft.number
    if draft.kind == "rankings":
        return {**known, "protect": draft.promised_unit}
    known["protect"] = draft.protect
    if draft.kind == "ballots":
        known["rule"] = draft.option or None
    if draft.kind == "comparisons" and draft.protect == "voter":
        known["max_per_voter"] = draft.max_per_voter
    return known


def goals(draft: Draft) -> tuple[Goal, ...]:
    """The goals that there is a plan for: some rules of elections have no order to get right, others no tallies."""
    if draft.kind != "ballots":
        return draft.what.goals
    known = {measure.name for measure in ManyBallots(len(draft.items), 1, draft.option, draft.protect).measures}
    return tuple(goal for goal in draft.what.goals if goal.ask in known)


def answer(draft: Draft) -> Answer:
    """The plan for a draft's goal, with three cards."""
    goal, longest = draft.what.goal(draft.goal), draft.ranked - 1
    target = goal.usual if draft.target is None else draft.target
    if goal.unit == "%" and not 0 < target < 1:
        raise InputError(f"the goal must be above 0% and below 100%, got {100 * target:g}%")
    asked: dict[str, Any] = {goal.ask: target}
    if goal.ask == "overlap":
        asked["top"] = 1 if goal.name == "winner" else max(1, min(draft.top, longest))
    public = public_numbers(draft)
    found = _answer(draft.what.situation, tuple(sorted(asked.items())), tuple(sorted(public.items())))
    option = draft.option or draft.what.usual or found.plan.recommended.name
    taken = option
    if option == draft.what.own_choice:  # what it takes at about the plan's epsilon
        epsilon = Fraction(min(found.plan.epsilon, MOST))
        taken = type(mechanism("auto", draft.ranked, epsilon, protect=draft.promised_unit)).name
    lines = {curve.name: curve.values for curve in found.curves}
    values = np.array(lines.get(taken) or next(iter(lines.values())))
    needs = {one.name: one.epsilon for one in found.plan.choices}
    cards, said = _cards(found.plan, needs.get(taken, math.inf), np.array(found.epsilons), values)
    return replace(found, option=option, cards=cards, said=said)


@lru_cache(maxsize=64)
def _answer(situation: str, asked: tuple[tuple[str, Any], ...], public: tuple[tuple[str, Any], ...]) -> Answer:
    made = plan(situation, **dict(asked), **dict(public))
    least = min(LEAST, made.epsilon / 2)
    knots = [one.epsilon for one in made.choices if least < one.epsilon < MOST]
    grid_points = _GRID if made.situation.items <= _SHORT else _GRID // 2
    epsilons = sorted({*np.geomspace(least, MOST, grid_points).tolist(), *knots})
    known = {}
    for name in (one.name for one in made.choices):
        values = [made.situation.accuracy(name, made.measure, epsilon, made.request) for epsilon in epsilons]
        if np.isfinite(values).all():
            best = np.maximum if made.measure.share else np.minimum  # simulated values waver; less noise never hurts
            known[name] = smooth(made.measure, epsilons, best.accumulate(values).tolist(), _POINTS)
    if not known:
        raise InputError(f"there is no curve for {made.situation.subject}: choose another goal")
    grid = next(iter(known.values()))[0]
    every = np.concatenate([line for _, line in known.values()])
    low, high = (0.0, 1.0) if made.measure.share else (float(np.log(every.min())), float(np.log(every.max())))

    def y(value: float) -> float:
        height = value if made.measure.share else math.log(value)
        return _TOP + _HEIGHT * (1 - (height - low) / ((high - low) or 1))

    def x(epsilon: float) -> float:
        return _LEFT + _WIDTH * math.log(epsilon / grid[0]) / math.log(grid[-1] / grid[0])

    needs = {one.name: one.epsilon for one in made.choices}
    curves = tuple(
        Curve(
            name,
            COLOURS[name],
            " ".join(f"{x(e):.1f},{y(v):.1f}" for e, v in zip(grid.tolist(), line.tolist(), strict=True)),
            tuple(round(value, 6) for value in line.tolist()),
            "above 20" if needs[name] > MOST else short(needs[name]),
        )
        for name, (_, line) in known.items()
    )
    reached = made.target is not None and (made.measure.share or low <= math.log(made.target) <= high)
    if made.measure.share:
        levels = [(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    else:
        levels = [(value, f"{value:.2g}") for value in np.geomspace(math.exp(low), math.exp(high), 5).tolist()]
    return Answer(
        made,
        curves,
        tuple(grid.tolist()),
        made.request.words(made.measure),
        tuple((x(tick), f"{tick:g}") for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if tick >= grid[0]),
        tuple((y(value), words) for value, words in levels),
        y(made.target) if made.target is not None and reached else None,
    )


def _cards(made: Plan, needed: float, epsilons: Floats, values: Floats) -> tuple[tuple[Card, ...], str]:
    """Strict, balanced and loose, and a sentence where the goal cannot be reached or buys nothing.

    Balanced is the epsilon that the goal needs, but never more than the knee: the smallest epsilon that is within a
    point of the best accuracy (for other measures, within 1% of the shortest interval). An epsilon above the knee buys
    nothing. Strict halves what a snooper gains over 50:50; loose halves what keeps them from being certain.
    """
    share, best = made.measure.share, values.max() if made.measure.share else values.min()
    close = values >= best - _POINT if share else values <= best * (1 + _POINT)
    knee = float(epsilons[int(np.argmax(close))])
    target = made.target
    assert target is not None  # the studio always asks for a goal
    said = ""
    if not needed <= MOST or (best < target if share else best > target):
        needed = math.inf
        said = f"No epsilon reaches this goal: {made.measure.show(float(best))} is the best that these numbers allow."
    elif needed > knee * (1 + _POINT):
        said = (
            f"The goal needs epsilon {short(needed)}, but above epsilon {short(knee)} the result improves by at most "
            f"{'one percentage point' if share else '1%'}."
        )
    middle = min(needed, knee)
    sure = 1 / (1 + math.exp(-middle))
    if sure > _WEAK:
        said += " None of these is both good enough and private: lower the goal, or collect more data."
    cards = []
    for name, certain in (("Strict", (0.5 + sure) / 2), ("Balanced", sure), ("Loose", (1 + sure) / 2)):
        epsilon = rounded_up(min(max(math.log(certain / (1 - certain)), LEAST), MOST))
        at = float(np.interp(math.log(float(epsilon)), np.log(epsilons), values))
        offered = name == "Balanced" and sure <= _WEAK
        cards.append(Card(name, epsilon, certainty(float(epsilon)), made.measure.show(at), offered))
    return tuple(cards), said.strip()


def rounded_up(epsilon: float) -> str:
    """An epsilon as a short decimal, never below it."""
    place = _DIGITS - 1 - math.floor(math.log10(epsilon))
    return f"{math.ceil(epsilon * 10**place - 1e-9) / 10**place:.12g}"


def certainty(epsilon: float) -> str:
    """How sure a snooper who was 50:50 can become, as a sentence; ``studio.js`` computes the same."""
    return f"A snooper who was 50:50 {guarantee.certainty(epsilon)}."
