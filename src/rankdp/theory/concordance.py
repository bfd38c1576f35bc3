"""How much of the order survives each mechanism, in closed form, before any data are seen.

``keep`` functions give the probability that two items keep their order as a function of their gap; the
expected concordance is its average over all pairs, m - g of which have gap g. The Kendall mechanism has its
own module.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def average_over_gaps(items: int, keep: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> float:
    """The mean of keep(gap) over all pairs of a ranking."""
    gaps = np.arange(1, items)
    return float(np.dot(items - gaps, keep(gaps)) / math.comb(items, 2))


def laplace_keep(gap: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Independent Laplace noise on the ranks (proof of Lemma 4): 1 - (1/2 + a/4) exp(-a) with a = gap / scale."""
    a = gap / scale
    return 1 - (0.5 + a / 4) * np.exp(-a)


def reinsertion_log_law(items: int, log_weight: float) -> NDArray[np.float64]:
    """log P(d items are taken out), d = 0..m: weights C(m,d) m!/(m-d)! w^(-d), given log w (w = e^eps - 1)."""
    log = reinsertion_log_weights(items, log_weight)
    return log - log_sum(log)


def reinsertion_log_weights(items: int, log_weight: float) -> NDArray[np.float64]:
    """The same before they are normalised."""
    log_factorial = _log_factorials(items)
    left = log_factorial[::-1]
    return np.asarray(2 * (log_factorial[items] - left) - log_factorial - np.arange(items + 1) * log_weight)


def log_sum(log: NDArray[np.float64]) -> float:
    """log of the sum of exp(log), without overflow."""
    largest = float(np.max(log))
    return largest + math.log(float(np.sum(np.exp(log - largest))))


def reinsertion_keep(gap: NDArray[np.int64], items: int, law: NDArray[np.float64]) -> NDArray[np.float64]:
    """The keep probability of the reinsertion mechanism when P(d items are taken out) = law[d].

    With s = m - d items kept: both of the pair stay with probability s(s-1)/(m(m-1)) and keep their order;
    both leave with d(d-1)/(m(m-1)) and forget it; if exactly one leaves, it returns to one of the s+1 gaps
    between kept items, and averaging over which of the others stay gives 1/2 + (s-1)(gap-1) / (2 (s+1)(m-2)).
    """
    d = np.arange(items + 1)
    s = items - d
    pairs = items * (items - 1)
    stay, leave, one = s * (s - 1) / pairs, d * (d - 1) / pairs, 2 * s * d / pairs
    tilt = float(np.dot(law, one * (s - 1) / (s + 1))) / max(items - 2, 1)
    level = float(np.dot(law, stay + leave / 2 + one / 2))
    return np.asarray(level + tilt * (gap - 1) / 2)


def reinsertion_position_matrix(items: int, law: NDArray[np.float64], first: int | None = None) -> NDArray[np.float64]:
    """M[a, b] = P(original position a lands at b): a removed item lands anywhere, a kept one as the q-th of s.

    The q-th kept item comes from position a with hypergeometric probability A_s[a,q] = C(a,q) C(m-1-a, s-1-q)
    / C(m,s) and goes to position b with the same (q from 0), so M = sum over s of law[m-s] (d/m^2 + A_s
    A_s^T). ``first`` asks for the corner of so many positions alone.
    """
    size = items if first is None else first
    matrix = np.zeros((size, size))
    log_factorial = _log_factorials(items)
    position = np.arange(size)[:, None]
    for s in range(items + 1):
        share = law[items - s]
        matrix += share * (items - s) / items**2
        if s == 0 or share < 1e-18:
            continue
        q = np.arange(min(s, size))[None, :]
        choose_all = log_factorial[items] - log_factorial[s] - log_factorial[items - s]
        before, after = (
            _log_choose(position, q, log_factorial),
            _log_choose(items - 1 - position, s - 1 - q, log_factorial),
        )
        kept = np.exp(before + after - choose_all)
        matrix += share * kept @ kept.T
    return matrix


def reinsertion_top_overlap(items: int, law: NDArray[np.float64], k: int) -> float:
    """The expected share of the first k items that stay among the first k: the corner of that matrix, summed, over k.

    The sum of A_s[a, q] over a < k is P(J > q), where J of the first k are kept (hypergeometric). With d = m - s it is

        sum over s of law[d] (k d/m^2 + (sum over q of P(J > q)^2) / k).
    """
    log_factorial = _log_factorials(items)
    s = np.flatnonzero(law[::-1] >= 1e-18)[:, None]
    d, j = items - s, np.arange(k + 1)
    log = _log_choose(np.array(k), j, log_factorial) + _log_choose(np.array(items - k), s - j, log_factorial)
    many = np.exp(log - log_factorial[items] + log_factorial[s] + log_factorial[d])
    more = np.cumsum(many[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return float(np.sum(law[d[:, 0]] * (k * d[:, 0] / items**2 + np.square(more).sum(axis=1) / k)))


def _log_factorials(largest: int) -> NDArray[np.float64]:
    return np.array([math.lgamma(k + 1) for k in range(largest + 1)])


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64], log_factorial: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0)
    return np.where(inside, log_factorial[n] - log_factorial[k] - log_factorial[n - k], -np.inf)
