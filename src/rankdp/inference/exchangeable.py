"""Items that are exchangeable: their spread is not known and is integrated.

Given z ~ N(t, C) and true values t ~ N(0, s^2) around their mean, with a spread s that nothing is known of but its
scale a (half-Cauchy: p(s) proportional to 1/(1 + (s/a)^2)). In the eigenbasis of the precision P = C^-1, with its
values l > 0 and u = V'P z,

    log p(z | s) = -1/2 sum log(1 + s^2 l) + 1/2 sum u^2 s^2/(1 + s^2 l) + const,
    t | z, s ~ N(u s^2/(1 + s^2 l), s^2/(1 + s^2 l)).

The spread is drawn first, on a grid, then t. Directions with l = 0, of which nothing is known, keep the prior.
"""

from __future__ import annotations

import numpy as np

from rankdp.inference.draws import COUNT, generator, opposite
from rankdp.inference.one_thread import one_thread
from rankdp.types import Floats

_GRID = np.geomspace(1 / 100, 10, 40)  # of s/a: from no spread that matters to one that nothing holds back


@one_thread
def exchangeable(pull: Floats, precision: Floats, scale: float, count: int = COUNT) -> tuple[Floats, float]:
    """Draws of the true values, one per row, and the mean of their spread.

    Parameters
    ----------
    pull
        P z.
    precision
        P, symmetric and positive semidefinite, or its diagonal where errors are independent.
    scale
        a: the prior median of the spread.
    count
        How many draws.
    """
    values, vectors = np.linalg.eigh(precision) if precision.ndim == 2 else (precision, None)
    values, found = np.maximum(values, 0), pull if vectors is None else vectors.T @ pull
    spreads = scale * _GRID
    kept = spreads[:, None] ** 2 / (1 + spreads[:, None] ** 2 * values)
    fit = (np.log(kept) - 2 * np.log(spreads)[:, None] + found**2 * kept).sum(axis=1) / 2
    chances = fit + np.log(_GRID / (1 + _GRID**2))  # ds is proportional to s on this grid
    chances = np.exp(chances - chances.max())
    random = generator()
    drawn = np.sort(random.choice(len(spreads), count // 2, p=chances / chances.sum()))
    around = np.sqrt(kept[drawn]) * random.standard_normal((count // 2, len(values)))
    centre = found * kept[drawn]
    truths = np.concatenate([centre, centre]) + opposite(around)
    spread = float(spreads @ chances / chances.sum())
    return truths if vectors is None else truths @ vectors.T, spread
