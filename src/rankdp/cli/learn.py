"""`rankdp learn`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import MECHANISM_OR_AUTO
from rankdp.cli.terminal import say


@click.command()
@click.argument("users", metavar="USERS", type=click.Path(path_type=Path))
@click.argument("items", metavar="ITEMS", type=click.Path(path_type=Path))
@click.argument("rankings", metavar="RANKINGS", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", "target", type=click.Path(path_type=Path), required=True, help="A new directory for the model."
)
@click.option(
    "--model",
    type=click.Choice(["linear", "two-tower"]),
    default="linear",
    show_default=True,
    help="Linear in the features, or two neural networks.",
)
@click.option(
    "--loss",
    type=click.Choice(["logistic", "exponential", "psi"]),
    default="logistic",
    show_default=True,
    help="What is minimised over pairs.",
)
@click.option("--mechanism", type=MECHANISM_OR_AUTO, help="What made RANKINGS, without a sidecar.")
@click.option("--epsilon", "-e", metavar="NUMBER", help="With --mechanism: the epsilon of every ranking.")
@click.option("--epsilon-column", metavar="NAME", help="With --mechanism: the column with each user's own epsilon.")
@click.option("--debias/--naive", default=True, show_default=True, help="Undo the mechanism's noise in the labels.")
@click.option("--interaction/--common", default=None, help="Linear: personal rankings, or one for everybody.")
@click.option("--l2", type=float, help="Strength of the regularisation.")
@click.option("--early-stopping/--no-early-stopping", default=None, help="Stop when validation users gain nothing.")
@click.option("--user-column", metavar="NAME", help="Column with the ids of USERS.")
@click.option("--item-column", metavar="NAME", help="Column with the names of ITEMS.")
@click.option("--user-feature", "user_features", multiple=True, metavar="NAME", help="Use these columns; repeatable.")
@click.option("--item-feature", "item_features", multiple=True, metavar="NAME", help="Use these columns; repeatable.")
@click.option(
    "--seed", "random_state", type=int, default=0, show_default=True, help="Of the validation split and the networks."
)
@click.option("--json", "as_json", is_flag=True, help="Print the curves and settings as JSON.")
def learn(
    users: Path,
    items: Path,
    rankings: Path,
    target: Path,
    user_features: tuple[str, ...],
    item_features: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Learn who prefers what, from privatized RANKINGS and tables of features.

    USERS and ITEMS are CSV or Parquet files with a column of ids and columns of numbers. RANKINGS.release.json, which
    `rankdp privatize` writes, says which noise to undo.
    """
    from rankdp.learn import learn_files

    settings = {name: value for name, value in options.items() if value is not None}
    done = learn_files(
        users,
        items,
        rankings,
        target,
        user_features=user_features or None,
        item_features=item_features or None,
        **settings,
    )
    if as_json:
        click.echo(json.dumps({"out": str(target), **json.loads(done.report.json())}, indent=2))
        return
    for words in (*done.report.words, *done.report.footer):
        say(words)
    if done.report.release:
        say(done.report.release.explain())
    say(f"{target}: the model and report.html")
