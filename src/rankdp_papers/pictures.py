"""Tidy rows as small multiples: a line and its band of two standard errors for each method.

Colour says which mechanism, noise or method it is (``plots.COLOURS``, the same everywhere) and dashes say which variant
of it: "kendall + debiased" has Kendall's colour. What is in ``_FIXED`` and ``_VARIANTS`` looks the same in every
figure. What is not private is grey, and "simulated" is black dots. Lines that are no mechanism, such as values
of epsilon, take a colour each from ``plots.SERIES``. The earlier a line is drawn, the broader it is and the larger are
its open markers, so that one that lies under another still shows around it. Words such as epsilon and P_e are set as
mathematics.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
_GREYS = {"bradley-terry": ":", "copeland": (0, (3, 1, 1, 1))}
_MARKERS = ("o", "s", "^", "D", "v")
_SHAPES = {"ulam": "s", "tiers": "v", "reinsertion": "^", "optimal": "P", "noisy-ranks": "x"}
_PAPER, _TIGHT, _OUTCOME, _WINS = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
_FIXED = {
    "bradley-terry + paper": (_PAPER, 0),
    "bradley-terry + paper, c0 = 1": (_PAPER, 1),
    "bradley-terry + paper, no noise": (_PAPER, 2),
    "bradley-terry + paper, voter": (_PAPER, 3),
    "bradley-terry + theorem 2.1": (_PAPER, 4),
    "bradley-terry + tight": (_TIGHT, 0),
    "bradley-terry + voter": (_TIGHT, 3),
    "bradley-terry + outcome": (_OUTCOME, 0),
    "copeland": (_WINS, 0),
    "copeland + voter": (_WINS, 3),
    "the paper's noise, its best c0": (_PAPER, 0),
    "the paper's noise, c0 = 1": (_PAPER, 1),
    "the least noise, the paper's best c0": (_TIGHT, 1),
    "the least noise, our ridge": (_TIGHT, 0),
    "only outcomes secret": (_OUTCOME, 0),
    "for privacy alone": (_PAPER, 1),
    "for all of (2.4)": (_PAPER, 4),
    "first order": ("#E69F00", 1),
    "second order": ("#56B4E9", 2),
    "third order": ("#7F3C8D", 3),
    "integrated": ("#0072B2", 0),
}
"""Estimators that no mechanism of the library names: colour, and the place of dash and marker."""
_VARIANTS = {
    "debiased": 1,
    "equal realised epsilon": 1,
    "binomial bound": 2,
    "first order": 1,
    "first order (29)": 1,
    "lower bound (30)": 2,
    "upper bound (30)": 3,
    "best p": 0,
    "p-hat (91)": 1,
    "p = 0.7": 2,
    "p = 0.4": 3,
}
_MATHEMATICS = (
    (r"\(m-1\) log\(N\)/sqrt\(N\)", r"$(m-1)\\,\\log N/\\sqrt{N}$"),
    (r"\(m-1\)/sqrt\(N\)", r"$(m-1)/\\sqrt{N}$"),
    (r"2\(m-1\)/epsilon", r"$2(m-1)/\\varepsilon$"),
    (r"m/epsilon", r"$m/\\varepsilon$"),
    (r"l/\(sigma b\)", r"$l/(\\sigma b)$"),
    (r"F'/\(F\(1-F\)\)", r"$F'/(F(1-F))$"),
    (r"\bepsilon\b|\beps\b", r"$\\varepsilon$"),
    (r"\[-B, B\]", r"$[-B, B]$"),
    (r"\b(share|reach|separation) ([pBC])\b", r"\1 $\2$"),
    (r"\balpha\b", r"$\\alpha$"),
    (r"\binf\b", r"$\\infty$"),
    (r"\bsigma\b", r"$\\sigma$"),
    (r"\bkappa_2\b", r"$\\kappa_2$"),
    (r"\bP_e\b", r"$P_e$"),
    (r"\bp-hat\b", r"$\\hat{p}$"),
    (r"\bl2\b", r"$\\ell_2$"),
    (r"l∞|\blinf\b", r"$\\ell_\\infty$"),
    (r"\bc0\b", r"$c_0$"),
    (r"\btop-k\b", r"top-$k$"),
    (r"\bbest p\b", r"best $p$"),
    (r"\bp of\b", r"$p$ of"),
    (r"\b(items|releases) ([nN])\b", r"\1 $\2$"),
    (r"\b([pn]) = ", r"$\1$ = "),
)
"""Words in labels, and how they are set."""
_MARKED_UP_TO = 25  # points of a line
_BAND = 2.0  # standard errors on either side
_WIDTH, _HEIGHT = 3.4, 2.9  # of one axes, in inches
_BREADTHS, _MARKER_SIZES = (3.0, 1.1), (9.0, 3.5)  # of the first and the last line, in points
_TICKED_UP_TO = 8  # values of x that each get a tick


def draw(plan: FigurePlan, rows: Sequence[Row]) -> Figure:
    """The picture of a table."""
    plan, shown = _arranged(plan, select(rows, plan.only))
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
            logarithmic = bool({"y", str(vertical), str(horizontal)} & set(plan.log))
            _panel(axes, plan, here, styles, logarithmic)
            if logarithmic:  # axes that share their scale share its ticks
                scaled = select(shown, _where(plan.rows, vertical)) if plan.share_y else here
                _logarithmic(axes, axes.yaxis, [row["value"] for row in scaled])
        named = "value" if plan.rows is None else _name(plan, plan.rows, vertical)
        line[0].set_ylabel(mathematics(plan.y_labels.get(str(vertical)) or plan.y_label or named))
    for axes, horizontal in zip(grid[0], across, strict=True):
        if plan.panels is not None:
            axes.set_title(mathematics(_name(plan, plan.panels, horizontal)), fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel(mathematics(plan.x_label or plan.x))
    _legend(figure, grid, plan, styles, width)
    return figure


def _arranged(plan: FigurePlan, rows: Sequence[Row]) -> tuple[FigurePlan, Sequence[Row]]:
    """The rows that the series select, with the names of their line and panel; each point once."""
    if not plan.series:
        return plan, rows
    points: dict[tuple[Any, ...], Row] = {}
    for one in plan.series:
        for row in select(rows, one.select):
            line, panel = one.line.format(**row), one.panel.format(**row)
            points.setdefault((panel, line, row[plan.x]), {**row, "line": line, "panel": panel})
    panelled = any(one.panel for one in plan.series)
    return replace(plan, lines="line", panels="panel" if panelled else None, series=()), list(points.values())


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


def mathematics(text: str) -> str:
    """A label with its symbols set as mathematics; one that has formulas already is left as it is."""
    if "$" in text:
        return text
    for word, formula in _MATHEMATICS:
        parts = re.split(r"(\$[^$]*\$)", text)  # what is set already is not touched again
        text = "".join(part if part.startswith("$") else re.sub(word, formula, part) for part in parts)
    return text


def line_styles(names: Sequence[str]) -> dict[str, Style]:
    """Colour, dash and marker of each line: one colour for one mechanism, one dash for one of its variants."""
    styles: dict[str, Style] = {}
    colours: dict[str, str] = {}
    for name in names:
        if name == "simulated":
            styles[name] = {"color": "black", "linestyle": "", "marker": "o", "markersize": 3.0, "zorder": 3}
            continue
        base, _, variant = name.partition(" + ")
        if "not private" in (base, variant):
            styles[name] = {"color": _GREY, "linestyle": _GREYS.get(base, ":"), "marker": ""}
            continue
        known = name.rpartition(" + ")[0]
        if name in _FIXED:
            colour, kind = _FIXED[name]
        elif known in _FIXED:  # one estimator at several sizes
            sizes = [other for other in names if other.startswith(f"{known} + ")]
            colour, kind = _FIXED[known][0], sizes.index(name)
        else:
            colour = colours.setdefault(base, COLOURS.get(base, SERIES[len(colours) % len(SERIES)]))
            kind = _VARIANTS.get(variant, sum(style["color"] == colour for style in styles.values()))
        styles[name] = {
            "color": colour,
            "linestyle": _DASHES[kind % len(_DASHES)],
            "marker": _SHAPES.get(base, _MARKERS[kind % len(_MARKERS)]),
        }
    return styles


def _panel(axes: Axes, plan: FigurePlan, rows: Sequence[Row], styles: Mapping[str, Style], logarithmic: bool) -> None:
    """The lines of one pair of axes."""
    for place, (name, style) in enumerate(styles.items()):
        line = sorted((row for row in rows if str(row[plan.lines]) == name), key=lambda row: row[plan.x])
        x, y = (
            _moved(plan, rows, [row[plan.x] for row in line], place - (len(styles) - 1) / 2),
            [r["value"] for r in line],
        )
        marked = style if len(x) <= _MARKED_UP_TO else {**style, "marker": ""}
        if line:
            after = place / max(1, len(styles) - 1)
            breadth, size = (first + (last - first) * after for first, last in (_BREADTHS, _MARKER_SIZES))
            face = style["color"] if style["linestyle"] == "" else "none"
            looks = {"linewidth": breadth, "markersize": size, "markerfacecolor": face, **marked}
            axes.plot(x, y, label=_line_name(plan, name, line), **looks)
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


def _moved(plan: FigurePlan, rows: Sequence[Row], x: Sequence[float], steps: float) -> Sequence[float]:
    """The places of a line that is moved aside by some steps, each a fifteenth of the least distance."""
    places = sorted({row[plan.x] for row in rows})
    if not plan.dodge or len(places) < 2:
        return x
    if "x" in plan.log:
        return [value * min(b / a for a, b in itertools.pairwise(places)) ** (steps / 15) for value in x]
    return [value + min(b - a for a, b in itertools.pairwise(places)) * steps / 15 for value in x]


def _line_name(plan: FigurePlan, name: str, line: Sequence[Row]) -> str:
    """What the plan calls it; a number with the name of its column."""
    return plan.names.get(name, name if isinstance(line[0][plan.lines], str) else f"{plan.lines} = {name}")


def _logarithmic(axes: Axes, axis: Axis, values: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers: 1, 2 and 5 of each decade, or the decades where there are many."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
    present = [value for value in values if value > 0]
    span = max(present) / min(present) if present else 1.0
    subs = (1.0,) if span > 300 else (1.0, 2.0, 5.0) if span > 6 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    few = axis is axes.xaxis and len(present) <= _TICKED_UP_TO
    apart = all(later / earlier >= 1.3 for earlier, later in itertools.pairwise(present))
    axis.set_major_locator(FixedLocator(present) if few and apart else LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: _plain(value))


def _plain(value: float) -> str:
    """A plain number, or a power of ten where it would be long."""
    power = round(math.log10(value)) if value > 0 else 0
    long = not -4 < power < 5 and math.isclose(value, 10.0**power)
    return f"$10^{{{power}}}$" if long else f"{value:g}"


def _legend(figure: Figure, grid: Any, plan: FigurePlan, styles: Mapping[str, Style], width: float) -> None:
    """One legend below all axes, with as many columns as fit."""
    found: dict[str, Any] = {}
    for axes in grid.flat:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    place = {plan.names.get(name, name): place for place, name in enumerate(styles)}
    ordered = sorted(found, key=lambda label: place.get(label, 0))
    longest = max(map(len, ordered))
    columns = max(1, min(len(ordered), int(width / (0.075 * longest + 0.65))))
    figure.legend(
        [found[label] for label in ordered],
        [mathematics(label) for label in ordered],
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
