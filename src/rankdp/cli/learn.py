"""`rankdp learn` and `rankdp predict`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import MECHANISM_OR_AUTO, PATH, choice
from rankdp.cli.terminal import say


@click.command()
@click.argument("users", metavar="USERS", type=PATH)
@click.argument("items", metavar="ITEMS", type=PATH)
@click.argument("rankings", metavar="RANKINGS", type=PATH)
@click.option(
    "--output",
    "-o",
    "target",
    type=PATH,
    metavar="DIR",
    required=True,
    help="New directory for the model and its report.",
)
@choice(
    "--model",
    ["linear", "two-tower"],
    help="A linear score of the features, or a neural network for users and one for items.",
)
@choice(
    "--loss",
    ["logistic", "exponential", "psi"],
    help="Loss of a pair of items; psi is the bounded one, min(1, (1 - d)+) (Xu, Section 5.1).",
)
@click.option("--mechanism", type=MECHANISM_OR_AUTO, help="Without a sidecar: the mechanism that made RANKINGS.")
@click.option("--epsilon", "-e", metavar="NUMBER", help="With --mechanism: the epsilon of every ranking.")
@click.option("--epsilon-column", metavar="NAME", help="With --mechanism: the column with each user's own epsilon.")
@click.option(
    "--debias/--naive", default=True, help="Undo the mechanism's bias in the labels, or train on them as they are."
)
@click.option(
    "--interaction/--common", default=None, help="Linear model: a ranking for each user (default), or one for all."
)
@click.option("--l2", type=float, help="Strength of the L2 regularisation.")
@click.option(
    "--early-stopping/--no-early-stopping", default=None, help="Stop when the loss of held-out users no longer falls."
)
@click.option("--user-column", metavar="NAME", help="Column of USERS with the ids, if not recognised.")
@click.option("--item-column", metavar="NAME", help="Column of ITEMS with the names, if not recognised.")
@click.option(
    "--user-feature",
    "user_features",
    multiple=True,
    metavar="NAME",
    help="Column of USERS to use; may be repeated. Without it: all.",
)
@click.option(
    "--item-feature",
    "item_features",
    multiple=True,
    metavar="NAME",
    help="Column of ITEMS to use; may be repeated. Without it: all.",
)
@click.option(
    "--seed", "random_state", default=0, help="Seed of the split into training and validation and of the start."
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
    """Train a model of preferences on privatized rankings.

    USERS and ITEMS are CSV or Parquet tables of features: a column of ids and columns of numbers. RANKINGS is a file
    written by `rankdp privatize`; its sidecar RANKINGS.release.json says which noise to undo.
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


@click.command()
@click.argument("model", metavar="MODEL", type=PATH)
@click.argument("users", metavar="USERS", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@click.option(
    "--items", type=PATH, metavar="FILE", help="Table of other items, with the features that the model was trained on."
)
@click.option("--user-column", metavar="NAME", help="Column of USERS with the ids, if not recognised.")
@click.option("--item-column", metavar="NAME", help="Column of the items' table with the names, if not recognised.")
def predict(
    model: Path, users: Path, target: Path, items: Path | None, user_column: str | None, item_column: str | None
) -> None:
    """Rank items for users by a model that `rankdp learn` wrote.

    MODEL is its directory, USERS a CSV or Parquet table with an id and the features of each user. OUT gets one ranking
    a user, best first: CSV, Parquet or PrefLib by its ending. Predicting costs no privacy.
    """
    from rankdp.learn import predict_files

    rankings = predict_files(model, users, items, user_column=user_column, item_column=item_column)
    rankings.write(target)
    say(f"{target}: {len(rankings):,} predicted ranking{'s' if len(rankings) > 1 else ''}")
