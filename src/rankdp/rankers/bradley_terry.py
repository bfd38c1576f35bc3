"""Bradley-Terry and its relatives: strengths from comparisons.

An item of strength t_i beats one of strength t_j with probability F(t_i - t_j). `fit` minimises

    sum over pairs  - w_ij log F(t_i - t_j) - w_ji log F(t_j - t_i)   +   ridge/2 |t|^2   +   linear . t

where w_ij counts the wins of i over j, a tie as half a win for each.

For the logistic link the design and the win totals are all that matters, so `fit_wins` takes these; they may be noisy.

Newton's method works in double precision, with a rigorous bound on the gradient where it ends. The Hessian is the
Laplacian of the comparison graph plus the ridge. Each step is solved by conjugate gradients, preconditioned by the
diagonal, which needs a handful of sweeps over the pairs when items meet many others; where it needs too many (chains,
extreme strengths) elimination takes over. Along a step only gradients are compared, never values: for a convex function
the slope at the new point says whether the step was too long, and keeps saying so down to the last digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import number, positive
from rankdp.data.counts import PairCounts, always_beaten, components, never_beaten, win_components
from rankdp.errors import InputError, Unsupported
from rankdp.rankers import newton_kernels as kernels
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.rankers.links import link as find_link
from rankdp.types import Floats, Ints, Longs

NEWTON_STEPS = 200
_ROUNDOFF = 2.0**-53
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


def fit(
    counts: PairCounts,
    *,
    ridge: float = 0.0,
    link: str | Link = "logistic",
    linear: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-10,
) -> Fit:
    """Strengths of compared items.

    Parameters
    ----------
    counts
        How often each item beat each other item.
    ridge
        The weight of ``|t|^2 / 2``. With 0 the strengths are centred, and they exist only if every item can be reached
        from every other by a chain of wins and ties.
    link
        The name of a link, or your own `Link` (strictly convex, or the strengths may not settle).
    linear
        One number per item, the linear term (for objective perturbation). It needs a ridge.
    start
        Where to begin: one number per item.
    tolerance
        No entry of the gradient exceeds it at the end. Counts so large that double precision cannot meet it are
        solved as precisely as it can; the returned residual is the true one.

    Returns
    -------
    Fit
        The strengths, and the size of the gradient there.
    """
    chosen = link if isinstance(link, Link) else find_link(link)
    ridge, shift, begin = _checked(len(counts.items), ridge, linear, start, tolerance)
    if ridge == 0:
        if linear is not None:
            raise InputError("linear needs a ridge above 0: without one the objective may have no minimum")
        _check_maximum(counts)
    won, lost = counts.records()
    guess = first_guess(won / 2, (won + lost) / 2, ridge) if begin is None else begin
    return _settled(newton(problem_of(counts, chosen, ridge, shift), guess, tolerance))


def fit_wins(
    design: PairCounts,
    half_wins: ArrayLike,
    *,
    ridge: float,
    linear: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-10,
) -> Fit:
    """Logistic strengths from win totals: the solution of

        sum_j n_ij s(t_i - t_j) - half_wins_i / 2 + ridge t_i + linear_i = 0.

    Parameters
    ----------
    design
        How often each pair was compared; who won is not looked at.
    half_wins
        Each item's half-wins: any whole numbers, also negative or more than were played, as noise makes them.
    ridge
        The weight of ``|t|^2 / 2``, above 0, which makes the solution exist and unique.
    linear, start, tolerance
        As in `fit`.

    Returns
    -------
    Fit
        The strengths, and the size of the gradient there.
    """
    totals = np.asarray(half_wins)
    m = len(design.items)
    if totals.shape != (m,) or totals.dtype.kind not in "iu":
        raise InputError(f"half_wins must be one whole number for each of the {m} items")
    if np.abs(totals.astype(np.float64)).max() > 2**53:
        raise InputError("half_wins must lie between -2^53 and 2^53, beyond which they are not exact")
    ridge, shift, begin = _checked(m, ridge, linear, start, tolerance)
    if ridge == 0:
        raise InputError("ridge must be above 0 to fit given win totals, which need not belong to any outcomes")
    won, lost = design.records()
    guess = first_guess(totals / 2, (won + lost) / 2, ridge) if begin is None else begin
    return _settled(newton(LogisticProblem(design, totals / 2, ridge, shift), guess, tolerance))


def problem_of(counts: PairCounts, link: Link, ridge: float, linear: Floats) -> Problem:
    """The objective above, for Newton's method."""
    if link is LOGISTIC:
        return LogisticProblem(counts, counts.half_wins / 2, ridge, linear)
    return LinkProblem(counts, link, ridge, linear)


