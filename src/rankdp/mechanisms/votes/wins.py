"""Noisy wins (Cai, Algorithm 2): count each item's half-wins and add exact integer noise (``noisy_counts``).

In half-wins neighbours are at most 4 apart in l1, or 4c for a voter with at most c comparisons, and 8 or 8 c^2 in
squared l2 (``protection``).

What follows is post-processing: ranking by noisy wins; and, where only outcomes are secret, fitting the Bradley-Terry
model, for which wins are sufficient once the design is public.
"""

from __future__ import annotations

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.types import Longs


class NoisyWins(NoisyCounts):
    """Releases the vector of half-wins."""

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """Each item's half-wins."""
        return counts.half_wins

    @property
    def l1(self) -> int:
        """How far neighbours' half-wins can be apart in l1."""
        return self.protection.half_win_l1

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
        return self.protection.half_win_l2_squared

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one item's *wins* (half-wins / 2)."""
        return self.count_variance / 4
