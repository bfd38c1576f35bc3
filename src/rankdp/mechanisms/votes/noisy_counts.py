"""Whole numbers counted from comparisons, with exact integer noise: wins, pairs, residuals, and degrees.

Wins (Cai, Algorithm 2) rank items by themselves, and are sufficient for the Bradley-Terry model if the design is
public. If the design is hidden, one of these is released (``inference.boards`` turns it into strengths):

- the *table*: the half-wins of every ordered pair, zeros included;
- *differences* D, wins minus losses of every item, and then *residuals* at strengths t0 that are public by then: with
  U_ij = floor(G min(1, exp(t0_j - t0_i))) for a public grid G, a win of i over j adds 2 U_ij to item i and subtracts
  it from item j. An upset counts fully, an expected win less, so that the mean is near 0 if t0 is right, whoever met
  whom.

Sensitivities, when k comparisons are removed and k added (k = 1, or for voters c, the bound on a voter's weights)::

    counts                                                              l1     squared l2
    half-wins: a win is 2, a tie 1 for each side                        4k     8 k^2
    half-wins of ordered pairs                                          4k     8 k^2
    differences                                                         4k     8 k^2
    residuals, G times finer                                            8 G k  32 G^2 k^2
    degrees: comparisons of each item                                   4k     4 k^2
    leads: wins of the first of each pair minus wins of the second  2k     4 k^2

Proof. One comparison adds a vector with entries +1 and -1 (or none) to D: l1 norm at most 2, l2 norm at most sqrt(2).
By the triangle inequality 2k of them move D by at most 4k and 2 sqrt(2) k; reversing k equal votes attains this.
Half-wins: a comparison carries 2, so 2k of them move at most 4k; reversing k equal votes moves 2k in each of two
places. Degrees: the removed comparisons add a non-negative vector of l1 norm 2k with entries of at most k, so of
squared l2 norm at most 2 k^2; so do the added ones, and the inner product of two non-negative vectors only brings them
closer: 4k and 4 k^2. Leads: a comparison adds 1 with a sign to one pair, or nothing, so removed and added ones have l1
and l2 norms of at most k each; reversing k equal votes gives 2k and (2k)^2. Ordered pairs: a comparison adds a
non-negative vector of l1 norm 2 (2 in one cell, or 1 in two), so the removed ones have l1 norm 2k and squared l2 norm
at most 4 k^2, and so do the added ones: 4k and 8 k^2. Residuals: a win adds 2 U_ij to one item and subtracts it from
another, with 0 <= U_ij <= G whatever t0 is, and a tie U_ij - U_ji, of absolute value at most G: l1 norm at most 4G and
l2 norm at most 2 sqrt(2) G. By the triangle inequality 2k of them move at most 8 G k and 4 sqrt(2) G k; reversing k
votes between items of equal t0 attains this. If some rows are not counted, or a voter has fewer than c, fewer
comparisons are removed or added, and all of this holds. It holds for weights that add up to at most k too: the triangle
inequality and the largest entries above hold for weighted sums. Weighted counts, and so sensitivities, are in steps.

Law, delta = 0: counts + independent discrete Laplace noise of scale S/(s eps), S the l1 sensitivity of the counts for
the unit of protection and s their share of the budget. Proof of s eps: P(k)/P(k + v) <= exp(abs(v)
s eps/S) for each coordinate, and the l1 norms of the shifts add up to at most S.

Law, delta > 0: counts + independent discrete Gaussian noise, s rho-zCDP with s rho = D^2/(2 sigma^2), D the l2
sensitivity and rho the largest whose zCDP is (eps, delta)-DP (``privacy.zcdp``).

Counts that are released together, each with its own share, cost the sum of the shares: epsilons add up, and so do rhos.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.central import CentralNoise
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for
from rankdp.types import Floats, Longs

_FINEST = 9  # bits of the grid of residuals: with at most 2^53 half-wins in total, no sum reaches 2^63
_LARGEST = 50  # bits of the scale of their noise, which must stay below 56


class NoisyCounts(CentralNoise[Protection]):
    """Releases a vector of counts. A subclass defines the counts and their sensitivity.

    If comparisons have weights, counts and noise are in steps (``Protection.steps``).

    Parameters
    ----------
    protection, epsilon, delta, share
        As in ``CentralNoise``; with delta 0 the noise is Laplace noise.
    """

    each: ClassVar[tuple[int, int]]
    """The l1 and the squared l2 sensitivity when one comparison is removed and one added, k = 1."""

    def counted(self, counts: PairCounts) -> Longs:
        """The secret vector; refused if the counts and the noise are in different steps."""
        self.protection.check(counts)
        return self._vector(counts)

    def _vector(self, counts: PairCounts) -> Longs:
        raise NotImplementedError

    @property
    def l1(self) -> int:
        """The l1 sensitivity of the counts."""
        return self.each[0] * self.protection.moved

    @property
    def l2_squared(self) -> int:
        """The squared l2 sensitivity of the counts."""
        return self.each[1] * self.protection.moved**2

    @property
    def scale(self) -> Fraction:
        """The discrete Laplace scale, in steps."""
        return self.l1 * self.protection.steps / (self.epsilon * self.share)

    @property
    def sigma(self) -> Fraction:
        """The discrete Gaussian standard deviation, in steps, rounded up."""
        assert self.rho is not None
        return deviation_for(self.l2_squared * self.protection.steps**2, self.rho * self.share)

    @property
    def count_variance(self) -> float:
        """The variance of the noise on one count."""
        steps = self.protection.steps
        if self.rho is not None:
            return float(self.sigma / steps) ** 2
        r = math.exp(-1 / self.scale)
        return 2 * r / (1 - r) ** 2 / steps**2

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of the noise, in steps."""
        return math.sqrt(self.count_variance) * self.protection.steps

    @property
    def noise_variance(self) -> float:
        """That variance on the scale in which the counts are published."""
        return self.count_variance

    @property
    def parameters(self) -> dict[str, float]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variance": self.noise_variance, **gaussian}

    def noise(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws of the noise, in steps."""
        if self.rho is not None:
            return discrete_gaussian(self.sigma, count, bits)
        return discrete_laplace(self.scale, count, bits)

    def sample(self, counts: Longs, bits: Bits) -> Longs:
        """The noisy counts in steps: integers, possibly negative."""
        return counts + self.noise(len(counts), bits)

    def released(self, counts: Longs, bits: Bits) -> Floats:
        """The noisy counts in comparisons."""
        return self.sample(counts, bits) / self.protection.steps

    def likely_noise(self, count: int, bits: Bits) -> Floats:
        """``count`` draws of the noise in comparisons, for intervals."""
        return self.noise(count, bits) / self.protection.steps


class NoisyWins(NoisyCounts):
    """Releases the half-wins of every item."""

    each = 4, 8

    def _vector(self, counts: PairCounts) -> Longs:
        """Each item's half-wins."""
        return counts.half_wins

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one item's *wins* (half-wins / 2)."""
        return self.count_variance / 4


class NoisyDifferences(NoisyCounts):
    """Releases wins minus losses of every item; ties do not count."""

    each = 4, 8

    def _vector(self, counts: PairCounts) -> Longs:
        """Wins minus losses of each item: half of its half-wins minus half-losses, which differ by an even number."""
        won, lost = counts.records()
        return (won - lost) // 2


class NoisyTable(NoisyCounts):
    """Releases the half-wins of every ordered pair, row by row without the diagonal."""

    each = 4, 8

    def _vector(self, counts: PairCounts) -> Longs:
        """The half-wins of the first item of each ordered pair over the second, 0 for pairs that never met."""
        items = len(counts.items)
        table = np.zeros((items, items), np.int64)
        table[counts.first, counts.second] = counts.half_wins_first
        table[counts.second, counts.first] = counts.half_wins_second
        return table[~np.eye(items, dtype=np.bool_)]

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one cell's *wins* (half-wins / 2)."""
        return self.count_variance / 4


class NoisyResiduals(NoisyCounts):
    """Releases residuals at public strengths.

    Parameters
    ----------
    strengths
        t0.
    protection, epsilon, delta, share
        As in ``NoisyCounts``.
    """

    def __init__(
        self, strengths: Floats, protection: Protection, epsilon: Real, delta: Real = 0, share: Real = 1
    ) -> None:
        super().__init__(protection, epsilon, delta, share)
        coarse = 8 * protection.moved * protection.steps / (self.epsilon * self.share)
        self.grid = 1 << max(0, min(_FINEST, _LARGEST - math.ceil(coarse).bit_length()))
        gaps = np.fmin(strengths[None, :] - strengths[:, None], 0)  # 0 where a strength is no number
        self.credit = np.floor(self.grid * np.exp(gaps)).astype(np.int64)
        """U."""

    @property
    def each(self) -> tuple[int, int]:  # type: ignore[override]
        """The sensitivities of residuals (see the module)."""
        return 8 * self.grid, 32 * self.grid**2

    @property
    def weights(self) -> Floats:
        """What a win of the row's item over the column's adds to a residual: at most 1/2."""
        return np.asarray(self.credit / (2 * self.grid))

    def _vector(self, counts: PairCounts) -> Longs:
        """Each item's residual, in steps of a 4 G-th."""
        first, second = counts.first, counts.second
        moved = (
            counts.half_wins_first * self.credit[first, second] - counts.half_wins_second * self.credit[second, first]
        )
        total = np.zeros(len(counts.items), np.int64)
        np.add.at(total, first, moved)  # exact; bincount would add up floats
        np.subtract.at(total, second, moved)
        return total

    def released(self, counts: Longs, bits: Bits) -> Floats:
        """The noisy residuals, a win counting at most 1/2."""
        return np.asarray(super().released(counts, bits) / (4 * self.grid))

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on a residual."""
        return self.count_variance / (4 * self.grid) ** 2


class NoisyDegrees(NoisyCounts):
    """Releases the number of comparisons of every item."""

    each = 4, 4

    def _vector(self, counts: PairCounts) -> Longs:
        """The number of comparisons of each item."""
        won, lost = counts.records()
        return (won + lost) // 2


class NoisyLeads(NoisyCounts):
    """Releases the lead of the first over the second item of every pair, without ties; for Copeland's rule."""

    each = 2, 4

    def _vector(self, counts: PairCounts) -> Longs:
        """The lead of each pair of items, 0 for pairs that never met."""
        items = len(counts.items)
        table = np.zeros((items, items), np.int64)
        table[counts.first, counts.second] = (counts.half_wins_first - counts.half_wins_second) // 2
        return table[np.triu_indices(items, 1)]
