"""Figures. One colour for one mechanism everywhere, chosen to stay apart for colour-blind readers (Okabe and Ito).

Matplotlib draws the pictures. The bars on a page come from `rankdp.report.results` and need no library.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.tiers import read_name
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS
from rankdp.report.results import ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DESCRIBED = {"png": "Description", "svg": "Description", "pdf": "Subject"}
_SHOWN, _LONGEST_NAME = 60, 30  # items of a plot of intervals, and characters of their names
_TITLE = 50  # letters of a line of a title, which may have three
_METHODS = {"bradley-terry": "#0072B2", "wins": "#D55E00", "copeland": "#CC79A7"}
_ONE = "#0072B2"  # a plan for an election has one curve, that of its rule
_METHODS |= dict.fromkeys(("plurality", "borda", "irv", "stv", "kemeny", "ranked-pairs", "schulze", "condorcet"), _ONE)


class _Colours(Mapping[str, str]):
    """Colours by name: of mechanisms and noises, which are loaded on demand, and of methods."""

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
    """A function that makes a figure with one pair of axes, on which ``draw`` draws."""

    def drawn() -> Figure:
        figure, (axes,) = new_figure(1, width, height)
        draw(axes)
        return figure

    return drawn


def new_grid(rows: int, columns: int, width: float, height: float, share_y: bool = False) -> tuple[Figure, Any]:
    """A figure that needs no screen, with rows of axes; with ``share_y`` each row shares a scale."""
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
        raise Unsupported("plots need matplotlib: pip install 'rankdp[plots]'") from None


def picture(figure: Figure, kind: str, words: Sequence[str] = (), description: str = "") -> bytes:
    """The figure as "png", "svg" or "pdf", with paragraphs of small print below it.

    Parameters
    ----------
    figure, kind
        The figure and its format.
    words
        The paragraphs.
    description
        The result in a sentence, stored in the file's metadata.
    """
    from matplotlib.text import Text

    texts: Any = figure.findobj(Text)
    fonts, complete = _fonts_for("".join([*(text.get_text() for text in texts), *words]))
    if words:
        boxes = (
            [] if complete else ["Characters that no installed font has are drawn as boxes; a page (.html) has them."]
        )
        width, height = figure.get_size_inches()
        print_below = "\n".join(textwrap.fill(paragraph, int(16 * width)) for paragraph in [*words, *boxes])
        figure.set_size_inches(width, height + 0.16 * (1 + print_below.count("\n")))
        texts.append(figure.supxlabel(unformatted(print_below), x=0.01, ha="left", fontsize=8, color="0.3"))
    for text in texts if fonts else ():
        text.set_fontfamily(["sans-serif", *fonts])
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the box that is drawn says enough
        figure.savefig(drawn, format=kind, dpi=150, metadata={_DESCRIBED[kind]: description} if description else None)
    return drawn.getvalue()


def _fonts_for(text: str) -> tuple[list[str], bool]:
    """Installed fonts with characters that the default one lacks, and whether all characters are covered."""
    from matplotlib.font_manager import FontProperties, findfont, fontManager
    from matplotlib.ft2font import FT2Font

    missing = {ord(letter) for letter in text if letter.isprintable()}
    missing -= FT2Font(findfont(FontProperties())).get_charmap().keys()
    found: list[str] = []
    for path, family in {font.fname: font.name for font in fontManager.ttflist if font.style == "normal"}.items():
        if missing and not family.startswith("Last Resort"):  # whose glyphs are boxes
            with suppress(RuntimeError, OSError):  # a font that cannot be opened is skipped
                font = FT2Font(path)
                if font.scalable and (has := missing & font.get_charmap().keys()):
                    missing -= has
                    found.append(family)
    return list(dict.fromkeys(found)), not missing


def unformatted(text: str) -> str:
    """A text that matplotlib shows as it is, although a dollar sign starts a formula."""
    return text.replace("$", r"\$")


def intervals_figure(several: Sequence[tuple[str, ResultTable]]) -> Figure:
    """A dot and an interval for each item, one plot per result with its title; together they show about 60 items."""
    most = max(5, _SHOWN // len(several))
    shown = [min(len(table.rows), most) for _, table in several]
    figure, grid = new_grid(len(several), 1, 9, sum(1.5 + 0.28 * rows for rows in shown))
    for (title, table), axes, rows in zip(several, grid[:, 0], shown, strict=True):
        _draw_intervals(table, axes, title, rows)
    return figure


def _draw_intervals(table: ResultTable, axes: Axes, title: str, shown: int) -> None:
    """The first rows on axes of a figure; an interval without an end reaches to the edge."""
    rows, places = table.rows[:shown], range(shown)
    label = f"{table.measure}, with its {table.level:.0%} interval" if table.known and not table.span else table.measure
    label += f" (the first {shown} of {len(table.rows)})" if len(table.rows) > shown else ""
    least, most = table.shown_span
    ends = [[min(max(end, least), most) for end in (row.low, row.high)] for row in rows]
    axes.hlines(places, *zip(*ends, strict=True), color=SERIES[5], linewidth=3)
    axes.plot([row.estimate for row in rows], places, "o", color=SERIES[0])
    if table.line is not None:
        axes.axvline(table.line, color=SERIES[1], linestyle="--")
    axes.set_yticks(places, [unformatted(_cut(row.name)) for row in rows])
    axes.set_ylim(shown - 0.4, -0.6)
    axes.set(xlabel=unformatted(label), title=unformatted(textwrap.fill(_cut(title, 3 * _TITLE), _TITLE)))
    axes.grid(axis="x", color="0.93")


def _cut(name: str, longest: int = _LONGEST_NAME) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
