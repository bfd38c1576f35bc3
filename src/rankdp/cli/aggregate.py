"""`rankdp aggregate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import MECHANISM, items_file_option
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.command()
@click.argument("synthetic", metavar="SYNTHETIC", type=click.Path(path_type=Path))
@click.option("--mechanism", type=MECHANISM, help="What made the rankings, without a sidecar.")
@click.option("--epsilon", "-e", metavar="NUMBER", help="At which epsilon, without a sidecar.")
@click.option("--epsilon-column", metavar="NAME", help="Column with each voter's own epsilon, without a sidecar.")
@click.option(
    "--method",
    type=click.Choice(["borda", "copeland", "bradley-terry", "kemeny"]),
    default="borda",
    show_default=True,
    help="What orders the items.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option("--bias", type=float, default=0.0, metavar="SHARE", help="Allow this much bias where it saves variance.")
@click.option(
    "--combine",
    type=click.Choice(["precision", "voters"]),
    default="precision",
    show_default=True,
    help="Weigh voters of different epsilons by one over the noise's variance, or all alike.",
)
@items_file_option
@click.option("--title", default="Aggregate", show_default=True, help="The heading of a page or picture.")
@reporting
def aggregate(
    synthetic: Path,
    method: str,
    level: float,
    items_file: Path | None,
    title: str,
    **options: Any,
) -> Report:
    """The collective order behind privatized rankings, without the bias of the noise.

    SYNTHETIC is a file from `rankdp privatize`, whose sidecar says how it was made and what is promised, or any file of
    rankings made with a stated mechanism and epsilon. Costs no privacy.
    """
    from rankdp.aggregation.aggregate_report import aggregate_report
    from rankdp.aggregation.estimates import aggregate_file
    from rankdp.data.comparisons import listed_items

    result = aggregate_file(synthetic, items=listed_items(items_file) if items_file else None, **options)
    return aggregate_report(result, method, level, title)
