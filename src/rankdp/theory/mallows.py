"""Closed forms of the Kendall mechanism (Xu, Algorithm 1), with x = eps/(m-1), r = exp(-x) and q = 1/r.

A ranking of m items is rebuilt item by item; the t-th lands behind V_t of the t-1 before it, with P(V_t = k)
proportional to q^k on {0..t-1}. The law of the output is P proportional to r^(number of discordant pairs),
that is Mallows' model. Formulas are written with expm1 so that they hold for tiny and huge eps alike.

What an attacker learns from N synthetic rankings of one secret ranking (Section 4): if more than half of them reverse
the two best items, the maximum-likelihood ranking reverses them too, so the probability of that event bounds the
attacker's error from below. Each release reverses them with probability 1/(1 + q).
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.types import Floats

_ITEMS_AT_A_TIME = 32


def rate(items: int, epsilon: float) -> float:
    """x = eps/(m-1): what each discordant pair costs in log-probability."""
    return epsilon / (items - 1)


def stage_mean(items: int, epsilon: float, stage: int) -> float:
    """E[V_t] of Theorem 1(3): t-1 + t/(q^t - 1) - 1/(q - 1), the pairs the t-th item keeps on average."""
    x = rate(items, epsilon)
    if stage * x < 1e-4:  # the two poles cancel: series in x
        return (stage - 1) / 2 + x * (stage**2 - 1) / 12
    return stage - 1 + stage * _over_expm1(stage * x) - _over_expm1(x)


def stage_variance(items: int, epsilon: float, stage: int) -> float:
    """Var[V_t] of Theorem 1(3), in the form q/(q-1)^2 - t^2 q^t/(q^t-1)^2."""
    x = rate(items, epsilon)
    if stage * x < 1e-2:  # 1/(4 sinh^2(y/2)) = 1/y^2 - 1/12 + y^2/240 - …
        return (stage**2 - 1) / 12 - x**2 * (stage**4 - 1) / 240
    return _inverse_square_sinh(x) - stage**2 * _inverse_square_sinh(stage * x)


def log_normaliser(items: int, epsilon: float) -> float:
    """log sum over all rankings of r^(discordant pairs) = sum over t of log((1 - r^t)/(1 - r))."""
    x = rate(items, epsilon)
    stages = np.arange(1, items + 1)
    return float(np.sum(np.log(-np.expm1(-stages * x)) - math.log(-math.expm1(-x))))


def keep_probability(items: int, epsilon: float, gap: int) -> float:
    """The probability that two items ``gap`` positions apart keep their order: h(gap+1) - h(gap), h(k) = k/(1 - r^k).

    It depends on the positions only through the gap, from 1/(1+r) for neighbours upwards; that far pairs keep
    their order more often than near ones is what step (16) of the proof of Theorem 1(1) overlooks.
    """
    x = rate(items, epsilon)
    if gap * x < 1e-4:  # h(k) = 1/x + k/2 + k^2 x/12 - …: the poles cancel
        return 0.5 + x * (2 * gap + 1) / 12
    # The same difference with the pole 1/x, a billion for long rankings, taken out of both terms.
    both = math.expm1(-(gap + 1) * x) * math.expm1(-gap * x)
    return 0.5 + 0.5 / math.tanh((gap + 1) * x / 2) + gap * math.exp(-gap * x) * math.expm1(-x) / both


def expected_concordance(items: int, epsilon: float) -> float:
    """The expected share of pairs that keep their order: the sum of E[V_t] over the pairs (behind Lemma 4)."""
    return math.fsum(stage_mean(items, epsilon, t) for t in range(2, items + 1)) / math.comb(items, 2)


def preference_bounds(items: int, epsilon: float) -> tuple[float, float]:
    """Theorem 1(2) for a fixed input ranking: bounds of 2 P(a pair keeps its order) - 1, tanh(x/2) and tanh((2m-3)x/2).

    For a *random* input ranking the theorem's ratio ``|2 eta~ - 1| / |2 eta - 1|`` is not confined to this range.
    """
    x = rate(items, epsilon)
    return math.tanh(x / 2), math.tanh((2 * items - 3) * x / 2)


def position_matrix(items: int, epsilon: float, first: int | None = None) -> Floats:
    """M[a, b] = P(the item of original position a lands at b), by choosing the output from best to worst: O(m^3).

    Of n items left, the one with i others before it comes next with probability r^i (1 - r) / (1 - r^n): the same law,
    since it then comes before those i. Otherwise one of the i is taken with (1 - r^i) / (1 - r^n), or one after it with
    (r^(i+1) - r^n) / (1 - r^n). The corner of the ``first`` k positions takes O(m + k^3). Half of the whole matrix is
    enough, as M[a, b] = M[b, a] = M[m-1-a, m-1-b]; some items at a time stay in the cache.
    """
    size = items if first is None else first
    kept = np.exp(-rate(items, epsilon) * np.arange(items + 1))  # r^n
    lost = -np.expm1(-rate(items, epsilon) * np.arange(items + 1))  # 1 - r^n
    matrix = np.zeros((size, size))
    for start in range(0, size, _ITEMS_AT_A_TIME):
        stop = min(start + _ITEMS_AT_A_TIME, size)
        waiting = np.eye(stop - start, stop, start)  # P(the item is left, and i of those left are before it)
        for b in range(items - start if first is None else size):
            left = items - b
            width = min(stop, left)
            waiting = waiting[:, :width]
            matrix[start:stop, b] = waiting @ kept[:width] * (lost[1] / lost[left])
            passed = waiting[:, 1:] * (lost[1:width] / lost[left])
            waiting *= kept[1 : width + 1] * lost[left - width : left][::-1] / lost[left]
            waiting[:, :-1] += passed
    if first is None:
        known = np.add.outer(np.arange(items), np.arange(items)) < items
        matrix = np.where(known, matrix, matrix[::-1, ::-1].T)
    return matrix


def _over_expm1(y: float) -> float:
    return 1 / math.expm1(y) if y < 700 else 0.0


def _inverse_square_sinh(y: float) -> float:
    return 1 / (4 * math.sinh(y / 2) ** 2) if y < 700 else 0.0


def reversal_tail(releases: int, items: int, epsilon: float, *, ties: bool = False) -> float:
    """P(more than half of the releases reverse the two best items): the exact binomial tail behind Theorem 2.

    ``ties=True`` adds the event that exactly half do. The paper's proof bounds the *strict* tail by the one
    with ties, the wrong way round for even N: at N = 2 and tiny eps that claims 3/4 where 1/4 is true. Read
    the theorem with the strict tail.
    """
    from scipy.stats import binom

    odds = math.exp(-epsilon / (items - 1))
    reverse = odds / (1 + odds)
    least = (releases + 1) // 2 if ties else releases // 2 + 1
    return float(binom.sf(least - 1, releases, reverse))


def theorem_2_bound(releases: int, items: int, epsilon: float, constant: float = 1.0) -> float:
    """Theorem 2: C0 (q+1)/(q-1) sqrt(2/(pi N)) exp(-N (q-1)^2), q = exp(eps/(m-1)); the paper does not give C0."""
    x = epsilon / (items - 1)
    if x > 100:  # far below the smallest float
        return 0.0
    return constant / math.tanh(x / 2) * math.sqrt(2 / (math.pi * releases)) * math.exp(-releases * math.expm1(x) ** 2)


def adaptive_epsilon(releases: int, items: int) -> float:
    """eps = (m-1)/sqrt(N): the rate at which N releases keep the attacker's error away from zero."""
    return (items - 1) / math.sqrt(releases)
