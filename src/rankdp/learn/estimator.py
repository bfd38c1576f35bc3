"""What every ranker shares: checking what comes in, ranking, scoring, and a file that holds no code.

A ranker gives user u's item i a score f(u, i); *a higher score means more preferred*, and only differences between the
scores of one user mean anything. It follows scikit-learn: parameters in the constructor, ``fit``, ``predict``,
``score``, ``clone``. ``fit(users, items, rankings)`` says everything; ``fit(X, y)`` with y = rankings does without item
features and gives every item its own feature.

Rankings are a ``rankdp.Rankings``, a release of one, or an n x m array of *orders*: item numbers from 0, the most
preferred first, -1 after the last listed item. (An array of ranks looks alike and is not: see ``Rankings.from_ranks``.)

A saved model is one .npz file: numbers, and one JSON text about them. Reading it runs nothing.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np

from rankdp.checks import number, one_of, share, whole
from rankdp.data.atomic import write_whole
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Setting, Unsupported, system_problem
from rankdp.learn.labels import Labels, labels_of
from rankdp.learn.losses import LOSSES, score_accuracy
from rankdp.privacy.release import Release
from rankdp.progress import tell
from rankdp.types import Floats, Longs
from rankdp.version import __version__

Part = tuple[Floats, Labels]
"""Some users: their features and what their rankings say."""

CURVE_USERS = 20_000  # whose accuracy is looked at after every epoch
_FORMAT = "rankdp model 1"
_SCALES = ("user_mean_", "user_scale_", "item_mean_", "item_scale_", "item_table_")

try:
    from sklearn.base import BaseEstimator
except ImportError:  # the classes can be named without it, and say what is missing when one is made

    class BaseEstimator:  # type: ignore[no-redef]
        """Stands in for scikit-learn's."""

        def __new__(cls, *_: object, **__: object) -> Self:
            """Say what is missing."""
            raise Unsupported("learning needs scikit-learn: pip install 'rankdp[learn]'")


@dataclass(slots=True)
class History:
    """Learning curves as plain data: one entry per epoch.

    With validation users the parameters of the epoch with their smallest loss are kept. Debiased labels make that loss
    an unbiased estimate of the loss on the validation users' *true* rankings, which are not seen.
    """

    train_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    best_epoch: int = 0
    """Counted from 0: the epoch whose parameters were kept."""
    stopped: str = ""
    """Why training ended."""
    first_epoch: int = 0
    """The first epoch with the loss that was asked for; psi starts with epochs of the logistic loss."""

    def __len__(self) -> int:
        return len(self.train_loss)

    def add(self, train: tuple[float, float], validation: tuple[float, float] | None, patience: int) -> None:
        """One epoch: loss and accuracy of both. Says in ``stopped`` when ``patience`` epochs brought nothing better."""
        last = len(self)
        self.train_loss.append(train[0])
        self.train_accuracy.append(train[1])
        if validation is not None:
            self.validation_loss.append(validation[0])
            self.validation_accuracy.append(validation[1])
        if validation is None or last <= self.first_epoch or validation[0] < self.validation_loss[self.best_epoch]:
            self.best_epoch = last
        tell("training", last)
        gone = last - self.best_epoch >= patience
        self.stopped = f"no better validation loss in {patience} epochs" if gone else ""

    @property
    def improved(self) -> bool:
        """Whether the last epoch is the best so far."""
        return self.best_epoch == len(self) - 1


