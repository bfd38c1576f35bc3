"""``rankdp learn``: features of users and items and their rankings from files, a model and a report into a directory.

A table of features is any file of a table (`rankdp.data.tables`) with a column of ids and columns of numbers. Columns
that hold anything else are left out, and told; a blank or missing number is refused, with its row.

Rankings are joined to users by the voter's id, where the file has ids, and row by row where it has none. What made them
is read from RANKINGS.release.json, which ``privatize`` writes, unless the caller says it. The directory appears whole
or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdp.aggregation.origin import Origin
from rankdp.checks import one_of
from rankdp.data.atomic import new_directory, write_whole
from rankdp.data.cells import numbers, row_number, text_of
from rankdp.data.columns import first_known, listed_names
from rankdp.data.rankings import Rankings
from rankdp.data.tables import Files, a_file, find_files
from rankdp.errors import InputError, system_problem
from rankdp.errors import settings as named
from rankdp.learn.estimator import History, PairwiseRanker
from rankdp.learn.linear import LinearPairwiseRanker
from rankdp.learn.towers import TwoTowerRanker
from rankdp.privacy.exact import Real, positive
from rankdp.report.document import Report
from rankdp.report.plots import SERIES, new_figure
from rankdp.report.results import Table
from rankdp.types import Floats, Longs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankdp.privacy.release import Release

_KINDS = {"loss": "mean loss per pair", "accuracy": "share of pairs in order"}
_USERS = ("train", "validation")

USER_COLUMNS = ("user_id", "user", "voter", "voter_id", "id")
ITEM_COLUMNS = ("item", "name", "item_name", "item_id", "id")
_MODELS: dict[str, type[PairwiseRanker]] = {"linear": LinearPairwiseRanker, "two-tower": TwoTowerRanker}

load = PairwiseRanker.load  # finds the class by its name, among those imported above


def predict_files(
    model: str | os.PathLike[str],
    users: str | os.PathLike[str],
    items: str | os.PathLike[str] | None = None,
    *,
    user_column: str | None = None,
    item_column: str | None = None,
) -> Rankings:
    """The rankings that a model expects of users, from the directory that ``learn_files`` wrote.

    Parameters
    ----------
    model
        That directory.
    users
        A table with an id and the features of each user, in any order of columns.
    items
        Other items than the model was trained on: a table with a name and the features of each.
    user_column, item_column
        The columns with the ids of users and items.
    """
    home = Path(model)
    try:
        facts = dict(json.loads((home / "features.json").read_text("utf-8")))
        user_features, item_features = facts["user_features"], facts["item_features"]
    except OSError as problem:
        raise system_problem(str(home / "features.json"), problem, "read") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{home / 'features.json'}: this is not what rankdp learn wrote") from None
    ranker = load(home / "model.npz")
    people = read_features(users, USER_COLUMNS, user_column, user_features)
    things = None if items is None else read_features(items, ITEM_COLUMNS, item_column, item_features)
    expected = ranker.rank(people.values, None if things is None else things.values)
    return Rankings.from_orders(expected.orders, expected.items if things is None else things.ids, voters=people.ids)


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
        Settings of the model: loss, l2, debias, early_stopping, random_state, ….
    """
    one_of("model", model, _MODELS)
    try:
        ranker = _MODELS[model](**settings)
    except TypeError:
        names = _MODELS[model]._get_param_names()
        wrong = named(sorted(set(settings) - set(names)))
        raise InputError(f"a {model} model has no setting ", *wrong, "; it has ", *named(names)) from None
    goal = Path(target)
    if goal.exists() and not (goal.is_dir() and not any(goal.iterdir())):
        raise InputError(f"{os.fspath(target)}: this exists already; a model goes into a new directory")
    people = read_features(users, USER_COLUMNS, user_column, user_features)
    things = read_features(items, ITEM_COLUMNS, item_column, item_features)
    stated, release = Origin.of_file(rankings), None
    made_by: Any = mechanism
    exact = None if epsilon is None else positive(epsilon)
    offset_column = None
    if stated is not None:
        origin, release = stated
        offset_column = origin.offset_column
        origin.check(mechanism, epsilon, epsilon_column)
        made_by, exact, epsilon_column = release.provenance.parameters, None, origin.epsilon_column
    table = Rankings.read(
        rankings, items=things.ids, ties="keep", epsilon_column=epsilon_column, offset_column=offset_column
    )
    rows, unranked = _matched(table, people, os.fspath(users), os.fspath(rankings))
    ranker.fit(people.values[rows], things.values, table, mechanism=made_by, epsilon=exact)
    report = train_report(ranker, _notes(table, people, things, unranked, known=made_by is not None), release)
    facts = {"user_features": people.names, "item_features": things.names, "items": things.ids}
    with new_directory(goal) as directory:
        ranker.save(directory / "model.npz")
        report.write(directory / "report.html")
        report.write(directory / "curves.json")
        write_whole(directory / "features.json", (json.dumps(facts, indent=2) + "\n").encode())
    return Learned(ranker, report, goal)


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


