"""What people outside see: answers without names, order or time protect each one far better than its local epsilon.

Let R be eps-LDP, p = e^eps, and compare two answers x and x' of one person; the other n - 1 answers are arbitrary. With

    G = (p R(x) - R(x')) / (p - 1),    G' = (p R(x') - R(x)) / (p - 1),

two laws, because R(x) and R(x') differ by a factor of at most p, the person's answer is a draw from G with probability
p/(p + 1) and else from G', or for x' the other way round. Every other answer has R(z) >= (R(x) + R(x')) / (2p), which
is (G + G') / (2p): it is a draw from G with probability 1/(2p), from G' with probability 1/(2p), or from a law of its
own. Who sees the answers in random order knows no more than someone who knows the numbers (a, b) of draws from G and
G', since the rest follows from a + b. So the answers are (eps', delta)-DP with

    delta = sum over (a, b) of max(0, P(a, b) - e^eps' Q(a, b)),

where C is binomial(n - 1, 1/p), A binomial(C, 1/2), and P is the law of (A + 1, C - A) with probability p/(p + 1), else
of (A, C - A + 1); Q turns the two round (Feldman, McMillan and Talwar 2021, arXiv 2012.12803). Given s = a + b, P and Q
are binomial(s, 1/2) times linear functions of a, so every s has a threshold and two binomial tails.

Tighter bounds are known (the same authors 2023; Wang et al., arXiv 2304.05007) and not used: this one is proved here.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln

from rankdp.checks import number, whole
from rankdp.types import Floats

_ROUNDING = 1e-11  # far more than the sums of tails can be wrong by
_LARGEST = 30  # above, nothing hides among fewer than 10^13 answers
_DIGITS = 1000  # epsilons are multiples of 1/1000, rounded up


def shuffled_delta(epsilon: float, answers: int, outside: float) -> float:
    """An upper bound of delta for an epsilon that outsiders are promised.

    Parameters
    ----------
    epsilon
        The epsilon of one answer by itself (local DP).
    answers
        How many answers there are.
    outside
        The epsilon for who sees the answers in random order.
    """
    trials, p, factor = answers - 1, math.exp(epsilon), math.exp(outside)
    chance = math.exp(-epsilon) * (1 - 1e-12)  # of a clone: fewer hide less
    reach = 9 * math.sqrt(trials * chance) + 40
    first, last = max(0, math.floor(trials * chance - reach)), min(trials, math.ceil(trials * chance + reach))
    missed = bdtr(first - 1, trials, chance) if first else 0.0
    missed += bdtrc(last, trials, chance) if last < trials else 0.0
    s: Floats = np.arange(first + 1, last + 2, dtype=np.float64)  # with the person's own draw
    ways = gammaln(trials + 1) - gammaln(s) - gammaln(trials - s + 2)
    share = np.exp(ways + (s - 1) * math.log(chance) + (trials - s + 1) * math.log1p(-chance))
    # P - factor Q = share Bin(a; s, 1/2) (rise a + start)
    rise = 2 * (p - 1) * (1 + factor) / ((p + 1) * s)
    start = np.full(len(s), 2 * (1 - factor * p) / (p + 1))
    cut = np.clip(np.floor(-start / rise), -1, s)
    tails = rise * s / 2 * _more_than(cut - 1, s - 1) + start * _more_than(cut, s)
    found = float((share * np.maximum(tails, 0)).sum())
    return min(1.0, found * (1 + 1e-6) + float(missed) + _ROUNDING)


def _more_than(cut: Floats, size: Floats) -> Floats:
    """P(binomial(size, 1/2) > cut)."""
    inside = bdtr(np.clip(size - cut - 1, 0, size), size.astype(np.int64), 0.5)  # by symmetry: at most size - cut - 1
    return np.asarray(np.where(cut < 0, 1.0, np.where(cut >= size, 0.0, inside)))


def shuffled_epsilon(epsilon: float, answers: int, delta: float = 1e-6) -> float:
    """The epsilon at this delta for who sees the answers in random order, rounded up; never above that of one answer.

    Parameters
    ----------
    epsilon, answers
        As in ``shuffled_delta``.
    delta
        The probability with which the promise may fail, at least 1e-9.
    """
    whole("answers", answers, 1)
    number("delta", delta, 1e-9, 1)
    if epsilon > _LARGEST:
        return epsilon
    low, high = 0, math.ceil(epsilon * _DIGITS)
    while low < high:  # delta falls as epsilon grows
        middle = (low + high) // 2
        if shuffled_delta(epsilon, answers, middle / _DIGITS) <= delta:
            high = middle
        else:
            low = middle + 1
    return min(high / _DIGITS, epsilon)
