"""`rankdp budget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import PATH, choice, option, options
from rankdp.cli.terminal import many, reporting, say

if TYPE_CHECKING:
    from rankdp.report.document import Report

_file = click.argument("file", metavar="FILE", type=PATH)
_dataset = option("--dataset", "Name of the data set, if FILE has several.", "NAME")
_protected = options(
    option(
        "--protects",
        "What epsilon protects: comparison, outcome, voter (with --max-per-voter), position, ranking, score, ballot, "
        "or the words of a guarantee's `protects`.",
        "UNIT",
        required=True,
    ),
    option("--max-per-voter", "With --protects voter: the most comparisons of one voter.", "C", int),
)


@click.group()
def budget() -> None:
    """Keep the privacy budget of a data set in a file."""


def _unit(protects: str, max_per_voter: int | None) -> str:
    """A unit by its short name, or in the words of the guarantees."""
    from rankdp.mechanisms.votes.protection import PROTECT, Protection
    from rankdp.privacy.guarantee import BALLOT, ITEM_POSITION, ONE_SCORE, VOTER, VOTERS_BALLOT, WHOLE_RANKING

    if protects in PROTECT:
        return Protection.of(protects, max_per_voter).protects
    if max_per_voter is not None:
        raise click.UsageError("--max-per-voter goes with --protects voter.")
    short = {"position": ITEM_POSITION, "ranking": WHOLE_RANKING, "score": ONE_SCORE, "ballot": BALLOT}
    known = {*short.values(), VOTERS_BALLOT, *(Protection(unit).protects for unit in PROTECT if unit != "voter")}
    if protects not in short and protects not in known and not VOTER.fullmatch(protects):
        words = ", ".join([*PROTECT, *short])
        raise click.UsageError(
            f"--protects must be one of {words}, or what a guarantee says that it protects, got {protects!r}."
        )
    return short.get(protects, protects)


@budget.command("create")
@_file
@option("--dataset", "Name of the data set; all data about the same people share one.", "NAME", required=True)
@_protected
@option("--epsilon -e", "Total epsilon that may ever be spent.", "NUMBER", required=True)
@option("--delta", "Total delta that may ever be spent.", "NUMBER", default="0")
@choice(
    "--accounting",
    ["auto", "basic", "renyi"],
    help="How charges add up: basic adds epsilons; renyi needs a delta and is better for many Gaussian releases.",
)
def budget_create(
    file: Path, dataset: str, protects: str, max_per_voter: int | None, epsilon: str, delta: str, accounting: Any
) -> None:
    """Add a budget to FILE, which is created if it does not exist.

    Example: rankdp budget create budget.db --dataset poll --protects position --epsilon 3
    """
    from rankdp.privacy.ledger import Ledger

    made = Ledger.create(file, dataset, _unit(protects, max_per_voter), epsilon, delta, accounting=accounting)
    say(f"{file}: {dataset} may spend epsilon {epsilon}" + (f" and delta {delta}" if delta != "0" else ""))
    say(f"head {made.verify().head} (note it elsewhere; rankdp budget verify --head asks for it)")


@budget.command("show")
@_file
@_dataset
@reporting
def budget_show(file: Path, dataset: str | None) -> Report:
    """Show what is spent, on what, and what is left."""
    from rankdp.privacy.ledger import Ledger
    from rankdp.report.budgets import budget_report

    return budget_report(Ledger.open(file, dataset))


@budget.command("verify")
@_file
@option("--dataset", "Accepted for symmetry: the whole file is always checked.", "NAME")
@option("--head", "A head printed earlier: it must still be in the chain.", "HASH")
def budget_verify(file: Path, dataset: str | None, head: str | None) -> None:
    """Check every entry's hash and all totals.

    The first broken entry is named.
    """
    from rankdp.privacy.ledger import verify_file

    found = verify_file(file, head)
    say(f"{file}: {found.entries:,} entr{'y' if found.entries == 1 else 'ies'}, every hash and every total holds")
    click.echo(found.head)


@budget.command("export")
@_file
@click.argument("target", metavar="OUT.csv", type=PATH)
@_dataset
def budget_export(file: Path, target: Path, dataset: str | None) -> None:
    """Write every charge to a CSV file, exact numbers as fractions."""
    from rankdp.privacy.ledger import Ledger
    from rankdp.report.budgets import budget_report
    from rankdp.report.document import check_outputs

    check_outputs([target])
    report = budget_report(Ledger.open(file, dataset))
    report.write(target)
    say(f"{target}: {many(len(report.records), 'charge')}")


@budget.command("spend")
@_file
@_dataset
@_protected
@option("--epsilon -e", "Epsilon of the release.", "NUMBER", required=True)
@option("--delta", "Delta of the release.", "NUMBER", default="0")
@option("--partition", "Name of a division of the voters into disjoint parts (with --part).", "NAME")
@option("--part", "The part that the release is about: a partition costs as much as its most expensive part.", "NAME")
@option(
    "--convert",
    "Accept a release that protects another unit, charged at its price in this budget's unit.",
    is_flag=True,
)
@click.argument("what", metavar="WHAT")
def budget_spend(
    file: Path,
    dataset: str | None,
    protects: str,
    max_per_voter: int | None,
    epsilon: str,
    delta: str,
    what: str,
    **more: Any,
) -> None:
    """Charge a release that another tool will make.

    WHAT describes the release in the ledger. Publish only after the charge has succeeded.
    """
    from rankdp.privacy.exact import positive, rational
    from rankdp.privacy.guarantee import Guarantee
    from rankdp.privacy.ledger import Ledger

    guarantee = Guarantee(_unit(protects, max_per_voter), positive(epsilon), rational(delta, "delta"), local=False)
    entry = Ledger.open(file, dataset).spend(guarantee, what, **more)
    say(f"entry {entry.number}: charged; release now")
    for words in filter(None, entry.converted):
        say(f"converted: {words}")
