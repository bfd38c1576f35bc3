"""The Kendall ball: the most accurate synthetic ranking when the *whole* ranking is protected.

A ball (``ball``: law and proofs) for the distance inv(s), the number of discordant pairs. No mechanism keeps more pairs
at an epsilon for the whole ranking. A ranking in the ball and a neighbour outside differ by the factor e^eps, so one
item's position has the same epsilon.

Sampling: insert the items from worst to best. With r inversions left, item n-1 of n overtakes v others with probability
C_(n-1)(r - v)/C_n(r), where C_n(r) counts rankings of n items with at most r inversions (``theory.kendall_balls``). The
product telescopes to 1/|B|; if all inversions are allowed, it is any ranking.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.rankings.ball import Ball
from rankdp.mechanisms.rankings.contract import EnclosedLaw, Orders
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import LAST, WORD, CutTable, integer_weights
from rankdp.privacy.exact import Real
from rankdp.theory import kendall_balls as theory
from rankdp.theory.pair_laws import PairLaw
from rankdp.theory.permutations import places
from rankdp.types import Floats, Longs, Words

_RANKS_UP_TO = 30  # items: laws of positions choose the radius, in 0.2 s (60 items would take seconds)
_ROWS = 1 << 12  # at a time, so that cut points stay in cache


class KendallBall(Ball):
    """Uniform in a ball around the true ranking, or with some probability anywhere.

    Parameters
    ----------
    items
        How many items a ranking has.
    epsilon
        The privacy of the whole ranking.
    radius
        The most discordant pairs inside the ball; by default the radius that keeps most pairs in order.
    """

    name: str = "kendall-ball"
    colour: ClassVar[str] = "#44AA99"
    most_items: ClassVar[int | None] = 60
    position_law_up_to: ClassVar[int | None] = 60
    pair_law_up_to: ClassVar[int] = 14
    # the radius changes in steps with epsilon, and the probability of the exact order jumps with it
    planned_up_to: ClassVar[Mapping[str, int]] = MappingProxyType({"exact": 1, "overlap": _RANKS_UP_TO})

    def __init__(self, items: int, epsilon: Real, radius: int | None = None) -> None:
        super().__init__(items, epsilon)
        self.sizes = theory.counts_up_to(self.items)
        self.mean_distances = theory.mean_inversions(self.items)
        self._take_radius(radius, f"rankings of {self.items} items")
        self.name = f"{type(self).name}-{self.radius}"

    @classmethod
    def with_numbers(cls, items: int, epsilon: Real, numbers: tuple[int, ...]) -> KendallBall:
        """With this radius."""
        if len(numbers) != 1:
            raise InputError(f"one number, the radius, follows the name of the {cls.name} mechanism, got {numbers}")
        return cls(items, epsilon, numbers[0])

    @classmethod
    def for_purpose(cls, items: int, epsilon: Real, purpose: str) -> KendallBall:
        """To aggregate up to 30 items, with the radius that is best for mean ranks; else for keeping pairs."""
        ball = cls(items, epsilon)
        if purpose != "aggregate" or items > _RANKS_UP_TO:
            return ball
        ranks: Floats = np.arange(items, dtype=np.float64) - (items - 1) / 2
        share, sizes = np.full(items, 1 / items), np.array(ball.sizes[:-1], dtype=np.float64)
        balls = (theory.landing_counts(items, len(sizes) - 1) / sizes).transpose(2, 0, 1)
        return cls(items, epsilon, ball.radius_for_mean_ranks(balls, 1 / items, ranks, share))

    # -- drawing -------------------------------------------------------------------------------------------------

    def _lefts(self, size: int) -> list[int]:
        """The numbers of inversions that can be left for this many items; the last one allows all."""
        most = math.comb(size, 2)
        return [*range(min(self.radius + 1, most)), most]

    @staticmethod
    def _ways(size: int, left: int) -> list[int]:
        """The number of rankings of ``size`` items, at most ``left`` inversions, whose last item overtakes 0, 1, …."""
        shorter = theory.counts_up_to(size - 1)
        return [shorter[min(left - v, len(shorter) - 1)] if v <= left else 0 for v in range(size)]

    @cached_property
    def _cuts(self) -> dict[int, Words]:
        """By size: one row for each of ``_lefts``, with floor(2^64 F) for all cells but the last."""
        tables = {}
        for size in range(2, self.items + 1):
            rows = []
            for left in self._lefts(size):
                *ways, last = self._ways(size, left)
                total = sum(ways) + last
                rows.append([min((until << WORD) // total, LAST) for until in itertools.accumulate(ways)])
            tables[size] = np.array(rows, dtype=np.uint64)
        return tables

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        from rankdp.mechanisms.rankings import sampling_kernels as kernels

        kernel = kernels.insert_short if self.items <= 16 else kernels.insert_long
        for start in range(0, len(orders), _ROWS):
            rows = slice(start, start + _ROWS)
            inside = self._mixture.sample(len(orders[rows]), bits)
            kernel(orders[rows], self._overtaken(inside, bits), out[rows])

    def _overtaken(self, inside: Longs, bits: Bits) -> Orders:
        """How many others each item from the second on overtakes, by row; ``inside`` is 1 for rows in the ball."""
        behind = np.empty((len(inside), self.items - 1), dtype=np.int32)
        left = np.where(inside == 1, self.radius, math.comb(self.items, 2))
        for size in range(self.items, 1, -1):
            cuts = self._cuts[size]
            words = bits.words(len(inside))
            row = np.minimum(left, len(cuts) - 1)
            drawn = (cuts[row] < words[:, None]).sum(axis=1)
            reached = cuts[row, np.minimum(drawn, size - 2)]  # the first cut point that is not below the word
            for tied in np.flatnonzero((reached == words) | (words == LAST)):
                ways = self._ways(size, self._lefts(size)[row[tied]])
                drawn[tied] = CutTable(integer_weights(ways)).resolve(int(words[tied]), bits)
            behind[:, size - 2] = drawn
            left = left - drawn
        return behind

    def exact_law(self, bits: int) -> EnclosedLaw:
        """From the mixture's weights and the counts behind the cut points, along the path of every relative order."""
        from rankdp.mechanisms.rankings.sampling_kernels import insert_short

        m = self.items
        mixture = self._mixture.weights(bits)
        cells = np.array(list(itertools.product(*[range(size) for size in range(2, m + 1)])), dtype=np.int32)
        out = np.empty((len(cells), m), dtype=np.int32)
        insert_short(np.tile(np.arange(m, dtype=np.int32), (len(cells), 1)), cells, out)
        law: list[tuple[Fraction | int, Fraction | int]] = [(0, 0)] * len(cells)
        for place, path in zip(places(out).tolist(), cells.tolist(), strict=True):
            anywhere, inside = self._path(path, math.comb(m, 2)), self._path(path, self.radius)
            law[place] = self._mixed(mixture, anywhere, inside)
        return law

    def _path(self, behind: list[int], left: int) -> Fraction:
        """The probability that the insertions overtake this many others each, starting from this many inversions."""
        chance = Fraction(1)
        for size in range(self.items, 1, -1):
            lefts = self._lefts(size)
            ways = self._ways(size, lefts[min(left, len(lefts) - 1)])
            chance *= Fraction(ways[behind[size - 2]], sum(ways))
            if not chance:
                return chance
            left -= behind[size - 2]
        return chance

    # -- public numbers ------------------------------------------------------------------------------------------

    def _distances(self, relative: Orders) -> Longs:
        from rankdp.mechanisms.rankings.sampling_kernels import count_inversions

        return count_inversions(relative)

    def _keep(self, i: int, j: int) -> float:
        inside = theory.keep_probability(self.items, self.radius, j - i)
        return self._inside * inside + (1 - self._inside) / 2

    def expected_concordance(self) -> float:
        """From the mean number of inversions in the ball, and one half elsewhere."""
        kept = 1 - self.mean_distances[self.radius] / math.comb(self.items, 2)
        return float(self._inside * kept + (1 - self._inside) / 2)

    def position_matrix(self) -> Floats:
        """By following an item while others are inserted."""
        ball = theory.landing_counts(self.items, self.radius)[..., -1] / self.sizes[self.radius]
        return np.asarray(self._inside * ball + (1 - self._inside) / self.items)

    def _pair_law(self) -> PairLaw:
        """By following two items while others are inserted."""
        ball, anywhere = theory.pair_law(self.items, self.radius), (1 - self._inside) / (self.items * (self.items - 1))
        return PairLaw(self._inside * ball.same + anywhere, self._inside * ball.crossed + anywhere)
