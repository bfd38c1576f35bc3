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
        "--protect",
        "What epsilon protects: comparison, outcome, voter, ballot, position, ranking or score; or the text of a "
        "guarantee's `protects`.",
        "UNIT",
        required=True,
    ),
    option(
        "--max-per-voter",
        "With --protect voter: the largest number of comparisons of one voter.",
        "C",
        int,
    ),
)


@click.group()
def budget() -> None:
    """Keep the privacy budget of a data set in a file."""


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
    file: Path, dataset: str, protect: str, max_per_voter: int | None, epsilon: str, delta: str, accounting: Any
) -> None:
    """Add a budget to FILE, which is created if it does not exist.

    \b
    Example:
      rankdp budget create budget.db --dataset poll --protect position --epsilon 3
    """
    from rankdp.privacy.ledger import Ledger

    asked = {"max_per_voter": max_per_voter, "accounting": accounting}
    made = Ledger.create(file, dataset, protect, epsilon, delta, **asked)
    say(f"{file}: {dataset} may spend epsilon {epsilon}" + (f" and delta {delta}" if delta != "0" else ""))
    say(f"head {made.verify().head} (keep a copy elsewhere, for rankdp budget verify --head)")


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
    """Write every charge to a CSV file, with exact numbers as fractions."""
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
    protect: str,
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
    from rankdp.privacy.guarantee import Guarantee, unit_of
    from rankdp.privacy.ledger import Ledger

    guarantee = Guarantee(unit_of(protect, max_per_voter), positive(epsilon), rational(delta, "delta"), local=False)
    entry = Ledger.open(file, dataset).spend(guarantee, what, **more)
    say(f"entry {entry.number}: charged; release now")
    for words in filter(None, entry.converted):
        say(f"converted: {words}")
