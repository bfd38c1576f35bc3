"""Whole rankings protected: the Kendall ball against every other mechanism at the same whole-ranking epsilon.

Three numbers: the share of pairs that one released ranking keeps in order, and the variance that the noise of one
respondent adds to an unbiased mean rank and to an unbiased win rate (up to ten items). All are exact public numbers,
whatever the population is. Peers release no ranking: one pair of items, drawn at random, whose order is told by
randomised response; or one item, drawn in proportion to its Borda points, told by randomised response over all items
(Wang et al. 2019). For mean ranks the better of the two is shown, for win rates the first.

The last rows are measured: 1,000 sushi rankings of ten items (Kamishima 2003, where RANKDP_DATA holds them), 50 times.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankdp
from benchmarks.report import Table, digits, verdict
from rankdp.aggregation.respondents import compare
from rankdp.mechanisms import RankingMechanism, candidates, mechanism
from rankdp.mechanisms.registry import Purpose, respondents_for_one
from rankdp.privacy.bits import SeededBits
from rankdp.theory.estimators import pair_estimator, rank_estimator

_ITEMS = (4, 5, 6, 8, 10, 15, 20)
_EPSILONS = (1, 2, 4, 8)
_PAIRS_UP_TO = 10  # items
_VOTERS, _REPETITIONS = 1000, 50

Orders = NDArray[np.int32]


def table() -> Table:
    rows = [_known(items, epsilon) for items in _ITEMS for epsilon in _EPSILONS]
    path = Path(os.environ.get("RANKDP_DATA", ""), "sushi/sushi3a_rankings.csv")
    if path.is_file():
        orders = rankdp.Rankings.read(path).orders
        rows += [_measured(orders, epsilon) for epsilon in _EPSILONS]
    header = ("items", "epsilon", "pairs kept: kendall-ball", "best other", "variance of a rank: kendall-ball")
    header += ("best other", "peer", "variance of a win rate: kendall-ball", "best other", "peer", "met")
    return Table(header, rows)


def _known(items: int, epsilon: int) -> tuple[str, ...]:
    """From closed forms; the target is the theorem: no other keeps more pairs."""
    kept, best_kept = (made.expected_concordance() for made in _two(items, epsilon, "order"))
    spreads = [_variance(made) for made in _two(items, epsilon, "aggregate")]
    peer = min(_one_pair(items, epsilon), _one_item(items, epsilon))
    rates = ["–"] * 3
    if items <= _PAIRS_UP_TO:
        rates = [digits(variance) for variance in (*_win_rates(items, epsilon), _one_rate(items, epsilon))]
    shares = (f"{kept:.1%}", f"{best_kept:.1%}")
    met = verdict(kept >= best_kept - 1e-9)
    return (str(items), str(epsilon), *shares, *map(digits, (*spreads, peer)), *rates, met)


def _two(items: int, epsilon: int, purpose: Purpose) -> tuple[RankingMechanism, RankingMechanism]:
    """The ball, and the best of the others."""
    found = candidates(items, epsilon, purpose=purpose, protect="ranking")
    (ball,) = (made for made in found if type(made).name == "kendall-ball")
    return ball, next(made for made in found if made is not ball)


def _variance(made: RankingMechanism) -> float:
    needed = respondents_for_one(made, "ranking")
    return math.inf if needed is None else (needed - 1) * (made.items**2 - 1) / 12


def _win_rates(items: int, epsilon: int) -> tuple[float, float]:
    """Of the ball with its best radius, and of the best other."""
    found = [name for name, _ in compare(items, epsilon, 0.05, protect="ranking")]
    (ball,) = (name for name in found if name.startswith("kendall-ball"))
    first = next(name for name in found if name != ball)
    built = [mechanism(name, items, epsilon, protect="ranking") for name in (ball, first)]
    one, other = (pair_estimator(made).mean_variance for made in built)
    return one, other


def _one_pair(items: int, epsilon: float) -> float:
    """M (m-1)/(4 (2p-1)^2) less the variance of the ranks: M pairs, p = e^eps/(1 + e^eps)."""
    pairs = math.comb(items, 2)
    return pairs * (items - 1) / (4 * math.tanh(epsilon / 2) ** 2) - (items**2 - 1) / 12


def _one_rate(items: int, epsilon: float) -> float:
    """M/(4 (2p-1)^2) - 1/4, with the same numbers."""
    return math.comb(items, 2) / (4 * math.tanh(epsilon / 2) ** 2) - 1 / 4


def _one_item(items: int, epsilon: float) -> float:
    """M^2 h (1 - h)/(p - q)^2 for an item told with probability h = q + (p - q) points/M, on average over items."""
    pairs, kept = math.comb(items, 2), math.exp(epsilon)
    keep, other = kept / (kept + items - 1), 1 / (kept + items - 1)
    told = other + (keep - other) * np.arange(items) / pairs
    return float((told * (1 - told)).mean() * (pairs / (keep - other)) ** 2)


def _measured(orders: Orders, epsilon: int) -> tuple[str, ...]:
    """Voters times the mean squared error of mean ranks on the same voters, and the pairs that their rankings keep."""
    items, random = orders.shape[1], np.random.default_rng(0)
    made = {purpose: _two(items, epsilon, purpose) for purpose in ("aggregate", "order")}
    kept: list[list[float]] = [[], []]
    squares: list[list[float]] = [[], [], []]
    for seed in range(_REPETITIONS):
        rows = orders[random.choice(len(orders), _VOTERS, replace=False)]
        ranks = np.argsort(rows, axis=1) + 1.0
        told = [_told(ranks, epsilon, random)]
        for place in (1, 0):
            by_order, by_rank = made["order"][place], made["aggregate"][place]
            kept[place].append(_kept(ranks, np.argsort(by_order.sample(rows, SeededBits(seed)), axis=1)))
            released, offsets = by_rank.sample_with_offsets(rows, SeededBits(seed))
            cells = by_rank.cells[offsets[:, None], np.argsort(released, axis=1)]
            told.insert(0, rank_estimator(by_rank).values[cells].mean(axis=0))
        for square, estimate in zip(squares, told, strict=True):
            square.append(_VOTERS * float(((estimate - ranks.mean(axis=0)) ** 2).mean()))
    shares = [f"{np.mean(share):.1%}" for share in kept]
    spreads = [digits(float(np.mean(square))) for square in squares]
    met = verdict(bool(np.mean(kept[0]) >= np.mean(kept[1])))
    return (f"sushi, {items}", str(epsilon), *shares, *spreads, "–", "–", "–", met)


def _kept(first: NDArray[np.float64], second: NDArray[np.intp]) -> float:
    one, other = np.array(_pairs(first)).T
    return float(((first[:, one] < first[:, other]) == (second[:, one] < second[:, other])).mean())


def _pairs(ranks: NDArray[np.float64]) -> list[tuple[int, int]]:
    return [(i, j) for j in range(ranks.shape[1]) for i in range(j)]


def _told(ranks: NDArray[np.float64], epsilon: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Mean ranks from one pair of each voter by randomised response."""
    voters, items = ranks.shape
    every = np.array(_pairs(ranks))
    asked = every[random.integers(len(every), size=voters)]
    rows = np.arange(voters)
    behind = np.where(ranks[rows, asked[:, 0]] > ranks[rows, asked[:, 1]], 0.5, -0.5)  # the first below the second
    told = behind * np.where(random.random(voters) < 1 / (1 + math.exp(-epsilon)), 1, -1)
    value = len(every) * told / math.tanh(epsilon / 2)
    total = np.bincount(asked[:, 0], value, items) - np.bincount(asked[:, 1], value, items)
    return np.asarray((items + 1) / 2 + total / voters)
