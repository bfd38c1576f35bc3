"""Scores from the noisy totals of a live board, with the design that noisy degrees suggest.

*Degrees* are shrunk: taken for draws of a log-normal law with their mean, whose variance is what noisy degrees have
beyond that of their noise, and at least the mean, which mere chance gives them. Late items have less noise.

*Design.* In the phase between two joinings items meet in proportion to their popularities among those that are there:
with n_p comparisons in phase p and S_p the sum of popularities there, i and j are expected to meet

    N_ij = a_i a_j sum over phases p with both of 2 n_p / S_p^2

times; the popularities a are those for which the rows of N add up to the degrees. The noisy differences are fitted to
it (``rankers.expected_design``).

Errors. With t_ij = tanh((t_i - t_j)/2) the difference of item i errs by its outcomes, by the privacy noise, and because
the true design is another than the expected one: by sum_j N_ij (t_ij - t_i)^2 for whom it met, t_i the mean of t_ij;
and by how often it met anyone, for which degrees are drawn from log-normal laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankdp.mechanisms.votes.running_totals import RunningTotals, laplace_deviation, simulated_sums
from rankdp.publish.possible_designs import design_variance, information
from rankdp.publish.score_errors import DRAWS, plausible_strengths
from rankdp.publish.vote_scores import Drawn, choose_ridge
from rankdp.rankers.expected_design import fit_differences
from rankdp.types import Floats, Longs

_DESIGNS = 20


@dataclass(frozen=True, slots=True)
class Totals:
    """Noisy totals of a live board: released numbers."""

    law: RunningTotals
    items: tuple[str, ...]
    phases: Mapping[int, int]
    """How many comparisons came from the first step of each phase on, until the next."""
    differences: Longs
    degrees: Longs
    since: Longs
    """The step at which each item joined."""
    draws: Longs
    """How many draws of noise are in each item's numbers."""


def scores_of_totals(totals: Totals, ridge: float | None) -> Drawn:
    """Scores, with what their errors look like.

    Parameters
    ----------
    totals
        The released numbers.
    ridge
        The weight that pulls scores to the middle, None for the one of least expected error.
    """
    items = len(totals.differences)
    comparisons = max(sum(totals.phases.values()), items)
    means, doubt = _shrunk(totals, 2 * comparisons / items)
    expected = _expected(totals, means)
    variance = totals.draws * laplace_deviation(totals.law.scale("differences")) ** 2
    gamma = ridge if ridge is not None else choose_ridge(2 * comparisons / items, float(variance.mean()) / 4)
    scores = fit_differences(expected, totals.differences, gamma)
    random, bent = np.random.default_rng(1), np.tanh((scores[:, None] - scores) / 2)
    chance = np.sqrt(design_variance(expected, scores, 0.0))[:, None]
    noise = simulated_sums(totals.law.scale("differences"), totals.draws, DRAWS, random)
    noise = (noise + chance * random.standard_normal(noise.shape)) / 2
    unsure = np.sqrt(np.log1p(doubt / means**2))
    designs = [
        _expected(totals, means * np.exp(unsure * random.standard_normal(items) - unsure**2 / 2))
        for _ in range(_DESIGNS)
    ]
    rests = [(totals.differences - (design * bent).sum(axis=1)) / 2 for design in designs]
    truths = plausible_strengths(scores, rests, [information(design, scores) for design in designs], noise)
    parameters = {"ridge": gamma, "noise_variance": float(variance.mean()) / 4, "noisy_comparisons": comparisons}
    return Drawn(scores, scores[:, None] - truths, parameters, [])


def _shrunk(totals: Totals, mean: float) -> tuple[Floats, Floats]:
    """Degrees that may be taken for the true ones, above 0, and the variance of their errors."""
    noise = totals.draws * laplace_deviation(totals.law.scale("degrees")) ** 2
    spread = math.log1p(max(float((np.square(totals.degrees - mean) - noise).mean()), mean) / mean**2)
    steps = np.linspace(-4, 4, 161)
    grid = mean * np.exp(math.sqrt(spread) * steps - spread / 2)
    logs = -np.abs(totals.degrees[:, None] - grid) * np.sqrt(2 / noise)[:, None] - steps**2 / 2
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    means = chances @ grid
    scale = len(noise) * mean / means.sum()
    return means * scale, np.maximum(chances @ grid**2 - means**2, 0) * scale**2


def _expected(totals: Totals, degrees: Floats) -> Floats:
    """The expected design N of the module's formula, as far as degrees allow it."""
    here = [totals.since <= start for start in totals.phases]
    sizes = [max(number, 1) for number in totals.phases.values()]
    wanted = np.minimum(degrees, 0.98 * (degrees.sum() - degrees))
    popularity = wanted.copy()
    for _ in range(100):
        meetings = np.zeros((len(wanted), len(wanted)))
        for present, size in zip(here, sizes, strict=True):
            meetings += np.outer(present, present) * (2 * size / popularity[present].sum() ** 2)
        np.fill_diagonal(meetings, 0)
        reached = popularity * (meetings @ popularity)
        popularity *= np.sqrt(wanted / np.maximum(reached, 1e-300))
    return np.asarray(meetings * np.outer(popularity, popularity))
