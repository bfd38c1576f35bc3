"""An aggregate for readers: what was estimated and how, and what plain counting would say."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdp.aggregation.estimates import Aggregate
from rankdp.aggregation.means import Estimate
from rankdp.aggregation.methods import Board
from rankdp.errors import Unsupported
from rankdp.privacy.guarantee import WHOLE_RANKING
from rankdp.report.document import Report
from rankdp.report.plots import intervals_figure
from rankdp.report.results import Table, digits_for, shown

_FAR = 1000  # times as many answers: nobody will have them
_NAIVE = "Counting the synthetic rankings as if they were true"
_RANGES = "Each interval holds the true value with a probability of {level:.0%}, and each range of ranks the true rank."
_MEANING = {"mean rank": f"A mean rank is an item's average place on the true rankings; 1 is the best. {_RANGES}"}
_UNKNOWN = (
    "Nothing is promised here: no release file states how the rankings were protected, only the caller says what made "
    "them."
)


def aggregate_report(
    result: Aggregate,
    method: str = "borda",
    level: float = 0.95,
    title: str = "Aggregate",
    board: Board | None = None,
) -> Report:
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
    board
        ``result.board(method, level)``, where the caller has it already.
    """
    board = board or result.board(method, level)
    name, warnings = board.leaderboard.score_name, _warnings(result, board)
    records, headline = _records(board), board.leaderboard.headline()
    results = board.leaderboard.results()
    promised = {} if result.release else {"guarantee": None, "rehearsal": None, "explanation": _UNKNOWN}
    return Report(
        title=title,
        records=records,
        facts=lambda: {
            "headline": headline,
            "voters": result.voters,
            "left_out": result.left_out,
            "mechanisms": [
                {"mechanism": made_by.name, "items": made_by.items, "epsilon": made_by.epsilon}
                for made_by in result.mechanisms
            ],
            "method": method,
            "level": level,
            "debiased": {
                "completely": board.estimate.unbiased,
                "largest_bias": float(np.nanmax(board.estimate.bias)),
            },
            "warnings": warnings,
            "items": records,
            "win_rates": _win_rates(result),
            **promised,
        },
        headline=headline,
        results=results,
        tables=[*_listed(result, board, level), _naive(board)],
        warnings=warnings,
        sure=[_MEANING.get(name, _RANGES).format(level=level), *_unlisted(result), how(board.estimate)],
        computed=[_origin(result, method)],
        figure=lambda: intervals_figure([(title, results)]),
        release=result.release,
    )


def how(estimate: Estimate) -> str:
    """Which estimate it is, and what that means."""
    words = (
        "The public law of the noise is taken out of the numbers; with few answers they are pulled toward the middle."
    )
    if estimate.unbiased:
        return words
    times, unit = (100, "points") if estimate.limits == (0.0, 1.0) else (1, "ranks")
    return (
        f"{words} It cannot be taken out completely: a bias of at most {times * float(np.nanmax(estimate.bias)):.2g} "
        f"{unit} is left, by which intervals are longer."
    )


def _warnings(result: Aggregate, board: Board) -> list[str]:
    words = [] if result.release else [_UNKNOWN]
    if result.left_out:
        lists = "1 list of one item is" if result.left_out == 1 else f"{result.left_out:,} lists of one item are"
        words.append(f"{lists} left out: one item has no order.")
    if board.times is not None and board.times > 1:
        known = answers_needed(result, board)
        needed = f"about {known:,}" if known else "far more"
        words.append(f"The first two items would need {needed} answers to be told apart.")
    return [*words, *board.leaderboard.warnings]


def answers_needed(result: Aggregate, board: Board) -> int | None:
    """How many answers would tell the first two items apart, where more are needed and somebody could have them."""
    if board.times is None or not 1 < board.times < _FAR:
        return None
    return int(round(board.times * result.voters, -2))


def _origin(result: Aggregate, method: str) -> str:
    """One sentence: how many voters, what their rankings went through, what orders the items."""
    promise = None if result.release is None else result.release.guarantee
    whole = promise is not None and promise.protects == WHOLE_RANKING
    epsilons = {(one.name, float(one.local_epsilon() if whole else one.epsilon)) for one in result.mechanisms}
    through = sorted(f"{name} at epsilon {epsilon:.4g}" for name, epsilon in epsilons)
    shown = ", ".join(through[:4]) + (f" and {len(through) - 4} more" if len(through) > 4 else "")
    return f"{result.voters:,} privatized rankings ({shown}); items ordered by {method}. Aggregating costs no privacy."


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


def _list_length(result: Aggregate) -> int | None:
    """The length of the lists that all voters released, None for rankings."""
    (kind, *others) = {(made_by.items, made_by.lists) for made_by in result.mechanisms}
    return None if others else kind[1]


def _unlisted(result: Aggregate) -> list[str]:
    if (length := _list_length(result)) is None:
        return []
    rank = (length + 1 + len(result.items)) / 2
    return [f"Items that a list leaves out share the average of the places that are left, {rank:g}."]


def _listed(result: Aggregate, board: Board, level: float) -> list[Table]:
    """Of lists of the first items: how many voters list each item."""
    if (length := _list_length(result)) is None:
        return []
    share = result.in_top(length)
    low, high = share.interval(level)
    cells = []
    for name in board.leaderboard.items:
        item = result.items.index(name)
        cells.append([name, f"{share.values[item]:.1%}", f"{low[item]:.1%} to {high[item]:.1%}"])
    heads = ["item", "share of voters", f"{level:.0%} interval"]
    return [Table(heads, cells, title=f"Among the first {length}")]


def _naive(board: Board) -> Table:
    """What plain counting would say."""
    naive, digits = board.naive.tolist(), digits_for(board.naive.tolist())
    rows = zip(board.leaderboard.items, naive, board.naive_places.tolist(), strict=True)
    cells = [[name, shown(value, digits), str(place)] for name, value, place in rows]
    return Table(["item", f"naive {board.leaderboard.score_name}", "naive place"], cells, title=_NAIVE)
