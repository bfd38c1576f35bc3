"""Least footrule: the order that minimises the sum of how far items stand from their places on the ballots.

It costs at most twice Kemeny's (Diaconis and Graham 1977). Hillebrand et al. 2025 (arXiv 2511.11319) release for each
item the cost of every place, computed from how many ballots put it into an interval of places, with the noise of a
binary tree over the places; an assignment problem then gives the order. The exact shape of their tree could not be
checked, so two are built here and the one with less noise on the costs is taken, which is a choice by public numbers:
noise on single places, and a full binary tree with equal shares of eps at each level, combined by least squares.

Replacing a ballot moves, for every item and at every level of the tree, one ballot from one interval to another: 2m in
l1 at each level. How many ballots there are in all is public.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.rivals.votes import Floats, Orders, Random, Votes


@lru_cache(maxsize=64)
def _intervals(places: int, tree: bool) -> tuple[Floats, int]:
    """A row for each interval that is counted, by place; and the number of levels."""
    rows, levels, width = [], 0, 1
    while width < places and (tree or width == 1):
        rows += [np.isin(np.arange(places), range(start, start + width)) for start in range(0, places, width)]
        levels, width = levels + 1, 2 * width
    return np.array(rows, float), levels


def _decoder(places: int, tree: bool) -> tuple[Floats, Floats, int]:
    """From counts of intervals to counts of places, which sum to n: least squares, plus the share of n."""
    intervals, levels = _intervals(places, tree)
    centring = np.eye(places) - 1 / places
    inverse = np.linalg.pinv(centring @ intervals.T @ intervals @ centring)
    decode = inverse @ centring @ intervals.T
    return decode, np.full(places, 1 / places) - decode @ intervals @ np.full(places, 1 / places), levels


def noisy_costs(positions: Floats, epsilon: float, runs: int, random: Random) -> Floats:
    """By run, item and place: the sum over ballots of how far the item stands from there."""
    m, n = len(positions), positions[0].sum()
    far = np.abs(np.arange(m)[:, None] - np.arange(m)).astype(float)
    sizes = {tree: _decoder(m, tree) for tree in (False, True)}
    noises = {tree: 2 * m * levels / epsilon for tree, (_, _, levels) in sizes.items()}
    tree = min(sizes, key=lambda tree: noises[tree] ** 2 * float(((far @ sizes[tree][0]) ** 2).sum()))
    decode, rest, _ = sizes[tree]
    counted = positions @ _intervals(m, tree)[0].T
    noisy = counted + random.laplace(scale=noises[tree], size=(runs, *counted.shape))
    return (noisy @ decode.T + n * rest) @ far


def footrule(votes: Votes, epsilon: float, runs: int, random: Random) -> Orders:
    return np.array([assigned(cost) for cost in noisy_costs(votes.positions, epsilon, runs, random)])


def assigned(costs: Floats) -> Orders:
    """The order of least total cost."""
    return np.argsort(linear_sum_assignment(costs)[1])
