"""The reinsertion mechanism: forget the positions of a random set of items.

Draw d with weight C(m,d) m!/(m-d)! z^(-d); take a uniformly random set of d items out and put them back one by one at
uniformly random places. The output is uniform among all orders that keep the other m-d items, a set S, in order, so

    P(s) proportional to the sum over increasing subsequences S of s of z^|S|.

These are ``tiers`` with a tier for each item; the proof of eps is there, with (1+z) / (1 + z (1+z)^-(m-1)) = e^eps.
(For long rankings z is e^eps - 1; for two items at eps = 1 it is twice that.) The best output is the identity, (1+z)^m,
the worst the reverse, 1 + m z.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.mechanisms.rankings.contract import TABLE_UP_TO, EnclosedLaw, Orders, rows_from_halves
from rankdp.mechanisms.rankings.tiers import TierSums
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, log_concave_weights
from rankdp.theory import concordance, pair_laws
from rankdp.theory.permutations import increasing_subsequences


class Reinsertion(TierSums):
    """Take a random number of random items out, put them back anywhere. O(m) per ranking for every m."""

    name: str = "reinsertion"
    colour: ClassVar[str] = "#D55E00"
    position_law_up_to: ClassVar[int | None] = 1000
    pair_law_up_to: ClassVar[int] = 50

    @cached_property
    def _taken(self) -> CutTable:
        """The law of d, the number of items taken out."""
        m, weight = self.items, self.weight
        mode = int(np.argmax(concordance.reinsertion_log_weights(m, self._log_weight)))
        return CutTable(
            log_concave_weights(m, mode, lambda d: ((m - d) ** 2 * weight.denominator, (d + 1) * weight.numerator))
        )

    def exact_law(self, bits: int) -> EnclosedLaw:
        """The sum over d of P(d) N(s, m-d) (m-d)!/m! / C(m, d), N the number of increasing subsequences of that length.

        Very short rankings have one cell per output: the sum over j of N(s, j) z^j, a rational number.
        """
        m = self.items
        if m <= TABLE_UP_TO:
            powers = [self.weight.numerator**j * self.weight.denominator ** (m - j) for j in range(m + 1)]
            counts = map(increasing_subsequences, self._permutations.tolist())
            exact = [sum(map(int.__mul__, count, powers)) for count in counts]
            return [(weight, weight) for weight in exact]
        taken = self._taken.weights(bits)
        share = [Fraction(math.factorial(m - d), math.factorial(m) * math.comb(m, d)) for d in range(m + 1)]
        lows, highs = [Fraction(0)] * (m + 1), [Fraction(taken.below + taken.above)] * (m + 1)
        for d, (low, high) in enumerate(zip(taken.low, taken.high, strict=True), taken.first):
            lows[d], highs[d] = Fraction(low), Fraction(high)
        law = []
        for s in self._permutations.tolist():
            kept = increasing_subsequences(s)[::-1]
            low_sum, high_sum = (
                sum((side[d] * kept[d] * share[d] for d in range(m + 1)), Fraction(0)) for side in (lows, highs)
            )
            law.append((low_sum, high_sum))
        return law

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        if self.items <= TABLE_UP_TO:
            self._draw_outputs(orders, out, bits)
            return
        from rankdp.mechanisms.rankings.sampling_kernels import reinsert

        rows_from_halves(reinsert, orders, self._taken.sample(len(orders), bits), out, bits, self.items // 2 + 1)

    @cached_property
    def _log_normaliser(self) -> float:
        """log of z^m times the sum over d of C(m,d) m!/(m-d)! z^(-d)."""
        log = concordance.reinsertion_log_weights(self.items, self._log_weight)
        return float(np.logaddexp.reduce(log)) + self.items * self._log_weight

    @cached_property
    def _law(self) -> NDArray[np.float64]:
        return np.exp(concordance.reinsertion_log_law(self.items, self._log_weight))

    def _keep(self, i: int, j: int) -> float:
        """By gap, from how many items of the pair were taken out."""
        return float(concordance.reinsertion_keep(np.array([j - i]), self.items, self._law)[0])

    def expected_concordance(self) -> float:
        """The mean over all pairs."""
        return concordance.average_over_gaps(
            self.items, lambda gaps: concordance.reinsertion_keep(gaps, self.items, self._law)
        )

    def position_matrix(self) -> NDArray[np.float64]:
        """From the two hypergeometric laws of a kept item's place."""
        return concordance.reinsertion_position_matrix(self.items, self._law)

    def top_block(self, k: int) -> NDArray[np.float64]:
        """As ``position_matrix``, for the first k positions only, in O(m k^2)."""
        return concordance.reinsertion_position_matrix(self.items, self._law, first=k)

    def top_overlap(self, k: int) -> float:
        """From how many of the first k items are kept, in O(m k)."""
        return concordance.reinsertion_top_overlap(self.items, self._law, k)

    def _pair_law(self) -> pair_laws.PairLaw:
        """By which of the two were taken out."""
        return pair_laws.reinsertion_pair_law(self.items, self._law)

    def pair_slopes(self) -> NDArray[np.float64]:
        """For every length: the order and the distance of two positions span an invariant plane."""
        alpha, beta, slope = pair_laws.reinsertion_slopes(self.items, self._law)
        return np.array([[alpha, 0.0], [beta, slope]])

    def unbiased_pairs(self) -> pair_laws.Moments:
        """From ``pair_slopes``."""
        return pair_laws.reinsertion_pairs(self.items, self._law)

    def unbiased_ranks(self) -> pair_laws.Moments:
        """For every length: the mean position is affine in the original one."""
        return pair_laws.reinsertion_ranks(self.items, self._law)
