"""The bootstrap of Bradley-Terry strengths: how much they would vary had the comparisons come out otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rankdp.checks import one_of, whole
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.rankers.bradley_terry import fit
from rankdp.types import Floats, Longs


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
    best = fit(counts, ridge=ridge).theta
    redraw = _resampler(counts, resample)

    def refit(generator: np.random.Generator) -> Floats | None:
        """The strengths of one resampled table; None where no maximum exists."""
        won = redraw(generator)
        met = won.any(axis=0)
        drawn = PairCounts(counts.items, counts.first[met], counts.second[met], *(2 * won[:, met]))
        try:
            return fit(drawn, ridge=ridge, start=best, tolerance=tolerance).theta
        except InputError:
            return None

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        fits = list(pool.map(refit, np.random.default_rng(seed).spawn(draws)))
    thetas = [theta for theta in fits if theta is not None]
    if len(thetas) < draws:
        raise InputError(
            f"in {draws - len(thetas)} of {draws} resampled tables some items are never or always beaten "
            "and no maximum exists; give a ridge above 0"
        )
    return np.array(thetas)


def _resampler(counts: PairCounts, resample: str) -> Callable[[np.random.Generator], Longs]:
    """A function that draws the wins of both sides of every pair, in two rows."""
    if resample == "comparisons":
        halves = np.stack([counts.half_wins_first, counts.half_wins_second])
        total = int(halves.sum())
        return lambda generator: generator.multinomial(total // 2, halves.ravel() / total).reshape(2, -1)
    met, chance = counts.halves // 2, counts.half_wins_first / counts.halves

    def outcomes(generator: np.random.Generator) -> Longs:
        ahead = generator.binomial(met, chance)
        return np.stack([ahead, met - ahead])

    return outcomes