def first_guess(wins: Floats, played: Floats, ridge: float) -> Floats:
    """The log-odds of each item's wins, shrunk by the ridge: near enough where opponents are mixed."""
    share = np.clip((wins + 0.5) / (played + 1.0), 0.01, 0.99)
    guess = np.log(share / (1.0 - share)) * (played / (played + 4.0 * ridge + 1.0))
    return np.asarray(guess if ridge else guess - guess.mean())


def _settled(fit: Fit) -> Fit:
    if not fit.settled:
        raise Unsupported(f"the strengths did not settle within {NEWTON_STEPS} Newton steps")
    return fit


def _checked(
    items: int, ridge: float, linear: ArrayLike | None, start: ArrayLike | None, tolerance: float
) -> tuple[float, Floats, Floats | None]:
    """The ridge, the linear term (0 where there is none) and the start, checked."""
    positive("tolerance", tolerance)
    shift = np.zeros(items) if linear is None else _vector("linear", linear, items)
    return number("ridge", ridge, 0), shift, None if start is None else _vector("start", start, items)


def _vector(name: str, values: ArrayLike, items: int) -> Floats:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (items,) or not np.isfinite(vector).all():
        raise InputError(f"{name} must be one finite number for each of the {items} items")
    return vector


def _check_maximum(counts: PairCounts) -> None:
    """Without a ridge the maximum must exist; if not, say which items prevent it."""
    groups = win_components(counts)
    if groups.max() == 0:
        return

    def named(items: Any) -> str:
        names = [counts.items[item] for item in items]
        return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

    def smallest(groups: Ints) -> str:
        return f"(one of them: {named(np.flatnonzero(groups == np.bincount(groups).argmin()))})"

    parts = components(counts)
    if parts.max() > 0:
        reason = f"the comparisons fall into {parts.max() + 1} groups of items that never met {smallest(parts)}"
    elif len(beaten := never_beaten(counts)):
        reason = f"never beaten: {named(beaten)}"
    elif len(beating := always_beaten(counts)):
        reason = f"always beaten: {named(beating)}"
    else:
        several = f"the items fall into {groups.max() + 1} groups of which one always beats another"
        reason = f"{several} {smallest(groups)}"
    raise InputError(f"the likelihood has no maximum without a ridge: {reason}; give a ridge above 0, such as 0.01")


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
        self.comparisons, self.weights = counts.halves / 2, np.empty(len(counts))
        self.diagonal, self.expected = np.empty((2, len(wins)))

    def gradient(self, theta: Floats) -> Floats:
        """Expected wins less wins, plus the ridge's pull and the linear term."""
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
        computed from d = t_i - t_j; rounding d moves s(d) by at most u |d| e^-|d| < u/2. Both stay below 12u in total,
        and a term n_ij p_ij below 13u n_ij. Compensated sums of m terms add u |sum| + (2 m u)^2 times the sum of the
        sizes (Ogita, Rump and Oishi 2005), the product with the ridge another u. So 20u + (2 m u)^2 times the
        comparisons, wins, ridge and linear terms of an item covers everything, the rounding of this sum included.
        """
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
        self.sizes = self._to_items(counts.halves / 2, counts.halves / 2)
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
        items = len(hessian.starts) - 1
        self.most = 500 if len(hessian.second) <= _SPARSE * items else 20 * items

    def solve(self, gradient: Floats, aim: float) -> Floats:
        """x with H x = gradient, roughly until Newton's own error, which falls quadratically."""
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
        """Exactly, up to rounding. Without a ridge H maps constants to 0: there the last item is held.

        Where H is singular to working precision the preconditioner alone still gives a direction of descent.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import splu

        h, items = self.hessian, np.arange(len(gradient))
        diagonal, first = np.maximum(h.diagonal, 1e-300), np.repeat(items, np.diff(h.starts))
        rows, columns = np.concatenate([first, h.second, items]), np.concatenate([h.second, first, items])
        table = coo_array((np.concatenate([-h.weights, -h.weights, diagonal]), (rows, columns))).tocsc()
        free = len(items) if h.ridge else len(items) - 1
        step = np.zeros(len(items))
        try:
            step[:free] = splu(table[:free, :free], permc_spec="MMD_AT_PLUS_A").solve(gradient[:free])
        except RuntimeError:
            return gradient / diagonal
        return np.asarray(step if h.ridge else step - step.mean())
