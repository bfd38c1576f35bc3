"""Recovery by simulation: any noise, any law, with standard errors, in blocks that never hold all draws at once.

Scores are exchangeable, so they may be sorted first: the order is right when the noisy scores still rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError
from rankdp.theory.decoders import Estimate
from rankdp.theory.error_expansion import check_items
from rankdp.theory.noises.contract import ScoreNoise
from rankdp.theory.score_laws import ScoreLaw

FloatArray = NDArray[np.float64]
CELLS = 1 << 20


def error_probability(
    n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Estimate:
    """P_e of (3) with the sorting decoder, by simulation."""
    return _share(lambda y: np.any(y[:, 1:] < y[:, :-1], axis=1), n, noise, sigma, law, draws, rng)


def within_kendall(
    n: int, tolerance: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Estimate:
    """P(at most ``tolerance`` pairs are out of order), by simulation."""
    from rankdp.theory.recovery_kernels import inversions

    def close(y: FloatArray) -> NDArray[np.bool_]:
        count = np.empty(len(y), dtype=np.int64)
        inversions(np.ascontiguousarray(y), count)
        return count <= tolerance

    return _share(close, n, noise, sigma, law, draws, rng)


def within_hamming(
    n: int, tolerance: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> Estimate:
    """P(at most ``tolerance`` positions of the ranking hold the wrong item), by simulation."""

    def close(y: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(np.sum(np.argsort(y, axis=1) != np.arange(n), axis=1) <= tolerance)

    return _share(close, n, noise, sigma, law, draws, rng)


def simulated_top_k(
    n: int, k: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, draws: int, rng: np.random.Generator
) -> tuple[Estimate, Estimate]:
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
        Estimate(float(right), float(np.sqrt(right * (1 - right) / draws))),
        Estimate(float(mean), float(np.sqrt(spread / draws))),
    )


def check_top(n: int, k: int) -> int:
    """How many of n are on top: a whole number from 1 to n."""
    if isinstance(k, bool) or k != int(k) or not 1 <= k <= n:
        raise InputError(f"k must be a whole number from 1 to n = {n}, got {k!r}")
    return int(k)


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
) -> Estimate:
    count = sum(int(np.sum(good(y))) for y in _blocks(n, noise, sigma, law, draws, rng))
    share = count / draws
    return Estimate(share, float(np.sqrt(share * (1 - share) / draws)))
