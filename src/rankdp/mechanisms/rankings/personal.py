"""Everyone's own epsilon: one call that protects each row as strongly as its owner asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism, as_orders
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.types import Floats, Ints, Longs


class Personal:
    """One mechanism per voter: each row of ``sample`` is protected with its own epsilon.

    Proof: the epsilons are public, and rows are drawn independently of each other, each by the mechanism of its own
    epsilon. So moving one item of voter v's ranking changes the probability of a release by exp(eps_v) at most. What
    audits a mechanism audits its rows, ``parts``; which row goes to which part is held against every part's law.

    Voters who chose the same epsilon share tables, so the cost grows with the number of *different* epsilons.
    """

    def __init__(self, build: Callable[[Fraction], RankingMechanism], epsilons: Iterable[Real]) -> None:
        different: dict[Real, int] = {}
        part = [different.setdefault(value, len(different)) for value in epsilons]
        if not part:
            raise InputError("epsilon must have one value for each row, got none")
        exact = [positive(value, f"epsilon of row {part.index(number) + 1}") for value, number in different.items()]
        self.parts = [build(value) for value in exact]
        self.items = self.parts[0].items
        self._part: Longs = np.array(part)

    def __repr__(self) -> str:
        return f"Personal(items={self.items}, {len(self._part)} voters, {len(self.parts)} different epsilons)"

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of all voters' guarantees, marked personal."""
        whole = max(part.local_epsilon() for part in self.parts)
        return Guarantee(
            ITEM_POSITION,
            max(part.epsilon for part in self.parts),
            whole_ranking_epsilon=whole,
            personal=True,
        )

    def _groups(self) -> Iterable[tuple[RankingMechanism, Longs]]:
        return ((part, np.flatnonzero(self._part == number)) for number, part in enumerate(self.parts))

    def _rows(self, orders: ArrayLike, name: str) -> Orders:
        array = as_orders(orders, self.items, name)
        if len(array) != len(self._part):
            raise InputError(f"{name} must have one row for each of the {len(self._part)} epsilons, got {len(array)}")
        return array

    def sample(self, orders: ArrayLike, bits: Bits | None = None) -> Orders:
        """One synthetic order per row, each at its own epsilon."""
        return self.sample_with_offsets(orders, bits)[0]

    def sample_with_offsets(self, orders: ArrayLike, bits: Bits | None = None) -> tuple[Orders, Ints]:
        """The same with the public offset of each row, 0 where the mechanism has none."""
        array, bits = self._rows(orders, "orders"), bits or SecureBits()
        out, offsets = np.empty_like(array), np.zeros(len(array), dtype=np.int32)
        for part, rows in self._groups():
            out[rows], offsets[rows] = part.sample_with_offsets(array[rows], bits)
        return out, offsets

    def log_prob(self, outputs: ArrayLike, orders: ArrayLike) -> Floats:
        """log P(output | order), row by row."""
        produced, given = self._rows(outputs, "outputs"), self._rows(orders, "orders")
        logs = np.empty(len(given))
        for part, rows in self._groups():
            logs[rows] = part.log_prob(produced[rows], given[rows])
        return logs

    def expected_concordance(self) -> float:
        """The mean over the voters."""
        kept = [part.expected_concordance() for part in self.parts]
        return float(np.average(kept, weights=np.bincount(self._part)))
