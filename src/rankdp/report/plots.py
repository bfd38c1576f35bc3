"""Figures. One colour for one mechanism everywhere, chosen to stay apart for colour-blind readers (Okabe and Ito).

The plot of a leaderboard, a dot and an interval for each item, is drawn by matplotlib for pictures, and as SVG by hand
for pages: so a page has its plot without matplotlib and keeps its text as text.
"""

from __future__ import annotations

import html
import io
import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.tiers import read_name
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN, _LONGEST_NAME = 60, 30  # items of a plot of intervals, and characters of their names
_LEFT, _WIDTH, _STEP = 245, 535, 20  # the names have this at most
_METHODS = {"bradley-terry": "#0072B2", "wins": "#D55E00", "copeland": "#CC79A7"}
_ONE = "#0072B2"  # a plan for an election has one curve, that of its rule
_METHODS |= dict.fromkeys(("plurality", "borda", "irv", "stv", "kemeny", "ranked-pairs", "schulze", "condorcet"), _ONE)


class _Colours(Mapping[str, str]):
    """By name what mechanisms and noises say of themselves, read when it is asked for, and the colours of methods."""

    def _all(self) -> dict[str, str]:
        noises = {name: kind.colour for name, kind in SCORE_MECHANISMS.items()}
        return {**noises, **{name: kind.colour for name, kind in MECHANISMS.items()}, **_METHODS}

    def __getitem__(self, name: str) -> str:
        return self._all()[name if name in self._all() else read_name(name)[0]]  # tiers-3-7 is tiers

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


COLOURS = _Colours()
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5B5B5B")


