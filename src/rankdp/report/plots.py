"""Figures. One colour for one mechanism everywhere, chosen to stay apart for colour-blind readers (Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdp.errors import Unsupported
from rankdp.mechanisms.registry import candidates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "optimal": "#000000",
    "ulam": "#0072B2",
    "reinsertion": "#D55E00",
    "kendall": "#009E73",
    "laplace": "#CC79A7",
    "noisy-ranks": "#E69F00",
    "staircase": "#0072B2",
    "generalized-normal": "#D55E00",
    "gaussian": "#E69F00",
    "ball": "#56B4E9",
    "bradley-terry": "#0072B2",
    "copeland": "#D55E00",
}
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5B5B5B")


def new_figure(columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure that needs no screen, with a row of axes."""
    figure, grid = new_grid(1, columns, width, height)
    return figure, grid[0]


def new_grid(rows: int, columns: int, width: float, height: float, share_y: bool = False) -> tuple[Figure, Any]:
    """A figure that needs no screen, with rows of axes, each row perhaps on one scale."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported("plots need matplotlib: install rankdp[plots]") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else "none")
    for one in grid.flat:
        one.spines[["top", "right"]].set_visible(False)
    return figure, grid


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write the figure in the format its name says."""
    figure.savefig(path, dpi=150)


def concordance_curves(axes: Axes, items: int, epsilons: Sequence[float]) -> None:
    """The expected share of pairs each mechanism keeps in order, against epsilon: known before any data are seen."""
    kept: dict[str, list[float]] = {}
    for epsilon in epsilons:
        for one in candidates(items, epsilon):
            kept.setdefault(one.name, []).append(one.expected_concordance())
    for name in sorted(kept, key=lambda name: -kept[name][-1]):
        axes.plot(epsilons, kept[name], color=COLOURS[name], label=name)
    axes.axhline(0.5, color="0.7", linewidth=0.8, linestyle=":")
    axes.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="pairs kept in order",
        ylim=(0.48, 1.01),
        title=f"What a ranking of {items} items keeps",
    )
    axes.set_xticks([0.25, 0.5, 1, 2, 4, 8, 16], ["1/4", "1/2", "1", "2", "4", "8", "16"])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(frameon=False)


def mean_rank_lines(axes: Axes, true: Mapping[str, float], synthetic: Mapping[float, Mapping[str, float]]) -> None:
    """The mean rank of every item in the synthetic tables, by epsilon, and on the right in the true one."""
    epsilons = sorted(synthetic)
    places = np.arange(len(epsilons) + 1)
    ordered = sorted(true, key=lambda item: true[item])
    labels = _spread([true[item] for item in ordered], gap=(max(true.values()) - min(true.values())) / 22)
    for colour, item, label in zip(np.resize(SERIES, len(true)), ordered, labels, strict=True):
        levels = [*(synthetic[epsilon][item] for epsilon in epsilons), true[item]]
        axes.plot(places, levels, color=str(colour), marker="o", markersize=4)
        axes.text(places[-1] + 0.12, label, item, va="center", color=str(colour))
    axes.set_xticks(places, [*(f"{epsilon:g}" for epsilon in epsilons), "true"])
    axes.set(xlabel="epsilon", ylabel="mean rank (1 = best)", title="The poll through the mechanism")
    axes.set_xlim(-0.2, len(epsilons) + 1.1)
    axes.invert_yaxis()


def _spread(levels: Sequence[float], gap: float) -> list[float]:
    """Heights for labels near rising ``levels``, at least ``gap`` apart: those too close share the room around them."""
    groups: list[list[float]] = []
    for level in levels:
        groups.append([level])
        while len(groups) > 1 and _top(groups[-1], gap) - _top(groups[-2], gap) < gap * len(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_top(group, gap) - gap * (len(group) - 1 - i) for group in groups for i in range(len(group))]


def _top(group: Sequence[float], gap: float) -> float:
    """The height of the last label of a group centred on its mean."""
    return sum(group) / len(group) + gap * (len(group) - 1) / 2
