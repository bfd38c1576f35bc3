"""How exact private leaderboards are on the paper's simulation, at equal epsilon and on the same votes.

300 items, of which the best 75 have strength 1 and the others Unif(0.2, 0.7); each pair is compared once with
probability p. The paper's objective perturbation gets noise of scale 8/eps, a ridge c0 sqrt(np log n) with whichever of
six c0 errs least over all repetitions (the paper leaves c0 open), and an exact minimiser that costs it nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import rankdp
from benchmarks.report import Table, times, verdict
from rankdp.data.counts import PairCounts
from rankdp.rankers.bradley_terry import fit, fit_wins
from rankdp_papers.cai.ridges import choose_ridge

_ITEMS, _BEST = 300, 75
_SHARES = (1.0, 0.25)
_EPSILONS = (0.5, 1.0, 2.5)
_REPETITIONS = 20
_OUTCOME, _COMPARISON, _RANDOM = "rankdp, outcomes", "rankdp, comparisons", "rankdp, comparisons, pairing random"
_RIDGES = {f"the paper, c0 = {c0:g}": c0**2 * math.log(_ITEMS) for c0 in (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)}
_TARGETS = {(1.0, 0.5, _OUTCOME): 0.6, (1.0, 0.5, _COMPARISON): 0.75, (1.0, 0.5, _RANDOM): 0.75}
_UNTUNED = 1.0

FloatArray = NDArray[np.float64]
Errors = dict[str, FloatArray]
"""For each estimator one row per repetition: relative l2 error, relative l-infinity error, overlap of the top k."""


def table() -> Table:
    rows = []
    for share in _SHARES:
        polls = [_Poll.drawn(share, seed) for seed in range(_REPETITIONS)]
        free = _gathered([poll.without_privacy() for poll in polls])
        rows += [_row(share, None, name, errors) for name, errors in free.items()]
        for epsilon in _EPSILONS:
            found = _gathered([poll.with_privacy(epsilon) for poll in polls])
            paper = min(_RIDGES, key=lambda name: found[name][:, 0].mean())
            kept = {name: errors for name, errors in found.items() if name == paper or name not in _RIDGES}
            floor = kept[paper][:, 0].mean()
            rows += [_row(share, epsilon, name, errors, floor) for name, errors in kept.items()]
    header = ("estimator", "p", "epsilon", "l2 error", "l∞ error", "top 75 found", "l2 over the paper's")
    return Table((*header, "target", "met"), rows)


def poll_of_the_paper(share: float, seed: int) -> tuple[FloatArray, PairCounts]:
    """The strengths and the votes of one repetition."""
    poll = _Poll.drawn(share, seed)
    return poll.truth, poll.counts


def _row(
    share: float, epsilon: float | None, name: str, errors: FloatArray, paper: float | None = None
) -> tuple[str, ...]:
    means, deviations = errors.mean(axis=0), errors.std(axis=0, ddof=1) / math.sqrt(len(errors))
    cells = ["" if np.isnan(m) else f"{m:.3f} ± {d:.3f}" for m, d in zip(means, deviations, strict=True)]
    ratio = math.nan if paper is None else float(means[0]) / paper
    shown = "" if math.isnan(ratio) else times(ratio)
    target = _TARGETS.get((share, epsilon or math.inf, name))
    goal, met = (f"≤ {times(target)}", verdict(ratio <= target)) if target else ("", "")
    return (name, f"{share:g}", "none" if epsilon is None else f"{epsilon:g}", *cells, shown, goal, met)


def _gathered(repetitions: list[dict[str, tuple[float, ...]]]) -> Errors:
    return {name: np.array([errors[name] for errors in repetitions]) for name in repetitions[0]}


@dataclass(frozen=True)
class _Poll:
    """Strengths, and one set of votes drawn with them."""

    truth: FloatArray
    counts: PairCounts
    votes: pa.Table
    share: float
    seed: int

    @classmethod
    def drawn(cls, share: float, seed: int) -> _Poll:
        random = np.random.default_rng(seed)
        truth = np.log(np.concatenate([np.ones(_BEST), random.uniform(0.2, 0.7, _ITEMS - _BEST)]))
        truth -= truth.mean()
        left, right = np.triu_indices(_ITEMS, 1)
        compared = random.random(len(left)) < share
        left, right = left[compared], right[compared]
        won = random.random(len(left)) < 1 / (1 + np.exp(truth[right] - truth[left]))
        columns = {"winner": np.where(won, left, right), "loser": np.where(won, right, left)}
        counts = PairCounts.from_pairs(left, right, 2 * won.astype(np.int64), items=_ITEMS)
        return cls(truth, counts, pa.table(columns), share, seed)

    def without_privacy(self) -> dict[str, tuple[float, ...]]:
        ridge = choose_ridge(int(self.counts.halves.sum()) / _ITEMS, 0.0)
        return {
            "no privacy, maximum likelihood": self._errors(fit(self.counts).theta),
            "no privacy, with a ridge": self._errors(fit(self.counts, ridge=ridge).theta),
        }

    def with_privacy(self, epsilon: float) -> dict[str, tuple[float, ...]]:
        bits = _seeds(self.seed, epsilon)
        found = self.ours(epsilon, bits)
        wins = self._ranked(epsilon, next(bits), protect="comparison", method="wins")
        noise = np.random.default_rng(next(bits)).laplace(0, 8 / epsilon, _ITEMS)
        for name, factor in _RIDGES.items():
            ridge = math.sqrt(_ITEMS * self.share * factor)
            found[name] = self._errors(fit(self.counts, ridge=ridge, linear=noise).theta)
        fitted = fit_wins(self.counts, np.rint(2 * wins).astype(np.int64), ridge=_UNTUNED).theta
        found["Laplace on wins, ridge 1"] = self._errors(fitted)
        found["Laplace on wins, ranked by wins"] = (math.nan, math.nan, self._overlap(wins))
        return found

    def ours(self, epsilon: float, bits: Iterator[int]) -> dict[str, tuple[float, ...]]:
        outcome, comparison = next(bits), next(bits)
        return {
            _OUTCOME: self._errors(self._ranked(epsilon, outcome, protect="outcome")),
            _COMPARISON: self._errors(self._ranked(epsilon, comparison, protect="comparison")),
            _RANDOM: self._errors(self._ranked(epsilon, comparison, protect="comparison", pairing="random")),
        }

    def _ranked(self, epsilon: float, seed: int, **options: str) -> FloatArray:
        """The scores that `rankdp.rank` publishes, in the order of the items."""
        items = [str(item) for item in range(_ITEMS)]
        board = rankdp.rank(self.votes, epsilon, items=items, bits=rankdp.SeededBits(seed), **options).value
        scores = np.empty(_ITEMS)
        scores[np.array(board.items, dtype=np.int64)] = board.scores
        return scores

    def _errors(self, scores: FloatArray) -> tuple[float, ...]:
        off = scores - scores.mean() - self.truth
        euclidean = np.linalg.norm(off) / np.linalg.norm(self.truth)
        largest = np.abs(off).max() / np.abs(self.truth).max()
        return float(euclidean), float(largest), self._overlap(scores)

    def _overlap(self, scores: FloatArray) -> float:
        """The share of the 75 best, which come first, among the 75 highest scores."""
        return float((np.argsort(-scores, kind="stable")[:_BEST] < _BEST).mean())


def _seeds(seed: int, epsilon: float) -> Iterator[int]:
    """A seed for each contender, so that the table can be made again."""
    return iter(np.random.SeedSequence([seed, int(1000 * epsilon)]).generate_state(4).tolist())
