"""Strengths and effects of covariates from public comparisons and what outcomes add up to.

`fit_covariates` finds t and b with

    sum_r w_r tanh(h_r/2) (e_i - e_j) + 2 p t = D,   sum_r w_r tanh(h_r/2) g_r + 2 q b = V,   h_r = t_i - t_j + b . z_r

for public rows (i, j, z, g) of weight w, ridges p and q above 0 and any D and V, as noise makes them. A root always
exists: what the ridges multiply must balance bounded sums. With g = z it is the minimum of a convex function; with
other instruments the equations are not a gradient, so Newton's steps are halved until the equations get closer to zero,
and where that ends without a root it starts again with larger ridges that are taken back step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdp.errors import Unsupported
from rankdp.types import Floats, Longs

_STEPS = 60


@dataclass(frozen=True, slots=True)
class CovariateRows:
    """Comparisons of items ``first`` and ``second`` with their weights, covariates z and instruments g."""

    items: int
    first: Longs
    second: Longs
    weights: Longs | Floats
    covariates: Floats
    instruments: Floats

    def gaps(self, point: Floats) -> Floats:
        """h of every row, for strengths and effects one after the other."""
        return np.asarray(point[self.first] - point[self.second] + self.covariates @ point[self.items :])

    def sums(self, values: Floats) -> Floats:
        """sum_r values_r (e_i - e_j, g_r)."""
        both = np.bincount(self.first, values, self.items) - np.bincount(self.second, values, self.items)
        return np.concatenate([both, self.instruments.T @ values])

    def slopes(self, values: Floats) -> Floats:
        """sum_r values_r (e_i - e_j, g_r)(e_i - e_j, z_r)^T."""
        n, size = self.items, self.items + self.covariates.shape[1]
        table = np.zeros((size, size))
        pair = np.bincount(self.first * n + self.second, values, n * n).reshape(n, n)
        table[:n, :n] = -pair - pair.T
        np.fill_diagonal(table[:n, :n], pair.sum(axis=0) + pair.sum(axis=1))
        for k, column in enumerate(self.covariates.T):
            table[:, n + k] = self.sums(values * column)
        for k, column in enumerate(self.instruments.T):
            weighed = values * column
            table[n + k, :n] = np.bincount(self.first, weighed, n) - np.bincount(self.second, weighed, n)
        return table


def fit_covariates(rows: CovariateRows, target: Floats, ridges: Floats) -> tuple[Floats, Floats, Floats]:
    """Strengths with mean 0, effects, and the slopes of the equations there.

    Parameters
    ----------
    rows
        The public comparisons.
    target
        D and V, one after the other.
    ridges
        The ridge of every strength and effect, above 0.
    """
    goal = target.copy()
    goal[: rows.items] -= goal[: rows.items].mean()  # true differences add up to 0
    point, more = np.zeros(len(goal)), 1.0
    while more <= 1e12:
        found = _newton(rows, goal, more * ridges, point)
        if found is not None and more == 1:
            theta = found[: rows.items]
            bent = np.tanh(rows.gaps(found) / 2)
            return theta - theta.mean(), found[rows.items :], rows.slopes(rows.weights * (1 - bent * bent) / 2)
        point, more = (point, more * 16) if found is None else (found, more / 4)
    raise Unsupported("the strengths and effects did not settle: choose larger ridges")


def _newton(rows: CovariateRows, goal: Floats, ridges: Floats, start: Floats) -> Floats | None:
    """The root near ``start``, None where the steps lead to none."""

    def equations(point: Floats) -> tuple[Floats, Floats]:
        bent = np.tanh(rows.gaps(point) / 2)
        return rows.sums(np.asarray(rows.weights * bent)) + 2 * ridges * point - goal, bent

    point = start
    misses, bent = equations(point)
    close = 1e-9 * (1 + float(np.abs(goal).max()) + float(rows.weights.sum()))
    for _ in range(_STEPS):
        norm = float(np.linalg.norm(misses))
        if norm <= close:
            return point
        slopes = rows.slopes(rows.weights * (1 - bent * bent) / 2) + np.diag(2 * ridges)
        move, length = np.linalg.lstsq(slopes, -misses, rcond=None)[0], 1.0
        while length > 1e-6:
            tried = point + length * move
            there, bent_there = equations(tried)
            if float(np.linalg.norm(there)) < (1 - length / 10) * norm:
                point, misses, bent = tried, there, bent_there
                break
            length /= 2
        else:
            return None
    return None
