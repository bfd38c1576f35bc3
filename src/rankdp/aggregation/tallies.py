"""Streaming: voters who share a mechanism, a length and an epsilon are summed into one small table, batch by batch.

A group's estimator h is public and known before its rankings are read, so a pair of items needs three numbers per
group: how often the first stood before the second, the sum of h - 1/2 and the sum of its squares. Positions are
counted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.exact import positive
from rankdp.theory.estimators import Estimator, pair_estimator

Choose = Callable[[int, Fraction, int], RankingMechanism]
"""The mechanism that a voter's ranking went through: by its length, its epsilon and the code of a name."""

_MOST_GROUPS = 1000


class Tally:
    """The voters of one mechanism, which knows their length and epsilon."""

    def __init__(self, mechanism: RankingMechanism, bias: float) -> None:
        self.mechanism, self.bias = mechanism, bias
        self.voters = 0
        self.landed: NDArray[np.int64] = np.zeros((0, mechanism.items), dtype=np.int64)
        self.cells: NDArray[np.float64] = np.zeros((0, 0, 3))
        self.refusal: Unsupported | None = None
        self.pairs: Estimator | None = None
        try:
            self.pairs = pair_estimator(mechanism, bias)
        except Unsupported as refusal:
            self.refusal = refusal

    def add(self, orders: NDArray[np.int32], items: int) -> None:
        """Sum rankings of this group, which list indices below ``items``; a stream may meet new ones."""
        from rankdp.aggregation.tally_rankings import tally_pairs, tally_positions

        more = items - len(self.landed)
        if more:
            self.landed = np.pad(self.landed, ((0, more), (0, 0)))
            self.cells = np.pad(self.cells, ((0, more), (0, more), (0, 0))) if self.pairs else self.cells
        self.voters += len(orders)
        tally_positions(orders, self.landed)
        if self.pairs:
            tally_pairs(orders, self.pairs.values - 0.5, self.cells)

    def reordered(self, items: list[int]) -> None:
        """Put the items into another order, adding those that this group never met."""
        more = len(items) - len(self.landed)
        self.landed = np.pad(self.landed, ((0, more), (0, 0)))[items]
        if self.pairs:
            self.cells = np.pad(self.cells, ((0, more), (0, more), (0, 0)))[np.ix_(items, items)]


class Tallies:
    """All groups of a table of rankings."""

    def __init__(self, choose: Choose, epsilon: Fraction | None, bias: float) -> None:
        self.choose, self.epsilon, self.bias = choose, epsilon, bias
        self.groups: dict[tuple[int, Fraction, int], Tally] = {}

    def add(self, batch: Rankings, codes: NDArray[np.int64] | None = None) -> None:
        """Sum a batch; ``codes`` say which of several mechanisms each row went through."""
        if self.epsilon is None and batch.epsilons is None:
            raise InputError("epsilon must be given: the rankings hold no epsilon of their own")
        if self.epsilon is not None and codes is None and batch.complete:
            self._add(batch.orders, len(batch.items), self.epsilon, 0, len(batch.items))
            return
        own, own_code = np.unique(_column(batch.epsilons, self.epsilon, len(batch)), return_inverse=True)
        code = np.zeros(len(batch), dtype=np.int64) if codes is None else codes
        width = batch.orders.shape[1] + 1
        key = (code * len(own) + own_code) * width + batch.lengths
        for kind in np.unique(key).tolist():
            (name, which), length = divmod(kind // width, len(own)), kind % width
            epsilon = self.epsilon or positive(float(own[which]))
            self._add(batch.orders[key == kind], length, epsilon, name, len(batch.items))

    def _add(self, orders: NDArray[np.int32], length: int, epsilon: Fraction, name: int, items: int) -> None:
        if length < 2:
            return  # one item has no order
        group = (length, epsilon, name)
        if group not in self.groups:
            if len(self.groups) == _MOST_GROUPS:
                raise Unsupported(
                    f"voters must share at most {_MOST_GROUPS:,} different lengths and epsilons, got more: "
                    "let them choose from a few"
                )
            self.groups[group] = Tally(self.choose(length, epsilon, name), self.bias)
        self.groups[group].add(np.ascontiguousarray(orders[:, :length]), items)


def _column(own: NDArray[np.float64] | None, one: Fraction | None, rows: int) -> NDArray[np.float64]:
    """Each voter's epsilon, or nothing to tell voters apart by."""
    return np.zeros(rows) if own is None or one is not None else own
