"""Scores from counted votes: the noise, the choices that public numbers make, and what the scores' errors look like.

The ridge is chosen from public numbers only. With d comparisons an item on average, Fisher information per item h =
d/4, privacy noise of variance v on an item's wins and true scores spread with variance 1/3 (uniform on [-1, 1], the
paper's parameter space), a ridge g leaves a mean squared error of about

    (h + v + g^2/3) / (h + g)^2,

and the g that minimises it is taken. (h is that of the logistic link; in general d F'^2/(F (1 - F)) at 0.) Where
the number of comparisons is itself private (voters, or rows that are left out) a noisy count stands in for it, at 2% of
epsilon where its noise is then at most a hundredth of it, else at 5%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.counts import PairCounts, components
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyLeads, NoisyPairs, NoisyTotal, NoisyWins
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.publish import leaderboard
from rankdp.publish.score_errors import DRAWS, SPREAD, design_count, information_of, plausible_strengths
from rankdp.rankers.bradley_terry import fit_wins
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.types import Floats, Longs

_COUNT_SHARE, _ROUGH_SHARE = Fraction(1, 20), Fraction(1, 50)
_ENOUGH = 0.01  # the noise on a rough number of comparisons over that number, at most
_LEAST_DEGREE = 1e-3  # so that no comparisons at all still have a ridge
_FEWEST_DRAWS = 100
_MOST_LEADS = 10**7


@dataclass(frozen=True, slots=True)
class Public:
    """What may be known beside the release: the items, and the design or at least its size."""

    items: tuple[str, ...]
    comparisons: int
    design: PairCounts | None = None
    sampling: float = 1.0
    """The variance of outcomes, as a share of that of so many comparisons of weight 1."""

    @property
    def degree(self) -> float:
        """Comparisons of an item, on average."""
        return 2 * self.comparisons / len(self.items)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Scores that may be published, with what their errors look like."""

    scores: Floats
    errors: Floats
    parameters: dict[str, Any]
    warnings: list[str]


def size(
    items: tuple[str, ...],
    total: int,
    protection: Protection,
    epsilon: Fraction,
    bits: Bits,
    *,
    gradual: bool = True,
) -> tuple[Public, Fraction]:
    """How many comparisons there are, as far as it is public, and what of epsilon that costs.

    Changing an outcome, or replacing one comparison by another, leaves their number as it is: it is public. Replacing
    a voter, or a comparison by a row that is left out, does not: up to ``protection.moved`` more or fewer are
    counted, and their number is released with discrete Laplace noise of that sensitivity.

    Gradually, that is first a rough number. If it is good enough, its small share is all that is spent, and what is
    left of epsilon is for the rest. If not, the fine one is released as well and both cost its share (*a rough look
    first* in ``noisy_counts``). What is spent follows from a released number, so costs add up to epsilon in each case.

    Parameters
    ----------
    items
        The items.
    total
        The secret number of comparisons, in steps (``Protection.steps``).
    protection, epsilon
        What is protected, and how much in all.
    bits
        Where the noise comes from.
    gradual
        Whether a rough number may be enough; not where the cost of the rest is fixed beforehand.
    """
    spent = count_cost(protection, epsilon)
    if not spent:
        return Public(items, total), spent
    fine = NoisyTotal(protection, epsilon, share=_COUNT_SHARE)
    noisy = fine.sample(np.array([total]), bits)
    if gradual:
        rough = fine.rougher(noisy, _ROUGH_SHARE, bits)
        if _rough_enough(protection, epsilon, int(rough[0]) / protection.steps):
            noisy, spent = rough, epsilon * _ROUGH_SHARE
    return Public(items, max(round(int(noisy[0]) / protection.steps), len(items))), spent


