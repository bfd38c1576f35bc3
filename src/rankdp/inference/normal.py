"""A normal posterior around its mode: for values y with mean f(t) and covariance S(t), and a prior t ~ N(0, diag(d^2)).

In each of a few rounds S is held where the round before ended, and the mode of

    (y - f)'S^-1 (y - f)/2 + sum (t/d)^2/2

is found by Gauss-Newton steps that are halved until they lead down: with J the slope of f, a step solves

    (J'S^-1 J + diag(1/d^2)) step = J'S^-1 (y - f) - t/d^2.

Draws are from the normal law with that matrix as its precision. Where the prior's deviation is integrated
(``exchangeable``), the mode is found again with the one that the values suggest, so that slopes are those of likely t.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from rankdp.inference.draws import COUNT, generator, opposite
from rankdp.inference.exchangeable import exchangeable
from rankdp.inference.one_thread import one_thread
from rankdp.types import Floats

PRIOR = 2.0
"""The standard deviation of strengths in the prior."""
_ROUNDS, _STEPS, _CLOSE = 4, 30, 1e-4  # the last step is far below any interval

Linear = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""At t: y - f(t), J and S."""


@one_thread
def fitted(linear: Linear, items: int, prior: float | None = PRIOR) -> tuple[Floats, float, Floats]:
    """The mode, the prior's deviation there, and draws, one per row.

    Parameters
    ----------
    linear
        The values, as they look from t.
    items
        How many numbers t has.
    prior
        The standard deviation of the prior; None integrates it.
    """
    held = np.full(items, PRIOR if prior is None else prior)
    theta, pull, precision = posterior(linear, held)
    if prior is not None:
        return theta, prior, normal_draws(theta, precision, held)
    for _ in range(3):
        _, spread = exchangeable(pull, precision, 1.0)
        theta, pull, precision = posterior(linear, np.full(items, spread), theta)
    drawn, spread = exchangeable(pull, precision, 1.0)
    return theta, spread, drawn


@one_thread
def posterior(linear: Linear, prior: Floats, start: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """The mode t; and there J'S^-1 (y - f + J t) and J'S^-1 J, which say what the values add to the prior.

    Parameters
    ----------
    linear
        The values, as they look from t.
    prior
        The standard deviations of the prior.
    start
        Where to start; 0 if not given.
    """
    theta, held = np.zeros(len(prior)) if start is None else start, 1 / prior**2
    for _ in range(_ROUNDS):
        off, slope, spread = linear(theta)
        spread[np.diag_indices(len(off))] += 1e-9 * (1 + spread.diagonal().mean())  # some values add up to 0 exactly
        factor = cho_factor(spread, lower=True, overwrite_a=True)
        for _ in range(_STEPS):
            solved = cho_solve(factor, np.column_stack([slope, off]))
            precision, score = slope.T @ solved[:, :-1], slope.T @ solved[:, -1]
            step = np.linalg.solve(precision + np.diag(held), score - held * theta)
            misfit, length = off @ solved[:, -1] + held @ theta**2, 1.0
            while length > _CLOSE:
                tried = theta + length * step
                off, slope, _ = linear(tried)
                if off @ cho_solve(factor, off) + held @ tried**2 < misfit:
                    break
                length /= 2
            else:
                off, slope, _ = linear(theta)
                break
            theta = tried
            if length * float(np.abs(step).max()) < _CLOSE:
                break
    precision = (precision + precision.T) / 2
    return theta, score + precision @ theta, precision


def normal_draws(theta: Floats, precision: Floats, prior: Floats) -> Floats:
    """Draws around the mode, one per row.

    Parameters
    ----------
    theta, precision
        As ``posterior`` returned them.
    prior
        As for ``posterior``.
    """
    factor = np.linalg.cholesky(precision + np.diag(1 / prior**2))
    random = generator().standard_normal((len(theta), COUNT // 2))
    return np.asarray(theta + opposite(solve_triangular(factor, random, lower=True, trans="T").T))
