"""Figures 1, 2 and 3: how far scores and top-k sets are from the truth, on votes drawn from the Bradley-Terry model.

n items, k = n/4. The k best have e^theta = 1, the others e^theta uniform on (0.2, 0.7), then theta is centred. Each
pair is compared once with probability p. Measures, as in Section 4.1:

    l2, linf    norm(scores - theta) / norm(theta)
    overlap     the share of the true top k among the k highest scores; equal scores are put in order by lot
    lead        what Copeland's overlap is ahead of the likelihood's that was fitted to the very same (noisy) wins

The same votes serve every epsilon and method, and the votes at a small p are some of those at a larger one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats, Longs
from rankdp_papers.cai import algorithms
from rankdp_papers.cai.ridge_constant import best_constant
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row

NOT_PRIVATE = "bradley-terry + not private"
WINS_NOT_PRIVATE = "copeland + not private"


@dataclass(frozen=True)
class Poll:
    """True scores, of which the first ``top`` are the best, votes drawn with them, and lots for ties."""

    truth: Floats
    counts: PairCounts
    top: int
    lots: Longs

    def relative_errors(self, scores: Floats) -> dict[str, float]:
        """The errors in both norms and the overlap."""
        off = scores - self.truth
        return {
            "linf": float(np.abs(off).max() / np.abs(self.truth).max()),
            "l2": float(np.linalg.norm(off) / np.linalg.norm(self.truth)),
            "overlap": self.overlap(scores),
        }

    def overlap(self, scores: NDArray[Any]) -> float:
        """The share of the best among the ``top`` highest scores."""
        return float((algorithms.best_first(scores, self.lots)[: self.top] < self.top).mean())


def vote(truth: Floats, p: float, top: int, generator: np.random.Generator) -> Poll:
    """Each pair compared once with probability p."""
    left, right = np.triu_indices(len(truth), 1)
    met, luck = generator.random((2, len(left)))
    won = luck < LOGISTIC.cdf(truth[left] - truth[right])
    here = met < p
    counts = PairCounts.from_pairs(left[here], right[here], 2 * won[here].astype(np.int64), items=len(truth))
    return Poll(truth, counts, top, generator.permutation(len(truth)))


def poll(cell: Cell, repetition: int) -> Poll:
    """The votes of one repetition at this cell's n and p."""
    generator = cell.generator("poll", cell["items"], repetition)
    return vote(algorithms.strengths(cell["items"], generator), cell["p"], cell["items"] // 4, generator)


def expected_comparisons(cell: Cell) -> int:
    """p n (n-1)/2: public, since p is."""
    items, p = int(cell["items"]), float(cell["p"])
    return round(p * items * (items - 1) / 2)


def perturbed_polls(
    cell: Cell, mechanisms: Mapping[str, ObjectivePerturbation], repeated: Repeated
) -> Iterator[tuple[Poll, tuple[Any, ...]]]:
    """The votes of each repetition, once the mechanisms' errors on them are added, and the names of its streams."""
    for repetition in range(cell.repetitions):
        votes, streams = poll(cell, repetition), (cell["items"], cell["p"], cell["epsilon"], repetition)
        for name, mechanism in mechanisms.items():
            scores = algorithms.perturbed(mechanism, votes.counts, cell.bits(name, *streams))
            repeated.add(votes.relative_errors(scores), method=name)
        yield votes, streams


def errors(cell: Cell) -> list[Row]:
    """Every method's errors at one n, p and epsilon."""
    size, epsilon = (cell["items"], expected_comparisons(cell)), cell["epsilon"]
    constant, plain = best_constant(*size, epsilon), best_constant(*size, None)
    mechanisms = {
        "bradley-terry + paper": algorithms.paper(*size, epsilon, algorithms.paper_ridge(*size, constant)),
        "bradley-terry + paper, c0 = 1": algorithms.paper(*size, epsilon),
        "bradley-terry + tight": algorithms.tight(*size, epsilon),
    }
    noise, repeated = NoisyWins(algorithms.COMPARISON, epsilon), Repeated()
    for votes, streams in perturbed_polls(cell, mechanisms, repeated):
        without = algorithms.penalized(votes.counts, algorithms.paper_ridge(*size, plain))
        repeated.add(votes.relative_errors(without), method="bradley-terry + paper, no noise")
        exact = votes.counts.half_wins
        noisy = noise.sample(exact, cell.bits("wins", *streams))
        for names, wins, variance in (
            (("bradley-terry + outcome", "copeland"), noisy, noise.noise_variance),
            ((NOT_PRIVATE, WINS_NOT_PRIVATE), exact, 0.0),
        ):
            fitted = votes.relative_errors(algorithms.from_wins(votes.counts, wins, variance))
            counted = votes.overlap(wins)
            repeated.add(fitted, method=names[0])
            repeated.add({"overlap": counted, "lead": counted - fitted["overlap"]}, method=names[1])
    return [*repeated.rows(), exact_row("bradley-terry + paper", "c0", constant)]
