"""Whole numbers from which any program draws ``reinsertion`` and ``tiers``: in a browser, say, without this library.

A program that can draw a uniform whole number below another one needs nothing else. For a ranking of m items:

1. take a row ``sizes`` of ``shapes`` at random, each with the same probability (its number is public);
2. for every tier b draw r_b from 0..sizes[b], with weights ``left[sizes[b]]``; let j = m - r_1 - … - r_B; begin step 2
   again unless a uniform number below ``whole`` is below ``accepted[j]``;
3. take out m - j items at random, every set alike, and bring them into random order. Of the others, in the order of the
   ranking, the first sizes[1] - r_1 go to tier 1, the next sizes[2] - r_2 to tier 2, and so on; those that were taken
   out fill what is left;
4. bring each tier into random order; the tiers one after the other are the synthetic ranking.

Every weight is a real number rounded down to a whole one of at least ``bits`` binary digits. No draw is left undecided:
the rounded law itself is what is private. Proof: it is that of ``tiers``, where P(output) is a sum over (r_1..r_B) of a
product of B + 1 weights. Each is off by a factor between 1 - 2^(1-bits) and 1, so the ratio of two outputs is off by at
most (1 - 2^(1-bits))^-(B+1) <= exp((B+1) 2^(2-bits)). The tables are made for epsilon (1 - 2^-64), and ``bits`` is such
that this factor is at most exp(2^-64 epsilon).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.tiers import TierSums, calibrated
from rankdp.theory.tier_laws import TierLaw, reach

_SPARE = 64  # epsilon is cut by 2^-64 of itself
_MEAN_BITS = 12  # of the mean number of places left: any number serves


def client_tables(mechanism: RankingMechanism) -> dict[str, Any]:
    """The tables by which a client draws from a mechanism (see the module for the rule).

    Parameters
    ----------
    mechanism
        ``reinsertion`` or ``tiers``, for any number of items and epsilon.

    Returns
    -------
    dict
        ``mechanism``, ``items`` and ``epsilon`` (an exact text) say what it is; ``shapes``, ``left``, ``accepted``,
        ``whole`` and ``bits`` are the tables, in whole numbers. They are longer than a double can hold: write them as
        text where they go through JSON.
    """
    if not isinstance(mechanism, TierSums) or mechanism.drop:
        raise Unsupported(f"clients draw from reinsertion and tiers, not from the {mechanism.name} mechanism")
    shapes, m = [mechanism.sizes], mechanism.items
    weight = calibrated(mechanism.epsilon * (1 - Fraction(1, 1 << _SPARE)), max(map(reach, shapes)))
    factors = 1 + max(map(len, shapes))
    bits = _SPARE + 2 + math.ceil(factors / mechanism.epsilon).bit_length()
    law = TierLaw(shapes[0], math.log(weight.numerator) - math.log(weight.denominator))
    mean = _short(law.typical / weight)
    left = {size: _rounded(mean, size, bits) for shape in shapes for size in shape}
    accepted = _rounded(weight * mean, m, bits)
    return {
        "mechanism": mechanism.name,
        "items": m,
        "epsilon": str(mechanism.epsilon),
        "shapes": [list(shape) for shape in shapes],
        "left": left,
        "accepted": accepted,
        "whole": max(accepted),
        "bits": bits,
    }


def _short(mean: Fraction) -> Fraction:
    """A number with few digits, near this one."""
    unit = Fraction(2) ** (_MEAN_BITS + mean.denominator.bit_length() - mean.numerator.bit_length())
    return math.ceil(mean * unit) / unit


def _rounded(mean: Fraction, last: int, bits: int) -> list[int]:
    """Poisson weights mean^k / k! of k = 0..last, multiplied by a power of two and rounded down to ``bits`` or more."""
    weights = [Fraction(1)]
    for k in range(1, last + 1):
        weights.append(weights[-1] * mean / k)
    smallest = min(weights)
    scale = Fraction(2) ** (bits + smallest.denominator.bit_length() - smallest.numerator.bit_length())
    return [math.floor(part * scale) for part in weights]
