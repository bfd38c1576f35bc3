"""An aggregate for readers: what was estimated and how, with what counting would say always beside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankdp.aggregation.estimates import Aggregate
from rankdp.aggregation.means import Estimate
from rankdp.aggregation.methods import Board
from rankdp.errors import Unsupported
from rankdp.report.document import Report, Table, rank_span, shown_ranks
from rankdp.report.plots import Intervals

_DIGITS = {"kemeny place": 0, "majorities": 1}  # of the scores
_NAIVE = "The naive numbers count the synthetic rankings as if they were true. Aggregating costs no privacy."
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
    board = result.board(method, level)
    name, warnings = board.leaderboard.score_name, _warnings(result, board)
    records = _records(board)
    column = {key: [record[key] for record in records] for key in records[0]}
    plot = Intervals(
        column["item"],
        column[_key(name)],
        column["low"],
        column["high"],
        name + (" (1 = best)" if name == "mean rank" else ""),
        others=column["naive"],
        legend=(f"estimate, with its {level:.0%} interval", "naive"),
    )
    promised = {} if result.release else {"guarantee": None, "rehearsal": None, "explanation": _UNKNOWN}
    return Report(
        title=title,
        records=records,
        facts=lambda: {
            "voters": result.voters,
            "left_out": result.left_out,
            "mechanisms": [
                {"mechanism": made_by.name, "items": made_by.items, "epsilon": made_by.epsilon}
                for made_by in result.mechanisms
            ],
            "method": method,
            "level": level,
            "estimator": {
                "unbiased": board.estimate.unbiased,
                "largest_bias": float(np.nanmax(board.estimate.bias)),
                "expected_error": board.estimate.error,
                "agreement": result.agreement,
            },
            "warnings": warnings,
            "items": records,
            "win_rates": _win_rates(result),
            **promised,
        },
        tables=[_table(records, name, level)],
        warnings=warnings,
        footer=[_origin(result, method), how(board.estimate), _NAIVE],
        figure=lambda: plot.figure(title),
        drawing=plot.svg(),
        release=result.release,
    )


def how(estimate: Estimate) -> str:
    """Which estimate it is, and what that means."""
    unit = "" if estimate.limits == (0.0, 1.0) else " ranks"
    times, unit = (100, " points") if not unit else (1, unit)
    error = f"expected error {times * estimate.error:.2g}{unit}"
    if estimate.unbiased:
        low, high = estimate.limits
        outside = int(np.sum((estimate.values < low) | (estimate.values > high)))
        words = f"Unbiased: the public law of the noise is undone ({error})." + (
            f" Unbiased numbers may leave {low:g} to {high:g}, which is possible, and {outside:,} do; intervals do not."
        ) * (outside > 0)
    else:
        words = (
            f"Shrunken: the noise is undone as far as so many voters are worth, so numbers are drawn to the middle, by "
            f"at most {times * float(np.nanmax(estimate.bias)):.2g}{unit}, which the intervals allow for ({error}); "
            "undoing it completely would err more."
        )
    return words


def _warnings(result: Aggregate, board: Board) -> list[str]:
    words = [] if result.release else [_UNKNOWN]
    if board.estimate.faint:
        words.append(
            "These numbers are mostly noise: with so few voters at this epsilon more than half of the differences "
            "between items is expected to be chance."
        )
    if result.left_out:
        lists = "1 list of one item is" if result.left_out == 1 else f"{result.left_out:,} lists of one item are"
        words.append(f"{lists} left out: one item has no order.")
    return [*words, *board.leaderboard.warnings]


def _origin(result: Aggregate, method: str) -> str:
    """One sentence: how many voters, what their rankings went through, what orders the items."""
    through = sorted({f"{made_by.name} at epsilon {float(made_by.epsilon):g}" for made_by in result.mechanisms})
    shown = ", ".join(through[:4]) + (f" and {len(through) - 4} more" if len(through) > 4 else "")
    return f"{result.voters:,} privatized rankings ({shown}); items ordered by {method}."


def _key(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_")


def _records(board: Board) -> list[dict[str, Any]]:
    """One an item, best first: its place, score, interval and ranks, and what counting would say."""
    name = board.leaderboard.score_name
    rows = zip(board.leaderboard.rows(), board.naive.tolist(), board.naive_places.tolist(), strict=True)
    return [
        {
            "item": row["item"],
            "place": place,
            _key(name): row[name],
            **{key: row[key] for key in ("low", "high", "rank", "rank_low", "rank_high")},
            "naive": naive,
            "naive_place": naive_place,
        }
        for place, (row, naive, naive_place) in enumerate(rows, 1)
    ]


def _win_rates(result: Aggregate) -> dict[str, Any] | None:
    """None where the rates of rankings this long are not worth counting."""
    try:
        rates = result.win_rates
    except Unsupported:
        return None
    known = {name: getattr(rates, name) for name in ("values", "standard_errors", "bias", "naive")}
    return {"items": result.items, "unbiased": rates.unbiased, **known}


def _table(records: list[dict[str, Any]], name: str, level: float) -> Table:
    heads = ["rank", "item", name, f"{level:.0%} interval", "rank interval", f"naive {name}", "naive place"]
    rows = [
        [
            rank,
            record["item"],
            _number(record[_key(name)], name),
            f"{_number(record['low'], name)} … {_number(record['high'], name)}",
            rank_span(record["rank_low"], record["rank_high"]),
            _number(record["naive"], name),
            str(record["naive_place"]),
        ]
        for rank, record in zip(shown_ranks(record["rank"] for record in records), records, strict=True)
    ]
    return Table(heads, rows, texts=2)


def _number(value: float, name: str) -> str:
    return f"{value:.{_DIGITS.get(name, 2)}f}" if math.isfinite(value) else "–"
