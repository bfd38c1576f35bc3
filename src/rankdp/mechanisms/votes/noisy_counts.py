"""Whole numbers counted from comparisons, with exact integer noise: wins, differences, and facts of the design.

Wins (Cai, Algorithm 2) rank items by themselves and are sufficient for the Bradley-Terry model once the design is
public. A comparison that i wins over j adds e_i - e_j to the vector D of *differences*, wins less losses, a tie adds 0.
Who was compared with whom moves D only through who won, so D can be fitted with the *expected* number of comparisons of
each pair (``rankers.expected_design``), and an error of that number is of second order. Objective perturbation, which
needs no idea of the design, pays for that with more noise.

Sensitivities, when k comparisons leave and k come (k = 1, or for voters c, the most that a voter's weights add up to)::

    counts                                                              l1  squared l2
    half-wins: a win is 2, a tie 1 for each side                        4k  8 k^2
    differences                                                         4k  8 k^2
    degrees: comparisons of each item                                   4k  4 k^2
    comparisons of each pair, or of each set of pairs                   2k  2 k^2
    leads: of each pair the wins of the first less those of the second  2k  4 k^2

Proof. One comparison adds a vector with entries +1 and -1 (or none) to D: l1 norm at most 2, l2 norm at most sqrt(2).
By the triangle inequality 2k of them move D by at most 4k and 2 sqrt(2) k; k equal votes reversed do. Half-wins: a
comparison carries 2, so that those that leave and come move at most 4k, and at most 2k in each of two places where they
are reversed. Those that leave add a non-negative vector of l1 norm 2k and entries of at most k to the degrees, so of
squared l2 norm at most 2 k^2; so do those that come, and the inner product of two non-negative vectors only brings them
closer: 4k and 4 k^2. In the same way comparisons of pairs, or of disjoint sets of them, add non-negative vectors of l1
norm k, of squared l2 norm at most k^2: 2k and 2 k^2. Leads have the same l1 norms with a sign, so that what leaves and
what comes can add up, as k equal votes that are reversed do: 2k and (2k)^2. Where some rows are not counted, or a voter
has fewer than c, fewer leave or come and all of this holds. It holds for weights that add up to at most k too: the
triangle inequality and the largest entries above are those of weighted sums. Weighed counts, and so sensitivities, are
in steps.

Law, delta = 0: counts + independent discrete Laplace noise of scale S/(s eps), S the l1 sensitivity of the counts for
the unit of protection and s the share of the budget that is spent on them. Proof of s eps: P(k)/P(k + v) <= exp(abs(v)
s eps/S) for each coordinate, and the l1 norms of the shifts add up to at most S.

Law, delta > 0: counts + independent discrete Gaussian noise, s rho-zCDP with s rho = D^2/(2 sigma^2), D the l2
sensitivity and rho the largest whose zCDP is (eps, delta)-DP (``privacy.zcdp``).

Counts that are released together, each with its own share, cost the sum of the shares: epsilons add up, and so do rhos.

*A rough look first* (delta = 0; the idea of Koufogiannis, Han and Pappas' gradual release). Noise of a large scale B is
noise of a small scale b, plus, with probability 1 - p, noise of scale B again: in generating functions

    (1 - R)^2/((1 - R x)(1 - R/x)) = (1 - r)^2/((1 - r x)(1 - r/x)) (p + (1 - p) (1 - R)^2/((1 - R x)(1 - R/x))),

r = exp(-1/b), R = exp(-1/B), p = sinh(1/2B)^2/sinh(1/2b)^2, the ratio of the variances. So the counts may be shown with
noise of scale B, at the small share that B is worth, and if what that says asks for it with noise of scale b: then the
rough look was a function of the fine one and of coins, and both cost the fine one's share. Proof for the rough one
alone, with a rational q <= p in the place of p: it is drawn with probability q/p from the noise of scale B, and else
from that noise with more added, and which of the two has nothing to do with the data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.central import CentralNoise
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.noise import bernoulli, discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for
from rankdp.types import Floats, Longs


class NoisyCounts(CentralNoise[Protection]):
    """Releases a vector of counts. A subclass says which, and how far neighbours' vectors can be apart.

    Where comparisons have weights, counts and noise are in steps (``Protection.steps``).

    Parameters
    ----------
    protection, epsilon, delta, share
        As for ``CentralNoise``; noise is Laplace noise where delta is 0.
    """

    each: ClassVar[tuple[int, int]]
    """The l1 and the squared l2 sensitivity where one comparison leaves and one comes, k = 1."""

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """The secret vector."""
        raise NotImplementedError

    @property
    def l1(self) -> int:
        """How far neighbours' counts can be apart in l1."""
        return self.each[0] * self.protection.moved

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
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
    def noise_variance(self) -> float:
        """That variance in the scale in which the counts are shown."""
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

    def rougher(self, noisy: Longs, share: Real, bits: Bits) -> Longs:
        """A rough look at what ``sample`` has drawn, in steps: alone it costs ``share``, beside the fine one nothing.

        Parameters
        ----------
        noisy
            What ``sample`` has drawn, not released yet.
        share
            The part of epsilon that the rough look may cost, at most that of the fine one.
        bits
            Where the coins and the noise come from.
        """
        part = positive(share, "share")
        if self.rho is not None or part > self.share:
            raise InputError(f"a rough look needs delta 0 and at most a share of {self.share}, got {part}")
        scale = self.scale * self.share / part
        far, near = float(1 / scale), float(1 / self.scale)
        ratio = math.exp(far - near) * (math.expm1(-far) / math.expm1(-near)) ** 2  # p, without the overflow of sinh
        kept = Fraction(math.floor(ratio * (1 - 1e-9) * 2**50), 2**50)
        added = discrete_laplace(scale, len(noisy), bits)
        return np.asarray(noisy + np.where(bernoulli(kept, len(noisy), bits), 0, added))

    def released(self, counts: Longs, bits: Bits) -> Floats:
        """The noisy counts in comparisons."""
        return self.sample(counts, bits) / self.protection.steps

    def likely_noise(self, count: int, bits: Bits) -> Floats:
        """``count`` draws of the noise in comparisons, for intervals."""
        return self.noise(count, bits) / self.protection.steps


