"""K-norm noise in integers: the dilation of a body, and the simplest body, the cube.

If one person changes k numbers at once, each by at most s, the vector moves by a point of s K, K = [-1, 1]^k (Hardt and
Talwar 2010). A change of s in all of them costs rate s; independent Laplace noise would cost k times as much.

*Law.* Z_t are the integer points of {-t..t-1}^k, (2t)^k of them. Draw t >= 1 with weight t^k e^(-rate t), a uniform
point of Z_t, and a sign. With tau(x) the least t with x in Z_t,

    P(x) = sum over t >= tau(x) of c e^(-rate t), averaged over x and -x,    proportional to
    e^(-rate tau(x)) + e^(-rate tau(-x)).

*Proof of eps.* A change d of the counts has entries of at most s, so Z_t + d lies in Z_(t+s) and tau changes by at most
s; rate s = eps.

*Variance.* A uniform number from {-t..t-1} has the mean square t^2/3 + 1/6. For a small rate t is nearly gamma
distributed, and the variance (k+1)(k+2) s^2/(3 eps^2): a sixth of that of Laplace noise on many pairs, 2 k^2 s^2/eps^2.

*The dilation.* The sum over t of t^k x^t is the sum over j of A(k, j) x^(j+1), divided by (1-x)^(k+1), A(k, j) the
Eulerian numbers (Worpitzky). So t is j + 1 with weight A(k, j) e^(-rate j), plus k + 1 independent geometric numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, Weights, geometric_weights
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.noise import geometric
from rankdp.types import Longs, Words

MOST_NUMBERS = 200
_LARGEST = 1 << 52


class CubeNoise:
    """Integer vectors with P(x) proportional to e^(-rate tau(x)) + e^(-rate tau(-x)).

    Parameters
    ----------
    numbers
        k, from 1 to 200.
    rate
        Epsilon over s, where neighbours' numbers differ by at most s each.
    """

    def __init__(self, numbers: int, rate: Real) -> None:
        self.numbers, self.rate = whole("numbers", numbers, 1, MOST_NUMBERS), positive(rate, "rate")
        if self.numbers / self.rate > _LARGEST:
            raise InputError(f"epsilon is too small for {numbers} numbers: noise at the rate {rate!s} exceeds 52 bits")

    def sample(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws, one per row."""
        dilations = draw_dilations(self.numbers, self.rate, count, bits)
        inside = draw_below(np.repeat(2 * dilations, self.numbers), bits).reshape(count, self.numbers)
        drawn = inside - dilations[:, None]
        return np.where((bits.words(count) & np.uint64(1)).astype(np.bool_)[:, None], drawn, -drawn)

    @property
    def variance(self) -> float:
        """The variance of each number."""
        return mean_squared_dilation(self.numbers, self.rate) / 3 + 1 / 6


def draw_dilations(dimension: int, rate: Fraction, count: int, bits: Bits) -> Longs:
    """t >= 1 with weight t^dimension e^(-rate t).

    Parameters
    ----------
    dimension
        The power of t: a body dilated by t has a constant times t^dimension points.
    rate, count, bits
        As in ``CubeNoise``.
    """
    sums = geometric(rate, count * (dimension + 1), bits).reshape(count, dimension + 1).sum(axis=1)
    return np.asarray(1 + _eulerian_table(dimension, rate).sample(count, bits) + sums)


def mean_squared_dilation(dimension: int, rate: Fraction) -> float:
    """The mean of t^2 under the law of ``draw_dilations``."""
    weights = _eulerian_table(dimension, rate).weights(128).low
    whole_weight, n = sum(weights), dimension + 1
    mean = sum(k * weight for k, weight in enumerate(weights)) / whole_weight
    square = sum(k * k * weight for k, weight in enumerate(weights)) / whole_weight
    ratio, rest = math.exp(-rate), -math.expm1(-rate)
    return (1 + mean + n * ratio / rest) ** 2 + square - mean**2 + n * ratio / rest**2


@lru_cache(maxsize=32)
def _eulerian_table(n: int, rate: Fraction) -> CutTable:
    """k from 0..n-1 with weight A(n, k) e^(-rate k)."""
    row = _eulerian_numbers(n)
    more = math.ceil(2 * rate * n) + 8  # bits by which e^(-rate k) is below 1

    def weights(bits: int) -> Weights:
        powers = geometric_weights(rate, n)(bits + more)
        low = [number * weight for number, weight in zip(row, powers.low, strict=True)]
        high = [number * weight for number, weight in zip(row, powers.high, strict=True)]
        return Weights(low, high)

    return CutTable(weights)


@lru_cache(maxsize=8)
def _eulerian_numbers(n: int) -> list[int]:
    """A(n, 0), …, A(n, n-1): how many orders of n have k descents."""
    row = [1]
    for length in range(2, n + 1):
        row = [
            (k + 1) * (row[k] if k < length - 1 else 0) + (length - k) * (row[k - 1] if k else 0) for k in range(length)
        ]
    return row


def draw_below(bounds: Longs, bits: Bits) -> Longs:
    """Uniform integers below each bound (at most 2^53): the top bits of a word, drawn again while too large."""
    drop = (64 - np.maximum(1, np.frexp(bounds - 1.0)[1])).astype(np.uint64)
    drawn: Words = bits.words(len(bounds)) >> drop
    while (again := np.flatnonzero(drawn >= bounds.astype(np.uint64))).size:
        drawn[again] = bits.words(len(again)) >> drop[again]
    return drawn.astype(np.int64)
