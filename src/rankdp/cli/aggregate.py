"""`rankdp aggregate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import MECHANISM, PATH, choice, items_option, option, standard_input
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.command()
@click.argument("synthetic", metavar="SYNTHETIC", callback=standard_input, type=PATH)
@option("--mechanism", "Without a sidecar: the mechanism that made the rankings.", type=MECHANISM)
@option("--epsilon -e", "Without a sidecar: the epsilon of every ranking.", "NUMBER")
@option("--epsilon-column", "Without a sidecar: the column with each voter's own epsilon.", "NAME")
@choice("--method", ["borda", "copeland", "bradley-terry", "kemeny"], help="Rule that orders the items.")
@option("--level", "Confidence of the intervals.", default=0.95)
@choice(
    "--combine",
    ["precision", "voters"],
    help="With different epsilons: weight voters by the precision of their noise, or all equally.",
)
@items_option
@option("--title", "Heading of the report.", default="Aggregate")
@reporting
def aggregate(synthetic: Path, method: str, level: float, title: str, **options: Any) -> Report:
    """Estimate the collective order behind privatized rankings.

    Estimates correct for the noise; if there are too few voters to do so fully, the result says how much is left.
    Lists may differ in length. SYNTHETIC is a file written by `rankdp privatize`; its sidecar SYNTHETIC.release.json
    states the mechanism and epsilon. For a file without a sidecar give --mechanism and --epsilon or --epsilon-column.
    Aggregating costs no privacy.
    """
    from rankdp.aggregation.aggregate_report import aggregate_report
    from rankdp.aggregation.estimates import aggregate_file

    return aggregate_report(aggregate_file(synthetic, **options), method, level, title)
