"""Whole numbers counted from comparisons, with exact integer noise: what wins, differences and designs share.

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

    @staticmethod
    def counted(counts: PairCounts) -> Longs:
        """The secret vector."""
        raise NotImplementedError

    @property
    def l1(self) -> int:
        """How far neighbours' counts can be apart in l1."""
        raise NotImplementedError

    @property
    def l2_squared(self) -> int:
        """How far in squared l2."""
        raise NotImplementedError

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
