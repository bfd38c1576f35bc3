"""Noisy ranks: Laplace noise on the ranks, then sorted, with nearly half the noise of the paper's Laplace mechanism.

Add Laplace noise of scale b = m/eps to each rank and sort.

Proof of eps: an order does not change when all noisy ranks move by the same amount, so the log-ratio of two rankings is
at most the smallest l1 distance between their ranks over all common shifts, divided by b. Let an item move back by g
places, so that those it passes come forward by one: 2g in l1. Add 1 to all ranks of the neighbour: now the item has
moved by g+1, those it passed not at all, the m-1-g others by 1, m in l1. (Forward: the same upside down.) So the
log-ratio is at most min(2g, m)/b <= m/b = eps. Over 2(m-1), the distance without a shift (Xu, Lemma 3), this saves a
factor of 2 - 2/m of noise. By enumeration the realised epsilon at small eps is 0.76 eps for three items, 0.95 eps for
five and 0.986 eps for seven: the scale cannot be much smaller.

Exactness: eps is exact and not off by the grid. The noise is discrete Laplace in integers, P(k) proportional to
exp(-abs(k) / (b steps)) for a rank of ``steps`` grid steps, so the ratio at grid points is at most exp(l1 steps / (b
steps)). Equal values are ordered by fair draws. A common shift by one rank is a shift by a whole number of grid steps:
it maps the grid to itself and leaves both the order of values and their ties as they are. The probabilities that are
stated for continuous noise are off by a factor of at most exp(m / (b steps)) = exp(eps / steps), 1 + 6e-8 eps.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from rankdp.mechanisms.rankings.rank_laplace import RankLaplace


class NoisyRanks(RankLaplace):
    """Noise on the ranks, then sort: keeps most of long rankings at small and moderate epsilon."""

    name: ClassVar[str] = "noisy-ranks"

    @property
    def scale(self) -> Fraction:
        """b = m/eps."""
        return self.items / self.epsilon
