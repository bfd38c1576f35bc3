"""Bradley-Terry and its relatives: strengths from comparisons, by Newton's method on sparse counts.

An item of strength t_i beats one of strength t_j with probability F(t_i - t_j). `fit` minimises

    sum over pairs  - w_ij log F(t_i - t_j) - w_ji log F(t_j - t_i)   +   ridge/2 |t|^2   +   linear . t

where w_ij counts the wins of i over j, a tie as half a win for each. The Hessian is the Laplacian of the comparison
graph plus the ridge. Each Newton step is solved by conjugate gradients, preconditioned by the diagonal, which needs a
handful of sweeps over the pairs when items meet many others; where it needs too many (chains, extreme strengths)
elimination takes over. Along a step only gradients are compared, never values: for a convex function the slope at the
new point says whether the step was too long, and keeps saying so down to the last digits.

For the logistic link the design and the win totals are all that matters, so `fit_wins` takes these; they may be noisy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.data.counts import PairCounts, always_beaten, components, never_beaten, one_win_component, win_components
from rankdp.errors import InputError, Unsupported
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.rankers.links import link as find_link

FloatArray = NDArray[np.float64]

_ROUNDOFF = 2.0**-53
_NEWTON_STEPS = 200
_MANY_PAIRS = 500_000  # from here on a second thread is worth its start
_DENSE_ITEMS = 2_000
_FEW_PER_CELL = 60  # half-wins up to which drawing them one by one is quicker than a binomial for each cell
_SPARSE = 40  # pairs per item up to which a sparse elimination is tried


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Strengths, and how exactly they solve the equations."""

    theta: FloatArray
    """One strength per item, higher is better; their sum is 0 when there is no ridge."""
    gradient_residual: float
    """The largest entry of the gradient, in absolute value, at this very theta."""
    gradient_bound: float
    """An upper bound on the l2 norm of the exact gradient at this very theta: the computed norm and its rounding."""
    iterations: int


def fit(
    counts: PairCounts,
    *,
    ridge: float = 0.0,
    link: str | Link = "logistic",
    linear: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-10,
    threads: int | None = None,
) -> Fit:
    """The strengths that minimise the objective above, until no entry of the gradient exceeds ``tolerance``.

    Without a ridge the strengths are centred, and they exist only if every item can be reached from every other by a
    chain of wins and ties. ``linear`` is one number per item (for objective perturbation) and needs a ridge. ``start``
    is where to begin. Counts so large that double precision cannot meet the tolerance are solved as far as it goes;
    the residual that is returned is the true one.
    """
    chosen = find_link(link)
    settings = _Settings.checked(len(counts.items), ridge, linear, start, tolerance, threads)
    if settings.ridge == 0:
        if linear is not None:
            raise InputError("linear needs a ridge above 0: without one the objective may have no minimum")
        _check_maximum(counts)
    with _Workers(settings.threads, len(counts)) as workers:
        won, lost = counts.records()
        problem: _Problem
        if chosen is LOGISTIC:
            problem = _LogisticProblem(counts, won / 2, settings, workers)
        else:
            problem = _LinkProblem(counts, chosen, settings, workers)
        return _newton(problem, _first_guess(won / 2, (won + lost) / 2, settings), settings)


def fit_wins(
    design: PairCounts,
    half_wins: ArrayLike,
    *,
    ridge: float,
    linear: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-10,
    threads: int | None = None,
) -> Fit:
    """Logistic strengths from win totals: the solution of

        sum_j n_ij s(t_i - t_j) - half_wins_i / 2 + ridge t_i + linear_i = 0.

    Of ``design`` only the number of comparisons of each pair is used, not who won. The totals may be any whole numbers,
    also negative or more than were played, as noise makes them; a ridge above 0 makes the solution exist and unique.
    """
    totals = np.asarray(half_wins)
    m = len(design.items)
    if totals.shape != (m,) or totals.dtype.kind not in "iu":
        raise InputError(f"half_wins must be one whole number for each of the {m} items")
    if np.abs(totals.astype(np.float64)).max() > 2**53:
        raise InputError("half_wins must lie between -2^53 and 2^53, beyond which they are not exact")
    settings = _Settings.checked(m, ridge, linear, start, tolerance, threads)
    if settings.ridge == 0:
        raise InputError("ridge must be above 0 to fit given win totals, which need not belong to any outcomes")
    with _Workers(settings.threads, len(design)) as workers:
        won, lost = design.records()
        problem = _LogisticProblem(design, totals / 2, settings, workers)
        return _newton(problem, _first_guess(totals / 2, (won + lost) / 2, settings), settings)


