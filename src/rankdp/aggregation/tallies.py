"""Streaming: voters who share a mechanism, a length and an epsilon are summed into one small table, batch by batch.

A group's estimator h is public and known before its rankings are read, so a pair of items needs three numbers per
group: how often the first stood before the second, the sum of h - 1/2 and the sum of its squares. Positions are
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from rankdp.aggregation.origin import Origin, check_groups, groups_of
from rankdp.data.rankings import Rankings
from rankdp.errors import Unsupported
from rankdp.jit import kernel
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.theory.estimators import Estimator, pair_estimator
from rankdp.types import Floats, Ints, Longs


class Tally:
    """The voters of one mechanism, which knows their length and epsilon."""

    def __init__(self, mechanism: RankingMechanism, bias: float) -> None:
        self.mechanism, self.bias = mechanism, bias
        self.voters = 0
        self.landed: Longs = np.zeros((0, mechanism.items), dtype=np.int64)
        self.cells: Floats = np.zeros((0, 0, 3))
        self.refusal: Unsupported | None = None
        self.pairs: Estimator | None = None
        try:
            self.pairs = pair_estimator(mechanism, bias)
        except Unsupported as refusal:
            self.refusal = refusal

    def add(self, orders: Ints, items: int) -> None:
        """Sum rankings of this group, which list indices below ``items``; a stream may meet new ones."""
        if items > len(self.landed):
            self.reorder(range(items))
        self.voters += len(orders)
        _tally_positions(orders, self.landed)
        if self.pairs:
            _tally_pairs(orders, self.pairs.values - 0.5, self.cells)

    def reorder(self, items: Sequence[int]) -> None:
        """Put the items into another order, adding those that this group never met."""
        more = len(items) - len(self.landed)
        self.landed = np.pad(self.landed, ((0, more), (0, 0)))[items]
        if self.pairs:
            self.cells = np.pad(self.cells, ((0, more), (0, more), (0, 0)))[np.ix_(items, items)]


class Tallies:
    """All groups of a table of rankings; ``origins`` say what made them, the one of each row by its code."""

    def __init__(self, origins: Sequence[Origin], bias: float) -> None:
        self.origins, self.bias = origins, bias
        self.groups: dict[tuple[int, Fraction, int], Tally] = {}

    def add(self, batch: Rankings, codes: Longs | None = None) -> None:
        """Sum a batch."""
        kinds, rows = groups_of(batch, self.origins[0].epsilon, codes)
        for number, kind in enumerate(kinds):
            length, epsilon, code = kind
            if length < 2:
                continue  # one item has no order
            if kind not in self.groups:
                check_groups(len(self.groups) + 1)
                self.groups[kind] = Tally(self.origins[code].choose(length, epsilon), self.bias)
            self.groups[kind].add(np.ascontiguousarray(batch.orders[rows == number, :length]), len(batch.items))

    def ordered(self, items: Sequence[int]) -> list[Tally]:
        """The groups by length, epsilon and code, all with these items in this order."""
        tallies = [self.groups[kind] for kind in sorted(self.groups)]
        for tally in tallies:
            tally.reorder(items)
        return tallies


@kernel
def _tally_positions(orders: Ints, landed: Longs) -> None:
    """landed[i, b] grows by the rankings that have item i at position b."""
    rows, length = orders.shape
    for u in range(rows):
        for b in range(length):
            landed[orders[u, b], b] += 1


@kernel
def _tally_pairs(orders: Ints, scores: Floats, cells: Floats) -> None:
    """cells[i, j] grows, for rankings with i at b1 before j at b2, by 1, scores[b1, b2] and its square."""
    rows, length = orders.shape
    for u in range(rows):
        for b1 in range(length - 1):
            first = cells[orders[u, b1]]
            for b2 in range(b1 + 1, length):
                score = scores[b1, b2]
                cell = first[orders[u, b2]]
                cell[0] += 1.0
                cell[1] += score
                cell[2] += score * score
