"""``rankdp learn``: features of users and items and their rankings from files, a model and a report into a directory.

Rankings are joined to users by the voter's id, where the file has ids, and row by row where it has none. What made them
is read from RANKINGS.release.json, which ``privatize`` writes, unless the caller says it. The directory appears whole
or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.aggregation.origin import Origin
from rankdp.checks import one_of
from rankdp.data.atomic import new_directory, write_whole
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError
from rankdp.learn.estimator import PairwiseRanker
from rankdp.learn.feature_tables import ITEM_COLUMNS, USER_COLUMNS, Features, read_features
from rankdp.learn.models import MODELS
from rankdp.learn.training_report import train_report
from rankdp.privacy.exact import Real, positive
from rankdp.report.document import Report
from rankdp.types import Longs


@dataclass(frozen=True, slots=True)
class Learned:
    """What ``learn_files`` did."""

    model: PairwiseRanker
    report: Report
    target: Path


def learn_files(
    users: str | os.PathLike[str],
    items: str | os.PathLike[str],
    rankings: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    model: str = "linear",
    mechanism: str | None = None,
    epsilon: Real | None = None,
    epsilon_column: str | None = None,
    user_column: str | None = None,
    item_column: str | None = None,
    user_features: Iterable[str] | None = None,
    item_features: Iterable[str] | None = None,
    **settings: Any,
) -> Learned:
    """Train on files and write model.npz, report.html and curves.json into a new directory.

    RANKINGS.release.json, which ``privatize_file`` writes, says what made the rankings and what is promised about them;
    what the caller says must agree with it. Rankings without it and without ``mechanism`` count as true.

    Parameters
    ----------
    users, items
        Tables of features, with a column of ids.
    rankings
        The file of rankings; they are joined to users by the voters' ids, or row by row where there are none.
    target
        The new directory.
    model
        "linear" or "two-tower".
    mechanism
        The name of what made the rankings.
    epsilon
        At which epsilon.
    epsilon_column
        The column with each user's own epsilon, instead of ``epsilon``.
    user_column, item_column
        The columns with the ids of users and items.
    user_features, item_features
        The columns to use; all columns of numbers if not given.
    settings
        Those of the model: loss, l2, debias, early_stopping, random_state, ….
    """
    one_of("model", model, MODELS)
    try:
        ranker = MODELS[model](**settings)
    except TypeError:
        names = MODELS[model]._get_param_names()
        wrong = ", ".join(sorted(set(settings) - set(names)))
        raise InputError(f"a {model} model has no setting {wrong}; it has {', '.join(names)}") from None
    goal = _free(target)
    people = read_features(users, USER_COLUMNS, user_column, user_features)
    things = read_features(items, ITEM_COLUMNS, item_column, item_features)
    stated, release = Origin.beside(rankings), None
    made_by: Any = mechanism
    exact = None if epsilon is None else positive(epsilon)
    if stated is not None:
        origin, release = stated
        origin.check(mechanism, epsilon, epsilon_column)
        made_by, exact, epsilon_column = release.provenance.parameters, None, origin.epsilon_column
    table = Rankings.read(rankings, items=things.ids, epsilon_column=epsilon_column)
    rows, unranked = _matched(table, people, os.fspath(users), os.fspath(rankings))
    ranker.fit(people.values[rows], things.values, table, mechanism=made_by, epsilon=exact)
    report = train_report(ranker, _notes(table, people, things, unranked, known=made_by is not None), release)
    _write(goal, ranker, report, people, things)
    return Learned(ranker, report, goal)


def _free(target: str | os.PathLike[str]) -> Path:
    goal = Path(target)
    if goal.exists() and not (goal.is_dir() and not any(goal.iterdir())):
        raise InputError(f"{os.fspath(target)}: this exists already; a model goes into a new directory")
    return goal


def _matched(table: Rankings, people: Features, users: str, rankings: str) -> tuple[Longs, int]:
    """For every ranking its row of the user table; and how many users have no ranking."""
    if table.voters is None:
        if len(table) != len(people.ids):
            raise InputError(
                f"{rankings}: rankings without ids must be as many as the users, got {len(table)} for "
                f"{len(people.ids)} users"
            )
        return np.arange(len(table)), 0
    row_of = {name: row for row, name in enumerate(people.ids)}
    voters = [str(voter) for voter in table.voters.tolist()]
    for row, voter in enumerate(voters, 1):
        if voter not in row_of:
            raise InputError(f"{rankings}, row {row}: there is no user {voter!r} in {users}")
    return np.array([row_of[voter] for voter in voters]), len(people.ids) - len(set(voters))


def _notes(
    table: Rankings,
    people: Features,
    things: Features,
    unranked: int,
    *,
    known: bool,
) -> tuple[str, ...]:
    words = [
        f"{len(table):,} rankings of {len(things.ids)} items; user features: {', '.join(people.names)}; "
        f"item features: {', '.join(things.names)}."
    ]
    if left_out := [*people.left_out, *things.left_out]:
        words.append(f"Columns left out: {', '.join(left_out)}.")
    if unranked:
        words.append(f"{unranked:,} users have no ranking and were left out.")
    if not known:
        words.append("The rankings count as true: no mechanism was named and no release file lies beside them.")
    words.append("Only the rankings were privatized; nothing here protects the features of users and items.")
    return tuple(words)


def _write(goal: Path, ranker: PairwiseRanker, report: Report, people: Features, things: Features) -> None:
    """All files under a temporary name, then the directory's own."""
    with new_directory(goal) as directory:
        ranker.save(directory / "model.npz")
        report.write(directory / "report.html")
        report.write(directory / "curves.json")
        facts = {"user_features": people.names, "item_features": things.names, "items": things.ids}
        write_whole(directory / "features.json", (json.dumps(facts, indent=2) + "\n").encode())
