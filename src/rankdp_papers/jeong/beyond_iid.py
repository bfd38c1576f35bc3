"""Scores that are exchangeable but not independent, decoders other than sorting, and orders above the third (Jeong).

*Exchangeable scores* (Section 2). Three laws, with C_X = sum of f_Wi(0) from their spacings: Student's t, a normal
vector with one random scale, n(n-1)/(2 sqrt(pi)) times E[1/scale]; normal scores with a common part of half the
variance, sqrt(2) n(n-1)/(2 sqrt(pi)); and shares of a whole, uniform on the simplex, n(n-1)^2/2, as spacings of shares
are shares again.

*Affine decoders* (below Definition 3.1). Three scores from N(1, 1) and normal noise with any covariance: the posterior
is normal with mean A y + b, and the probability of each order given y is that of a quadrant. The affine decoder here
sorts the posterior means.

*All orders* (Theorem 3.6). Spacings of n exponential scores are independent exponentials, so with V+ = max(V, 0)

    1 - P_e = E exp(-sigma S),    S = sum over i of (n-i) (N_i - N_(i+1))+,

and the k-th coefficient is (-1)^(k-1) E[S^k]/k!. It is found item by item on cells of the noise, with powers of sigma
kept apart. The series has the radius of S's moments: infinite for normal noise, finite for Laplace noise, 0 for p < 1.
For two uniform scores f_W is linear on its support, the series ends with sigma^2, and P_e does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from rankdp.theory.noises import ScoreNoise
from rankdp.theory.recovery import first_order, taylor_coefficients
from rankdp.types import Floats
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.decoders import Simulated
from rankdp_papers.jeong.sorting_error import LAWS, NOISES, error_of_sorting

_NU = 4  # degrees of freedom of Student's t
_PER_BLOCK = 100_000
_SIDE, _NEAREST = 150, 1e-3  # cells on either side of 0, and the first of them
_ITEMS = 3  # of the affine decoders, so that orders are quadrants


def exchangeable(cell: Cell) -> list[Row]:
    """P_e of sorting and its first order (19), at the sigma that makes the latter ``load``."""
    items, noise, load = cell["items"], NOISES[cell["noise"]], float(cell["load"])
    sample, constant = _SCORES[cell["scores"]]
    sigma = 2 * load / (constant(items) * noise.mean_difference)
    random, wrong = cell.generator(cell["scores"], cell["noise"], load), []
    for start in range(0, cell.repetitions, _PER_BLOCK):
        scores = np.sort(sample(random, (min(_PER_BLOCK, cell.repetitions - start), items)), axis=1)
        wrong.append((np.diff(scores + sigma * noise.sample(scores.shape, random), axis=1) < 0).any(axis=1))
    error = Simulated.of(np.concatenate(wrong))
    return [
        exact_row("simulated", "error probability", *error),
        exact_row("first order", "error probability", load),
        exact_row("simulated", "over the first order", error.value / load, error.error / load),
    ]


def affine(cell: Cell) -> list[Row]:
    """The errors of sorting, of the affine decoder and of the best one, all from the orders' chances given y."""
    from scipy.stats import multivariate_normal

    covariance, sigma = float(cell["sigma"]) ** 2 * _memory(cell["memory"]), cell["sigma"]
    gain = np.linalg.inv(np.eye(_ITEMS) + covariance)  # A; b is (1 - A) times the scores' mean
    posterior = covariance @ gain
    random, wrong = cell.generator(cell["memory"], sigma), []
    root, orders = np.linalg.cholesky(covariance), list(itertools.permutations(range(_ITEMS)))
    for scores, luck in random.standard_normal((cell.repetitions, 2, _ITEMS)):
        y = 1 + scores + root @ luck
        mean, chances = 1 + gain @ (y - 1), {}
        for order in orders:
            steps = np.eye(_ITEMS)[list(order[:-1])] - np.eye(_ITEMS)[list(order[1:])]  # lowest first
            chances[order] = float(multivariate_normal.cdf(-steps @ mean, cov=steps @ posterior @ steps.T))
        decoded = [chances[tuple(np.argsort(values).tolist())] for values in (y, mean)]
        wrong.append([1 - chance for chance in (*decoded, max(chances.values()))])
    sort, linear, best = np.array(wrong).T
    return [
        exact_row("sorting", "error probability", *Simulated.of(sort)),
        exact_row("affine decoder", "error probability", *Simulated.of(linear)),
        exact_row("best decoder", "error probability", *Simulated.of(best)),
        exact_row("sorting", "lost", *Simulated.of(sort - best)),
        exact_row("affine decoder", "lost", *Simulated.of(linear - best)),
    ]


