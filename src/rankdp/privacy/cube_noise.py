"""Exact noise for a few numbers that one person moves all at once, each by a bounded amount.

Law on Z^d: P(v) proportional to exp(-max|v_i| / scale), the K-norm mechanism of the cube (Hardt, Talwar 2010). A change
of at most S in every coordinate costs S/scale, where independent Laplace noise would cost d S/scale. With d = 1 it is
the discrete Laplace law; a coordinate's variance is about scale^2 (d+1)(d+2)/3.

Sampling. With r = exp(-1/scale), draw n >= 0 with weight r^n (2n+1)^d and then v uniformly from the (2n+1)^d points of
the cube [-n, n]^d: P(v) is proportional to the sum of r^n over n >= max|v_i|, as it should. Now n is proposed as the
sum of d+1 geometric variables, which has weight r^n (n+1)...(n+d), and accepted with the probability

    prod over i = 1..d of (2n+1) / (2(n+i)),

a rational number of at most 1. Everything is integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.noise import bernoulli, geometric, uniform_below
from rankdp.types import Longs


def discrete_cube(scale: Real, dimensions: int, bits: Bits) -> Longs:
    """One draw of P(v) proportional to exp(-max|v_i| / scale) on whole numbers.

    Parameters
    ----------
    scale
        A rational above 0.
    dimensions
        d, at least 1.
    bits
        Where the draw comes from.
    """
    rate = 1 / positive(scale, "scale")
    whole("dimensions", dimensions, 1)
    while True:
        n = int(geometric(rate, dimensions + 1, bits).sum())
        over = math.prod(2 * (n + i) for i in range(1, dimensions + 1))
        if bernoulli(Fraction((2 * n + 1) ** dimensions, over), 1, bits)[0]:
            return uniform_below(2 * n + 1, dimensions, bits) - np.int64(n)


def cube_variance(scale: float, dimensions: int) -> float:
    """The variance of a coordinate, for scales well above 1: scale^2 (d+1)(d+2)/3."""
    return scale**2 * (dimensions + 1) * (dimensions + 2) / 3
