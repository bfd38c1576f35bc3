"""`rankdp budget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.terminal import reporting, say

if TYPE_CHECKING:
    from rankdp.report.document import Report

_UNIT_HELP = "comparison, outcome, voter (with --max-per-voter), position, ranking, score, or a guarantee's own words."


@click.group()
def budget() -> None:
    """Keep a budget of epsilon for a data set: create, show, verify, export, spend."""


def _unit(protects: str, max_per_voter: int | None) -> str:
    """A unit by its short name, or in the words of the guarantees."""
    from rankdp.mechanisms.votes.protection import PROTECT, Protection
    from rankdp.privacy.guarantee import ITEM_POSITION, ONE_SCORE, WHOLE_RANKING

    if protects in PROTECT:
        return Protection.of(protects, max_per_voter).protects
    if max_per_voter is not None:
        raise click.UsageError("--max-per-voter goes with --protects voter.")
    return {"position": ITEM_POSITION, "ranking": WHOLE_RANKING, "score": ONE_SCORE}.get(protects, protects)


@budget.command("create")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", required=True, metavar="NAME", help="Whose budget it is: one name for the same people.")
@click.option("--protects", required=True, metavar="UNIT", help=_UNIT_HELP)
@click.option("--max-per-voter", type=int, metavar="C", help="With --protects voter.")
@click.option("--epsilon", "-e", required=True, metavar="NUMBER", help="All that may ever be spent.")
@click.option("--delta", default="0", metavar="NUMBER", show_default=True, help="The delta that may ever be spent.")
@click.option(
    "--accounting",
    type=click.Choice(["auto", "basic", "renyi"]),
    default="auto",
    show_default=True,
    help="With a delta: add up, or count by Rényi divergences (better for many Gaussian releases).",
)
def budget_create(
    file: Path, dataset: str, protects: str, max_per_voter: int | None, epsilon: str, delta: str, accounting: Any
) -> None:
    """Add a budget to FILE, which is made if need be."""
    from rankdp.privacy.ledger import Ledger

    made = Ledger.create(file, dataset, _unit(protects, max_per_voter), epsilon, delta, accounting=accounting)
    say(f"{file}: {dataset} may spend epsilon {epsilon}" + (f" and delta {delta}" if delta != "0" else ""))
    say(f"head {made.verify().head} (note it elsewhere; rankdp budget verify --head asks for it)")


@budget.command("show")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Whose budget, where FILE has several.")
@reporting
def budget_show(file: Path, dataset: str | None) -> Report:
    """What is spent, what is left, and on what."""
    from rankdp.privacy.ledger import Ledger
    from rankdp.report.budgets import budget_report

    return budget_report(Ledger.open(file, dataset))


@budget.command("verify")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Any of those in FILE: the whole file is checked.")
@click.option("--head", metavar="HASH", help="A head that was noted before: it must be in the chain.")
def budget_verify(file: Path, dataset: str | None, head: str | None) -> None:
    """Check the chain of entries and all totals; the first broken entry is named."""
    from rankdp.privacy.ledger import verify_file

    found = verify_file(file, head)
    say(f"{file}: {found.entries:,} entries, every hash and every total holds")
    click.echo(found.head)


@budget.command("export")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT.csv", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Whose budget, where FILE has several.")
def budget_export(file: Path, target: Path, dataset: str | None) -> None:
    """Write one line for each charge, exact numbers as fractions."""
    from rankdp.privacy.ledger import Ledger
    from rankdp.report.budgets import budget_report
    from rankdp.report.document import check_outputs

    check_outputs([target])
    report = budget_report(Ledger.open(file, dataset))
    report.write(target)
    say(f"{target}: {len(report.records):,} charges")


@budget.command("spend")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Whose budget, where FILE has several.")
@click.option("--protects", required=True, metavar="UNIT", help=_UNIT_HELP)
@click.option("--max-per-voter", type=int, metavar="C", help="With --protects voter.")
@click.option("--epsilon", "-e", required=True, metavar="NUMBER", help="Of the release.")
@click.option("--delta", default="0", metavar="NUMBER", show_default=True, help="Of the release.")
@click.option("--partition", metavar="NAME", help="With --part: the release is about one part of the voters only.")
@click.option("--part", metavar="NAME", help="With --partition: which part.")
@click.option("--convert", is_flag=True, help="Pay for a release that protects another unit, at its price.")
@click.argument("what", metavar="WHAT")
def budget_spend(
    file: Path,
    dataset: str | None,
    protects: str,
    max_per_voter: int | None,
    epsilon: str,
    delta: str,
    what: str,
    **options: Any,
) -> None:
    """Charge a release that another tool is about to make."""
    from rankdp.privacy.exact import positive, rational
    from rankdp.privacy.guarantee import Guarantee
    from rankdp.privacy.ledger import Ledger

    guarantee = Guarantee(_unit(protects, max_per_voter), positive(epsilon), rational(delta, "delta"), local=False)
    entry = Ledger.open(file, dataset).spend(guarantee, what, **options)
    say(f"entry {entry.number}: charged; release now")
    for words in filter(None, entry.converted):
        say(f"converted: {words}")