def new_figure(columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure that needs no screen, with a row of axes."""
    figure, grid = new_grid(1, columns, width, height)
    return figure, grid[0]


def drawing(draw: Callable[[Axes], None], width: float = 7.5, height: float = 5) -> Callable[[], Figure]:
    """Makes, when it is called, a figure with one pair of axes that ``draw`` has drawn on."""

    def drawn() -> Figure:
        figure, (axes,) = new_figure(1, width, height)
        draw(axes)
        return figure

    return drawn


def new_grid(rows: int, columns: int, width: float, height: float, share_y: bool = False) -> tuple[Figure, Any]:
    """A figure that needs no screen, with rows of axes, each row perhaps on one scale."""
    need_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else "none")
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    return figure, grid


def need_matplotlib() -> None:
    """Refuse where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Unsupported("plots need matplotlib: install rankdp[plots]") from None


def picture(figure: Figure, kind: str, words: Sequence[str] = ()) -> bytes:
    """The figure as "png", "svg" or "pdf", longer by the paragraphs of small print below it."""
    from matplotlib.text import Text

    said: Any = figure.findobj(Text)
    fonts, complete = _fonts_for("".join([*(text.get_text() for text in said), *words]))
    if words:
        boxes = (
            [] if complete else ["Characters that no installed font has are drawn as boxes; a page (.html) has them."]
        )
        width, height = figure.get_size_inches()
        print_below = "\n".join(textwrap.fill(paragraph, int(16 * width)) for paragraph in [*words, *boxes])
        figure.set_size_inches(width, height + 0.16 * (1 + print_below.count("\n")))
        said.append(figure.supxlabel(unformatted(print_below), x=0.01, ha="left", fontsize=8, color="0.3"))
    for text in said if fonts else ():
        text.set_fontfamily(["sans-serif", *fonts])
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the box that is drawn says enough
        figure.savefig(drawn, format=kind, dpi=150)
    return drawn.getvalue()


def _fonts_for(text: str) -> tuple[list[str], bool]:
    """Installed fonts that have the characters which the usual one lacks, and whether that is all of them."""
    from matplotlib.font_manager import FontProperties, findfont, fontManager
    from matplotlib.ft2font import FT2Font

    missing = {ord(letter) for letter in text if letter.isprintable()}
    missing -= FT2Font(findfont(FontProperties())).get_charmap().keys()
    found: list[str] = []
    for path, family in {font.fname: font.name for font in fontManager.ttflist if font.style == "normal"}.items():
        if missing and not family.startswith("Last Resort"):  # whose glyphs are boxes
            with suppress(RuntimeError, OSError):  # a font that cannot be opened is none
                font = FT2Font(path)
                if font.scalable and (has := missing & font.get_charmap().keys()):
                    missing -= has
                    found.append(family)
    return list(dict.fromkeys(found)), not missing


def unformatted(text: str) -> str:
    """A text that matplotlib shows as it is: a dollar would start a formula."""
    return text.replace("$", r"\$")


@dataclass(frozen=True, slots=True)
class Intervals:
    """Items with their values and intervals, best first; a plot shows the first 60.

    An infinite end of an interval reaches to the edge. ``others`` is a second value for each item, drawn as a hollow
    dot; ``legend`` names both.
    """

    names: Sequence[str]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    label: str
    others: Sequence[float] | None = None
    legend: tuple[str, str] = ("", "")

    def _axis(self, shown: int) -> str:
        return self.label + (f" (the first {shown} of {len(self.names)})" if len(self.names) > shown else "")

    def figure(self, title: str) -> Figure:
        """The plot by matplotlib, with a title above it."""
        return stacked([(title, self)])

    def draw(self, axes: Axes, title: str, shown: int) -> None:
        """The plot of the first so many on axes of a figure."""
        rows = range(shown)
        axes.hlines(rows, self.low[:shown], self.high[:shown], color=SERIES[5], linewidth=3)
        axes.plot(self.values[:shown], rows, "o", color=SERIES[0], label=self.legend[0])
        if self.others is not None:
            axes.plot(self.others[:shown], rows, "o", mfc="none", color=SERIES[1], label=self.legend[1])
            axes.figure.legend(loc="outside upper right", ncols=2, frameon=False)
        axes.set_yticks(rows, [unformatted(_cut(name)) for name in self.names[:shown]])
        axes.set_ylim(shown - 0.4, -0.6)
        axes.set(xlabel=self._axis(shown), title=unformatted(title))
        axes.grid(axis="x", color="0.93")

    def svg(self) -> str:
        """The plot as an SVG element."""
        shown = min(len(self.names), _SHOWN)
        drawn = [*self.low[:shown], *self.high[:shown], *self.values[:shown], *(self.others or ())[:shown]]
        finite = [value for value in drawn if math.isfinite(value)]
        least, most = min(finite), max(finite)
        span = (most - least) or 1.0
        edge = _name_width(self.names[:shown])

        def x(value: float) -> float:
            return edge + _WIDTH * (min(max(value, least), most) - least) / span

        top, bottom = 44, _STEP * shown + 56
        label = html.escape(self._axis(shown), quote=True)
        words = label if self.others is None else f"{label}; filled: {self.legend[0]}, hollow: {self.legend[1]}"
        parts = [f"<text x='{edge + _WIDTH / 2}' y='14' class='tick'>{words}</text>"]
        for tick in _ticks(least, most):
            parts.append(f"<line x1='{x(tick):.1f}' x2='{x(tick):.1f}' y1='{top}' y2='{bottom}' class='grid'/>")
            number = f"class='tick'>{tick:,.10g}</text>"
            parts += [f"<text x='{x(tick):.1f}' y='{y}' {number}" for y in (top - 8, bottom + 16)]
        for row in range(shown):
            y, full = top + _STEP * row + 12, html.escape(self.names[row])
            name, left, right = html.escape(_cut(self.names[row])), x(self.low[row]), x(self.high[row])
            parts.append(f"<text x='{edge - 12}' y='{y + 4}' class='name'>{name}<title>{full}</title></text>")
            parts.append(f"<line x1='{left:.1f}' x2='{right:.1f}' y1='{y}' y2='{y}' class='bar'/>")
            if self.others is not None:
                parts.append(f"<circle cx='{x(self.others[row]):.1f}' cy='{y}' r='4' class='other'/>")
            parts.append(f"<circle cx='{x(self.values[row]):.1f}' cy='{y}' r='4'/>")
        box = f"0 0 {edge + _WIDTH + 30} {bottom + 24}"
        return f"<svg viewBox='{box}' role='img' aria-label='{label}'>{''.join(parts)}</svg>"


def stacked(several: Sequence[tuple[str, Intervals]]) -> Figure:
    """Plots one above the other, each with its title; together they show about 60 items."""
    most = max(5, _SHOWN // len(several))
    shown = [min(len(plot.names), most) for _, plot in several]
    figure, grid = new_grid(len(several), 1, 9, sum(1.5 + 0.28 * rows for rows in shown))
    for (title, plot), axes, rows in zip(several, grid[:, 0], shown, strict=True):
        plot.draw(axes, title, rows)
    return figure


def win_rate_map(names: Sequence[str], scores: Sequence[float]) -> str:
    """A heat map, as an SVG element, of how often each item beats each other one if these log-strengths are right.

    Parameters
    ----------
    names, scores
        The items and their log-strengths, best first; the first 25 are shown.
    """
    shown, step, top = min(len(names), 25), 26, 50
    edge = _name_width([f"25. {name}" for name in names[:shown]])
    title = "how often the row beats the column, in percent, by the scores" + (
        f" (the first {shown} of {len(names)})" if shown < len(names) else ""
    )
    parts = [f"<text x='{edge}' y='14' class='heat-axis'>{title}</text>"]
    widest = 1 / (1 + math.exp(scores[shown - 1] - scores[0])) - 0.5
    for row in range(shown):
        y, full = top + step * row, html.escape(names[row])
        name = f"{html.escape(_cut(names[row]))}<title>{full}</title>"
        parts.append(f"<text x='{edge - 12}' y='{y + 17}' class='name'>{row + 1}. {name}</text>")
        parts.append(f"<text x='{edge + step * (row + 0.5)}' y='{top - 6}' class='tick'>{row + 1}</text>")
        for column in range(shown):
            if row != column:
                rate = 1 / (1 + math.exp(scores[column] - scores[row]))
                x, shade = edge + step * column, 0.4 + 0.35 * (rate - 0.5) / max(widest, 1e-9)
                words = f"<title>{full} beats {html.escape(names[column])} in {rate:.0%}</title>"
                square = f"x='{x}' y='{y}' width='{step - 1}' height='{step - 1}' fill-opacity='{shade:.2f}'"
                parts.append(f"<rect class='heat' {square}>{words}</rect>")
                parts.append(f"<text x='{x + step / 2}' y='{y + 17}' class='rate'>{100 * rate:.0f}</text>")
    box = f"0 0 {max(edge + _WIDTH + 30, edge + step * shown + 4)} {top + step * shown + 4}"
    return f"<svg viewBox='{box}' role='img' aria-label='{title}'>{''.join(parts)}</svg>"


def _name_width(names: Sequence[str]) -> int:
    """The room for the names to the left of a plot: about 7 units a character, twice that for wide ones."""
    letters = ([2 if east_asian_width(letter) in "WF" else 1 for letter in _cut(name)] for name in names)
    return min(_LEFT, 24 + 7 * max(map(sum, letters)))


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
