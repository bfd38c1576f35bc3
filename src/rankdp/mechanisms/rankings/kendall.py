"""The Kendall mechanism (Xu, Algorithm 1): Mallows' model around the secret ranking.

Law: P(s) proportional to r^inv(s), r = exp(-eps/(m-1)), inv(s) the number of discordant pairs.

Proof of eps: moving one item changes at most m-1 of its pairs, so inv(c s) <= inv(s) + m - 1 and P(s)/P(c s)
<= r^-(m-1) = e^eps; moving the first item to the end of s = identity attains it. Two arbitrary rankings
differ in at most m(m-1)/2 pairs: eps m/2 in classical local DP, attained by a ranking and its reverse.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from rankdp.mechanisms.rankings.contract import EnclosedLaw, Orders, RankingMechanism
from rankdp.privacy.bits import Bits
from rankdp.privacy.noise import TruncatedGeometrics
from rankdp.theory import mallows as theory
from rankdp.theory.pair_laws import PairLaw, kendall_pair_law
from rankdp.theory.permutations import places
from rankdp.types import Floats


class Kendall(RankingMechanism):
    """Insert the items one by one, from best to worst, each a geometric number of places too early."""

    name: str = "kendall"
    colour: ClassVar[str] = "#009E73"
    position_law_up_to: ClassVar[int | None] = 1000
    pair_law_up_to: ClassVar[int] = 50

    @cached_property
    def _stages(self) -> TruncatedGeometrics:
        return TruncatedGeometrics(self.epsilon / (self.items - 1), self.items - 1)

    def local_epsilon(self) -> Fraction:
        """eps m/2, exactly."""
        return self.epsilon * self.items / 2

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        from rankdp.mechanisms.rankings import sampling_kernels as kernels

        kernel = kernels.insert_short if self.items <= 16 else kernels.insert_long
        kernel(orders, self._stages.sample(len(orders), bits), out)

    def exact_law(self, bits: int) -> EnclosedLaw:
        """From the cells of all stages: the sampler's kernel maps each row of cells to a different ranking."""
        from rankdp.mechanisms.rankings.sampling_kernels import insert_short

        m = self.items
        stages = [table.weights(bits) for table in self._stages.tables]
        cells = np.array(list(itertools.product(*[range(stage + 1) for stage in range(1, m)])), dtype=np.int32)
        out = np.empty((len(cells), m), dtype=np.int32)
        insert_short(np.tile(np.arange(m, dtype=np.int32), (len(cells), 1)), cells, out)
        law = [(0, 0)] * len(cells)
        for place, row in zip(places(out).tolist(), cells.tolist(), strict=True):
            low = math.prod(stage.low[cell] for stage, cell in zip(stages, row, strict=True))
            high = math.prod(stage.high[cell] for stage, cell in zip(stages, row, strict=True))
            law[place] = law[place][0] + low, law[place][1] + high
        return law

    def disagreement_cost(self) -> float:
        """eps/(m-1)."""
        return theory.rate(self.items, float(self.epsilon))

    def _log_prob(self, relative: Orders) -> Floats:
        from rankdp.mechanisms.rankings.sampling_kernels import count_inversions

        cost = count_inversions(relative) * self.disagreement_cost()
        return np.asarray(self.log_prob_of_no_change() - cost)

    def log_prob_of_no_change(self) -> float:
        """-log of the normaliser."""
        return -theory.log_normaliser(self.items, float(self.epsilon))

    def _keep(self, i: int, j: int) -> float:
        """By gap: h(g+1) - h(g) with h(k) = k/(1 - r^k)."""
        return theory.keep_probability(self.items, float(self.epsilon), j - i)

    def position_matrix(self) -> Floats:
        """By following an item while later ones are inserted."""
        return theory.position_matrix(self.items, float(self.epsilon))

    def top_block(self, k: int) -> Floats:
        """As ``position_matrix``, for the first k positions only, in O(m k^2)."""
        return theory.position_matrix(self.items, float(self.epsilon), first=k)

    def _pair_law(self) -> PairLaw:
        """By following two items while later ones are inserted."""
        return kendall_pair_law(self.items, float(self.epsilon))

    def expected_concordance(self) -> float:
        """Theorem 1(3), summed over the stages."""
        return theory.expected_concordance(self.items, float(self.epsilon))
