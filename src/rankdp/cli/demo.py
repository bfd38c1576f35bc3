"""`rankdp demo`."""

from __future__ import annotations

from pathlib import Path

import click

from rankdp.cli.options import PATH, option
from rankdp.cli.terminal import deliver, say


@click.command()
@option(
    "--plot",
    "File for the picture (.png, .svg, .pdf), page (.html) or table (.csv, .json); rankdp-demo.png by default.",
    type=PATH,
)
@option("--json as_json", "Print the numbers as JSON.", is_flag=True)
def demo(plot: Path | None, as_json: bool) -> None:
    """Privatize a built-in poll and show what survives."""
    from rankdp.demo import run_demo
    from rankdp.errors import Unsupported
    from rankdp.report.document import check_outputs

    outputs = [plot or Path("rankdp-demo.png")]
    try:
        check_outputs(outputs)
    except Unsupported as missing:
        if plot is not None:
            raise
        say(f"No picture: {missing}")
        outputs = []
    deliver(run_demo().report(), outputs, as_json)
