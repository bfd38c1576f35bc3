"""Strengths and effects with a proven gradient, for every table of comparisons with covariates.

The objective is that of logistic regression on rows x_r = (e_i - e_j, z_r), each covariate a whole number of 2^-20 and
at most 1, with a ridge for every coefficient and a linear term:

    f(c) = sum_r a_r log(1 + e^-h_r) + b_r log(1 + e^h_r) + sum_k ridge_k c_k^2 / 2 + linear . c,   h_r = x_r . c.

`fit_rows_within` returns a point at which the exact gradient of f has an l2 norm of at most a given number: by Newton's
method in doubles, whose last gradient is added up without rounding (``math.fsum``) and bounded with the rounding of its
terms; and where that is not enough in fixed point, as `proven_fit` does, which ends for every table.

Proof of the latter. The gradient in fixed point is within 8 E (2 + d) N of the exact one in l1 (`fixed_point`: E =
2^-160; h is off by 2^-191 at most, which moves a slope by less than E). Along a direction v let s = -g.v be the slope,
q = v'Hv the curvature and r the largest |x_r . v|. The third derivative of log(1 + e^-h) is at most the second, so the
curvature at length a is at most q e^(a r), and with a = min(1, s/q, 1/(8 r)) f falls by at least 0.4 a s. Of
Newton's direction and of -g/((2 + d) diag H) the one with the larger a s is taken. For the latter, H <= (2 + d) diag H
(at most 2 + d entries of a row are not 0) gives q <= s; the diagonal is at most c = ridge + N/4, so s >= |g|^2/((2+d)
c), and r <= sqrt(2+d) |g|/ridge: f falls by a least amount while |g| exceeds its target, and f is bounded below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from rankdp.rankers import fixed_point
from rankdp.rankers.covariate_fit import CovariateRows
from rankdp.rankers.links import LOGISTIC
from rankdp.rankers.proven_fit import descend
from rankdp.types import Floats, Longs

GRID_BITS = 20
"""Covariates are whole numbers of 2^-20."""
_ROUNDOFF = 2.0**-53
_STEPS = 60


@dataclass(frozen=True)
class SecretRows:
    """Comparisons with covariates: the items of each, its half-wins, and its covariates in units of 2^-20."""

    items: int
    first: Longs
    second: Longs
    ahead: Longs
    behind: Longs
    steps: Longs

    @cached_property
    def rows(self) -> CovariateRows:
        """x and how many comparisons each row stands for."""
        z = self.steps / float(1 << GRID_BITS)  # exactly
        return CovariateRows(self.items, self.first, self.second, (self.ahead + self.behind) / 2, z, z)

    def gradient(self, point: Floats) -> Floats:
        """Without ridges and linear term."""
        return self.rows.sums(self.pulls(self.rows.gaps(point)))

    def pulls(self, gaps: Floats) -> Floats:
        """The derivative of each row's term in h."""
        down = 1 / (1 + np.exp(np.clip(gaps, -700, 700)))
        return (self.behind * (1 - down) - self.ahead * down) / 2

    def hessian(self, point: Floats, ridges: Floats) -> Floats:
        """The second derivatives."""
        down = 1 / (1 + np.exp(np.clip(self.rows.gaps(point), -700, 700)))
        return self.rows.slopes(self.rows.weights * down * (1 - down)) + np.diag(ridges)


def fit_rows_within(rows: SecretRows, gradient_norm: float, ridges: Floats, linear: Floats) -> list[Fraction]:
    """Coefficients at which the exact gradient has an l2 norm of at most ``gradient_norm``, whatever the rows.

    Parameters
    ----------
    rows
        The comparisons.
    gradient_norm
        What is proven, at least 2^-90.
    ridges, linear
        The ridge, above 0, and the linear term of every coefficient: doubles.
    """
    with np.errstate(all="ignore"):  # whatever comes out here is only proposed
        rough = _newton(rows, gradient_norm, ridges, linear)
    if proven_norm(rows, rough, ridges, linear) <= gradient_norm:
        return [Fraction(value) for value in rough.tolist()]
    exact = descend(_FixedRows(rows, ridges, linear), np.where(np.isfinite(rough), rough, 0.0), gradient_norm)
    return [Fraction(value, fixed_point.ONE) for value in exact]


