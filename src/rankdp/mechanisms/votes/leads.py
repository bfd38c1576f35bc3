"""Noisy leads: of every pair how much more often one beat the other, with exact integer noise; for Copeland's rule.

A comparison that i wins over j adds 1 to the lead of i over j and takes 1 from that of j over i; a tie adds nothing. Of
each pair one of the two is counted. So when k comparisons can leave and k can come, or one outcome flips (k = 1), leads
change by at most 2k in l1; and by at most 4 k^2 in squared l2, as k equal votes that are reversed do.

The noise is that of ``noisy_counts``, whose proof it is. Majorities are post-processing.
"""

from __future__ import annotations

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.types import Longs


class NoisyLeads(NoisyCounts):
    """Releases the lead of the first over the second of every pair, in the order of ``numpy.triu_indices``."""

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """Wins less losses of the first of each pair against the second, 0 for pairs that never met."""
        items = len(counts.items)
        table = np.zeros((items, items), np.int64)
        table[counts.first, counts.second] = (counts.half_wins_first - counts.half_wins_second) // 2
        return table[np.triu_indices(items, 1)]

    @property
    def l1(self) -> int:
        """How far neighbours' leads can be apart in l1."""
        return 2 * self.protection.moved

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
        return 4 * self.protection.moved**2
