"""Strengths from wins less losses, with the expected design in the place of the true one.

With N_ij the expected number of comparisons of i and j, the differences D_i = wins - losses have the mean sum_j N_ij
tanh((t_i - t_j)/2) in the Bradley-Terry model, and `fit_differences` solves

    sum_j N_ij tanh((t_i - t_j)/2) + 2 ridge t_i = D_i,

the gradient of a strictly convex function, by Newton's method. (It is twice the equation of `bradley_terry.fit_wins`:
there D and N belong together, here they need not.) D may be any numbers, as noise makes them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import positive
from rankdp.errors import InputError, Unsupported
from rankdp.types import Floats

_STEPS = 200


def even_design(items: int, comparisons: float) -> Floats:
    """The expected design when every pair is equally likely: 2M/(n(n-1)) comparisons of each.

    Parameters
    ----------
    items
        How many there are, n, at least 2.
    comparisons
        How many comparisons there are in all, M.
    """
    expected = np.full((items, items), 2 * comparisons / (items * (items - 1)))
    np.fill_diagonal(expected, 0)
    return expected


def design_of_degrees(degrees: ArrayLike) -> Floats:
    """The expected design of items that meet in proportion to how often each is compared: N_ij = a_i a_j.

    The popularities a are those for which the rows add up to the degrees, sum_(j != i) a_i a_j = d_i, as far as that is
    possible: an item cannot be compared more often than all others together.

    Parameters
    ----------
    degrees
        How many comparisons each item is expected to have, above 0.
    """
    wanted = np.asarray(degrees, dtype=np.float64)
    wanted = np.minimum(wanted, 0.98 * (wanted.sum() - wanted))
    popularity = wanted / np.sqrt(wanted.sum())
    for _ in range(200):
        popularity = np.sqrt(popularity * wanted / (popularity.sum() - popularity))  # halfway, in logarithms
    expected = np.outer(popularity, popularity)
    np.fill_diagonal(expected, 0)
    return expected


def fit_differences(expected: Floats, differences: ArrayLike, ridge: float, tolerance: float = 1e-9) -> Floats:
    """Strengths, higher is better, with mean 0.

    Parameters
    ----------
    expected
        The symmetric table N of expected comparisons, 0 on its diagonal.
    differences
        Wins less losses of each item.
    ridge
        The weight of ``|t|^2``, above 0, which makes the solution exist and unique.
    tolerance
        No entry of the gradient exceeds this share of the sizes that are added up in it.
    """
    gap, target = positive("ridge", ridge), np.asarray(differences, dtype=np.float64)
    if expected.shape != (len(target), len(target)):
        raise InputError(f"expected must be a table of {len(target)} rows and columns, got shape {expected.shape}")
    target = target - target.mean()  # the sum of true differences is 0: what noise adds to it says nothing
    close = tolerance * (1 + np.abs(target) + expected.sum(axis=1))
    theta, radius = np.zeros(len(target)), 4.0
    gradient, hessian = _slopes(expected, theta, gap, target)
    for _ in range(_STEPS):
        if (np.abs(gradient) <= close).all():
            return np.asarray(theta - theta.mean())
        move = -np.linalg.solve(hessian, gradient)
        longest = float(np.abs(move).max())
        length = min(1.0, radius / longest)
        slope, before = float(gradient @ move), theta
        for _ in range(60):  # the function is convex: its slope along the move says whether that was too long
            theta = before + length * move
            gradient, hessian = _slopes(expected, theta, gap, target)
            if float(gradient @ move) <= -0.5 * slope:
                break
            length /= 2
        radius = max(4.0, 4 * length * longest)
    raise Unsupported(f"the strengths did not settle within {_STEPS} Newton steps")


def _slopes(expected: Floats, theta: Floats, ridge: float, target: Floats) -> tuple[Floats, Floats]:
    """The gradient and the Hessian."""
    bent = np.tanh((theta[:, None] - theta) / 2)
    hessian = -expected * (1 - bent * bent) / 2
    hessian[np.diag_indices(len(theta))] = 2 * ridge - hessian.sum(axis=1)
    return (expected * bent).sum(axis=1) + 2 * ridge * theta - target, hessian
