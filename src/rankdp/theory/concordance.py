"""How much of the order survives each mechanism, in closed form, before any data are seen.

``keep`` functions give the probability that two items keep their order as a function of their gap; the
expected concordance is its average over all pairs, m - g of which have gap g. The Kendall mechanism has its
own module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rankdp.types import Floats, Longs

NEGLIGIBLE = 1e-18  # probabilities that are left out


def average_over_gaps(items: int, keep: Callable[[Longs], Floats]) -> float:
    """The mean of keep(gap) over all pairs of a ranking."""
    gaps = np.arange(1, items)
    return float(np.dot(items - gaps, keep(gaps)) / math.comb(items, 2))


def laplace_keep(gap: Longs, scale: float) -> Floats:
    """Independent Laplace noise on the ranks (proof of Lemma 4): 1 - (1/2 + a/4) exp(-a) with a = gap / scale."""
    a = gap / scale
    return 1 - (0.5 + a / 4) * np.exp(-a)


def reinsertion_log_law(items: int, log_weight: float) -> Floats:
    """log P(d items are taken out), d = 0..m: weights C(m,d) m!/(m-d)! z^(-d), given log z."""
    log = reinsertion_log_weights(items, log_weight)
    return np.asarray(log - np.logaddexp.reduce(log))


def reinsertion_log_weights(items: int, log_weight: float) -> Floats:
    """The same before they are normalised."""
    log_factorial = _log_factorials(items)
    left = log_factorial[::-1]
    return np.asarray(2 * (log_factorial[items] - left) - log_factorial - np.arange(items + 1) * log_weight)


def reinsertion_keep(gap: Longs, items: int, law: Floats) -> Floats:
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


def reinsertion_position_matrix(items: int, law: Floats, first: int | None = None) -> Floats:
    """M[a, b] = P(original position a lands at b): a removed item lands anywhere, a kept one as the q-th of s.

    The q-th kept item comes from position a with hypergeometric probability A_s[a,q] = C(a,q) C(m-1-a, s-1-q)
    / C(m,s) and goes to position b with the same (q from 0), so M = sum over s of law[m-s] (d/m^2 + A_s
    A_s^T). ``first`` asks only for the corner of this many positions.
    """
    size = items if first is None else first
    matrix = np.zeros((size, size))
    position = np.arange(size)[:, None]
    for s in range(items + 1):
        share = law[items - s]
        matrix += share * (items - s) / items**2
        if s and share >= NEGLIGIBLE:
            q = np.arange(min(s, size))[None, :]
            log = log_choose(position, q) + log_choose(items - 1 - position, s - 1 - q) - log_choose(items, s)
            matrix += share * np.exp(log) @ np.exp(log).T
    return matrix


def reinsertion_top_overlap(items: int, law: Floats, k: int) -> float:
    """The expected share of the first k items that stay among the first k: the corner of that matrix, summed, over k.

    The sum of A_s[a, q] over a < k is P(J > q), where J of the first k are kept (hypergeometric). With d = m - s it is

        sum over s of law[d] (k d/m^2 + (sum over q of P(J > q)^2) / k).
    """
    s = np.flatnonzero(law[::-1] >= NEGLIGIBLE)
    d, j = items - s, np.arange(k + 1)
    many = np.exp(log_choose(k, j) + log_choose(items - k, s[:, None] - j) - log_choose(items, s)[:, None])
    more = np.cumsum(many[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return float(np.sum(law[d] * (k * d / items**2 + np.square(more).sum(axis=1) / k)))


@lru_cache(maxsize=64)
def _log_factorials(largest: int) -> Floats:
    return np.array([math.lgamma(k + 1) for k in range(largest + 1)])


def log_choose(n: ArrayLike, k: ArrayLike) -> Floats:
    """log of the binomial coefficients C(n, k), -inf where k is not from 0 to n."""
    n, k = np.asarray(n), np.asarray(k)
    table = _log_factorials(int(n.max()))
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0)
    return np.where(inside, table[n] - table[k] - table[n - k], -np.inf)
