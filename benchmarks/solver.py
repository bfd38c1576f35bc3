"""Bradley-Terry fits, from rows of comparisons to strengths, against evalica's compiled solver.

Both get NumPy arrays of item numbers and the list of items; evalica gets its list of winners ready-made and keeps its
own tolerance, while ours goes on until no entry of the gradient exceeds 1e-10. The strengths are compared.
"""

from __future__ import annotations

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
from rankdp.rankers.bradley_terry import Fit

_RESIDUAL = 1e-10


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
    return Table(header, lines)


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
    met = verdict(ratio >= target and fit.gradient_residual <= _RESIDUAL)
    residual = f"{fit.gradient_residual:.0e}"
    return (problem, _time(best["ours"]), _time(best["theirs"]), residual, times(ratio), times(target), met)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _time(seconds: float) -> str:
    return f"{digits(seconds)} s" if seconds >= 1 else f"{digits(seconds * 1000)} ms"
