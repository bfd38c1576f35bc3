"""How many comparisons of each voter count fully, chosen from a noisy table of how much voters vote.

``SHARE`` of epsilon goes into a histogram of voters by their load: 1, 2 to 3, 4 to 7, …, 1,024 or more comparisons
(``data.votes.load_counts``), with discrete Laplace noise. A replaced voter leaves one cell and joins another: 2 in l1.
The bound c is post-processing of that histogram, so it costs nothing more, and given c the weighed counts move as
``data.votes`` proves.

The bound is the power of two of least expected error: with S the sum of weights, V the sum of squared weights and v the
variance of the noise on a difference, (2V/n + v)/(2S/n)^2. A cell is used only above the height that noise alone
reaches in some cell of one histogram in twenty, because noise there would look like many votes. Where no cell is used,
noise dominates everything else and c is 1: a larger bound only multiplies it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from rankdp.data.counts import LOADS, PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyDifferences
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.types import Floats, Longs

SHARE = Fraction(3, 100)
"""The part of epsilon that choosing the bound costs."""
BOUNDS = tuple(1 << power for power in range(LOADS))
_FALSE_ALARM = 0.05
_LOADS = np.array([1.0, *(2.0**power * math.sqrt(2) for power in range(1, LOADS))])  # the geometric middle of a cell


class NoisyVoters(NoisyCounts):
    """Releases how many voters have a load in each cell."""

    each = 2, 2  # a voter leaves one cell and joins another

    @property
    def l1(self) -> int:
        """The l1 distance of neighbouring histograms, whatever the bound."""
        return self.each[0]


@dataclass(frozen=True, slots=True)
class UnboundedVotes:
    """The secret counts for every possible bound, and the secret histogram that the choice is made from."""

    counts: dict[int, PairCounts]
    loads: Longs

    def bounded(self, protection: Protection, epsilon: Fraction, delta: Fraction, bits: Bits) -> BoundedVotes:
        """Choose the bound.

        Parameters
        ----------
        protection
            What is protected.
        epsilon, delta
            The budget of the whole release; the histogram takes ``SHARE`` of epsilon.
        bits
            Where the noise comes from.
        """
        histogram = NoisyVoters(replace(protection, steps=1), epsilon * SHARE)
        noisy = histogram.sample(self.loads, bits)
        clear = float(histogram.scale) * math.log(LOADS / (2 * _FALSE_ALARM))
        voters = np.where(noisy > clear, noisy, 0).astype(np.float64)
        items = len(next(iter(self.counts.values())).items)

        def error(bound: int) -> float:
            total, squares = sizes(voters, bound)
            noise = NoisyDifferences(replace(protection, moved=bound), epsilon * (1 - SHARE), delta)
            return (2 * squares / items + noise.count_variance) / (2 * total / items) ** 2

        chosen = min(self.counts, key=error) if voters.any() else min(self.counts)
        return BoundedVotes(self.counts[chosen], replace(protection, moved=chosen))


@dataclass(frozen=True, slots=True)
class BoundedVotes:
    """Weighed votes: secret half-wins in steps, and the unit of protection with its bound."""

    counts: PairCounts
    protection: Protection

    @property
    def description(self) -> str:
        """The bound, in words."""
        bound = self.protection.moved
        counts = "1 comparison of each voter counts" if bound == 1 else f"{bound:,} comparisons of each voter count"
        return f"At most {counts} fully; with more, each of them has less weight."


def sizes(voters: Floats, bound: int) -> tuple[float, float]:
    """S and V for voters in each cell of the histogram.

    Parameters
    ----------
    voters
        How many voters have a load in each cell.
    bound
        c.
    """
    weight = np.minimum(1, bound / _LOADS)
    return float((voters * _LOADS * weight).sum()), float((voters * _LOADS * weight**2).sum())
