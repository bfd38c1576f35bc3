"""The Condorcet method with noise (Li, Liu, Xia, Cao and Wang 2023, arXiv 2206.13081).

Every pair is decided at random, the one who beats all others is elected, and where nobody does someone drawn uniformly.
Laplace: by the sign of the margin plus noise. Exponential: i beats j with odds e^(rate w_ij) to e^(rate w_ji), w the
ballots for each. Randomised response: the majority holds with odds e^rate to 1.

Promise: only the winner is told, which says little about any pair. Let a replaced ballot move every p_ij, the chance
that i beats j, along a path with |dp| <= c min(p, 1 - p) dt, 0 <= t <= 1. Margins move by at most 2, so c is 2/scale
for Laplace noise, 2 rate for the exponential way and 2 log((1 + e^rate)/2) for randomised response. Then the chance
P = A + N/m of candidate i, who beats all with probability A, while nobody does with probability N, is eps-DP with
eps = S c,

    S = max(3, max over R <= m - 1 of (R + 3v)/(1 + v)),   v = (2^(R-1) - 1)/m.

Proof: we sum min(p, 1 - p) |dP/dp| over the pairs. Let r_j = min(1, p_ji/p_ij) and R their sum: A gives A R. N gives at
most 3N: a pair whose reversal makes a winner is the only one that somebody lost, at most three candidates lost just one
(k of them lose k(k-1)/2 among themselves), and a reversal changes the weight by at most max(p, 1 - p)/min(p, 1 - p).
And N >= A (2^(R-1) - 1): where i beats all, let i lose to any others but the one who beats the rest; then nobody beats
all, and the weights sum to the product of 1 + p_ji/p_ij >= 2^r_j, less 1. So the sum over P is at most
(A R + 3N/m)/(A + N/m), which is at most 3 or falls with N.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.rivals.votes import Floats, Random

KINDS = ("laplace", "exponential", "response")


def cost(items: int) -> float:
    """S, which times c is the epsilon of the winner."""
    most = np.linspace(1, items - 1, 1000)
    others = (2 ** (most - 1) - 1) / items
    return max(3.0, float(((most + 3 * others) / (1 + others)).max()))


def win_probabilities(margins: Floats, epsilon: float, kind: str) -> Floats:
    """By pair: how likely the row's candidate is taken to beat the column's."""
    each = epsilon / cost(len(margins))
    if kind == "exponential":
        return np.asarray(expit(each / 2 * margins))
    if kind == "response":
        return np.asarray(expit(math.log(2 * math.exp(each / 2) - 1) * np.sign(margins)))
    tail = np.exp(-each / 2 * np.abs(margins)) / 2
    return np.where(margins > 0, 1 - tail, tail)


def elected(probabilities: Floats) -> Floats:
    """How likely each candidate is elected: beats all, plus the share of the case in which nobody does."""
    m = len(probabilities)
    alone = np.array([np.delete(row, item).prod() for item, row in enumerate(probabilities)])
    return alone + max(0.0, 1 - alone.sum()) / m


def condorcet_method(margins: Floats, epsilon: float, kind: str, runs: int, random: Random) -> NDArray[np.int64]:
    """The winner of each run."""
    chances = elected(win_probabilities(margins, epsilon, kind))
    return random.choice(len(chances), size=runs, p=chances / chances.sum())
