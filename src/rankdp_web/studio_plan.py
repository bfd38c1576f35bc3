"""Goals in words become an epsilon, and curves that a slider can follow: ``rankdp.plan`` on public numbers, drawn once.

The server computes the accuracy of every option at a dozen epsilons and draws smooth curves through them; the page
reads the values at the slider's epsilon off those curves. So the slider needs no server, and nothing here needs data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.registry import mechanism
from rankdp.planning.plan import Plan, plan, short
from rankdp.planning.plan_report import smooth
from rankdp.report.plots import COLOURS
from rankdp_web.studio_work import Work

LEAST, MOST = 0.02, 20.0
"""The ends of the slider; beyond the second nothing is protected."""
_GRID, _POINTS = 12, 91
_SHORT = 30
"""Items up to which a curve is computed at so many points; more of them take seconds."""
_LEFT, _TOP, _WIDTH, _HEIGHT = 58, 12, 528, 230
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """One option: its line in the picture, the numbers behind it, and the epsilon that the goal needs with it."""

    name: str
    colour: str
    points: str
    values: tuple[float, ...]
    needed: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """The planner's answer for the page."""

    plan: Plan
    curves: tuple[Curve, ...]
    epsilons: tuple[float, ...]
    label: str
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    target_y: float | None

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


def public_numbers(work: Work) -> dict[str, Any]:
    """What the planner is told: nothing but public numbers."""
    known: dict[str, Any] = {"items": work.ranked}
    if work.kind == "scores":
        return {**known, "bounds": work.numeric_bounds}
    if work.number is not None:
        known[work.what.number] = work.number
    if work.kind == "rankings":
        return known
    known["protect"] = work.protect
    if work.kind == "ballots":
        known["rule"] = work.option or None
    if work.kind == "comparisons" and work.protect == "voter":
        known["max_per_voter"] = work.max_per_voter
    return known


def drawn(work: Work) -> Drawn:
    """The plan for a work's goal."""
    goal, longest = work.what.goal(work.goal), work.ranked - 1
    target = goal.usual if work.target is None else work.target
    if goal.unit == "%" and not 0 < target < 1:
        raise InputError(f"the goal must be above 0% and below 100%, got {100 * target:g}%")
    asked: dict[str, Any] = {goal.ask: target}
    if goal.ask == "overlap":
        asked["top"] = 1 if goal.name == "winner" else max(1, min(work.top, longest))
    public = public_numbers(work)
    return _drawn(work.what.situation, tuple(sorted(asked.items())), tuple(sorted(public.items())))


@lru_cache(maxsize=64)
def _drawn(situation: str, asked: tuple[tuple[str, Any], ...], public: tuple[tuple[str, Any], ...]) -> Drawn:
    made = plan(situation, **dict(asked), **dict(public))
    least = min(LEAST, made.epsilon / 2)
    knots = [one.epsilon for one in made.choices if least < one.epsilon < MOST]
    grid_points = _GRID if made.situation.items <= _SHORT else _GRID // 2
    epsilons = sorted({*np.geomspace(least, MOST, grid_points).tolist(), *knots})
    known = {}
    for name in (one.name for one in made.choices):
        values = [made.situation.accuracy(name, made.measure, epsilon, made.request) for epsilon in epsilons]
        if np.isfinite(values).all():
            known[name] = smooth(made.measure, epsilons, values, _POINTS)
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
    return Drawn(
        made,
        curves,
        tuple(grid.tolist()),
        made.request.words(made.measure),
        tuple((x(tick), f"{tick:g}") for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if tick >= grid[0]),
        tuple((y(value), words) for value, words in levels),
        y(made.target) if made.target is not None and reached else None,
    )


def proposed(work: Work, answer: Drawn) -> tuple[str, str]:
    """The option that is proposed, and the epsilon that the goal needs with it, rounded up and within the slider."""
    needs = {one.name: one.epsilon for one in answer.plan.choices}
    option = work.option or work.what.usual or answer.plan.recommended.name
    epsilon = needs.get(option, answer.plan.epsilon)
    if option == work.what.own_choice:  # what it would take at about that epsilon
        epsilon = needs.get(_taken(work, min(epsilon, MOST)), epsilon)
    return option, rounded_up(min(epsilon, MOST) if math.isfinite(epsilon) else answer.plan.epsilon)


def _taken(work: Work, epsilon: float) -> str:
    """What "auto" takes."""
    return type(mechanism("auto", work.ranked, Fraction(epsilon))).name


def rounded_up(epsilon: float) -> str:
    """An epsilon as a short decimal, never below it."""
    place = _DIGITS - 1 - math.floor(math.log10(epsilon))
    return f"{math.ceil(epsilon * 10**place - 1e-9) / 10**place:.12g}"


def meaning(epsilon: float) -> str:
    """Epsilon in a sentence: what becomes of even odds."""
    sure = 1 / (1 + math.exp(-epsilon))
    shown = "over 99.9%" if sure > 0.999 else f"{sure:.1%}"
    return f"Whoever was 50:50 about what is protected can be at most {shown} sure after seeing the release."
