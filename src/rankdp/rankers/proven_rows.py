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

import numpy as np

from rankdp.rankers import fixed_point
from rankdp.rankers.links import LOGISTIC
from rankdp.rankers.proven_fit import downhill, moved
from rankdp.types import Floats, Longs

GRID_BITS = 20
"""Covariates are whole numbers of 2^-20."""
_ROUNDOFF = 2.0**-53
_STEPS = 60


@dataclass(frozen=True, slots=True)
class SecretRows:
    """Comparisons with covariates: the items of each, its half-wins, and its covariates in units of 2^-20."""

    items: int
    first: Longs
    second: Longs
    ahead: Longs
    behind: Longs
    steps: Longs

    @property
    def covariates(self) -> Floats:
        """z, exactly."""
        return self.steps / float(1 << GRID_BITS)

    def spread(self, values: Floats) -> Floats:
        """x_r . c for every row."""
        return np.asarray(
            values[self.first] - values[self.second] + self.covariates @ values[self.items :], dtype=np.float64
        )

    def pulls(self, gaps: Floats) -> Floats:
        """The derivative of each row's term in h."""
        down = 1 / (1 + np.exp(np.clip(gaps, -700, 700)))
        return (self.behind * (1 - down) - self.ahead * down) / 2

    def gathered(self, values: Floats) -> Floats:
        """sum_r values_r x_r."""
        both = np.bincount(self.first, values, self.items) - np.bincount(self.second, values, self.items)
        return np.concatenate([both, self.covariates.T @ values])

    def hessian(self, gaps: Floats, ridges: Floats) -> Floats:
        """The second derivatives."""
        down = 1 / (1 + np.exp(np.clip(gaps, -700, 700)))
        weights = (self.ahead + self.behind) / 2 * down * (1 - down)
        n, d = self.items, self.steps.shape[1]
        table = np.zeros((n + d, n + d))
        pairs = np.bincount(self.first * n + self.second, weights, n * n).reshape(n, n)
        table[:n, :n] = -pairs - pairs.T
        np.fill_diagonal(table[:n, :n], pairs.sum(axis=0) + pairs.sum(axis=1))
        for k, column in enumerate(self.covariates.T):
            table[:, n + k] = self.gathered(weights * column)
        table[n:, :n] = table[:n, n:].T
        return table + np.diag(ridges)


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
    exact = _FixedRows(rows, ridges, linear).solve(np.where(np.isfinite(rough), rough, 0.0), gradient_norm)
    return [Fraction(value, fixed_point.ONE) for value in exact]


def _newton(rows: SecretRows, target: float, ridges: Floats, linear: Floats) -> Floats:
    point = np.zeros(len(ridges))
    for _ in range(_STEPS):
        gaps = rows.spread(point)
        gradient = rows.gathered(rows.pulls(gaps)) + ridges * point + linear
        if not float(np.linalg.norm(gradient)) > target / 4:
            break
        move = -np.linalg.solve(rows.hessian(gaps, ridges), gradient)
        length, slope = 1.0, float(gradient @ move)
        while length > 1e-9:  # convex: the slope at the end says whether the step was too long
            tried = point + length * move
            there = rows.gathered(rows.pulls(rows.spread(tried))) + ridges * tried + linear
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
    values, d = rows.covariates, rows.steps.shape[1]
    pulls = rows.pulls(rows.spread(point))
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
    weights = (rows.ahead + rows.behind) / 2
    terms = weights * ((d + 3) * sizes / 4 + 18) * (2 + np.abs(values).sum(axis=1))
    rounding = _ROUNDOFF * float(terms.sum() + np.abs(ridges * point).sum() + np.abs(gradient).sum())
    return (float(np.linalg.norm(gradient)) + 2 * rounding) * (1 + 1e-12 * len(gradient))


class _FixedRows:
    """The objective in fixed point: exact except for the slopes; its Hessian, which only proposes steps, in doubles."""

    def __init__(self, rows: SecretRows, ridges: Floats, linear: Floats) -> None:
        self.rows, self.ridges = rows, ridges
        self.ratios = [ridge.as_integer_ratio() for ridge in ridges.tolist()]
        self.linear = [fixed_point.from_float(value) for value in linear.tolist()]
        columns = (rows.first, rows.second, rows.ahead, rows.behind, rows.steps)
        self.said = list(zip(*(column.tolist() for column in columns), strict=True))
        total = float((rows.ahead + rows.behind).sum()) / 2
        self.error = 8 * fixed_point.ERROR * (2 + rows.steps.shape[1]) * (total + len(ridges))

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

    def solve(self, start: Floats, target: float) -> list[int]:
        """A point at which the exact gradient's norm is at most ``target``."""
        point = [fixed_point.from_float(value) for value in start.tolist()]
        gradient = self._slopes(point)
        while float(np.linalg.norm(gradient)) * (1 + 1e-12 * len(gradient)) + self.error > target:
            gaps = self.rows.spread(np.array([fixed_point.to_float(value) for value in point]))
            hessian = self.rows.hessian(gaps, self.ridges)
            careful = -gradient / ((2 + self.rows.steps.shape[1]) * np.diag(hessian))
            with np.errstate(all="ignore"):
                newton = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
            move = max((newton, careful), key=lambda way: self._progress(hessian, gradient, way)[0])
            length, longer = self._progress(hessian, gradient, move)[1], 1.0
            while longer > length:  # as long as the slope at the end is downwards, f falls all the way
                gradient = self._slopes(reached := moved(point, longer * move))
                if downhill(gradient, move) > 0:
                    break
                longer /= 2
            else:
                gradient = self._slopes(reached := moved(point, length * move))
            point = reached
        return point

    def _slopes(self, point: list[int]) -> Floats:
        return np.array([fixed_point.to_float(value) for value in self.gradient(point)])

    def _progress(self, hessian: Floats, gradient: Floats, move: Floats) -> tuple[float, float]:
        """a s and the length a of a step; 0 if it does not lead down for certain."""
        slope = downhill(gradient, move)
        if not 0 < slope < math.inf:
            return 0.0, 0.0
        curved, reach = float(move @ hessian @ move), float(np.abs(self.rows.spread(move)).max(initial=0.0))
        length = min(1.0, slope / max(curved, 1e-300), 1 / (8 * max(reach, 1e-300)))
        return length * slope, length
