"""The true counts that rivals start from, where they come from, and how far a released order is from the best one.

Excess Kendall distance: with y_ij the margin of i over j and n ballots, an order costs the share of a ballot's pairs
that it contradicts on average, (1 - sum over i before j of y_ij / (n M))/2 with M = m(m-1)/2 pairs. Its excess is its
cost less that of Kemeny's order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankdp
from rankdp.data.ballots import Ballots

Floats = NDArray[np.float64]
Orders = NDArray[np.int64]
Random = np.random.Generator

_FILES = {
    "sushi": "sushi/sushi3a_rankings.csv",
    "AGH 2003": "preflib_agh_courses/agh_2003.csv",
    "Debian 2007": "preflib_debian/debian_2007_leader.csv",
    "Debian 2010": "preflib_debian/debian_2010_leader.csv",
    "Dublin North": "preflib_irish2002/dublin_north_2002.csv",
}
_WARDS = 3  # Scottish contests, evenly spaced in the list of files


@dataclass(frozen=True, eq=False)
class Votes:
    """Ballots of an election, and what is counted of them."""

    name: str
    ballots: Ballots

    @property
    def items(self) -> int:
        """How many."""
        return len(self.ballots.items)

    @property
    def count(self) -> int:
        """How many ballots."""
        return self.ballots.count

    @cached_property
    def margins(self) -> Floats:
        """By pair."""
        return self.ballots.margins().astype(float)

    @cached_property
    def positions(self) -> Floats:
        """By item and place: how many ballots put it there; unlisted items share the places left."""
        ahead, reached = self.ballots.places()
        places = np.arange(self.items)
        shared = (ahead[..., None] <= places) & (places < reached[..., None])
        return np.einsum("k,kmp->mp", self.ballots.weights.astype(float), shared / (reached - ahead)[..., None])

    @cached_property
    def best(self) -> Orders:
        """Kemeny's order."""
        return kemeny(self.margins[None])[0]

    def complete(self) -> NDArray[Any]:
        """One complete ranking per row; empty where ballots are truncated."""
        whole = self.ballots.lengths == self.items
        return np.repeat(self.ballots.orders[whole], self.ballots.weights[whole], axis=0)

    def excess(self, orders: Orders) -> Floats:
        """Of each order, in thousandths of a ballot's pairs."""
        pairs = self.items * (self.items - 1) / 2
        cost = np.array([-_agreed(self.margins, order) / (2 * self.count * pairs) for order in orders])
        return 1000 * (cost + _agreed(self.margins, self.best) / (2 * self.count * pairs))


def _agreed(margins: Floats, order: Orders) -> float:
    return float(np.triu(margins[np.ix_(order, order)], 1).sum())


def kemeny(tables: Floats) -> Orders:
    """The best order of each table of margins, up to 12 items: a dynamic programme over the set of first items."""
    runs, m, _ = tables.shape
    best = np.full((1 << m, runs), -np.inf)
    last = np.zeros((1 << m, runs), np.int8)
    beaten = np.zeros((1 << m, m, runs))  # the sum of y_ij over i in the set
    best[0] = 0
    for held in range(1, 1 << m):
        low = (held & -held).bit_length() - 1
        beaten[held] = beaten[held & (held - 1)] + tables[:, low, :].T
        for item in range(m):
            if held >> item & 1:
                before = held ^ (1 << item)
                value = best[before] + beaten[before, item]
                better = value > best[held]
                best[held] = np.where(better, value, best[held])
                last[held] = np.where(better, item, last[held])
    orders, left, rows = np.empty((runs, m), np.int64), np.full(runs, (1 << m) - 1), np.arange(runs)
    for place in reversed(range(m)):
        orders[:, place] = last[left, rows]
        left ^= 1 << orders[:, place]
    return orders


def by_scores(scores: Floats) -> Orders:
    """The order of each row of scores, largest first; equal ones in the order of the items."""
    return np.argsort(-scores, axis=1, kind="stable")


def mallows(voters: int, items: int, spread: float, seed: int) -> Votes:
    """Rankings around the order of the items, weight ``spread`` to the number of inversions (repeated insertion)."""
    random = np.random.default_rng(seed)
    orders = []
    for _ in range(voters):
        order: list[int] = []
        for item in range(items):
            weights = spread ** np.arange(item, -1.0, -1)
            order.insert(int(random.choice(item + 1, p=weights / weights.sum())), item)
        orders.append(order)
    return _made("Mallows", np.array(orders))


def plackett_luce(voters: int, items: int, width: float, seed: int) -> Votes:
    """Rankings by utility plus Gumbel noise; utilities evenly spaced over ``width``."""
    random = np.random.default_rng(seed)
    utility = np.linspace(width, 0, items) + random.gumbel(size=(voters, items))
    return _made("Plackett-Luce", np.argsort(-utility, axis=1))


def _made(name: str, orders: NDArray[Any]) -> Votes:
    names = [f"i{item}" for item in range(orders.shape[1])]
    return Votes(name, Ballots.from_rankings(rankdp.Rankings.from_orders(orders, names)))


def populations() -> list[Votes]:
    return [mallows(1000, 10, 0.8, 1), plackett_luce(1000, 10, 2.0, 2)]


def real() -> Iterator[Votes]:
    """Published votes, where RANKDP_DATA holds them."""
    folder = Path(os.environ.get("RANKDP_DATA", "../shared/data"))
    for name, path in _FILES.items():
        if (folder / path).is_file():
            yield Votes(name, Ballots.read(folder / path))
    wards = sorted((folder / "scottish_stv").glob("*.blt"))
    for path in wards[:: max(1, len(wards) // _WARDS)][:_WARDS]:
        ballots = Ballots.read(path)
        yield Votes(path.stem.replace("_", " "), ballots)
