"""The constant c0 in the paper's ridge c0 sqrt(d log n), which it leaves open: which is the best.

To be fair to the paper, Algorithm 1 gets the c0 of least expected squared error at each n, number of comparisons and
epsilon, among ``CONSTANTS``. It is found on other votes, drawn from the paper's generator: a publisher who knows
that generator could do the same, as nothing secret is looked at.
"""

from __future__ import annotations

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.privacy.bits import SeededBits
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats
from rankdp_papers.cai import algorithms

CONSTANTS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_PILOTS = 8  # sets of votes that c0 is chosen on


def best_constant(items: int, comparisons: int, epsilon: float | None) -> float:
    """The c0 of least squared error on pilot votes; without noise for epsilon None."""
    lost = dict.fromkeys(CONSTANTS, 0.0)
    for pilot in range(_PILOTS):
        generator = np.random.default_rng([items, comparisons, pilot])
        truth = algorithms.strengths(items, generator)
        counts = pilot_votes(truth, comparisons, generator)
        for constant in CONSTANTS:
            ridge = algorithms.paper_ridge(items, comparisons, constant)
            if epsilon is None:
                scores = algorithms.penalized(counts, ridge)
            else:
                mechanism = algorithms.paper(items, comparisons, epsilon, ridge)
                scores = algorithms.perturbed(mechanism, counts, SeededBits(pilot))
            lost[constant] += float(((scores - truth) ** 2).sum())
    return min(lost, key=lost.__getitem__)


def pilot_votes(truth: Floats, comparisons: int, generator: np.random.Generator) -> PairCounts:
    """That many comparisons by the Bradley-Terry model, spread over the pairs as evenly as possible."""
    left, right = np.triu_indices(len(truth), 1)
    often = np.full(len(left), comparisons // len(left))
    often[generator.permutation(len(left))[: comparisons % len(left)]] += 1
    left, right = np.repeat(left, often), np.repeat(right, often)
    won = generator.random(len(left)) < LOGISTIC.cdf(truth[left] - truth[right])
    return PairCounts.from_pairs(left, right, 2 * won.astype(np.int64), items=len(truth))