def _notes(table: Rankings, people: Features, things: Features, unranked: int, *, known: bool) -> tuple[str, ...]:
    words = [
        f"{len(table):,} rankings of {len(things.ids)} items; user features: {', '.join(people.names)}; "
        f"item features: {', '.join(things.names)}."
    ]
    if left_out := [*people.left_out, *things.left_out]:
        words.append(f"Columns left out: {', '.join(left_out)}.")
    if unranked:
        words.append(f"{unranked:,} users have no ranking and were left out.")
    if not known:
        words.append("The rankings count as true: no mechanism was named and there is no release file for them.")
    words.append("Only the rankings were privatized; nothing here protects the features of users and items.")
    return tuple(words)


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Rows of numbers, each with an id."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    values: Floats
    left_out: tuple[str, ...]


def read_features(
    path: str | os.PathLike[str],
    known: Sequence[str],
    id_column: str | None = None,
    columns: Iterable[str] | None = None,
) -> Features:
    """The ids and features of a file; ``columns`` chooses some, all columns of numbers by default."""
    name = os.fspath(path)
    with a_file(name, "features"):
        table = find_files(name)
    header = list(table.kinds)
    own = first_known(header, known) if id_column is None else id_column
    if own is None or own not in header:
        hint = f"must be given (no column is called {' or '.join(known)})" if own is None else f"is {own!r}"
        raise InputError(f"{name}: the column of ids {hint}, and the columns are {listed_names(header)}")
    chosen = header if columns is None else list(columns)
    for column in chosen:
        if column not in header:
            raise InputError(f"{name}: there is no column {column!r}; the columns are {listed_names(header)}")
    flat = [column for column in header if table.kinds[column] in ("text", "whole", "number")]
    cells, where = _cells(table, dict.fromkeys([own, *(column for column in chosen if column in flat)]))
    ids = tuple(text_of(cell) or "" for cell in cells.pop(own).to_pylist())
    _check_ids(own, ids, where)
    read = {column: _numbers(column, held) for column, held in cells.items()}
    values = {column: found for column, found in read.items() if found is not None}
    for column in chosen if columns is not None else ():
        if column not in values:
            raise InputError(f"{name}: column {column!r} must hold numbers, to be a feature")
    if not values:
        raise InputError(f"{name}: there is no column of numbers other than {own!r}; at least one feature is needed")
    for column, found in values.items():
        for row in np.flatnonzero(~np.isfinite(found))[:1].tolist():
            blank = "is blank; every feature needs a number"
            problem = blank if np.isnan(found[row]) else f"must be a finite number, got {found[row]}"
            raise InputError(f"{where(row)}: {column} {problem}")
    left_out = tuple(column for column in header if column != own and column not in values)
    return Features(ids, tuple(values), np.column_stack(list(values.values())), left_out)


