"""Newton's method for strengths, in double precision, with a rigorous bound on the gradient where it ends.

The Hessian is the Laplacian of the comparison graph plus the ridge. Each Newton step is solved by conjugate gradients,
preconditioned by the diagonal, which needs a handful of sweeps over the pairs when items meet many others; where it
needs too many (chains, extreme strengths) elimination takes over. Along a step only gradients are compared, never
values: for a convex function the slope at the new point says whether the step was too long, and keeps saying so down
to the last digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.rankers.links import Link
from rankdp.types import Floats, Ints, Longs

NEWTON_STEPS = 200
_ROUNDOFF = 2.0**-53
_DENSE_ITEMS = 2_000
_SPARSE = 40  # pairs per item up to which a sparse elimination is tried


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Strengths, and how exactly they solve the equations."""

    theta: Floats
    """One strength per item, higher is better; their sum is 0 when there is no ridge."""
    gradient_residual: float
    """The largest entry of the gradient, in absolute value, at this very theta."""
    gradient_bound: float
    """An upper bound on the l2 norm of the exact gradient at this very theta: the computed norm and its rounding."""
    iterations: int
    settled: bool
    """Whether Newton's method stopped because the tolerance, or what rounding allows, was met."""


class Hessian(Protocol):
    """The Laplacian of the pairs' weights plus the ridge; ``diagonal`` is that of the sum."""

    ridge: float
    starts: Longs
    second: Ints
    weights: Floats
    diagonal: Floats


def pair_starts(counts: PairCounts) -> Longs:
    """Where the pairs of each first item begin, and where the last ones end."""
    return np.searchsorted(counts.first, np.arange(len(counts.items) + 1)).astype(np.int64)


def norm(vector: Floats) -> float:
    """The l2 norm."""
    return math.sqrt(float(np.square(vector).sum()))


class LogisticProblem:
    """The logistic link, for which the design and the win totals are all that matters."""

    def __init__(self, counts: PairCounts, wins: Floats, ridge: float, linear: Floats) -> None:
        self.ridge, self.linear, self.wins = ridge, linear, wins
        self.starts, self.second = pair_starts(counts), counts.second
        self.comparisons, self.weights = counts.comparisons, np.empty(len(counts))
        self.diagonal, self.expected = np.empty((2, len(wins)))

    def gradient(self, theta: Floats) -> Floats:
        """Expected wins less wins, plus the ridge's pull and the linear term."""
        from rankdp.rankers import newton_kernels as kernels

        self.expected, self.diagonal = kernels.expected_wins(
            self.starts, self.second, self.comparisons, theta, self.weights
        )
        self.diagonal += self.ridge
        return self.expected - self.wins + self.ridge * theta + self.linear

    def rounding(self, theta: Floats) -> float:
        """A few units of roundoff of the largest sum."""
        sizes = self.expected + np.abs(self.wins) + np.abs(self.ridge * theta) + np.abs(self.linear)
        return float(4 * _ROUNDOFF * (sizes + self.diagonal * np.abs(theta)).max())

    def residual(self, theta: Floats) -> tuple[Floats, Floats]:
        """The gradient with compensated sums, and how far each entry can be off, whatever the data.

        With u = 2^-53, and exp taken to be within 2 units in the last place: a share x_i/(x_i + x_j) is off by at most
        8u for the two exponentials and 2u for the sum and the quotient, relative to itself. Where |theta| > 700 it is
        computed from d = t_i - t_j; rounding d moves s(d) by at most u |d| e^-|d| < u/2. Both stay below 12u in all,
        and a term n_ij p_ij below 13u n_ij. Compensated sums of m terms add u |sum| + (2 m u)^2 times the sum of the
        sizes (Ogita, Rump and Oishi 2005), the product with the ridge another u. So 20u + (2 m u)^2 times the
        comparisons, wins, ridge and linear terms of an item covers everything, the rounding of this sum included.
        """
        from rankdp.rankers import newton_kernels as kernels

        sums, rests, played = kernels.careful_wins(self.starts, self.second, self.comparisons, theta)
        pull = self.ridge * theta
        gradient = compensated_sum([sums, rests, -self.wins, pull, self.linear])
        sizes = played + np.abs(self.wins) + np.abs(pull) + np.abs(self.linear)
        many = 2 * (len(theta) + 8) * _ROUNDOFF
        return gradient, (20 * _ROUNDOFF + many * many) * sizes


