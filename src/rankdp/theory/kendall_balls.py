"""Counting rankings by their inversions: what a ball around a ranking in Kendall's distance holds.

Insert the items one by one, from best to worst. Item t (from 0) joins t others and overtakes v of them, 0 <= v <= t;
the v add up to the number of inversions. So the number of rankings of n items with k inversions is the coefficient of
q^k in [n]_q! = (1)(1 + q)(1 + q + q^2)… (Mahonian numbers), and C_n(k), the number with at most k, is the running sum.

The same insertion, followed for one item or for two, counts rankings by inversions *and* by where these items land.
Counts of balls are exact integers; those by landing place are floating point, good to some 1e-12 of their total.

A pair at distance g keeps its order in [m]_q! (h(g+1) - h(g)) rankings by inversions, with h(k) = k/(1 - q^k): Mallows'
formula holds for every q, hence for every coefficient.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from rankdp.theory.pair_laws import PairLaw, pairs
from rankdp.types import Floats


@lru_cache(maxsize=256)
def counts_up_to(items: int) -> tuple[int, ...]:
    """C_n(k) for k = 0, 1, …, n(n-1)/2: how many rankings of n items have at most k inversions."""
    return tuple(itertools.accumulate(_counts(items)))


@lru_cache(maxsize=256)
def _counts(items: int) -> tuple[int, ...]:
    """How many rankings of n items have exactly k inversions."""
    if items <= 1:
        return (1,)
    before, size = _counts(items - 1), items * (items - 1) // 2 + 1
    sums = [0, *itertools.accumulate(before + (0,) * (items - 1))]
    return tuple(sums[k + 1] - sums[max(0, k + 1 - items)] for k in range(size))


def mean_inversions(items: int) -> Floats:
    """By radius t: the mean number of inversions in the ball."""
    within = np.array(list(itertools.accumulate(k * count for k, count in enumerate(_counts(items)))), dtype=object)
    return np.asarray(within / np.array(counts_up_to(items), dtype=object), dtype=np.float64)


def keep_probability(items: int, radius: int, gap: int) -> float:
    """P(two items at this distance keep their order), uniformly in the ball; exact up to the last division."""
    counts = _counts(items)[: radius + 1]
    kept = 0
    for step, sign in ((gap + 1, 1), (gap, -1)):
        series = list(counts)
        for k in range(step, len(series)):  # divided by 1 - q^step
            series[k] += series[k - step]
        kept += sign * step * sum(series)
    return kept / counts_up_to(items)[radius]


def landing_counts(items: int, radius: int) -> Floats:
    """[a, b, t]: how many rankings with at most t inversions, t <= radius, have the item of position a at b."""
    return np.cumsum(_followed(items, radius), axis=2)


def _followed(items: int, radius: int) -> Floats:
    """The same with exactly t inversions."""
    single = np.zeros((items, items, radius + 1))
    for t in range(items):
        sums = np.cumsum(single[:t, :t], axis=2)
        single[:t] = 0
        for place in range(t):  # the newcomer lands before it, having overtaken t - place to t others; or behind it
            single[:t, place + 1] += _window(sums[:, place], t - place, place + 1)
            single[:t, place] += _window(sums[:, place], 0, t - place)
        others = np.array(_counts(t)[: radius + 1], dtype=np.float64)
        for overtaken in range(min(t, radius) + 1):
            room = min(len(others), radius + 1 - overtaken)
            single[t, t - overtaken, overtaken : overtaken + room] += others[:room]
    return single


def _window(sums: Floats, start: int, length: int) -> Floats:
    """A series times q^start + … + q^(start + length - 1), from its running sums."""
    shifted = np.zeros_like(sums)
    if start < sums.shape[1]:
        shifted[:, start:] = sums[:, : sums.shape[1] - start]
    if start + length < sums.shape[1]:
        shifted[:, start + length :] -= sums[:, : sums.shape[1] - start - length]
    return shifted


def pair_law(items: int, radius: int) -> PairLaw:
    """Where two items land, uniformly in the ball."""
    begun = [t * (t - 1) // 2 for t in range(items + 1)]  # pairs with both items before t, in order of the second
    law = np.zeros((begun[items], items, items, radius + 1))
    for t in range(1, items):
        before, alone = law[: begun[t], :t, :t].copy(), _followed(t, radius)
        law[: begun[t], : t + 1, : t + 1] = 0
        joining = law[begun[t] : begun[t + 1]]
        for place in range(max(0, t - radius), t + 1):
            overtaken, moved = t - place, _pushed(t, place)
            room = radius + 1 - overtaken
            law[: begun[t], moved[:, None], moved, overtaken:] += before[..., :room]
            joining[:, moved, place, overtaken:] += alone[..., :room]
    first, second = pairs(items)
    by_start = law[second * (second - 1) // 2 + first].sum(axis=3) / float(counts_up_to(items)[radius])
    return PairLaw(by_start[:, first, second], by_start[:, second, first])


def _pushed(others: int, place: int) -> Floats:
    """The position of each other item after one was inserted at ``place``."""
    at = np.arange(others)
    return np.asarray(at + (at >= place))
