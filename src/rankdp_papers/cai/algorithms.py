"""Scores from comparisons by the paper's two algorithms and by ours.

With n items, d comparisons an item on average (n p in the paper's model) and eps-DP for one comparison:

    paper     Algorithm 1: Laplace noise of scale 8 kappa_1/eps in the objective (Proposition 2.1) and a ridge gamma;
              Theorem 2.2 takes gamma = c0 sqrt(n p log n), Proposition 2.2 c0 sqrt(n p), and c0 is left open
              (``ridge_constant`` finds the best one)
    tight     the same with the noise that its proof needs, and the ridge of least expected error (``ranking``)
    outcome   noise of scale 2/eps on the wins and a fit to them, where only outcomes are secret
    copeland  Algorithm 2: the same noise on the wins, and no fit

A ridge leaves the mean of the scores to the noise. The truth is centred by convention, so all scores are centred too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts
from rankdp.inference.boards import laplacian
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.rankers.bradley_terry import fit, fit_wins
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats, Longs
from rankdp_papers.cai.ridges import choose_ridge, objective

COMPARISON = Protection("comparison")
_SAME = 9  # decimals beyond which two scores differ by the solver's rounding alone


def paper_ridge(items: int, comparisons: int, constant: float = 1.0, *, logarithm: bool = True) -> float:
    """c0 sqrt(d log n), the ridge of Theorem 2.2, or c0 sqrt(d), that of Proposition 2.2."""
    degree = 2 * comparisons / items
    return constant * math.sqrt(degree * (math.log(items) if logarithm else 1.0))


def paper(
    items: int, comparisons: int, epsilon: Real, ridge: float | None = None, kappa_2: float = LOGISTIC.kappa_2
) -> ObjectivePerturbation:
    """Algorithm 1 with the paper's noise and ridge, the latter at least Proposition 2.1's 4 kappa_2/eps."""
    wanted = paper_ridge(items, comparisons) if ridge is None else ridge
    exact = positive(epsilon)
    spent_on_the_gap = 2 * ObjectivePerturbation(items, comparisons, COMPARISON, exact, 1).gap_epsilon
    least = 4 * kappa_2 / float(exact - spent_on_the_gap) * (1 + 1e-9)
    return ObjectivePerturbation(items, comparisons, COMPARISON, exact, max(wanted, least), calibration="paper")


def tight(
    items: int, comparisons: int, epsilon: Real, ridge: float | None = None, protection: Protection = COMPARISON
) -> ObjectivePerturbation:
    """Objective perturbation with the noise that its proof needs."""
    return objective(items, comparisons, protection, positive(epsilon), ridge)


def perturbed(mechanism: ObjectivePerturbation, counts: PairCounts, bits: Bits) -> Floats:
    """Centred scores from objective perturbation."""
    return centred(mechanism.sample(counts, bits))


def from_wins(counts: PairCounts, half_wins: Longs, noise_variance: float = 0.0) -> Floats:
    """Centred scores fitted to wins, with the ridge of least expected error for noise of this variance on them."""
    degree = float(counts.halves.sum()) / len(counts.items)
    return centred(fit_wins(counts, half_wins, ridge=choose_ridge(degree, noise_variance)).theta)


def penalized(counts: PairCounts, ridge: float) -> Floats:
    """Centred scores by maximum likelihood with a ridge, without noise."""
    return centred(fit(counts, ridge=ridge).theta)


def centred(scores: Floats) -> Floats:
    """Scores that sum to 0."""
    return np.asarray(scores - scores.mean())


def strengths(items: int, generator: np.random.Generator) -> Floats:
    """Centred scores by the generator of Section 4.1, the k = n/4 best first."""
    top = items // 4
    return centred(np.log(np.concatenate([np.ones(top), generator.uniform(0.2, 0.7, items - top)])))


def information(counts: PairCounts, curvature: Floats) -> Floats:
    """The Hessian of the likelihood, given the link's curvature at each pair's gap."""
    weights = np.zeros((len(counts.items), len(counts.items)))
    weights[counts.first, counts.second] = counts.comparisons * curvature
    return laplacian(weights + weights.T)


def best_first(scores: NDArray[Any], lots: Longs) -> Longs:
    """The items from the highest score to the lowest; equal scores in the order of their ``lots``."""
    return np.lexsort((lots, -np.round(scores, _SAME)))
