"""A leaderboard for readers: table, interval plot, warnings, and what is promised."""

from __future__ import annotations

import math
from dataclasses import asdict
from os import PathLike
from typing import Any

from rankdp.privacy.exact import shown
from rankdp.privacy.guarantee import OUTCOME, Guarantee
from rankdp.privacy.release import Release
from rankdp.publish.categories import Boards
from rankdp.publish.leaderboard import Leaderboard
from rankdp.report.document import Report, Table, rank_span
from rankdp.report.plots import win_rate_map

_GRID = 12  # items in the table of who beats whom


def board_report(release: Release[Leaderboard], title: str = "Leaderboard") -> Report:
    """The report of a published leaderboard.

    Parameters
    ----------
    release
        What ``rankdp.rank`` returned.
    title
        The heading of the page or picture.
    """
    board = release.value
    return Report(
        title=title,
        records=board.rows(),
        facts=lambda: _facts(board),
        tables=_tables(board),
        words=_meaning(board),
        warnings=board.warnings,
        figure=lambda: board.plot(title),
        drawing=board.intervals().svg() + _win_rates(board, release.guarantee),
        release=release,
    )


def boards_report(release: Release[Boards], title: str = "Leaderboards") -> Report:
    """The report of leaderboards by category: one page, one CSV file, one guarantee.

    Parameters
    ----------
    release
        What ``rankdp.rank_by`` returned.
    title
        The heading of the page or picture.
    """
    boards = release.value.boards
    records = release.value.rows()
    own, everywhere = release.value.epsilons, _shared([board.warnings for board in boards.values()])
    parts = [
        Report(
            title=name,
            records=board.rows(),
            facts=dict,
            tables=_tables(board),
            warnings=[words for words in board.warnings if words not in everywhere],
            drawing=board.intervals().svg() + _win_rates(board, release.guarantee),
        )
        for name, board in boards.items()
    ]
    level = next(iter(boards.values()))
    shares = ", ".join(f"{name} {shown(epsilon)}" for name, epsilon in own.items())
    if len(set(own.values())) == 1:
        shares = shown(next(iter(own.values())))
    return Report(
        title=title,
        records=records,
        facts=lambda: {
            "by": release.value.by,
            "boards": {name: {"epsilon": own[name], **_facts(board)} for name, board in boards.items()},
        },
        words=[
            *_meaning(level),
            f"One board for each category in {release.value.by!r}. Epsilon of each board: {shares}.",
        ],
        warnings=everywhere,
        figure=lambda: release.value.plot(title),
        release=release,
        parts=parts,
    )


def _shared(warnings: list[tuple[str, ...]]) -> list[str]:
    """What every board warns of: it is said once."""
    return [words for words in warnings[0] if all(words in others for others in warnings)]


def _facts(board: Leaderboard) -> dict[str, Any]:
    return {
        "leaderboard": board.rows(),
        "level": board.level,
        "warnings": board.warnings,
        **({"wins_over": board.table} if board.table is not None else {}),
        **({"effects": [asdict(effect) for effect in board.effects]} if board.effects else {}),
    }


def write_board(
    release: Release[Leaderboard] | Release[Boards], path: str | PathLike[str], title: str = "Leaderboard"
) -> None:
    """Write a published leaderboard, with what is promised about it, in the format that the ending says.

    Parameters
    ----------
    release, title
        As in ``board_report`` or ``boards_report``.
    path
        A file that ends with .csv, .json, .html, .png, .svg or .pdf; a CSV gets its guarantee in PATH.release.json.
    """
    report: Any = boards_report if isinstance(release.value, Boards) else board_report
    report(release, title).write(path)


def _tables(board: Leaderboard) -> list[Table]:
    known = board.best_probability is not None
    heads = ["rank", "item", board.score_name, *([f"{board.level:.0%} interval"] if known else [])]
    if board.top is not None:
        heads.append(f"in the top {board.top}")
    rows = []
    for record in board.rows():
        span = rank_span(record["rank_low"], record["rank_high"]) if known else str(record["rank"])
        row = [span, record["item"], _number(record[board.score_name])]
        if known:
            row.append(f"{_number(record['low'])} … {_number(record['high'])}")
        if board.top is not None:
            chance = f" ({record['top_probability']:.0%})" if known else ""
            row.append(f"{'yes' if record['in_top'] else 'no'}{chance}")
        rows.append(row)
    return [Table(heads, rows, texts=2), *_beaten(board), *([_effects(board)] if board.effects else [])]


def _beaten(board: Leaderboard) -> list[Table]:
    """Who beats whom: the released table of the first items."""
    if board.table is None:
        return []
    names, shown = board.items[:_GRID], board.table[:_GRID, :_GRID].tolist()
    rows = [
        [name, *("" if at == column else f"{wins:.0f}" for column, wins in enumerate(row))]
        for at, (name, row) in enumerate(zip(names, shown, strict=True))
    ]
    return [
        Table(["wins over", *names], rows, title="Who beats whom: wins of the row's item over the column's, with noise")
    ]


def _win_rates(board: Leaderboard, promised: Guarantee | None) -> str:
    """The map of win rates where who was compared with whom is public; a rehearsal has no guarantee to say so."""
    if board.score_name != "score" or promised is None or promised.protects != OUTCOME:
        return ""
    return win_rate_map(board.items, board.scores.tolist())


def _meaning(board: Leaderboard) -> list[str]:
    """What a score and what an interval says, a line each."""
    scores = {
        "score": "A score is a log-strength: an item with 1 more than another wins 73% of their comparisons.",
        "majorities": "A score is how many others the item beats more often than it loses to them, by noisy counts.",
        "elo": "A score is on the chess players' scale: 400 more than another wins 91% of their comparisons.",
    }
    counted = f"A score is the item's number of {board.score_name} in these votes, with noise."
    return [
        scores.get(board.score_name, counted),
        *(
            [
                f"With a probability of {board.level:.0%} an interval holds the true score, and the true rank lies in "
                "the range shown."
            ]
            if board.best_probability is not None
            else []
        ),
    ]


def _effects(board: Leaderboard) -> Table:
    heads = ["covariate", "at its bound", "adds to the log-odds", f"{board.level:.0%} interval"]
    rows = [
        [
            effect.covariate,
            f"{effect.bound:g}",
            _number(effect.effect),
            f"{_number(effect.low)} … {_number(effect.high)}",
        ]
        for effect in board.effects
    ]
    return Table(heads, rows, texts=1, title="Covariates")


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{round(value, 2) + 0.0:.2f}"  # never -0.00
