"""Exact discrete noise on secure bits: every function draws from the very law its formula states.

All of them stand on cut points (see ``tables``): integer arithmetic, no floating point on the way to a
decision except in ``below_exp``, whose float only *proposes* and is overruled by exact arithmetic wherever
its error could matter.

- A geometric variable G with P(k) = (1-r) r^k has independent digits: for any base B, G mod B and G div B are
  independent, the first geometric truncated to {0..B-1}, the second geometric with ratio r^B. So any scale,
  however large, takes a few small tables.
- Discrete Laplace, P(k) proportional to ``exp(-|k|/scale)``: with r = exp(-1/scale) it is G with probability 1/(1+r)
  and -1-G otherwise (memorylessness).
- Discrete Gaussian, P(k) proportional to exp(-k^2 / (2 sigma^2)): a table for small sigma; above, rejection from the
  discrete Laplace (Canonne, Kamath, Steinke 2020, Algorithm 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rankdp.errors import InputError
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import WORD, CutTable, Weights, geometric_weights, integer_weights
from rankdp.privacy.exact import Real, exp_bounds, positive, rational

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: bounds of a real number, as close as a number of bits asks for
Enclosure: TypeAlias = Callable[[int], tuple[Fraction, Fraction]]

_BASE = 1 << 10
_SLOWEST = Fraction(1, 64)  # the smallest rate at which the untruncated table stays small
_LARGEST_SCALE = 1 << 56  # exp(-2^63 / 2^56) = exp(-128): 64-bit integers hold every draw of practical probability
_LARGEST_TABLE_SIGMA = 64
_FLOAT_DOUBT = 2.0**-36  # far above the error of the float proposal in below_exp, of about 2^-45


def _count(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
        raise InputError(f"count must be an integer of at least 0, got {count!r}")
    return int(count)


def _nonnegative(value: Real, name: str) -> Fraction:
    exact = rational(value, name)
    if exact < 0:
        raise InputError(f"{name} must be a finite number of at least 0, got {value!s}")
    return exact


def _fits(scale: Fraction, name: str) -> Fraction:
    if scale > _LARGEST_SCALE:
        raise InputError(
            f"{name} must be at most 2^56 so that draws fit 64-bit integers, "
            f"got at least 2^{int(scale).bit_length() - 1}"
        )
    return scale


def bernoulli(probability: Real, count: int, bits: Bits) -> NDArray[np.bool_]:
    """True with exactly the given rational probability."""
    exact = rational(probability, "probability")
    if not 0 <= exact <= 1:
        raise InputError(f"probability must be between 0 and 1, got {probability!s}")
    if exact in (0, 1):
        return np.full(_count(count), exact == 1)
    table = CutTable(integer_weights([exact.denominator - exact.numerator, exact.numerator]))
    return table.sample(_count(count), bits).astype(np.bool_)


def bernoulli_exp(x: Real, count: int, bits: Bits) -> NDArray[np.bool_]:
    """True with probability exp(-x) for a rational x >= 0."""
    exact = _nonnegative(x, "x")

    def weights(precision: int) -> Weights:
        low, high = exp_bounds(exact, precision)
        return Weights([low, (1 << precision) - high], [high, (1 << precision) - low])

    return ~CutTable(weights).sample(_count(count), bits).astype(np.bool_)


def uniform_below(bound: int, count: int, bits: Bits) -> NDArray[np.int64]:
    """Uniform integers in {0, …, bound-1}: the top digits of a word, drawn again while they reach the bound."""
    if isinstance(bound, bool) or not isinstance(bound, (int, np.integer)) or not 1 <= bound <= 1 << 63:
        raise InputError(f"bound must be an integer from 1 to 2^63, got {bound!r}")
    drop = np.uint64(WORD - max(1, (int(bound) - 1).bit_length()))
    drawn = np.empty(_count(count), dtype=np.uint64)
    pending = np.arange(count)
    while len(pending):
        drawn[pending] = bits.words(len(pending)) >> drop
        pending = pending[drawn[pending] >= np.uint64(bound)]
    return drawn.astype(np.int64)


@lru_cache(maxsize=128)
def _geometric_digits(rate: Fraction) -> tuple[CutTable, ...]:
    tables = []
    while rate < _SLOWEST:
        tables.append(CutTable(geometric_weights(rate, _BASE)))
        rate *= _BASE
    return (*tables, CutTable(geometric_weights(rate)))


def geometric(rate: Real, count: int, bits: Bits) -> NDArray[np.int64]:
    """P(k) = (1 - r) r^k on k >= 0 with r = exp(-rate), for a rational rate > 0."""
    exact = positive(rate, "rate")
    _fits(1 / exact, "1/rate")
    drawn, place = np.zeros(_count(count), dtype=np.int64), 1
    for table in _geometric_digits(exact):
        drawn += table.sample(count, bits) * place
        place *= _BASE
    return drawn


def discrete_laplace(scale: Real, count: int, bits: Bits) -> NDArray[np.int64]:
    """P(k) proportional to ``exp(-|k| / scale)`` on all integers, for a rational scale >= 0 (0: no noise)."""
    exact = _fits(_nonnegative(scale, "scale"), "scale")
    if exact == 0:
        return np.zeros(_count(count), dtype=np.int64)
    drawn = geometric(1 / exact, count, bits)
    negative = _laplace_side(1 / exact).sample(count, bits)
    return drawn ^ -negative  # -1 - drawn where negative is 1


@lru_cache(maxsize=128)
def _laplace_side(rate: Fraction) -> CutTable:
    """0 and 1 with weights 1 and r: on or above zero, or below."""
    return CutTable(geometric_weights(rate, 2))


def discrete_gaussian(sigma: Real, count: int, bits: Bits) -> NDArray[np.int64]:
    """P(k) proportional to exp(-k^2 / (2 sigma^2)) on all integers, for a rational sigma >= 0 (0: no noise)."""
    exact = _fits(_nonnegative(sigma, "sigma"), "sigma")
    if exact == 0:
        return np.zeros(_count(count), dtype=np.int64)
    if exact <= _LARGEST_TABLE_SIGMA:
        cells = _gaussian_table(exact * exact).sample(_count(count), bits)
        return np.where(cells % 2 == 1, cells + 1, -cells) // 2  # 0, 1, -1, 2, -2, …
    variance, scale = exact * exact, min(math.floor(exact) + 1, _LARGEST_SCALE)
    drawn = np.empty(_count(count), dtype=np.int64)
    pending = np.arange(count)
    while len(pending):
        proposal = discrete_laplace(scale, len(pending), bits)

        def exponent(index: int, proposal: NDArray[np.int64] = proposal) -> Fraction:
            return (abs(int(proposal[index])) - variance / scale) ** 2 / (2 * variance)

        distance = np.abs(proposal) - float(variance / scale)
        kept = below_exp(distance**2 / float(2 * variance), exponent, bits)
        drawn[pending[kept]] = proposal[kept]
        pending = pending[~kept]
    return drawn


@lru_cache(maxsize=32)
def _gaussian_table(variance: Fraction) -> CutTable:
    """Cells 0, 1, 2, 3, 4, … stand for the integers 0, 1, -1, 2, -2, …"""

    def weights(bits: int) -> Weights:
        scale = bits + 32
        lows, highs = [1 << scale], [1 << scale]
        k = 1
        while highs[-1] >> 16 or k * k < variance:
            low, high = exp_bounds(k * k / (2 * variance), scale)
            lows += [low, low]
            highs += [high, high]
            k += 1
        # Beyond k - 1 the ratio of neighbours is below exp(-(2k-1)/(2 variance)) <= exp(-1/variance) <=
        # v/(v+1).
        above = math.ceil(2 * highs[-1] * (variance + 1))
        return Weights(lows, highs, above=above)

    return CutTable(weights)


def below_exp(
    proposed: NDArray[np.float64],
    exponent: Callable[[int], Fraction | Enclosure],
    bits: Bits,
    doubt: NDArray[np.float64] | None = None,
) -> NDArray[np.bool_]:
    """For each i, True with probability exp(-x_i): x_i = exponent(i) exactly, ``proposed[i]`` in floating point.

    A uniform number whose first 64 digits are a word is compared with exp(-proposed). Only where the two are
    closer than the doubt is the exact exponent asked, with as many more digits as it takes. An exponent that is
    not rational is given as a function of a number of bits that encloses it more and more closely.
    """
    words = bits.words(len(proposed))
    difference = words.astype(np.float64) * 2.0**-WORD - np.exp(-proposed)
    kept: NDArray[np.bool_] = difference < 0
    for index in np.flatnonzero(np.abs(difference) <= (_FLOAT_DOUBT if doubt is None else doubt)):
        kept[index] = settle_below_exp(int(words[index]), exponent(int(index)), bits)
    return kept


def settle_below_exp(word: int, x: Fraction | Enclosure, bits: Bits) -> bool:
    """Whether the uniform number that begins with ``word`` lies below exp(-x), with as many more digits as it takes."""
    digits, length = word, WORD
    while True:
        low, high = exp_bounds(x, length) if isinstance(x, Fraction) else exp_enclosure(*x(length), length)
        if digits < low:
            return True
        if digits >= high:
            return False
        digits, length = digits << WORD | int(bits.words(1)[0]), length + WORD


def exp_enclosure(low: Fraction, high: Fraction, bits: int) -> tuple[int, int]:
    """Integers around 2**bits * exp(-x) for every x >= 0 between ``low`` and ``high``."""
    return exp_bounds(max(high, Fraction(0)), bits)[0], exp_bounds(max(low, Fraction(0)), bits)[1]


class TruncatedGeometrics:
    """P(k) proportional to exp(-rate k) on {0..t} for stages t = 1, …, ``stages``, drawn row after row.

    A stage uses the table of the next larger size in a short list and draws again what exceeds t: the law that is left
    is the truncated one. Sizes are exact up to 16 and then eight to an octave, so a draw is rarely repeated. A stage of
    more than 1024 outcomes draws two independent digits to the base 1024, so that the tables stay small for any number
    of stages.
    """

    def __init__(self, rate: Fraction, stages: int) -> None:
        whole = range(2, stages + 2)  # how many outcomes each stage has
        sizes = [(size <= _BASE, _stage_size(size if size <= _BASE else -(-size // _BASE))) for size in whole]
        self._low = CutTable(geometric_weights(rate, _BASE)) if stages >= _BASE else None
        tables = {
            (plain, size): CutTable(geometric_weights(rate if plain else rate * _BASE, size))
            for plain, size in sorted(set(sizes))
        }
        flat = [self._low, *tables.values()] if self._low else list(tables.values())
        lengths = [len(table.cuts) for table in flat]
        offsets = np.cumsum([0, *lengths])[len(flat) - len(tables) :]
        place = {key: (offset, len(tables[key].cuts)) for key, offset in zip(tables, offsets, strict=False)}
        self.tables = [tables[size] for size in sizes]
        self._arrays = (
            _BASE,
            len(self._low.cuts) if self._low else 0,
            np.array([place[size][0] for size in sizes], dtype=np.int64),
            np.array([place[size][1] for size in sizes], dtype=np.int64),
            np.concatenate([table.cuts for table in flat]),
            np.concatenate([table.guide for table in flat]),
        )

    def sample(self, rows: int, bits: Bits) -> NDArray[np.int32]:
        """A rows x stages matrix of independent draws; column s holds stage t = s + 1."""
        from rankdp.privacy.noise_kernels import look_up_stages

        stages = len(self.tables)
        draws = np.empty(rows * stages, dtype=np.int32)
        done = 0
        while done < len(draws):
            left = (len(draws) - done) * (2 if self._low else 1)
            words = bits.words(left + left // 16 + 16)
            used = 0
            while True:
                done, step, undecided = look_up_stages(words[used:], draws, done, *self._arrays)
                used += step
                if not undecided:
                    break
                stage = done % stages
                cell, used = self.tables[stage].decide(int(words[used]), bits), used + 1
                if self._low and stage + 2 > _BASE:
                    cell, used = cell * _BASE + self._low.decide(int(words[used]), bits), used + 1
                if cell <= stage + 1:
                    draws[done] = cell
                    done += 1
        return draws.reshape(rows, stages)


def _stage_size(size: int) -> int:
    """The table size that serves a stage of ``size`` outcomes."""
    step = 1 << max(0, (size - 1).bit_length() - 4)
    return -(-size // step) * step
