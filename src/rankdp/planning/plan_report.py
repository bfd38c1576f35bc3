"""A plan for readers: its sentence, the curve of its measure and the table of its options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankdp.planning.plan import Plan
from rankdp.planning.situation import Measure
from rankdp.report.document import Report
from rankdp.report.plots import COLOURS, drawing
from rankdp.report.results import Table
from rankdp.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LINES = ("-", "--", "-.", (0, (6, 1, 1, 1, 1, 1)))  # in addition to colours, which not everyone can tell apart


def plan_report(plan: Plan) -> Report:
    """The report of a plan: the sentence, the curve and the table.

    Parameters
    ----------
    plan
        What ``rankdp.plan`` returned.
    """
    heads, rows, choosing = plan.situation.promises(plan.epsilon)
    advice = [*plan.sentences[1:], plan.situation.advice(plan.recommended.name, plan.epsilon), choosing]
    return Report(
        title=f"Plan: {plan.situation.subject}",
        records=[
            {
                "option": choice.name,
                "epsilon": choice.epsilon,
                **choice.accuracy,
                **({"respondents": plan.respondents[choice.name]} if plan.compares_respondents else {}),
                "recommended": place == 0,
            }
            for place, choice in enumerate(plan.choices)
        ],
        facts=plan.to_dict,
        tables=[plan.table(), *([Table(heads, rows, texts=3, title="Which promise?")] if rows else [])],
        headline=plan.sentences[0],
        words=[" ".join(filter(None, advice))] if any(advice) else [],
        computed=[f"Epsilon protects {plan.situation.protects}. All numbers follow from public numbers only."],
        figure=drawing(lambda axes: draw(plan, axes), width=8, height=4.6),
    )


def draw(plan: Plan, axes: Axes) -> None:
    """The measure against epsilon, one line per option; the target, if any, as a dotted line."""
    for at, (name, values) in enumerate(plan.curves.items()):
        if not all(math.isnan(value) for value in values):
            if name in plan.situation.slow or np.isfinite(values).sum() < 2:
                axes.plot(plan.epsilons, values, "o", color=COLOURS[name], label=name)
            else:
                line = smooth(plan.measure, plan.epsilons, values)
                axes.plot(*line, color=COLOURS[name], linestyle=_LINES[at % len(_LINES)], label=name)
    if plan.target is not None:
        axes.axhline(plan.target, color="0.5", linewidth=0.8, linestyle=":")
    axes.axvline(plan.epsilon, color="0.5", linewidth=0.8, linestyle=":")
    words = plan.request.words(plan.measure)
    axes.set(xscale="log", xlabel="epsilon", ylabel=words, title=plan.situation.subject.capitalize())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    if plan.measure.share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.yaxis.set_minor_formatter(lambda value, _: f"{value:.1g}" if f"{value:.0e}"[0] in "25" else "")
        axes.set_ylabel(f"half-width of a {words}")
    axes.grid(color="0.93")
    axes.legend(frameon=False)


def smooth(
    measure: Measure, epsilons: Sequence[float], values: Sequence[float], points: int = 400
) -> tuple[Floats, Floats]:
    """A line through the known values: monotone cubics on a scale where the curve is nearly straight.

    The scale is log(-log) for shares and log for other measures, over log epsilon.

    Parameters
    ----------
    measure
        What the values are of.
    epsilons, values
        The curve; values may be NaN, but not all.
    points
        How many points the line has.
    """
    from scipy.interpolate import PchipInterpolator

    known = np.isfinite(values)
    x, y = np.log(epsilons)[known], np.asarray(values)[known]
    y = np.log(-np.log(np.clip(y, 1e-9, 1 - 1e-9))) if measure.share else np.log(y)
    dense = np.linspace(x[0], x[-1], points)
    line = PchipInterpolator(x, y)(dense)
    return np.exp(dense), np.exp(-np.exp(line)) if measure.share else np.exp(line)
