"""The plot of a leaderboard: a dot and an interval for each item, best on top.

As SVG by hand, so that a page has its plot without matplotlib and keeps its text as text; as a figure for pictures.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankdp.report.plots import SERIES, new_figure, unformatted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 60
_LONGEST_NAME = 30
_LEFT, _WIDTH, _STEP = 245, 535, 20


@dataclass(frozen=True, slots=True)
class Intervals:
    """Items with their values and intervals, best first; a plot shows the first 60.

    Parameters
    ----------
    names
        The items.
    values
        Where the dots stand.
    low, high
        The ends of the intervals; an infinite end reaches to the edge.
    label
        What the axis shows.
    others
        A second value for each item, drawn as a hollow dot; None for none.
    legend
        The names of ``values`` and ``others``.
    """

    names: Sequence[str]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    label: str
    others: Sequence[float] | None = None
    legend: tuple[str, str] = ("", "")

    @property
    def _shown(self) -> int:
        return min(len(self.names), _SHOWN)

    @property
    def _axis(self) -> str:
        return self.label + (f" (the first {_SHOWN} of {len(self.names)})" if len(self.names) > _SHOWN else "")

    def figure(self, title: str) -> Figure:
        """The plot by matplotlib.

        Parameters
        ----------
        title
            What stands above it.
        """
        shown = self._shown
        figure, (axes,) = new_figure(1, width=9, height=1.5 + 0.28 * shown)
        places = range(shown)
        axes.hlines(places, self.low[:shown], self.high[:shown], color=SERIES[5], linewidth=3)
        axes.plot(self.values[:shown], places, "o", color=SERIES[0], label=self.legend[0])
        if self.others is not None:
            axes.plot(self.others[:shown], places, "o", mfc="none", color=SERIES[1], label=self.legend[1])
            axes.legend(frameon=False)
        axes.set_yticks(places, [unformatted(_cut(name)) for name in self.names[:shown]])
        axes.set_ylim(shown - 0.4, -0.6)
        axes.set(xlabel=self._axis, title=unformatted(title))
        axes.grid(axis="x", color="0.93")
        return figure

    def svg(self) -> str:
        """The plot as an SVG element."""
        shown = self._shown
        drawn = [*self.low[:shown], *self.high[:shown], *self.values[:shown], *(self.others or ())[:shown]]
        finite = [value for value in drawn if math.isfinite(value)]
        least, most = min(finite), max(finite)
        span = (most - least) or 1.0

        def x(value: float) -> float:
            return _LEFT + _WIDTH * (min(max(value, least), most) - least) / span

        bottom = _STEP * shown + 12
        parts = []
        for tick in _ticks(least, most):
            parts.append(f"<line x1='{x(tick):.1f}' x2='{x(tick):.1f}' y1='8' y2='{bottom}' class='grid'/>")
            parts.append(f"<text x='{x(tick):.1f}' y='{bottom + 16}' class='tick'>{tick:,.10g}</text>")
        for place in range(shown):
            y, name = _STEP * place + 20, html.escape(_cut(self.names[place]))
            left, right = x(self.low[place]), x(self.high[place])
            parts.append(f"<text x='{_LEFT - 12}' y='{y + 4}' class='name'>{name}</text>")
            parts.append(f"<line x1='{left:.1f}' x2='{right:.1f}' y1='{y}' y2='{y}' class='bar'/>")
            if self.others is not None:
                parts.append(f"<circle cx='{x(self.others[place]):.1f}' cy='{y}' r='4' class='other'/>")
            parts.append(f"<circle cx='{x(self.values[place]):.1f}' cy='{y}' r='4'/>")
        label = html.escape(self._axis, quote=True)
        words = label if self.others is None else f"{label}; filled: {self.legend[0]}, hollow: {self.legend[1]}"
        parts.append(f"<text x='{_LEFT + _WIDTH / 2}' y='{bottom + 36}' class='tick'>{words}</text>")
        box = f"0 0 {_LEFT + _WIDTH + 30} {bottom + 46}"
        return f"<svg viewBox='{box}' role='img' aria-label='{label}'>{''.join(parts)}</svg>"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _ticks(least: float, most: float) -> list[float]:
    """Round numbers between two ends, four to eleven of them."""
    if not most > least:
        return [least]
    longest = (most - least) / 4
    unit = 10.0 ** math.floor(math.log10(longest))
    step = max(times * unit for times in (1, 2, 5) if times * unit <= longest)
    return [float(f"{turn * step:.10g}") for turn in range(math.ceil(least / step), math.floor(most / step) + 1)]
