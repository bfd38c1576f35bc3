"""Two towers: f(u, i) = U(x_u) . V(y_i), two perceptrons of three layers and the dot product of what they say.

Xu, Section 6.3: ten units in each layer, Adam, early stopping on validation users. A mini-batch is a set of users with
*all* their pairs. PyTorch carries the towers and their derivatives; the loss and its derivative by every score come
from the kernels that the linear ranker uses, so that no batch writes its pairs down and both models mean the same by a
loss.

Only ``fit`` imports PyTorch: a fitted or loaded model predicts with NumPy. The psi-loss has no
slope where a pair is out of order, so its training starts from the towers that the logistic loss has found.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankdp.checks import number, whole
from rankdp.errors import Unsupported
from rankdp.learn.estimator import CURVE_USERS, History, PairwiseRanker, Part
from rankdp.learn.labels import Combine, Debias
from rankdp.learn.losses import score_accuracy, score_pass
from rankdp.types import Floats, Longs

_LAYERS = 3


@dataclass(eq=False, repr=False)
class TwoTowerRanker(PairwiseRanker):
    """Two perceptrons and a dot product, with debiased labels where the mechanism is known.

    Parameters
    ----------
    loss, debias, l2, early_stopping, validation_fraction, patience, max_epochs, combine, random_state
        As in ``LinearPairwiseRanker``.
    hidden : int
        Units of each layer.
    learning_rate : float
        The step of Adam.
    batch_size : int
        Users in a mini-batch, each with all their pairs.
    """

    _arrays: ClassVar[tuple[str, ...]] = tuple(
        f"{tower}_{what}_{layer}_"
        for tower in ("user", "item")
        for what in ("weight", "offset")
        for layer in range(_LAYERS)
    )

    loss: str = "logistic"
    _: KW_ONLY
    hidden: int = 10
    debias: Debias = True
    l2: float = 1e-4
    learning_rate: float = 0.01
    batch_size: int = 64
    early_stopping: bool = True
    validation_fraction: float = 0.2
    patience: int = 10
    max_epochs: int = 200
    combine: Combine = "precision"
    random_state: Any = None

    def _check_settings(self) -> None:
        super()._check_settings()
        number("learning_rate", self.learning_rate, 0)
        for name in ("hidden", "batch_size"):
            whole(name, getattr(self, name), 1)

    def _train(self, items: Floats, train: Part, validation: Part | None, generator: Any) -> History:
        torch = _torch()
        with torch.random.fork_rng():
            torch.manual_seed(int(generator.randint(2**31 - 1)))
            towers = [_tower(torch, table.shape[1], self.hidden) for table in (train[0], items)]
        fit = _Fit(torch, towers, items, self, generator)
        history = History()
        if self.loss == "psi":
            fit.run(train, validation, "logistic", history)
            history.first_epoch = len(history)
        fit.run(train, validation, self.loss, history)
        for name, tower in zip(("user", "item"), towers, strict=True):
            for layer, linear in enumerate(module for module in tower if hasattr(module, "weight")):
                setattr(self, f"{name}_weight_{layer}_", linear.weight.detach().numpy().T.copy())
                setattr(self, f"{name}_offset_{layer}_", linear.bias.detach().numpy().copy())
        return history

    def _scores(self, users: Floats, items: Floats) -> Floats:
        left = self._through("user", (users - self.user_mean_) / self.user_scale_)
        right = self._through("item", (items - self.item_mean_) / self.item_scale_)
        return np.asarray(left @ right.T)

    def _through(self, tower: str, table: Floats) -> Floats:
        for layer in range(_LAYERS):
            table = table @ getattr(self, f"{tower}_weight_{layer}_") + getattr(self, f"{tower}_offset_{layer}_")
            if layer < _LAYERS - 1:
                table = np.maximum(table, 0)
        return table


class _Fit:
    """Towers in training."""

    def __init__(self, torch: Any, towers: list[Any], items: Floats, settings: TwoTowerRanker, generator: Any) -> None:
        self.torch, self.towers, self.settings, self.generator = torch, towers, settings, generator
        self.items = torch.from_numpy(items)
        self.parameters = [parameter for tower in towers for parameter in tower.parameters()]

    def run(self, train: Part, validation: Part | None, loss: str, history: History) -> None:
        """Adam, epoch by epoch; the parameters of the best one are kept."""
        settings = self.settings
        adam = self.torch.optim.Adam(self.parameters, lr=settings.learning_rate, weight_decay=settings.l2)
        shown = train[0][:CURVE_USERS], train[1].rows(slice(CURVE_USERS))
        best = self._copies()
        for _ in range(settings.max_epochs):
            order = self.generator.permutation(len(train[0]))
            for start in range(0, len(order), settings.batch_size):
                self._step(adam, train, order[start : start + settings.batch_size], loss)
            judged = None if validation is None else self._judged(validation, loss)
            history.add(self._judged(shown, loss), judged, settings.patience)
            if history.improved:
                best = self._copies()
            if history.stopped:
                break
        history.stopped = history.stopped or f"after {settings.max_epochs} epochs"
        with self.torch.no_grad():
            for parameter, kept in zip(self.parameters, best, strict=True):
                parameter.copy_(kept)
        if not all(bool(self.torch.isfinite(parameter).all()) for parameter in self.parameters):
            raise Unsupported(f"the {loss} loss ran away: use the logistic loss, or a smaller learning_rate")

    def _step(self, adam: Any, train: Part, rows: Longs, loss: str) -> None:
        labels = train[1].rows(rows)
        if labels.total <= 0:
            return  # no user of this batch lists two items
        scores = self._scores(train[0][rows])
        gradient = score_pass(np.ascontiguousarray(scores.detach().numpy()), labels, loss)[1]
        adam.zero_grad()
        scores.backward(gradient=self.torch.from_numpy(gradient / labels.total))
        adam.step()

    def _judged(self, part: Part, loss: str) -> tuple[float, float]:
        with self.torch.no_grad():
            scores = np.ascontiguousarray(self._scores(part[0]).numpy())
        return score_pass(scores, part[1], loss)[0] / part[1].total, score_accuracy(scores, part[1])

    def _scores(self, users: Floats) -> Any:
        return self.towers[0](self.torch.from_numpy(np.ascontiguousarray(users))) @ self.towers[1](self.items).T

    def _copies(self) -> list[Any]:
        return [parameter.detach().clone() for parameter in self.parameters]


def _tower(torch: Any, width: int, hidden: int) -> Any:
    """Three linear layers with rectifiers in between, in double precision."""
    layers: list[Any] = []
    for before, after in pairwise([width, *[hidden] * _LAYERS]):
        layers += [torch.nn.Linear(before, after, dtype=torch.float64), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise Unsupported("two towers need PyTorch: pip install 'rankdp[learn]'") from None
