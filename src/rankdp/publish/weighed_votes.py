"""Voters bounded by weights; a noisy table of voters by their votes chooses the bound: ``max_per_voter="auto"``.

A twentieth of epsilon goes into a histogram of voters by their load (``data.voter_loads``): 1, 2 to 3, 4 to 7, …, and
256 or more. A voter who is replaced leaves one cell and comes to another: 2 in l1. Given the bound c, which is
post-processing of that histogram, the weighed counts of a voter have the norms of c comparisons (``voter_loads``), so
all other noise is that of the counts' own mechanisms for c, in steps.

The bound is the one of least expected error: with S the weighed comparisons, V those with squared weights and v the
variance of the noise on a difference, (2V/n + v)/(2S/n)^2. V/S, below 1 where there are weights, is also what the
variance of sampling errors is smaller by. Cells below two and a half standard deviations of their noise count as empty,
so that noise in the last ones does not look like many votes; where all are empty, c is 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.data.voter_loads import STEPS, VoterLoads
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyDifferences
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.types import Floats, Longs

MOST = 256
"""The largest bound that is chosen."""
SHARE = Fraction(1, 20)
_BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, MOST)
_CELLS = 9
_WITHOUT = 4
_CLEAR = 2.5


class NoisyVoters(NoisyCounts):
    """Releases how many voters have a load in each cell."""

    l1 = l2_squared = 2  # a voter leaves one cell and comes to another


@dataclass(frozen=True, slots=True)
class Weighed:
    """Votes with their weights: half-wins in steps (secret), what is protected, and V/S (released)."""

    counts: PairCounts
    protection: Protection
    sampling: float


def weigh(loads: VoterLoads, protection: Protection, epsilon: Fraction, delta: Fraction, bits: Bits) -> Weighed:
    """Choose the bound and weigh the votes.

    Parameters
    ----------
    loads
        The votes by their voters' loads.
    protection
        What is protected.
    epsilon, delta
        The budget for all that is drawn; the histogram takes ``SHARE`` of epsilon.
    bits
        Where noise comes from.
    """
    histogram = NoisyVoters(protection, epsilon * SHARE)
    noisy = histogram.sample(histogram_of(loads), bits)
    voters = np.where(noisy > _CLEAR * np.sqrt(histogram.count_variance), noisy, 0).astype(np.float64)
    items = len(loads.items)
    spread = items if loads.spread else 0

    def bounded(bound: int) -> Protection:
        return replace(protection, moved=bound, steps=STEPS, spread_items=spread)

    def sizes(bound: int) -> tuple[float, float]:
        load = np.append(2.0 ** np.arange(_CELLS - 1) * np.sqrt(2), 2.0**_CELLS)
        load[0] = 1
        many = _comparisons(load, items) if loads.spread else load
        weight = np.minimum(1, bound / load)
        return float((voters * many * weight).sum()), float((voters * many * weight**2).sum())

    def error(bound: int) -> float:
        total, squares = sizes(bound)
        noise = NoisyDifferences(bounded(bound), epsilon * (1 - 2 * SHARE), delta).count_variance
        return (2 * squares / items + noise) / (2 * total / items) ** 2

    chosen = min(_BOUNDS, key=error) if voters.any() else _WITHOUT
    total, squares = sizes(chosen)
    return Weighed(loads.weighed(chosen), bounded(chosen), squares / total if total else 1.0)


def histogram_of(loads: VoterLoads) -> Longs:
    """How many voters have a load from 2^j to 2^(j+1), in comparisons of one pair; the last cell has no end."""
    size = loads.loads / 2 if loads.spread else loads.loads.astype(np.float64) ** 2  # squared
    cell = np.clip(np.floor(np.log2(np.maximum(size, 1)) / 2 + 1e-12), 0, _CELLS - 1).astype(np.int64)
    return np.bincount(cell, loads.voters, _CELLS).astype(np.int64)


def _comparisons(load: Floats, items: int) -> Floats:
    """About how many comparisons of random pairs have this load: load^2 = k + 2k(k-1)/n."""
    slope = 2 / items
    return np.asarray(((slope - 1) + np.sqrt((1 - slope) ** 2 + 4 * slope * load**2)) / (2 * slope))
