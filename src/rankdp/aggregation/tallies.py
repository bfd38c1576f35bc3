"""Counting privatized rankings in a stream: where items landed, and what pairs of positions say.

Voters who share a mechanism, a length, an epsilon and a public offset are a group. One pass counts positions. That is
enough for ranks, whatever is made of them. Pairs of positions are summed in a separate pass, when win rates
are asked for, since it depends on how many voters there are: three numbers for a pair and group, how often the first
stood before the second, and the sum of its scores and of their squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.aggregation.origin import Origin, check_groups, groups_of, with_offsets, with_unlisted
from rankdp.data.rankings import Rankings
from rankdp.jit import kernel
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.types import Floats, Ints, Longs

Batches = Callable[[], Iterable[tuple[Rankings, Longs | None]]]
"""Reads the rankings from the beginning: tables, and which of several origins each row has (None for the first)."""

Kind = tuple[int, Fraction, int, int | None]


class Tally:
    """The voters of one mechanism, which knows their length and epsilon; those alike differ only in the offset.

    ``mechanism`` is what made their rankings given their offset, and ``made_by`` whatever the offset.
    """

    def __init__(self, mechanism: RankingMechanism, made_by: RankingMechanism, kind: Kind) -> None:
        self.mechanism, self.made_by, self.alike = mechanism, made_by, kind[:3]
        self.voters = 0
        self.landed: Any = np.zeros((0, mechanism.items), dtype=np.int64)
        """Item x position: how many voters have it there; a tier of tied items shares its positions."""

    def add(self, orders: Ints, items: int) -> None:
        """Count rankings of this group, which list indices below ``items``; a stream may meet new ones."""
        self.reorder(range(max(items, len(self.landed))))
        self.voters += len(orders)
        _tally_positions(orders, self.landed)

    def reorder(self, items: Sequence[int]) -> None:
        """Put the items into another order, adding the ones this group never saw."""
        self.landed = np.pad(self.landed, ((0, len(items) - len(self.landed)), (0, 0)))[items]


class Tallies:
    """All groups of the rankings that ``batches`` reads.

    ``origins`` say what made them, that of each row by its code. ``sort`` puts the items that the batches meet into the
    order in which they are shown.
    """

    def __init__(
        self, origins: Sequence[Origin], batches: Batches, sort: Callable[[Sequence[str]], Sequence[int]] | None = None
    ) -> None:
        self._origins, self._batches = origins, batches
        self._tied = False
        self.single = 0
        """How many list only one item."""
        groups: dict[Kind, Tally] = {}
        seen: set[tuple[int, Fraction, int]] = set()
        names: tuple[str, ...] = ()
        for batch, codes in batches():
            names = batch.items if origins[0].lists is None else origins[0].lists
            for kind, orders in self._split(batch, codes):
                if kind not in groups:
                    seen.add(kind[:3])
                    check_groups(len(seen))
                    length, epsilon, code, offset = kind
                    origin = origins[code]
                    groups[kind] = Tally(origin.part(length, epsilon, offset), origin.choose(length, epsilon), kind)
                groups[kind].add(orders, len(names))
            self._tied = self._tied or batch.tied is not None
        order = list(range(len(names))) if sort is None else list(sort(names))
        for tally in groups.values():
            tally.reorder(order)
            if self._tied:
                tally.landed = tally.landed @ _shared(tally.mechanism)
        self._settle(groups, [names[item] for item in order])

    def _settle(self, groups: dict[Kind, Tally], names: Sequence[str]) -> None:
        """Take over what was counted, for these items."""
        self.items = tuple(names)
        self._places = {name: place for place, name in enumerate(self.items)}
        self._groups = {kind: groups[kind] for kind in sorted(groups)}

    @property
    def groups(self) -> tuple[Tally, ...]:
        """By length, epsilon, code and offset."""
        return tuple(self._groups.values())

    def _split(self, batch: Rankings, codes: Longs | None) -> Iterator[tuple[Kind, Ints]]:
        batch = with_offsets(with_unlisted(batch, self._origins[0]), self._origins, codes)
        kinds, rows = groups_of(batch, self._origins[0].epsilon, codes)
        for number, kind in enumerate(kinds):
            mine = rows == number
            if kind[0] >= 2:
                yield kind, np.ascontiguousarray(batch.orders[mine, : kind[0]])
            else:
                self.single += int(mine.sum())  # one item has no order

    def _again(self) -> Iterator[tuple[Kind, Ints]]:
        single = self.single
        for batch, codes in self._batches():
            names = batch.items if self._origins[0].lists is None else self._origins[0].lists
            places = np.array([self._places[name] for name in names], dtype=np.int32)
            for kind, orders in self._split(batch, codes):
                yield kind, places[orders]
        self.single = single

    def pair_voters(self) -> Longs:
        """Row i, column j: how many voters list both."""
        count = len(self.items)
        if all(length == count for length, *_ in self._groups):
            everyone: Longs = np.full((count, count), sum(tally.voters for tally in self.groups), dtype=np.int64)
            np.fill_diagonal(everyone, 0)
            return everyone
        nothing = [np.zeros((1, length, length)) for length, *_ in self._groups]
        cells = self.pair_sums(nothing, np.zeros((count, count), dtype=np.int32))
        together = np.sum(cells, axis=0)[:, :, 0]
        return np.asarray(np.rint(together + together.T).astype(np.int64))

    def pair_sums(self, scores: Sequence[Floats], levels: Ints) -> list[Floats]:
        """By group, row i and column j: of rankings with i before j how many there are, their scores and the squares.

        ``scores`` has by group a table [level, b1, b2], and ``levels`` say which of the tables a pair of items uses.
        """
        cells = [np.zeros((len(self.items), len(self.items), 3)) for _ in self._groups]
        number = {kind: place for place, kind in enumerate(self._groups)}
        for kind, orders in self._again():
            _tally_pairs(orders, scores[number[kind]], levels, cells[number[kind]])
            if self._tied:  # two tied items are half in this order and half in the other
                turned = np.ascontiguousarray(orders[:, _turned(self._groups[kind].mechanism)])
                _tally_pairs(turned, scores[number[kind]], levels, cells[number[kind]])
        return [part / 2 for part in cells] if self._tied else cells


def _tiers(mechanism: RankingMechanism) -> Longs:
    """By position: the tier, from 0."""
    assert mechanism.ties is not None
    return np.cumsum(~mechanism.ties[0]) - 1


def _shared(mechanism: RankingMechanism) -> Floats:
    """Spreads what is counted at a position evenly over its tier."""
    tier = _tiers(mechanism)
    alike = tier[:, None] == tier
    return np.asarray(alike / alike.sum(axis=0))


def _turned(mechanism: RankingMechanism) -> Longs:
    """The positions with every tier turned upside down."""
    tier = _tiers(mechanism)
    return np.lexsort((-np.arange(len(tier)), tier))


@kernel(effort=0.7)
def _tally_positions(orders: Ints, landed: Longs) -> None:
    """landed[i, b] grows by the rankings that have item i at position b."""
    rows, length = orders.shape
    for u in range(rows):
        for b in range(length):
            landed[orders[u, b], b] += 1


@kernel(effort=lambda orders, *_: 1.6 * orders.size * orders.shape[1] / 2)
def _tally_pairs(orders: Ints, scores: Floats, levels: Ints, cells: Floats) -> None:
    """cells[i, j] grows, for rankings with i at b1 before j at b2, by 1, scores[level, b1, b2] and its square."""
    rows, length = orders.shape
    for u in range(rows):
        for b1 in range(length - 1):
            first = orders[u, b1]
            for b2 in range(b1 + 1, length):
                second = orders[u, b2]
                score = scores[levels[first, second], b1, b2]
                cell = cells[first, second]
                cell[0] += 1.0
                cell[1] += score
                cell[2] += score * score
