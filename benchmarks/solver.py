"""Bradley-Terry fits, from rows of comparisons to strengths, against evalica's compiled solver.

Both get NumPy arrays of item numbers and the list of items; evalica gets its list of winners ready-made and keeps its
own tolerance, while ours goes on until no entry of the gradient exceeds 1e-10. The strengths are compared. evalica's
bootstrap is timed on few draws and scaled up; "by hand" weights the rows outside and calls evalica's solver for each
draw, which is quicker than its own function.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import evalica
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measure import race
from benchmarks.report import Table, digits, times, verdict
from rankdp.data.counts import PairCounts
from rankdp.rankers import bradley_terry
from rankdp.rankers.bootstrap import bootstrap
from rankdp.rankers.bradley_terry import Fit

_RESIDUAL = 1e-10
_DRAWS, _PEER_DRAWS = 1_000, 5


@dataclass(frozen=True)
class Rows:
    """Comparisons as a program has them, and as evalica wants them."""

    items: int
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    half_wins: NDArray[np.int8]
    winners: list[Any]
    index: pd.Index

    def ours(self) -> Fit:
        """Count and fit."""
        return bradley_terry.fit(PairCounts.from_pairs(self.left, self.right, self.half_wins, items=self.items))

    def theirs(self) -> Any:
        """The same with evalica."""
        return evalica.bradley_terry(self.left, self.right, self.winners, index=self.index)


def rows(items: int, comparisons: int | None) -> Rows:
    """Uniformly random pairs, or every pair once; logistic outcomes."""
    generator = np.random.default_rng(items)
    if comparisons is None:
        left, right = (side.astype(np.int32) for side in np.triu_indices(items, 1))
    else:
        left = generator.integers(0, items, comparisons, dtype=np.int32)
        right = (left + generator.integers(1, items, comparisons, dtype=np.int32)) % np.int32(items)
    strengths = generator.normal(0, 0.7, items)
    won = generator.random(len(left)) < 1 / (1 + np.exp(strengths[right] - strengths[left]))
    winners = [evalica.Winner.X if one else evalica.Winner.Y for one in won.tolist()]
    return Rows(items, left, right, (2 * won).astype(np.int8), winners, pd.Index(np.arange(items, dtype=np.int32)))


def table() -> Table:
    header = ("problem", "rankdp", f"evalica {version('evalica')}", "our residual", "ratio", "target", "met")
    lines = [
        _fit_row("300 items, all pairs once", rows(300, None), 1.5),
        _fit_row("1,000 items, 10^6 comparisons", rows(1_000, 1_000_000), 5),
        _fit_row("10,000 items, 10^7 comparisons", rows(10_000, 10_000_000), 15),
    ]
    return Table(header, lines + _bootstrap_rows(rows(100, 140_000)))


def _fit_row(problem: str, data: Rows, target: float) -> tuple[str, ...]:
    if data.items < 10_000:
        best = race({"theirs": data.theirs, "ours": data.ours})
    else:  # the peer takes its time: one turn, without a warm-up, which it does not need
        best = {"theirs": _seconds(data.theirs)} | race({"ours": data.ours}, turns=3)
    fit = data.ours()
    scores = np.log(data.theirs().scores.sort_index().to_numpy()) if data.items < 10_000 else None
    if scores is not None:
        assert np.abs(scores - scores.mean() - fit.theta).max() < 1e-3, f"{problem}: not the same strengths"
    ratio = best["theirs"] / best["ours"]
    met = ratio >= target and fit.gradient_residual <= _RESIDUAL
    return _cells(problem, best["ours"], best["theirs"], f"{fit.gradient_residual:.0e}", ratio, target, met)


def _bootstrap_rows(data: Rows) -> list[tuple[str, ...]]:
    counts = PairCounts.from_pairs(data.left, data.right, data.half_wins, items=data.items)

    def ours() -> NDArray[np.float64]:
        return bootstrap(counts, _DRAWS, seed=1, tolerance=_RESIDUAL)

    seconds = race({"ours": ours}, turns=3)["ours"]
    spread = ours().std(axis=0)
    information = _information(counts, bradley_terry.fit(counts).theta)
    expected = np.sqrt(np.diagonal(np.linalg.pinv(information)))
    assert np.abs(spread / expected - 1).max() < 8 / math.sqrt(2 * _DRAWS), "not the sampling spread"

    def own() -> object:
        return evalica.bootstrap(
            evalica.bradley_terry,
            data.left,
            data.right,
            data.winners,
            index=data.index,
            n_resamples=_PEER_DRAWS,
            bootstrap_method="percentile",
        )

    generator, total = np.random.default_rng(1), len(data.left)

    def by_hand() -> None:
        for _ in range(_PEER_DRAWS):
            weights = np.bincount(generator.integers(0, total, total), minlength=total).astype(np.float64)
            evalica.bradley_terry(data.left, data.right, data.winners, index=data.index, weights=weights)

    peers = race({"own": own, "by hand": by_hand, "one": data.theirs}, turns=2)
    scale = _DRAWS / _PEER_DRAWS
    problem = f"100 models, 140,000 battles, {_DRAWS:,} bootstrap fits"
    # the library's function fits the whole table first, which is not a draw
    slow, quick = (peers["own"] - peers["one"]) * scale, peers["by hand"] * scale
    limit = f"< {_RESIDUAL:.0e}"  # no draw is returned above it
    return [
        _cells(problem, seconds, slow, limit, slow / seconds, 20, slow / seconds >= 20),
        _cells("the same, evalica resampled by hand", seconds, quick, limit, quick / seconds, None, True),
    ]


def _information(counts: Any, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Fisher information of all comparisons at theta."""
    share = 1 / (1 + np.exp(theta[counts.second] - theta[counts.first]))
    weights = counts.comparisons * share * (1 - share)
    table = np.zeros((len(theta), len(theta)))
    table[counts.first, counts.second] = table[counts.second, counts.first] = -weights
    return table - np.diag(table.sum(axis=1))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _cells(
    problem: str, ours: float, theirs: float, residual: str, ratio: float, target: float | None, met: bool
) -> tuple[str, ...]:
    goal = ("", "") if target is None else (times(target), verdict(met))
    return (problem, _time(ours), _time(theirs), residual, times(ratio), *goal)


def _time(seconds: float) -> str:
    return f"{digits(seconds)} s" if seconds >= 1 else f"{digits(seconds * 1000)} ms"
