"""Differences: wins less losses of every item, with exact integer noise; and the design, with noise of its own.

A comparison that i wins over j adds e_i - e_j to the vector D of differences, a tie adds 0. Who was compared with whom
moves D only through who won, so D can be fitted with the *expected* number of comparisons of each pair
(``rankers.expected_design``), and an error of that number is of second order. Objective perturbation, which needs no
idea of the design, pays for that with more noise.

Sensitivities, when k comparisons leave and k come (k = 1, or c for voters):

| counts | l1 | squared l2 |
|---|---|---|
| differences | 4k | 8 k^2 |
| degrees: comparisons of each item | 4k | 4 k^2 |
| comparisons of each pair, or of each set of pairs | 2k | 2 k^2 |
| leads: of each pair the wins of the first less those of the second | 2k | 4 k^2 |

Proof. One comparison adds a vector with entries +1 and -1 (or none) to D: l1 norm at most 2, l2 norm at most sqrt(2).
By the triangle inequality 2k of them move D by at most 4k and 2 sqrt(2) k; k equal votes reversed do. Those
that leave add a non-negative vector of l1 norm 2k and entries of at most k to the degrees, so of squared l2 norm at
most 2 k^2; so do those that come, and the inner product of two non-negative vectors only brings them closer: 4k and
4 k^2. In the same way comparisons of pairs, or of disjoint sets of them, add non-negative vectors of l1 norm k, of
squared l2 norm at most k^2: 2k and 2 k^2. Leads have the same l1 norms with a sign, so that what leaves and what comes
can add up, as k equal votes that are reversed do: 2k and (2k)^2. Where some rows are not counted, or a voter has fewer
than c, fewer leave or come and all of this holds.

The noise is that of ``noisy_counts``, whose proof it is. Everything after it is post-processing.
"""

from __future__ import annotations

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.types import Longs


class NoisyDifferences(NoisyCounts):
    """Releases wins less losses of every item, a tie counting for nothing."""

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """Wins less losses of each item: half of its half-wins less half-losses, which differ by an even number."""
        won, lost = counts.records()
        return (won - lost) // 2

    @property
    def l1(self) -> int:
        """How far neighbours' differences can be apart in l1."""
        return 4 * self.protection.moved

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
        return 8 * self.protection.moved**2


class NoisyDegrees(NoisyCounts):
    """Releases how many comparisons every item had."""

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """How many comparisons each item had."""
        won, lost = counts.records()
        return (won + lost) // 2

    @property
    def l1(self) -> int:
        """How far neighbours' degrees can be apart in l1."""
        return 4 * self.protection.moved

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
        return 4 * self.protection.moved**2


class NoisyPairs(NoisyCounts):
    """Releases how often every pair was compared, also if never, in the order of ``numpy.triu_indices``.

    The same noise is right for how many comparisons fall into each of several disjoint sets of pairs.
    """

    @classmethod
    def counted(cls, counts: PairCounts) -> Longs:
        """The number of each pair of items, 0 for pairs that never met."""
        items = len(counts.items)
        table = np.zeros((items, items), np.int64)
        table[counts.first, counts.second] = cls._doubled(counts) // 2
        return table[np.triu_indices(items, 1)]

    @staticmethod
    def _doubled(counts: PairCounts) -> Longs:
        return counts.halves

    @property
    def l1(self) -> int:
        """How far neighbours' numbers of pairs can be apart in l1."""
        return 2 * self.protection.moved

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
        return 2 * self.protection.moved**2


class NoisyLeads(NoisyPairs):
    """Releases the lead of the first over the second of every pair, a tie counting for nothing; for Copeland's rule."""

    @staticmethod
    def _doubled(counts: PairCounts) -> Longs:
        return counts.half_wins_first - counts.half_wins_second

    @property
    def l2_squared(self) -> int:
        """How far neighbours' leads can be apart in squared l2."""
        return 4 * self.protection.moved**2


class NoisyTotal(NoisyCounts):
    """Releases one number: how many comparisons were of pairs in some public set. At most k come or go: k and k^2."""

    @property
    def l1(self) -> int:
        """How far neighbours' numbers can be apart."""
        return self.protection.moved_in_all

    @property
    def l2_squared(self) -> int:
        """The square of that."""
        return self.protection.moved_in_all**2
