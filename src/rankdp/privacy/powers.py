"""Exact draws from the generalised normal law on the integers: P(j) proportional to ``exp(-rate (|j|/scale)^p)``.

p = 1 is discrete Laplace noise and p = 2 discrete Gaussian noise. Every p > 0 is drawn in the same way, for rational
p, rate and scale. Write ``w(j) = rate (|j|/scale)^p``.

- The magnitudes 1, 2, 3, … are cut into bins of 2^s neighbours, eight bins per octave. w grows with the magnitude, so
  a bin that starts at b has a weight of at most ``2 2^s exp(-w(b))``, both signs together. A bin is drawn by that
  envelope from cut points (see ``cut_tables``), a member of it evenly by s random digits and the sign by one more.
- A member m of the bin is kept with probability ``exp(-(w(m) - w(b)))``; otherwise everything is drawn again. The draws
  that are kept, nine in ten, have exactly the law above.

x^p is usually irrational. ``power_bounds`` encloses it between rationals, as closely as a decision requires:
``decimal`` rounds logarithms and exponentials correctly, so one unit outwards is enough.

The tail beyond any bin that is listed: from 2^E on, octave e weighs at most ``2^(e+1) exp(-w(2^e))``. Each octave is at
most half of the one before as soon as ``w(2^E) p >= 2``, because ``w(2^(e+1)) - w(2^e) >= w(2^E) p log 2``. So all of
them weigh at most ``2^(E+2) exp(-w(2^E))``.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import WORD, CutTable, Weights
from rankdp.privacy.exact import exp_enclosure
from rankdp.types import Flags, Floats, Longs

#: bounds of a real number, at most 2**-bits apart
Enclosure: TypeAlias = Callable[[int], tuple[Fraction, Fraction]]

#: larger magnitudes are released as this one
LARGEST = 1 << 62

_PER_OCTAVE = 8
_FAR = _PER_OCTAVE * 60  # the first bin beyond LARGEST: 8 << 59
_GUARD = 24  # extra bits, so that thousands of bins may each be off by a unit


def power_bounds(x: Fraction, p: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals around x^p, at most 2**-bits apart, for x >= 0 and p > 0."""
    if p.denominator == 1 or x in (0, 1):
        exact = x**p.numerator if p.denominator == 1 else x
        return exact, exact
    tens = float(p) * (math.log10(x.numerator) - math.log10(x.denominator))  # how many digits x^p has
    digits = bits * 302 // 1000 + 24 + max(0, math.ceil(tens)) + len(str(math.ceil(p)))
    with decimal.localcontext(decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)) as context:
        ends = []
        for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING):
            context.rounding = rounding
            base = Decimal(x.numerator) / Decimal(x.denominator)
            logarithm = _outwards(base.ln(context), rounding)
            exponent = logarithm * Decimal(p.numerator) / Decimal(p.denominator)
            ends.append(Fraction(_outwards(exponent.exp(context), rounding)))
    return max(Fraction(0), ends[0]), ends[1]


def _outwards(value: Decimal, rounding: str) -> Decimal:
    """One unit in the last place down or up: ``decimal`` rounds ln and exp half-even whatever the context says."""
    return value.next_minus() if rounding == decimal.ROUND_FLOOR else value.next_plus()