def _memory(name: str) -> Floats:
    """The noise's covariance, with trace n."""
    places = np.arange(_ITEMS)
    covariances: dict[str, Floats] = {
        "independent": np.eye(_ITEMS),
        "equally correlated": 0.5 * np.eye(_ITEMS) + 0.5,
        "neighbours correlated": 0.9 ** np.abs(places[:, None] - places),
        "one item noisier": np.diag([0.2, 0.2, 2.6]),
    }
    return covariances[name]


def orders(cell: Cell) -> list[Row]:
    """How far the sums of the first 1, 2, ... terms are from P_e, at the sigma whose first term is ``load``."""
    number, name, _ = cell["case"].split()
    items, noise, law, most = int(number), NOISES[cell["noise"]], LAWS[name], cell["orders"]
    sigma = cell["load"] / first_order(items, noise, law)
    if name == "exponential":
        terms, error = exponential_series(items, noise, sigma, most)
    else:  # two uniform scores: nothing beyond the second order
        known = [c * sigma**k for k, c in enumerate(taylor_coefficients(2, noise, law, 2), 1)]
        terms = np.array([*known, *[0.0] * (most - 2)])
        error = error_of_sorting(2, noise, sigma, law).value
    sums = enumerate(np.cumsum(terms).tolist(), 1)
    return [{"order": k, **exact_row("Taylor series", "distance", abs(total - error))} for k, total in sums]


def exponential_series(items: int, noise: ScoreNoise, sigma: float, most: int) -> tuple[Floats, float]:
    """The first terms of P_e for Exp(1) scores, and P_e itself.

    Cells err like their width squared, so two widths together cancel most of the error. Both are linear in what the
    cells give, so a series that converges still adds up to its P_e.
    """
    coarse, fine = (_on_cells(items, noise, sigma, most, side) for side in (_SIDE, 2 * _SIDE - 1))
    return (4 * fine[0] - coarse[0]) / 3, (4 * fine[1] - coarse[1]) / 3


def _on_cells(items: int, noise: ScoreNoise, sigma: float, most: int, side: int) -> tuple[Floats, float]:
    far = 1.0
    while far**most * float(noise.survival(far)) > 1e-9:
        far *= 1.25
    edges = np.concatenate([[0.0], np.geomspace(_NEAREST, far, side)])
    middle, mass = (edges[1:] + edges[:-1]) / 2, -np.diff(noise.survival(edges))
    nodes, masses = np.concatenate([-middle[::-1], middle]), np.concatenate([mass[::-1], mass])
    masses = masses / masses.sum()
    powers = np.zeros((most + 1, len(nodes)))  # of sigma: E exp(-sigma S so far), given the noise of the last item
    powers[0], whole = 1.0, np.ones(len(nodes))
    for item in range(1, items):
        loss = (items - item) * sigma * np.maximum(nodes - nodes[:, None], 0.0)  # [next, this]
        steps = [np.ones_like(loss)]
        for k in range(1, most + 1):
            steps.append(-steps[-1] * loss / k)
        weighed = masses * powers
        powers = np.array([sum(steps[k - j] @ weighed[j] for j in range(k + 1)) for k in range(most + 1)])
        whole = np.exp(-loss) @ (masses * whole)
    return -(powers[1:] @ masses), 1 - float(whole @ masses)


_SCORES: dict[str, tuple[Callable[..., Floats], Callable[[int], float]]] = {
    "one random scale": (
        lambda random, shape: random.standard_normal(shape) / np.sqrt(random.chisquare(_NU, (shape[0], 1)) / _NU),
        lambda n: n * (n - 1) / (2 * math.pi**0.5) * (2 / _NU) ** 0.5 * math.gamma((_NU + 1) / 2) / math.gamma(_NU / 2),
    ),
    "a common part": (
        lambda random, shape: (random.standard_normal((shape[0], 1)) + random.standard_normal(shape)) / 2**0.5,
        lambda n: n * (n - 1) / (2 * math.pi) ** 0.5,
    ),
    "shares of a whole": (
        lambda random, shape: random.dirichlet(np.ones(shape[1]), shape[0]),
        lambda n: n * (n - 1) ** 2 / 2,
    ),
}
"""Draws of exchangeable scores, and C_X."""
