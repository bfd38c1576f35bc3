"""Tiers against reinsertion, processor time of one thread for a ranking: at most twice as much."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import rankdp
from benchmarks.measure import race
from benchmarks.report import Table, digits, times, verdict

_ITEMS = (6, 8, 12, 20, 100, 1_000)
_EPSILONS = (1, 2, 4)
_CELLS = 1_000_000
_TARGET = 2.0
_NAMES = ("reinsertion", "tiers", "offset-tiers")


def table() -> Table:
    rows = [_row(items, epsilon) for items in _ITEMS for epsilon in _EPSILONS]
    return Table(("items", "epsilon", *(f"{name}, ns" for name in _NAMES), "ratio", "target", "met"), rows)


def _row(items: int, epsilon: int) -> tuple[str, ...]:
    orders = np.tile(np.arange(items, dtype=np.int32), (_CELLS // items, 1))
    made = {name: rankdp.mechanism(name, items=items, epsilon=epsilon) for name in _NAMES}
    contenders = {name: partial(one.sample, orders, workers=1) for name, one in made.items()}
    best = race(contenders, turns=7, clock=time.thread_time)
    ratio = best["tiers"] / best["reinsertion"]
    costs = (digits(1e9 * seconds / len(orders)) for seconds in best.values())
    return (f"{items:,}", str(epsilon), *costs, times(ratio), f"≤ {times(_TARGET)}", verdict(ratio <= _TARGET))
