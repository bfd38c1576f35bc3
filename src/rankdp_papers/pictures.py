"""Tidy rows as small multiples: a line and its band of two standard errors for each method.

Colour says which mechanism, noise or method it is (``plots.COLOURS``, the same everywhere) and dashes say which variant
of it: "kendall + debiased" has Kendall's colour. What is not private is grey, and "simulated" is black dots that leave
the lines below them visible. Lines that are no mechanism, such as values of epsilon, take a colour each from
``plots.SERIES``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankdp.errors import InputError
from rankdp.report.plots import COLOURS, SERIES, new_grid
from rankdp_papers.experiment import Row
from rankdp_papers.specification import FigurePlan
from rankdp_papers.verdicts import select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Style = Mapping[str, Any]
_GREY = "#5B5B5B"
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)), (0, (7, 2)))
_GREYS = (":", (0, (3, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v")
_MARKED_UP_TO = 25  # points of a line
_BAND = 2.0  # standard errors on either side
_WIDTH, _HEIGHT = 3.4, 2.9  # of one axes, in inches


def draw(plan: FigurePlan, rows: Sequence[Row]) -> Figure:
    """The picture of a table."""
    shown = select(rows, plan.only)
    for name in (plan.x, plan.lines, plan.panels, plan.rows):
        if name is not None and name not in shown[0]:
            raise InputError(f"[figure]: there is no column {name!r}; there are {', '.join(shown[0])}")
    across, down = _values(shown, plan.panels), _values(shown, plan.rows)
    width = max(6.0, _WIDTH * len(across))
    figure, grid = new_grid(len(down), len(across), width, _HEIGHT * len(down) + 0.9, share_y=plan.share_y)
    styles = line_styles([str(value) for value in _values(shown, plan.lines)])
    for line, vertical in zip(grid, down, strict=True):
        for axes, horizontal in zip(line, across, strict=True):
            here = select(shown, _where(plan.rows, vertical) | _where(plan.panels, horizontal))
            logarithmic = "y" in plan.log or str(vertical) in plan.log
            _panel(axes, plan, here, styles, logarithmic)
        named = "value" if plan.rows is None else _name(plan, plan.rows, vertical)
        line[0].set_ylabel(plan.y_labels.get(str(vertical)) or plan.y_label or named)
    for axes, horizontal in zip(grid[0], across, strict=True):
        if plan.panels is not None:
            axes.set_title(_name(plan, plan.panels, horizontal), fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel(plan.x_label or plan.x)
    _legend(figure, grid, plan, styles, width)
    return figure


def image(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg", the same bytes for the same numbers; a PNG in 256 colours, a third of the size."""
    from matplotlib import rc_context
    from PIL import Image

    drawn = io.BytesIO()
    with rc_context({"svg.hashsalt": "rankdp"}):
        figure.savefig(drawn, format=kind, dpi=110, metadata={"Date": None} if kind == "svg" else {"Software": None})
    if kind == "png":
        few = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        drawn = io.BytesIO()
        few.save(drawn, "PNG", optimize=True)
    return drawn.getvalue()


def line_styles(names: Sequence[str]) -> dict[str, Style]:
    """Colour, dash and marker of each line: one colour for one mechanism, one dash for one of its variants."""
    styles: dict[str, Style] = {}
    colours: dict[str, str] = {}
    for name in names:
        if name == "simulated":
            styles[name] = {"color": "black", "linestyle": "", "marker": "o", "zorder": 3}
            continue
        base, _, variant = name.partition(" + ")
        if "not private" in (base, variant):
            kind = sum(style["color"] == _GREY for style in styles.values())
            styles[name] = {"color": _GREY, "linestyle": _GREYS[kind % len(_GREYS)], "marker": ""}
            continue
        colour = colours.setdefault(base, COLOURS.get(base, SERIES[len(colours) % len(SERIES)]))
        kind = sum(style["color"] == colour for style in styles.values())
        styles[name] = {
            "color": colour,
            "linestyle": _DASHES[kind % len(_DASHES)],
            "marker": _MARKERS[kind % len(_MARKERS)],
        }
    return styles


def _panel(axes: Axes, plan: FigurePlan, rows: Sequence[Row], styles: Mapping[str, Style], logarithmic: bool) -> None:
    """The lines of one pair of axes."""
    for name, style in styles.items():
        line = sorted((row for row in rows if str(row[plan.lines]) == name), key=lambda row: row[plan.x])
        x, y = [row[plan.x] for row in line], [row["value"] for row in line]
        marked = style if len(x) <= _MARKED_UP_TO else {**style, "marker": ""}
        if line:
            axes.plot(x, y, label=plan.names.get(name, name), markersize=3.2, linewidth=1.5, **marked)
        if any(row["error"] for row in line):
            low = [row["value"] - _BAND * row["error"] for row in line]
            high = [row["value"] + _BAND * row["error"] for row in line]
            if logarithmic:  # the axis has no room for a band that reaches 0
                low = [max(edge, value / 100) for edge, value in zip(low, y, strict=True)]
            axes.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
    if plan.diagonal:
        axes.axline((0.0, 0.0), slope=1.0, color="0.6", linewidth=0.8, linestyle="--")
    axes.set_axisbelow(True)
    axes.grid(color="0.93")
    if all(isinstance(row[plan.x], int) for row in rows):
        axes.locator_params("x", integer=True)
    if "x" in plan.log:
        _logarithmic(axes, axes.xaxis, sorted({row[plan.x] for row in rows}))
    if logarithmic:
        _logarithmic(axes, axes.yaxis, [row["value"] for row in rows])


def _logarithmic(axes: Axes, axis: Axis, values: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers: 1, 2 and 5 of each decade, or the decades where there are many."""
    from matplotlib.ticker import LogLocator, NullLocator

    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
    present = [value for value in values if value > 0]
    wide = bool(present) and max(present) / min(present) > 300
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}".replace("e+0", "e").replace("e-0", "e-"))


def _legend(figure: Figure, grid: Any, plan: FigurePlan, styles: Mapping[str, Style], width: float) -> None:
    """One legend below all axes, with as many columns as fit."""
    found: dict[str, Any] = {}
    for axes in grid.flat:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    ordered = [label for name in styles if (label := plan.names.get(name, name)) in found]
    longest = max(map(len, ordered))
    columns = max(1, min(len(ordered), int(width / (0.075 * longest + 0.65))))
    figure.legend(
        [found[label] for label in ordered],
        ordered,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def _values(rows: Sequence[Row], column: str | None) -> list[Any]:
    """The values of a column in the order in which they come; one empty value for no column."""
    return [None] if column is None else list(dict.fromkeys(row[column] for row in rows))


def _where(column: str | None, value: Any) -> dict[str, Any]:
    return {} if column is None else {column: value}


def _name(plan: FigurePlan, column: str, value: Any) -> str:
    """How a panel is called: "items 5" for numbers, the value itself for texts, or what the plan says."""
    if str(value) in plan.names:
        return plan.names[str(value)]
    return str(value) if isinstance(value, str) else f"{column} = {value:g}"
