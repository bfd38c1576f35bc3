"""What a secret design may have been, from what was released of it: expected numbers of comparisons of all pairs.

*Degrees* are drawn from what noisy ones leave possible (``rankers.expected_design.likely_degrees``); where pairs are
held to be equally likely, from the Poisson law's normal neighbour. *Closeness* b says how much items of about the same
strength were preferred: N_ij = a_i a_j exp(-b |t_i - t_j|), the popularities a being those that give the degrees.

Given b > 0, strengths are not independent of the design. What is known of them is an equation f(t) + luck + noise = y
(``score_errors``), with f_i(t) = sum_j N_ij(t) (F(t_i - t_j) - F(r_i - r_j)) for the logistic link F. For differences,
r is 0 and y half of them; for objective perturbation r are the scores and y the ridge times them. The derivative of f
has what the design adds to it (``pull_slopes``): next to nothing is known of a factor of all strengths where equals met
equals. There r is noisy, and its noise no fact about the design: the derivative is taken at the scores that are
expected of t, (H + ridge)^-1 H t. As objective perturbation fits the true design, whom an item met says which others
are about as strong, and so all strengths up to that factor: they are held to have a share a b/(1 + b) of their variance
along a shape (``score_errors``), with a the share of the draws' variance in which they agree.

The design of a group of draws is that of its first draw, and there f is made linear; three rounds of this, with the
same random numbers, lead that draw near the strengths that are at one with their own design.

*How likely b is* is said by the released numbers of comparisons of pairs that are close (``closeness_by_gaps``), and
where there are differences by their size, which is smaller where equals met or strengths are close together
(``closeness_by_size``): it says how likely b and the spread s^2 of the strengths are together. As b and s can hardly be
told apart, log s^2 is held with half the deviation where b > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdp.publish.score_errors import (
    DEVIATION,
    DRAWS,
    SPREADS,
    design_count,
    drawn_spreads,
    held_spreads,
    information_of,
    plausible_strengths,
    spread_chances,
)
from rankdp.rankers.expected_design import (
    CLOSENESS,
    closeness_by_gaps,
    closeness_by_size,
    design_of_degrees,
    kernel_of_gaps,
)
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.types import Floats, Ints, Longs

_FARTHEST = 50.0  # the expected degree over a true one, at most
_STRONGEST = 8.0  # stronger items win as surely: where f is made linear, its derivative must not vanish
_ROUNDS = 3
_BLOCK = 300
_HELD = np.array([held_spreads(DEVIATION / 2 if closeness else DEVIATION) for closeness in CLOSENESS])


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
    before: Floats,
    *,
    differences: Floats | None = None,
    link: Link = LOGISTIC,
    luck: float = 1.0,
) -> tuple[Floats, Floats]:
    """Draws of the true strengths, and the logarithm of how likely each closeness is.

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
    before
        The logarithm of how likely each closeness is held to be before.
    differences
        The released differences, where scores were fitted to them with the design of the expected degrees.
    link, luck
        As in ``score_errors``.
    """
    random, items = np.random.default_rng(2), len(scores)
    target = ridge * scores if differences is None else differences / 2
    if gaps is not None:
        bucket = np.zeros((items, items), np.int32)
        bucket[np.triu_indices(items, 1)] = gaps.bucket
        bucket += bucket.T
    truths, closeness = np.empty(noise.shape), before
    for block in np.array_split(random.permutation(items), -(-items // _BLOCK)):
        sizes = None if differences is None else _sizes(differences[block], noise[block], degrees.of(block), luck)
        part = _Block(scores[block], target[block], ridge, noise[block], degrees.of(block), link, luck, sizes)
        truths[block] = part.drawn(None, random)
        if gaps is None:
            continue
        inside = bucket[np.ix_(block, block)][np.triu_indices(len(block), 1)]
        for _ in range(_ROUNDS):
            closeness = before + closeness_by_gaps(
                degrees.means[block],
                _bounded(truths[block][:, :: DRAWS // int(min(max(2e5 / len(block) ** 2, 2), 6))]),
                inside,
                gaps.found,
                gaps.variance,
                degrees.means.sum() / 2,
            )
            if sizes is not None:
                closeness = closeness + np.logaddexp.reduce(_HELD + sizes, axis=1)
            truths[block] = part.drawn((truths[block], closeness), random)
    return truths, closeness


@dataclass(frozen=True, slots=True)
class _Block:
    """What is known of some items."""

    scores: Floats
    target: Floats
    ridge: float
    """That of objective perturbation, 0 where there are differences."""
    noise: Floats
    degrees: Degrees
    link: Link
    luck: float
    sizes: Floats | None
    """The logarithm of how likely each closeness and spread is by the size of differences, where there are any."""

    def drawn(self, close: tuple[Floats, Floats] | None, random: np.random.Generator) -> Floats:
        """Strengths, given draws of them and chances of closeness, if close items may be preferred."""
        count = design_count(len(self.scores))
        middles, values, agreed = [self.scores] * count, np.zeros(count), 0.0
        if close is not None:
            held, logs = close
            agreed = float(np.square(held.mean(axis=1)).sum() / max(np.square(held).mean(axis=1).sum(), 1e-300))
            middles = [held[:, group[0]] for group in np.array_split(np.arange(held.shape[1]), count)]
            chances = np.exp(logs - logs.max())
            values = random.choice(CLOSENESS, count, p=chances / chances.sum())
        rests, informations, slopes, shapes = [], [], [], []
        for middle, value in zip(map(_bounded, middles), values.tolist(), strict=True):
            design = design_of_degrees(self.degrees.drawn(random), kernel_of_gaps(middle, value))
            known = information(design, middle, self.link)
            base = likely = shape = np.zeros_like(middle)
            if self.ridge:
                base, penalised = self.scores, known + self.ridge * np.eye(len(middle))
                likely = np.asarray(np.linalg.solve(penalised, known @ middle), np.float64)
                share = agreed * value / (1 + value)
                shape = middle * np.sqrt(share * len(middle) / max(float(middle @ middle), 1e-300))
            found, slope = pull_slopes(design, middle, base, 0.0, self.link)
            if value:
                slope = pull_slopes(design, middle, likely, value, self.link)[1]
            rests.append(self.target - found + slope @ (middle - self.scores))
            informations.append(known)
            slopes.append(slope)
            shapes.append(shape)
        spreads = np.empty(count)
        for value in np.unique(values):
            alike = np.flatnonzero(values == value)
            row, one = int(np.searchsorted(CLOSENESS, value)), int(alike[0])
            if self.sizes is None:
                noise = self.noise.var(axis=1)
                found = spread_chances(self.scores, rests[one], slopes[one], informations[one], noise, self.luck)
            else:
                found = self.sizes[row]
            spreads[alike] = drawn_spreads(_HELD[row] + found, len(alike), random)
        return plausible_strengths(self.scores, rests, informations, self.noise, self.luck, slopes, shapes, spreads)


def _sizes(differences: Floats, noise: Floats, degrees: Degrees, luck: float) -> Floats:
    """The logarithm of how likely each closeness and spread is, by the size of differences."""
    squares = degrees.means**2 * (1 + degrees.doubt)
    return closeness_by_size(differences, squares, 4 * noise.var(axis=1) + luck * degrees.means, SPREADS)


def _bounded(strengths: Floats) -> Floats:
    return np.clip(strengths, -_STRONGEST, _STRONGEST)


def pull_slopes(
    design: Floats, strengths: Floats, base: Floats, closeness: float = 0.0, link: Link = LOGISTIC
) -> tuple[Floats, Floats]:
    """What the likelihood's gradient at some scores is expected to be, and its derivative by the true strengths.

    The gradient is f_i = sum_j N_ij (F(t_ij) l(r_ij) - F(-t_ij) l(-r_ij)) with l = (log F)', t_ij = t_i - t_j, r_ij
    alike; for the logistic link sum_j N_ij (F(t_ij) - F(r_ij)). The design N_ij = a_i a_j exp(-b abs(t_ij)) keeps its
    rows' sums, so popularities follow by (diag(N 1) + N) d log a = b sum_j N_ij sign(t_ij) (dt_i - dt_j).

    Parameters
    ----------
    design
        How often each pair meets at these strengths, N.
    strengths
        The strengths t.
    base
        The scores r; 0 for half the differences.
    closeness
        b, 0 where the design does not depend on the strengths.
    link
        F.
    """
    gaps, from_base = strengths[:, None] - strengths, base[:, None] - base
    wins, forth, back = link.cdf(gaps), -link.slope(from_base), -link.slope(-from_base)
    pulled = wins * forth - (1 - wins) * back
    found, slope = (design * pulled).sum(axis=1), information_of(design, -link.slope(gaps) * wins * (forth + back))
    if closeness:
        moved = -closeness * np.sign(gaps) * design  # by t_i, for the same popularities
        degrees = design.sum(axis=1)
        whole = np.diag(degrees + 1e-9 * degrees.max()) + design  # singular for two items, or one that all others met
        followed = np.linalg.solve(whole, moved - np.diag(moved.sum(axis=1)))
        slope = slope + np.diag((moved * pulled).sum(axis=1)) - moved * pulled
        slope = slope + (np.diag(found) + design * pulled) @ followed
    return np.asarray(found), np.asarray(slope)


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