class LinkProblem:
    """Any link, from the outcomes of every pair."""

    def __init__(self, counts: PairCounts, link: Link, ridge: float, linear: Floats) -> None:
        self.ridge, self.linear, self.link = ridge, linear, link
        self.starts, self.first, self.second = pair_starts(counts), counts.first, counts.second
        self.ahead, self.behind = counts.half_wins_first / 2, counts.half_wins_second / 2
        self.sizes = self._to_items(counts.comparisons, counts.comparisons)
        self.weights = np.empty(len(counts))
        self.diagonal = np.empty(len(counts.items))

    def _to_items(self, first: Floats, second: Floats) -> Floats:
        m = len(self.linear)
        return np.asarray(np.bincount(self.first, first, m).astype(np.float64) + np.bincount(self.second, second, m))

    def gradient(self, theta: Floats) -> Floats:
        """The slopes of both sides of every pair, plus the ridge's pull and the linear term."""
        gap = theta[self.first] - theta[self.second]
        pull = self.ahead * self.link.slope(gap) - self.behind * self.link.slope(-gap)
        self.weights = self.ahead * self.link.curvature(gap) + self.behind * self.link.curvature(-gap)
        self.diagonal = self._to_items(self.weights, self.weights) + self.ridge
        return self._to_items(pull, -pull) + self.ridge * theta + self.linear

    def rounding(self, theta: Floats) -> float:
        """A few units of roundoff of the largest sum."""
        sizes = self.sizes * self.link.kappa_1 + np.abs(self.ridge * theta) + np.abs(self.linear)
        return float(4 * _ROUNDOFF * (sizes + self.diagonal * np.abs(theta)).max())

    def residual(self, theta: Floats) -> tuple[Floats, Floats]:
        """The gradient and how far each entry can be off.

        Each slope is off by `slope_error` units of roundoff, and a gap x that is off by u |x| moves it by at most
        u |x| kappa_2; plain sums of m terms add m u times the sum of their sizes.
        """
        gap = theta[self.first] - theta[self.second]
        down, up = self.ahead * self.link.slope(gap), self.behind * self.link.slope(-gap)
        pull = down - up
        gradient = self._to_items(pull, -pull) + self.ridge * theta + self.linear
        moved = (self.ahead + self.behind) * np.abs(gap) * (self.link.kappa_2 * (1 + self.link.argument_error))
        each = (self.link.slope_error + 4) * (np.abs(down) + np.abs(up)) + moved
        sizes = self._to_items(np.abs(pull), np.abs(pull)) + np.abs(self.ridge * theta) + np.abs(self.linear)
        return gradient, 1.01 * _ROUNDOFF * (self._to_items(each, each) + (len(theta) + 8) * sizes)


Problem = LogisticProblem | LinkProblem
"""What Newton's method needs: the gradient, which sets the Hessian too, about how exactly it can be met, and a careful
last look."""


def compensated_sum(terms: list[Floats]) -> Floats:
    """A sum of vectors whose roundings are added up too (Knuth's two-sum)."""
    total, rest = np.zeros_like(terms[0]), np.zeros_like(terms[0])
    for term in terms:
        new = total + term
        back = new - total
        rest += (total - (new - back)) + (term - back)
        total = new
    return np.asarray(total + rest)


