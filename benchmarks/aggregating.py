"""How far aggregates are from the truth: counted, debiased, and on the board, on the same draws.

Populations: where RANKDP_DATA holds them 5,000 sushi rankings of ten items (Kamishima 2003), car configurators, NASCAR
races, and the choices of universities and statements whose answers make an order; lists of 6 out of 60 cities, popular
ones more often; a built-in poll of eight projects; and simulated ones of five items that are as unkind
as they come: two camps (the counterexample to counting), voters who all agree, voters with weak preferences, and
voters without any. The mechanism is what ``auto`` takes.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankdp
from benchmarks.report import Table, digits, verdict
from rankdp.data.synthetic import town_poll

_EPSILONS = (0.5, 1.0, 2.0, 4.0)
_VOTERS = (100, 1000, 5000)
_REPETITIONS = 100
_WORST = 1.05

Orders = NDArray[np.int32]


def table() -> Table:
    rows = [
        (name, f"{epsilon:g}", f"{voters:,}", *_measured(orders, items, epsilon, voters))
        for name, orders, items in _populations()
        for epsilon in _EPSILONS
        for voters in (_VOTERS if len(orders) >= max(_VOTERS) else (len(orders),))
    ]
    header = ("population", "epsilon", "voters", "mean rank: counted", "debiased", "board")
    return Table((*header, "win rate: counted", "debiased", "debiased", "board / better", "met"), rows)


def _populations() -> Iterator[tuple[str, Orders, int]]:
    random = np.random.default_rng(0)
    data = Path(os.environ.get("RANKDP_DATA", ""))
    for name in ("sushi/sushi3a_rankings", "carconf/rankings", "nascar2002/rankings"):
        if (path := data / f"{name}.csv").is_file():
            read = rankdp.Rankings.read(path)
            yield name.partition("/")[0], read.orders[(read.orders >= 0).all(axis=1)], len(read.items)
    for name in ("cems", "immigration"):
        if (path := data / name / "comparisons.csv").is_file():
            yield name, *_ordered(path)
    yield "cities", _cities(random, max(_VOTERS)), 60
    yield "town poll", town_poll(max(_VOTERS)).orders, 8
    rows, noise = max(_VOTERS), random.gumbel(size=(max(_VOTERS), 5))
    camps = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]], dtype=np.int32)
    yield "two camps", camps[(random.random(rows) < 0.3).astype(int)], 5
    yield "unanimous", np.tile(camps[:1], (rows, 1)), 5
    for name, spread in (("weak preferences", 0.3), ("no preferences", 0.0)):
        strength = spread * np.array([1.5, 0.5, 0.0, -0.5, -1.5])
        yield name, np.argsort(-(strength + noise), axis=1).astype(np.int32), 5


def _ordered(path: Path) -> tuple[Orders, int]:
    """The orders of the users whose answers about all pairs, without ties, make one."""
    with path.open(encoding="utf-8") as file:
        votes = list(csv.DictReader(file))
    items = sorted({vote["item_1"] for vote in votes} | {vote["item_2"] for vote in votes})
    wins: dict[str, NDArray[np.float64]] = {}
    for vote in votes:
        mine = wins.setdefault(vote["user_id"], np.zeros(len(items)))
        outcome = float(vote["outcome"] or "nan")
        mine[items.index(vote["item_1"])] += outcome
        mine[items.index(vote["item_2"])] += 1 - outcome
    orders = [np.argsort(-mine) for mine in wins.values() if sorted(mine) == list(range(len(items)))]
    return np.array(orders, dtype=np.int32), len(items)


def _cities(random: np.random.Generator, voters: int, items: int = 60, length: int = 6) -> Orders:
    strength, fame = random.normal(0, 1.2, items), random.normal(0, 1, items)
    listed = np.argsort(-(fame + random.gumbel(size=(voters, items))), axis=1)[:, :length]
    order = np.argsort(-(strength[listed] + random.gumbel(size=listed.shape)), axis=1)
    return np.take_along_axis(listed, order, axis=1).astype(np.int32)


def _measured(orders: Orders, items: int, epsilon: float, voters: int) -> tuple[str, ...]:
    """Root mean squared errors: ranks, win rates in points; and the worse ratio of both with its standard error."""
    random, squares = np.random.default_rng(1), []
    names = [f"item {item}" for item in range(items)]
    for seed in range(_REPETITIONS):
        rows = orders[random.choice(len(orders), voters, replace=False)]
        poll = rankdp.Rankings.from_orders(rows, names)
        release = rankdp.privatize(poll, epsilon, listed_items_public=True, bits=rankdp.SeededBits(seed))
        squares.append(_squares(release, *_truth(rows, items)))
    draws = np.array(squares)
    means = np.nanmean(draws, axis=0)  # rows: ranks and win rates; columns: counted, debiased, board
    ratio, spread = max(_ratio(draws[:, what, 2], draws[:, what, np.nanargmin(means[what, :2])]) for what in (0, 1))
    cells = ["–" if np.isnan(error) else digits(error) for error in np.sqrt(means).ravel()]
    return (*cells, f"{ratio:.2f} ± {spread:.2f}", verdict(ratio <= _WORST))


def _ratio(chosen: NDArray[np.float64], better: NDArray[np.float64]) -> tuple[float, float]:
    """Of the roots of two means over the same draws, with its standard error."""
    ratio = float(np.sqrt(chosen.mean() / better.mean()))
    return ratio, ratio / 2 * float((chosen / chosen.mean() - better / better.mean()).std()) / len(chosen) ** 0.5


def _truth(rows: Orders, items: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean ranks and win rates (in points) of the true rankings, NaN where nobody lists an item or a pair."""
    count, ranks, ahead = np.zeros(items), np.zeros(items), np.zeros((items, items))
    for place in range(rows.shape[1]):
        np.add.at(count, rows[:, place], 1)
        np.add.at(ranks, rows[:, place], place + 1)
        for later in range(place + 1, rows.shape[1]):
            np.add.at(ahead, (rows[:, place], rows[:, later]), 1)
    with np.errstate(invalid="ignore"):
        return ranks / count, 100 * ahead / (ahead + ahead.T)


def _squares(
    release: rankdp.Release[rankdp.Rankings], ranks: NDArray[np.float64], rates: NDArray[np.float64]
) -> list[list[float]]:
    result = rankdp.aggregate(release)
    debiased, won = result.mean_ranks, result.win_rates
    ways = ((debiased.naive, debiased.values, -result.scores()), (100 * won.naive, 100 * won.values, 100 * won.values))
    truths = (ranks, rates)
    return [[float(np.nanmean((one - truth) ** 2)) for one in each] for each, truth in zip(ways, truths, strict=True)]
