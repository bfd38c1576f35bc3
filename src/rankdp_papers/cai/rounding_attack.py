"""What is lost if Algorithm 1 is run as printed on a computer: the noise is no real number, and the release shows it.

An attacker who knows all comparisons but one can invert the fit, w = -grad(t), for either outcome of the last, and
look which w could be noise. Noise in single precision (what array libraries draw by default) has 24 binary digits; the
wrong w does not. So an attacker who compares how far the two are from such numbers is always right, whatever epsilon.

``mechanisms.objective`` closes this gap with an exact noise on the scores, for 0.4% of epsilon. The same attack then
guesses, and no attack is right more often than e^eps/(1 + e^eps): see the one by the likelihood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats
from rankdp_papers.cai import algorithms
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row

NAIVE, OURS = "bradley-terry + single precision", "bradley-terry + tight"
_TOLERANCE = 1e-12
_TOUCHED = 4  # items whose gradient the secret moves


def leak(cell: Cell) -> list[Row]:
    """How often each attack tells two neighbours apart, and how large the noise is that prevents it.

    ``limit`` is e^eps/(1 + e^eps), the most that eps-DP allows.
    """
    epsilon = float(cell["epsilon"])
    limit = 1 / (1 + math.exp(-epsilon))
    repeated = Repeated()
    mechanism = algorithms.tight(cell["items"], cell["items"] * (cell["items"] - 1) // 2, cell["epsilon"])
    for repetition in range(cell.repetitions):
        case = _Case.drawn(cell.generator("votes", cell["items"], repetition), cell["items"], mechanism)
        for method, scores in case.releases(cell, repetition).items():
            guesses = {"digits": case.by_digits(scores), "likelihood": case.by_likelihood(scores)}
            repeated.add({attack: guess == case.secret for attack, guess in guesses.items()}, method=method)
    rows = [*repeated.rows(), exact_row(OURS, "extra noise", extra_noise(mechanism))]
    return [{**row, "limit": limit} for row in rows]


def extra_noise(mechanism: ObjectivePerturbation) -> float:
    """The standard deviation of the noise on the scores over their sampling error, 1/sqrt(d/4) with d comparisons each.

    Its scale is sqrt(n) D/eps_2 and D = (T + g sqrt(n)/2)/gamma; the grid of the scores is far finer.
    """
    root = math.sqrt(mechanism.items)
    distance = (mechanism.tolerance + float(mechanism.noise_step) * root / 2) / float(mechanism.ridge)
    deviation = math.sqrt(2) * root * distance / float(mechanism.gap_epsilon)
    return deviation * math.sqrt(mechanism.comparisons / mechanism.items / 2)


@dataclass(frozen=True)
class _Case:
    """Two neighbours, in which item 0 beat item 1 or item 2 beat item 3, and which of them is the secret."""

    neighbours: tuple[PairCounts, PairCounts]
    secret: int
    mechanism: ObjectivePerturbation

    @classmethod
    def drawn(cls, generator: np.random.Generator, items: int, mechanism: ObjectivePerturbation) -> _Case:
        truth = algorithms.strengths(items, generator)
        left, right = np.triu_indices(items, 1)
        won = generator.random(len(left)) < LOGISTIC.cdf(truth[left] - truth[right])

        def table(winner: int) -> PairCounts:
            kept = ~((left == 2 - winner) & (right == 3 - winner))
            halves = np.where((left == winner) & (right == winner + 1), 2, 2 * won)
            return PairCounts.from_pairs(left[kept], right[kept], halves[kept], items=items)

        return cls((table(0), table(2)), int(generator.integers(2)), mechanism)

    def releases(self, cell: Cell, repetition: int) -> dict[str, Floats]:
        """Scores with single precision noise and an exact fit, and the library's."""
        counts, streams = self.neighbours[self.secret], (cell["items"], cell["epsilon"], repetition)
        generator = cell.generator(NAIVE, *streams)
        signs = np.array([-1, 1], dtype=np.float32)
        size = generator.standard_exponential(self.mechanism.items, dtype=np.float32)
        drawn = size * np.float32(self.mechanism.scale) * generator.choice(signs, self.mechanism.items)
        naive = fit(counts, ridge=float(self.mechanism.ridge), linear=drawn, tolerance=_TOLERANCE)
        return {NAIVE: naive.theta, OURS: self.mechanism.sample(counts, cell.bits(OURS, *streams))}

    def by_digits(self, scores: Floats) -> int:
        """The neighbour whose noise looks more like numbers of 24 binary digits."""
        return int(np.argmin([_digits(self._noise(counts, scores)) for counts in self.neighbours]))

    def by_likelihood(self, scores: Floats) -> int:
        """The neighbour under which the scores have the higher density, as if they were the exact minimiser."""
        likelihoods = []
        for counts in self.neighbours:
            noise = np.abs(self._noise(counts, scores)).sum() / float(self.mechanism.scale)
            gap = scores[counts.first] - scores[counts.second]
            hessian = algorithms.information(counts, LOGISTIC.curvature(gap))
            hessian += float(self.mechanism.ridge) * np.eye(len(scores))
            likelihoods.append(np.linalg.slogdet(hessian)[1] - noise)
        return int(np.argmax(likelihoods))

    def _noise(self, counts: PairCounts, scores: Floats) -> Floats:
        """w = -grad of the likelihood and the ridge."""
        gap = scores[counts.first] - scores[counts.second]
        share, items = LOGISTIC.cdf(gap), len(scores)
        expected = np.bincount(counts.first, share, items) + np.bincount(counts.second, 1 - share, items)
        return np.asarray(counts.half_wins / 2 - expected - float(self.mechanism.ridge) * scores)


def _digits(noise: Floats) -> float:
    """How far the touched entries are from single precision numbers, in units of these numbers' last digit."""
    touched = noise[:_TOUCHED]
    nearest = touched.astype(np.float32)
    return float((np.abs(touched - nearest) / np.spacing(np.abs(nearest))).sum())
