"""Borda points with noise on each item, as Hay et al. 2017 add it, and with the K-norm noise of Joseph and Yu 2023.

Centred points, items below less items above, move by at most 2 floor(m^2/2) in l1 when a ballot is replaced. Joseph and
Yu protect one ballot that comes or goes, with noise uniform on a cylinder over the permutohedron in m dimensions,
dilated by a gamma number with m + 1 degrees of freedom; for a replaced ballot, which is one that goes and one that
comes, at eps/2.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.votes import Floats, Random
from rankdp.mechanisms.ballots.permutohedron import PermutohedronNoise
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.cube_noise import draw_dilations


def laplace_borda(points: Floats, epsilon: float, runs: int, random: Random) -> Floats:
    """Noisy centred points by run."""
    m = len(points)
    return points + random.laplace(scale=2 * (m * m // 2) / epsilon, size=(runs, m))


def knorm_borda(points: Floats, epsilon: float, runs: int, random: Random) -> Floats:
    """Noisy centred points by run."""
    return points + cylinder(len(points), epsilon / 2, runs, random)


def cylinder(items: int, epsilon: float, runs: int, random: Random) -> Floats:
    """Joseph and Yu's noise for one ballot that comes or goes, in centred points, without its mean."""
    far, seed = PermutohedronNoise(items, "0.0001"), int(random.integers(2**31))
    uniform = far.sample(runs, SeededBits(seed)) / draw_dilations(items - 1, far.rate, runs, SeededBits(seed))[:, None]
    return np.asarray(uniform * random.gamma(items + 1, 1 / epsilon, size=(runs, 1)))
