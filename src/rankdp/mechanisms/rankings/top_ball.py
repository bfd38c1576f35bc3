"""The ball on top lists: the k best of n items; both their order and *which* items they are is protected.

Let a be the first k items of the true ranking and b those of the output. A ball (``ball``: law and proofs) for the
distance of a and b: the number of items of a that are not in b plus the number of places whose items differ
(``theory.top_balls``). The other items follow in random order, so that the output is a ranking; ``privatize`` releases
only the list. Places after k of the true ranking are not used: a list of k items is enough.

Why this distance: all places are alike, so the noise can be debiased without loss of precision. The ball of Kendall's
distance with penalty 1/2 is optimal for that distance by the same proof, but nearly singular: for the best five of
thirty at epsilon 4, it takes 27 answers to be worth a true one for mean ranks (here 13), and 105 for how often items
are listed (here 13).

Sampling: draw how many items stay and how many stay in place, by the number of such lists; then, uniformly, which items
and places these are, and the new items.

For a survey with "rank your best five of thirty": ``mechanism("auto", 30, 4, protect="ranking", top=5)``. ``sample``
takes complete rankings, in which the order after the first five is arbitrary (``completed``); the first five of a row
are the answer. Sidecars of lists carry ``lists: {length, items}``, so that ``aggregate`` counts unlisted items:
``Aggregate.in_top(5)`` is how often items are listed, ``mean_ranks`` gives unlisted items the mean of the other ranks.
The browser needs ``items``, ``length`` and ``radius`` only (``sampler.js``, sampler "top").
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.ball import Ball
from rankdp.mechanisms.rankings.contract import ENUMERATED_UP_TO, EnclosedLaw, Orders
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, integer_weights
from rankdp.privacy.exact import Real
from rankdp.privacy.noise import uniform_below
from rankdp.theory.permutations import all_permutations
from rankdp.theory.top_balls import moved, top_lists
from rankdp.types import Floats, Longs

MOST_LISTED = 60
_USUAL = 5


class TopBall(Ball):
    """Uniform in a ball around the true list of the best items, or with some probability any list.

    Parameters
    ----------
    items
        How many items there are.
    epsilon
        The privacy of the whole ranking, which includes which items are listed.
    length
        How many items a list has: below ``items``, and at most 60; by default 5, or half of the items if fewer.
    radius
        The largest distance inside the ball; by default the one with the smallest expected distance.
    """

    name: str = "top-ball"
    colour: ClassVar[str] = "#882255"
    most_items: ClassVar[int | None] = 1000
    compared_up_to: ClassVar[int | None] = 1  # for lists only, never compared with rankings
    debiasable: ClassVar[tuple[str, ...]] = ("ranks",)

    def __init__(self, items: int, epsilon: Real, length: int | None = None, radius: int | None = None) -> None:
        super().__init__(items, epsilon)
        self.length = max(1, min(_USUAL, items // 2)) if length is None else whole("length", length, 1)
        self.lists = self.length
        if self.length >= self.items or self.length > MOST_LISTED:
            raise InputError(
                f"the length of a list must be at most {min(self.items - 1, MOST_LISTED)} for {self.items} items, "
                f"got {self.length}"
            )
        self._lists = top_lists(self.items, self.length)
        self.sizes = self._lists.up_to
        self.mean_distances = 2 * self.length - self._lists.mean_kept - self._lists.mean_in_place
        self._take_radius(radius, f"lists of {self.length} out of {self.items} items")
        self.name = f"{type(self).name}-{self.length}-{self.radius}"

    @classmethod
    def with_numbers(cls, items: int, epsilon: Real, numbers: tuple[int, ...]) -> TopBall:
        """With this length, and radius if there is a second number; else the one that keeps most items."""
        if len(numbers) not in (1, 2):
            raise InputError(
                f"one or two numbers, the length and the radius, follow the name of the {cls.name} mechanism, "
                f"got {numbers}"
            )
        return cls.for_lists(items, epsilon, numbers[0], "top") if len(numbers) == 1 else cls(items, epsilon, *numbers)

    @classmethod
    def for_lists(cls, items: int, epsilon: Real, length: int, purpose: str) -> TopBall:
        """With the radius for a purpose: "aggregate" mean ranks, "top" the items kept, "order" the closest lists."""
        ball = cls(items, epsilon, length)
        known = ball._lists
        if purpose == "top":
            gain = ball._inside_by_radius * (known.mean_kept[:-1] - known.mean_kept[-1])
            return cls(items, epsilon, length, int(np.argmax(gain)))
        if purpose != "aggregate":
            return ball
        ranks = ball.rank_targets[: length + 1] - ball.rank_targets.mean()
        balls = np.array([known.law(*means) for means in zip(known.mean_kept, known.mean_in_place, strict=True)])
        share = np.append(np.ones(length), items - length) / items
        return cls(items, epsilon, length, ball.radius_for_mean_ranks(balls[:-1], balls[-1], ranks, share))

    @property
    def parameters(self) -> dict[str, Any]:
        """With the length and the radius."""
        return {**super().parameters, "length": self.length}

    @property
    def rank_targets(self) -> Floats:
        """The ranks of a list; unlisted items share the mean of the other ranks."""
        ranks = np.arange(self.items, dtype=np.float64)
        ranks[self.length :] = ranks[self.length :].mean()
        return ranks

    # -- drawing -------------------------------------------------------------------------------------------------

    def _ways(self, inside: int) -> list[int]:
        """The number of lists by cell, in the ball or anywhere."""
        cells, most = self._lists.cells, self.radius if inside else self._lists.largest
        return [count if self._lists.distance(cell) <= most else 0 for cell, count in cells.items()]

    @cached_property
    def _tables(self) -> tuple[CutTable, CutTable]:
        anywhere, inside = (CutTable(integer_weights(self._ways(part))) for part in (0, 1))
        return anywhere, inside

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        inside = self._mixture.sample(len(orders), bits)
        cells = np.empty(len(orders), dtype=np.int64)
        for part, table in enumerate(self._tables):
            mine = np.flatnonzero(inside == part)
            cells[mine] = table.sample(len(mine), bits)
        drawn = np.empty((len(orders), self.items), dtype=np.int64)  # original positions, by new place
        for number, (kept, in_place) in enumerate(self._lists.cells):
            mine = np.flatnonzero(cells == number)
            drawn[mine, : self.length] = self._listed(kept, in_place, len(mine), bits)
        unlisted = _others(drawn[:, : self.length], self.items)
        drawn[:, self.length :] = _shuffled(unlisted, unlisted.shape[1], bits)
        out[:] = np.take_along_axis(orders, drawn, axis=1)

    def _listed(self, kept: int, in_place: int, count: int, bits: Bits) -> Longs:
        """Uniform lists with these numbers of items kept and in place; items are given by their true place."""
        n, k, moving = self.items, self.length, kept - in_place
        listed = np.full((count, k), -1, dtype=np.int64)
        pending = np.arange(count)
        while len(pending):  # draw again if an item that moves returns to its own place
            places = _shuffled(np.tile(np.arange(k), (len(pending), 1)), kept, bits)
            source = places[:, in_place:kept]
            target = _shuffled(places[:, in_place:].copy(), moving, bits)[:, :moving]
            good = (source != target).all(axis=1)
            rows = pending[good]
            listed[rows[:, None], places[good, :in_place]] = places[good, :in_place]
            listed[rows[:, None], target[good]] = source[good]
            pending = pending[~good]
        new = _shuffled(np.tile(np.arange(k, n), (count, 1)), k - kept, bits)[:, : k - kept]
        listed[listed < 0] = new.ravel()
        return listed

    def exact_law(self, bits: int) -> EnclosedLaw:
        """From the mixture's weights and the tables of cells, whose lists are drawn uniformly."""
        mixture, n, k = self._mixture.weights(bits), self.items, self.length
        law: list[tuple[Fraction | int, Fraction | int]] = []
        tables = [table.weights(bits).low for table in self._tables]
        number = {cell: place for place, cell in enumerate(self._lists.cells)}
        for order in all_permutations(n).tolist():
            cell = sum(item < k for item in order[:k]), sum(item == place for place, item in enumerate(order[:k]))
            drawn = math.comb(k, cell[1]) * moved(k - cell[1], cell[0] - cell[1]) * math.perm(n - k, k - cell[0])
            anywhere, inside = (Fraction(ways[number[cell]], drawn * sum(ways)) for ways in tables)
            law.append(self._mixed(mixture, anywhere, inside))
        return law

    # -- public numbers ------------------------------------------------------------------------------------------

    def _distances(self, relative: Orders) -> Longs:
        listed = relative[:, : self.length]
        near = (listed < self.length).sum(axis=1) + (listed == np.arange(self.length)).sum(axis=1)
        return np.asarray(2 * self.length - near)

    def log_prob_of_no_change(self) -> float:
        """log P(the list and one particular order of the other items)."""
        return super().log_prob_of_no_change() - math.lgamma(self.items - self.length + 1)

    def expected_concordance(self) -> float:
        """By enumeration; refused for many items, where lists say too little about pairs."""
        if self.items > ENUMERATED_UP_TO:
            raise Unsupported(
                f"lists of the first {self.length} of {self.items} items say too little about pairs: use mean ranks "
                "(borda)"
            )
        return super().expected_concordance()

    def list_law(self) -> Floats:
        """[i, j]: P(the item at place i of the true list is at place j of the released one); place k is "unlisted"."""
        known = self._lists
        return known.law(
            *(
                self._inside * mean[self.radius] + (1 - self._inside) * mean[-1]
                for mean in (known.mean_kept, known.mean_in_place)
            )
        )

    def position_matrix(self) -> Floats:
        """From ``list_law``: all places after the list are alike."""
        k, law = self.length, self.list_law()
        place = np.minimum(np.arange(self.items), k)
        return np.asarray(law[np.ix_(place, place)] / np.where(place < k, 1, self.items - k))


def completed(lists: Orders, items: int) -> Orders:
    """Rankings of all items that begin with these lists; the others follow in the order of their numbers."""
    return np.ascontiguousarray(np.concatenate([lists, _others(lists, items)], axis=1), dtype=np.int32)


def _others(lists: Longs | Orders, items: int) -> Longs:
    """By row: the numbers below ``items`` that are not listed."""
    listed = np.zeros((len(lists), items), dtype=np.bool_)
    np.put_along_axis(listed, lists, True, axis=1)
    return np.argsort(listed, axis=1, kind="stable")[:, : items - lists.shape[1]]


def _shuffled(rows: Longs, first: int, bits: Bits) -> Longs:
    """The rows with ``first`` uniformly drawn entries moved to the front; changed in place."""
    width, every = rows.shape[1], np.arange(len(rows))
    for place in range(min(first, width - 1)):
        other = place + uniform_below(width - place, len(rows), bits)
        rows[every, place], rows[every, other] = rows[every, other], rows[every, place]
    return rows
