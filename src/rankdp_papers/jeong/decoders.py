"""Reading the order of the scores from their noisy copy: sorting, and the best decoder there is.

For i.i.d. scores and independent noise the posterior coordinates are independent given y, with densities proportional
to f(x) g((y_i - x)/sigma), and the decoder with the smallest error probability takes the most likely order. By Theorem
3.3 that is sorting where the noise is log-concave (p >= 1). Below p = 1 (Section 4.4) it need not be: the spike of the
density makes it likely that *some* score barely moved, and which one is worth knowing.

And sorting by simulation, for any noise and any law, with standard errors, in blocks that never hold all draws at once.
Scores are exchangeable, so they may be sorted first: the order is right when the noisy scores still rise.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import positive, whole
from rankdp.errors import InputError
from rankdp.theory.noises.score_noise import ScoreNoise, check_independent
from rankdp.theory.score_laws import ScoreLaw
from rankdp.types import Floats, Longs
from rankdp_papers.experiment import mean_row, share_error

MOST_ITEMS = 7
CELLS = 1 << 20  # of one block of draws


class Simulated(NamedTuple):
    """A simulated number and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, values: ArrayLike) -> Simulated:
        """The mean of independent values and its standard error; of booleans, their share."""
        row = mean_row(np.asarray(values))
        return cls(row["value"], row["error"])


def sort_decoder(y: ArrayLike) -> Longs:
    """The linear decoder of Definition 3.1: items from the highest noisy score to the lowest (ties: the earlier first).

    The paper writes the permutation in ascending order; rankdp lists the best first everywhere.
    """
    return np.argsort(-np.asarray(y, dtype=float), axis=-1, kind="stable")


def order_posterior(y: ArrayLike, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> tuple[Longs, Floats]:
    """All orders of up to 7 items (best first) and the probability of each given the noisy scores y.

    On cells of the line, graded around every y_i, with the noise's mass in each cell exact: P(X_o0 < X_o1 < ...) item
    by item, for all beginnings of orders at once. Within one cell two items are in either order with chance 1/2.
    """
    y, n = np.asarray(y, dtype=float), np.size(y)
    positive("sigma", sigma)
    check_independent(noise)
    if y.ndim != 1 or not 2 <= n <= MOST_ITEMS:
        raise InputError(f"y must be a vector of 2 to {MOST_ITEMS} noisy scores, got shape {y.shape}")
    masses = _posterior_masses(y, noise, sigma, law)
    below = np.ones((1, masses.shape[1]))  # by beginning, in lexicographic order: in order, and below a cell's middle
    for length in range(1, n + 1):
        ascending = np.array(list(itertools.permutations(range(n), length)))
        step = masses[ascending[:, -1]] * np.repeat(below, n + 1 - length, axis=0)
        below = np.cumsum(step, axis=1) - step / 2
    chances = step.sum(axis=1)
    return ascending[:, ::-1], chances / np.sum(chances)


def _posterior_masses(y: Floats, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> Floats:
    graded = np.geomspace(1e-5, 40, 40) * sigma
    around = (y[:, None] + np.concatenate([-graded, [0.0], graded])).ravel()
    base = law.edges(160)
    edges = np.unique(np.concatenate([base, np.clip(around, base[0], base[-1])]))
    height = np.diff(law.cdf(edges)) / np.diff(edges)  # the law's mean density in each cell
    below = noise.cdf((edges - y[:, None]) / sigma)
    masses = np.maximum(np.diff(below, axis=1), 0) * height
    return np.asarray(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))


def error_probability(
    n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Simulated:
    """P_e of (3) with the sorting decoder, by simulation, a block of rows at a time."""
    whole("n", n, 2)
    whole("draws", draws, 2)
    rows, count = max(1, CELLS // n), 0
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), n)
        noisy = np.sort(law.sample(shape, rng), axis=1) + sigma * noise.sample(shape, rng)
        count += int(np.sum(np.any(noisy[:, 1:] < noisy[:, :-1], axis=1)))
    share = count / draws
    return Simulated(share, share_error(share, draws))
