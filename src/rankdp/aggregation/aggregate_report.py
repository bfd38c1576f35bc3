"""An aggregate for readers; the naive numbers always stand beside the unbiased ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdp.aggregation.estimates import Aggregate
from rankdp.errors import Unsupported
from rankdp.report.document import Report, Table
from rankdp.report.plots import Intervals

_UNKNOWN = (
    "Nothing is promised here: no release file states how the rankings were protected, only the caller says what made "
    "them."
)


def aggregate_report(result: Aggregate, method: str = "borda", level: float = 0.95, title: str = "Aggregate") -> Report:
    """The report of an aggregate, with what is promised about the rankings that it was made from.

    Parameters
    ----------
    result
        What ``rankdp.aggregate`` or ``rankdp.aggregate_file`` returned.
    method
        What orders the items: "borda", "copeland", "bradley-terry" or "kemeny".
    level
        The confidence of the intervals.
    title
        The heading of the page or picture.
    """
    records = _records(result, method, level)
    columns = {name: [record[name] for record in records] for name in records[0]}
    plot = Intervals(
        columns["item"],
        columns["mean_rank"],
        columns["low"],
        columns["high"],
        "mean rank (1 = best)",
        others=columns["naive_mean_rank"],
        legend=(f"unbiased, with its {level:.0%} interval", "naive"),
    )
    promised = {} if result.release else {"guarantee": None, "rehearsal": None, "explanation": _UNKNOWN}
    return Report(
        title=title,
        records=records,
        facts=lambda: {
            "voters": result.voters,
            "mechanisms": [
                {"mechanism": made_by.name, "items": made_by.items, "epsilon": made_by.epsilon}
                for made_by in result.mechanisms
            ],
            "method": method,
            "level": level,
            "items": records,
            "win_rates": _win_rates(result),
            **promised,
        },
        tables=[_table(records, level)],
        warnings=[] if result.release else [_UNKNOWN],
        footer=[
            _origin(result, method),
            "Unbiased: the public law of the noise is undone. The naive numbers count the synthetic rankings as if "
            "they were true. Aggregating costs no privacy.",
        ],
        figure=lambda: plot.figure(title),
        drawing=plot.svg(),
        release=result.release,
    )


def _origin(result: Aggregate, method: str) -> str:
    """One sentence: how many voters, what their rankings went through, what orders the items."""
    through = sorted({f"{made_by.name} at epsilon {float(made_by.epsilon):g}" for made_by in result.mechanisms})
    shown = ", ".join(through[:4]) + (f" and {len(through) - 4} more" if len(through) > 4 else "")
    return f"{result.voters:,} privatized rankings ({shown}); items ordered by {method}."


def _records(result: Aggregate, method: str, level: float) -> list[dict[str, Any]]:
    """One an item, best first: its place and score, and its mean rank with interval and naive value."""
    scores = result.scores(method)
    ranks = result.mean_ranks
    low, high = ranks.interval(level)
    naive_place = {item: place for place, item in enumerate(np.argsort(ranks.naive, kind="stable").tolist(), 1)}
    return [
        {
            "item": result.items[item],
            "place": place,
            "score": float(scores[item]),
            "mean_rank": float(ranks.values[item]),
            "low": float(low[item]),
            "high": float(high[item]),
            "naive_mean_rank": float(ranks.naive[item]),
            "naive_place": naive_place[item],
        }
        for place, item in enumerate(np.argsort(-scores, kind="stable").tolist(), 1)
    ]


def _win_rates(result: Aggregate) -> dict[str, Any] | None:
    """None where the noise on pairs cannot be undone for rankings this long."""
    try:
        rates = result.win_rates
    except Unsupported:
        return None
    known = {name: getattr(rates, name) for name in ("values", "standard_errors", "naive")}
    return {"items": result.items, **known}


def _table(records: list[dict[str, Any]], level: float) -> Table:
    heads = ["", "item", "mean rank", f"{level:.0%} interval", "naive mean rank", "naive place"]
    rows = [
        [
            str(record["place"]),
            record["item"],
            f"{record['mean_rank']:.2f}",
            f"{record['low']:.2f} … {record['high']:.2f}",
            f"{record['naive_mean_rank']:.2f}",
            str(record["naive_place"]),
        ]
        for record in records
    ]
    return Table(heads, rows, texts=2)
