"""What survives the noise for one fixed, public vector of scores, by one-dimensional integrals.

The noisy scores are independent, so the order and each item's place in the top k are integrals over a
threshold of products and Poisson-binomial counts. All are sums over cells between thresholds that are spread where the
distribution functions involved rise; see ``quadrature.stieltjes``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rankdp.checks import positive, whole
from rankdp.errors import InputError
from rankdp.theory.noises.score_noise import ScoreNoise, check_independent
from rankdp.theory.quadrature import halved, spread, stieltjes
from rankdp.theory.rank_noise import one_more, without_each
from rankdp.types import Floats


def order_probability(x: ArrayLike, noise: ScoreNoise, sigma: float) -> float:
    """P(the noisy scores have the same order as x): H_k(t) = P(the k lowest in order and below t), item by item.

    H_k(t) is the integral of H_(k-1) against the law of the k-th noisy score up to t. Below 1e-15 it may say 0.
    """
    scores = np.sort(_distinct(x, noise, sigma))
    flips = noise.difference_survival(np.diff(scores)[::2] / sigma)
    if float(np.sum(np.log1p(-flips))) < -35:  # every other pair in order, independently: already hopeless
        return 0.0
    levels = int(np.clip(8_000 // len(scores), 32, 1600))
    u = np.concatenate([np.geomspace(1e-11, 0.5 / levels, 28)[:-1], np.linspace(0, 0.5, levels // 2 + 1)[1:]])
    offsets = sigma * noise.quantile(np.concatenate([u, 1 - u[:-1][::-1]]))
    edges = halved(np.unique((scores[:, None] + offsets).ravel()))
    fine, coarse = (_chain(scores, noise, sigma, part, offsets) for part in (edges, edges[::2]))
    return float(np.clip((4 * fine - coarse) / 3, 0, 1))


def _chain(scores: Floats, noise: ScoreNoise, sigma: float, edges: Floats, offsets: Floats) -> float:
    held = np.ones_like(edges)
    for score in scores:
        low, high = np.searchsorted(edges, [score + offsets[0], score + offsets[-1]])
        window = edges[low : high + 1]
        mass = np.diff(noise.cdf((window - score) / sigma))
        inside = held[low : high + 1]
        held[low + 1 : high + 1] = np.cumsum(mass * (inside[1:] + inside[:-1]) / 2)
        held[: low + 1] = 0.0
        held[high + 1 :] = held[min(high, len(held) - 1)]
    return float(held[-1])


def top_k_overlap(x: ArrayLike, k: int, noise: ScoreNoise, sigma: float) -> float:
    """The expected share of the true top k among the k highest noisy scores.

    Item i is among them when at most k - 1 of the others exceed it: a Poisson-binomial count at each threshold.
    """
    scores = np.sort(_distinct(x, noise, sigma))[::-1]
    n = len(scores)
    whole("k", k, 1, n)
    if k == n:
        return 1.0
    if 2 * k > n:  # count those that are rightly left out
        return 1 - (n - k) / k * (1 - top_k_overlap(-scores, n - k, noise, sigma))

    def above(edges: Floats) -> Floats:
        return noise.survival((edges - scores[:, None]) / sigma)

    def weight(edges: Floats) -> Floats:
        chances = above(edges)
        variance = np.maximum(np.sum(chances * (1 - chances), axis=0), 1e-3)
        crowded = scipy.special.ndtr((k - 0.5 - np.sum(chances, axis=0)) / np.sqrt(variance))
        return np.asarray(crowded - np.mean(chances[:k], axis=0))

    chances = above(_thresholds(scores, k, noise, sigma, weight, 512 if k * n < 60_000 else 256))
    rest = reduce(one_more, chances[k:], np.eye(k, 1) * np.ones(chances.shape[1]))
    stays = np.array([counts.sum(axis=0) for counts in without_each(chances[:k], rest)])
    return float(np.clip(stieltjes(stays, -np.diff(chances[:k], axis=1)) / k, 0, 1))


def _thresholds(
    scores: Floats,
    k: int,
    noise: ScoreNoise,
    sigma: float,
    weight: Callable[[Floats], Floats],
    cells: int,
) -> Floats:
    """Edges spread where ``weight`` rises, found from a first grid around the items next to the cut and some others."""
    n = len(scores)
    near = np.arange(max(0, k - 6), min(n, k + 6))
    some = np.unique(np.concatenate([near, np.linspace(0, n - 1, 8).astype(int)]))
    u = np.concatenate([np.geomspace(1e-14, 1e-2, 10), np.linspace(0, 1, 13)[1:-1]])
    offsets = sigma * noise.quantile(np.concatenate([u, 1 - u[:10]]))
    edges = np.unique((scores[some][:, None] + offsets).ravel())
    edges = spread(edges, weight(edges), 256)
    return halved(spread(edges, weight(edges), cells // 2))


def _distinct(x: ArrayLike, noise: ScoreNoise, sigma: float) -> Floats:
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 1 or len(scores) < 2 or not np.all(np.isfinite(scores)):
        raise InputError(f"x must be a vector of at least 2 finite scores, got shape {scores.shape}")
    if len(np.unique(scores)) < len(scores):
        raise InputError("x must not hold equal scores: the right order of a tie is undefined")
    positive("sigma", sigma)
    check_independent(noise)
    return scores
