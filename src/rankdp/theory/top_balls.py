"""Counting lists of the k best of n items around one of them, by how many items they keep and how many in place.

A list that has z items in common with the true one, h of them at the same place, is at distance (k - z) + (k - h):
the items that were exchanged, and the places whose item is another one. Both parts are metrics. The number of lists is

    C(k, h) D(k - h, z - h) (n - k)(n - k - 1)…(n - 2k + z + 1),
    D(m, r) = sum over j of (-1)^j C(m, j) C(m - j, r - j)^2 (r - j)!.

C chooses the places that stay; D counts the ways to move r of m items to as many of the m places, none to its own
(inclusion and exclusion over the items that do stay); the last factor fills the other places with new items.

All places of a list are alike, so the law of one item follows from the means of z and h alone.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rankdp.types import Floats


@lru_cache(maxsize=1 << 14)
def moved(places: int, items: int) -> int:
    """D(m, r): ways to move r of the items of m places to others of the places, none to its own."""
    return sum(
        (-1) ** j * math.comb(places, j) * math.comb(places - j, items - j) ** 2 * math.factorial(items - j)
        for j in range(items + 1)
    )


@dataclass(frozen=True)
class TopLists:
    """The lists of the ``length`` best of ``items`` items, counted around one of them."""

    items: int
    length: int

    @property
    def largest(self) -> int:
        """The largest distance."""
        return len(self.up_to) - 1

    @cached_property
    def cells(self) -> dict[tuple[int, int], int]:
        """By items kept and items in place: how many lists there are, nearest first."""
        n, k = self.items, self.length
        found = {
            (z, h): math.comb(k, h) * moved(k - h, z - h) * math.perm(n - k, k - z)
            for z in range(k, -1, -1)
            for h in range(z, -1, -1)
        }
        return {cell: found[cell] for cell in sorted(found, key=self.distance) if found[cell]}

    def distance(self, cell: tuple[int, int]) -> int:
        """The distance of a list that keeps z items, h of them in place."""
        return 2 * self.length - sum(cell)

    def _up_to(self, weigh: tuple[int, int]) -> list[int]:
        """By radius: the sum over the lists of the ball of weigh[0] z + weigh[1] h, or their number for (0, 0)."""
        sums = [0] * (max(map(self.distance, self.cells)) + 1)
        for (z, h), count in self.cells.items():
            sums[self.distance((z, h))] += count * (weigh[0] * z + weigh[1] * h if any(weigh) else 1)
        return list(itertools.accumulate(sums))

    @cached_property
    def up_to(self) -> list[int]:
        """By radius: how many lists the ball holds."""
        return self._up_to((0, 0))

    @cached_property
    def mean_kept(self) -> Floats:
        """By radius: the mean number of items kept in the ball."""
        return np.array([kept / size for kept, size in zip(self._up_to((1, 0)), self.up_to, strict=True)])

    @cached_property
    def mean_in_place(self) -> Floats:
        """By radius: the mean number of items in place in the ball."""
        return np.array([kept / size for kept, size in zip(self._up_to((0, 1)), self.up_to, strict=True)])

    def law(self, kept: float, in_place: float) -> Floats:
        """[i, j]: P(the item of place i is at place j), for these means; place k is "unlisted"."""
        n, k = self.items, self.length
        law = np.full((k + 1, k + 1), (kept - in_place) / (k * (k - 1)) if k > 1 else 0.0)
        np.fill_diagonal(law, in_place / k)
        law[:k, k] = 1 - kept / k
        law[k, :k] = (1 - kept / k) / (n - k)
        law[k, k] = 1 - k * law[k, 0]
        return law


@lru_cache(maxsize=64)
def top_lists(items: int, length: int) -> TopLists:
    """The lists of the ``length`` best of ``items`` items, with what was counted before."""
    return TopLists(items, length)
