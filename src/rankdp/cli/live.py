"""`rankdp live`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import (
    PATH,
    charged,
    columns_option,
    items_option,
    need,
    option,
    rehearse,
    standard_input,
    voter_column_option,
)
from rankdp.cli.terminal import reporting, say

if TYPE_CHECKING:
    from rankdp.privacy.bits import Bits
    from rankdp.privacy.ledger import Ledger
    from rankdp.publish.live import LiveBoard
    from rankdp.report.document import Report

_state = click.argument("state", metavar="STATE", type=PATH)
_title = option("--title", "Heading of the leaderboard.", default="Leaderboard")
_top = option("--top", "Also list the top K items, and how certain each one is.", "K", int)
_level = option("--level", "Confidence of the intervals.", default=0.95)


@click.group()
def live() -> None:
    """Publish a leaderboard repeatedly, for one epsilon in total."""


@live.command("create")
@_state
@items_option
@option("--epsilon -e", "Privacy of all boards together: smaller is more private.", "NUMBER")
@option("--boards", "Maximum number of boards, such as 52 for a year of weekly boards.", "N", int)
@option(
    "--protect",
    "What is protected: one comparison; only its outcome (who met whom is public); or all votes of a voter.",
    type=click.Choice(["comparison", "outcome", "voter"]),
)
@option("--max-per-voter", "With --protect voter: C comparisons of each voter count, over all boards.", "C", int)
@option("--delta", "Above 0: Gaussian noise, (epsilon, delta)-DP.", "NUMBER", default="0")
@charged
@rehearse
def live_create(
    state: Path,
    items: list[str] | None,
    epsilon: str | None,
    boards: int | None,
    protect: str | None,
    max_per_voter: int | None,
    delta: str,
    ledger: Ledger | None,
    bits: Bits | None,
) -> None:
    """Create a live board, and charge for all of its publications.

    STATE is a new file that keeps its state.

    \b
    Example:
      rankdp live create state.db --items items.txt --epsilon 1 --boards 52 --protect comparison --ledger budget.db
    """
    from rankdp.publish.live import LiveBoard

    need(
        f"rankdp live create {state} --items a,b,c --epsilon 1 --boards 52 --protect comparison --ledger budget.db",
        items=("--items FILE", items),
        epsilon=("--epsilon NUMBER", epsilon),
        boards=("--boards N", boards),
        protect=("--protect comparison, outcome or voter", protect),
        ledger=("--ledger FILE", ledger or bits),
    )
    asked: Any = {"protect": protect, "boards": boards, "max_per_voter": max_per_voter, "delta": delta}
    LiveBoard.create(state, items or (), epsilon or 0, ledger=ledger, bits=bits, **asked).close()
    say(f"{state}: {boards} boards for epsilon {epsilon} in total; keep this file and {state}.key private")


@live.command("add")
@_state
@click.argument("votes", metavar="VOTES", callback=standard_input)
@option("--batch", "Public name of these votes, such as 2026-W47; a name counts once.", "NAME", required=True)
@voter_column_option
@columns_option
@_top
@_level
@_title
@charged
@reporting
def live_add(
    state: Path,
    votes: str,
    batch: str,
    voter_column: str | None,
    columns: dict[str, str] | None,
    top: int | None,
    level: float,
    title: str,
    ledger: Ledger | None,
) -> Report:
    """Count new votes and publish the board.

    VOTES holds votes that were not counted before.

    \b
    Example:
      rankdp live add state.db week47.csv --batch 2026-W47 --ledger budget.db -o board.html
    """
    from rankdp.publish.live import LiveBoard

    board = LiveBoard.open(state, ledger=ledger)
    number = board.add(votes, batch, voter_column=voter_column, columns=columns)
    say(f"{state}: board {number} of {board.counts.steps}")
    return _report(board, top, level, title)


@live.command("board")
@_state
@_top
@_level
@_title
@charged
@reporting
def live_board(state: Path, top: int | None, level: float, title: str, ledger: Ledger | None) -> Report:
    """Publish the newest board again, at no cost."""
    from rankdp.publish.live import LiveBoard

    return _report(LiveBoard.open(state, ledger=ledger), top, level, title)


def _report(board: LiveBoard, top: int | None, level: float, title: str) -> Report:
    from rankdp.publish.board_report import board_report

    return board_report(board.board(top=top, level=level), title)
