"""Skewed marginals: an item that is known by few votes is often known from one side only.

Who lost 40 of 40 comparisons is weak, but nobody knows how weak: the law of that strength falls off on one side and
follows the prior on the other. So each strength t_i has the law that it has where all others stay at the mode,

    p(t_i) proportional to exp(-(t_i/prior)^2/2) mean over degrees of exp(-(y - E y)'S^-1 (y - E y)/2),

which is computed on a grid. In the units of its curvature at the mode, its quantiles take the place of the normal ones;
the normal draws say how strengths go together. (A Gaussian copula around skewed marginals: Rue, Martino and Chopin
2009, Journal of the Royal Statistical Society B 71.) Where a degree is hidden, its likely values are averaged: an item
that may never have been compared keeps the prior as far as that is likely. S stays that of the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, ndtri

from rankdp.inference.degrees import Design
from rankdp.types import Floats

_NODES, _FAR = 33, 1e-15  # of the grid; and the least probability beyond it
_DEVIATIONS, _PRIORS = 8.0, 5.0  # how far the grid reaches: both leave out less than a draw in a million


@dataclass(frozen=True, slots=True)
class Look:
    """What one release says of all items.

    Parameters
    ----------
    values
        y.
    weights
        u, a square table.
    noise
        The variance of the noise on each value, or the covariance of all.
    """

    values: Floats
    weights: Floats
    noise: float | Floats


def skewed(
    drawn: Floats,
    theta: Floats,
    prior: float,
    seen: Sequence[Look],
    design: Design,
    linear: tuple[Floats, Floats, Floats],
) -> Floats:
    """Normal draws with the marginals that strengths have.

    Parameters
    ----------
    drawn
        Normal draws, one per row.
    theta
        The mode.
    prior
        The standard deviation of the prior.
    seen
        The looks.
    design
        Who met whom.
    linear
        At the mode: y - E y, the slope of E y and the covariance S of y.
    """
    off, slope, spread = linear
    spread[np.diag_indices(len(off))] += 1e-9 * (1 + spread.diagonal().mean())  # some values add up to 0 exactly
    inverse = cho_solve(cho_factor(spread, lower=True), np.eye(len(off)))
    units = ((slope * (inverse @ slope)).sum(axis=0) + 1 / prior**2) ** -0.5
    middle, deviation, found = drawn.mean(axis=0), drawn.std(axis=0), np.empty_like(drawn)
    for item, unit in enumerate(units.tolist()):
        ends = np.arcsinh(max(_DEVIATIONS, _PRIORS * prior / unit))
        steps = np.linspace(-ends, ends, _NODES)  # dense at the mode
        at = theta[item] + unit * np.sinh(steps)
        sums = _sums(item, np.append(at, theta[item]), theta, seen, design.met)
        rest, sums = off + sums[-1], sums[:-1]
        solved, times = sums @ inverse, design.degrees_of(item)[:, None]
        logs = times * (solved @ rest) - times**2 * (solved * sums).sum(axis=1) / 2
        law = np.exp(logs - logs.max()).mean(axis=0) * np.exp(-((at / prior) ** 2) / 2) * np.cosh(steps)
        below = (np.cumsum(law) - law / 2) / law.sum()
        normal = ndtri(np.clip(below, _FAR, 1 - _FAR))
        scaled = (drawn[:, item] - middle[item]) / max(deviation[item], _FAR)
        found[:, item] = middle[item] + deviation[item] * np.interp(scaled, normal, np.sinh(steps))
    return found


def _sums(item: int, at: Floats, theta: Floats, seen: Sequence[Look], met: Floats) -> Floats:
    """What the comparisons of an item add to E y, look after look, for each of its strengths ``at``."""
    wins = expit(at[:, None] - theta)
    wins[:, item] = 0.5
    sums = []
    for look in seen:
        pushed = met[item] * (wins * look.weights[item] - (1 - wins) * look.weights[:, item])
        pushed[:, item] = -pushed.sum(axis=1)
        sums.append(-pushed)
    return np.concatenate(sums, axis=1)
