"""Scores that are linear in the features: one problem, solved with all users at once.

    f(u, i) = b . y_i                    interaction=False: one ranking for everybody (Xu, Section 6.4)
    f(u, i) = b . y_i + x_u' W y_i       interaction=True: personal (the default)

The paper also writes a . x_u. Added to all scores of one user it changes no difference f(u, i) - f(u, j), so no ranking
says anything about a, and it is left out. (With it alone, the paper's sushi model ranks alike for all users.)

Features are scaled to mean 0 and standard deviation 1 for the fit, so that ``l2`` weighs them alike; ``coef_`` (b) and
``interaction_`` (W) are for the features as given.

With item features Y (m x q) and user features X (n x p; p = 0 without interaction) the scores are F = 1 b' Y' + X W Y',
and if G is the derivative of the loss by every score, those by b and W are Y' G' 1 and X' G Y. So one pass computes
chunks of F, their G in a kernel, and two small products: O(users x pairs), no pair is stored, and all cores work. A
million users with ten items take seconds. L-BFGS on this full gradient minimises

    mean loss over pairs + l2/2 (sum of the squared parameters),

where an epoch is one iteration. For the logistic loss this is convex, for every real label; with l2 above 0 it has
exactly one minimum. The psi-loss is neither convex nor sloped where a pair is out of order, so its training starts from
the best multiple of the logistic solution and finds a local minimum near it: it rarely turns round a pair that the
logistic solution has in the wrong order.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from rankdp.checks import number
from rankdp.errors import Unsupported
from rankdp.learn.estimator import CURVE_USERS, History, PairwiseRanker, Part
from rankdp.learn.labels import Combine, Debias, Labels
from rankdp.learn.losses import STEEPEST, score_accuracy, score_pass
from rankdp.types import Floats

_CELLS = 1 << 17  # scores in one chunk
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the logistic solution, from which the psi-loss starts


@dataclass(eq=False, repr=False)
class LinearPairwiseRanker(PairwiseRanker):
    """A linear ranker, with debiased labels where the mechanism is known.

    Parameters
    ----------
    loss : {"logistic", "exponential", "psi"}
        The surrogate loss of a pair; see ``rankdp.learn.losses``.
    interaction : bool
        Whether rankings are personal; otherwise there is one for everybody.
    debias : bool or "always"
        Whether labels correct for the noise of the mechanism that ``fit`` is given, as much as the number of users
        justifies; "always" debiases completely, at any price in variance.
    l2 : float
        The weight of the squared parameters in the loss; above 0 with debiased labels.
    early_stopping : bool
        Whether to keep the epoch that is best for users who were not trained on.
    validation_fraction : float
        The share of users held back for that.
    patience : int
        How many epochs without a better one end the training.
    max_epochs : int
        The most epochs.
    tolerance : float
        The size of the gradient at which the fit ends.
    combine : {"precision", "users"}
        How users with different noise are weighted: by the precision of their labels, or alike.
    random_state : None, int or RandomState
        Where the split and the starting points come from.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("coef_", "interaction_")

    loss: str = "logistic"
    _: KW_ONLY
    interaction: bool = True
    debias: Debias = True
    l2: float = 1e-3
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 10
    max_epochs: int = 500
    tolerance: float = 1e-6
    combine: Combine = "precision"
    random_state: Any = None

    def _check_settings(self) -> None:
        super()._check_settings()
        number("tolerance", self.tolerance, 0, 1)

    def _train(self, items: Floats, train: Part, validation: Part | None, generator: Any) -> History:
        width = None if self.interaction else 0
        judge = None if validation is None else Objective(validation[1], validation[0][:, :width], items)
        parameters, history = fit_linear(
            Objective(train[1], train[0][:, :width], items),
            judge,
            self.loss,
            l2=float(self.l2),
            max_epochs=self.max_epochs,
            tolerance=float(self.tolerance),
            patience=self.patience,
        )
        common, own = np.split(parameters, [items.shape[1]])
        if not self.interaction:
            own = np.zeros((len(self.user_mean_), len(common)))
        # to the features as given; what centring the items adds is the same for all items of a user: left out
        self.interaction_ = own.reshape(-1, len(common)) / self.user_scale_[:, None] / self.item_scale_
        self.coef_ = common / self.item_scale_ - self.user_mean_ @ self.interaction_
        return history

    def _scores(self, users: Floats, items: Floats) -> Floats:
        return np.asarray((users @ self.interaction_ + self.coef_) @ items.T)