@dataclass(frozen=True)
class PowerLaw:
    """The law ``exp(-rate (|j|/scale)^p)`` on all integers, for rational numbers above 0."""

    p: Fraction
    rate: Fraction
    scale: Fraction

    def exponent(self, magnitude: int, bits: int) -> tuple[Fraction, Fraction]:
        """Rationals around w(magnitude), at most 2**-bits apart."""
        sharper = bits + math.ceil(self.rate).bit_length()
        low, high = power_bounds(magnitude / self.scale, self.p, sharper)
        return self.rate * low, self.rate * high

    def sample(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws; magnitudes above 2^62 become 2^62."""
        table, starts, float_exponents = _bins(self)
        drawn = np.empty(count, dtype=np.int64)
        pending = np.arange(count)
        while len(pending):
            bins = table.sample(len(pending), bits)
            words = bits.words(len(pending))
            far = [(index, int(bins[index])) for index in np.flatnonzero(bins >= _FAR).tolist()]
            bins[bins >= _FAR] = 0
            shifts = np.maximum(bins // _PER_OCTAVE - 1, 0).astype(np.uint64)
            inside = words & ((np.uint64(1) << shifts) - np.uint64(1))
            magnitudes = starts[bins] + inside.astype(np.int64)
            kept = self._keep(bins, starts[bins], magnitudes, float_exponents, bits)
            for index, cell in far:
                magnitudes[index], kept[index] = LARGEST, self._keep_far(cell, bits)
            drawn[pending[kept]] = np.where(words >> np.uint64(WORD - 1), -magnitudes, magnitudes)[kept]
            pending = pending[~kept]
        return drawn

    def _keep(self, bins: Longs, starts: Longs, magnitudes: Longs, float_exponents: Floats, bits: Bits) -> Flags:
        """True with probability exp(-(w(m) - w(b))).

        m/scale and p are off by 2^-52 and the power is good to four units, so the float w is off by less than (4 + 3 p
        + p log(m/scale)) 2^-52 of itself, and log(m/scale) is below 64: far below the doubt.
        """
        w = self._float_exponents(magnitudes)
        doubt = 2.0**-36 + w * (float(self.p) + 1) * 2.0**-44
        return below_exp(
            np.maximum(w - float_exponents[bins], 0),
            doubt,
            lambda index: self._excess(int(magnitudes[index]), int(starts[index])),
            bits,
        )

    def _float_exponents(self, magnitudes: Longs) -> Floats:
        """w in floating point; on overflow, a number so large that its doubt is large as well."""
        with np.errstate(over="ignore"):
            w = float(self.rate) * (magnitudes / (float(self.scale) or math.ulp(0.0))) ** float(self.p)
        return np.asarray(np.minimum(w, 1e280))

    def _excess(self, magnitude: int, start: int) -> Enclosure:
        """w(magnitude) - w(start)."""

        def enclosure(precision: int) -> tuple[Fraction, Fraction]:
            if magnitude == start:
                return Fraction(0), Fraction(0)
            low, high = self.exponent(magnitude, precision + 2)
            low_start, high_start = self.exponent(start, precision + 2)
            return low - high_start, high - low_start

        return enclosure

    def _keep_far(self, cell: int, bits: Bits) -> bool:
        """Whether a draw from a bin beyond 2^62 is kept, in Python's long integers."""
        start, shift = bin_start(cell)
        inside = 0
        for _ in range(-(-shift // WORD)):
            inside = inside << WORD | int(bits.words(1)[0])
        magnitude = start + inside % (1 << shift)
        return settle_below_exp(int(bits.words(1)[0]), self._excess(magnitude, start), bits)


def below_exp(proposed: Floats, doubt: Floats, exponent: Callable[[int], Enclosure], bits: Bits) -> Flags:
    """For each i, True with probability exp(-x_i): x_i = exponent(i) exactly, ``proposed[i]`` in floating point.

    A uniform number whose first 64 digits are a word is compared with exp(-proposed). Only where the two are closer
    than the doubt is the exact exponent used, with as many more digits as it takes.
    """
    words = bits.words(len(proposed))
    difference = words.astype(np.float64) * 2.0**-WORD - np.exp(-proposed)
    kept: Flags = difference < 0
    for index in np.flatnonzero(np.abs(difference) <= doubt):
        kept[index] = settle_below_exp(int(words[index]), exponent(int(index)), bits)
    return kept


def settle_below_exp(word: int, x: Enclosure, bits: Bits) -> bool:
    """Whether the uniform number that begins with ``word`` lies below exp(-x), with as many more digits as it takes."""
    digits, length = word, WORD
    while True:
        low, high = exp_enclosure(*x(length), length)
        if digits < low:
            return True
        if digits >= high:
            return False
        digits, length = digits << WORD | int(bits.words(1)[0]), length + WORD


def bin_start(cell: int) -> tuple[int, int]:
    """The smallest magnitude in a bin, and the logarithm of how many there are."""
    if cell < _PER_OCTAVE:
        return cell, 0
    shift = cell // _PER_OCTAVE - 1
    return (_PER_OCTAVE + cell % _PER_OCTAVE) << shift, shift


@lru_cache(maxsize=32)
def _bins(law: PowerLaw) -> tuple[CutTable, Longs, Floats]:
    """The law of the bins; and for bins below 2^62, where they start and w there in floating point."""
    starts = np.array([bin_start(cell)[0] for cell in range(_FAR)], dtype=np.int64)
    return CutTable(bin_weights(law)), starts, law._float_exponents(starts)


def bin_weights(law: PowerLaw) -> Callable[[int], Weights]:
    """Enclosures of the envelope: 1 for the magnitude 0, ``2 2^s exp(-w(start))`` for every other bin."""

    def weights(bits: int) -> Weights:
        precision = bits + _GUARD
        lows, highs = [1 << precision], [1 << precision]
        while True:
            cell = len(lows)
            start, shift = bin_start(cell)
            scaled = precision + shift + 1
            exponent = law.exponent(start, scaled)
            if cell % _PER_OCTAVE == 0 and exponent[0] * law.p >= 2:
                above = exp_enclosure(*exponent, precision + start.bit_length() + 1)[1]
                if above <= sum(lows) >> bits:
                    return Weights(lows, highs, above=above)
            low, high = exp_enclosure(*exponent, scaled)
            lows.append(low)
            highs.append(high)

    return weights
