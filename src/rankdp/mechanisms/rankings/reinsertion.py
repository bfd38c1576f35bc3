"""The reinsertion mechanism: forget where a random set of items stood.

Draw d with weight C(m,d) m!/(m-d)! w^(-d), w = e^eps - 1; take a uniformly random set of d items out and put
them back one by one at uniformly random places. The output keeps a set S of size m-d in order with equal
probability for every order that does, so

    P(s) proportional to the sum over increasing subsequences S of s of w^|S|.

Proof of eps: let k be the item that a neighbour moves. The sets without k are common subsequences for both
inputs or for neither; let their sum be A. A set with k, less k, is one of those and has 1/w of the weight, so
the sets with k sum to at most w A. Hence P(s)/P(c s) <= (A + w A)/A = 1 + w = e^eps.

The best output is the identity, (1+w)^m, the worst the reverse, 1 + m w: classical local DP at m eps - log(1
+ m w). For short rankings the realised epsilon is below eps (0.51 for two items at eps = 1): there the
optimal mechanism is the better choice.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.mechanisms.rankings.contract import TABLE_UP_TO, EnclosedLaw, Orders, RankingMechanism, rows_from_halves
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import exp_bounds, upwards
from rankdp.theory import concordance, pair_laws
from rankdp.theory.permutations import increasing_subsequences


class Reinsertion(RankingMechanism):
    """Take a random number of random items out, put them back anywhere. O(m) per ranking for every m."""

    name: ClassVar[str] = "reinsertion"
    colour: ClassVar[str] = "#D55E00"
    position_law_up_to: ClassVar[int | None] = 1000
    pair_law_up_to: ClassVar[int] = 50

    def local_epsilon(self) -> float:
        """m eps - log(1 + m (e^eps - 1)), rounded up."""
        m = self.items
        # The two terms agree to order eps^2: as many more digits as eps is small.
        digits = 40 + 2 * math.ceil(1 / self.epsilon).bit_length() + len(str(math.ceil(self.epsilon * m)))
        with decimal.localcontext(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
            eps = Decimal(self.epsilon.numerator) / Decimal(self.epsilon.denominator)
            return upwards(float((m - 1) * eps - (m - (m - 1) * (-eps).exp()).ln()))

    @property
    def _log_weight(self) -> float:
        """log(e^eps - 1)."""
        eps = float(self.epsilon)
        return eps + math.log(-math.expm1(-eps))

    @cached_property
    def _taken(self) -> CutTable:
        """The law of d, the number of items taken out."""
        m, mode = (
            self.items,
            int(np.argmax(concordance.reinsertion_log_weights(self.items, self._log_weight))),
        )

        def weights(bits: int) -> Weights:
            scale = bits + 64 + 4 * m.bit_length() + max(0, (1 / self.epsilon).__ceil__().bit_length())
            low, high = exp_bounds(self.epsilon, scale)  # of r = e^-eps; 1/w = r/(1-r)
            one = 1 << scale
            low_rest, high_rest = one - high, one - low
            negligible = 1 << (scale - bits)

            up_low, up_high = [one], [one]
            d = mode
            while d < m and up_high[-1] > negligible:
                up_low.append(up_low[-1] * (m - d) ** 2 * low // ((d + 1) * high_rest))
                up_high.append(up_high[-1] * (m - d) ** 2 * high // ((d + 1) * low_rest) + 1)
                d += 1
            # The ratio of neighbouring weights falls with d, so the rest is below a geometric series.
            above = _geometric_rest(up_high[-1], (m - d) ** 2 * high, (d + 1) * low_rest)

            down_low, down_high = [], []
            d, least, most = mode, one, one
            while d > 0 and most > negligible:
                least = least * d * low_rest // ((m - d + 1) ** 2 * high)
                most = most * d * high_rest // ((m - d + 1) ** 2 * low) + 1
                down_low.append(least)
                down_high.append(most)
                d -= 1
            below = _geometric_rest(most, d * high_rest, (m - d + 1) ** 2 * low)
            return Weights(down_low[::-1] + up_low, down_high[::-1] + up_high, first=d, below=below, above=above)

        return CutTable(weights)

    def exact_law(self, bits: int) -> EnclosedLaw:
        """The sum over d of P(d) N(s, m-d) (m-d)!/m! / C(m, d), N the number of increasing subsequences of that length.

        Very short rankings have a cell each: the same as sum over j of N(s, j) (1-r)^j r^(m-j), r = e^-eps.
        """
        m = self.items
        if m <= TABLE_UP_TO:
            scale = bits + 64 + m * max(0, (1 / self.epsilon).__ceil__().bit_length())
            low, high = exp_bounds(self.epsilon, scale)
            one = 1 << scale
            least = [(one - high) ** j * low ** (m - j) for j in range(m + 1)]
            most = [(one - low) ** j * high ** (m - j) for j in range(m + 1)]
            counts = map(increasing_subsequences, self._permutations.tolist())
            return [(sum(map(int.__mul__, count, least)), sum(map(int.__mul__, count, most))) for count in counts]
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

    def _log_prob(self, relative: Orders) -> NDArray[np.float64]:
        from rankdp.mechanisms.rankings.sampling_kernels import log_increasing_sum

        whole = self._log_sum_of_weights + self.items * self._log_weight
        return log_increasing_sum(relative, self._log_weight) - whole

    def log_prob_of_no_change(self) -> float:
        """(1+w)^m, as every subsequence of the identity is increasing, over w^m times the sum of the weights of d."""
        return -self.items * math.log(-math.expm1(-float(self.epsilon))) - self._log_sum_of_weights

    @cached_property
    def _log_sum_of_weights(self) -> float:
        """log of the sum over d of C(m,d) m!/(m-d)! w^(-d)."""
        return concordance.log_sum(concordance.reinsertion_log_weights(self.items, self._log_weight))

    @cached_property
    def _law(self) -> NDArray[np.float64]:
        return np.exp(concordance.reinsertion_log_law(self.items, self._log_weight))

    def _keep(self, i: int, j: int) -> float:
        """By gap, from how many of the pair were taken out."""
        return float(concordance.reinsertion_keep(np.array([j - i]), self.items, self._law)[0])

    def expected_concordance(self) -> float:
        """The same, averaged over all pairs."""
        return concordance.average_over_gaps(
            self.items, lambda gaps: concordance.reinsertion_keep(gaps, self.items, self._law)
        )

    def position_matrix(self) -> NDArray[np.float64]:
        """From the two hypergeometric laws of a kept item's place."""
        return concordance.reinsertion_position_matrix(self.items, self._law)

    def top_block(self, k: int) -> NDArray[np.float64]:
        """The same for the first k positions alone, in O(m k^2)."""
        return concordance.reinsertion_position_matrix(self.items, self._law, first=k)

    def top_overlap(self, k: int) -> float:
        """From how many of the first k items are kept, in O(m k)."""
        return concordance.reinsertion_top_overlap(self.items, self._law, k)

    def _pair_law(self) -> pair_laws.PairLaw:
        """By which of the two were taken out."""
        return pair_laws.reinsertion_pair_law(self.items, self._law)

    def unbiased_pairs(self) -> pair_laws.Moments:
        """For every length: the order and the distance of two positions span an invariant plane."""
        return pair_laws.reinsertion_pairs(self.items, self._law)

    def unbiased_ranks(self) -> pair_laws.Moments:
        """For every length: the mean position is affine in the original one."""
        return pair_laws.reinsertion_ranks(self.items, self._law)


def _geometric_rest(last: int, top: int, bottom: int) -> int:
    """An upper bound of last (q + q^2 + …) for q = top/bottom; 0 where nothing follows."""
    if top == 0:
        return 0
    return -(-last * top // (bottom - top))