class Objective:
    """The mean loss over all pairs of all users, as a function of b and W in one list.

    Parameters
    ----------
    labels
        What the users' rankings say.
    users, items
        The features; users without any have the same scores.
    """

    def __init__(self, labels: Labels, users: Floats, items: Floats) -> None:
        self.labels, self.users, self.items = labels, users, items
        self.total = labels.total
        self.size = items.shape[1] * (1 + users.shape[1])
        rows = max(1, _CELLS // max(len(items), users.shape[1]))
        self.chunks = [slice(start, start + rows) for start in range(0, len(users), rows)]

    def value_and_gradient(self, parameters: Floats, loss: str) -> tuple[float, Floats]:
        """The mean loss and its gradient; the sums do not depend on how many threads there are."""

        def part(chunk: slice) -> tuple[float, Floats]:
            value, slopes = score_pass(self._scores(parameters, chunk), self.labels.rows(chunk), loss)
            by_feature = slopes @ self.items
            return value, np.concatenate([by_feature.sum(axis=0), self.users[chunk].T @ by_feature], axis=None)

        if len(self.chunks) == 1:
            parts = [part(self.chunks[0])]
        else:
            from threadpoolctl import threadpool_limits

            # small matrices, one thread each: with more threads they would wait for each other
            with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = list(pool.map(part, self.chunks))
        values, gradients = zip(*parts, strict=True)
        return float(sum(values) / self.total), np.asarray(sum(gradients) / self.total)

    def accuracy(self, parameters: Floats) -> float:
        """The share of pairs in order by the labels of the first users: a curve needs no more."""
        first = slice(0, CURVE_USERS)
        return score_accuracy(self._scores(parameters, first), self.labels.rows(first))

    def spread(self, parameters: Floats) -> float:
        """The largest difference between two scores of one user."""
        return float(max(np.ptp(self._scores(parameters, chunk), axis=1).max() for chunk in self.chunks))

    def _scores(self, parameters: Floats, rows: slice) -> Floats:
        common, own = np.split(parameters, [self.items.shape[1]])
        return np.asarray((self.users[rows] @ own.reshape(-1, len(common)) + common) @ self.items.T)


def fit_linear(
    train: Objective,
    validation: Objective | None,
    loss: str,
    *,
    l2: float = 1e-3,
    max_epochs: int = 500,
    tolerance: float = 1e-6,
    patience: int = 10,
) -> tuple[Floats, History]:
    """The parameters and the curve; with validation users, those of the epoch with the smallest loss."""
    from scipy.optimize import minimize

    history, best = History(), np.zeros(train.size)

    def descend(kind: str) -> None:
        def penalised(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = train.value_and_gradient(parameters, kind)
            return value + l2 / 2 * float(parameters @ parameters), gradient + l2 * parameters

        def look(parameters: Floats, value: float) -> None:
            nonlocal best
            judged = None
            if validation is not None:
                judged = validation.value_and_gradient(parameters, kind)[0], validation.accuracy(parameters)
            history.add((value - l2 / 2 * float(parameters @ parameters), train.accuracy(parameters)), judged, patience)
            if history.improved:
                best = parameters.copy()
            if history.stopped:
                raise StopIteration

        look(best, penalised(best)[0])
        ended = minimize(
            penalised,
            best,
            jac=True,
            method="L-BFGS-B",
            callback=lambda intermediate_result: look(intermediate_result.x, float(intermediate_result.fun)),
            options={
                "maxiter": max_epochs,
                "gtol": tolerance,
                "ftol": tolerance**2,
                "maxfun": 20 * max_epochs,
            },
        )
        if not history.stopped:
            history.stopped = f"after {max_epochs} epochs" if ended.status == 1 else "converged"

    if loss == "psi":
        descend("logistic")
        best = min((best * c for c in _MULTIPLES), key=lambda point: train.value_and_gradient(point, loss)[0])
        history.first_epoch = len(history)
    descend(loss)
    if not np.isfinite(best).all() or (loss == "exponential" and train.spread(best) > STEEPEST):
        raise Unsupported(
            f"the {loss} loss has no minimum here (its scores run away): use the logistic loss, or a larger l2"
        )
    return best, history
