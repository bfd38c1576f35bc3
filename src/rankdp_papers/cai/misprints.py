"""The printed generator, the probit link and the scale of Theorem 2.1: what they do as printed.

``overlap``, Section 4.1's generator. Printed, e^theta_i is uniform on (0.2, 0.7) for i < k and 1 for i >= k: n - k + 1
items share the highest score, so that "the" top k = n/4 is any k of them. Let it be the k with the smallest numbers. A
ranking that does not look at the numbers, the truth itself with ties by lot included, finds k/(n - k + 1) of them on
average, about a third. Ours: the k best have e^theta = 1.

``influence``, condition (A1): the largest F'/(F (1 - F)) on [-B, B], by link. It is the most that one comparison can
move a coordinate of the gradient, so noise in the objective is proportional to it. For the links of ``rankers.links``
it stays bounded. For the normal distribution function (Thurstone's model) it is the sum of two hazard rates,
phi/Phi + phi/(1 - Phi), and grows like B.

``spent``, how much epsilon Algorithm 1 spends with Laplace noise of scale b and a ridge gamma. By our proof of
Proposition 2.1 (``mechanisms.votes.objective``; the paper prints none that we have),

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

from rankdp.errors import Unsupported
from rankdp.rankers.links import LINKS, LOGISTIC, Link
from rankdp.rankers.links import link as known_link
from rankdp.types import Floats
from rankdp_papers.cai import algorithms, drawn_votes
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row, exact_rows

TRUTH = "the truth, ties by lot"
Wins = tuple[tuple[int, int, int], ...]
"""Winner, loser, how often."""
_POINTS = 20_001
_ITEMS = 4  # of the worst case


def overlap(cell: Cell) -> list[Row]:
    """The overlap that the truth, the likelihood and the wins reach at one n, without any privacy."""
    items, top = cell["items"], cell["items"] // 4
    printed, repeated = cell["generator"] == "printed", Repeated()
    for repetition in range(cell.repetitions):
        generator = cell.generator("poll", items, repetition)
        truth = as_printed(items, generator) if printed else algorithms.strengths(items, generator)
        votes = drawn_votes.vote(truth, cell["p"], top, generator)
        wins = votes.counts.half_wins
        fitted = algorithms.from_wins(votes.counts, wins)
        repeated.add({"overlap": votes.overlap(fitted)}, method=drawn_votes.NOT_PRIVATE)
        repeated.add({"overlap": votes.overlap(wins)}, method=drawn_votes.WINS_NOT_PRIVATE)
    best = top / (items - top + 1) if printed else 1.0
    return [*repeated.rows(), exact_row(TRUTH, "overlap", best)]


def as_printed(items: int, generator: np.random.Generator) -> Floats:
    """Centred scores with the n - k + 1 tied items in front."""
    low = items // 4 - 1
    return algorithms.centred(np.log(np.concatenate([np.ones(items - low), generator.uniform(0.2, 0.7, low)])))


def influence(cell: Cell) -> list[Row]:
    """For every link the largest influence within the reach B, and whether the library refuses it on the whole line."""
    x = np.linspace(-float(cell["reach"]), float(cell["reach"]), _POINTS)
    largest = {name: float(of_link(link, x).max()) for name, link in LINKS.items()}
    largest["probit"] = float(of_probit(x).max())
    rows = [{"link": name, "measure": "influence", "value": value, "error": 0.0} for name, value in largest.items()]
    return rows + [{"link": name, "measure": "refused", "value": refused(name), "error": 0.0} for name in largest]


def of_link(link: Link, x: Floats) -> Floats:
    """F'/(F (1 - F)) = -(-log F)'(x)/(1 - F(x)), and 1 - F(x) = F(-x)."""
    return np.asarray(-link.slope(x) / link.cdf(-x))


def of_probit(x: Floats) -> Floats:
    """phi/(Phi (1 - Phi)) from logarithms, so that no tail is lost."""
    from scipy.special import log_ndtr

    log_density = -(x**2) / 2 - np.log(2 * np.pi) / 2
    return np.asarray(np.exp(log_density - log_ndtr(x) - log_ndtr(-x)))


def refused(name: str) -> float:
    """1 if objective perturbation does not take this link."""
    try:
        known_link(name)
    except Unsupported:
        return 1.0
    return 0.0


def spent(cell: Cell) -> list[Row]:
    """Noise by Theorem 2.1, by Proposition 2.1 and ours: what each spends, in units of the epsilon it promises."""
    epsilon, ridge = float(cell["epsilon"]), float(cell["ridge"])
    scales = {
        "bradley-terry + theorem 2.1": epsilon / 16,
        "bradley-terry + paper": 8 * LOGISTIC.kappa_1 / epsilon,
        "bradley-terry + tight": float(algorithms.tight(_ITEMS, 10, cell["epsilon"], ridge).scale),
    }
    spending = {
        method: {
            "proof": proof(scale, ridge) / epsilon,
            "found": worst_ratio(scale, ridge) / epsilon,
            "noise": scale * epsilon / 8,
        }
        for method, scale in scales.items()
    }
    return exact_rows(spending)


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


def log_density(point: Floats, wins: Wins, scale: float, ridge: float, link: Link = LOGISTIC) -> float:
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
