"""Everyone adds noise at home; the collector is not trusted.

*One pair* (Yan, Li and Liu 2020, "LDP-KwikSort:RR", arXiv 1908.04486): the collector asks each person for the order of
K pairs, each answered by randomised response at eps/K; majorities of the debiased answers feed KwikSort. K is the one
of least variance, a public choice. Where one *position* is protected, moving an item changes only pairs that hold it:
so floor(m/2) pairs without a common item may each be answered at the full eps.

*Debiased pairs* (Xu, Sun and Cheng 2024, arXiv 2402.16792): the same answers, debiased, then the Bradley-Terry
likelihood. With one eps for all their adaptive weights are equal.

*Weighted sampling* (Wang et al. 2019, arXiv 1908.04920): an item drawn with probability proportional to its Borda
points is told by a randomiser for one of m values. The paper's randomiser could not be checked; the optimal one is
used: a random subset of size k that holds the item with odds e^eps k to m - k (Wang et al. 2016, Ye and Barg 2018).

*Additive mechanism* (the same paper): a subset S of k items is released with a probability linear in its points,
1 + (e^eps - 1)(w(S) - least)/(most - least) over their sum, which no ranking changes. k is the one of least variance.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.rivals.pairs import sort
from benchmarks.rivals.votes import Floats, Random

Rows = NDArray[Any]


def pairs_asked(items: int, epsilon: float) -> int:
    """The K of least variance of a win rate: 1/(4 tanh^2(eps/2K)) over K answers, less what is known without noise."""
    pairs = math.comb(items, 2)
    return min(range(1, pairs + 1), key=lambda k: 1 / (k * math.tanh(epsilon / (2 * k)) ** 2))


def debiased_margins(ranks: Rows, epsilon: float, random: Random, protect: str) -> Floats:
    """An unbiased estimate of the mean margin of each pair, 0 where nobody was asked."""
    voters, m = ranks.shape
    if protect == "position":
        asked, each = m // 2, epsilon
        items = random.permuted(np.tile(np.arange(m), (voters, 1)), axis=1)
        first, second = items[:, : 2 * asked : 2], items[:, 1 : 2 * asked : 2]
    else:
        asked = pairs_asked(m, epsilon)
        each = epsilon / asked
        every = np.array(list(combinations(range(m), 2)))
        drawn = np.argpartition(random.random((voters, len(every))), asked - 1, axis=1)[:, :asked]
        first, second = every[drawn, 0], every[drawn, 1]
    rows = np.arange(voters)[:, None]
    told = np.where(ranks[rows, first] < ranks[rows, second], 1.0, -1.0)
    told *= np.where(random.random(told.shape) < expit(each), 1, -1)
    total, seen = np.zeros((m, m)), np.zeros((m, m))
    np.add.at(total, (first, second), told / math.tanh(each / 2))
    np.add.at(seen, (first, second), 1)
    return np.asarray((total - total.T) / np.maximum(seen + seen.T, 1))


def kwiksort_scores(ranks: Rows, epsilon: float, random: Random, protect: str) -> tuple[list[int], Floats | None]:
    margins = debiased_margins(ranks, epsilon, random, protect)
    return sort(margins, list(range(ranks.shape[1])), random), (1 - margins).sum(axis=1) / 2 + 0.5


def bradley_terry_scores(ranks: Rows, epsilon: float, random: Random, protect: str) -> tuple[list[int], Floats | None]:
    """The order by strengths; a small ridge keeps them finite."""
    margins = debiased_margins(ranks, epsilon, random, protect)
    m = len(margins)
    strengths = np.zeros(m)
    wins = ((1 + margins) / 2 - np.eye(m) / 2).sum(axis=1)
    for _ in range(200):
        chance = expit(strengths[:, None] - strengths)
        slope = wins - (chance.sum(axis=1) - 0.5) - 0.01 * strengths
        curve = chance * (1 - chance)
        hessian = np.diag(curve.sum(axis=1) + 0.01) - curve
        strengths = strengths + np.clip(np.linalg.solve(hessian, slope), -1, 1)
    return np.argsort(-strengths, kind="stable").tolist(), None


def subset_size(items: int, epsilon: float) -> int:
    """For one of m values: the size of least variance, about m/(1 + e^eps)."""
    return min(range(1, items), key=lambda k: _told(items, k, epsilon)[2])


def _told(m: int, k: int, epsilon: float) -> tuple[float, float, float]:
    """How likely a subset holds the told item, and any other one; and the variance of an estimated share."""
    held = math.exp(epsilon) * k / (math.exp(epsilon) * k + m - k)
    other = (held * (k - 1) + (1 - held) * k) / (m - 1)
    return held, other, math.inf if held == other else other * (1 - other) / (held - other) ** 2


def sampling_scores(ranks: Rows, epsilon: float, random: Random, _: str) -> tuple[list[int], Floats]:
    """Weighted sampling: mean ranks from the shares of told items."""
    voters, m = ranks.shape
    points = m - 1.0 - ranks
    total = m * (m - 1) / 2
    item = (random.random((voters, 1)) * total < np.cumsum(points, axis=1)).argmax(axis=1)
    k = subset_size(m, epsilon)
    held, other, _variance = _told(m, k, epsilon)
    keys = random.random((voters, m))
    keys[np.arange(voters), item] = np.where(random.random(voters) < held, -1, 2)
    chosen = np.argpartition(keys, k - 1, axis=1)[:, :k]
    share = (np.bincount(chosen.ravel(), minlength=m) / voters - other) / (held - other)
    return _ordered(m - total * share)


def additive_law(points: Floats, k: int, epsilon: float) -> Floats:
    """How likely each subset of k items is released, in the order of ``combinations``."""
    m = len(points)
    sums = points[np.array(list(combinations(range(m), k)))].sum(axis=1)
    least, most = k * (k - 1) / 2, k * (2 * m - k - 1) / 2
    weights = 1 + math.expm1(epsilon) * (sums - least) / (most - least)
    return np.asarray(weights / weights.sum())


def additive_slope(m: int, k: int, epsilon: float) -> tuple[float, float]:
    """P(an item is in the subset) = first + second times its points."""
    law = additive_law(np.arange(m, dtype=float), k, epsilon)
    held = np.zeros(m)
    np.add.at(held, np.array(list(combinations(range(m), k))), law[:, None])
    slope = (held[-1] - held[0]) / (m - 1)
    return float(held[0]), float(slope)


def additive_size(m: int, epsilon: float) -> int:
    """The size of least variance k/m (1 - k/m)/slope^2."""
    return min(range(1, m), key=lambda k: k / m * (1 - k / m) / additive_slope(m, k, epsilon)[1] ** 2)


def additive_scores(ranks: Rows, epsilon: float, random: Random, _: str) -> tuple[list[int], Floats]:
    """The additive mechanism: mean ranks from how often items are in the subset."""
    voters, m = ranks.shape
    k = additive_size(m, epsilon)
    start, slope = additive_slope(m, k, epsilon)
    law = np.cumsum(additive_law(np.arange(m, dtype=float), k, epsilon))
    places = np.array(list(combinations(range(m), k)))[
        np.minimum(np.searchsorted(law, random.random(voters)), len(law) - 1)
    ]
    ranked = np.argsort(m - 1 - ranks, axis=1)  # by points, fewest first
    chosen = ranked[np.arange(voters)[:, None], places]
    share = np.bincount(chosen.ravel(), minlength=m) / voters
    return _ordered(m - (share - start) / slope)


def _ordered(mean_ranks: Floats) -> tuple[list[int], Floats]:
    return np.argsort(mean_ranks, kind="stable").tolist(), mean_ranks


RIVALS = {
    "KwikSort by randomised response (Yan 2020)": kwiksort_scores,
    "debiased pairs, Bradley-Terry (Xu 2024)": bradley_terry_scores,
    "weighted sampling (Wang 2019)": sampling_scores,
    "additive mechanism (Wang 2019)": additive_scores,
}
