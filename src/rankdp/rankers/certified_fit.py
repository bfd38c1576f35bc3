"""Strengths with a proven gradient, for every table of comparisons: the basis of objective perturbation.

`fit_within` returns a point at which the exact gradient of the objective of `bradley_terry` has an l2 norm of at most a
given number. Newton's method in double precision proves that at once for ordinary tables. Where it cannot (a common
shift of 10^5 has digits to 10^-11 only, and 10^9 comparisons multiply them), the same method goes on in fixed point:

- strengths are integers of 2^-192 (`fixed_point`), so that their differences are exact, and so are the ridge and the
  linear term, which are doubles. The slopes of a link are within E = 2^-160 of their formula. So the gradient of a
  table of N comparisons is known within 8 E (N + n) in l1, hence in l2: 2^-105 for 2^52 comparisons, the most that a
  table holds, where a norm of 2^-100 is the least that can be asked for;
- each step decreases the objective f by a least amount, so the method ends.

Proof of the latter. Along a direction d let s = -g.d > 0 be the slope and q = d'Hd the curvature at the start, and r
the largest abs(d_i - d_j) over the compared pairs. For the links here the third derivative of -log F is at most 4
times the second (1 for the logistic, 2 for best-of-three, pi for the secant), so the curvature at length a is at most
q e^(4 a r) (Bach 2010). With a = min(1, s/q, 1/(8 r)) the decrease is at least a s - a^2 q (e^x - 1 - x)/x^2 at x =
1/2, above 0.4 a s. Of Newton's direction and of -g/(2 diag H) the one with the larger a s is taken. For the latter
H <= 2 diag H gives q <= s, the diagonal is at most c = ridge + 2 kappa_2 N, so s >= abs(g)^2/(2 c), and r <=
abs(g)/ridge. So while abs(g) exceeds its target, every step decreases f by at least 0.4 min(1, ridge/(8 abs(g)))
abs(g)^2/(2 c), and f is bounded below: the method ends, whatever the outcomes. (A longer step is taken where the
slope at its end is still downwards: f falls all the way, by more than on the shorter one.) Slopes and curvatures are
computed in doubles, with their rounding taken off.

So nothing here fails or gives up: whether a proof is found does not depend on the data, only how long it takes.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.rankers import fixed_point
from rankdp.rankers.bradley_terry import Solver, first_guess, newton, norm, pair_starts, problem_of
from rankdp.rankers.links import Link
from rankdp.types import Floats

SMALLEST_NORM = 2.0**-100


def fit_within(counts: PairCounts, gradient_norm: float, *, ridge: float, link: Link, linear: Floats) -> list[Fraction]:
    """Strengths at which the exact gradient has an l2 norm of at most ``gradient_norm``, whatever the comparisons.

    Parameters
    ----------
    counts
        How often each item beat each other item.
    gradient_norm
        What is proven, at least 2^-100.
    ridge
        The weight of |t|^2 / 2, above 0.
    link
        A link with exact slopes.
    linear
        One number per item, the linear term.

    Returns
    -------
    list[Fraction]
        One strength per item, exactly the point for which it is proven.
    """
    if not (ridge > 0 and math.isfinite(ridge) and SMALLEST_NORM <= gradient_norm < math.inf):
        raise InputError(
            f"a proof needs a ridge above 0 and a norm of at least 2^-100, got {ridge} and {gradient_norm}"
        )
    if link.exact_slopes is None:
        raise Unsupported(f"no gradient can be proven for the {link.name} link, whose exact slopes are not known")
    won, lost = counts.records()
    with np.errstate(all="ignore"):  # whatever comes out here is only proposed
        guess = first_guess(won / 2, (won + lost) / 2, ridge)
        rough = newton(problem_of(counts, link, ridge, linear), guess, gradient_norm / (4 * math.sqrt(len(won))))
    if rough.gradient_bound <= gradient_norm:
        return [Fraction(strength) for strength in rough.theta.tolist()]
    start = np.where(np.isfinite(rough.theta), rough.theta, 0.0)
    refined = _descend(_FixedPoint(counts, ridge, link, linear), start, gradient_norm)
    return [Fraction(strength, fixed_point.ONE) for strength in refined]


def _descend(objective: _FixedPoint, start: Floats, target: float) -> list[int]:
    """A point at which the exact gradient's norm is at most ``target``, in units of 2^-192 (see the module)."""

    def doubles(point: list[int]) -> Floats:
        return np.array([fixed_point.to_float(value) for value in objective.gradient(point)])

    def promise(way: Floats) -> tuple[float, float]:
        """a s and the length a of a step; 0 if it does not lead down for certain."""
        slope = _downhill(gradient, way)
        if not 0 < slope < math.inf:
            return 0.0, 0.0
        curved, reach = objective.along(way)
        length = min(1.0, slope / max(curved, 1e-300), 1 / (8 * max(reach, 1e-300))) if curved < math.inf else 0.0
        return length * slope, length

    def moved(by: Floats) -> list[int]:
        return [value + fixed_point.from_float(change) for value, change in zip(point, by.tolist(), strict=True)]

    point = [fixed_point.from_float(value) for value in start.tolist()]
    gradient = doubles(point)
    while norm(gradient) * (1 + 1e-12 * len(gradient)) + objective.error > target:
        objective.bend(point)
        with np.errstate(all="ignore"):
            way = max(objective.ways(gradient, target), key=promise)
            length, longer = promise(way)[1], 1.0
        while longer > length:  # as long as the slope at the end is downwards, f falls all the way
            gradient = doubles(reached := moved(longer * way))
            if _downhill(gradient, way) > 0:
                break
            longer /= 2
        else:
            gradient = doubles(reached := moved(length * way))
        point = reached
    return point


