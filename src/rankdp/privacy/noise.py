"""Exact discrete noise on secure bits: every function draws from exactly the law in its formula.

All of them use cut points (see ``cut_tables``): decisions are made in integer arithmetic. Only ``powers`` proposes in
floating point, and exact arithmetic decides where that could be wrong.

- A geometric variable G with P(k) = (1-r) r^k has independent digits: for any base B, G mod B and G div B are
  independent, the first geometric truncated to {0..B-1}, the second geometric with ratio r^B. So any scale,
  however large, takes a few small tables.
- Discrete Laplace, P(k) proportional to ``exp(-|k|/scale)``: with r = exp(-1/scale) it is G with probability 1/(1+r)
  and -1-G otherwise (memorylessness).
- Discrete Gaussian, P(k) proportional to exp(-k^2 / (2 sigma^2)): the law of ``powers`` with p = 2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.jit import kernel
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import WORD, CutTable, Weights, geometric_weights, integer_weights
from rankdp.privacy.exact import Real, exp_bounds, positive, rational
from rankdp.privacy.powers import PowerLaw
from rankdp.types import Flags, Ints, Longs, Words

_BASE = 1 << 10
_SLOWEST = Fraction(1, 64)  # the smallest rate at which the untruncated table stays small
_HALF = np.uint64(32)
_BUCKETS = 8  # slices of the guide per cut: most hold no cut, so a look-up is one predictable load
_LARGEST_SCALE = 1 << 56  # exp(-2^63 / 2^56) = exp(-128): 64-bit integers hold every draw of practical probability


def _count(count: int) -> int:
    return whole("count", count, 0)


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


def bernoulli(probability: Real, count: int, bits: Bits) -> Flags:
    """True with exactly the given rational probability."""
    exact = rational(probability, "probability")
    if not 0 <= exact <= 1:
        raise InputError(f"probability must be between 0 and 1, got {probability!s}")
    if exact in (0, 1):
        return np.full(_count(count), exact == 1)
    table = CutTable(integer_weights([exact.denominator - exact.numerator, exact.numerator]))
    return table.sample(_count(count), bits).astype(np.bool_)


def bernoulli_exp(x: Real, count: int, bits: Bits) -> Flags:
    """True with probability exp(-x) for a rational x >= 0."""
    exact = _nonnegative(x, "x")

    def weights(precision: int) -> Weights:
        low, high = exp_bounds(exact, precision)
        return Weights([low, (1 << precision) - high], [high, (1 << precision) - low])

    return ~CutTable(weights).sample(_count(count), bits).astype(np.bool_)


def uniform_below(bound: int, count: int, bits: Bits) -> Longs:
    """Uniform integers in {0, …, bound-1}: the top bits of a word, drawn again while they reach the bound."""
    bound = whole("bound", bound, 1, 1 << 63)
    drop = np.uint64(WORD - max(1, (bound - 1).bit_length()))
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


def geometric(rate: Real, count: int, bits: Bits) -> Longs:
    """P(k) = (1 - r) r^k on k >= 0 with r = exp(-rate), for a rational rate > 0."""
    exact = positive(rate, "rate")
    _fits(1 / exact, "1/rate")
    drawn, place = np.zeros(_count(count), dtype=np.int64), 1
    for table in _geometric_digits(exact):
        drawn += table.sample(count, bits) * place
        place *= _BASE
    return drawn


def discrete_laplace(scale: Real, count: int, bits: Bits) -> Longs:
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


def discrete_gaussian(sigma: Real, count: int, bits: Bits) -> Longs:
    """P(k) proportional to exp(-k^2 / (2 sigma^2)) on all integers, for a rational sigma >= 0 (0: no noise)."""
    exact = _fits(_nonnegative(sigma, "sigma"), "sigma")
    if exact == 0:
        return np.zeros(_count(count), dtype=np.int64)
    return PowerLaw(Fraction(2), Fraction(1, 2), exact).sample(_count(count), bits)


class TruncatedGeometrics:
    """P(k) proportional to exp(-rate k) on {0..t} for stages t = 1, …, ``stages``, drawn row after row.

    A stage uses the table of the next larger size in a short list and draws again what exceeds t, which gives the
    truncated law. Sizes are exact up to 16, then there are eight per octave, so a draw is rarely repeated. A stage of
    more than 1024 outcomes draws two independent digits to the base 1024, so that tables stay small for any number of
    stages.
    """

    def __init__(self, rate: Fraction, stages: int) -> None:
        self._low = CutTable(geometric_weights(rate, _BASE)) if stages >= _BASE else None
        outcomes = range(2, stages + 2)
        sizes = [(size <= _BASE, _stage_size(size if size <= _BASE else -(-size // _BASE))) for size in outcomes]
        tables = {
            (plain, size): CutTable(geometric_weights(rate if plain else rate * _BASE, size))
            for plain, size in sorted(set(sizes))
        }
        self.tables = [tables[size] for size in sizes]
        first = self._low.cuts if self._low else np.empty(0, dtype=np.uint64)
        flat = [first, *(table.cuts for table in tables.values())]
        starts = dict(zip(tables, np.cumsum([len(cuts) for cuts in flat]).tolist(), strict=False))
        self._arrays = (
            _BASE,
            len(first),
            np.array([starts[size] for size in sizes], dtype=np.int64),
            np.array([len(table.cuts) for table in self.tables], dtype=np.int64),
            np.concatenate(flat),
            np.concatenate([guide(cuts) for cuts in flat]),
        )

    def sample(self, rows: int, bits: Bits) -> Ints:
        """A rows x stages matrix of independent draws; column s holds stage t = s + 1."""
        stages = len(self.tables)
        draws = np.empty(rows * stages, dtype=np.int32)
        done = 0
        while done < len(draws):
            left = (len(draws) - done) * (2 if self._low else 1)
            words = bits.words(left + left // 16 + 16)
            undecided = True
            while undecided:
                done, used, undecided = look_up_stages(words, draws, done, *self._arrays)
                words = words[used:]
                if undecided:
                    stage = done % stages
                    cell, words = int(self.tables[stage].decide(words[:1], bits)[0]), words[1:]
                    if self._low and stage + 2 > _BASE:
                        cell, words = cell * _BASE + int(self._low.decide(words[:1], bits)[0]), words[1:]
                    if cell <= stage + 1:
                        draws[done] = cell
                        done += 1
        return draws.reshape(rows, stages)


def _stage_size(size: int) -> int:
    """The table size that serves a stage of ``size`` outcomes."""
    step = 1 << max(0, (size - 1).bit_length() - 4)
    return -(-size // step) * step


def guide(cuts: Words) -> Ints:
    """For each of _BUCKETS * len(cuts) equal slices of the words, the number of cuts below the whole slice."""
    size = np.uint64(_BUCKETS * len(cuts))
    smallest = ((np.arange(size, dtype=np.uint64) << _HALF) + size - np.uint64(1)) // size << _HALF
    return np.searchsorted(cuts, smallest).astype(np.int32)


@kernel
def _find(word: Any, start: int, size: int, cuts: Words, guides: Ints) -> Any:
    """The cell of a word in the table of ``size`` cuts at ``start``, -1 where it equals a cut."""
    bucket = ((word >> _HALF) * np.uint64(_BUCKETS * size)) >> _HALF
    cell = np.int64(guides[_BUCKETS * start + np.int64(bucket)])
    while word >= cuts[start + cell]:
        if word == cuts[start + cell]:
            return -1
        cell += 1
    return cell


@kernel(effort=1.5)
def look_up_stages(
    words: Words,
    draws: Ints,
    done: int,
    base: int,
    low_size: int,
    starts: Longs,
    sizes: Longs,
    cuts: Words,
    guides: Ints,
) -> tuple[int, int, bool]:
    """The loop of ``TruncatedGeometrics``; it stops where a word does not decide.

    Fill ``draws`` from index ``done`` on: draw i belongs to stage i modulo the stages and is at most stage + 1.

    The table of stage s starts at ``starts[s]`` and has ``sizes[s]`` cuts. A stage of more than ``base`` outcomes draws
    two digits: the low one from the table of ``low_size`` cuts at the very beginning (fewer than ``base`` where large
    digits are out of reach), the high one from its own. What exceeds s + 1 is drawn again. Returns the next index, the
    words used before its draw, and whether that draw needs a word that equals a cut point.
    """
    stages = len(starts)
    stage = done % stages
    cursor = 0
    while done < len(draws) and cursor < len(words):
        cell = _find(words[cursor], starts[stage], sizes[stage], cuts, guides)
        used = 1
        if stage + 2 > base:
            if cursor + 2 > len(words):
                break
            low = _find(words[cursor + 1], 0, low_size, cuts, guides)
            cell = -1 if low < 0 or cell < 0 else cell * base + low
            used = 2
        if cell < 0:
            return done, cursor, True
        cursor += used
        if cell <= stage + 1:
            draws[done] = cell
            done += 1
            stage = stage + 1 if stage + 1 < stages else 0
    return done, cursor, False
