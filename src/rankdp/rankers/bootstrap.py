"""The bootstrap of Bradley-Terry strengths: how much they would vary had the comparisons come out otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rankdp.checks import one_of, whole
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.newton import NEWTON_STEPS, pair_starts
from rankdp.types import Floats, Longs

_FEW_PER_CELL = 60  # half-wins up to which drawing them one by one is quicker than a binomial for each cell


def bootstrap(
    counts: PairCounts,
    draws: int,
    seed: int | np.random.Generator,
    *,
    ridge: float = 0.0,
    resample: str = "comparisons",
    tolerance: float = 1e-10,
    threads: int | None = None,
) -> Floats:
    """Logistic strengths of resampled tables.

    Half-wins do not tell two ties from a win each: a tie is drawn as a win for either side with equal chances, which
    makes the spread a little too wide, never too narrow.

    Parameters
    ----------
    counts
        How often each item beat each other item.
    draws
        How many tables.
    seed
        A seed or a generator; the result depends on it, not on the threads.
    ridge
        As in `fit`. Without one, a resampled table in which an item is never or always beaten is refused.
    resample
        ``"comparisons"`` draws as many comparisons with replacement (a multinomial law over pairs and winners);
        ``"outcomes"`` keeps how often each pair met and draws the winners (a binomial law for each pair).
    tolerance
        No entry of the gradient of any draw exceeds it.
    threads
        How many to use; all cores by default.

    Returns
    -------
    Floats
        One row of strengths for each draw.
    """
    whole("draws", draws, 1)
    one_of("resample", resample, ("comparisons", "outcomes"))
    best = fit(counts, ridge=ridge)
    from rankdp.rankers import newton_kernels as kernels

    redraw = _resampler(counts, resample)
    starts, out = pair_starts(counts), np.empty((draws, len(counts.items)))
    size = max(1, min(64, 20_000_000 // max(1, len(counts))))
    batches = [slice(low, min(low + size, draws)) for low in range(0, draws, size)]
    generators = np.random.default_rng(seed).spawn(len(batches))

    def run(batch: slice, generator: np.random.Generator) -> Longs:
        won = redraw(batch.stop - batch.start, generator)
        return kernels.refit_many(
            starts, counts.second, won, float(ridge), best.theta, tolerance, NEWTON_STEPS, out[batch]
        )

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        failures = np.bincount(np.concatenate(list(pool.map(run, batches, generators))), minlength=3)
    if failures[1]:
        raise InputError(
            f"in {failures[1]} of {draws} resampled tables some items are never or always beaten "
            "and no maximum exists; give a ridge above 0"
        )
    if failures[2]:
        raise Unsupported(
            f"{failures[2]} of {draws} fits did not settle within {NEWTON_STEPS} steps of Newton's method"
        )
    return out


def _resampler(counts: PairCounts, resample: str) -> Callable[[int, np.random.Generator], Longs]:
    """A function that draws the wins of both sides of every pair, side by side: draws x (2 pairs)."""
    halves = np.column_stack([counts.half_wins_first, counts.half_wins_second])
    total, pairs = int(halves.sum()), len(counts)
    if resample == "outcomes":
        met, chance = counts.halves // 2, counts.half_wins_first / counts.halves

        def outcomes(draws: int, generator: np.random.Generator) -> Longs:
            ahead = generator.binomial(met, chance, size=(draws, pairs))
            return np.stack([ahead, met - ahead], axis=2).reshape(draws, -1)

        return outcomes
    if total > min(2**32, _FEW_PER_CELL * halves.size):
        shares = halves.ravel() / total
        return lambda draws, generator: generator.multinomial(total // 2, shares, size=draws)
    cells = np.repeat(np.arange(halves.size, dtype=np.uint32), halves.ravel())
    from rankdp.rankers import newton_kernels as kernels

    def comparisons(draws: int, generator: np.random.Generator) -> Longs:
        won = np.zeros((draws, halves.size), np.int64)
        for row in won:
            kernels.tally(cells, generator.integers(0, total, total // 2, dtype=np.uint32), row)
        return won

    return comparisons
