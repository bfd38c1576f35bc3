"""Training with a curve: a step, a look at the validation users, and a stop when they gain nothing any more.

A linear model is fitted by L-BFGS on the full gradient of

    mean loss over pairs + l2/2 (sum of the squared parameters),

where an epoch is one iteration. For the logistic loss this is convex, for every real label; with l2 above 0 it has
exactly one minimum. The psi-loss is neither convex nor sloped where a pair is out of order, so its training starts from
the best multiple of the logistic solution and finds a local minimum near it: it rarely turns round a pair that the
logistic solution has in the wrong order.

With validation users the parameters of the epoch with their smallest loss are kept. Debiased labels make that loss an
unbiased estimate of the loss on the validation users' *true* rankings, which are not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankdp.errors import Unsupported
from rankdp.learn.losses import LOSSES, STEEPEST, Loss
from rankdp.learn.objectives import Objective
from rankdp.types import Floats

_MEMORY = 10  # pairs of steps that L-BFGS remembers
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the logistic solution, from which the psi-loss starts


@dataclass(slots=True)
class History:
    """Learning curves as plain data: one entry per epoch."""

    train_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    best_epoch: int = 0
    """Counted from 0: the epoch whose parameters were kept."""
    stopped: str = ""
    """Why training ended."""
    first_epoch: int = 0
    """Where the loss that was asked for begins; before it stands the start with the logistic loss, for psi."""

    def __len__(self) -> int:
        return len(self.train_loss)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def add(self, train: tuple[float, float], validation: tuple[float, float] | None) -> None:
        """One epoch: loss and accuracy of both."""
        self.train_loss.append(train[0])
        self.train_accuracy.append(train[1])
        if validation is not None:
            self.validation_loss.append(validation[0])
            self.validation_accuracy.append(validation[1])

    def improves(self, patience: int) -> bool | None:
        """Whether the last epoch is the best by validation; None when ``patience`` epochs have passed since it was."""
        judged = self.validation_loss or self.train_loss
        last = len(judged) - 1
        if last <= self.first_epoch or judged[last] < judged[self.best_epoch] or not self.validation_loss:
            self.best_epoch = last
            return True
        return None if last - self.best_epoch >= patience else False


@dataclass(frozen=True, slots=True)
class Settings:
    """What a fit may do."""

    l2: float
    max_epochs: int
    tolerance: float
    patience: int


def fit_linear(
    build: Callable[[Loss], tuple[Objective, Objective | None]], loss: Loss, size: int, settings: Settings
) -> tuple[Floats, History]:
    """The parameters and the curve; ``build`` makes the objectives of the training and the validation users."""
    history, start = History(), np.zeros(size)
    if loss.name == "psi":
        start = _lbfgs(*build(LOSSES["logistic"]), start, settings, history)
        train, validation = build(loss)
        start = min((start * c for c in _MULTIPLES), key=lambda point: train.value_and_gradient(point)[0])
        history.first_epoch = len(history)
        fitted = _lbfgs(train, validation, start, settings, history)
    else:
        train, validation = build(loss)
        fitted = _lbfgs(train, validation, start, settings, history)
    if not np.isfinite(fitted).all() or (loss.name == "exponential" and train.spread(fitted) > STEEPEST):
        raise Unsupported(
            f"the {loss.name} loss has no minimum here (its scores run away): use the logistic loss, or a larger l2"
        )
    return fitted, history


def _lbfgs(
    train: Objective, validation: Objective | None, start: Floats, settings: Settings, history: History
) -> Floats:
    from scipy.optimize import minimize

    l2, best = settings.l2, start

    def penalised(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = train.value_and_gradient(parameters)
        return value + l2 / 2 * float(parameters @ parameters), gradient + l2 * parameters

    def look(parameters: Floats, value: float) -> None:
        nonlocal best
        seen = None
        if validation is not None:
            seen = validation.value_and_gradient(parameters)[0], validation.accuracy(parameters)
        history.add((value - l2 / 2 * float(parameters @ parameters), train.accuracy(parameters)), seen)
        better = history.improves(settings.patience)
        if better:
            best = parameters.copy()
        if better is None:
            raise StopIteration

    look(start, penalised(start)[0])
    ended = minimize(
        penalised,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: look(intermediate_result.x, float(intermediate_result.fun)),
        options={
            "maxiter": settings.max_epochs,
            "maxcor": _MEMORY,
            "gtol": settings.tolerance,
            "ftol": settings.tolerance**2,
            "maxfun": 20 * settings.max_epochs,
        },
    )
    gone = validation is not None and len(history) - 1 - history.best_epoch >= settings.patience
    if gone:
        history.stopped = f"no better validation loss in {settings.patience} epochs"
    else:
        history.stopped = f"after {settings.max_epochs} epochs" if ended.status == 1 else "converged"
    return best
