"""What a voter contributes, bounded in two ways: comparisons are left out, or weighed once the bound is known.

**Left out.** Of a voter's comparisons the c smallest of an exponential race are kept: one that a voter made w times
gets the first min(c, w) order statistics of w exponential variables, by Rényi's representation

    E_k = E_(k-1) + X_k / (w - k + 1),   X_k = -log U_k,

with U_k a hash of the voter's id, the content and k. So each of a voter's comparisons, equal ones too, is kept with the
same probability, and what is kept is a function of the voter's own rows.

**Weighed.** Votes are grouped by their voters' loads.

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
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from rankdp.data.counts import PairCounts, pairs_of
from rankdp.types import Floats, Ints, Longs, Words

STEPS = 1 << 16
OVERLOAD = 1 << 62
"""Loads from here on are not told apart; whoever has one counts for nothing, which every bound allows."""
_BLOCK_ROWS = 1 << 19  # of voters that are bounded together, in a processor's caches
_NONE = np.empty(0, np.int64)


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
    if load >= OVERLOAD:
        return 0
    if spread:
        return min(STEPS, math.isqrt(2 * (bound * STEPS) ** 2 // load))
    return min(STEPS, bound * STEPS // load)


def squared_loads(sums: Floats) -> Longs:
    """Sums of squares, computed in float64, as whole numbers that are not below the true ones.

    Up to 2^53 they are exact. Beyond, each of at most 2^40 additions errs by a factor of 1 + 2^-53 at most, so that
    1 + 2^-12 makes up for all of them.
    """
    safe = np.where(sums < 2.0**53, sums, sums * (1 + 2.0**-12))
    return np.minimum(safe, float(OVERLOAD)).astype(np.int64)


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
        first, second, _ = pairs_of(said, count)
        if not spread:
            each = np.bincount(who, times).astype(np.int64)
        else:
            ends, place = np.unique(np.concatenate([who * count + first, who * count + second]), return_inverse=True)
            degrees = np.bincount(place, np.concatenate([times, times])).astype(np.int64)
            each = squared_loads(np.asarray(np.bincount(ends // count, degrees.astype(np.float64) ** 2), np.float64))
        loads, rank = np.unique(each[who], return_inverse=True)
        groups, place = np.unique(rank * (2 * count * count) + said, return_inverse=True)
        amounts = np.bincount(place, times, len(groups)).astype(np.int64)
        rank, said = np.divmod(groups, 2 * count * count)
        first, second, ties = pairs_of(said, count)
        many = np.array([np.count_nonzero(each == load) for load in loads.tolist()], np.int64)
        return cls(items, loads[rank], first, second, (2 - ties) * amounts, ties * amounts, loads, many, spread)

    def weighed(self, bound: int) -> PairCounts:
        """Half-wins of every pair, in steps, when every voter counts for at most ``bound`` comparisons."""
        weights = {load: weight_of(load, bound, self.spread) for load in self.loads.tolist()}
        each = np.array([weights[load] for load in self.load.tolist()], np.int64)
        return PairCounts.from_pairs(self.first, self.second, each * self.ahead, each * self.behind, items=self.items)


@dataclass(frozen=True, slots=True)
class Said:
    """What some rows say: contents as ``counting`` has them."""

    contents: Longs
    weights: Longs
    """How many comparisons each row stands for; empty if all stand for one."""
    voters: Any = None
    """The voters' ids, where they are needed."""

    @property
    def amounts(self) -> Longs:
        """How many comparisons each row stands for."""
        return self.weights if len(self.weights) else np.ones(len(self.contents), np.int64)


