"""Pictures of the attacks for people outside the field."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from rankdp.attack.inference import Success
from rankdp.data.atomic import known_ending, write_whole
from rankdp.report import page as pages
from rankdp.report.plots import COLOURS, SERIES, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMATS = (".png", ".html")


def check_ending(path: str | PathLike[str]) -> str:
    """The ending of a picture or page."""
    return known_ending(path, _FORMATS)


def write_picture(draw: Callable[[Axes], None], words: str, path: str | PathLike[str], title: str) -> None:
    """What ``draw`` draws, as a picture or as a page with the words below."""
    kind = "png" if check_ending(path) == ".png" else "svg"
    figure, (axes,) = new_figure(1, width=7.5, height=5)
    draw(axes)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    content = drawn.getvalue()
    if kind == "svg":
        text = content.decode()
        content = pages.page(title, text[text.index("<svg") :], pages.paragraph(words)).encode()
    write_whole(path, content)


def draw_success(curves: Mapping[str, Sequence[Success]]) -> Callable[[Axes], None]:
    """The attacker's success against the number of releases, a line with its interval for each mechanism."""

    def draw(axes: Axes) -> None:
        for place, (name, curve) in enumerate(curves.items()):
            colour = COLOURS.get(name, SERIES[place])
            count = [one.releases for one in curve]
            axes.plot(count, [one.probability for one in curve], "-o", color=colour, markersize=4, label=name)
            axes.fill_between(
                count, [one.low for one in curve], [one.high for one in curve], color=colour, alpha=0.2, linewidth=0
            )
            bounds = [1 - one.error_bound for one in curve]
            if not any(math.isnan(bound) for bound in bounds):
                axes.plot(count, bounds, ":", color=colour, label=f"{name}: at most, by the binomial tail")
        axes.set(
            xlabel="releases of the same ranking",
            ylabel="the attacker finds the whole ranking",
            ylim=(-0.02, 1.02),
            title="Publishing the same ranking again and again",
        )
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(color="0.93")
        axes.legend(frameon=False)

    return draw
