"""What people outside see: answers without names, order or time protect each one far better than its local epsilon.

Let R be eps-LDP, p = e^eps, F = e^eps', and compare two answers x and x' of one person; the other n - 1 answers are
arbitrary. Write a and b for the densities of R(x) and R(x'), T for their total variation, and let mu = max(a, b)/p.

Every other answer has R(z) >= mu: it is a draw from mu with probability |mu|, else from another law. Tell the
observer which is which. Of the draws from mu and the person's own answer, which are all in random order, the
divergence is the mean of max(0, sum of (a - F b)/mu) over their number (Balle et al. 2019, arXiv 1903.02837). So the
answers are (eps', delta)-DP with

    delta = E max(0, X_1 + … + X_n) / n,    X_i independent; (a - F b)/mu of a draw from mu, or 0 if there is none.

X_i lies between 1 - p F and p - F, and its mean is 1 - F. Spread every value over 0 and the end on its side of 0. That
keeps the mean, so that the mean of a convex function, delta, can only grow. The mass at p - F becomes D(F)/(p - F),
where D(F) = sum of max(0, a - F b) is convex in F, is T at F = 1 and 0 at F = p: it is at most alpha = T/(p - 1). Let
it be alpha, which spreads X_i more; its mean then states the mass beta at 1 - p F. So

    delta = sum over s of P(s) max over k of alpha (p - F) P(A >= k - 1) - beta (p F - 1) P(A >= k),
    beta = (F - 1 + alpha (p - F))/(p F - 1),

with s - 1 from binomial(n - 1, alpha + beta) and A from binomial(s - 1, alpha/(alpha + beta)). If only epsilon is
known, T is at most (p - 1)/(p + 1) and alpha = beta = 1/(p + 1): as if each other answer were a copy of one of the two
with probability 2/(p + 1). These are the numbers of variation-ratio reduction (Wang et al., arXiv 2304.05007) for that
case. Its numbers for a smaller T are below ours and no upper bound: for randomised response over six values at epsilon
1/2, two answers and eps' = 0.4 they say delta 0.0035, and delta is 0.0058 if the other answer is x.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, bdtrc, betainc, gammaln

from rankdp.checks import number, whole
from rankdp.types import Floats

_ROUNDING = 1e-11  # far more than the sums of tails can be wrong by
_MOST = 10**7  # answers that are counted; more hide more, and rounding grows with them
_LARGEST = 30  # above, nothing hides among fewer than 10^13 answers
_DIGITS = 1000  # epsilons are multiples of 1/1000, rounded up


def shuffled_delta(epsilon: float, answers: int, outside: float, variation: float = 1) -> float:
    """An upper bound of delta for an epsilon that outsiders are promised.

    Parameters
    ----------
    epsilon
        The epsilon of one answer by itself (local DP).
    answers
        How many answers there are.
    outside
        The epsilon for who sees the answers in random order.
    variation
        The total variation between the laws of two answers, or an upper bound.
    """
    trials, p, factor = min(answers, _MOST) - 1, math.exp(epsilon), math.exp(outside)
    alpha = min(1 / (p + 1), variation * (1 + 1e-12) / (p - 1))
    top, bottom = p - factor, p * factor - 1
    gain = alpha * top
    loss = factor - 1 + gain  # beta times the bottom
    chance = alpha + loss / bottom
    reach = 9 * math.sqrt(trials * chance) + 40
    first, last = max(0, math.floor(trials * chance - reach)), min(trials, math.ceil(trials * chance + reach))
    missed = bdtr(first - 1, trials, chance) if first else 0.0
    missed += bdtrc(last, trials, chance) if last < trials else 0.0
    copies: Floats = np.arange(first, last + 1, dtype=np.float64)
    ways = gammaln(trials + 1) - gammaln(copies + 1) - gammaln(trials - copies + 1)
    share = np.exp(ways + copies * math.log(chance) + (trials - copies) * math.log1p(-chance))
    cut = np.floor((copies + 1) * (bottom / (top + bottom)))
    told = gain * _more_than(cut - 1, copies, alpha / chance) - loss * _more_than(cut, copies, alpha / chance)
    found = float((share * np.maximum(told, 0)).sum())
    return min(1.0, found * (1 + 1e-6) + float(missed) + _ROUNDING)


def _more_than(cut: Floats, size: Floats, chance: float) -> Floats:
    """P(binomial(size, chance) > cut)."""
    inside = betainc(np.maximum(cut, 0) + 1, np.maximum(size - cut, 1), chance)  # bdtrc is off by 1e-3 for 10^7
    return np.asarray(np.where(cut < 0, 1.0, np.where(cut >= size, 0.0, inside)))


def shuffled_epsilon(epsilon: float, answers: int, delta: float = 1e-6, variation: float = 1) -> float:
    """The epsilon at this delta for who sees the answers in random order, rounded up; never above that of one answer.

    Parameters
    ----------
    epsilon, answers
        As in ``shuffled_delta``.
    delta
        The probability with which the promise may fail, at least 1e-9.
    variation
        As in ``shuffled_delta``.
    """
    whole("answers", answers, 1)
    number("delta", delta, 1e-9, 1)
    if not 1 / _DIGITS < epsilon < _LARGEST:
        return epsilon
    low, high = 0, math.ceil(epsilon * _DIGITS)
    while low < high:  # delta falls as epsilon grows
        middle = (low + high) // 2
        if shuffled_delta(epsilon, answers, middle / _DIGITS, variation) <= delta:
            high = middle
        else:
            low = middle + 1
    return min(high / _DIGITS, epsilon)
