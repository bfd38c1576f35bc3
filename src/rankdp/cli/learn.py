"""`rankdp learn` and `rankdp predict`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import MECHANISM_OR_AUTO, PATH, choice, option
from rankdp.cli.terminal import say


@click.command()
@click.argument("users", metavar="USERS", type=PATH)
@click.argument("items", metavar="ITEMS", type=PATH)
@click.argument("rankings", metavar="RANKINGS", type=PATH)
@option("--output -o target", "New directory for the model and its report.", "DIR", PATH, required=True)
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
@option("--mechanism", "Without a sidecar: the mechanism that made RANKINGS.", type=MECHANISM_OR_AUTO)
@option("--epsilon -e", "With --mechanism: the epsilon of every ranking.", "NUMBER")
@option("--epsilon-column", "With --mechanism: the column with each user's own epsilon.", "NAME")
@option("--debias/--naive", "Debias the labels, or train on them as they are.", default=True)
@option("--interaction/--common", "Linear model: a ranking for each user (default), or one for all.", default=None)
@option("--l2", "Strength of the L2 regularisation.", type=float)
@option("--early-stopping/--no-early-stopping", "Stop when the loss of held-out users no longer falls.", default=None)
@option("--user-column", "Column of USERS with the ids, if not recognised.", "NAME")
@option("--item-column", "Column of ITEMS with the names, if not recognised.", "NAME")
@option(
    "--user-feature user_features", "Column of USERS to use; may be repeated. Without it: all.", "NAME", multiple=True
)
@option(
    "--item-feature item_features", "Column of ITEMS to use; may be repeated. Without it: all.", "NAME", multiple=True
)
@option("--seed random_state", "Seed of the split into training and validation and of the start.", default=0)
@option("--json as_json", "Print the curves and settings as JSON.", is_flag=True)
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

    USERS and ITEMS are tables of features (CSV, JSON, Excel or Parquet): a column of ids and columns of numbers.
    RANKINGS is a file written by `rankdp privatize`; its sidecar RANKINGS.release.json says which noise to correct for.
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
    for words in (*done.report.words, *done.report.computed):
        say(words)
    if done.report.release:
        say(done.report.release.explain())
    say(f"{target}: the model and report.html")


@click.command()
@click.argument("model", metavar="MODEL", type=PATH)
@click.argument("users", metavar="USERS", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@option("--items", "Table of other items, with the features that the model was trained on.", "FILE", PATH)
@option("--user-column", "Column of USERS with the ids, if not recognised.", "NAME")
@option("--item-column", "Column of the items' table with the names, if not recognised.", "NAME")
def predict(
    model: Path, users: Path, target: Path, items: Path | None, user_column: str | None, item_column: str | None
) -> None:
    """Rank items for users by a model that `rankdp learn` wrote.

    MODEL is its directory, USERS a table with an id and the features of each user. OUT gets one ranking per user, best
    first, as CSV, Parquet or PrefLib by its ending. Predicting costs no privacy.
    """
    from rankdp.learn import predict_files

    rankings = predict_files(model, users, items, user_column=user_column, item_column=item_column)
    rankings.write(target)
    say(f"{target}: {len(rankings):,} predicted ranking{'s' if len(rankings) > 1 else ''}")
