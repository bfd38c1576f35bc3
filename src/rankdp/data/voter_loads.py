"""Votes grouped by their voters' loads, so that every voter can be given a weight once the bound is known.

A voter with k comparisons gets the weight min(1, c/k) for each instead of losing all but c of them: what a bound of c
keeps of a voter is an average of what dropping would keep, so every norm of it is at most that of c comparisons, and
less of what the voter said is lost. In integers: comparisons are counted in ``STEPS`` steps, and a weight is rounded
down to a whole number of steps, W <= STEPS c/k.

Where noise is for the l2 norm, a voter whose comparisons are spread over many items moves differences less than one who
compares the same pair again and again. With d_i the voter's comparisons of item i and q = sum of d_i^2 the differences
have an l2 norm of at most sqrt(q), so that the weight may be min(1, c sqrt(2/q)): c/k for k times the same pair,
c/sqrt(k) where no item occurs twice. In integers W^2 q <= 2 c^2 STEPS^2. So the weighed differences and degrees of a
voter have a squared l2 norm of at most 2 c^2 (in comparisons), and their comparisons of pairs one of at most c^2,
because the squares of a row of pairs add up to at most d_i^2: the bounds of c comparisons.

A weight depends on whom the voter compared and how often, never on who won.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.types import Ints, Longs

STEPS = 1 << 16


def weight_of(load: int, bound: int, spread: bool) -> int:
    """The weight of a comparison of a voter with this load, in steps.

    Parameters
    ----------
    load
        k, or q where comparisons are weighed by how they are spread.
    bound
        c.
    spread
        Whether they are.
    """
    if spread:
        return min(STEPS, math.isqrt(2 * (bound * STEPS) ** 2 // load))
    return min(STEPS, bound * STEPS // load)


@dataclass(frozen=True, slots=True, eq=False)
class VoterLoads:
    """How often each pair was compared by voters of each load, and how many such voters there are; secret.

    Parameters
    ----------
    items
        The names of the items.
    load, first, second, ahead, behind
        Of each load and pair the load, the items as indices, and the half-wins of either item.
    loads, voters
        The loads that occur, and how many voters have each.
    spread
        Whether a load is q (see the module) or k.
    """

    items: tuple[str, ...]
    load: Longs
    first: Longs
    second: Longs
    ahead: Longs
    behind: Longs
    loads: Longs
    voters: Longs
    spread: bool

    @classmethod
    def of(cls, items: tuple[str, ...], voters: Ints, contents: Longs, times: Longs, spread: bool) -> VoterLoads:
        """From rows: whose each is, what it says (as in ``counting``), and how many comparisons it stands for."""
        here = times > 0
        who, said, times = voters[here].astype(np.int64), contents[here], times[here]
        count = len(items)
        ties = said >= count * count
        first, second = np.divmod(said - count * count * ties, count)
        if not spread:
            each = np.bincount(who, times).astype(np.int64)
        else:
            ends, place = np.unique(np.concatenate([who * count + first, who * count + second]), return_inverse=True)
            degrees = np.bincount(place, np.concatenate([times, times])).astype(np.int64)
            each = np.zeros(int(who.max(initial=-1)) + 1, np.int64)
            np.add.at(each, ends // count, degrees**2)
        loads, rank = np.unique(each[who], return_inverse=True)
        groups, place = np.unique(rank * (2 * count * count) + said, return_inverse=True)
        amounts = np.bincount(place, times, len(groups)).astype(np.int64)
        rank, said = np.divmod(groups, 2 * count * count)
        ties = said >= count * count
        first, second = np.divmod(said - count * count * ties, count)
        many = np.array([np.count_nonzero(each == load) for load in loads.tolist()], np.int64)
        return cls(items, loads[rank], first, second, (2 - ties) * amounts, ties * amounts, loads, many, spread)

    def weighed(self, bound: int) -> PairCounts:
        """Half-wins of every pair, in steps, when every voter counts for at most ``bound`` comparisons."""
        weights = {load: weight_of(load, bound, self.spread) for load in self.loads.tolist()}
        each = np.array([weights[load] for load in self.load.tolist()], np.int64)
        return PairCounts.from_pairs(self.first, self.second, each * self.ahead, each * self.behind, items=self.items)
