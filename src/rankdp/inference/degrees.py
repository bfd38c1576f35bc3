"""A hidden design, as far as noisy degrees say: how often each pair is expected to have met.

Degrees are taken for draws of a gamma law. Its mean is that of the released degrees, or public. Its shape k is
integrated over a grid: from degrees that differ a lot (k = 1/4) to degrees that differ no more than chance makes them
(k = mean). Given noisy degrees each item has a posterior mean and variance. Pairs then meet in proportion to the
popularity of both items: N_ij = a_i a_j, with rows that add up to the degrees.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from rankdp.inference.boards import Design
from rankdp.types import Floats

_LEAST = 1e-3  # the degree of an item that nobody compared


def hidden_design(noisy: Floats, variance: float, *, gaussian: bool = False, total: float | None = None) -> Design:
    """The expected design with the squared relative error of each degree.

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
    mean, spread = likely_degrees(noisy, variance, gaussian=gaussian, total=total)
    if total is not None:
        mean = mean * max(total, _LEAST) / mean.sum()
    return Design(expected_design(mean), spread / mean**2)


def likely_degrees(
    noisy: Floats, variance: float, *, gaussian: bool = False, total: float | None = None
) -> tuple[Floats, Floats]:
    """The posterior mean and variance of each degree. Parameters as in ``hidden_design``."""
    middle = max(float(np.mean(noisy)) if total is None else total / len(noisy), 1.0)
    deviation = np.sqrt(max(variance, 1e-6))
    near = np.maximum(noisy, 0)[:, None] + deviation * np.linspace(-8, 8, 161)
    shared = np.concatenate(
        [middle * np.geomspace(1e-3, 20, 100), middle + np.sqrt(middle) * np.linspace(-6, 6, 61)]
    )  # where the noise is wide, the gamma laws are what is narrow
    grid = np.sort(np.concatenate([near, np.broadcast_to(shared, (len(noisy), len(shared)))], axis=1), axis=1)
    grid = np.maximum(grid, _LEAST)
    away = (grid - noisy[:, None]) / deviation
    logs = -(away**2) / 2 if gaussian else -np.sqrt(2) * np.abs(away)
    seen = np.exp(logs - logs.max(axis=1, keepdims=True)) * np.gradient(grid, axis=1)
    shapes = np.geomspace(0.25, max(middle, 1.0), 12)
    laws = [k * np.log(grid / middle) - np.log(grid) - k * grid / middle for k in shapes]
    heights = [float(law.max()) for law in laws]
    joint = [seen * np.exp(law - height) for law, height in zip(laws, heights, strict=True)]
    sums = np.array([np.maximum(one.sum(axis=1), 1e-300) for one in joint])
    norms = np.array([gammaln(k) - k * np.log(k) - height for k, height in zip(shapes, heights, strict=True)])
    fit = np.log(sums).sum(axis=1) - len(noisy) * norms
    chances = np.exp(fit - fit.max())
    law = sum(chance * one / total[:, None] for chance, one, total in zip(chances, joint, sums, strict=True))
    law = law / np.sum(law, axis=1, keepdims=True)
    mean = (law * grid).sum(axis=1)
    return np.maximum(mean, _LEAST), (law * (grid - mean[:, None]) ** 2).sum(axis=1)


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
