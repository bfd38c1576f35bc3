"""Learning from private preference pairs: losses that correct for swapped labels, and a linear reward model.

With f the probability that a label was swapped and l(d) = log(1 + e^-d) of a score difference d (chosen less rejected),

    ((1 - f) l(d) - f l(-d)) / (1 - 2f) = l(d) - c d,    c = f / (1 - 2f),

because l(d) - l(-d) = -d. Its mean over the swaps is the loss of the true label, and it stays convex in d. Where
a model fits all pairs it falls without bound, so a linear model needs some ridge and a network an early stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError
from rankdp.types import Floats

if TYPE_CHECKING:
    from torch import Tensor

_STEPS, _CLOSE = 100, 1e-10


def _check_flip(flip: float) -> float:
    if not 0 <= flip < 0.5:
        raise InputError(f"flip must be at least 0 and below 0.5, got {flip}")
    return float(flip)


def preference_loss(difference: Tensor, flip: float) -> Tensor:
    """The debiased logistic (Bradley-Terry) loss of each pair, a PyTorch function.

    Parameters
    ----------
    difference
        The score of the released "chosen" answer less that of the "rejected" one.
    flip
        The probability that a label was swapped: ``flip_probability`` of the release.
    """
    from torch.nn.functional import softplus

    f = _check_flip(flip)
    return softplus(-difference) - f / (1 - 2 * f) * difference


def dpo_loss(
    chosen: Tensor,
    rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    flip: float,
    beta: float = 0.1,
) -> Tensor:
    """The debiased loss of direct preference optimisation of each pair, a PyTorch function.

    Parameters
    ----------
    chosen, rejected
        The log-probabilities of the two answers under the model that is trained.
    reference_chosen, reference_rejected
        Those under the reference model.
    flip
        The probability that a label was swapped.
    beta
        How closely the model stays to the reference.
    """
    return preference_loss(beta * ((chosen - reference_chosen) - (rejected - reference_rejected)), flip)


class LinearRewardModel:
    """Rewards that are linear in features, fitted to private pairs by the debiased logistic loss.

    Parameters
    ----------
    flip
        The probability that a label was swapped.
    ridge
        The weight of the squared norm, for all pairs together: 1 is a standard normal prior.
    """

    def __init__(self, flip: float, ridge: float = 1.0) -> None:
        self.flip, self.ridge = _check_flip(flip), ridge
        self.coef_: Floats | None = None

    def fit(self, chosen: ArrayLike, rejected: ArrayLike) -> LinearRewardModel:
        """Fit by Newton's method; the loss is convex.

        Parameters
        ----------
        chosen, rejected
            The features of the two answers, a row per pair.
        """
        x = np.asarray(chosen, dtype=np.float64) - np.asarray(rejected, dtype=np.float64)
        if x.ndim != 2 or not np.isfinite(x).all():
            raise InputError("chosen and rejected must be tables of finite numbers with a row per pair")
        tilt = self.flip / (1 - 2 * self.flip) * x.sum(axis=0)

        def loss(w: Floats) -> float:
            return float(np.logaddexp(0, -x @ w).sum() - tilt @ w + self.ridge / 2 * w @ w)

        w, value = np.zeros(x.shape[1]), loss(np.zeros(x.shape[1]))
        for _ in range(_STEPS):
            share = 1 / (1 + np.exp(np.clip(x @ w, -500, 500)))
            gradient = -x.T @ share - tilt + self.ridge * w
            curvature = (x * (share * (1 - share))[:, None]).T @ x + self.ridge * np.eye(len(w))
            step = np.linalg.solve(curvature, gradient)
            size = 1.0
            while (new := loss(w - size * step)) > value and size > 1e-9:
                size /= 2
            w, value = w - size * step, min(new, value)
            if float(gradient @ step) < _CLOSE:
                break
        self.coef_ = w
        return self

    def predict(self, features: Any) -> Floats:
        """The reward of each row of features.

        Parameters
        ----------
        features
            A row per answer.
        """
        if self.coef_ is None:
            raise InputError("fit the model first")
        return np.asarray(np.asarray(features, dtype=np.float64) @ self.coef_)
