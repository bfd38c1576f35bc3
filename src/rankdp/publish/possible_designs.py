"""What a secret design may have been, from what was released of it: expected numbers of comparisons of all pairs.

*Degrees* are drawn from what noisy ones leave possible (``rankers.expected_design.likely_degrees``); where pairs are
held to be equally likely, from the Poisson law's normal neighbour. *Closeness* b says how much items of about the same
strength were preferred: N_ij = a_i a_j exp(-b |t_i - t_j|), the popularities a being those that give the degrees.

Given b, strengths are less sure, and not independent of the design: they are what it is nearly blind for. So the
variance that they are held to have before is raised with b (up to tenfold at 2), and draws are spread a little (up to
8%) for all that one number cannot say of a design.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankdp.publish.score_errors import DRAWS, design_count, information_of, plausible_strengths
from rankdp.rankers.expected_design import closeness_chances, design_of_degrees, kernel_of_gaps
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.types import Floats, Ints

_FARTHEST = 50.0  # the expected degree over a true one, at most
_ROUNDS = 3
_FREE, _WIDER, _FULL = 10.0, 0.08, 2.0


@dataclass(frozen=True, slots=True)
class Degrees:
    """The expected degree of each item, and how likely others are: a grid, and a row of chances for each item."""

    means: Floats
    others: tuple[Floats, Floats] | None

    @property
    def doubt(self) -> Floats:
        """The variance of each degree over its square."""
        if self.others is None:
            return np.zeros(len(self.means))
        grid, chances = self.others
        return np.asarray((chances @ grid**2) / self.means**2 - 1)

    def drawn(self, random: np.random.Generator) -> Floats:
        """Degrees that the items may have."""
        if self.others is None:
            spread = np.sqrt(self.means) * random.standard_normal(len(self.means))
            return np.maximum(self.means + spread, self.means / _FARTHEST)
        grid, chances = self.others
        steps = (np.cumsum(chances, axis=1) < random.random((len(chances), 1))).sum(axis=1)
        return np.asarray(grid[np.minimum(steps, len(grid) - 1)])

    def designs(self, random: np.random.Generator) -> list[Floats]:
        """Designs of such degrees in which pairs meet without regard to strength."""
        return [design_of_degrees(self.drawn(random)) for _ in range(design_count(len(self.means)))]


@dataclass(frozen=True, slots=True)
class Gaps:
    """How many comparisons were released for each bucket of pairs by the gap of their scores."""

    bucket: Ints
    found: Floats
    variance: float


def strengths_of_differences(
    scores: Floats, differences: Floats, noise: Floats, degrees: Degrees, luck: float, random: np.random.Generator
) -> Floats:
    """Draws of the true strengths, where noisy differences were fitted to the expected design.

    Parameters
    ----------
    scores, differences
        The released numbers.
    noise
        Draws of the noise on wins, with that of the design's own chance.
    degrees
        What is known of them.
    luck
        As in ``plausible_strengths``.
    random
        Where the designs come from.
    """
    designs, bent = degrees.designs(random), np.tanh((scores[:, None] - scores) / 2)
    rests = [(differences - (design * bent).sum(axis=1)) / 2 for design in designs]
    return plausible_strengths(scores, rests, [information(design, scores) for design in designs], noise, luck)


def strengths_of_objective(
    scores: Floats,
    ridge: float,
    noise: Floats,
    degrees: Degrees,
    link: Link,
    gaps: Callable[[], Gaps] | None,
    random: np.random.Generator,
) -> Floats:
    """Draws of the true strengths, where scores are from objective perturbation.

    Closeness and strengths are found in turn: what the buckets say of closeness depends on the strengths.

    Parameters
    ----------
    scores, ridge
        The released scores and their ridge.
    noise
        Draws of the noise in the gradient.
    degrees
        What is known of them.
    link
        The link of the scores.
    gaps
        Releases the comparisons by gap; None if pairs are held to meet without regard to strength.
    random
        Where the designs come from.
    """
    rest, count = ridge * scores, design_count(len(scores))
    if gaps is None:
        found = [information(design, scores, link) for design in degrees.designs(random)]
        return plausible_strengths(scores, [rest] * count, found, noise)
    seen = gaps()
    typical = information(design_of_degrees(degrees.means), scores, link)
    truths = plausible_strengths(scores, [rest] * count, [typical] * count, noise)
    few = int(min(max(2e5 / len(scores) ** 2, 2), 16))
    close = np.zeros(count)
    for _ in range(_ROUNDS):
        grid, chances = closeness_chances(
            degrees.means, truths[:, :: DRAWS // few], seen.bucket, seen.found, seen.variance
        )
        close = random.choice(grid, count, p=chances)
        found = [
            information(design_of_degrees(degrees.drawn(random), kernel_of_gaps(truth, one)), scores, link)
            for truth, one in zip(truths[:, :: DRAWS // count].T, close.tolist(), strict=False)
        ]
        freedom = _FREE ** np.clip(close / _FULL, 0, 1)
        truths = plausible_strengths(scores, [rest] * count, found, noise, freedom=freedom)
    wider = 1 + _WIDER * float(np.clip(close / _FULL, 0, 1).mean())
    middle = truths.mean(axis=1, keepdims=True)
    return np.asarray(middle + wider * (truths - middle))


def information(expected: Floats, strengths: Floats, link: Link = LOGISTIC) -> Floats:
    """The Fisher information of a design at these strengths.

    Parameters
    ----------
    expected
        How often each pair met.
    strengths
        The strengths.
    link
        The link.
    """
    gaps = strengths[:, None] - strengths
    return information_of(expected, link.slope(gaps) * link.slope(-gaps))


def design_variance(expected: Floats, scores: Floats, misfit: float) -> Floats:
    """How much whom an item met adds to the variance of its difference, given how often it met anyone.

    Parameters
    ----------
    expected
        The expected design.
    scores
        The strengths.
    misfit
        By what share of itself a pair's expected number may be wrong.
    """
    bent = np.tanh((scores[:, None] - scores) / 2)
    mean = (expected * bent).sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-12)
    met = (expected * (bent - mean[:, None]) ** 2).sum(axis=1)
    return np.asarray(met + np.square(misfit * expected * bent).sum(axis=1))
