"""A hidden design from noisy degrees: how often each pair is expected to have met.

Nothing is supposed of degrees but that they are not negative: under a flat prior on d >= 0, each noisy degree gives the
law of the true one. So does their sum, which noise hides less, where it is not public; degrees are scaled to it. Pairs
then meet in proportion to the popularity of both items: N_ij = a_i a_j, with rows that add up to the degrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from rankdp.types import Floats

_SHARES = (np.arange(50) + 0.5) / 50  # of the law of a degree: the 50 values that represent it
_LEAST = 1e-3  # the degree of an item that nobody compared
_FARTHEST = -30.0  # standard deviations below 0


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
    likely = likely_degrees(noisy, variance, gaussian=gaussian)
    mean = likely.mean(axis=1)
    if total is None:
        total = float(likely_degrees(noisy.sum(keepdims=True), len(noisy) * variance, gaussian=True).mean())
    return Design(expected_design(mean * max(total, _LEAST) / mean.sum()), likely / mean[:, None])


def likely_degrees(noisy: Floats, variance: float, *, gaussian: bool = False) -> Floats:
    """By item, equally likely values of its degree: quantiles. Parameters as in ``hidden_design``."""
    deviation = np.sqrt(max(variance, _LEAST**2))
    if gaussian:
        at = np.maximum(noisy / deviation, _FARTHEST)[:, None]
        return np.asarray(deviation * np.maximum(at - ndtri(_SHARES * ndtr(at)), _LEAST))
    at = np.maximum(noisy * np.sqrt(2) / deviation, 0)[:, None]  # a law that falls alike everywhere below 0
    beyond = _SHARES * (1 - np.exp(-at) / 2)
    values = at + np.where(beyond < 0.5, -np.log(2 * beyond), np.log(2 * (1 - beyond)))
    return np.asarray(deviation / np.sqrt(2) * np.maximum(values, _LEAST))


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