class PairwiseRanker(BaseEstimator):  # type: ignore[misc]
    """What both rankers share; a subclass has ``_train`` and ``_scores``, and lists what it learns in ``_arrays``."""

    #: what a subclass learns: names of arrays, saved and loaded
    _arrays: ClassVar[tuple[str, ...]] = ()

    # -- learning
    # ------------------------------------------------------------------------------------------------------------

    def fit(
        self,
        users: Any,
        y: Any = None,
        rankings: Any = None,
        *,
        items: Any = None,
        mechanism: str | Mapping[str, Any] | None = None,
        epsilon: Any = None,
    ) -> Self:
        """Learn from features of users and items and a ranking of each user: ``fit(users, items, rankings)``.

        Also ``fit(users, rankings)`` and, as scikit-learn calls it, ``fit(users, rankings, items=items)``.

        Parameters
        ----------
        users
            An n x d table of numbers: the features of each user.
        y
            The items' features, or the rankings if ``rankings`` is not given.
        rankings
            A ``Rankings``, a release of one, or an n x m array of orders; row u is of user u.
        items
            The items' features, if they are not given as the second argument: an m x e table whose row i describes
            item number i (``rankings.items[i]``). Without them every item has its own score.
        mechanism
            The mechanism that made the rankings, by name or as the ``provenance.parameters`` of its release; without
            it the rankings count as true. A release of rankings knows its own.
        epsilon
            The epsilon of the rankings: one number, one for each user, or None for ``rankings.epsilons``.
        """
        if rankings is None:
            y, rankings = None, y
        if y is not None:
            if items is not None:
                raise InputError("items were given twice: as the second argument and by name")
            items = y
        one_of("loss", self.loss, LOSSES)
        self._check_settings()
        features = self._checked_users(users, reset=True)
        table = self._checked_rankings(rankings, None if items is None else len(items), len(features))
        names = _value(table).items
        self.item_features_ = items is not None
        self.item_table_ = np.eye(len(names)) if items is None else _matrix(items)
        if len(self.item_table_) != len(names):
            raise InputError(f"items must have one row for each of the {len(names)} ranked items, got {len(items)}")
        labels = labels_of(
            table,
            mechanism,
            epsilon,
            debias=bool(self.debias),
            users=None if self.debias == "always" else self._users_per_parameter(features),
            combine=self.combine,
            pairs=self.loss != "logistic",
        )
        self.labels_ = labels.note
        if self.debias and (mechanism is not None or isinstance(table, Release)) and self.l2 <= 0:
            raise InputError(
                f"l2 must be above 0 with debiased labels, without it the loss may have no minimum, got {self.l2!r}"
            )
        self.items_ = names
        self._learn(features, labels)
        return self

    def _users_per_parameter(self, users: Floats) -> float:
        """How many users there are per product of a user's and an item's feature."""
        own = users.shape[1] if getattr(self, "interaction", True) else 0
        return max(1.0, len(users) / float((1 + own) * self.item_table_.shape[1]))

    def _learn(self, users: Floats, labels: Labels) -> None:
        """Scale the features to mean 0 and standard deviation 1, split off the validation users, train."""
        count = len(self.item_table_)
        self.user_mean_, self.user_scale_ = _scaling(users)
        self.item_mean_, self.item_scale_ = (
            _scaling(self.item_table_) if self.item_features_ else (np.zeros(count), np.ones(count))
        )
        generator = self._generator()
        users = (users - self.user_mean_) / self.user_scale_
        kept, held = self._split(len(users), generator)
        train = (users, labels) if held is None else (users[kept], labels.rows(kept))
        validation = None if held is None else (users[held], labels.rows(held))
        if train[1].total <= 0 or (validation and validation[1].total <= 0):
            raise InputError("rankings must list two items or more, among training and validation users alike")
        items = (self.item_table_ - self.item_mean_) / self.item_scale_
        self.history_ = self._train(items, train, validation, generator)
        self.n_iter_ = len(self.history_)

    def _train(self, items: Floats, train: Part, validation: Part | None, generator: Any) -> History:
        raise NotImplementedError

    def _scores(self, users: Floats, items: Floats) -> Floats:
        raise NotImplementedError

    def _generator(self) -> Any:
        from sklearn.utils import check_random_state

        try:
            return check_random_state(self.random_state)
        except ValueError:
            raise InputError(
                Setting("random_state"), f" must be None or a seed from 0 on, got {self.random_state!r}"
            ) from None

    def _split(self, rows: int, generator: Any) -> tuple[Longs, Longs | None]:
        """Which users train and which validate."""
        if not self.early_stopping:
            return np.arange(rows), None
        held = max(1, round(self.validation_fraction * rows))
        if held >= rows:
            raise InputError(f"early stopping needs users to train on besides {held} to validate, got {rows} users")
        order = generator.permutation(rows)
        return np.sort(order[held:]), np.sort(order[:held])

    # -- using
    # ------------------------------------------------------------------------------------------------------------

    def predict(self, users: Any, items: Any = None) -> Floats:
        """An n x m table of scores; a higher one is more preferred.

        Parameters
        ----------
        users
            An n x d table of the users' features.
        items
            The features of items other than the ones in ``fit``.
        """
        self._check_fitted()
        return self._scores(self._checked_users(users, reset=False), self._described(items))

    def rank(self, users: Any, items: Any = None) -> Rankings:
        """Each user's items, best first; equal scores in the order of the items.

        Parameters
        ----------
        users, items
            As in ``predict``.
        """
        orders = np.argsort(-self.predict(users, items), axis=1, kind="stable").astype(np.int32)
        return Rankings.from_orders(orders, self._names(items))

    def score(
        self,
        users: Any,
        y: Any = None,
        *,
        items: Any = None,
        mechanism: str | Mapping[str, Any] | None = None,
        epsilon: Any = None,
    ) -> float:
        """The share of pairs that the scores order as the rankings do: Xu's (11), times two so that 1 is perfect.

        Parameters
        ----------
        users, items
            As in ``predict``.
        y
            The rankings, one for each user, in the forms that ``fit`` takes.
        mechanism, epsilon
            What made synthetic rankings, as for ``fit``: the answer is then an unbiased estimate of the share on the
            true ones, which may leave [0, 1], or, where the noise cannot be removed, one that is pulled towards 1/2.
        """
        scores = self.predict(users, items)
        names = self._names(items)
        table = self._renumbered(self._checked_rankings(y, len(names), len(scores)), names)
        try:
            labels = labels_of(table, mechanism, epsilon, combine=self.combine)
        except Unsupported:
            labels = labels_of(table, mechanism, epsilon, combine=self.combine, users=float(len(scores)))
        return score_accuracy(scores, labels)

    def _names(self, items: Any) -> tuple[str, ...]:
        if items is None:
            return self.items_
        return tuple(map(str, range(len(self._described(items)))))

    def _described(self, items: Any) -> Floats:
        if items is None:
            return self.item_table_
        if not self.item_features_:
            raise InputError("items must not be given: the model was fitted without features of items")
        table = _matrix(items)
        if table.shape[1] != self.item_table_.shape[1]:
            raise InputError(f"items must have {self.item_table_.shape[1]} features, got {table.shape[1]}")
        return table

    # -- checking
    # ------------------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        number("l2", self.l2, 0)
        one_of("debias", str(self.debias), ("True", "False", "always"))
        for name in ("patience", "max_epochs"):
            whole(name, getattr(self, name), 1)
        share("validation_fraction", self.validation_fraction)

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "items_")

    def _checked_users(self, users: Any, *, reset: bool) -> Floats:
        from sklearn.utils.validation import validate_data

        try:
            return cast(Floats, validate_data(self, users, reset=reset, dtype=np.float64, order="C"))
        except ValueError as problem:
            first = str(problem).partition("\n")[0]
            advice = " Reshape your data to one row for each user" if first.startswith("Expected 2D array") else ""
            raise InputError(f"users: {first}{advice}") from None

    def _checked_rankings(self, rankings: Any, items: int | None, rows: int) -> Rankings | Release[Any]:
        """Rankings of this many items, or of the items that they name, for this many users."""
        if rankings is None:
            name = type(self).__name__
            raise InputError(f"rankings must be given: {name} requires y to be passed, but the target y is None")
        table: Rankings | Release[Any] = rankings
        if not isinstance(rankings, (Rankings, Release)):
            array = np.asarray(rankings)
            if array.ndim != 2 or array.dtype.kind not in "iu" or not array.size:
                shape = " x ".join(map(str, array.shape))
                raise InputError(
                    "rankings must be a rankdp.Rankings or an n x m array of orders (item numbers from 0, best first), "
                    f"got {shape or 'a scalar'} of {array.dtype}"
                )
            table = Rankings.from_orders(array, None if items is None else map(str, range(items)))
        if len(_value(table)) != rows:
            raise InputError(f"rankings must have one row for each of the {rows} users, got {len(_value(table))}")
        return table

    def _renumbered(self, table: Rankings | Release[Any], names: tuple[str, ...]) -> Rankings | Release[Any]:
        """The rankings with the model's item numbers."""
        ranked = _value(table)
        if ranked.items == names:
            return table
        if isinstance(table, Release) or not set(ranked.items) <= set(names):
            raise InputError(f"rankings must be of the model's items, {', '.join(names[:5])}, …, got others")
        numbers = np.array([*(names.index(name) for name in ranked.items), -1], dtype=np.int32)
        return Rankings.from_orders(numbers[ranked.orders], names, ranked.voters, ranked.epsilons)

    def __sklearn_tags__(self) -> Any:
        """y is needed, and it is a table."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    # -- keeping
    # ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, all or nothing: NumPy arrays and a JSON text, no pickle.

        Parameters
        ----------
        path
            The file; an existing one is replaced.
        """
        self._check_fitted()
        facts = {
            "format": _FORMAT,
            "version": __version__,
            "class": type(self).__name__,
            "parameters": self.get_params(),
            "items": list(self.items_),
            "item_features": self.item_features_,
            "features": list(map(str, getattr(self, "feature_names_in_", ()))),
            "history": asdict(self.history_),
        }
        arrays = {name: np.asarray(getattr(self, name)) for name in (*_SCALES, *self._arrays)}
        text = json.dumps(facts, default=lambda value: value.item() if isinstance(value, np.generic) else None)
        arrays["about"] = np.frombuffer(text.encode(), dtype=np.uint8)  # a generator is not kept
        sink = io.BytesIO()
        np.savez_compressed(sink, allow_pickle=False, **arrays)
        write_whole(path, sink.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A model as it was saved; ``rankdp.learn.load`` takes a model of any class.

        Parameters
        ----------
        path : path
            A file that ``save`` wrote.
        """
        name = os.fspath(path)
        kinds = {kind.__name__: kind for kind in (cls, *cls.__subclasses__())}
        try:
            with np.load(io.BytesIO(Path(name).read_bytes()), allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
            facts = dict(json.loads(arrays.pop("about").tobytes()))
            if facts["format"] == _FORMAT and facts["class"] in kinds:
                return kinds[facts["class"]](**facts["parameters"])._restored(facts, arrays)
            problem = f"this is a {facts['class']}, not a {cls.__name__}"
        except OSError as refusal:
            raise system_problem(name, refusal, "read") from None
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
            problem = "this is not a whole model saved by rankdp"
        raise InputError(f"{name}: {problem}")

    def _restored(self, facts: dict[str, Any], arrays: dict[str, Any]) -> Self:
        for key in (*_SCALES, *self._arrays):
            setattr(self, key, arrays[key])
        self.items_ = tuple(facts["items"])
        self.item_features_ = facts["item_features"]
        self.n_features_in_ = len(arrays["user_mean_"])
        if facts["features"]:
            self.feature_names_in_ = np.array(facts["features"], dtype=object)
        self.history_ = History(**facts["history"])
        self.n_iter_ = len(self.history_)
        return self


def _value(table: Rankings | Release[Any]) -> Rankings:
    return table.value if isinstance(table, Release) else table


def _scaling(table: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every column; 1 for a constant one."""
    scale = table.std(axis=0)
    scale[scale <= 1e-12 * np.abs(table).max(axis=0)] = 1.0
    return table.mean(axis=0), scale


def _matrix(items: Any) -> Floats:
    try:
        matrix = np.array(items, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("items must be a table of numbers, one row each") from None
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"items must be a table of numbers, one row each, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"items must hold finite numbers, got {matrix[row, column]} in row {row + 1}")
    return matrix
