"""`rankdp demo`."""

from __future__ import annotations

from pathlib import Path

import click

from rankdp.cli.options import PATH
from rankdp.cli.terminal import deliver, say


@click.command()
@click.option(
    "--plot",
    type=PATH,
    default=Path("rankdp-demo.png"),
    help="File for the picture (.png, .svg, .pdf), page (.html) or table (.csv, .json).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(plot: Path, as_json: bool) -> None:
    """Privatize a built-in poll and show what survives."""
    from rankdp.demo import run_demo
    from rankdp.report.document import check_outputs

    check_outputs([plot])
    deliver(run_demo().report(), [plot], as_json)
    say(f"Plot: {plot}")