def _downhill(gradient: Floats, way: Floats) -> float:
    """How steeply the objective falls in this direction, at least: rounding is taken off."""
    terms = gradient * way
    return float(-terms.sum() - 1e-12 * np.abs(terms).sum())


class _FixedPoint:
    """The objective in fixed point, exact except for the slopes of its link; its Hessian proposes steps, in doubles."""

    def __init__(self, counts: PairCounts, ridge: float, link: Link, linear: Floats) -> None:
        self.ridge, self.link, self.items = ridge, link, len(counts.items)
        self.ridge_over, self.ridge_under = ridge.as_integer_ratio()
        self.linear = [fixed_point.from_float(value) for value in linear.tolist()]
        self.first, self.second, self.starts = counts.first, counts.second, pair_starts(counts)
        self.halves = counts.half_wins_first, counts.half_wins_second
        columns = (self.first, self.second, *self.halves)
        self.rows = list(zip(*(column.tolist() for column in columns), strict=True))
        self.error = 4 * fixed_point.ERROR * float(counts.halves.sum() + self.items)
        self.weights: Floats = np.empty(len(counts))
        self.diagonal: Floats = np.empty(self.items)
        self.solver = Solver(self)

    def gradient(self, theta: list[int]) -> list[int]:
        """Within `error` in l1, hence in l2; in units of 2^-192."""
        slopes = self.link.exact_slopes
        assert slopes is not None
        doubled = [0] * self.items
        for i, j, ahead, behind in self.rows:
            down, up = slopes(theta[i] - theta[j])
            pull = behind * up - ahead * down
            doubled[i] += pull
            doubled[j] -= pull
        return [
            pull // 2 + strength * self.ridge_over // self.ridge_under + shift
            for pull, strength, shift in zip(doubled, theta, self.linear, strict=True)
        ]

    def bend(self, theta: list[int]) -> None:
        """The Hessian at this point."""
        gap = np.array([fixed_point.to_float(theta[i] - theta[j]) for i, j, _, _ in self.rows])
        curvature = self.link.curvature
        self.weights = (self.halves[0] * curvature(gap) + self.halves[1] * curvature(-gap)) / 2
        self.diagonal = np.full(self.items, self.ridge)
        for side in (self.first, self.second):
            self.diagonal += np.bincount(side, self.weights, self.items)

    def ways(self, gradient: Floats, target: float) -> tuple[Floats, Floats]:
        """Newton's, and -g/(2 diag H)."""
        return -self.solver.solve(gradient, target / math.sqrt(self.items)), -gradient / (2 * self.diagonal)

    def along(self, way: Floats) -> tuple[float, float]:
        """q and r."""
        apart = way[self.first] - way[self.second]
        curved = float((self.weights * apart**2).sum() + self.ridge * (way**2).sum())
        return curved, float(np.abs(apart).max(initial=0.0))
