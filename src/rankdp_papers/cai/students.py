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
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts, count_pairs
from rankdp.errors import InputError
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.publish.rank import choose_ridge
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import LOGISTIC
from rankdp_papers.cai import algorithms
from rankdp_papers.cai.algorithms import FloatArray
from rankdp_papers.experiment import Cell, Row, data_home, mean_row

Distances = dict[str, float]
Released = dict[str, dict[str, Distances]]
"""Method -> reference -> measure -> value."""


@dataclass(frozen=True)
class Answers:
    """One answer a row: two items, and 2 if the first was preferred, 1 for a tie, 0 if the second was."""

    items: tuple[str, ...]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    halves: NDArray[np.int64]

    def some(self, p: float, order: NDArray[np.int64]) -> PairCounts:
        """The counts of a share p of the answers: the first in this order."""
        kept = order[: round(p * len(order))]
        return count_pairs(self.first[kept], self.second[kept], self.halves[kept], self.items)


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
    answers = read(data_home(cell["survey"]) / cell["survey"])
    items, comparisons = len(answers.items), round(cell["p"] * len(answers.halves))
    voter = Protection("voter", cell["per_voter"])
    mechanisms = {
        "bradley-terry + paper": algorithms.paper(items, comparisons, cell["epsilon"]),
        "bradley-terry + tight": algorithms.tight(items, comparisons, cell["epsilon"]),
        "bradley-terry + voter": algorithms.tight(items, comparisons, cell["epsilon"], protection=voter),
    }
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for repetition in range(cell.repetitions):
        generator = cell.generator("answers", repetition)
        counts = answers.some(cell["p"], generator.permutation(len(answers.halves)))
        reference = _Reference.of(counts, generator.permutation(items))
        for method, by_reference in _release(cell, reference, mechanisms, repetition).items():
            for name, measured in by_reference.items():
                for measure, value in measured.items():
                    found[method, name, measure].append(value)
    return [
        mean_row(values, method=method, reference=name, measure=measure)
        for (method, name, measure), values in found.items()
    ]


@dataclass(frozen=True)
class _Reference:
    """Maximum likelihood scores, their sampling error, and lots for ties."""

    counts: PairCounts
    scores: FloatArray
    sampling_error: float
    lots: NDArray[np.int64]

    @classmethod
    def of(cls, counts: PairCounts, lots: NDArray[np.int64]) -> _Reference:
        scores = fit(counts).theta
        return cls(counts, scores, sampling_error(counts, scores), lots)

    def from_scores(self, private: FloatArray, own: FloatArray) -> dict[str, Distances]:
        """All measures, to both references."""
        return {name: self._measured(private, scores) for name, scores in (("own", own), ("likelihood", self.scores))}

    def from_wins(self, private: NDArray[np.int64]) -> dict[str, Distances]:
        """The ranks' distance only: wins are no scores."""
        references = {"own": self.counts.half_wins, "likelihood": self.scores}
        return {name: {"hamming": self._hamming(private, one)} for name, one in references.items()}

    def _measured(self, private: FloatArray, reference: FloatArray) -> Distances:
        off = private - reference
        length = float(np.linalg.norm(off))
        return {
            "l2": length,
            "linf": float(np.abs(off).max()),
            "hamming": self._hamming(private, reference),
            "sampling": length / self.sampling_error,
        }

    def _hamming(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        return float((algorithms.best_first(one, self.lots) != algorithms.best_first(other, self.lots)).mean())


def sampling_error(counts: PairCounts, scores: FloatArray) -> float:
    """The root of the expected squared l2 error of centred maximum likelihood scores."""
    gap = scores[counts.first] - scores[counts.second]
    matrix = algorithms.information(counts, LOGISTIC.curvature(gap))
    return float(np.sqrt(np.trace(np.linalg.pinv(matrix, hermitian=True))))


def _release(
    cell: Cell, reference: _Reference, mechanisms: dict[str, ObjectivePerturbation], repetition: int
) -> Released:
    """One draw of every method."""

    def bits(name: str) -> Bits:
        return cell.bits(name, cell["p"], cell["epsilon"], repetition)

    counts, found = reference.counts, {}
    for name, mechanism in mechanisms.items():
        private = algorithms.perturbed(mechanism, counts, bits(name))
        found[name] = reference.from_scores(private, algorithms.penalized(counts, float(mechanism.ridge)))
    noise = algorithms.noisy_wins(cell["epsilon"])
    wins = noise.sample(counts.half_wins, bits("wins"))
    degree = float(counts.halves.sum()) / len(counts.items)
    own = algorithms.penalized(counts, choose_ridge(degree, noise.noise_variance))
    found["bradley-terry + outcome"] = reference.from_scores(
        algorithms.from_wins(counts, wins, noise.noise_variance), own
    )
    found["copeland"] = reference.from_wins(wins)
    found["copeland + not private"] = reference.from_wins(counts.half_wins)
    whole = algorithms.noisy_wins(cell["epsilon"], Protection("voter", cell["per_voter"]))
    found["copeland + voter"] = reference.from_wins(whole.sample(counts.half_wins, bits("voters' wins")))
    return found
