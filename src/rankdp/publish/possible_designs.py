"""What a secret design may have been, from what was released of it: expected numbers of comparisons of all pairs.

*Degrees* are drawn from what noisy ones leave possible (``rankers.expected_design.likely_degrees``); where pairs are
held to be equally likely, from the Poisson law's normal neighbour. *Closeness* b says how much items of about the same
strength were preferred: N_ij = a_i a_j exp(-b |t_i - t_j|), the popularities a being those that give the degrees.

Given b > 0, strengths are not independent of the design. Whom an item met says which others are about as strong, and so
all strengths up to a factor; that factor is what such a design is nearly blind for. So a share b/(1 + b) of their
variance is held to be along a shape that they may have (``score_errors``).

The design of a group of draws is that of its first draw, and so is the point at which the information is taken; three
rounds of this, with the same random numbers, lead that draw near the strengths that are at one with their own design.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdp.publish.score_errors import DRAWS, design_count, information_of, plausible_strengths
from rankdp.rankers.expected_design import closeness_chances, design_of_degrees, kernel_of_gaps
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.types import Floats, Ints, Longs

_FARTHEST = 50.0  # the expected degree over a true one, at most
_ROUNDS = 3
_BLOCK = 300
_SAID = 3.0  # where pairs were said to be drawn without regard to strength


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

    def of(self, some: Longs) -> Degrees:
        """Those of some items."""
        return Degrees(self.means[some], None if self.others is None else (self.others[0], self.others[1][some]))

    def drawn(self, random: np.random.Generator) -> Floats:
        """Degrees that the items may have."""
        if self.others is None:
            spread = np.sqrt(self.means) * random.standard_normal(len(self.means))
            return np.maximum(self.means + spread, self.means / _FARTHEST)
        grid, chances = self.others
        steps = (np.cumsum(chances, axis=1) < random.random((len(chances), 1))).sum(axis=1)
        return np.asarray(grid[np.minimum(steps, len(grid) - 1)])


@dataclass(frozen=True, slots=True)
class Gaps:
    """How many comparisons were released for each bucket of pairs by the gap of their scores."""

    bucket: Ints
    found: Floats
    variance: float


def possible_strengths(
    scores: Floats,
    ridge: float,
    noise: Floats,
    degrees: Degrees,
    gaps: Gaps | None,
    *,
    differences: Floats | None = None,
    link: Link = LOGISTIC,
    luck: float = 1.0,
) -> Floats:
    """Draws of the true strengths.

    Long lists are drawn in blocks of at most 300 items, each as if its items met only each other, as often as all.

    Parameters
    ----------
    scores, ridge
        The released scores, and the ridge of objective perturbation.
    noise
        Draws of the noise on wins, or in the gradient.
    degrees
        What is known of them.
    gaps
        What is known of comparisons by gap; None if pairs are held to meet without regard to strength.
    differences
        The released differences, where scores were fitted to them with the design of the expected degrees.
    link, luck
        As in ``score_errors``.
    """
    random, items = np.random.default_rng(2), len(scores)
    rest = ridge * scores
    if differences is not None:
        rest = (differences - pulls(design_of_degrees(degrees.means), scores)) / 2
    if gaps is not None:
        bucket = np.zeros((items, items), np.int32)
        bucket[np.triu_indices(items, 1)] = gaps.bucket
        bucket += bucket.T
    truths = np.empty(noise.shape)
    for block in np.array_split(random.permutation(items), -(-items // _BLOCK)):
        part = _Block(scores[block], rest[block], noise[block], degrees.of(block), link, luck, differences is not None)
        truths[block] = part.drawn(None, random)
        if gaps is None:
            continue
        inside = bucket[np.ix_(block, block)][np.triu_indices(len(block), 1)]
        for _ in range(_ROUNDS):
            closeness = closeness_chances(
                degrees.means[block],
                truths[block][:, :: DRAWS // int(min(max(2e5 / len(block) ** 2, 2), 6))],
                inside,
                gaps.found,
                gaps.variance,
                degrees.means.sum() / 2,
                1.0 if differences is None else _SAID,
            )
            truths[block] = part.drawn((truths[block], closeness), random)
    return truths


@dataclass(frozen=True, slots=True)
class _Block:
    """What is known of some items."""

    scores: Floats
    rest: Floats
    noise: Floats
    degrees: Degrees
    link: Link
    luck: float
    fitted: bool

    def drawn(self, close: tuple[Floats, tuple[Floats, Floats]] | None, random: np.random.Generator) -> Floats:
        """Strengths, given draws of them and chances of closeness, if items that are close may have been preferred."""
        count = design_count(len(self.scores))
        kernels: list[Floats | None] = [None] * count
        middles, shapes = [self.scores] * count, None
        if close is not None:
            truths, (grid, chances) = close
            middles = [truths[:, group[0]] for group in np.array_split(np.arange(truths.shape[1]), count)]
            values = random.choice(grid, count, p=chances)
            kernels = [kernel_of_gaps(middle, value) for middle, value in zip(middles, values, strict=True)]
            shares = np.maximum(values, 0) / (1 + np.maximum(values, 0))
            shapes = [_shape(middle, share) for middle, share in zip(middles, shares.tolist(), strict=True)]
        designs = [design_of_degrees(self.degrees.drawn(random), kernel) for kernel in kernels]
        rests = [self.rest] * count
        if self.fitted:
            due = pulls(design_of_degrees(self.degrees.means), self.scores)
            rests = [self.rest + (due - pulls(design, self.scores)) / 2 for design in designs]
        found = [information(design, middle, self.link) for design, middle in zip(designs, middles, strict=True)]
        return plausible_strengths(self.scores, rests, found, self.noise, self.luck, shapes)


def _shape(strengths: Floats, share: float) -> Floats:
    """Strengths as a direction that holds this share of all variance."""
    return np.asarray(strengths * np.sqrt(share * len(strengths) / max(float(strengths @ strengths), 1e-300)))


def pulls(design: Floats, scores: Floats) -> Floats:
    """The expected differences, sum_j N_ij tanh((t_i - t_j)/2).

    Parameters
    ----------
    design
        How often each pair met, N.
    scores
        The strengths t.
    """
    return np.asarray((design * np.tanh((scores[:, None] - scores) / 2)).sum(axis=1))


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
