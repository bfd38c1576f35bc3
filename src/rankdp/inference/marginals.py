"""Skewed marginals: an item that is known by few votes is often known from one side only.

Who lost 40 of 40 comparisons is weak, but nobody knows how weak: the law of that strength falls off on one side and
follows the prior on the other. So each strength t_i takes the shape of the law that its own sums, one per look and with
the covariance S_i, give it where all others stay at the mode,

    p(t_i) proportional to exp(-(t_i/prior)^2/2) mean over d of exp(-(y_i - d E y_i)' S_i^-1 (y_i - d E y_i)/2),

where y_i are the sums that put the top of this law at the mode (other items' sums inform t_i, too), and d are the
likely values of a hidden degree: the less likely it is that an item was compared, the more of the prior it keeps. In
the units of its curvature at the mode, the quantiles of that law replace the normal ones; the normal draws provide the
correlations. (A Gaussian copula around skewed marginals: Rue, Martino and Chopin 2009, Journal of the
Royal Statistical Society B 71.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from rankdp.types import Floats

_NODES, _FAR = 33, 1e-15  # of the grid; and the least probability beyond it
_DEVIATIONS, _PRIORS = 8.0, 5.0  # how far the grid reaches: both leave out less than a draw in a million


def skewed(
    drawn: Floats,
    theta: Floats,
    prior: float,
    degrees: Floats,
    expected: Callable[[Floats], Floats],
    slope: Floats,
    spread: Floats,
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
    degrees
        By item, equally likely values of its degree, relative to the expected one.
    expected
        E y_i, one row per look, where each item has the strength given while all others are at the mode.
    slope, spread
        At the mode: the slope of E y and the covariance of y, look after look.
    """
    items, looks = len(theta), len(slope) // len(theta)
    own = np.einsum("aii->ia", slope.reshape(looks, items, items))
    errors = np.einsum("aibi->iab", spread.reshape(looks, items, looks, items))
    inverse = np.linalg.inv(errors + 1e-9 * (1 + errors.max()) * np.eye(looks))
    known = np.einsum("ia,iab,ib->i", own, inverse, own)
    unit, off = (known + 1 / prior**2) ** -0.5, own * (theta / prior**2 / np.maximum(known, _FAR))[:, None]
    ends = np.arcsinh(np.maximum(_DEVIATIONS, _PRIORS * prior / unit))
    steps = np.linspace(-ends, ends, _NODES)  # dense at the mode
    at = theta + unit * np.sinh(steps)
    sums = np.array([expected(strengths).T for strengths in at])
    pull = np.einsum("sia,iab,ib->si", sums, inverse, off + expected(theta).T)
    held = np.einsum("sia,iab,sib->si", sums, inverse, sums)
    logs = degrees * pull[..., None] - degrees**2 * held[..., None] / 2 - ((at / prior) ** 2 / 2)[..., None]
    law = np.exp(logs - logs.max(axis=(0, 2))[:, None]).mean(axis=2) * np.cosh(steps)
    normal = ndtri(np.clip((np.cumsum(law, axis=0) - law / 2) / law.sum(axis=0), _FAR, 1 - _FAR))
    middle, deviation, found = drawn.mean(axis=0), drawn.std(axis=0), np.empty_like(drawn)
    scaled = (drawn - middle) / np.maximum(deviation, _FAR)
    for item in range(items):
        found[:, item] = np.interp(scaled[:, item], normal[:, item], np.sinh(steps[:, item]))
    return np.asarray(middle + deviation * found)
