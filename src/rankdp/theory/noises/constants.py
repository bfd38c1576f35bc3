"""The noise's part in the expansion of the error probability: moments of the positive parts of noise differences.

V_i = N_(i+1) - N_i are the differences of neighbours; x+ is max(x, 0). With L(z) = E(N - z)+, M(z) = E(N - z)+^2 and a
noise of variance one, so that E[V+^2] = 1:

* E[V1+ V2+] = E[L(N) L(-N)] for neighbours, which share a noise; for normal noise (sqrt(3)/2 - pi/6)/pi = 0.108998;
* E[V1+^2 V2+] = E[M(-N) L(N)] and E[V1+ V2+ V3+] likewise, from running integrals.

For the uniform ball, moments of degree k are those of the generalised normal times a number (``Ball.degree_factor``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rankdp.theory.noises.radial import Ball, GeneralizedNormal
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.types import Floats

_DEGREES = (1, 2, 2, 3, 3, 3, 3, 3, 3)


class OrderConstants(NamedTuple):
    """E of products of positive parts: neighbours are i, i+1; far is anything further apart."""

    single: float  #: E[V+]
    pair: float  #: E[V1+ V2+]
    far: float  #: E[V1+ V3+]
    cube: float  #: E[V+^3]
    square_pair: float  #: E[V1+^2 V2+]
    square_far: float  #: E[V1+^2 V3+]
    chain: float  #: E[V1+ V2+ V3+]
    pair_single: float  #: E[V1+ V2+ V4+]
    triple: float  #: E[V1+ V3+ V5+]


@lru_cache(maxsize=128)
def order_constants(noise: ScoreNoise) -> OrderConstants:
    """The constants of a noise, to about 1e-8 (1e-6 for a staircase)."""
    if isinstance(noise, Ball) and not noise.independent:
        base = order_constants(GeneralizedNormal(noise.p))
        return OrderConstants(*(value * noise.degree_factor(k) for value, k in zip(base, _DEGREES, strict=True)))
    far = 1.0  # third moments reach as far out
    while far**4 * float(noise.survival(far)) > 1e-14:
        far *= 1.25
    positive = np.geomspace(1e-6, far, 4096)
    edges = np.concatenate([-positive[::-1], [0.0], positive])
    fine, coarse = _moments(noise, edges), _moments(noise, edges[::2])
    pair, cube, square_pair, chain = (float(value) for value in (4 * fine - coarse) / 3)
    single = noise.mean_difference / 2
    return OrderConstants(single, pair, single**2, cube, square_pair, single, chain, pair * single, single**3)


def _moments(noise: ScoreNoise, edges: Floats) -> Floats:
    """(pair, cube, square_pair, chain) on these edges, with an error of the second order in their width."""
    width = np.diff(edges)
    mass = np.where(edges[1:] < 0, np.diff(noise.cdf(edges)), -np.diff(noise.survival(edges)))

    def above(values: Floats) -> Floats:
        """The integral of values from each edge upwards."""
        cells = (values[1:] + values[:-1]) / 2 * width
        return np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]])

    def running(values: Floats) -> Floats:
        """E[values; N < edge]."""
        return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2 * mass)])

    excess = noise.excess(edges)
    square = 2 * above(excess)
    cube = 3 * above(square)
    mirrored = excess[::-1]
    lower, first = running(mirrored), running(edges * mirrored)
    products = (excess * mirrored, cube, square[::-1] * excess, excess * (edges * lower - first))
    return np.array([float(running(product)[-1]) for product in products])
