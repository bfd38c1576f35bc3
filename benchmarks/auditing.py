"""Statistical audits of 10^7 draws of rankings of five items, sampling included, and exact audits of six items.

The counting kernel is compared with NumPy's ``unique`` over rows, which is how one would count rankings without it.
"""

from __future__ import annotations

import numpy as np

import rankdp
from benchmarks.measure import race, timed
from benchmarks.report import Table, digits, rate, times, verdict
from rankdp.audit import audit_exact, audit_samples, ranking_neighbours, ranking_sampler
from rankdp.audit.views import ranking_views

_ITEMS = 5
_DRAWS = 10_000_000
_SECONDS = 20
_EXACT_SECONDS = 5
_COUNTED = 200_000
_TARGET = 10


def table() -> Table:
    rows = []
    for name in ("kendall", "ulam", "reinsertion", "optimal"):
        seconds = _statistical(name)
        rows.append(
            (
                f"statistical, {name}, {_ITEMS} items",
                f"{_DRAWS:,}",
                f"{digits(seconds)} s",
                rate(_DRAWS / seconds),
                f"≤ {_SECONDS} s",
                verdict(seconds <= _SECONDS),
            )
        )
    for name in ("kendall", "ulam", "reinsertion", "optimal"):
        mechanism = rankdp.mechanism(name, 6, 1)
        seconds = timed(lambda mechanism=mechanism: audit_exact(mechanism))["seconds"]
        met = verdict(seconds <= _EXACT_SECONDS)
        rows.append((f"exact, {name}, 6 items", "18,000", f"{digits(seconds)} s", "", f"≤ {_EXACT_SECONDS} s", met))
    rows.append(_counting())
    return Table(("audit", "draws or cases", "time", "rate", "target", "met"), rows)


def _statistical(name: str) -> float:
    sampler, pairs = ranking_sampler(rankdp.mechanism(name, _ITEMS, 1)), ranking_neighbours(range(_ITEMS))
    audit_samples(sampler, pairs, draws=10_000, claimed_epsilon=1)  # compiles
    return timed(lambda: audit_samples(sampler, pairs, draws=_DRAWS, claimed_epsilon=1))["seconds"]


def _counting() -> tuple[str, ...]:
    orders = rankdp.mechanism("kendall", _ITEMS, 1).sample(np.tile(np.arange(_ITEMS), (_COUNTED, 1)))
    views = ranking_views(np.arange(_ITEMS))
    best = race({"ours": lambda: views.tally(orders), "unique": lambda: np.unique(orders, axis=0, return_counts=True)})
    ratio = best["unique"] / best["ours"]
    name = f"counting, over numpy.unique: {times(ratio)}"
    return (
        name,
        f"{_COUNTED:,}",
        f"{1000 * best['ours']:.1f} ms",
        rate(_COUNTED / best["ours"]),
        times(_TARGET),
        verdict(ratio >= _TARGET),
    )
