"""All rankings of a few items: permutations in lexicographic order, their neighbours, what increases in them.

``tallies`` counts all permutations at once by their longest increasing subsequence l and by where their values stand.
Patience sorting reads a permutation from left to right: a value goes on the pile with the next larger top, or on a new
pile; in the end there are l piles. What is read so far matters only through the set of values read and the set of tops,
so the m! permutations are paths through at most 3^m states. As many paths with l piles take a step as there are paths
into it times paths with l piles out of it. Counts are whole numbers in floating point, exact below 2^53.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankdp.types import Floats, Ints, Longs


def all_permutations(items: int) -> Ints:
    """All permutations of 0..m-1 in lexicographic order, one a row."""
    return np.array(list(itertools.permutations(range(items))), dtype=np.int32)


def places(permutations: NDArray[Any]) -> Longs:
    """Where each row stands among all permutations in lexicographic order."""
    items = permutations.shape[1]
    return np.asarray(np.searchsorted(_codes(items), permutations @ _digits(items)), dtype=np.int64)


def _digits(items: int) -> Longs:
    return np.asarray(items ** np.arange(items - 1, -1, -1), dtype=np.int64)


@lru_cache(maxsize=8)
def _codes(items: int) -> Longs:
    """All permutations as numbers to the base m, which rise."""
    return np.asarray(all_permutations(items) @ _digits(items), dtype=np.int64)


def moves(items: int) -> Ints:
    """The (m-1)^2 permutations that move one element: what a neighbour does to a ranking."""
    identity = list(range(items))
    moved = set()
    for taken in range(items):
        rest = identity[:taken] + identity[taken + 1 :]
        moved |= {(*rest[:place], taken, *rest[place:]) for place in range(items)}
    return np.array(sorted(moved - {tuple(identity)}), dtype=np.int32)


@lru_cache(maxsize=8)
def neighbour_places(items: int) -> Longs:
    """Row s: where c s stands in lexicographic order, for every move c. Read-only."""
    table = np.stack([move[all_permutations(items)] for move in moves(items)], axis=1)
    neighbours = places(table.reshape(-1, items)).reshape(table.shape[:2])
    neighbours.flags.writeable = False
    return neighbours


def concordance(permutations: NDArray[Any]) -> Floats:
    """The share of pairs in order of each row."""
    first, second = np.triu_indices(permutations.shape[1], 1)
    return np.asarray((permutations[:, first] < permutations[:, second]).mean(axis=1))


def longest_increasing(s: Sequence[int]) -> int:
    """The length of the longest increasing subsequence, by patience sorting."""
    tops: list[int] = []
    for value in s:
        pile = bisect_left(tops, value)
        tops[pile : pile + 1] = [value]
    return len(tops)


def increasing_subsequences(s: Sequence[int]) -> list[int]:
    """How many increasing subsequences of each length 0..m a permutation has."""
    ending = [[0] * (len(s) + 1) for _ in s]
    for j, value in enumerate(s):
        ending[j][1] = 1
        for i in range(j):
            if s[i] < value:
                ending[j] = [old + (ending[i][k - 1] if k else 0) for k, old in enumerate(ending[j])]
    return [1] + [sum(row[k] for row in ending) for k in range(1, len(s) + 1)]


def tableau_shape(s: Sequence[int]) -> tuple[int, ...]:
    """The shape of the two tableaux of a permutation, by Schensted's row insertion."""
    rows: list[list[int]] = []
    for value in s:
        bumped = value
        for row in rows:
            place = bisect_right(row, bumped)
            if place == len(row):
                row.append(bumped)
                break
            row[place], bumped = bumped, row[place]
        else:
            rows.append([bumped])
    return tuple(len(row) for row in rows)


class _Position(NamedTuple):
    """All steps that read the value at one position: those of a state are a row, one for each value not yet read."""

    used: Floats
    """used[state, value]: 1 if it has been read."""
    values: Longs
    """values[state, step]: what is read."""
    targets: Longs
    """targets[state, step]: the state of the next position."""
    into: Floats
    """into[state]: the paths to it."""
    after: Floats
    """after[target, l]: the paths from it that end with l piles."""

    def reading(self, value: int) -> tuple[Longs, Floats]:
        """The states that can read this value, and for each the paths with l piles after it."""
        states, steps = np.nonzero(self.values == value)
        return states, self.after[self.targets[states, steps]]


@lru_cache(maxsize=1)  # shared by both counts of one length
def _positions(items: int) -> tuple[_Position, ...]:
    bits = 1 << np.arange(items)
    states, into = np.zeros(1, dtype=np.int64), np.ones(1)  # two sets of bits: the tops, below them the values read
    found = []
    for position in range(items):
        tops, before = (states >> items)[:, None], (states % (1 << items))[:, None]
        unused = before & bits == 0
        values = np.nonzero(unused)[1].reshape(len(states), items - position)
        new = bits[values]
        larger = tops & -new
        reached = ((tops ^ (larger & -larger) | new) << items) + (before | new)
        states, targets = np.unique(reached, return_inverse=True)
        targets = targets.reshape(values.shape)
        found.append((1.0 - unused, values, targets, into))
        into = _onwards(into, targets)
    after = np.eye(items + 1)[((states >> items)[:, None] & bits != 0).sum(axis=1)]
    positions = []
    for used, values, targets, into in reversed(found):
        positions.append(_Position(used, values, targets, into, after))
        after = after[targets].sum(axis=1)
    return tuple(reversed(positions))


def _onwards(paths: Floats, targets: Longs) -> Floats:
    """What leads to each state of the next position, from what leads to the states of this one."""
    order = np.argsort(targets, axis=None, kind="stable")
    starts = np.flatnonzero(np.diff(targets.ravel()[order], prepend=-1))
    return np.add.reduceat(paths[order // targets.shape[1]], starts)


@lru_cache(maxsize=16)
def tallies(items: int) -> tuple[Floats, Floats]:
    """landed[l, a, b]: the permutations with value a at position b. kept[l, i, j]: those with i before j, for i < j."""
    landed, kept = np.zeros((2, items + 1, items, items))
    for b, position in enumerate(_positions(items)):
        for value in range(items):
            states, after = position.reading(value)
            paths = position.into[states] * after.T
            landed[:, value, b] = paths.sum(axis=1)
            kept[:, :, value] += paths @ position.used[states]
    return landed, np.triu(kept, 1)


@lru_cache(maxsize=16)
def pair_tallies(items: int) -> Floats:
    """counts[l, b1, b2, a1, a2]: the permutations with value a1 at position b1 and a2 at b2, for b1 < b2."""
    counts = np.zeros((items + 1,) + (items,) * 4)
    known = np.zeros((1, items, items))  # known[state, b1, a1]: the paths to it that have read a1 at b1
    for b2, position in enumerate(_positions(items)):
        for value in range(items):
            states, after = position.reading(value)
            counts[:, :, b2, :, value] = np.tensordot(after, known[states], (0, 0))
        known = _onwards(known, position.targets)
        np.add.at(known[:, b2], (position.targets, position.values), position.into[:, None])
    return counts
