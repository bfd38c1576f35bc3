"""`rankdp demo`."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--plot", type=click.Path(path_type=Path), default=Path("rankdp-demo.png"), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(plot: Path, as_json: bool) -> None:
    """Privatize a built-in poll and show what survives."""
    from rankdp.demo import run_demo

    shown = run_demo()
    shown.save_plot(plot)
    if as_json:
        numbers = {
            "true_mean_ranks": shown.true,
            "synthetic": {
                f"{epsilon:g}": {"mean_ranks": shown.synthetic[epsilon], **release.to_dict()}
                for epsilon, release in shown.releases.items()
            },
            "plot": str(plot),
        }
        click.echo(json.dumps(numbers, indent=2))
        return
    _demo_table(shown)
    middle = sorted(shown.releases)[1]
    for words in (
        f"Why this mechanism: {shown.why(middle)}.",
        f"What epsilon {middle:g} promises every voter: {shown.releases[middle].explain()}",
        "Mean ranks of synthetic rankings are drawn to the middle, the more so the smaller epsilon is: compare the "
        "order of the items rather than the numbers.",
        f"Plot: {plot}",
    ):
        click.echo("\n" + textwrap.fill(words, 100))


def _demo_table(shown: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"What should our town build next? Mean rank over {len(shown.poll):,} made-up voters, and place",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("item")
    table.add_column("true", justify="right")
    for epsilon in shown.releases:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    columns = [shown.true, *shown.synthetic.values()]
    places = [{item: place for place, item in enumerate(shown.order(means), 1)} for means in columns]
    for item in shown.order(shown.true):
        table.add_row(
            item, *(f"{means[item]:.2f}  #{place[item]}" for means, place in zip(columns, places, strict=True))
        )
    table.add_section()
    table.add_row("item pairs in the true order", "", *(f"{shown.pairs_in_order(one):.0%}" for one in shown.releases))
    Console(width=None if sys.stdout.isatty() else 110).print(table)