def count_cost(protection: Protection, epsilon: Fraction, comparisons: int | None = None) -> Fraction:
    """What of epsilon goes into knowing how many comparisons there are: nothing where all neighbours have as many.

    Parameters
    ----------
    protection, epsilon
        What is protected, and how much in all.
    comparisons
        About how many there are, to expect what ``size`` will spend; if not given, the most that it may spend.
    """
    if protection.count_public:
        return Fraction(0)
    rough = comparisons is not None and _rough_enough(protection, epsilon, comparisons)
    return epsilon * (_ROUGH_SHARE if rough else _COUNT_SHARE)


def _rough_enough(protection: Protection, epsilon: Fraction, comparisons: float) -> bool:
    """Whether the noise on a rough number of comparisons is small beside it."""
    rough = NoisyTotal(protection, epsilon, share=_ROUGH_SHARE)
    return math.sqrt(rough.count_variance) <= _ENOUGH * comparisons


def choose_ridge(degree: float, noise_variance: float) -> float:
    """The ridge that minimises the expected squared error of a score, from public numbers (see the module).

    The derivative vanishes where g h/3 = h + v.
    """
    information = max(degree, _LEAST_DEGREE) / 4
    return (information + noise_variance) / (information * SPREAD)


def by_wins(half_wins: Longs, public: Public, noisy: NoisyWins, bits: Bits) -> Drawn:
    """Wins with noise. Their sampling variance is at most that of binomial counts with the same mean."""
    scores = noisy.released(half_wins, bits) / 2
    trials = public.comparisons if public.design is None else _halves(public.design) / 2
    share = np.clip(scores / np.maximum(trials, 1), 0, 1)
    spread = np.sqrt(np.maximum(public.sampling * trials * share * (1 - share), 1))
    privacy = noisy.likely_noise(len(scores) * DRAWS, bits.spawn()).reshape(len(scores), DRAWS) / 2
    errors = privacy + spread[:, None] * np.random.default_rng(0).standard_normal((len(scores), DRAWS))
    uneven = "Who was compared with whom is secret: an item that was compared more often has more wins for that alone."
    return Drawn(scores, errors, noisy.parameters, [uneven] if public.design is None else [])


