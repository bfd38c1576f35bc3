"""Reinsertion against Kendall, processor time of one thread per item, from rankings of 3 items to 100,000.

Reinsertion must never be clearly the slower one. Its cost per item must be flat in m and Kendall's logarithmic: the
last rows compare the cost per item at 100,000 items with that at 1,000.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np

import rankdp
from benchmarks.measure import race
from benchmarks.report import Table, digits, times, verdict

_ITEMS = (3, 5, 8, 10, 16, 17, 30, 100, 1_000, 10_000, 100_000)
_EPSILONS = (1, 4)
_CELLS = 400_000
_SHORT, _LONG = 1_000, 100_000
_TARGET = 0.8
_SLACK = 2.0  # what the memory of a real machine may add to a law of growth


def table() -> Table:
    rows, costs = [], {}
    for epsilon in _EPSILONS:
        for items in _ITEMS:
            reinsertion, kendall = costs[epsilon, items] = _costs(items, epsilon)
            ratio = kendall / reinsertion
            row = (f"{items:,}", str(epsilon), digits(reinsertion), digits(kendall), times(ratio), times(_TARGET))
            rows.append((*row, verdict(ratio >= _TARGET)))
    for epsilon in _EPSILONS:
        growths = [after / before for before, after in zip(costs[epsilon, _SHORT], costs[epsilon, _LONG], strict=True)]
        laws = (1.0, math.log(_LONG) / math.log(_SHORT))
        for name, growth, law in zip(("reinsertion", "Kendall"), growths, laws, strict=True):
            cells = ("", times(growth)) if name == "Kendall" else (times(growth), "")
            most = law * _SLACK
            rows.append(
                (f"{name}: 100,000 over 1,000", str(epsilon), *cells, "", f"≤ {times(most)}", verdict(growth <= most))
            )
    return Table(
        ("items", "epsilon", "reinsertion, ns per item", "Kendall, ns per item", "ratio", "target", "met"), rows
    )


def _costs(items: int, epsilon: int) -> list[float]:
    rankings = max(3, _CELLS // items)
    orders = np.tile(np.arange(items, dtype=np.int32), (rankings, 1))
    contenders = {
        name: partial(rankdp.mechanism(name, items=items, epsilon=epsilon).sample, orders, workers=1)
        for name in ("reinsertion", "kendall")
    }
    best = race(contenders, turns=7, clock=time.thread_time)
    return [1e9 * seconds / orders.size for seconds in best.values()]
