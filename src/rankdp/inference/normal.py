"""A normal posterior around its mode: for values y with mean f(t) and covariance S(t), and a prior t ~ N(0, diag(d^2)).

The mode is found by Gauss-Newton steps. With J the slope of f at t, a step solves

    (J'S^-1 J + diag(1/d^2)) step = J'S^-1 (y - f) - t/d^2,

and draws are from the normal law with that matrix as its precision. S is taken at the mode; its own slope is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from rankdp.inference.draws import COUNT, generator, opposite
from rankdp.types import Floats

_STEPS, _CLOSE, _LONGEST = 60, 1e-4, 2.0  # the last step is far below any interval; a step in log-odds beyond 2 is cut

Linear = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""At t: y - f(t), J and S."""


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
    theta, held = np.zeros(len(prior)) if start is None else start, np.diag(1 / prior**2)
    for _ in range(_STEPS):
        off, slope, spread = linear(theta)
        spread[np.diag_indices(len(off))] += 1e-9 * (1 + spread.diagonal().mean())  # some values add up to 0 exactly
        solved = cho_solve(cho_factor(spread, lower=True, overwrite_a=True), np.column_stack([slope, off]))
        precision, score = slope.T @ solved[:, :-1], slope.T @ solved[:, -1]
        precision = (precision + precision.T) / 2
        step = np.linalg.solve(precision + held, score - theta / prior**2)
        longest = float(np.abs(step).max())
        if longest < _CLOSE:
            break
        theta = theta + step * min(1.0, _LONGEST / longest)
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
