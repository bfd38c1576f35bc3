"""`rankdp aggregate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import MECHANISM_NAMES, items_file_option, outputs_option
from rankdp.cli.terminal import print_table, say


@click.command()
@click.argument("synthetic", metavar="SYNTHETIC", type=click.Path(path_type=Path))
@click.option("--mechanism", type=click.Choice(MECHANISM_NAMES[1:]), help="What made the rankings, without a sidecar.")
@click.option("--epsilon", "-e", metavar="NUMBER", help="At which epsilon, without a sidecar.")
@click.option("--epsilon-column", metavar="NAME", help="Column with each voter's own epsilon.")
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
@outputs_option("table.csv, .json, .html or .png")
@click.option("--title", default="Aggregate", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the aggregate as JSON.")
def aggregate(
    synthetic: Path,
    method: str,
    level: float,
    items_file: Path | None,
    outputs: tuple[Path, ...],
    title: str,
    as_json: bool,
    **options: Any,
) -> None:
    """The collective order behind privatized rankings, without the bias of the noise.

    SYNTHETIC is a file from `rankdp privatize`, whose sidecar says how it was made, or any file of rankings made with
    a stated mechanism and epsilon. Costs no privacy.
    """
    from rankdp.aggregation.aggregate_page import check_ending, origin, table_of, to_dict, write_aggregate
    from rankdp.aggregation.estimates import aggregate_file
    from rankdp.data.comparisons import listed_items

    for path in outputs:
        check_ending(path)
    found = aggregate_file(synthetic, items=listed_items(items_file) if items_file else None, **options)
    for path in outputs:
        write_aggregate(found, path, method, level, title)
    if as_json:
        click.echo(json.dumps(to_dict(found, method, level), indent=2))
        return
    print_table(title, *table_of(found, method, level), texts=2)
    say(origin(found, method))
