"""Exact draws from a discrete distribution by 64-bit cut points.

Let F be the distribution function of a law on the integers and U a uniform real number whose first digits are
a 64-bit word. With c_k = floor(2^64 F(k)) a word below c_k proves U < F(k) and a word above c_k proves
U >= F(k). Only the word that *equals* c_k leaves the question open: then more digits of U are drawn and
compared with sharper bounds of F, until it is settled. So the outcome has exactly the law F: the real numbers
of the definition, not their floating-point neighbours. Cut points are computed from integer intervals that
enclose the weights, and are always proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import exp_bounds
from rankdp.types import Longs, Words

WORD = 64
LAST = (1 << WORD) - 1


@dataclass(frozen=True, slots=True)
class Weights:
    """Enclosures of the unnormalised weights of the integers first, first+1, …, in units of any common scale.

    ``below`` and ``above`` bound the weight of everything on either side of the listed cells.
    """

    low: list[int]
    high: list[int]
    first: int = 0
    below: int = 0
    above: int = 0

    def cumulative(self, bits: int) -> Iterator[tuple[int, int]]:
        """For k = first-1, first, …: integers lo <= 2**bits F(k) <= hi."""
        low_after, high_after = sum(self.low), sum(self.high) + self.above
        low_until, high_until = 0, self.below
        for low, high in zip([0, *self.low], [0, *self.high], strict=True):
            low_until, high_until = low_until + low, high_until + high
            low_after, high_after = low_after - low, high_after - high
            smallest = (low_until << bits) // (low_until + high_after) if low_until else 0
            largest = -((-high_until << bits) // (high_until + low_after)) if high_until + low_after else 1 << bits
            yield smallest, min(largest, 1 << bits)


class CutTable:
    """A law on the integers, ready for sampling.

    ``weights(bits)`` encloses the weights with about ``bits`` correct bits relative to their sum; it is called
    again with more bits when a decision needs them.
    """

    def __init__(self, weights: Callable[[int], Weights]) -> None:
        self.weights = weights
        bits = 2 * WORD
        while (cuts := self._settled_cuts(weights(bits))) is None:
            bits *= 2
        self.first, self.cuts = cuts

    @staticmethod
    def _settled_cuts(weights: Weights) -> tuple[int, Words] | None:
        """The first integer that can be drawn and its cut points, or None where the bounds are too wide.

        A cut c serves as floor(2^64 F) as soon as c <= 2^64 F <= c + 1 is proved.
        """
        cuts: list[int] = []
        for low, high in weights.cumulative(WORD):
            if high > low + 1:
                return None
            cuts.append(min(low, LAST))
            if low >= LAST:
                break
        first = weights.first - 1
        if weights.below == 0:  # F(first - 1) is zero: nothing to cut off
            cuts, first = cuts[1:], first + 1
        if not cuts or cuts[-1] != LAST:
            cuts.append(LAST)
        return first, np.array(cuts, dtype=np.uint64)

    def sample(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws."""
        return self.decide(bits.words(count), bits)

    def decide(self, words: Words, bits: Bits) -> Longs:
        """The integers that ``words`` select, with more bits where a word alone does not settle it."""
        cells = np.searchsorted(self.cuts, words)
        drawn: Longs = cells + self.first
        for index in np.flatnonzero(self.cuts[cells] == words):
            drawn[index] = self.resolve(int(words[index]), bits)
        return drawn

    def resolve(self, word: int, bits: Bits) -> int:
        """The integer selected by a uniform real number whose first 64 digits, ``word``, did not decide."""
        digits, length = word, WORD
        while True:
            digits, length = digits << WORD | int(bits.words(1)[0]), length + WORD
            weights = self.weights(length + WORD)
            for k, (low, high) in enumerate(weights.cumulative(length), weights.first - 1):
                if digits < low:
                    return k
                if digits < high:
                    break  # still open


def geometric_weights(rate: Fraction, size: int | None = None) -> Callable[[int], Weights]:
    """Weights exp(-rate k) on 0 <= k < size, or on all k >= 0 where ``size`` is None (for rates that are not tiny)."""

    def weights(bits: int) -> Weights:
        scale = bits + 2 * (size or 1 << 16).bit_length() + 8
        ratio_low, ratio_high = exp_bounds(rate, scale)
        low = high = 1 << scale
        lows, highs = [low], [high]
        negligible = 0 if size else 1 << (scale - bits)
        while len(lows) != size and high > negligible:
            low, high = low * ratio_low >> scale, (high * ratio_high >> scale) + 1
            lows.append(low)
            highs.append(high)
        above = 0 if size else -(-high * ratio_high // ((1 << scale) - ratio_high))
        return Weights(lows, highs, above=above)

    return weights


def integer_weights(values: list[int]) -> Callable[[int], Weights]:
    """Weights that are whole numbers: no enclosure needed."""
    return lambda bits: Weights(values, values)


def log_concave_weights(last: int, mode: int, ratio: Callable[[int], tuple[int, int]]) -> Callable[[int], Weights]:
    """Weights on 0..last with w(k+1)/w(k) = top/bottom of ``ratio(k)``, whole numbers whose quotient falls with k.

    They are computed from ``mode``, the largest, whose weight is the unit, to both sides until they are negligible;
    the rest is bounded by a geometric series.
    """

    def weights(bits: int) -> Weights:
        scale = bits + WORD + 4 * last.bit_length()
        unit, negligible = 1 << scale, 1 << (scale - bits)
        up_low, up_high, down_low, down_high = [unit], [unit], [unit], [unit]
        k = mode
        while k < last and up_high[-1] > negligible:
            top, bottom = ratio(k)
            up_low.append(up_low[-1] * top // bottom)
            up_high.append(-(-up_high[-1] * top // bottom))
            k += 1
        above = _geometric_rest(up_high[-1], *ratio(k)) if k < last else 0
        k = mode
        while k > 0 and down_high[-1] > negligible:
            top, bottom = ratio(k - 1)
            down_low.append(down_low[-1] * bottom // top)
            down_high.append(-(-down_high[-1] * bottom // top))
            k -= 1
        below = _geometric_rest(down_high[-1], *ratio(k - 1)[::-1]) if k > 0 else 0
        return Weights(down_low[:0:-1] + up_low, down_high[:0:-1] + up_high, first=k, below=below, above=above)

    return weights


def _geometric_rest(last: int, top: int, bottom: int) -> int:
    """An upper bound of last (q + q^2 + …) for q = top/bottom below 1."""
    return -(-last * top // (bottom - top))
