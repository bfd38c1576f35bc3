"""Bradley-Terry and its relatives: strengths from comparisons.

An item of strength t_i beats one of strength t_j with probability F(t_i - t_j). `fit` minimises

    sum over pairs  - w_ij log F(t_i - t_j) - w_ji log F(t_j - t_i)   +   ridge/2 |t|^2   +   linear . t

where w_ij counts the wins of i over j, a tie as half a win for each.

For the logistic link the design and the win totals are all that matters, so `fit_wins` takes these; they may be noisy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import number, positive
from rankdp.data.counts import PairCounts, always_beaten, components, never_beaten, one_win_component, win_components
from rankdp.errors import InputError, Unsupported
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.rankers.links import link as find_link
from rankdp.rankers.newton import NEWTON_STEPS, Fit, LinkProblem, LogisticProblem, Problem, newton
from rankdp.types import Floats, Ints


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
        The name of a link, or a `Link` of one's own.
    linear
        One number per item, the linear term (for objective perturbation). It needs a ridge.
    start
        Where to begin: one number per item.
    tolerance
        No entry of the gradient exceeds it at the end. Counts so large that double precision cannot meet it are
        solved as far as it goes; the residual that is returned is the true one.

    Returns
    -------
    Fit
        The strengths, and the size of the gradient there.
    """
    chosen = find_link(link)
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
    """Without a ridge the maximum must exist; if not, say which items stand in the way."""
    if one_win_component(counts):
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
        groups = win_components(counts)
        several = f"the items fall into {groups.max() + 1} groups of which one always beats another"
        reason = f"{several} {smallest(groups)}"
    raise InputError(f"the likelihood has no maximum without a ridge: {reason}; give a ridge above 0, such as 0.01")