def _cells(table: Files, columns: Iterable[str]) -> tuple[dict[str, Any], Callable[[int], str]]:
    """The cells of columns, and the place of a row in the file."""
    import pyarrow as pa

    wanted = list(columns)
    batches = [batch for _, _, batch in table.batches(wanted, plain=wanted)]
    whole = pa.Table.from_batches(batches) if batches else None
    if not whole:
        raise InputError(f"{table.what}: there are no rows")
    return {name: whole.column(name) for name in wanted}, partial(table.where, 0)


def _check_ids(column: str, ids: tuple[str, ...], where: Callable[[int], str]) -> None:
    seen: dict[str, int] = {}
    for row, identifier in enumerate(ids):
        if not identifier:
            raise InputError(f"{where(row)}: the {column} is blank")
        if (first := seen.setdefault(identifier, row)) != row:
            before = where(first).rpartition(", ")[2]
            raise InputError(f"{where(row)}: {column} {identifier!r} is there twice, first in {before}")


def _numbers(name: str, cells: Any) -> Floats | None:
    """The numbers of a column, NaN where a cell is blank; None if some cell says something else, or none a number."""
    try:
        values = numbers(cells, name, row_number)
    except InputError:
        return None
    return None if np.isnan(values).all() else values


def train_report(model: PairwiseRanker, notes: Sequence[str] = (), release: Release[Any] | None = None) -> Report:
    """The report of a fitted model: its learning curves, the numbers of the epoch that was kept, and its settings.

    Where labels are debiased, losses and accuracies are estimates of those on the true rankings, which nobody has seen.
    What no true one can be, a negative loss or a share above 1, is called noise.

    Parameters
    ----------
    model
        A model after ``fit``.
    notes
        Sentences about the data, for the reader.
    release
        What is promised about the rankings that the model was fitted to.
    """
    model._check_fitted()
    name, settings, history = type(model).__name__, dict(model.get_params()), model.history_
    curves = {f"{users}_{kind}": getattr(history, f"{users}_{kind}") for kind in _KINDS for users in _USERS}
    known = {curve: values for curve, values in curves.items() if values}
    at = history.best_epoch
    numbers = [
        [f"{words}, epoch {at}", *(_shown(kind, curves[f"{users}_{kind}"], at) for users in _USERS)]
        for kind, words in _KINDS.items()
    ]
    notes = [*notes, *filter(None, [getattr(model, "labels_", "")])]
    return Report(
        title=f"Training of a {name}",
        records=[
            {"epoch": epoch, **{curve: values[epoch] for curve, values in known.items()}}
            for epoch in range(len(history))
        ],
        facts=lambda: {"model": name, "settings": settings, "curves": asdict(history), "notes": list(notes)},
        tables=[
            Table(["", "train users", "validation users"], numbers),
            Table(["setting", "value"], [[setting, str(value)] for setting, value in settings.items()]),
        ],
        words=notes,
        computed=[f"{len(history)} epochs; training ended: {history.stopped}."],
        figure=lambda: _curves(history, f"{name}, {settings.get('loss')} loss"),
        release=release,
    )


def _shown(kind: str, curve: Sequence[float], at: int) -> str:
    """The number of the epoch that was kept; what no true one can be is called noise."""
    if not curve:
        return "–"
    possible = curve[at] >= 0 and (kind == "loss" or curve[at] <= 1)
    return f"{curve[at]:.4f}" + ("" if possible or np.isnan(curve[at]) else " (noise)")


def _curves(history: History, title: str) -> Figure:
    """Loss and accuracy by epoch, of training and validation users."""
    figure, panels = new_figure(2, 10, 3.8)
    for panel, (kind, words) in zip(panels, _KINDS.items(), strict=True):
        for colour, users in zip(SERIES, _USERS, strict=False):
            if curve := getattr(history, f"{users}_{kind}"):
                start = int(kind == "accuracy" and curve[0] == 0 and len(curve) > 1)  # before it all items tie
                panel.plot(range(start, len(curve)), curve[start:], color=colour, label=f"{users} users")
        panel.axvline(history.best_epoch, color="0.7", linewidth=0.8, linestyle=":", label="kept")
        panel.set(xlabel="epoch", ylabel=words)
        panel.legend(frameon=False)
    figure.suptitle(title)
    return figure
