"""All rankings of a few items: permutations in lexicographic order, their neighbours, what increases in them."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

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
