"""A leaderboard for readers: CSV, JSON, a self-contained HTML page with an interval plot, or a PNG.

Whatever the form, what is promised stands with it.
"""

from __future__ import annotations

import csv
import html
import io
import json
import math
from os import PathLike

from rankdp.data.atomic import known_ending, write_whole
from rankdp.privacy.release import Release
from rankdp.publish.leaderboard import Leaderboard
from rankdp.report import page as pages

_FORMATS = (".csv", ".json", ".html", ".png")
_SHOWN = 60  # rows of a picture; a table shows all


def write_board(release: Release[Leaderboard], path: str | PathLike[str], title: str = "Leaderboard") -> None:
    """Write the leaderboard in the format that the ending says; a CSV gets its guarantee in PATH.release.json."""
    ending = check_ending(path)
    if ending == ".csv":
        write_whole(path, to_csv(release.value).encode(), release.to_dict())
    elif ending == ".json":
        write_whole(path, (to_json(release) + "\n").encode())
    elif ending == ".html":
        write_whole(path, to_html(release, title).encode())
    else:
        write_whole(path, to_png(release, title))


def check_ending(path: str | PathLike[str]) -> str:
    """The ending of a leaderboard's file, one of .csv, .json, .html and .png."""
    return known_ending(path, _FORMATS)


def to_csv(board: Leaderboard) -> str:
    """One line an item, best first."""
    rows = board.rows()
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _plain(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def to_json(release: Release[Leaderboard]) -> str:
    """Leaderboard, guarantee and provenance; bounds that are infinite are null."""
    board = release.value
    rows = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in board.rows()
    ]
    return json.dumps(
        {"leaderboard": rows, "level": board.level, "warnings": board.warnings, **release.to_dict()}, indent=2
    )


def to_html(release: Release[Leaderboard], title: str) -> str:
    """One page with the plot, the table, the warnings and the guarantee; it loads nothing."""
    board, origin = release.value, release.provenance
    heads = ["", "item", board.score_name, f"{board.level:.0%} interval", "rank", "rank interval"]
    if board.top is not None:
        heads.append(f"in the top {board.top}")
    lines = []
    for place, row in enumerate(board.rows(), 1):
        line = [
            str(place),
            row["item"],
            _number(row[board.score_name]),
            f"{_number(row['low'])} … {_number(row['high'])}",
            str(row["rank"]),
            f"{row['rank_low']} – {row['rank_high']}",
        ]
        if board.top is not None:
            line.append(f"{'yes' if row['in_top'] else 'no'} ({row['top_probability']:.0%})")
        lines.append(line)
    return pages.page(
        title,
        _svg(board),
        *(pages.paragraph(warning, "warning") for warning in board.warnings),
        pages.table(heads, lines, texts=2),
        footer=[
            f"What is promised: {release.explain()}",
            f"rankdp {origin.version}, {origin.mechanism}, {origin.when}",
        ],
    )


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _svg(board: Leaderboard) -> str:
    """Dots and interval bars, best on top."""
    shown = min(len(board.items), _SHOWN)
    finite = [float(v) for v in (*board.low[:shown], *board.high[:shown], *board.scores[:shown]) if math.isfinite(v)]
    least, most = min(finite), max(finite)
    span = (most - least) or 1.0
    left, width, step = 220, 560, 20

    def x(value: float) -> float:
        return left + width * (min(max(value, least), most) - least) / span

    parts = []
    for tick in range(5):
        value = least + span * tick / 4
        parts.append(f"<line x1='{x(value):.1f}' x2='{x(value):.1f}' y1='8' y2='{step * shown + 12}' class='grid'/>")
        parts.append(f"<text x='{x(value):.1f}' y='{step * shown + 28}' class='tick'>{_number(value)}</text>")
    for place in range(shown):
        y = step * place + 20
        name = html.escape(board.items[place][:30])
        parts.append(f"<text x='{left - 12}' y='{y + 4}' class='name'>{name}</text>")
        parts.append(
            f"<line x1='{x(board.low[place]):.1f}' x2='{x(board.high[place]):.1f}' y1='{y}' y2='{y}' class='bar'/>"
        )
        parts.append(f"<circle cx='{x(board.scores[place]):.1f}' cy='{y}' r='4'/>")
    height = step * shown + 40
    label = f"{board.score_name} of each item with its {board.level:.0%} interval"
    return f"<svg viewBox='0 0 {left + width + 30} {height}' role='img' aria-label='{label}'>{''.join(parts)}</svg>"


def to_png(release: Release[Leaderboard], title: str) -> bytes:
    """The same plot as a picture, with the guarantee below."""
    import textwrap

    from rankdp.report.plots import SERIES, new_figure

    board = release.value
    shown = min(len(board.items), _SHOWN)
    words = textwrap.fill(release.explain(), 110)
    figure, (axes,) = new_figure(1, width=9, height=1.6 + 0.26 * shown + 0.16 * words.count("\n"))
    places = range(shown)
    axes.hlines(places, board.low[:shown], board.high[:shown], color=SERIES[5], linewidth=3)
    axes.plot(board.scores[:shown], places, "o", color=SERIES[0])
    axes.set_yticks(places, [_unformatted(item) for item in board.items[:shown]])
    axes.invert_yaxis()
    axes.set(xlabel=f"{board.score_name}, with its {board.level:.0%} interval", title=_unformatted(title))
    axes.grid(axis="x", color="0.9")
    figure.supxlabel(words, fontsize=8, color="0.3")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150)
    return picture.getvalue()


def _unformatted(text: str) -> str:
    """A text that matplotlib shows as it is: a dollar would start a formula."""
    return text.replace("$", r"\$")
