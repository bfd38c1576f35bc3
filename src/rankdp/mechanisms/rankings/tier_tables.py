"""The tables from which the mechanisms with tiers draw how many items each tier keeps.

For one division into tiers: r_b, the number of places of tier b left to items that were not kept, is Poisson of mean
q/z truncated at the size of the tier. A draw that keeps j = m - r_1 - … - r_B items is accepted with the Poisson
probability of j for the mean q, divided by the largest such probability. Any whole q > 0 gives the same law
(``theory.tier_laws``). All comparisons are exact (``cut_tables``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import LAST, WORD, CutTable, Weights, log_concave_weights
from rankdp.types import Longs, Words


def poisson_weights(last: int, mean: Fraction) -> Callable[[int], Weights]:
    """Enclosures of mean^k / k! for k = 0..last, in units of the largest."""
    mode = min(last, math.floor(mean))
    return log_concave_weights(last, mode, lambda k: (mean.numerator, mean.denominator * (k + 1)))


class Acceptance:
    """Accepts a draw that keeps j items with the Poisson probability of j for this mean, over the largest one."""

    def __init__(self, items: int, mean: Fraction) -> None:
        self.items, self.mean = items, mean
        self.weights = poisson_weights(items, mean)

    @cached_property
    def cuts(self) -> tuple[Words, Words]:
        """By the number of items kept: words below the first are accepted, words above the second are not."""
        weights = self.weights(2 * WORD)
        whole = max(weights.low)
        cuts = np.zeros((2, self.items + 1), dtype=np.uint64)
        for j, (low, high) in enumerate(zip(weights.low, weights.high, strict=True), weights.first):
            cuts[0, j] = min((low << WORD) // whole, LAST)
            cuts[1, j] = min((high << WORD) // whole, LAST)
        return cuts[0], cuts[1]

    def accepts(self, kept: int, word: int, bits: Bits) -> bool:
        """Whether a uniform number that begins with ``word`` is below the probability of acceptance."""
        mode = min(self.items, math.floor(self.mean))
        chance = Fraction(math.factorial(mode), math.factorial(kept)) * self.mean ** (kept - mode)
        digits, length = word, WORD
        while True:
            bound = chance * 2**length
            if digits + 1 <= bound or digits >= bound:
                return bool(digits < bound)
            digits, length = digits << WORD | int(bits.words(1)[0]), length + WORD


class KeptTables:
    """How many items each tier of one division keeps; a tier may be empty."""

    def __init__(self, sizes: Sequence[int], weight: Fraction, kept: int) -> None:
        self.sizes, self.accepting = tuple(sizes), Acceptance(sum(sizes), Fraction(kept))
        self.left = {size: CutTable(poisson_weights(size, kept / weight)) for size in {*self.sizes}}

    def attempt(self, words: Sequence[int], bits: Bits) -> list[int] | None:
        """The r_b selected by one word per tier and one more, with further bits if needed; None if rejected."""
        *first, last = words
        left = [
            int(self.left[size].decide(np.array([word], dtype=np.uint64), bits)[0])
            for size, word in zip(self.sizes, first, strict=True)
        ]
        return left if self.accepting.accepts(sum(self.sizes) - sum(left), int(last), bits) else None

    def law(self, bits: int) -> Callable[[Sequence[int]], tuple[Fraction, Fraction]]:
        """Bounds of the weight of (r_1..r_B), accepted."""
        tables = {size: table.weights(bits) for size, table in self.left.items()}
        accepted = self.accepting.weights(bits)

        def enclosed(left: Sequence[int]) -> tuple[Fraction, Fraction]:
            parts = [bounds(tables[size], r) for size, r in zip(self.sizes, left, strict=True)]
            parts.append(bounds(accepted, sum(self.sizes) - sum(left)))
            return Fraction(math.prod(low for low, _ in parts)), Fraction(math.prod(high for _, high in parts))

        return enclosed


class PackedTables:
    """Several divisions with equally many tiers, as arrays that a compiled loop reads."""

    def __init__(self, tables: Sequence[KeptTables], acceptance: float) -> None:
        self.tables, self.acceptance = tables, acceptance
        self.shapes: Longs = np.array([part.sizes for part in tables])
        flat = [(part, size) for part in tables for size in part.left]
        number = {(id(part), size): place for place, (part, size) in enumerate(flat)}
        self.ids: Longs = np.array([[number[id(part), size] for size in part.sizes] for part in tables])
        cuts = [part.left[size].cuts for part, size in flat]
        self.starts: Longs = np.cumsum([0, *map(len, cuts)])
        self.firsts: Longs = np.array([part.left[size].first for part, size in flat])
        self.cuts: Words = np.concatenate(cuts)
        self.accepted: NDArray[np.uint64] = np.array([part.accepting.cuts for part in tables])

    def attempts(self, rows: int) -> int:
        """How many attempts to draw words for at once; usually enough for this many rows."""
        return math.ceil(1.1 * rows / self.acceptance + 4)

    def sample(self, which: Longs, bits: Bits) -> Longs:
        """(division, j_1..j_B) for the division of each row."""
        from rankdp.mechanisms.rankings.tier_kernels import draw_kept

        rows, each = len(which), self.shapes.shape[1] + 1
        kept = np.empty((rows, each), dtype=np.int64)
        kept[:, 0] = which
        row, words = 0, np.empty(0, dtype=np.uint64)
        tables = self.ids, self.starts, self.firsts, self.cuts, self.shapes, self.accepted
        while row < rows:
            if len(words) < each:
                fresh = bits.words(self.attempts(rows - row) * each)
                words = np.concatenate([words, fresh]) if len(words) else fresh
            row, used, still_open = draw_kept(row, words, kept, *tables)
            if still_open:  # about once in 2^60 draws
                left = self.tables[which[row]].attempt(words[used : used + each].tolist(), bits)
                used += each
                if left is not None:
                    kept[row, 1:], row = self.shapes[which[row]] - left, row + 1
            words = words[used:]
        return kept


def bounds(weights: Weights, value: int) -> tuple[int, int]:
    """The bounds of one weight, also outside the listed cells."""
    cell = value - weights.first
    if 0 <= cell < len(weights.low):
        return weights.low[cell], weights.high[cell]
    return 0, weights.below if cell < 0 else weights.above