class NoisyWins(NoisyCounts):
    """Releases the half-wins of every item."""

    each = 4, 8

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """Each item's half-wins."""
        return counts.half_wins

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one item's *wins* (half-wins / 2)."""
        return self.count_variance / 4


class NoisyDifferences(NoisyCounts):
    """Releases wins less losses of every item, a tie counting for nothing."""

    each = 4, 8

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """Wins less losses of each item: half of its half-wins less half-losses, which differ by an even number."""
        won, lost = counts.records()
        return (won - lost) // 2


class NoisyDegrees(NoisyCounts):
    """Releases how many comparisons every item had."""

    each = 4, 4

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """How many comparisons each item had."""
        won, lost = counts.records()
        return (won + lost) // 2


class NoisyPairs(NoisyCounts):
    """Releases how often every pair was compared, also if never, in the order of ``numpy.triu_indices``.

    The same noise is right for how many comparisons fall into each of several disjoint sets of pairs.
    """

    each = 2, 2

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """The number of each pair of items, 0 for pairs that never met."""
        return _by_pair(counts, counts.halves // 2)


class NoisyLeads(NoisyCounts):
    """Releases the lead of the first over the second of every pair, a tie counting for nothing; for Copeland's rule."""

    each = 2, 4

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """The lead of each pair of items, 0 for pairs that never met."""
        return _by_pair(counts, (counts.half_wins_first - counts.half_wins_second) // 2)


def _by_pair(counts: PairCounts, values: Longs) -> Longs:
    items = len(counts.items)
    table = np.zeros((items, items), np.int64)
    table[counts.first, counts.second] = values
    return table[np.triu_indices(items, 1)]


class NoisyTotal(NoisyCounts):
    """Releases one number: how many comparisons there are, or of pairs in some public set.

    At most k come or go: k and k^2.
    """

    @property
    def l1(self) -> int:
        """How far neighbours' numbers can be apart."""
        return self.protection.moved

    @property
    def l2_squared(self) -> int:
        """The square of that."""
        return self.l1**2
