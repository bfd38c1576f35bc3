"""An aggregate for readers: CSV, JSON, a page or a picture; the naive numbers always stand beside the unbiased ones."""

from __future__ import annotations

import csv
import io
import json
import math
from os import PathLike
from typing import Any

import numpy as np

from rankdp.aggregation.estimates import Aggregate
from rankdp.data.atomic import known_ending, write_whole
from rankdp.report import page as pages
from rankdp.report.plots import SERIES, new_figure

_FORMATS = (".csv", ".json", ".html", ".png")
_SHOWN = 60


def check_ending(path: str | PathLike[str]) -> str:
    """The ending of an aggregate's file."""
    return known_ending(path, _FORMATS)


def rows_of(found: Aggregate, method: str = "borda", level: float = 0.95) -> list[dict[str, Any]]:
    """One record an item, best first: its place and score, and its mean rank with interval and naive value."""
    scores = found.scores(method)
    ranks = found.mean_ranks
    low, high = ranks.interval(level)
    naive_order = {place: at for at, place in enumerate(np.argsort(ranks.naive, kind="stable").tolist(), 1)}
    return [
        {
            "item": found.items[place],
            "place": at,
            "score": float(scores[place]),
            "mean_rank": float(ranks.values[place]),
            "low": float(low[place]),
            "high": float(high[place]),
            "naive_mean_rank": float(ranks.naive[place]),
            "naive_place": naive_order[place],
        }
        for at, place in enumerate(np.argsort(-scores, kind="stable").tolist(), 1)
    ]


def to_dict(found: Aggregate, method: str = "borda", level: float = 0.95) -> dict[str, Any]:
    """Everything as plain data; numbers that are not known are null."""
    rates = found.win_rates
    return {
        "voters": found.voters,
        "mechanisms": [
            {"mechanism": one.name, "items": one.items, "epsilon": str(one.epsilon)} for one in found.mechanisms
        ],
        "method": method,
        "level": level,
        "items": rows_of(found, method, level),
        "win_rates": {
            "items": list(found.items),
            "values": _plain(rates.values),
            "standard_errors": _plain(rates.standard_errors),
            "naive": _plain(rates.naive),
        },
    }


def _plain(table: Any) -> list[list[float | None]]:
    return [[value if math.isfinite(value) else None for value in row] for row in table.tolist()]


def write_aggregate(
    found: Aggregate, path: str | PathLike[str], method: str = "borda", level: float = 0.95, title: str = "Aggregate"
) -> None:
    """Write the aggregate in the format that the ending says."""
    ending = check_ending(path)
    if ending == ".csv":
        rows, text = rows_of(found, method, level), io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        content = text.getvalue().encode()
    elif ending == ".json":
        content = (json.dumps(to_dict(found, method, level), indent=2) + "\n").encode()
    elif ending == ".html":
        content = _page(found, method, level, title).encode()
    else:
        content = _picture(found, method, level, title, "png")
    write_whole(path, content)


def table_of(found: Aggregate, method: str, level: float) -> tuple[list[str], list[list[str]]]:
    """Heads and rows for people."""
    heads = ["", "item", "mean rank", f"{level:.0%} interval", "naive mean rank", "naive place"]
    return heads, [
        [
            str(row["place"]),
            row["item"],
            f"{row['mean_rank']:.2f}",
            f"{row['low']:.2f} … {row['high']:.2f}",
            f"{row['naive_mean_rank']:.2f}",
            str(row["naive_place"]),
        ]
        for row in rows_of(found, method, level)
    ]


def origin(found: Aggregate, method: str) -> str:
    """One sentence: how many voters, what their rankings went through, what orders the items."""
    through = sorted({f"{one.name} at epsilon {float(one.epsilon):g}" for one in found.mechanisms})
    shown = ", ".join(through[:4]) + (f" and {len(through) - 4} more" if len(through) > 4 else "")
    return f"{found.voters:,} privatized rankings ({shown}); items ordered by {method}."


def _page(found: Aggregate, method: str, level: float, title: str) -> str:
    drawing = _picture(found, method, level, title, "svg").decode()
    return pages.page(
        title,
        drawing[drawing.index("<svg") :],
        pages.table(*table_of(found, method, level), texts=2),
        footer=[
            origin(found, method),
            "Unbiased: the public law of the noise is undone. The naive numbers count the synthetic rankings as if "
            "they were true. Aggregating costs no privacy.",
        ],
    )


def _picture(found: Aggregate, method: str, level: float, title: str, kind: str) -> bytes:
    """Mean ranks with intervals, best on top; hollow marks for the naive ones."""
    rows = rows_of(found, method, level)[:_SHOWN]
    figure, (axes,) = new_figure(1, width=9, height=1.5 + 0.3 * len(rows))
    places = range(len(rows))
    axes.hlines(
        places, [row["low"] for row in rows], [row["high"] for row in rows], color=SERIES[5], linewidth=3, zorder=1
    )
    axes.plot([row["mean_rank"] for row in rows], places, "o", color=SERIES[0], label=f"unbiased, {level:.0%} interval")
    axes.plot([row["naive_mean_rank"] for row in rows], places, "o", mfc="none", color=SERIES[1], label="naive")
    axes.set_yticks(places, [row["item"].replace("$", r"\$") for row in rows])
    axes.invert_yaxis()
    axes.set(xlabel="mean rank (1 = best)", title=title.replace("$", r"\$"))
    axes.grid(axis="x", color="0.93")
    axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=150)
    return picture.getvalue()
