"""A law estimated from a public sample of scores: a Gaussian kernel estimate, and ``||f||^2`` with its standard error.

``||f||^2`` is half the density of ``|X - X'|`` at 0+. It is estimated from the differences of all pairs with the
boundary kernel K(u) = 4 - 6u on (0, 1), which integrates to 1 and has no first moment, so that the bias is of the
second order in the bandwidth even where f jumps (there the density of the difference has a slope at 0). It is a
U-statistic; its standard error is the jackknife's.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError
from rankdp.theory.score_laws import FloatArray, Jump, ScoreLaw

KEPT = 2000
CELLS = 2048


class Sampled(ScoreLaw):
    """The law behind a public sample of at least 10 different scores."""

    def __init__(self, scores: ArrayLike) -> None:
        x = np.sort(np.asarray(scores, dtype=float))
        if x.ndim != 1 or len(x) < 10 or not np.all(np.isfinite(x)) or x[0] == x[-1]:
            raise InputError(
                "a public sample must be a list of at least 10 finite scores that are not all equal, "
                f"got shape {x.shape}"
            )
        self.scores = x
        quartiles = np.quantile(x, [0.25, 0.75])
        spread = min(float(np.std(x)), float(quartiles[1] - quartiles[0]) / 1.349) or float(np.std(x))
        self.spread = spread
        self.bandwidth = 0.9 * spread * len(x) ** -0.2

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(x, F, f) of the kernel estimate on a grid; samples above KEPT are thinned to as many quantiles."""
        from scipy.special import ndtr

        points = self.scores
        if len(points) > KEPT:
            points = np.quantile(points, (np.arange(KEPT) + 0.5) / KEPT)
        reach = 6 * self.bandwidth
        x = np.linspace(points[0] - reach, points[-1] + reach, CELLS + 1)
        cdf = np.zeros_like(x)
        for block in np.array_split(points, max(1, len(points) // 200)):
            cdf += ndtr((x[:, None] - block) / self.bandwidth).sum(axis=1)
        cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
        return x, cdf, np.gradient(cdf, x)

    @property
    def support(self) -> tuple[float, float]:
        """Where the kernel estimate is not negligible."""
        return float(self._table[0][0]), float(self._table[0][-1])

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """None: the estimate is smooth."""
        return ()

    def cdf(self, x: ArrayLike) -> FloatArray:
        """The kernel estimate's."""
        return np.asarray(np.interp(np.asarray(x, dtype=float), self._table[0], self._table[1]))

    def density(self, x: ArrayLike) -> FloatArray:
        """The kernel estimate's."""
        inside = np.interp(np.asarray(x, dtype=float), self._table[0], self._table[2], left=0.0, right=0.0)
        return np.asarray(inside)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """The kernel estimate's."""
        return np.asarray(np.interp(np.asarray(u, dtype=float), self._table[1], self._table[0]))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """The smoothed bootstrap: a score of the sample, moved by the kernel."""
        return np.asarray(rng.choice(self.scores, shape) + self.bandwidth * rng.standard_normal(shape))

    def power_integral(self, k: int) -> float:
        """From pairs for k = 2 (see the module), from the kernel estimate for k > 2."""
        if k == 2:
            return self._norm[0]
        x, _, f = self._table
        return float(np.trapezoid(f**k, x))

    def slope_integral(self) -> float:
        """The kernel estimate's."""
        x, _, f = self._table
        return float(np.trapezoid(np.gradient(f, x) ** 2, x))

    @cached_property
    def _norm(self) -> tuple[float, float]:
        x, n = self.scores, len(self.scores)
        width = 1.5 * self.spread * n ** (-1 / 3)
        last = np.searchsorted(x, x + width, side="left")
        # sum over j > i of 4 - 6 (x_j - x_i)/width, by prefix sums; then the same for j < i
        total = np.concatenate([[0.0], np.cumsum(x)])
        index = np.arange(n)
        ahead = (4 + 6 * x / width) * (last - index - 1) - 6 / width * (total[last] - total[index + 1])
        first = np.searchsorted(x, x - width, side="right")
        behind = (4 - 6 * x / width) * (index - first) + 6 / width * (total[index] - total[first])
        rows = (ahead + behind) / (2 * width * (n - 1))
        mean = float(np.mean(rows))
        if mean <= 0:  # a few scores far apart
            mean = float(np.trapezoid(self._table[2] ** 2, self._table[0]))
        return mean, 2 * float(np.std(rows, ddof=1)) / math.sqrt(n)

    @property
    def squared_norm_error(self) -> float:
        """The jackknife's standard error: twice that of the mean of the rows."""
        return self._norm[1]

    def difference_density(self, d: ArrayLike) -> FloatArray:
        """2 times the integral of f(x) f(x+d) of the kernel estimate, by one Fourier transform."""
        x, _, f = self._table
        size = 2 * len(f)
        transform = np.fft.rfft(f, size)
        correlation = np.fft.irfft(transform * np.conj(transform), size)[: len(f)] * (x[1] - x[0])
        return np.asarray(np.interp(np.asarray(d, dtype=float), x - x[0], 2 * correlation, right=0.0))
