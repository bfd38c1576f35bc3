"""`rankdp aggregate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import MECHANISM, PATH, choice, items_option, standard_input
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.command()
@click.argument("synthetic", metavar="SYNTHETIC", callback=standard_input, type=PATH)
@click.option("--mechanism", type=MECHANISM, help="Without a sidecar: the mechanism that made the rankings.")
@click.option("--epsilon", "-e", metavar="NUMBER", help="Without a sidecar: the epsilon of every ranking.")
@click.option("--epsilon-column", metavar="NAME", help="Without a sidecar: the column with each voter's own epsilon.")
@choice("--method", ["borda", "copeland", "bradley-terry", "kemeny"], help="Rule that orders the items.")
@click.option("--level", default=0.95, help="Confidence of the intervals.")
@choice(
    "--estimator",
    ["auto", "unbiased"],
    help="Undo the noise as far as the number of voters is worth, or completely.",
)
@choice(
    "--combine",
    ["precision", "voters"],
    help="Voters of different epsilons: weigh each by the precision of its noise, or all alike.",
)
@items_option
@click.option("--title", default="Aggregate", help="Heading of the report.")
@reporting
def aggregate(synthetic: Path, method: str, level: float, title: str, **options: Any) -> Report:
    """Estimate the collective order behind privatized rankings.

    The noise is undone as far as the number of voters is worth, and the result says how far. Lists may differ in
    length. SYNTHETIC is a file written by `rankdp privatize`; its sidecar SYNTHETIC.release.json says which mechanism
    and epsilon made it. For a file without a sidecar give --mechanism and --epsilon or --epsilon-column. Aggregating
    costs no privacy.
    """
    from rankdp.aggregation.aggregate_report import aggregate_report
    from rankdp.aggregation.estimates import aggregate_file

    return aggregate_report(aggregate_file(synthetic, **options), method, level, title)