def _newton(rows: SecretRows, target: float, ridges: Floats, linear: Floats) -> Floats:
    point = np.zeros(len(ridges))
    for _ in range(_STEPS):
        gradient = rows.gradient(point) + ridges * point + linear
        if not float(np.linalg.norm(gradient)) > target / 4:
            break
        move = -np.linalg.solve(rows.hessian(point, ridges), gradient)
        length, slope = 1.0, float(gradient @ move)
        while length > 1e-9:  # convex: the slope at the end says whether the step was too long
            tried = point + length * move
            there = rows.gradient(tried) + ridges * tried + linear
            if float(there @ move) <= -0.5 * slope:
                break
            length /= 2
        point = point + length * move
    return point


def proven_norm(rows: SecretRows, point: Floats, ridges: Floats, linear: Floats) -> float:
    """An upper bound on the l2 norm of the exact gradient at this very point.

    Terms are added up without rounding. A gap of d + 2 products and sums is off by at most (d + 3) u times the sizes in
    it, which moves a slope by a quarter of that at most; a slope itself by 16 u; u = 2^-53. All of it is doubled.
    """
    if not np.isfinite(point).all():
        return math.inf
    values, d = rows.rows.covariates, rows.steps.shape[1]
    pulls = rows.pulls(rows.rows.gaps(point))
    parts: list[list[float]] = [
        [ridge * value, shift]
        for ridge, value, shift in zip(*map(np.ndarray.tolist, (ridges, point, linear)), strict=True)
    ]
    for item, other, pull in zip(rows.first.tolist(), rows.second.tolist(), pulls.tolist(), strict=True):
        parts[item].append(pull)
        parts[other].append(-pull)
    for k in range(d):
        parts[rows.items + k].extend((pulls * values[:, k]).tolist())
    gradient = np.array([math.fsum(part) for part in parts])
    sizes = np.abs(point[rows.first]) + np.abs(point[rows.second]) + np.abs(values) @ np.abs(point[rows.items :])
    terms = rows.rows.weights * ((d + 3) * sizes / 4 + 18) * (2 + np.abs(values).sum(axis=1))
    rounding = _ROUNDOFF * float(terms.sum() + np.abs(ridges * point).sum() + np.abs(gradient).sum())
    return (float(np.linalg.norm(gradient)) + 2 * rounding) * (1 + 1e-12 * len(gradient))


class _FixedRows:
    """The objective of comparisons with covariates."""

    def __init__(self, rows: SecretRows, ridges: Floats, linear: Floats) -> None:
        self.rows, self.ridges, self.hessian = rows, ridges, np.diag(ridges)
        self.ratios = [ridge.as_integer_ratio() for ridge in ridges.tolist()]
        self.linear = [fixed_point.from_float(value) for value in linear.tolist()]
        columns = (rows.first, rows.second, rows.ahead, rows.behind, rows.steps)
        self.said = list(zip(*(column.tolist() for column in columns), strict=True))
        size = float(rows.rows.weights.sum()) + len(ridges)
        self.error = 8 * fixed_point.ERROR * (2 + rows.steps.shape[1]) * size

    def gradient(self, point: list[int]) -> list[int]:
        """Within `error` in l1, hence in l2; in units of 2^-192."""
        slopes, n = LOGISTIC.exact_slopes, self.rows.items
        assert slopes is not None
        doubled = [0] * len(point)
        effects = point[n:]
        for i, j, ahead, behind, steps in self.said:
            styled = sum(step * effect for step, effect in zip(steps, effects, strict=True)) >> GRID_BITS
            down, up = slopes(point[i] - point[j] + styled)
            pull = behind * up - ahead * down
            doubled[i] += pull
            doubled[j] -= pull
            for k, step in enumerate(steps, n):
                doubled[k] += pull * step >> GRID_BITS
        return [
            pull // 2 + value * over // under + shift
            for pull, value, (over, under), shift in zip(doubled, point, self.ratios, self.linear, strict=True)
        ]

    def bend(self, point: list[int]) -> None:
        """The Hessian at this point."""
        self.hessian = self.rows.hessian(np.array([fixed_point.to_float(value) for value in point]), self.ridges)

    def ways(self, gradient: Floats, target: float) -> tuple[Floats, Floats]:
        """Newton's, and -g/((2 + d) diag H)."""
        careful = -gradient / ((2 + self.rows.steps.shape[1]) * np.diag(self.hessian))
        return np.asarray(-np.linalg.lstsq(self.hessian, gradient, rcond=None)[0], np.float64), careful

    def along(self, way: Floats) -> tuple[float, float]:
        """q and r."""
        return float(way @ self.hessian @ way), float(np.abs(self.rows.rows.gaps(way)).max(initial=0.0))