def by_majorities(counts: PairCounts, public: Public, noisy: NoisyLeads, bits: Bits) -> Drawn:
    """Copeland's rule on noisy leads: how many others an item beats more often than it loses to them, evens as halves.

    Where the design is public, pairs that never met count for nobody. The errors are those of leads that err once more
    as the released ones do.
    """
    items, pairs = len(public.items), np.triu_indices(len(public.items), 1)
    leads, design = noisy.released(noisy.counted(counts), bits), public.design
    met = np.full(len(leads), public.comparisons / len(leads))
    if design is not None:
        met = NoisyPairs.counted(design).astype(np.float64)
    known = met > 0
    leads, met, first, second = leads[known], met[known], pairs[0][known], pairs[1][known]

    def won(lead: Floats | Longs) -> Floats:
        halves = np.sign(lead) + 1
        return (np.bincount(first, halves, items) + np.bincount(second, 2 - halves, items)) / 2

    scores, random = won(leads), np.random.default_rng(0)
    draws = max(_FEWEST_DRAWS, min(DRAWS, _MOST_LEADS // max(len(leads), 1)))
    errors = np.empty((items, draws))
    for draw in range(draws):
        luck = np.sqrt(public.sampling * met) * random.standard_normal(len(leads))
        again = leads + noisy.likely_noise(len(leads), bits.spawn()) + luck
        errors[:, draw] = won(again) - scores
    uneven = "Who was compared with whom is secret: a pair that never met is decided by noise alone."
    return Drawn(scores, errors, noisy.parameters, [uneven] if design is None else [])


def from_wins(
    public: Public, noisy: NoisyWins, true_half_wins: Longs, ridge: float | None, link: Link, bits: Bits
) -> Drawn:
    """Bradley-Terry scores from noisy wins and the public design."""
    assert public.design is not None
    gamma = ridge if ridge is not None else choose_ridge(public.degree, noisy.noise_variance)
    half_wins = noisy.sample(true_half_wins, bits)
    scores = fit_wins(public.design, half_wins, ridge=gamma).theta
    scores = scores - scores.mean()
    truths = public_strengths(public.design, scores, gamma, noisy.noise(len(scores) * DRAWS, bits.spawn()) / 2)
    warnings = _unbeaten(public.items, half_wins, _halves(public.design))
    return Drawn(scores, scores[:, None] - truths, {"ridge": gamma, **noisy.parameters}, warnings)


def objective(
    items: int,
    comparisons: int,
    protection: Protection,
    epsilon: Fraction,
    ridge: float | None = None,
    link: Link = LOGISTIC,
) -> ObjectivePerturbation:
    """Objective perturbation with this ridge, or with the one of least expected error, from public numbers.

    It is the same minimum as in ``choose_ridge``, but a small ridge also costs noise through the Hessian. With an
    infinite ridge that cost is nothing and the minimum as there: the search goes on from where that lies.
    """

    def mechanism(gamma: float) -> ObjectivePerturbation:
        return ObjectivePerturbation(items, comparisons, protection, epsilon, gamma, link=link)

    if ridge is not None:
        return mechanism(ridge)
    information = max(2 * comparisons / items, _LEAST_DEGREE) * float(link.slope(np.zeros(1))[0]) ** 2
    least = (information + mechanism(1e100).noise_variance) / (information * SPREAD)
    ridges = np.geomspace(least, 1e6 * least, 400).tolist()

    def error(step: int) -> float:
        gamma = ridges[step]
        try:
            variance = mechanism(gamma).noise_variance
        except InputError:
            return math.inf  # too small for this epsilon
        return float((information + variance + gamma**2 * SPREAD) / (information + gamma) ** 2)

    near = min(range(0, len(ridges), 10), key=error)
    best = min(range(max(near - 10, 0), min(near + 10, len(ridges))), key=error)
    return mechanism(ridges[best if error(best) < math.inf else -1])


def public_strengths(design: PairCounts, scores: Floats, ridge: float, noise: Floats) -> Floats:
    """Draws of the true strengths where the design is public.

    Parameters
    ----------
    design
        Who was compared with whom.
    scores, ridge
        The released scores, and the ridge that they were fitted with.
    noise
        Draws of the noise on wins.
    """
    items = len(scores)
    if items > leaderboard.DENSE_UP_TO:
        information = _halves(design) / 8
    else:
        met = np.zeros((items, items))
        met[design.first, design.second] = design.comparisons
        gaps = scores[:, None] - scores
        information = information_of(met + met.T, LOGISTIC.slope(gaps) * LOGISTIC.slope(-gaps))
    draws, groups = noise.reshape(items, -1), design_count(items)
    return plausible_strengths(scores, [ridge * scores] * groups, [information] * groups, draws)


def _halves(design: PairCounts) -> Longs:
    """Twice the number of comparisons of each item: a fact of the design, independent of the outcomes."""
    return design.half_wins + design.half_losses


def design_warnings(public: Public) -> list[str]:
    """What the public design makes doubtful."""
    if public.design is None:
        return []
    warnings = []
    idle = [item for item, degree in zip(public.items, public.design.degree, strict=True) if degree == 0]
    if idle:
        warnings.append(f"Never compared: {', '.join(idle[:10])}{' …' if len(idle) > 10 else ''}.")
    parts = len(np.unique(components(public.design)))
    if parts > 1:
        warnings.append(
            f"The comparisons fall into {parts} parts with nothing between them; "
            "scores of different parts do not compare."
        )
    return warnings


def _unbeaten(items: tuple[str, ...], half_wins: Longs, halves: Longs) -> list[str]:
    """Items whose released wins reach an end of what their comparisons allow: the ridge alone holds their score."""
    warnings = []
    for how_often, extreme in (("never", half_wins >= halves), ("always", half_wins <= 0)):
        named = [items[index] for index in np.flatnonzero(extreme & (halves > 0))[:10]]
        if named:
            warnings.append(f"Perhaps {how_often} beaten, so their scores rest on the ridge: {', '.join(named)}.")
    return warnings
