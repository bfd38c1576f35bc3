"""Reading the order of the scores from their noisy copy: sorting, and the best decoder there is.

For i.i.d. scores and independent noise the posterior coordinates are independent given y, with densities proportional
to f(x) g((y_i - x)/sigma), and the decoder with the smallest error probability takes the most likely order. By Theorem
3.3 that is sorting where the noise is log-concave (p >= 1). Below p = 1 (Section 4.4) it need not be: the spike of the
density makes it likely that *some* score was hardly moved, and which one is worth knowing.

And both by simulation, for any noise and any law, with standard errors, in blocks that never hold all draws at once.
Scores are exchangeable, so they may be sorted first: the order is right when the noisy scores still rise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.contract import ScoreNoise, check_number
from rankdp.theory.score_laws import ScoreLaw, check_items, check_top

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MOST_ITEMS = 7
CELLS = 1 << 20  # of one block of draws


class Simulated(NamedTuple):
    """A simulated number and its standard error."""

    value: float
    error: float


class DecoderGap(NamedTuple):
    """Error probabilities of sorting and of the best decoder, their difference, and how often their answers differ."""

    sort: Simulated
    best: Simulated
    gap: Simulated
    differ: Simulated


def sort_decoder(y: ArrayLike) -> IntArray:
    """The linear decoder of Definition 3.1: items from the highest noisy score to the lowest (ties: the earlier first).

    The paper writes the permutation in ascending order; rankdp lists the best first everywhere.
    """
    y = np.asarray(y, dtype=float)
    return np.argsort(-y, axis=-1, kind="stable")


def order_posterior(y: ArrayLike, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> tuple[IntArray, FloatArray]:
    """All orders of up to 7 items (best first) and the probability of each given the noisy scores y.

    On cells of the line, graded around every y_i, with the noise's mass in each cell exact.
    """
    from rankdp.theory.recovery_kernels import order_chances

    y = np.asarray(y, dtype=float)
    _check(noise, sigma)
    if y.ndim != 1 or not 2 <= len(y) <= MOST_ITEMS:
        raise InputError(f"y must be a vector of 2 to {MOST_ITEMS} noisy scores, got shape {y.shape}")
    ascending = _orders(len(y))
    chances = np.empty(len(ascending))
    order_chances(_posterior_masses(y, noise, sigma, law), ascending, chances)
    return ascending[:, ::-1], chances / np.sum(chances)


def map_decoder(y: ArrayLike, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> IntArray:
    """The most likely order given y, best first: brute force over all orders of up to 7 items."""
    orders, chances = order_posterior(y, noise, sigma, law)
    return np.asarray(orders[int(np.argmax(chances))])


def decoder_gap(
    n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> DecoderGap:
    """What sorting loses against the best decoder, with n scores drawn from the law.

    For each draw of y the two decoders err with probability 1 - P(their order given y), which is averaged: the
    difference is never negative, and far less noisy than a count of errors.
    """
    right = np.empty((draws, 2))
    same = np.empty(draws, dtype=bool)
    for draw in range(draws):
        y = law.sample(n, rng) + sigma * noise.sample(n, rng)
        orders, chances = order_posterior(y, noise, sigma, law)
        place = int(np.flatnonzero((orders == sort_decoder(y)).all(axis=1))[0])
        best = int(np.argmax(chances))
        right[draw] = chances[place], chances[best]
        same[draw] = chances[best] - chances[place] < 1e-9
    sort, best_one = 1 - right[:, 0], 1 - right[:, 1]
    return DecoderGap(estimate(sort), estimate(best_one), estimate(sort - best_one), estimate(~same))


def estimate(values: ArrayLike) -> Simulated:
    """The mean of independent values and its standard error."""
    sample = np.asarray(values, dtype=float)
    return Simulated(float(np.mean(sample)), float(np.std(sample, ddof=1) / np.sqrt(len(sample))))


def _check(noise: ScoreNoise, sigma: float) -> None:
    check_number(sigma, "sigma", "a finite number above 0", 0.0)
    if not noise.independent:
        raise Unsupported(f"the {noise.name} noise has dependent coordinates: only simulation can tell")


@lru_cache(maxsize=8)
def _orders(n: int) -> IntArray:
    orders = np.array(list(itertools.permutations(range(n))), dtype=np.int64)
    orders.flags.writeable = False
    return orders


def _posterior_masses(y: FloatArray, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> FloatArray:
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
    """P_e of (3) with the sorting decoder, by simulation."""
    return _share(lambda y: np.any(y[:, 1:] < y[:, :-1], axis=1), n, noise, sigma, law, draws, rng)


def within_kendall(
    n: int, tolerance: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Simulated:
    """P(at most ``tolerance`` pairs are out of order), by simulation."""
    from rankdp.theory.recovery_kernels import inversions

    def close(y: FloatArray) -> NDArray[np.bool_]:
        count = np.empty(len(y), dtype=np.int64)
        inversions(np.ascontiguousarray(y), count)
        return count <= tolerance

    return _share(close, n, noise, sigma, law, draws, rng)


def within_hamming(
    n: int, tolerance: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Simulated:
    """P(at most ``tolerance`` positions of the ranking hold the wrong item), by simulation."""

    def close(y: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(np.sum(np.argsort(y, axis=1) != np.arange(n), axis=1) <= tolerance)

    return _share(close, n, noise, sigma, law, draws, rng)


def simulated_top_k(
    n: int, k: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> tuple[Simulated, Simulated]:
    """(P(the top-k set is right), the expected share of it that is right), by simulation."""
    check_top(n, k)
    total = np.zeros(3)
    for y in _blocks(n, noise, sigma, law, draws, rng):
        least = np.partition(y, n - k, axis=1)[:, n - k]
        share = np.sum(y[:, n - k :] >= least[:, None], axis=1) / k
        total += np.sum(share == 1), np.sum(share), np.sum(share**2)
    right, mean, square = total / draws
    spread = max(square - mean**2, 0.0)
    return (
        Simulated(float(right), float(np.sqrt(right * (1 - right) / draws))),
        Simulated(float(mean), float(np.sqrt(spread / draws))),
    )


def _blocks(
    n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Noisy scores in the order of the true ones, lowest first, a block of rows at a time."""
    check_items(n)
    if draws < 2:
        raise InputError(f"draws must be at least 2, got {draws!r}")
    rows = max(1, CELLS // n)
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), n)
        scores = law.sample(shape, rng)
        scores.sort(axis=1)
        yield scores + sigma * noise.sample(shape, rng)


def _share(
    good: Callable[[FloatArray], NDArray[np.bool_]],
    n: int,
    noise: ScoreNoise,
    sigma: float,
    law: ScoreLaw,
    draws: int,
    rng: np.random.Generator,
) -> Simulated:
    count = sum(int(np.sum(good(y))) for y in _blocks(n, noise, sigma, law, draws, rng))
    share = count / draws
    return Simulated(share, float(np.sqrt(share * (1 - share) / draws)))
