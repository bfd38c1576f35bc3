"""`rankdp privatize`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import MECHANISM_OR_AUTO, charged, items_file_option, open_ledger, rehearse
from rankdp.cli.terminal import progress_bar, say

if TYPE_CHECKING:
    from rankdp.privacy.release import Release


@click.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--epsilon", "-e", metavar="NUMBER", help="Privacy of every ranking: smaller is more private.")
@click.option(
    "--epsilon-column", metavar="NAME", help="Instead of --epsilon: the column with each voter's own epsilon."
)
@click.option(
    "--mechanism",
    type=MECHANISM_OR_AUTO,
    default="auto",
    show_default=True,
    help="How the noise is drawn; auto takes the most accurate one for the number of items and epsilon.",
)
@click.option(
    "--objective",
    type=click.Choice(["concordance", "aggregate"]),
    default="concordance",
    show_default=True,
    help="What auto maximises: pairs of items kept in order, or the precision of `rankdp aggregate`.",
)
@click.option(
    "--listed-items-public",
    is_flag=True,
    help="Accept partial rankings; the set of items that a voter lists is published as it is.",
)
@click.option(
    "--repeated-voters",
    is_flag=True,
    help="Accept voters with several rows; the guarantee and the charge are for all rows of a voter together.",
)
@click.option(
    "--ties",
    type=click.Choice(["refuse", "listed", "random"]),
    default="refuse",
    show_default=True,
    help="Tied items: refuse the file, keep the order of the file, or break ties at random.",
)
@items_file_option
@click.option(
    "--answers",
    "answers_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Store every private ranking in FILE: a voter in a later run gets the same one again, at no further cost.",
)
@click.option(
    "--wave",
    default="",
    metavar="NAME",
    help="With --answers: label of a new collection, for which rankings are drawn and charged again.",
)
@charged
@rehearse
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def privatize(
    source: Path,
    target: Path,
    epsilon: str | None,
    epsilon_column: str | None,
    mechanism: str,
    objective: Any,
    listed_items_public: bool,
    repeated_voters: bool,
    ties: Any,
    items_file: Path | None,
    answers_file: Path | None,
    wave: str,
    ledger_file: Path | None,
    dataset: str | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Replace every ranking by a private synthetic one.

    Reads the rankings in IN and writes OUT. Both are CSV, Parquet or PrefLib files; the ending of the name decides.
    OUT.release.json states the guarantee.

    Example: rankdp privatize poll.csv private.csv --epsilon 2
    """
    from rankdp.data.comparisons import listed_items
    from rankdp.privacy.answers import AnswerStore
    from rankdp.privacy.bits import SeededBits
    from rankdp.publish.privatize import privatize_file

    if (epsilon is None) == (epsilon_column is None):
        raise click.UsageError("Give either --epsilon or --epsilon-column.")
    started = time.perf_counter()
    with progress_bar("privatizing") as progress:
        release = privatize_file(
            source,
            target,
            epsilon,
            mechanism=mechanism,
            objective=objective,
            epsilon_column=epsilon_column,
            listed_items_public=listed_items_public,
            repeated_voters=repeated_voters,
            ties=ties,
            items=listed_items(items_file) if items_file else None,
            ledger=open_ledger(ledger_file, dataset),
            answers=AnswerStore(answers_file) if answers_file else None,
            wave=wave,
            bits=None if seed is None else SeededBits(seed),
            progress=progress,
        )
    seconds = time.perf_counter() - started
    if as_json:
        summary = {"out": str(target), "rows": progress.rows, "seconds": round(seconds, 3), **release.to_dict()}
        click.echo(json.dumps(summary, indent=2))
    else:
        say(f"{target}: {progress.rows:,} rankings in {seconds:.1f} s, mechanism {release.provenance.mechanism}")
        if left_out := release.provenance.parameters["columns_left_out"]:
            say(f"columns left out, because nothing protects them: {', '.join(left_out)}")
        _say_choice(release)
        say(release.explain())


def _say_choice(release: Release[Any]) -> None:
    """Why auto chose what it chose, where it chose one thing."""
    from rankdp.mechanisms.registry import mechanism, why

    facts = release.provenance.parameters
    if facts["asked_for"] == "auto" and len(facts["choices"]) == 1:
        (choice,) = facts["choices"]
        chosen = mechanism(choice["mechanism"], choice["items"], choice["epsilon"])
        say(why(chosen, facts["objective"]))  # type: ignore[arg-type]
