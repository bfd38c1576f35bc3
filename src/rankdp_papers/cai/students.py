"""Figures 4 to 7: how far private scores and ranks are from those without privacy, in two surveys of students.

A share p of the answers is drawn without replacement; ties count half to each side, blanks are left out, the answers
about a pair add up (Remark 3). Measures, between scores that are centred and between ranks:

    l2, linf    norm(private - reference)
    hamming     the share of items whose rank differs
    sampling    l2 in units of the sampling error of the maximum likelihood scores, sqrt(trace of inverse information)

Two references: "own", the same estimator with the same ridge and no noise, the paper's reading; and "likelihood",
maximum likelihood without a ridge, which also counts what a ridge takes away.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.wins import NoisyWins
from rankdp.publish.vote_scores import choose_ridge
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats, Longs
from rankdp_papers.cai import algorithms
from rankdp_papers.experiment import Cell, Repeated, Row, data_home


@dataclass(frozen=True)
class Answers:
    """One answer a row: two items, and 2 if the first was preferred, 1 for a tie, 0 if the second was."""

    items: tuple[str, ...]
    first: Longs
    second: Longs
    halves: Longs

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
    items, comparisons = len(answers.items), round(cell["p"] * len(answers.halves))
    voter = Protection("voter", cell["per_voter"])
    mechanisms = {
        "bradley-terry + paper": algorithms.paper(items, comparisons, epsilon),
        "bradley-terry + tight": algorithms.tight(items, comparisons, epsilon),
        "bradley-terry + voter": algorithms.tight(items, comparisons, epsilon, protection=voter),
    }
    noise, voters_noise = NoisyWins(algorithms.COMPARISON, epsilon), NoisyWins(voter, epsilon)
    repeated = Repeated()
    for repetition in range(cell.repetitions):
        generator, streams = cell.generator("answers", repetition), (cell["p"], epsilon, repetition)
        counts = answers.some(cell["p"], generator.permutation(len(answers.halves)))
        reference = _Reference.of(counts, generator.permutation(items), repeated)
        for name, mechanism in mechanisms.items():
            private = algorithms.perturbed(mechanism, counts, cell.bits(name, *streams))
            reference.add_scores(name, private, algorithms.penalized(counts, float(mechanism.ridge)))
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
        for name, scores in (("own", own), ("likelihood", self.scores)):
            off = private - scores
            length = float(np.linalg.norm(off))
            measured = {
                "l2": length,
                "linf": float(np.abs(off).max()),
                "hamming": self._hamming(private, scores),
                "sampling": length / self.sampling_error,
            }
            self.repeated.add(measured, method=method, reference=name)

    def add_wins(self, method: str, private: Longs) -> None:
        """The ranks' distance only: wins are no scores."""
        for name, values in (("own", self.counts.half_wins), ("likelihood", self.scores)):
            self.repeated.add({"hamming": self._hamming(private, values)}, method=method, reference=name)

    def _hamming(self, private: NDArray[Any], other: NDArray[Any]) -> float:
        return float((algorithms.best_first(private, self.lots) != algorithms.best_first(other, self.lots)).mean())


def sampling_error(counts: PairCounts, scores: Floats) -> float:
    """The root of the expected squared l2 error of centred maximum likelihood scores."""
    gap = scores[counts.first] - scores[counts.second]
    matrix = algorithms.information(counts, LOGISTIC.curvature(gap))
    return float(np.sqrt(np.trace(np.linalg.pinv(matrix, hermitian=True))))
