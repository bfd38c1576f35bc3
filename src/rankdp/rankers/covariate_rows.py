"""Public comparisons with covariates: the sums over them that strengths and effects are fitted to.

With h_r = t_i - t_j + b . z_r for a row r of items i, j, covariates z, instruments g and weight w, outcomes add up to

    sum_r w_r tanh(h_r/2) (e_i - e_j)   and   sum_r w_r tanh(h_r/2) g_r

in expectation (``mechanisms.votes.noisy_covariates``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdp.types import Floats, Longs


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
