"""A hidden design from noisy degrees: how often each pair is expected to have met.

Nothing is supposed of degrees but that they are not negative: under a flat prior on d >= 0, each noisy degree gives the
mean and the variance of the true one. So does their sum, which noise hides less, where it is not public; degrees are
scaled to it. Pairs then meet in proportion to the popularity of both items: N_ij = a_i a_j,
with rows that add up to the degrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdp.types import Floats

_LIKELY = 50  # values that stand for the law of a degree
_LEAST = 1e-3  # the degree of an item that nobody compared
_AWAY = (np.arange(-240, 240) + 0.5) / 20  # standard deviations: beyond, Laplace noise is with probability e^-17


@dataclass(frozen=True, slots=True)
class Design:
    """Who met whom.

    Parameters
    ----------
    met
        N: how often each pair met, or is expected to have met; symmetric, 0 on its diagonal.
    degrees
        Where who met whom is hidden: by item, equally likely values of its degree, relative to the expected one; None
        where N is known.
    """

    met: Floats
    degrees: Floats | None = None

    @property
    def doubt(self) -> Floats | None:
        """The squared relative error of each item's degree; None where N is known."""
        return None if self.degrees is None else np.asarray(((self.degrees - 1) ** 2).mean(axis=1))

    def degrees_of(self, item: int) -> Floats:
        """The likely degrees of an item, relative to the expected one."""
        return np.ones(1) if self.degrees is None else self.degrees[item]


def hidden_design(noisy: Floats, variance: float, *, gaussian: bool = False, total: float | None = None) -> Design:
    """The expected design with the likely degrees of each item.

    Parameters
    ----------
    noisy
        Degrees with noise.
    variance
        The variance of the noise.
    gaussian
        Whether the noise is Gaussian, else Laplace noise.
    total
        The sum of all degrees, where it is public.
    """
    mean, likely = likely_degrees(noisy, variance, gaussian=gaussian)
    if total is None:
        total = float(likely_degrees(noisy.sum(keepdims=True), len(noisy) * variance, gaussian=True)[0][0])
    return Design(expected_design(mean * max(total, _LEAST) / mean.sum()), likely / mean[:, None])


def likely_degrees(noisy: Floats, variance: float, *, gaussian: bool = False) -> tuple[Floats, Floats]:
    """The posterior mean of each degree, and equally likely values. Parameters as in ``hidden_design``."""
    deviation = np.sqrt(max(variance, _LEAST**2))
    grid = np.maximum(noisy, 0)[:, None] + deviation * _AWAY
    away = (grid - noisy[:, None]) / deviation
    logs = np.where(grid < 0, -np.inf, -(away**2) / 2 if gaussian else -np.sqrt(2) * np.abs(away))
    law = np.exp(logs - logs.max(axis=1, keepdims=True))
    law /= law.sum(axis=1, keepdims=True)
    mean = np.maximum((law * grid).sum(axis=1), _LEAST)
    shares = (np.arange(_LIKELY) + 0.5) / _LIKELY
    rows = zip(np.cumsum(law, axis=1) - law / 2, np.maximum(grid, 0), strict=True)
    return mean, np.array([np.interp(shares, below, values) for below, values in rows])


def expected_design(degrees: Floats) -> Floats:
    """How often pairs are expected to meet: in proportion to the popularity of both, with rows that sum to the degrees.

    Parameters
    ----------
    degrees
        How many comparisons each item is expected to have, above 0. No item meets more than all others together.
    """
    degrees = np.minimum(degrees, 0.98 * (degrees.sum() - degrees))
    popularity = degrees / np.sqrt(degrees.sum())
    for _ in range(100):
        reached = popularity * (popularity.sum() - popularity)
        popularity = popularity * np.sqrt(degrees / reached)  # halfway, in logarithms
        if (np.abs(reached - degrees) <= 1e-6 * degrees).all():
            break
    met = np.outer(popularity, popularity)
    np.fill_diagonal(met, 0)
    return met
