"""Noise on the ranks, then sorting: the paper's Laplace mechanism, and noisy ranks with nearly half its noise.

*Laplace* (Xu, Section 3.2), the paper's baseline: add Laplace noise of scale b = 2(m-1)/eps to each rank and sort.
Proof of eps: moving one item changes its own rank by at most m-1 and the ranks of the items it passes by 1 each,
2(m-1) in l1 (Lemma 3); sorting is post-processing. Because only the order is released, the realised epsilon is well
below eps (0.57 eps for three items).

*Noisy ranks*: the same with b = m/eps. Proof of eps: an order does not change when all noisy ranks move by the same
amount, so the log-ratio of two rankings is at most the smallest l1 distance between their ranks over all common shifts,
divided by b. Let an item move back by g places; the items it passes move forward by one: 2g in l1. Add 1 to all ranks
of the neighbour: now the item has moved by g+1, the items it passed by 0 and the m-1-g others by 1, m in l1. (Moving
forward is symmetric.) So the log-ratio is at most min(2g, m)/b <= m/b = eps. The noise is smaller by a factor of
2 - 2/m. By enumeration the realised epsilon at small eps is 0.76 eps for three items, 0.95 eps for five and 0.986 eps
for seven: the scale cannot be much smaller.

Exactness: the grid does not change eps. The noise is discrete Laplace in integers on a grid of 2^24 steps per rank
(fewer for enormous scales), P(k) proportional to exp(-abs(k) / (b steps)), so the ratio at grid points is at most
exp(l1 steps / (b steps)), and equal values are ordered by fair draws. A common shift by one rank is a whole number of
grid steps: it maps the grid to itself and preserves the order of values and their ties. Spreading a grid point
uniformly over its cell shows that every probability stated for continuous noise is off by a factor of at most
exp(m / (b steps)), at most 1 + 6e-8 eps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import upwards
from rankdp.privacy.noise import discrete_laplace, uniform_below
from rankdp.theory import concordance, rank_noise
from rankdp.types import Floats, Longs

_STEPS = 1 << 24
_LARGEST_SCALE = 1 << 55
_LOCAL_UP_TO = 40
_LOCAL_FROM_SCALE = Fraction(1, 8)  # below, probabilities are too small for a float
_SMALLEST_SCALE = Fraction(1, 1024)
_FEW = 400  # positions of a top list times the stretches between two ranks: too few to compile code


class RankLaplace(RankingMechanism):
    """Noise on the ranks, then sort: kept for comparison; ``NoisyRanks`` keeps more of the order everywhere."""

    name: str = "laplace"
    colour: ClassVar[str] = "#CC79A7"
    position_law_up_to: ClassVar[int | None] = 1000
    debiasable: ClassVar[tuple[str, ...]] = ("ranks",)
    # probabilities are slow at large epsilon, positions take O(m^3)
    planned_up_to: ClassVar[Mapping[str, int]] = MappingProxyType({"exact": 20, "overlap": 200})

    @property
    def scale(self) -> Fraction:
        """b = 2(m-1)/eps."""
        return 2 * (self.items - 1) / self.epsilon

    def local_epsilon(self) -> Fraction | float:
        """log P(identity) - log P(reverse) up to 40 items; above, the largest l1 distance over the scale, a bound.

        That distance is floor(m^2/2), of the reversal; its displacements have median 0, so no common shift of all
        ranks makes it smaller. Laplace noise has monotone likelihood ratios, so every adjacent swap away from the
        input makes an output less likely: the identity is the most likely output and the reverse the least. The errors
        of quadrature (1e-11) and the grid (2e-7 eps) are added; the bound is used if it is smaller.
        """
        bound = (self.items**2 // 2) / self.scale
        if self.items > _LOCAL_UP_TO or self.scale < _LOCAL_FROM_SCALE:
            return bound
        identity = np.arange(self.items, dtype=np.int32)
        best, worst = self._log_prob(np.stack([identity, identity[::-1]]))
        computed = upwards(float(best - worst) + 2e-7 * float(self.epsilon) + 1e-11)
        return computed if computed < bound else bound

    def _stretches(self) -> int:
        """How many parts, none longer than the scale, the quadrature makes of the interval between two ranks."""
        if self.scale < _SMALLEST_SCALE:
            raise Unsupported(
                f"probabilities of the {self.name} mechanism are computed for a scale of at least {_SMALLEST_SCALE}, "
                f"got {float(self.scale):g} ({self.items} items, epsilon {float(self.epsilon):g})"
            )
        return math.ceil(1 / self.scale)

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        steps = _STEPS
        while steps > 1 and self.scale * steps > _LARGEST_SCALE:
            steps >>= 1
        noise = discrete_laplace(self.scale * steps, orders.size, bits).reshape(orders.shape)
        noise += np.arange(self.items) * steps
        places = np.argsort(noise, axis=1)
        values = np.take_along_axis(noise, places, axis=1)
        for row in np.flatnonzero((values[:, 1:] == values[:, :-1]).any(axis=1)):
            _shuffle_ties(places[row], values[row], bits)
        out[:] = np.take_along_axis(orders, places, axis=1)

    def _log_prob(self, relative: Orders) -> Floats:
        """P(X_s[0] < X_s[1] < …) for independent Laplace X_i around i."""
        return rank_noise.log_probabilities(relative, float(self.scale), self._stretches())

    def _keep(self, i: int, j: int) -> float:
        """By gap (proof of Lemma 4): 1 - (1/2 + a/4) exp(-a), a = gap/b."""
        return float(concordance.laplace_keep(np.array([j - i]), float(self.scale))[0])

    def expected_concordance(self) -> float:
        """The mean over all pairs."""
        return concordance.average_over_gaps(self.items, lambda gaps: concordance.laplace_keep(gaps, float(self.scale)))

    def position_matrix(self) -> Floats:
        """By quadrature, to at least ten decimals; at most O(m^3)."""
        return self._position_matrix.copy()

    def top_block(self, k: int) -> Floats:
        """As ``position_matrix``, for the first k positions only; without compiled code if they are few."""
        if k * self._stretches() > _FEW:
            return super().top_block(k)
        return rank_noise.top_block(self.items, float(self.scale), self._stretches(), k)

    @cached_property
    def _position_matrix(self) -> Floats:
        return rank_noise.position_matrix(self.items, float(self.scale), self._stretches())


class NoisyRanks(RankLaplace):
    """Noise on the ranks, then sort: keeps most of long rankings at small and moderate epsilon."""

    name: str = "noisy-ranks"
    colour: ClassVar[str] = "#E69F00"

    @property
    def scale(self) -> Fraction:
        """b = m/eps."""
        return self.items / self.epsilon


def _shuffle_ties(places: Longs, values: Longs, bits: Bits) -> None:
    """Put equal values in uniformly random order, in place, regardless of how sorting left them."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1), len(values)]
    for start, stop in itertools.pairwise(edges):
        places[start:stop].sort()
        for last in range(stop - 1, start, -1):
            other = start + int(uniform_below(last - start + 1, 1, bits)[0])
            places[[last, other]] = places[[other, last]]
