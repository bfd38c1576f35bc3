"""A leaderboard for readers: table, interval plot, warnings, and what is promised."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from typing import Any

from rankdp.privacy.exact import shown
from rankdp.privacy.release import Release
from rankdp.publish.categories import Boards
from rankdp.publish.leaderboard import LIMITS, Leaderboard
from rankdp.report.document import Report
from rankdp.report.results import Table, digits_for, listed
from rankdp.report.results import shown as number

_GRID = 12  # items in the table of who beats whom
_NAMED = 4  # categories in a sentence


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
        headline=board.headline(),
        results=board.results(),
        tables=_tables(board),
        warnings=[words for words in board.warnings if words not in LIMITS],
        limits=[words for words in board.warnings if words in LIMITS],
        sure=_meaning(board),
        figure=lambda: board.plot(title),
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
            headline=board.headline(),
            results=board.results(),
            tables=_tables(board),
            warnings=[words for words in board.warnings if words not in everywhere],
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
        headline=_clear(release.value),
        warnings=[words for words in everywhere if words not in LIMITS],
        limits=[words for words in everywhere if words in LIMITS],
        sure=_meaning(level),
        computed=[f"One board for each category in {release.value.by!r}. Epsilon of each board: {shares}."],
        figure=lambda: release.value.plot(title),
        release=release,
        parts=parts,
    )


def _clear(boards: Boards) -> str:
    """On how many boards one item alone may be the first; nothing where errors are not known."""
    if any(board.best_probability is None for board in boards.boards.values()):
        return ""
    firsts = {name: board.items[0] for name, board in boards.boards.items() if (board.rank_low[1:] > 1).all()}
    named = (
        f": {listed([f'{item} in {name}' for name, item in firsts.items()], 'and')}" if len(firsts) <= _NAMED else ""
    )
    if not firsts:
        return f"No item clearly ranks first in any of the {len(boards.boards)} categories."
    return f"One item clearly ranks first in {len(firsts)} of {len(boards.boards)} categories{named}."


def _shared(warnings: list[tuple[str, ...]]) -> list[str]:
    """Warnings that all boards share, shown once."""
    return [words for words in warnings[0] if all(words in others for others in warnings)]


def _facts(board: Leaderboard) -> dict[str, Any]:
    return {
        "headline": board.headline(),
        "leaderboard": board.rows(),
        "level": board.level,
        "warnings": board.warnings,
        **({"wins_over": board.table} if board.table is not None else {}),
        **({"effects": [asdict(effect) for effect in board.effects]} if board.effects else {}),
    }


def write_board(
    release: Release[Leaderboard] | Release[Boards], path: str | PathLike[str], title: str = "Leaderboard"
) -> None:
    """Write a published leaderboard with its guarantee, in the format of the file's ending.

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
    return [*_wins_over(board), *([_effects(board)] if board.effects else [])]


def _wins_over(board: Leaderboard) -> list[Table]:
    """Who beats whom: the released table of the first items."""
    if board.table is None:
        return []
    names, shown = board.items[:_GRID], board.table[:_GRID, :_GRID].tolist()
    rows = [
        [name, *("" if at == column else number(wins, 0) for column, wins in enumerate(row))]
        for at, (name, row) in enumerate(zip(names, shown, strict=True))
    ]
    return [
        Table(["wins over", *names], rows, title="Who beats whom: wins of the row's item over the column's, with noise")
    ]


def _meaning(board: Leaderboard) -> list[str]:
    """What scores and intervals mean, one line each."""
    scores = {
        "score": "A score is a log-strength: an item with 1 more than another wins 73% of their comparisons.",
        "majorities": "A score is how many others the item beats more often than it loses to them, by noisy counts.",
        "elo": "A score is on the Elo scale: an item with 400 more than another wins 91% of their comparisons.",
    }
    counted = f"A score is the item's number of {board.score_name} in these votes, with noise."
    return [
        scores.get(board.score_name, counted),
        *(
            [
                f"Each interval holds the true score with a probability of {board.level:.0%}, and each range of ranks "
                "the true rank."
            ]
            if board.best_probability is not None
            else []
        ),
    ]


def _effects(board: Leaderboard) -> Table:
    heads = ["covariate", "at its bound", "adds to the log-odds", f"{board.level:.0%} interval"]
    digits = digits_for([value for effect in board.effects for value in (effect.effect, effect.low, effect.high)])
    rows = [
        [
            effect.covariate,
            f"{effect.bound:g}",
            number(effect.effect, digits),
            f"{number(effect.low, digits)} to {number(effect.high, digits)}",
        ]
        for effect in board.effects
    ]
    return Table(heads, rows, texts=1, title="Covariates")
