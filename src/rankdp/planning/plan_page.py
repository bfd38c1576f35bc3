"""A plan for readers: a picture of its curve, a page, or JSON."""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankdp.planning.plan import Plan, short
from rankdp.planning.situation import Measure
from rankdp.report import page as pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
_FORMATS = (".png", ".html", ".json")


def check_ending(path: str | PathLike[str]) -> str:
    """The ending of a plan's file."""
    from rankdp.data.atomic import known_ending

    return known_ending(path, _FORMATS)


def write_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Write the plan in the format that the ending says."""
    from rankdp.data.atomic import write_whole

    ending = check_ending(path)
    if ending == ".png":
        write_whole(path, _picture(plan, "png"))
    elif ending == ".html":
        write_whole(path, to_html(plan).encode())
    else:
        write_whole(path, (json.dumps(plan.to_dict(), indent=2) + "\n").encode())


def table_of(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: what each option needs, where that was asked, and what it gives at the plan's epsilon."""
    measures = plan.situation.measures
    at = f"at epsilon {short(plan.epsilon)}: "
    heads = ["", *(["epsilon needed"] if plan.target is not None else [])]
    heads += [(at if place == 0 else "") + plan.request.words(one) for place, one in enumerate(measures)]
    rows = []
    for one in plan.choices:
        needs = "–" if math.isnan(one.accuracy[plan.measure.name]) else short(one.epsilon)
        rows.append(
            [
                one.name,
                *([needs] if plan.target is not None else []),
                *(measure.show(one.accuracy[measure.name]) for measure in measures),
            ]
        )
    return heads, rows


def to_html(plan: Plan) -> str:
    """One page with the sentence, the curve and the table."""
    drawing = _picture(plan, "svg").decode()
    return pages.page(
        f"Plan: {plan.situation.subject}",
        pages.paragraph(plan.explain()),
        drawing[drawing.index("<svg") :],
        pages.table(*table_of(plan)),
        footer=[f"Epsilon protects {plan.situation.protects}. All numbers follow from public numbers only."],
    )


def draw(plan: Plan, axes: Axes) -> None:
    """The measure against epsilon, a line for each option; the target, if any, as a dotted line."""
    from rankdp.report.plots import COLOURS

    for name, values in plan.curves.items():
        if not all(math.isnan(value) for value in values):
            if name in plan.situation.slow:
                axes.plot(plan.epsilons, values, "o", color=COLOURS[name], label=name)
            else:
                axes.plot(*_smooth(plan.measure, plan.epsilons, values), color=COLOURS[name], label=name)
    if plan.target is not None:
        axes.axhline(plan.target, color="0.5", linewidth=0.8, linestyle=":")
    axes.axvline(plan.epsilon, color="0.5", linewidth=0.8, linestyle=":")
    words = plan.request.words(plan.measure)
    axes.set(xscale="log", xlabel="epsilon", ylabel=words, title=f"{plan.situation.subject}".capitalize())
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


def _smooth(measure: Measure, epsilons: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    """A line through the values: monotone cubics (Fritsch and Butland) in the scale where they are fairly straight.

    That is log(-log) of shares and log of the others, over log epsilon. (scipy has them too, but takes long to import.)
    """
    x, y = np.log(epsilons), np.asarray(values)
    y = np.log(-np.log(np.clip(y, 1e-9, 1 - 1e-9))) if measure.share else np.log(y)
    step, slope = np.diff(x), np.diff(y) / np.diff(x)
    weight = np.stack([2 * step[1:] + step[:-1], step[1:] + 2 * step[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = weight.sum(axis=0) / (weight / np.stack([slope[:-1], slope[1:]])).sum(axis=0)
    tangent = np.concatenate([slope[:1], np.where(slope[:-1] * slope[1:] > 0, inner, 0), slope[-1:]])
    dense = np.linspace(x[0], x[-1], 400)
    at = np.clip(np.searchsorted(x, dense, "right") - 1, 0, len(step) - 1)
    t = (dense - x[at]) / step[at]
    bend = (t - 1) * tangent[at] + t * tangent[at + 1] - (2 * t - 1) * slope[at]
    line = y[at] + step[at] * (t * slope[at] + t * (t - 1) * bend)
    return np.exp(dense), np.exp(-np.exp(line)) if measure.share else np.exp(line)


def _picture(plan: Plan, kind: str) -> bytes:
    from rankdp.report.plots import new_figure

    words = textwrap.fill(plan.explain(), 105)
    figure, (axes,) = new_figure(1, width=8, height=4.6 + 0.17 * words.count("\n"))
    draw(plan, axes)
    if kind == "png":
        figure.supxlabel(words.replace("$", r"\$"), fontsize=8, color="0.3")
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=150)
    return picture.getvalue()
