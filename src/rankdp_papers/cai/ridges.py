"""The ridge of least expected error, for the paper's estimators and for ours with a ridge.

With d comparisons an item on average, Fisher information per item h = d/4, privacy noise of variance v on an item's
wins and true scores spread with variance 1/3 (uniform on [-1, 1], the paper's parameter space), a ridge g leaves a mean
squared error of about (h + v + g^2/3)/(h + g)^2. (h is that of the logistic link; in general d F'^2/(F (1 - F)) at 0.)
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.rankers.links import LOGISTIC, Link

SPREAD = 1 / 3
_LEAST_DEGREE = 1e-3  # so that no comparisons at all still have a ridge


def choose_ridge(degree: float, noise_variance: float) -> float:
    """The ridge of least expected error for noisy wins: the derivative vanishes where g h/3 = h + v."""
    information = max(degree, _LEAST_DEGREE) / 4
    return (information + noise_variance) / (information * SPREAD)


def objective(
    items: int,
    comparisons: int,
    protection: Protection,
    epsilon: Fraction,
    ridge: float | None = None,
    link: Link = LOGISTIC,
) -> ObjectivePerturbation:
    """Objective perturbation with this ridge, or with the one of least expected error.

    A small ridge also costs noise through the Hessian. With an infinite ridge that cost is nothing and the minimum as
    in ``choose_ridge``: the search goes on from where that lies.
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
