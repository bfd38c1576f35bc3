"""What survives the noise for one fixed, public vector of scores, by one-dimensional integrals.

The noisy scores are independent, so the order, the top-k set and each item's place in it are integrals over a
threshold of products and Poisson-binomial counts. All are sums over cells between thresholds that are spread where the
distribution functions involved rise; see ``quadrature.stieltjes``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.contract import ScoreNoise, check_number
from rankdp.theory.quadrature import spread, stieltjes
from rankdp.theory.score_laws import check_top

FloatArray = NDArray[np.float64]
TAIL = 28


def flip_probabilities(x: ArrayLike, noise: ScoreNoise, sigma: float) -> FloatArray:
    """[i, j]: P(items i and j change order), ``P(N - N' > |x_i - x_j|/sigma)``; 1/2 for a tie, 0 on the diagonal."""
    scores = _scores(x, sigma)
    flips = noise.difference_survival(np.abs(scores[:, None] - scores) / sigma)
    np.fill_diagonal(flips, 0.0)
    return flips


def expected_kendall(x: ArrayLike, noise: ScoreNoise, sigma: float) -> float:
    """The expected number of pairs out of order."""
    scores = np.sort(_scores(x, sigma))
    first, second = np.triu_indices(len(scores), 1)
    return float(np.sum(noise.difference_survival((scores[second] - scores[first]) / sigma)))


def order_probability(x: ArrayLike, noise: ScoreNoise, sigma: float) -> float:
    """P(the noisy scores have the same order as x): H_k(t) = P(the k lowest in order and below t), item by item.

    H_k(t) is the integral of H_(k-1) against the law of the k-th noisy score up to t. Below 1e-15 it may say 0.
    """
    scores = np.sort(_distinct(x, noise, sigma))
    flips = noise.difference_survival(np.diff(scores)[::2] / sigma)
    if float(np.sum(np.log1p(-flips))) < -35:  # every other pair in order, independently: already hopeless
        return 0.0
    levels = int(np.clip(8_000 // len(scores), 32, 1600))
    u = np.concatenate([np.geomspace(1e-11, 0.5 / levels, TAIL)[:-1], np.linspace(0, 0.5, levels // 2 + 1)[1:]])
    offsets = sigma * noise.quantile(np.concatenate([u, 1 - u[:-1][::-1]]))
    edges = np.unique((scores[:, None] + offsets).ravel())
    edges = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
    fine, coarse = (_chain(scores, noise, sigma, part, offsets) for part in (edges, edges[::2]))
    return float(np.clip((4 * fine - coarse) / 3, 0, 1))


def _chain(scores: FloatArray, noise: ScoreNoise, sigma: float, edges: FloatArray, offsets: FloatArray) -> float:
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


def top_k_probability(x: ArrayLike, k: int, noise: ScoreNoise, sigma: float) -> float:
    """P(the k highest noisy scores belong to the k highest scores): the integral of B dA.

    A(t) is the chance that all the others are below t, B(t) that all the top k are above it.
    """
    scores = np.sort(_distinct(x, noise, sigma))[::-1]
    check_top(len(scores), k)
    if k == len(scores):
        return 1.0

    def both(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = (edges - scores[:, None]) / sigma
        with np.errstate(divide="ignore"):
            above = np.exp(np.sum(np.log(noise.survival(z[:k])), axis=0))
            below = np.exp(np.sum(np.log(noise.cdf(z[k:])), axis=0))
        return below, above

    edges = _thresholds(scores, k, noise, sigma, lambda t: np.subtract(*both(t)), 1024)
    below, above = both(edges)
    return float(np.clip(stieltjes(above, np.diff(below)), 0, 1))


def top_k_overlap(x: ArrayLike, k: int, noise: ScoreNoise, sigma: float) -> float:
    """The expected share of the true top k among the k highest noisy scores.

    Item i is among them when at most k - 1 of the others exceed it: a Poisson-binomial count at each threshold.
    """
    from rankdp.theory.recovery_kernels import in_top

    scores = np.sort(_distinct(x, noise, sigma))[::-1]
    n = len(scores)
    check_top(n, k)
    if k == n:
        return 1.0
    if 2 * k > n:  # count those that are rightly left out
        return 1 - (n - k) / k * (1 - top_k_overlap(-scores, n - k, noise, sigma))

    def weight(edges: FloatArray) -> FloatArray:
        from scipy.special import ndtr

        above = noise.survival((edges - scores[:, None]) / sigma)
        variance = np.maximum(np.sum(above * (1 - above), axis=0), 1e-3)
        crowded = ndtr((k - 0.5 - np.sum(above, axis=0)) / np.sqrt(variance))
        return np.asarray(crowded - np.mean(above[:k], axis=0))

    edges = _thresholds(scores, k, noise, sigma, weight, 512 if k * n < 60_000 else 256)
    above = noise.survival((edges - scores[:, None]) / sigma)
    chances = np.empty((len(edges), k))
    in_top(np.ascontiguousarray(above.T), k, chances)
    masses = -np.diff(above[:k], axis=1)
    return float(np.clip(stieltjes(chances.T, masses) / k, 0, 1))


def _thresholds(
    scores: FloatArray,
    k: int,
    noise: ScoreNoise,
    sigma: float,
    weight: Callable[[FloatArray], FloatArray],
    cells: int,
) -> FloatArray:
    """Edges spread where ``weight`` rises, found from a first grid around the items next to the cut and some others."""
    n = len(scores)
    near = np.arange(max(0, k - 6), min(n, k + 6))
    some = np.unique(np.concatenate([near, np.linspace(0, n - 1, 8).astype(int)]))
    u = np.concatenate([np.geomspace(1e-14, 1e-2, 10), np.linspace(0, 1, 13)[1:-1]])
    offsets = sigma * noise.quantile(np.concatenate([u, 1 - u[:10]]))
    edges = np.unique((scores[some][:, None] + offsets).ravel())
    edges = spread(edges, weight(edges), 256)
    half = spread(edges, weight(edges), cells // 2)
    return np.sort(np.concatenate([half, (half[1:] + half[:-1]) / 2]))


def _scores(x: ArrayLike, sigma: float) -> FloatArray:
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 1 or len(scores) < 2 or not np.all(np.isfinite(scores)):
        raise InputError(f"x must be a vector of at least 2 finite scores, got shape {scores.shape}")
    check_number(sigma, "sigma", "a finite number above 0", 0.0)
    return scores


def _distinct(x: ArrayLike, noise: ScoreNoise, sigma: float) -> FloatArray:
    scores = _scores(x, sigma)
    if len(np.unique(scores)) < len(scores):
        raise InputError("x must not hold equal scores: the right order of a tie is undefined")
    if not noise.independent:
        raise Unsupported(f"the {noise.name} noise has dependent coordinates: only simulation can tell")
    return scores
