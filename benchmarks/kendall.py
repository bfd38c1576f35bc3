"""The Kendall mechanism (Mallows' model) against the samplers of prefsampling, preflibtools and plain NumPy.

All draw from one law, r^inversions with r = exp(-eps/(m-1)), which is checked before the clock starts. Ours
draws it exactly from secure bits on all cores; the peers use floating point and a generator for simulations.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from preflibtools.instances.sampling import generate_mallows
from prefsampling.ordinal import mallows

import rankdp
from benchmarks.measure import race
from benchmarks.report import Table, rate, times, verdict
from rankdp.mechanisms.rankings.sampling_kernels import count_inversions

_TARGET = 1000
_EPSILON = 1
_OURS = {10: 100_000, 100: 10_000, 1000: 1_000}
# The peers draw fewer rankings, which makes no difference to their rate: what they prepare once is taken off.
_PEERS = {10: 2_000, 100: 200, 1000: 20}
_NUMPY = {10: 100_000, 100: 2_000, 1000: 100}
_TURNS = {10: 7, 100: 7, 1000: 3}


def table() -> Table:
    header = ("items", "rankings", "rankdp", "prefsampling", "preflibtools", "NumPy")
    header += ("over prefsampling", "over preflibtools", "over NumPy", "target", "met")
    return Table(header, [_row(items) for items in _OURS])


def _row(items: int) -> tuple[str, ...]:
    phi = math.exp(-_EPSILON / (items - 1))
    kendall = rankdp.mechanism("kendall", items=items, epsilon=_EPSILON)
    orders = np.tile(np.arange(items, dtype=np.int32), (_OURS[items], 1))
    peers = {"prefsampling": _prefsampling, "preflibtools": _preflibtools}
    few = _PEERS[items]
    whole = {name: partial(draw, few, items, phi) for name, draw in peers.items()}
    whole |= {"NumPy": partial(repeated_insertion, _NUMPY[items], items, phi)}
    whole |= {"rankdp": partial(kendall.sample, orders)}
    for name, draw in whole.items():
        _check_law(name, draw(), kendall)
    single = {f"one by {name}": partial(draw, 1, items, phi) for name, draw in peers.items()}

    best = race(whole | single, _TURNS[items])
    rates = {name: (few - 1) / (best[name] - best[f"one by {name}"]) for name in peers}
    rates |= {"NumPy": _NUMPY[items] / best["NumPy"]}
    ours = _OURS[items] / best["rankdp"]
    ratios = [ours / theirs for theirs in rates.values()]
    return (
        f"{items:,}",
        f"{_OURS[items]:,}",
        rate(ours),
        *map(rate, rates.values()),
        *map(times, ratios),
        times(_TARGET),
        verdict(ratios[0] >= _TARGET),
    )


def _prefsampling(rankings: int, items: int, phi: float) -> list[list[int]]:
    return mallows(rankings, items, phi, normalise_phi=False)


def _preflibtools(rankings: int, items: int, phi: float) -> dict[tuple[tuple[int, ...], ...], int]:
    reference = tuple((item,) for item in range(items))
    return generate_mallows(rankings, items, [1], [phi], [reference], norm_phi=False)


def repeated_insertion(rankings: int, items: int, phi: float) -> NDArray[np.int32]:
    """The textbook method, one step for all rankings at a time: item t goes a truncated geometric way to the front."""
    generator = np.random.default_rng()
    orders = np.zeros((rankings, items), dtype=np.int32)
    places = np.arange(items)
    for t in range(1, items):
        uniform = generator.random((rankings, 1))
        passed = np.floor(np.log1p(uniform * (phi ** (t + 1) - 1)) / math.log(phi))
        place = t - np.minimum(passed, t).astype(np.int64)
        orders[:, 1 : t + 1] = np.where(places[:t] >= place, orders[:, :t], orders[:, 1 : t + 1])
        np.put_along_axis(orders, place, t, axis=1)
    return orders


def _check_law(name: str, draws: Any, kendall: Any) -> None:
    """The mean number of inversions must be the one that the closed form says."""
    if isinstance(draws, dict):  # preflibtools counts equal orders
        draws = [[item for (item,) in order] for order, count in draws.items() for _ in range(count)]
    inversions = count_inversions(np.array(draws, dtype=np.int32))
    expected = (1 - kendall.expected_concordance()) * math.comb(kendall.items, 2)
    error = 6 * inversions.std() / math.sqrt(len(inversions))
    assert abs(inversions.mean() - expected) < error, f"{name}: {inversions.mean()} inversions, expected {expected}"
