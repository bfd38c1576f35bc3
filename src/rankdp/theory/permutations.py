"""All rankings of a few items: permutations in lexicographic order, their neighbours, what increases in them.

``tallies`` counts all permutations at once by their longest increasing subsequence l and the positions of letters.
Patience sorting reads a permutation from left to right: a letter goes on the pile with the next larger top, or on a new
pile; in the end there are l piles. What is read so far matters only through which letters were read and which of them
are tops, so the permutations are paths through at most 3^m states. As many paths with l piles take a step as there are
paths into it times paths with l piles out of it. Counts are whole numbers in floating point, exact below 2^53.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
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
    """The lexicographic index of each row among all permutations."""
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
    """Row s: the lexicographic index of c s for every move c. Read-only."""
    table = np.stack([move[all_permutations(items)] for move in moves(items)], axis=1)
    neighbours = places(table.reshape(-1, items)).reshape(table.shape[:2])
    neighbours.flags.writeable = False
    return neighbours


def concordance(permutations: NDArray[Any]) -> Floats:
    """The share of pairs in order of each row."""
    first, second = np.triu_indices(permutations.shape[1], 1)
    return np.asarray((permutations[:, first] < permutations[:, second]).mean(axis=1))


def longest_rising(s: Sequence[int]) -> int:
    """The length of the longest increasing subsequence, by patience sorting."""
    tops: list[int] = []
    for value in s:
        pile = bisect_right(tops, value)
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
    """All steps that read the letter at one position, ordered by the state that they leave."""

    read: Longs
    """read[state, letter]: whether it has been read."""
    source: Longs
    """By step: the state it leaves."""
    letter: Longs
    """By step: what is read."""
    target: Longs
    """By step: the state of the next position."""
    into: Floats
    """into[state]: the paths to it."""
    after: Floats
    """after[target, l]: the paths from it that end with l piles."""

    def reading(self, letter: int) -> tuple[Longs, Floats]:
        """The states that can read this letter, and for each the paths with l piles after it."""
        steps = self.letter == letter
        return self.source[steps], self.after[self.target[steps]]


@lru_cache(maxsize=1)  # shared by both counts of one length
def _positions(items: int) -> tuple[_Position, ...]:
    """States are numbers: bit b says whether b was read, bit m + b whether it is a top."""
    unit = 1 << np.arange(items, dtype=np.int64)
    states, into = np.zeros(1, dtype=np.int64), np.ones(1)
    steps = []
    for _ in range(items):
        read, tops = (states[:, None] & unit > 0).astype(np.int64), states[:, None] >> items & unit
        source, letter = np.nonzero(read == 0)
        covered = np.zeros(read.shape, dtype=np.int64)  # the next larger top
        for b in range(items - 2, -1, -1):
            covered[:, b] = np.where(tops[:, b + 1] > 0, tops[:, b + 1], covered[:, b + 1])
        reached = states[source] + unit[letter] + (unit[letter] - covered[source, letter] << items)
        states, target = np.unique(reached, return_inverse=True)
        steps.append((read, source, letter, target, into))
        into = _onwards(into, source, target)
    piles = (states[:, None] >> items & unit > 0).sum(axis=1)
    after = np.eye(items + 1)[piles]
    positions = []
    for read, source, letter, target, into in reversed(steps):
        positions.append(_Position(read, source, letter, target, into, after))
        after = np.add.reduceat(after[target], np.flatnonzero(np.diff(source, prepend=-1)))
    return tuple(reversed(positions))


def _onwards(paths: Floats, source: Longs, target: Longs) -> Floats:
    """What leads to each state of the next position, from what leads to the states of this one."""
    order = np.argsort(target, kind="stable")
    return np.add.reduceat(paths[source[order]], np.flatnonzero(np.diff(target[order], prepend=-1)))


@lru_cache(maxsize=64)
def tallies(items: int) -> tuple[Floats, Floats]:
    """landed[l, i, b]: the permutations with b at position i. kept[l, b, c]: those with b before c."""
    landed = np.zeros((items + 1, items, items))
    kept = np.zeros((items + 1, items, items))
    for i, position in enumerate(_positions(items)):
        for letter in range(items):
            states, after = position.reading(letter)
            paths = position.into[states] * after.T
            landed[:, i, letter] = paths.sum(axis=1)
            kept[:, :, letter] += paths @ position.read[states]
    return landed, kept


@lru_cache(maxsize=16)
def pair_tallies(items: int) -> Floats:
    """counts[l, i, j, b, c]: the permutations with b at position i and c at j, for i < j."""
    counts = np.zeros((items + 1, items, items, items, items))
    known = np.zeros((1, items, items))  # known[state, i, b]: the paths to it that have read b at i
    for j, position in enumerate(_positions(items)):
        for letter in range(items):
            states, after = position.reading(letter)
            counts[:, :, j, :, letter] = np.tensordot(after, known[states], (0, 0))
        known = _onwards(known, position.source, position.target)
        np.add.at(known[:, j], (position.target, position.letter), position.into[position.source])
    return counts