def bootstrap(
    counts: PairCounts,
    draws: int,
    seed: int | np.random.Generator,
    *,
    ridge: float = 0.0,
    resample: str = "comparisons",
    tolerance: float = 1e-10,
    threads: int | None = None,
) -> FloatArray:
    """Logistic strengths of ``draws`` resampled tables, one row each.

    ``resample="comparisons"`` draws as many comparisons with replacement (a multinomial law over pairs and winners);
    ``resample="outcomes"`` keeps how often each pair met and draws the winners (a binomial law for each pair).
    Half-wins do not tell two ties from a win each: a tie is drawn as a win for either side with equal chances, which
    makes the spread a little too wide, never too narrow. The result depends on the seed, not on the threads.
    """
    if not isinstance(draws, (int, np.integer)) or draws < 1:
        raise InputError(f"draws must be a whole number of at least 1, got {draws!r}")
    if resample not in ("comparisons", "outcomes"):
        raise InputError(f"resample must be comparisons or outcomes, got {resample!r}")
    best = fit(counts, ridge=ridge, threads=1)  # one, so that the order of its sums is always the same
    from rankdp.rankers import solver_kernels as kernels

    redraw = _resampler(counts, resample)
    starts, out = _starts(counts), np.empty((draws, len(counts.items)))
    size = max(1, min(64, 20_000_000 // max(1, len(counts))))
    batches = [slice(low, min(low + size, draws)) for low in range(0, draws, size)]
    generators = np.random.default_rng(seed).spawn(len(batches))

    def run(batch: slice, generator: np.random.Generator) -> NDArray[np.int64]:
        won = redraw(batch.stop - batch.start, generator)
        return kernels.refit_many(
            starts, counts.second, won, float(ridge), best.theta, tolerance, _NEWTON_STEPS, out[batch]
        )

    with ThreadPoolExecutor(threads or _cores()) as pool:
        failures = np.bincount(np.concatenate(list(pool.map(run, batches, generators))), minlength=3)
    if failures[1]:
        raise InputError(
            f"in {failures[1]} of {draws} resampled tables some items are never or always beaten "
            "and no maximum exists; give a ridge above 0"
        )
    if failures[2]:
        raise Unsupported(
            f"{failures[2]} of {draws} fits did not settle within {_NEWTON_STEPS} steps of Newton's method"
        )
    return out


def worths(theta: ArrayLike) -> FloatArray:
    """Bradley-Terry worths: exp(theta), scaled to sum 1."""
    strengths = np.asarray(theta, dtype=np.float64)
    powers = np.exp(strengths - strengths.max())
    shares: FloatArray = powers / powers.sum()
    return shares


def _resampler(counts: PairCounts, resample: str) -> Callable[[int, np.random.Generator], NDArray[np.int64]]:
    """A function that draws the wins of both sides of every pair, side by side: draws x (2 pairs)."""
    halves = np.column_stack([counts.half_wins_first, counts.half_wins_second])
    total, pairs = int(halves.sum()), len(counts)
    if resample == "outcomes":
        met, chance = counts.halves // 2, counts.half_wins_first / counts.halves

        def outcomes(draws: int, generator: np.random.Generator) -> NDArray[np.int64]:
            ahead = generator.binomial(met, chance, size=(draws, pairs))
            return np.stack([ahead, met - ahead], axis=2).reshape(draws, -1)

        return outcomes
    if total > min(2**32, _FEW_PER_CELL * halves.size):
        shares = halves.ravel() / total
        return lambda draws, generator: generator.multinomial(total // 2, shares, size=draws)
    cells = np.repeat(np.arange(halves.size, dtype=np.uint32), halves.ravel())
    from rankdp.rankers import solver_kernels as kernels

    def comparisons(draws: int, generator: np.random.Generator) -> NDArray[np.int64]:
        won = np.zeros((draws, halves.size), np.int64)
        for row in won:
            kernels.tally(cells, generator.integers(0, total, total // 2, dtype=np.uint32), row)
        return won

    return comparisons


@dataclass(frozen=True, slots=True)
class _Settings:
    ridge: float
    linear: FloatArray
    start: FloatArray | None
    tolerance: float
    threads: int | None

    @classmethod
    def checked(
        cls,
        items: int,
        ridge: float,
        linear: ArrayLike | None,
        start: ArrayLike | None,
        tolerance: float,
        threads: int | None,
    ) -> _Settings:
        if not (math.isfinite(ridge) and ridge >= 0):
            raise InputError(f"ridge must be a finite number of at least 0, got {ridge!r}")
        if not (math.isfinite(tolerance) and tolerance > 0):
            raise InputError(f"tolerance must be a finite number above 0, got {tolerance!r}")
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, got {threads!r}")
        linear = np.zeros(items) if linear is None else _vector("linear", linear, items)
        start = None if start is None else _vector("start", start, items)
        return cls(float(ridge), linear, start, float(tolerance), threads)


def _vector(name: str, values: ArrayLike, items: int) -> FloatArray:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (items,) or not np.isfinite(vector).all():
        raise InputError(f"{name} must be one finite number for each of the {items} items")
    return vector


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Workers:
    """Runs a kernel over ranges of first items, each range with its own sums, on as many threads as pay."""

    def __init__(self, threads: int | None, pairs: int) -> None:
        self.count = threads or (min(_cores(), 8) if pairs >= _MANY_PAIRS else 1)
        self.pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> _Workers:
        if self.count > 1:
            self.pool = ThreadPoolExecutor(self.count)
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def sums(self, work: Callable[[int, int, FloatArray], object], starts: NDArray[np.int64], shape: Any) -> list[Any]:
        """The sums of each range; work(low, high, sums) adds to sums."""
        items = len(starts) - 1
        if self.pool is None:
            whole = np.zeros(shape)
            work(0, items, whole)
            return [whole]
        shares = starts[-1] * np.arange(1, self.count) // self.count
        cuts = [0, *np.searchsorted(starts, shares).tolist(), items]
        parts = [np.zeros(shape) for _ in range(self.count)]
        list(self.pool.map(work, cuts[:-1], cuts[1:], parts))
        return parts


def _starts(counts: PairCounts) -> NDArray[np.int64]:
    return np.searchsorted(counts.first, np.arange(len(counts.items) + 1)).astype(np.int64)


class _Problem(Protocol):
    """What Newton's method needs: the gradient, the Hessian's parts at the last point, and a careful last look."""

    ridge: float
    starts: NDArray[np.int64]
    second: NDArray[np.int32]
    weights: FloatArray
    diagonal: FloatArray
    workers: _Workers

    def gradient(self, theta: FloatArray) -> FloatArray: ...

    def rounding(self, theta: FloatArray) -> float:
        """About how exactly the gradient can be computed and met."""

    def residual(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient and a rigorous bound on the error of each entry."""


class _LogisticProblem:
    def __init__(self, counts: PairCounts, wins: FloatArray, settings: _Settings, workers: _Workers) -> None:
        self.ridge, self.linear, self.wins, self.workers = settings.ridge, settings.linear, wins, workers
        self.starts, self.second = _starts(counts), counts.second
        from rankdp.rankers import solver_kernels as kernels

        self.comparisons, self.weights = np.empty((2, len(counts)))
        kernels.met(counts.half_wins_first, counts.half_wins_second, self.comparisons)
        self.diagonal = np.empty(len(wins))
        self.expected = np.empty(len(wins))

    def gradient(self, theta: FloatArray) -> FloatArray:
        from rankdp.rankers import solver_kernels as kernels

        def work(low: int, high: int, out: FloatArray) -> None:
            kernels.terms(self.starts, self.second, self.comparisons, theta, low, high, out, self.weights)

        self.expected, self.diagonal = sum(self.workers.sums(work, self.starts, (2, len(theta))))
        self.diagonal += self.ridge
        return self.expected - self.wins + self.ridge * theta + self.linear

    def rounding(self, theta: FloatArray) -> float:
        sizes = self.expected + np.abs(self.wins) + np.abs(self.ridge * theta) + np.abs(self.linear)
        return float(4 * _ROUNDOFF * (sizes + self.diagonal * np.abs(theta)).max())

    def residual(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient with compensated sums, and how far each entry can be off, whatever the data.

        With u = 2^-53, and exp taken to be within 2 units in the last place: a share x_i/(x_i + x_j) is off by at most
        8u for the two exponentials and 2u for the sum and the quotient, relative to itself. Where |theta| > 700 it is
        computed from d = t_i - t_j; rounding d moves s(d) by at most u |d| e^-|d| < u/2. Both stay below 12u in all,
        and a term n_ij p_ij below 13u n_ij. Compensated sums of m terms add u |sum| + (2 m u)^2 times the sum of the
        sizes (Ogita, Rump and Oishi 2005), the product with the ridge another u. So 20u + (2 m u)^2 times the
        comparisons, wins, ridge and linear terms of an item covers everything, the rounding of this sum included.
        """
        from rankdp.rankers import solver_kernels as kernels

        def work(low: int, high: int, out: FloatArray) -> None:
            kernels.careful_wins(self.starts, self.second, self.comparisons, theta, low, high, out)

        parts = self.workers.sums(work, self.starts, (3, len(theta)))
        pull = self.ridge * theta
        gradient = _sum([part[row] for row in (0, 1) for part in parts] + [-self.wins, pull, self.linear])
        sizes = sum(part[2] for part in parts) + np.abs(self.wins) + np.abs(pull) + np.abs(self.linear)
        many = 2 * (len(theta) + 8) * _ROUNDOFF
        return gradient, (20 * _ROUNDOFF + many * many) * sizes


class _LinkProblem:
    def __init__(self, counts: PairCounts, link: Link, settings: _Settings, workers: _Workers) -> None:
        self.ridge, self.linear, self.workers, self.link = settings.ridge, settings.linear, workers, link
        self.starts, self.first, self.second = _starts(counts), counts.first, counts.second
        self.ahead, self.behind = counts.half_wins_first / 2, counts.half_wins_second / 2
        self.sizes = self._to_items(counts.comparisons, counts.comparisons)
        self.weights = np.empty(len(counts))
        self.diagonal = np.empty(len(counts.items))

    def _to_items(self, first: FloatArray, second: FloatArray) -> FloatArray:
        m = len(self.linear)
        sums: FloatArray = np.bincount(self.first, first, m).astype(np.float64) + np.bincount(self.second, second, m)
        return sums

    def gradient(self, theta: FloatArray) -> FloatArray:
        gap = theta[self.first] - theta[self.second]
        pull = self.ahead * self.link.slope(gap) - self.behind * self.link.slope(-gap)
        self.weights = self.ahead * self.link.curvature(gap) + self.behind * self.link.curvature(-gap)
        self.diagonal = self._to_items(self.weights, self.weights) + self.ridge
        return self._to_items(pull, -pull) + self.ridge * theta + self.linear

    def rounding(self, theta: FloatArray) -> float:
        sizes = self.sizes * self.link.kappa_1 + np.abs(self.ridge * theta) + np.abs(self.linear)
        return float(4 * _ROUNDOFF * (sizes + self.diagonal * np.abs(theta)).max())

    def residual(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
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


def _sum(terms: list[FloatArray]) -> FloatArray:
    """A sum of vectors with compensation."""
    total, rest = np.zeros_like(terms[0]), np.zeros_like(terms[0])
    for term in terms:
        new = total + term
        back = new - total
        rest += (total - (new - back)) + (term - back)
        total = new
    summed: FloatArray = total + rest
    return summed


def _check_maximum(counts: PairCounts) -> None:
    """Without a ridge the maximum must exist; if not, say which items stand in the way."""
    if one_win_component(counts):
        return

    def named(items: Any) -> str:
        names = [counts.items[item] for item in items]
        return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

    parts = components(counts)
    if parts.max() > 0:
        rarest = np.bincount(parts).argmin()
        reason = (
            f"the comparisons fall into {parts.max() + 1} groups of items that never met "
            f"(one of them: {named(np.flatnonzero(parts == rarest))})"
        )
    elif len(beaten := never_beaten(counts)):
        reason = f"never beaten: {named(beaten)}"
    elif len(beating := always_beaten(counts)):
        reason = f"always beaten: {named(beating)}"
    else:
        groups = win_components(counts)
        rarest = np.bincount(groups).argmin()
        reason = (
            f"the items fall into {groups.max() + 1} groups of which one always beats another "
            f"(one of them: {named(np.flatnonzero(groups == rarest))})"
        )
    raise InputError(f"the likelihood has no maximum without a ridge: {reason}; give a ridge above 0, such as 0.01")


def _first_guess(wins: FloatArray, played: FloatArray, settings: _Settings) -> FloatArray:
    """The log-odds of each item's wins, shrunk by the ridge: near enough where opponents are mixed."""
    if settings.start is not None:
        return settings.start
    share = np.clip((wins + 0.5) / (played + 1.0), 0.01, 0.99)
    guess = np.log(share / (1.0 - share)) * (played / (played + 4.0 * settings.ridge + 1.0))
    return guess if settings.ridge else guess - guess.mean()


def _newton(problem: _Problem, theta: FloatArray, settings: _Settings) -> Fit:
    """Newton's method with a trust radius that grows while steps are too short and shrinks when one is too long."""
    gradient = problem.gradient(theta)
    solver, radius, steps = _Solver(problem), 4.0, 0
    aim = 0.9 * settings.tolerance
    for steps in range(_NEWTON_STEPS):  # noqa: B007
        size = float(np.abs(gradient).max())
        if size <= max(aim, problem.rounding(theta)):
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
            break
    else:
        raise Unsupported(f"the strengths did not settle within {_NEWTON_STEPS} Newton steps")
    if settings.ridge == 0:
        theta = theta - theta.mean()
    theta.flags.writeable = False
    gradient, errors = problem.residual(theta)
    bound = (_norm(gradient) + _norm(errors)) * (1 + 4 * (len(theta) + 8) * _ROUNDOFF)
    return Fit(theta, float(np.abs(gradient).max()), bound, steps)


def _norm(vector: FloatArray) -> float:
    return math.sqrt(float(np.square(vector).sum()))


class _Solver:
    """Newton's equations: conjugate gradients, or elimination once those have needed more sweeps than it costs."""

    def __init__(self, problem: _Problem) -> None:
        self.problem = problem
        self.last = 0.0
        self.direct = False
        items, pairs = len(problem.starts) - 1, max(1, len(problem.second))
        if items <= _DENSE_ITEMS:
            self.most = max(20, items**3 // (20 * pairs))
        else:
            self.most = 500 if pairs <= _SPARSE * items else 20 * items

    def solve(self, gradient: FloatArray, aim: float) -> FloatArray:
        norm = _norm(gradient)
        # roughly until Newton's own error, which falls quadratically
        target = max(norm * min(0.03, norm / self.last if self.last else 0.03), 0.3 * aim)
        self.last = norm
        if not self.direct and float(self.problem.diagonal.min()) > 0:
            step, sweeps = self._conjugate_gradients(gradient, target)
            if sweeps < self.most:
                return step
        self.direct = True
        return self._eliminate(gradient)

    def _conjugate_gradients(self, gradient: FloatArray, target: float) -> tuple[FloatArray, int]:
        from rankdp.rankers import solver_kernels as kernels

        p = self.problem
        if p.workers.pool is None:
            found: tuple[FloatArray, int] = kernels.conjugate_gradients(
                p.starts, p.second, p.weights, p.diagonal, p.ridge, gradient, target, self.most
            )
            return found
        x, residual = np.zeros_like(gradient), gradient.copy()
        direction = residual / p.diagonal
        product = float((residual * direction).sum())
        for sweeps in range(self.most):
            if _norm(residual) <= target:
                return x, sweeps
            image = p.ridge * direction + self._laplacian_times(direction)
            length = product / float((direction * image).sum())
            x += length * direction
            residual -= length * image
            ready = residual / p.diagonal
            before, product = product, float((residual * ready).sum())
            direction = ready + product / before * direction
        return x, self.most

    def _laplacian_times(self, vector: FloatArray) -> FloatArray:
        from rankdp.rankers import solver_kernels as kernels

        p = self.problem

        def work(low: int, high: int, out: FloatArray) -> None:
            kernels.laplacian_times(p.starts, p.second, p.weights, vector, low, high, out)

        image: FloatArray = sum(p.workers.sums(work, p.starts, len(vector)))
        return image

    def _eliminate(self, gradient: FloatArray) -> FloatArray:
        """Exactly, up to rounding. Without a ridge A maps constants to 0, and a constant added to A mends that."""
        from rankdp.rankers import solver_kernels as kernels

        p, items = self.problem, len(gradient)
        diagonal = np.maximum(p.diagonal, 1e-300)
        if items <= _DENSE_ITEMS:
            table = kernels.assemble(p.starts, p.second, p.weights, diagonal)
            if p.ridge == 0:
                table += diagonal.mean() / items
            step: FloatArray = kernels.solve_dense(table, gradient)
            return step
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import splu

        first = np.repeat(np.arange(items), np.diff(p.starts))
        rows = np.concatenate([first, p.second, np.arange(items)])
        columns = np.concatenate([p.second, first, np.arange(items)])
        values = np.concatenate([-p.weights, -p.weights, diagonal])
        table = coo_array((values, (rows, columns)), shape=(items, items)).tocsc()
        if p.ridge == 0:  # the last item is held fast
            held = splu(table[:-1, :-1], permc_spec="MMD_AT_PLUS_A").solve(gradient[:-1])
            step = np.append(held, 0.0)
            step -= step.mean()
            return step
        solved: FloatArray = splu(table, permc_spec="MMD_AT_PLUS_A").solve(gradient)
        return solved