@dataclass(frozen=True, slots=True)
class Voted(Said):
    """All rows, with numbers for voters."""

    ids: Any = None
    """The id of each number."""

    @classmethod
    def of(cls, said: Sequence[Said]) -> Voted:
        """Number the voters."""
        if not sum(len(part.contents) for part in said):
            return cls(_NONE, _NONE, np.empty(0, np.int32), pa.array([], pa.string()))
        parts = [part.voters for part in said]
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pa.string()) for part in parts]
        encoded = pa.chunked_array(parts).dictionary_encode().unify_dictionaries()
        voters = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
        contents, weights = (np.concatenate([getattr(part, name) for part in said]) for name in ("contents", "weights"))
        return cls(contents, weights, voters, encoded.chunk(0).dictionary)

    def loads(self, items: tuple[str, ...], spread: bool) -> VoterLoads:
        """The comparisons grouped by their voters' loads."""
        return VoterLoads.of(items, self.voters, self.contents, self.amounts, spread)

    def kept(self, most: Longs) -> tuple[Longs, Longs]:
        """The contents that are kept, and how often each, when voter v may give most[v]."""
        contents, weights, ids = self.contents, self.weights, self.ids
        if not len(contents):
            return _NONE, _NONE
        said, distinct = contents, None
        if (int(contents.max()) + 1) * len(ids) >= 2**63:
            distinct, said = np.unique(contents, return_inverse=True)
        span = int(said.max()) + 1
        keys = self.voters.astype(np.int64)
        keys *= span
        keys += said
        if len(weights):
            order = np.argsort(keys, kind="stable")
            keys, weights = keys[order], weights[order]
        else:
            keys.sort()
        firsts = np.unique(keys[::_BLOCK_ROWS] // span)  # blocks begin with these voters
        kept, amounts = [], []
        for start, end in pairwise([*np.searchsorted(keys, firsts * span).tolist(), len(keys)]):
            changes = np.flatnonzero(np.diff(keys[start:end], prepend=-1))
            times = (
                np.add.reduceat(weights[start:end], changes) if len(weights) else np.diff(changes, append=end - start)
            )
            who, what = np.divmod(keys[start:end][changes], span)
            what = what if distinct is None else distinct[what]
            first = int(who[0])
            who -= first
            totals = np.bincount(who, times)
            bounds = most[first : first + len(totals)]
            many = totals > bounds
            cut = many[who]
            if cut.any():
                # the voters with more than may count are numbered among themselves
                texts = ids.slice(first, len(many)).filter(pa.array(many)).cast(pa.string()).to_pylist()
                times[cut] = _race((np.cumsum(many) - 1)[who[cut]], what[cut], times[cut], texts, bounds[many])
            kept.append(what[times > 0])
            amounts.append(times[times > 0])
        return np.concatenate(kept), np.concatenate(amounts)


def _race(who: Longs, what: Longs, times: Longs, ids: Sequence[str], most: Longs) -> Longs:
    """How many of each voter's comparisons, grouped by what they say, are among their `most` first (see above).

    Voters come in order, each with more than theirs. Two comparisons of a voter that tie for the last place are both
    left out, so that the choice rests on nothing but the voter's own rows.
    """
    seeds = np.fromiter((zlib.crc32(voter.encode()) for voter in ids), np.uint64, len(ids))
    hashes = _mixed(_mixed(seeds)[who] ^ what.astype(np.uint64))
    still, reached = np.arange(len(who)), np.zeros(len(who))
    groups, times_reached, k = [_NONE], [np.empty(0)], 0
    while len(still := still[np.minimum(times[still], most[who[still]]) > k]):
        uniform = ((_mixed(hashes[still] + np.uint64(k)) >> np.uint64(11)) + 0.5) * 2.0**-53
        reached[still] -= np.log(uniform) / (times[still] - k)
        groups.append(still)
        times_reached.append(reached[still])
        k += 1
    group, entry = np.concatenate(groups), np.concatenate(times_reached)
    runner = who[group]
    order = np.lexsort((entry, runner))
    ordered = np.append(entry[order], np.inf)
    starts = np.searchsorted(runner[order], np.arange(len(ids) + 1))
    last = starts[:-1] + most - 1
    # the first entry behind the last place, if it is the same voter's
    behind = np.where(last + 1 < starts[1:], ordered[last + 1], np.inf)
    limit = np.where(most > 0, np.where(ordered[last] == behind, np.nextafter(behind, 0.0), ordered[last]), -1.0)
    return np.bincount(group[entry <= limit[runner]], minlength=len(who))


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64: every bit of a word moves about half of the others."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
