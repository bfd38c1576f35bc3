"""Scores that are linear in the features: one convex problem, solved with all users at once.

    f(u, i) = b . y_i                    interaction=False: one ranking for everybody (Xu, Section 6.4)
    f(u, i) = b . y_i + x_u' W y_i       interaction=True: personal (the default)

The paper also writes a . x_u. Added to all scores of one user it changes no difference f(u, i) - f(u, j), so no ranking
says anything about a, and it is left out. (With it alone, the paper's sushi model ranks alike for all users.)

Features are scaled to mean 0 and standard deviation 1 for the fit, so that ``l2`` weighs them alike; ``coef_`` (b) and
``interaction_`` (W) are for the features as given. A million users with ten items take seconds: see
``rankdp.learn.objectives``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdp.checks import number
from rankdp.learn.estimator import PairwiseRanker
from rankdp.learn.labels import Combine, Labels
from rankdp.learn.losses import Loss, loss_named
from rankdp.learn.objectives import Objective, PerUser, Pooled
from rankdp.learn.training import History, Settings, fit_linear
from rankdp.types import Floats


class LinearPairwiseRanker(PairwiseRanker):
    """A linear ranker, with labels that undo the noise where the mechanism is known.

    Parameters
    ----------
    loss : {"logistic", "exponential", "psi"}
        The surrogate loss of a pair; see ``rankdp.learn.losses``.
    interaction : bool
        Whether every user has a ranking of their own; otherwise all share one.
    debias : bool
        Whether labels undo the noise of the mechanism that ``fit`` is told of.
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
    bias : float
        How far labels may be biased towards 1/2 to have less variance, below 0.5; 0 for unbiased labels.
    combine : {"precision", "equal"}
        How users with different noise are weighted: by the precision of their labels, or alike.
    random_state : None, int or RandomState
        Where the split and the starting points come from.
    """

    _arrays = ("coef_", "interaction_")

    def __init__(
        self,
        loss: str = "logistic",
        *,
        interaction: bool = True,
        debias: bool = True,
        l2: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        max_epochs: int = 500,
        tolerance: float = 1e-6,
        bias: float = 0.0,
        combine: Combine = "precision",
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.interaction = interaction
        self.debias = debias
        self.l2 = l2
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_epochs = max_epochs
        self.tolerance = tolerance
        self.bias = bias
        self.combine = combine
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        number("tolerance", self.tolerance, 0, 1)

    def _train(
        self,
        items: Floats,
        train: tuple[Floats, Labels],
        validation: tuple[Floats, Labels] | None,
        generator: Any,
    ) -> History:
        def objective(part: tuple[Floats, Labels], loss: Loss) -> Objective:
            users, labels = part
            return PerUser(labels, users, items, loss) if self.interaction else Pooled(labels, items, loss)

        def build(loss: Loss) -> tuple[Objective, Objective | None]:
            return objective(train, loss), None if validation is None else objective(validation, loss)

        width = items.shape[1]
        size = width * (1 + train[0].shape[1] if self.interaction else 1)
        settings = Settings(float(self.l2), self.max_epochs, float(self.tolerance), self.patience)
        parameters, history = fit_linear(build, loss_named(self.loss), size, settings)
        self._unscale(parameters[:width], parameters[width:].reshape(-1, width))
        return history

    def _unscale(self, common: Floats, own: Floats) -> None:
        """To the features as given. What centring the items adds is the same for all items of a user: left out."""
        if not len(own):
            own = np.zeros((len(self.user_mean_), len(common)))
        self.interaction_ = own / self.user_scale_[:, None] / self.item_scale_
        self.coef_ = common / self.item_scale_ - self.user_mean_ @ self.interaction_

    def _scores(self, users: Floats, items: Floats) -> Floats:
        return np.asarray((users @ self.interaction_ + self.coef_) @ items.T)
