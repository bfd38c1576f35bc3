"""How much epsilon Algorithm 1 spends with a given noise: by its proof, and on a data set that is as bad as can be.

By the proof, with Laplace noise of scale b and a ridge gamma,

    eps_1 = 4 kappa_1/b + log(1 + 2 kappa_2/gamma).

The worst case. The minimiser t and the noise determine each other, w = -grad(t), so the log-density of t is
-|grad(t)|_1/b + log det H(t) up to a constant. Four items a, c, d, e and the point t = (-2T, -T, T, 2T); in the data, c
lost to a and e lost to d so often (more than gamma T times) that grad_c > 0 > grad_d, against their ridge. One more win
of a over e moves grad_a and grad_e by nearly 1 away from 0. Replace it by a win of c over d, which moves grad_c and
grad_d by nearly 1 towards 0: the log-density at t rises by nearly 4/b. So the first term of eps_1 cannot be improved.
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.rankers.links import LOGISTIC, Link
from rankdp_papers.cai import algorithms
from rankdp_papers.cai.algorithms import FloatArray
from rankdp_papers.experiment import Cell, Row

Wins = tuple[tuple[int, int, int], ...]
"""Winner, loser, how often."""
_ITEMS = 4


def spent(cell: Cell) -> list[Row]:
    """Noise by Theorem 2.1, by Proposition 2.1 and ours: what each spends, in units of the epsilon it promises."""
    epsilon, ridge = float(cell["epsilon"]), float(cell["ridge"])
    scales = {
        "bradley-terry + theorem 2.1": epsilon / 16,
        "bradley-terry + paper": 8 * LOGISTIC.kappa_1 / epsilon,
        "bradley-terry + tight": float(algorithms.tight(_ITEMS, 10, cell["epsilon"], ridge).scale),
    }
    rows = []
    for method, scale in scales.items():
        values = {
            "proof": proof(scale, ridge) / epsilon,
            "found": worst_ratio(scale, ridge) / epsilon,
            "noise": scale * epsilon / 8,
        }
        rows += [{"method": method, "measure": name, "value": value, "error": 0.0} for name, value in values.items()]
    return rows


def proof(scale: float, ridge: float, link: Link = LOGISTIC) -> float:
    """eps_1."""
    return 4 * link.kappa_1 / scale + math.log1p(2 * link.kappa_2 / ridge)


def worst_ratio(scale: float, ridge: float, reach: float = 12.0) -> float:
    """The log-ratio of the densities of two neighbours at the point above, with T = ``reach``."""
    point = reach * np.array([-2.0, -1.0, 1.0, 2.0])
    often = math.ceil(ridge * reach) + 2
    base: Wins = ((0, 1, often), (2, 3, often))
    likely, unlikely = (*base, (1, 2, 1)), (*base, (0, 3, 1))
    return log_density(point, likely, scale, ridge) - log_density(point, unlikely, scale, ridge)


def log_density(point: FloatArray, wins: Wins, scale: float, ridge: float, link: Link = LOGISTIC) -> float:
    """The log-density of the exact minimiser at a point, up to a constant that no data set changes."""
    gradient = ridge * point
    hessian = ridge * np.eye(len(point))
    for winner, loser, often in wins:
        gap = point[[winner]] - point[[loser]]
        direction = np.zeros(len(point))
        direction[[winner, loser]] = 1.0, -1.0
        gradient = gradient + often * link.slope(gap) * direction
        hessian += often * link.curvature(gap) * np.outer(direction, direction)
    return float(-np.abs(gradient).sum() / scale + np.linalg.slogdet(hessian)[1])
