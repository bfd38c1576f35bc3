"""Figures 4 to 7: how far private scores and ranks are from those without privacy, in two surveys of students.

A share p of the answers is drawn without replacement; ties count half to each side, blanks are left out, the answers
about a pair add up (Remark 3). Measures, between scores that are centred and between ranks:

    l2, linf    norm(private - reference)
    hamming     the share of items whose rank differs
    sampling    l2 in units of the sampling error of the maximum likelihood scores, sqrt(trace of inverse information)

These are distances from the same estimator with the same ridge and no noise, the paper's reading. "l2 from likelihood"
and so on are those from maximum likelihood without a ridge, which also count what a ridge takes away.

Two copies of the university survey circulate. In the "reversed" one the pair Barcelona and Stockholm is turned round,
the error of the 1998 analysis (corrigendum 2001). The paper does not say which copy it used.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats, Longs
from rankdp_papers.cai import algorithms
from rankdp_papers.cai.ridge_constant import best_constant
from rankdp_papers.cai.ridges import choose_ridge
from rankdp_papers.experiment import Cell, Repeated, Row, data_home

_FROM_LIKELIHOOD = " from likelihood"


@dataclass(frozen=True)
class Answers:
    """One answer per row: two items, and 2 if the first was preferred, 1 for a tie, 0 if the second was."""

    items: tuple[str, ...]
    first: Longs
    second: Longs
    halves: Longs

    def reversed(self, one: str, other: str) -> Answers:
        """The answers with the outcome of this pair turned round, the error of the 1998 analysis of the CEMS survey."""
        names = np.array(self.items)
        turned = np.isin(names[self.first], (one, other)) & np.isin(names[self.second], (one, other))
        return replace(self, halves=np.where(turned, 2 - self.halves, self.halves))

    def some(self, p: float, order: Longs) -> PairCounts:
        """The counts of a share p of the answers: the first in this order."""
        kept = order[: round(p * len(order))]
        return PairCounts.from_pairs(self.first[kept], self.second[kept], self.halves[kept], items=self.items)


@cache
def read(directory: Path) -> Answers:
    """The answers of a survey, without its blanks; items in the order in which they come first."""
    try:
        with (directory / "comparisons.csv").open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["outcome"]]
        halves = [("0", "0.5", "1").index(f"{float(row['outcome']):g}") for row in rows]
        items = tuple(dict.fromkeys(row[name] for row in rows for name in ("item_1", "item_2")))
    except (OSError, KeyError, ValueError):
        rows = []
    if not rows:
        raise InputError(
            f"{directory}: comparisons.csv must have the columns item_1, item_2 and outcome (0, 0.5, 1 or blank)"
        )
    first, second = ([items.index(row[name]) for row in rows] for name in ("item_1", "item_2"))
    return Answers(items, np.array(first), np.array(second), np.array(halves))


def distances(cell: Cell) -> list[Row]:
    """Every method's distances at one p and epsilon."""
    answers, epsilon = read(data_home(cell["survey"]) / cell["survey"]), cell["epsilon"]
    if cell["copy"] == "reversed":
        answers = answers.reversed("Barcelona", "Stockholm")
    items, comparisons = len(answers.items), round(cell["p"] * len(answers.halves))
    size, voter = (items, comparisons), Protection("voter", cell["per_voter"])
    ridge_at = {
        budget: algorithms.paper_ridge(*size, best_constant(*size, budget))
        for budget in (epsilon, epsilon / cell["per_voter"])
    }
    papers = {budget: algorithms.paper(*size, budget, ridge) for budget, ridge in ridge_at.items()}
    mechanisms = {
        "bradley-terry + paper": papers[epsilon],
        "bradley-terry + tight": algorithms.tight(*size, epsilon),
        "bradley-terry + paper, voter": papers[epsilon / cell["per_voter"]],
        "bradley-terry + voter": algorithms.tight(*size, epsilon, protection=voter),
    }
    without_noise = algorithms.paper_ridge(*size, best_constant(*size, None))
    noise, voters_noise = NoisyWins(algorithms.COMPARISON, epsilon), NoisyWins(voter, epsilon)
    repeated = Repeated()
    for repetition in range(cell.repetitions):
        generator, streams = cell.generator("answers", repetition), (cell["p"], epsilon, repetition)
        counts = answers.some(cell["p"], generator.permutation(len(answers.halves)))
        reference = _Reference.of(counts, generator.permutation(items), repeated)
        for name, mechanism in mechanisms.items():
            private = algorithms.perturbed(mechanism, counts, cell.bits(name, *streams))
            reference.add_scores(name, private, algorithms.penalized(counts, float(mechanism.ridge)))
        plain = algorithms.penalized(counts, without_noise)
        reference.add_scores("bradley-terry + paper, no noise", plain, plain)
        wins = noise.sample(counts.half_wins, cell.bits("wins", *streams))
        ridge = choose_ridge(float(counts.halves.sum()) / items, noise.noise_variance)
        fitted = algorithms.from_wins(counts, wins, noise.noise_variance)
        reference.add_scores("bradley-terry + outcome", fitted, algorithms.penalized(counts, ridge))
        reference.add_wins("copeland", wins)
        reference.add_wins("copeland + not private", counts.half_wins)
        reference.add_wins(
            "copeland + voter", voters_noise.sample(counts.half_wins, cell.bits("voters' wins", *streams))
        )
    return repeated.rows()


@dataclass(frozen=True)
class _Reference:
    """Maximum likelihood scores, their sampling error, lots for ties, and where distances from them go."""

    counts: PairCounts
    scores: Floats
    sampling_error: float
    lots: Longs
    repeated: Repeated

    @classmethod
    def of(cls, counts: PairCounts, lots: Longs, repeated: Repeated) -> _Reference:
        scores = fit(counts).theta
        return cls(counts, scores, sampling_error(counts, scores), lots, repeated)

    def add_scores(self, method: str, private: Floats, own: Floats) -> None:
        """All measures, to both references."""
        for whence, scores in (("", own), (_FROM_LIKELIHOOD, self.scores)):
            off = private - scores
            length = float(np.linalg.norm(off))
            measured = {
                "l2": length,
                "linf": float(np.abs(off).max()),
                "hamming": self._hamming(private, scores),
                "sampling": length / self.sampling_error,
            }
            self.repeated.add({name + whence: value for name, value in measured.items()}, method=method)

    def add_wins(self, method: str, private: Longs) -> None:
        """The ranks' distance only: wins are no scores."""
        for whence, values in (("", self.counts.half_wins), (_FROM_LIKELIHOOD, self.scores)):
            self.repeated.add({f"hamming{whence}": self._hamming(private, values)}, method=method)

    def _hamming(self, private: NDArray[Any], other: NDArray[Any]) -> float:
        return float((algorithms.best_first(private, self.lots) != algorithms.best_first(other, self.lots)).mean())


def sampling_error(counts: PairCounts, scores: Floats) -> float:
    """The root of the expected squared l2 error of centred maximum likelihood scores."""
    gap = scores[counts.first] - scores[counts.second]
    matrix = algorithms.information(counts, LOGISTIC.curvature(gap))
    return float(np.sqrt(np.trace(np.linalg.pinv(matrix, hermitian=True))))
