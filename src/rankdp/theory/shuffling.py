"""What people outside see: answers without names, order or time protect each one far better than its local epsilon.

Let R be eps-LDP, p = e^eps, F = e^eps', and compare two answers x and x' of one person; the other n - 1 answers are
arbitrary. Write a and b for the densities of R(x) and R(x'), and let mu = max(a, b)/p.

Every other answer has R(z) >= mu: it is a draw from mu with probability |mu|, else from a law of its own. Tell the
observer which are which. Of the draws from mu and the person's own answer, which are all in random order, the
divergence is the mean of max(0, sum of (a - F b)/mu) over their number (Balle et al. 2019, arXiv 1903.02837). So the
answers are (eps', delta)-DP with

    delta = E max(0, X_1 + … + X_n) / n,    X_i independent; (a - F b)/mu of a draw from mu, or 0 if there is none.

This is largest where the X_i are spread most. Where a >= b, X is p (1 - F b/a) and has mass a/p there. Move it, with
mass (p b - a)/(p (p + 1)) from 0, to the ends: (p a - b)/(p^2 - 1) to p - F and (p b - a)/(p^2 - 1) to 1 - p F. That
keeps mass and mean, no mass is negative because a <= p b, and both places lie between the ends; where a < b it is the
same. A spread that keeps the mean makes the mean of a convex function larger. In total 1/(p + 1) comes to lie at either
end, whatever R is: the same as if each other answer were a copy of one of the two with probability 2/(p + 1),

    delta = sum over s of P(s) max over k of ((p - F) P(A >= k - 1) - (p F - 1) P(A >= k)) / (p + 1),

with s - 1 from binomial(n - 1, 2/(p + 1)) and A from binomial(s - 1, 1/2).

These are the numbers that variation-ratio reduction (Wang et al., arXiv 2304.05007) has for a mechanism of which only
epsilon is known. Its smaller numbers for a known total variation are no upper bound: for randomised response over six
values at epsilon 1/2, two answers and eps' = 0.4 they say delta 0.0035, and delta is 0.0058 if the other answer is x.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln

from rankdp.checks import number, whole
from rankdp.types import Floats

_ROUNDING = 1e-11  # far more than the sums of tails can be wrong by
_MOST = 10**7  # answers that are counted; more hide more, and rounding grows with them
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
    trials, p, factor = min(answers, _MOST) - 1, math.exp(epsilon), math.exp(outside)
    chance = 2 / (p + 1) * (1 - 1e-12)  # of a copy: fewer hide less
    reach = 9 * math.sqrt(trials * chance) + 40
    first, last = max(0, math.floor(trials * chance - reach)), min(trials, math.ceil(trials * chance + reach))
    missed = bdtr(first - 1, trials, chance) if first else 0.0
    missed += bdtrc(last, trials, chance) if last < trials else 0.0
    copies: Floats = np.arange(first, last + 1, dtype=np.float64)
    ways = gammaln(trials + 1) - gammaln(copies + 1) - gammaln(trials - copies + 1)
    share = np.exp(ways + copies * math.log(chance) + (trials - copies) * math.log1p(-chance))
    gain, loss = p - factor, p * factor - 1
    cut = np.floor((copies + 1) * (loss / (gain + loss)))
    told = gain * _more_than(cut - 1, copies) - loss * _more_than(cut, copies)
    found = float((share * np.maximum(told, 0)).sum()) / (p + 1)
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
    if not 1 / _DIGITS < epsilon < _LARGEST:
        return epsilon
    low, high = 0, math.ceil(epsilon * _DIGITS)
    while low < high:  # delta falls as epsilon grows
        middle = (low + high) // 2
        if shuffled_delta(epsilon, answers, middle / _DIGITS) <= delta:
            high = middle
        else:
            low = middle + 1
    return min(high / _DIGITS, epsilon)
