"""Whole rankings protected: the Kendall ball against every other mechanism at the same whole-ranking epsilon.

Two numbers: the share of pairs that one released ranking keeps in order, and the variance that the noise of one
respondent adds to an unbiased mean rank. Both are exact public numbers. A peer releases no ranking: one pair of items,
drawn at random, whose order is told by randomised response; of it there is the variance alone.

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
from rankdp.mechanisms import RankingMechanism, candidates, mechanism
from rankdp.mechanisms.registry import respondents_for_one
from rankdp.privacy.bits import SeededBits
from rankdp.theory.estimators import rank_estimator

_ITEMS = (4, 5, 6, 8, 10, 15, 20)
_EPSILONS = (1, 2, 4, 8)
_VOTERS, _REPETITIONS = 1000, 50

Orders = NDArray[np.int32]


def table() -> Table:
    rows = [_known(items, epsilon) for items in _ITEMS for epsilon in _EPSILONS]
    path = Path(os.environ.get("RANKDP_DATA", ""), "sushi/sushi3a_rankings.csv")
    if path.is_file():
        orders = rankdp.Rankings.read(path).orders
        rows += [_measured(orders, epsilon) for epsilon in _EPSILONS]
    header = ("items", "epsilon", "pairs kept: kendall-ball", "best other", "kendall")
    return Table((*header, "variance of a rank: kendall-ball", "best other", "kendall", "one pair", "met"), rows)


def _known(items: int, epsilon: int) -> tuple[str, ...]:
    """From closed forms; the target is the theorem: no other keeps more pairs."""
    order = {_base(one): one.expected_concordance() for one in _all(items, epsilon, "order")}
    variance = {_base(one): _variance(one) for one in _all(items, epsilon, "aggregate")}
    variance = {name: value for name, value in variance.items() if math.isfinite(value)}
    ball, spread = order.pop("kendall-ball"), variance.pop("kendall-ball")
    shares = (f"{share:.1%}" for share in (ball, max(order.values()), order["kendall"]))
    spreads = (spread, min(variance.values()), variance["kendall"], _one_pair(items, epsilon))
    return (str(items), str(epsilon), *shares, *map(digits, spreads), verdict(ball >= max(order.values()) - 1e-9))


def _all(items: int, epsilon: int, purpose: str) -> list[RankingMechanism]:
    return candidates(items, epsilon, purpose=purpose, protect="ranking")  # type: ignore[arg-type]


def _base(one: RankingMechanism) -> str:
    return type(one).name


def _variance(one: RankingMechanism) -> float:
    needed = respondents_for_one(one, "ranking")
    return math.inf if needed is None else (needed - 1) * (one.items**2 - 1) / 12


def _one_pair(items: int, epsilon: float) -> float:
    """M (m-1)/(4 (2p-1)^2) less the variance of the ranks: M pairs, p = e^eps/(1 + e^eps)."""
    pairs = math.comb(items, 2)
    return pairs * (items - 1) / (4 * math.tanh(epsilon / 2) ** 2) - (items**2 - 1) / 12


def _measured(orders: Orders, epsilon: int) -> tuple[str, ...]:
    """Voters times the mean squared error of mean ranks on the same voters, and the pairs that their rankings keep."""
    items, random = orders.shape[1], np.random.default_rng(0)
    ball, kendall = (mechanism(name, items, epsilon, protect="ranking") for name in ("kendall-ball", "kendall"))
    kept: dict[str, list[float]] = {"ball": [], "kendall": []}
    squares: dict[str, list[float]] = {"ball": [], "kendall": [], "pair": []}
    for seed in range(_REPETITIONS):
        rows = orders[random.choice(len(orders), _VOTERS, replace=False)]
        ranks = np.argsort(rows, axis=1) + 1.0
        for name, made in (("ball", ball), ("kendall", kendall)):
            drawn = np.argsort(made.sample(rows, SeededBits(seed)), axis=1)
            estimate = rank_estimator(made).values[drawn].mean(axis=0)
            squares[name].append(_VOTERS * float(((estimate - ranks.mean(axis=0)) ** 2).mean()))
            kept[name].append(_kept(ranks, drawn))
        squares["pair"].append(_VOTERS * float(((_told(ranks, epsilon, random) - ranks.mean(axis=0)) ** 2).mean()))
    shares = [f"{np.mean(kept[name]):.1%}" for name in ("ball", "kendall")]
    ours, theirs, peer = (digits(float(np.mean(squares[name]))) for name in ("ball", "kendall", "pair"))
    met = verdict(bool(np.mean(kept["ball"]) >= np.mean(kept["kendall"])))
    return (f"sushi, {items}", str(epsilon), shares[0], "–", shares[1], ours, "–", theirs, peer, met)


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
