"""The Condorcet method with noise (Li, Liu, Xia, Cao and Wang 2023, arXiv 2206.13081).

Every pair is decided at random, the one who beats all others is elected, and where nobody does someone drawn uniformly.
Laplace: by the sign of the margin plus noise. Exponential: i beats j with odds e^(rate w_ij) to e^(rate w_ji), w the
ballots for each. Randomised response: the majority holds with odds e^rate to 1.

Promise: a replaced ballot moves every margin by at most 2. Pairs are decided independently, so by composition each may
cost eps/M, M = m(m-1)/2: Laplace noise of scale 2M/eps; the log-odds of a pair, rate times a margin, move by 2 rate, so
rate = eps/(2M); randomised response has rate = eps/M.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.rivals.votes import Floats, Random

KINDS = ("laplace", "exponential", "response")


def win_probabilities(margins: Floats, epsilon: float, kind: str) -> Floats:
    """By pair: how likely the row's candidate is taken to beat the column's."""
    m = len(margins)
    each = epsilon / (m * (m - 1) / 2)
    if kind == "exponential":
        return np.asarray(expit(each / 2 * margins))
    if kind == "response":
        return np.where(margins == 0, 0.5, np.asarray(expit(each * np.sign(margins))))
    tail = np.exp(-each / 2 * np.abs(margins)) / 2
    return np.where(margins > 0, 1 - tail, tail)


def elected(probabilities: Floats) -> Floats:
    """How likely each candidate is elected: beats all, plus the share of the case in which nobody does."""
    m = len(probabilities)
    alone = np.array([np.delete(row, item).prod() for item, row in enumerate(probabilities)])
    return alone + (1 - alone.sum()) / m


def condorcet_method(margins: Floats, epsilon: float, kind: str, runs: int, random: Random) -> NDArray[np.int64]:
    """The winner of each run."""
    chances = elected(win_probabilities(margins, epsilon, kind))
    return random.choice(len(chances), size=runs, p=chances / chances.sum())
