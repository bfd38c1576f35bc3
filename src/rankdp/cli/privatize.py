"""`rankdp privatize`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import (
    DASH,
    MECHANISM_OR_AUTO,
    PATH,
    Sectioned,
    charged,
    choice,
    columns_option,
    force_option,
    in_a_line,
    items_option,
    layout_option,
    need,
    noted,
    opening_options,
    option,
    rehearse,
    sections,
    sizes_of_tiers,
    standard_input,
    standard_output,
    voter_column_option,
)
from rankdp.cli.terminal import Rows, clear, many, say

if TYPE_CHECKING:
    from rankdp.privacy.release import Release


@click.command(
    cls=Sectioned,
    sections=sections(
        Data="ties repeated_voters listed_items_public",
        Privacy="epsilon_column answers_file wave",
        Output="as_tiers drop_voters shuffle",
    ),
)
@click.argument("source", metavar="IN...", type=PATH, nargs=-1, required=True, callback=standard_input)
@click.argument("target", metavar="OUT", type=PATH)
@option("--epsilon -e", "Privacy of every ranking: smaller is more private.", "NUMBER")
@choice(
    "--protect",
    ["position", "ranking"],
    help="What epsilon protects: one item's position in a ranking, or the whole ranking.",
)
@option("--epsilon-column", "Instead of --epsilon: the column with each voter's own epsilon.", "NAME")
@option(
    "--mechanism",
    "How the noise is drawn; auto uses the best mechanism for --purpose, the number of items and epsilon.",
    type=MECHANISM_OR_AUTO,
    default="auto",
)
@choice(
    "--purpose",
    ["aggregate", "order", "top"],
    help="What auto aims at: the fewest respondents for `rankdp aggregate`, the most pairs of each ranking in order, "
    "or the most of the first --top items among the first.",
)
@option(
    "--top",
    "With --purpose top: the length of the top list. With --protect ranking: write only lists of the first K items, "
    "whose choice is protected as well (needs --items).",
    "K",
    int,
)
@option(
    "--tiers",
    "Sizes of the tiers, the top first, such as 10,90; chosen from public numbers by default.",
    "SIZES",
    callback=sizes_of_tiers,
)
@option(
    "--as-tiers",
    "Write tier lists, item and tier: the order inside a tier is noise. For a --mechanism with tiers.",
    is_flag=True,
)
@option(
    "--listed-items-public",
    "Accept partial rankings; the set of items that a voter lists is published as it is.",
    is_flag=True,
)
@option(
    "--repeated-voters",
    "Accept voters with several rows; the guarantee and the charge are for all rows of a voter together.",
    is_flag=True,
)
@choice(
    "--ties",
    ["refuse", "listed", "random"],
    help="Tied items: refuse the file, keep the order of the file, or break ties at random.",
)
@option("--drop-voters", "Leave the voters' ids out of OUT; otherwise they are published.", is_flag=True)
@option("--shuffle", "Write the rows of OUT in random order instead of the order of IN.", is_flag=True)
@voter_column_option
@columns_option
@layout_option
@opening_options
@items_option
@option(
    "--answers answers_file",
    "Store every private ranking in FILE: a voter in a later run gets the same one again, at no further cost.",
    "FILE",
    PATH,
)
@option(
    "--wave",
    "With --answers: label of a new collection, for which rankings are drawn and charged again.",
    "NAME",
    default="",
    show_default=False,
)
@charged
@rehearse
@option("--json as_json", "Print a summary as JSON.", is_flag=True)
@force_option
def privatize(
    source: Path | list[Path],
    target: Path,
    answers_file: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Replace every ranking by a private synthetic one.

    Reads the rankings in IN (CSV, JSON, Excel, Parquet, PrefLib or BLT, also compressed; several files with the same
    columns are read as one) and writes OUT (CSV, Parquet or PrefLib); the ending of the name decides, and - is standard
    input or output. OUT.release.json states the guarantee.

    \b
    Examples:
      rankdp privatize poll.csv private.csv --epsilon 2
      rankdp privatize poll.csv private.csv --epsilon 4 --protect ranking
      rankdp privatize films.csv private.csv --epsilon 4 --protect ranking --top 5 --items films.txt
      rankdp privatize poll.parquet private.parquet --epsilon-column own_epsilon --drop-voters
    """
    from rankdp.privacy.answers import AnswerStore
    from rankdp.publish.privatize import privatize_file

    given = [options["epsilon"], options["epsilon_column"]]
    need(
        f"rankdp privatize {in_a_line(source)} {target} --epsilon 2",
        epsilon=("--epsilon NUMBER or --epsilon-column NAME", any(given)),
    )
    if all(given):
        raise click.UsageError("Give either --epsilon or --epsilon-column.")
    started, notes = time.perf_counter(), list[str]()
    if as_json and target == DASH:
        raise click.UsageError("--json and OUT cannot both go to standard output.")
    progress = Rows("privatizing")
    with standard_output(target, source) as written:
        release = privatize_file(
            source,
            written,
            answers=AnswerStore(answers_file) if answers_file else None,
            progress=progress,
            told=noted(notes),
            **options,
        )
    seconds = time.perf_counter() - started
    clear()
    if as_json:
        summary = {"out": str(target), "rows": progress.rows, "seconds": round(seconds, 3), **release.to_dict()}
        click.echo(json.dumps(summary, indent=2))
    else:
        say(f"wrote {target}: {many(progress.rows, 'ranking')} in {seconds:.1f} s")
        say(f"mechanism: {_described(release)}")
        if left_out := release.provenance.parameters["columns_left_out"]:
            say(f"columns left out, because nothing protects them: {', '.join(left_out)}")
        for note in [*notes, *_warned(release)]:
            say(f"note: {note}")
        say(release.explain())


def _described(release: Release[Any]) -> str:
    """The mechanism, and what it keeps if all rankings went through one."""
    from rankdp.mechanisms.registry import describe, mechanism

    facts = release.provenance.parameters
    if len(facts["choices"]) > 1:
        return f"{release.provenance.mechanism} ({len(facts['choices'])} different lengths or epsilons)"
    (choice,) = facts["choices"]
    chosen = mechanism(choice["mechanism"], choice["items"], choice["epsilon"])
    return describe(chosen, facts.get("top"), facts["protect"])


def _warned(release: Release[Any]) -> list[str]:
    """A warning if all rankings went through a named mechanism that is bad for aggregates."""
    from rankdp.mechanisms.registry import costly, mechanism

    facts = release.provenance.parameters
    if facts["asked_for"] == "auto" or facts["purpose"] != "aggregate" or len(facts["choices"]) > 1:
        return []
    (choice,) = facts["choices"]
    chosen = mechanism(choice["mechanism"], choice["items"], choice["epsilon"])
    warning = costly(chosen, choice.get("ranking_epsilon", choice["epsilon"]), facts["protect"])
    return [warning] if warning else []