def newton(problem: Problem, theta: Floats, tolerance: float) -> Fit:
    """Until no entry of the gradient exceeds ``tolerance``, or rounding ends it, or the steps are used up.

    A trust radius grows while steps are too short and shrinks when one is too long.
    """
    gradient = problem.gradient(theta)
    solver, radius, steps, settled = Solver(problem), 4.0, 0, False
    aim = 0.9 * tolerance
    for steps in range(NEWTON_STEPS):  # noqa: B007
        size = float(np.abs(gradient).max())
        if size <= max(aim, problem.rounding(theta)):
            settled = True
            break
        move = -solver.solve(gradient, aim)
        longest = float(np.abs(move).max())
        length = min(1.0, radius / longest)
        slope = float(gradient @ move)
        before = theta
        for _ in range(60):
            theta = before + length * move
            gradient = problem.gradient(theta)
            ahead = float(gradient @ move)
            if ahead <= -0.5 * slope:
                break
            # too far: the slope turned from `slope` < 0 to `ahead` > 0 on the way
            length *= min(0.5, max(0.05, slope / (slope - ahead)))
            radius = length * longest
        if length * longest >= radius:
            radius *= 4.0 if ahead <= 0 else 2.0
        if (theta == before).all():
            settled = True
            break
    if problem.ridge == 0:
        theta = theta - theta.mean()
    theta.flags.writeable = False
    gradient, errors = problem.residual(theta)
    bound = (norm(gradient) + norm(errors)) * (1 + 4 * (len(theta) + 8) * _ROUNDOFF)
    return Fit(theta, float(np.abs(gradient).max()), bound, steps, settled)


class Solver:
    """Newton's equations: conjugate gradients, or elimination once those have needed more sweeps than it costs."""

    def __init__(self, hessian: Hessian) -> None:
        self.hessian = hessian
        self.last = 0.0
        self.direct = False
        items, pairs = len(hessian.starts) - 1, max(1, len(hessian.second))
        if items <= _DENSE_ITEMS:
            self.most = max(20, items**3 // (20 * pairs))
        else:
            self.most = 500 if pairs <= _SPARSE * items else 20 * items

    def solve(self, gradient: Floats, aim: float) -> Floats:
        """x with H x = gradient, roughly until Newton's own error, which falls quadratically."""
        from rankdp.rankers import newton_kernels as kernels

        size, h = norm(gradient), self.hessian
        target = max(size * min(0.03, size / self.last if self.last else 0.03), 0.3 * aim)
        self.last = size
        if not self.direct and float(h.diagonal.min()) > 0:
            step, sweeps = kernels.conjugate_gradients(
                h.starts, h.second, h.weights, h.diagonal, h.ridge, gradient, target, self.most
            )
            if sweeps < self.most:
                return np.asarray(step)
        self.direct = True
        return self._eliminate(gradient)

    def _eliminate(self, gradient: Floats) -> Floats:
        """Exactly, up to rounding. Without a ridge H maps constants to 0: there a constant is added, or one item held.

        Where H is singular to working precision the preconditioner alone still gives a direction of descent.
        """
        h, items = self.hessian, len(gradient)
        diagonal = np.maximum(h.diagonal, 1e-300)
        first = np.repeat(np.arange(items), np.diff(h.starts))
        try:
            if items <= _DENSE_ITEMS:
                table = np.diag(diagonal)
                table[first, h.second] = table[h.second, first] = -h.weights
                if h.ridge == 0:
                    table += diagonal.mean() / items
                return np.asarray(np.linalg.solve(table, gradient))
            return self._eliminate_sparse(gradient, first, diagonal)
        except (np.linalg.LinAlgError, RuntimeError):  # the latter is SuperLU's
            return gradient / diagonal

    def _eliminate_sparse(self, gradient: Floats, first: Longs, diagonal: Floats) -> Floats:
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import splu

        h, items = self.hessian, len(gradient)
        rows = np.concatenate([first, h.second, np.arange(items)])
        columns = np.concatenate([h.second, first, np.arange(items)])
        values = np.concatenate([-h.weights, -h.weights, diagonal])
        sparse = coo_array((values, (rows, columns)), shape=(items, items)).tocsc()
        if h.ridge:
            return np.asarray(splu(sparse, permc_spec="MMD_AT_PLUS_A").solve(gradient))
        step = np.append(splu(sparse[:-1, :-1], permc_spec="MMD_AT_PLUS_A").solve(gradient[:-1]), 0.0)
        return np.asarray(step - step.mean())
