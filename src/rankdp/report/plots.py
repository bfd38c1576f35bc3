"""Figures. One colour for one mechanism everywhere, chosen to stay apart for colour-blind readers (Okabe and Ito)."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankdp.errors import Unsupported
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METHODS = {"bradley-terry": "#0072B2", "copeland": "#D55E00"}


class _Colours(Mapping[str, str]):
    """By name what mechanisms and noises say of themselves, read when it is asked for, and the colours of methods."""

    def _all(self) -> dict[str, str]:
        noises = {name: kind.colour for name, kind in SCORE_MECHANISMS.items()}
        return {**noises, **{name: kind.colour for name, kind in MECHANISMS.items()}, **_METHODS}

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

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
    """The figure as "png", "svg" or "pdf", with paragraphs of small print below it.

    Parameters
    ----------
    figure
        What is drawn; it grows by the small print.
    kind
        The format.
    words
        The paragraphs.
    """
    if words:
        width, height = figure.get_size_inches()
        print_below = "\n".join(textwrap.fill(paragraph, int(16 * width)) for paragraph in words)
        figure.set_size_inches(width, height + 0.16 * (1 + print_below.count("\n")))
        figure.supxlabel(unformatted(print_below), x=0.01, ha="left", fontsize=8, color="0.3")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    return drawn.getvalue()


def unformatted(text: str) -> str:
    """A text that matplotlib shows as it is: a dollar would start a formula."""
    return text.replace("$", r"\$")
