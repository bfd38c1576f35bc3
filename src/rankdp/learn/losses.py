"""Surrogate losses v(d) of a score difference d = f(preferred) - f(other), as in Xu, Section 5.1.

    logistic      v(d) = log(1 + e^-d)          convex
    exponential   v(d) = e^-d                   convex
    psi           v(d) = min(1, (1 - d)+)       not convex; bounded, the closest to counting mistakes

A pair with a label y, the share of users (or the unbiased estimate of 0 or 1) for "the first is preferred", costs

    y v(d) + (1 - y) v(-d).

For the logistic loss this is log(1 + e^-d) + (1 - y) d: linear in y, so that its curvature does not depend on y, and it
stays *convex for every real y*, also for the labels far outside of [0, 1] that undo a mechanism's noise. For the other
two this fails: where y leaves [0, 1] one of the two terms has a negative weight and the sum need not be convex; the
exponential one need not even be bounded from below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rankdp.errors import InputError
from rankdp.types import Floats

STEEPEST = 30.0
"""Beyond d = -30 the exponential loss is continued as a straight line, so that no step overflows."""


@dataclass(frozen=True, slots=True)
class Loss:
    """v and its derivative, and the number by which the kernels know it."""

    name: str
    code: int
    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    convex: bool
    alpha: float
    """The exponent of Assumption 1: what an excess of v says about an excess of mistakes."""

    def pair(self, gaps: Floats, labels: Floats) -> Floats:
        """y v(d) + (1 - y) v(-d)."""
        return np.asarray(labels * self.value(gaps) + (1 - labels) * self.value(-gaps))


def _logistic(d: Floats) -> Floats:
    return np.asarray(np.logaddexp(0, -d))


def _logistic_slope(d: Floats) -> Floats:
    half = np.tanh(d / 2)
    return np.asarray((half - 1) / 2)


def _exponential(d: Floats) -> Floats:
    return np.asarray(np.exp(-np.maximum(d, -STEEPEST)) * (1 + np.maximum(0, -d - STEEPEST)))


def _exponential_slope(d: Floats) -> Floats:
    return np.asarray(-np.exp(-np.maximum(d, -STEEPEST)))


def _psi(d: Floats) -> Floats:
    return np.asarray(np.clip(1 - np.asarray(d), 0, 1))


def _psi_slope(d: Floats) -> Floats:
    return np.asarray(-((np.asarray(d) > 0) & (np.asarray(d) < 1)).astype(float))


LOSSES: Mapping[str, Loss] = {
    "logistic": Loss("logistic", 0, _logistic, _logistic_slope, True, 0.5),
    "exponential": Loss("exponential", 1, _exponential, _exponential_slope, True, 0.5),
    "psi": Loss("psi", 2, _psi, _psi_slope, False, 1.0),
}


def loss_named(name: object) -> Loss:
    """The loss of this name, or a refusal."""
    if not isinstance(name, str) or name not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)}, got {name!r}")
    return LOSSES[name]
