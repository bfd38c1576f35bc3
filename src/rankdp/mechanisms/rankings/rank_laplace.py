"""The Laplace mechanism on ranks (Xu, Section 3.2): the paper's baseline, released as a ranking.

Add Laplace noise of scale b = 2(m-1)/eps to each rank and sort.

Proof of eps: moving one item changes its own rank by at most m-1 and the ranks of those it passes by 1 each,
2(m-1) in l1 (Lemma 3); sorting is post-processing. Because only the order is released, the realised epsilon
is well below eps (0.57 eps for three items), and nearly half the noise is enough: see ``noisy_ranks``.

Exactness: the noise is discrete Laplace on a grid of 2^24 steps per rank (fewer for enormous scales), in
integers, and equal values are ordered by fair draws. Spreading a grid point evenly over its cell shows that
every probability stated here for continuous noise is off by a factor of at most exp(m / (b steps)) = exp(eps
m / (2 (m-1) steps)), at most 1 + 6e-8 eps.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import upwards
from rankdp.privacy.noise import discrete_laplace, uniform_below
from rankdp.theory import concordance

_STEPS = 1 << 24
_LARGEST_SCALE = 1 << 55
_NODES = 24  # of Chebyshev quadrature on a stretch no longer than the scale: full double precision
_LOCAL_UP_TO = 40
_LOCAL_FROM_SCALE = Fraction(1, 8)  # below, probabilities fall out of a float's range
_SMALLEST_SCALE = Fraction(1, 1024)
_FEW = 400  # positions of a top list, times the stretches between two ranks


class RankLaplace(RankingMechanism):
    """Noise on the ranks, then sort: kept for comparison; ``NoisyRanks`` keeps more of the order everywhere."""

    name: ClassVar[str] = "laplace"
    position_law_up_to: ClassVar[int | None] = 1000

    @property
    def scale(self) -> Fraction:
        """b = 2(m-1)/eps."""
        return 2 * (self.items - 1) / self.epsilon

    def local_epsilon(self) -> Fraction | float:
        """log P(identity) - log P(reverse) up to 40 items; above, the largest l1 distance over the scale, a bound.

        That distance is floor(m^2/2), of the reversal; its displacements have median 0, so no common shift of all
        ranks makes it smaller. Laplace noise has monotone likelihood ratios, so every adjacent swap away from the
        input makes an output less likely: the identity is the most likely output and the reverse the least. What
        quadrature (1e-11) and the grid (2e-7 eps) can be off is added; the bound is taken where it is the smaller.
        """
        bound = (self.items**2 // 2) / self.scale
        if self.items > _LOCAL_UP_TO or self.scale < _LOCAL_FROM_SCALE:
            return bound
        identity = np.arange(self.items, dtype=np.int32)
        best, worst = self._log_prob(np.stack([identity, identity[::-1]]))
        computed = upwards(float(best - worst) + 2e-7 * float(self.epsilon) + 1e-11)
        return computed if computed < bound else bound

    def _stretches(self) -> int:
        """Into how many parts no longer than the scale the quadrature cuts the space between two ranks."""
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

    def _log_prob(self, relative: Orders) -> NDArray[np.float64]:
        """P(X_s[0] < X_s[1] < …) for independent Laplace X_i around i, by integrating item after item.

        H_k(x) = P(the first k are in order and below x) obeys H_k' = f_k H_(k-1). All densities are
        exponentials outside [0, m-1], where the integrals are elementary; inside, between breakpoints, they
        are smooth and Chebyshev integration is exact to rounding.
        """
        b = float(self.scale)
        rows, m = relative.shape
        stretches = self._stretches()
        node, integrate = _chebyshev_integration(_NODES)
        order = np.arange(m + 1)
        log_factorial = np.array([math.lgamma(k + 1) for k in order])
        below = np.concatenate([np.zeros((rows, 1)), np.cumsum(math.log(0.5) - relative / b, axis=1)], axis=1)
        reached = np.exp(below - log_factorial)  # H_k(0)
        for start in np.arange((m - 1) * stretches) / stretches:
            x = start + (node + 1) / (2 * stretches)
            previous = np.ones((rows, _NODES))
            ahead = np.empty_like(reached)
            ahead[:, 0] = 1
            for k in range(1, m + 1):
                density = np.exp(-np.abs(x - relative[:, k - 1 : k]) / b) / (2 * b)
                previous = reached[:, k : k + 1] + (density * previous) @ integrate.T / (2 * stretches)
                ahead[:, k] = previous[:, -1]
            reached = ahead
        tail = np.cumsum((math.log(0.5) - (m - 1 - relative) / b)[:, ::-1], axis=1)[:, ::-1]
        above = np.concatenate([tail, np.zeros((rows, 1))], axis=1) - log_factorial[::-1]
        return np.asarray(np.log(np.sum(reached * np.exp(above), axis=1)))

    def keep_probability(self, i: int, j: int) -> float:
        """By gap (proof of Lemma 4): 1 - (1/2 + a/4) exp(-a), a = gap/b."""
        i, j = self._positions(i, j)
        return float(concordance.laplace_keep(np.array([j - i]), float(self.scale))[0])

    def expected_concordance(self) -> float:
        """The same, averaged over all pairs."""
        return concordance.average_over_gaps(self.items, lambda gaps: concordance.laplace_keep(gaps, float(self.scale)))

    def position_matrix(self) -> NDArray[np.float64]:
        """By quadrature, to at least ten digits behind the point; O(m^3) and less."""
        return self._position_matrix.copy()

    def top_block(self, k: int) -> NDArray[np.float64]:
        """The same for the first k positions alone, without compiled code where they are few."""
        if k * self._stretches() > _FEW:
            return super().top_block(k)
        from rankdp.mechanisms.rankings.noisy_positions import top_block

        return top_block(self.items, float(self.scale), self._stretches(), k)

    @cached_property
    def _position_matrix(self) -> NDArray[np.float64]:
        from rankdp.mechanisms.rankings.noisy_positions import position_matrix

        return position_matrix(self.items, float(self.scale), self._stretches())


def _shuffle_ties(places: NDArray[np.int64], values: NDArray[np.int64], bits: Bits) -> None:
    """Put equal values in uniformly random order, in place, whatever order sorting left them in."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1), len(values)]
    for start, stop in itertools.pairwise(edges):
        places[start:stop].sort()
        for last in range(stop - 1, start, -1):
            other = start + int(uniform_below(last - start + 1, 1, bits)[0])
            places[[last, other]] = places[[other, last]]


def _chebyshev_integration(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes on [-1, 1] (the last is 1) and the matrix that maps values there to integrals from -1 to each node."""
    from numpy.polynomial import chebyshev

    node = -np.cos(np.pi * np.arange(count) / (count - 1))
    coefficients = np.linalg.inv(chebyshev.chebvander(node, count - 1))
    integrals = chebyshev.chebint(coefficients, lbnd=-1, axis=0)
    return np.asarray(node), np.asarray(chebyshev.chebvander(node, count) @ integrals, dtype=np.float64)
