"""The first k as a set, without scores.

Let scores q move within [0, D] between neighbours, up to a common shift. Shekelyan and Loukides 2022 (arXiv 2201.13376)
choose a subset S by its canonical loss, how far it is from being the first k: the largest score outside S less the
smallest inside, or 0. It moves by at most D, so the weights e^(-eps loss/(2D)) are private (exponential mechanism), and
so is permute-and-flip with these weights, which their Lipschitz mechanism covers too and which errs less. ``elect``
uses the former, which has the better zCDP and is drawn exactly for any number of sets.

Gillenwater, Joseph, Munoz Medina and Ribero 2022 choose a sequence s of k items jointly: with q_(i) the i-th largest
score it loses the largest q_(i) - q_(s_i), and has weight e^(-eps loss/(2D)).

The one-shot way adds Gumbel noise of scale k D/eps to the scores and takes the k largest: k steps of the exponential
mechanism (Durfee and Rogers 2019), each at eps/k: changes of the scores lie in an interval of length D.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.votes import Floats, Random


def subsets(items: int, k: int) -> NDArray[np.int64]:
    return np.array(list(combinations(range(items), k)))


def canonical_losses(scores: NDArray[Any], k: int) -> Floats:
    """Of each subset of ``subsets``."""
    held = np.zeros((len(chosen := subsets(len(scores), k)), len(scores)), bool)
    np.put_along_axis(held, chosen, True, axis=1)
    inside = np.where(held, scores, np.inf).min(axis=1)
    outside = np.where(held, -np.inf, scores).max(axis=1)
    return np.maximum(outside - inside, 0.0)


def canonical_probabilities(scores: NDArray[Any], k: int, spread: float, epsilon: float, flip: bool = True) -> Floats:
    """How likely each subset is released, by permute-and-flip or the exponential mechanism."""
    weights = np.exp(-epsilon * canonical_losses(scores, k) / (2 * spread))
    if not flip:
        return np.asarray(weights / weights.sum())
    nodes, parts = np.polynomial.legendre.leggauss(len(weights) // 2 + 1)
    logs = np.log1p(-np.outer((nodes + 1) / 2, weights))
    return np.asarray(weights * (parts / 2 @ np.exp(logs.sum(axis=1, keepdims=True) - logs)))


def one_shot(scores: NDArray[Any], k: int, spread: float, epsilon: float, runs: int, random: Random) -> Any:
    """The set of each run, as sorted indices."""
    noisy = scores + random.gumbel(scale=k * spread / epsilon, size=(runs, len(scores)))
    return np.sort(np.argpartition(-noisy, k - 1, axis=1)[:, :k], axis=1)


def joint_probabilities(scores: NDArray[Any], k: int, spread: float, epsilon: float) -> Floats:
    """How likely each subset is released in any order."""
    sequences = np.array(list(permutations(range(len(scores)), k)))
    losses = np.maximum(-np.sort(-scores)[:k] - scores[sequences], 0).max(axis=1)
    weights = np.exp(-epsilon * losses / (2 * spread))
    code = (1 << np.sort(sequences, axis=1)).sum(axis=1)
    totals = np.bincount(code, weights, 1 << len(scores))
    return np.asarray(totals[(1 << subsets(len(scores), k)).sum(axis=1)] / weights.sum())
