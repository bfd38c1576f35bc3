"""`rankdp rank`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import (
    OPENING,
    Sectioned,
    charged,
    choice,
    columns_option,
    in_a_line,
    items_option,
    need,
    opening_options,
    option,
    rehearse,
    sections,
    standard_input,
    voter_column_option,
)
from rankdp.cli.terminal import check_files, output_options, publish, say

if TYPE_CHECKING:
    from rankdp.privacy.bits import Bits
    from rankdp.privacy.ledger import Ledger


def _weighed(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """``english=2`` as a category with its weight; without a number after the last sign, all of it is the name."""
    found = {}
    for value in values:
        name, sign, weight = value.rpartition("=")
        numeric = sign and weight.strip().replace(".", "", 1).isdigit()
        found[(name if numeric else value).strip()] = weight.strip() if numeric else "1"
    return found or None


@click.command(
    cls=Sectioned,
    sections=sections(
        Data="both_bad on_problem by categories categories_from_data covariates", Privacy="max_per_voter"
    ),
)
@click.argument("votes", metavar="VOTES...", nargs=-1, required=True, callback=standard_input)
@option("--epsilon -e", "Privacy of the leaderboard: smaller is more private.", "NUMBER")
@option(
    "--protect",
    "What is protected: one comparison; only its outcome (who met whom is public); or all votes of a voter.",
    type=click.Choice(["comparison", "outcome", "voter"]),
)
@option(
    "--max-per-voter",
    "With --protect voter: C comparisons of each voter count fully; with more, each has less weight. If not given, "
    "C is chosen at a cost of 3% of epsilon.",
    "C",
    int,
)
@choice(
    "--method",
    ["bradley-terry", "wins", "copeland"],
    help="Score of an item: its log-strength in the Bradley-Terry model, its wins, or how many others it beats "
    "more often than not.",
)
@items_option
@option("--items-from-data", "Take the item names from the votes, which publishes that list.", is_flag=True)
@option("--top", "Also list the top K items, and how certain each one is.", "K", int)
@choice(
    "--scale",
    ["log-strength", "elo"],
    help="Scale of Bradley-Terry scores; elo is 1000 + 400/ln 10 times the log-strength.",
)
@option("--delta", "Above 0: Gaussian noise on wins, (epsilon, delta)-DP.", "NUMBER", default="0")
@option(
    "--covariates",
    "With --protect outcome: public covariates with their bounds, such as length_a-length_b:500,position; their effect "
    "is taken out of the scores.",
    "LIST",
)
@choice(
    "--pairing",
    ["unknown", "random", "matched"],
    help="How pairs were chosen: unknown; at random, as you state; or more often between items of similar strength.",
)
@option(
    "--by",
    "One board for each category in this column, all from one epsilon; give --category or --categories-from-data.",
    "COLUMN",
)
@option(
    "--category categories",
    "With --by: a public category, and its weight when epsilon is divided (1 if not given); may be repeated.",
    "NAME[=WEIGHT]",
    multiple=True,
    callback=_weighed,
)
@option(
    "--categories-from-data", "With --by: take the categories from the votes, which publishes that list.", is_flag=True
)
@option("--level", "Confidence of the intervals.", default=0.95)
@voter_column_option
@columns_option
@option("--weight-column", "Column with the number of equal comparisons that a row represents.", "NAME")
@choice("--both-bad", ["tie", "drop"], help="Votes that call both bad: count them as ties, or leave them out.")
@choice("--on-problem", ["refuse", "drop"], help="Rows that break a rule: refuse the votes, or leave these rows out.")
@opening_options
@option("--title", "Heading of the leaderboard.", default="Leaderboard")
@charged
@rehearse
@output_options
def rank(
    votes: str | list[str],
    epsilon: str,
    by: str | None,
    categories: dict[str, str] | None,
    categories_from_data: bool,
    items: list[str] | None,
    outputs: tuple[Path, ...],
    title: str,
    ledger: Ledger | None,
    bits: Bits | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Publish a leaderboard from votes, with every vote protected.

    VOTES is one or several CSV, JSON, Excel or Parquet files, a pattern such as 'votes/*.parquet', a DuckDB file, or -
    for standard input. Its columns are left, right, winner; winner, loser; item_1, item_2, outcome; model_a, model_b,
    winner; or named by --columns.

    \b
    Examples:
      rankdp rank votes.csv --items items.txt --epsilon 1 --protect comparison -o board.html
      rankdp rank arena.parquet --items-from-data --epsilon 1 --protect voter
    """
    from rankdp.data.comparisons import Comparisons
    from rankdp.publish.board_report import board_report, boards_report
    from rankdp.publish.categories import CountedBoards
    from rankdp.publish.rank import BoardRequest

    need(
        f"rankdp rank {in_a_line(votes)} --epsilon 1 --protect comparison --items-from-data -o board.html",
        epsilon=("--epsilon NUMBER", epsilon),
        protect=("--protect comparison, outcome or voter", options["protect"]),
        items=("--items FILE or --items-from-data", items or options["items_from_data"]),
    )
    check_files(outputs)
    reading = {
        name: options.pop(name)
        for name in ("items_from_data", "voter_column", "weight_column", "columns", "both_bad", "on_problem", *OPENING)
    }
    covariates = options.pop("covariates")
    if by is None and (categories or categories_from_data):
        raise click.UsageError("--category and --categories-from-data need --by.")
    comparisons = Comparisons.read(votes, items=items, **reading)
    say((comparisons.within(by, "") if by else comparisons).recognised)
    request = BoardRequest.of(epsilon, **options)
    counted: Any = (
        CountedBoards.of(request, comparisons, by, categories, categories_from_data, covariates)
        if by
        else request.counted(comparisons, covariates)
    )
    report = partial(boards_report if by else board_report, title=title)
    publish(counted, report, ledger, bits, outputs, as_json)
