"""Noisy prefixes, lengths and margins of ballots, to which a model of ballots is fitted.

Counts of a table of strict ballots of m candidates, each in whole ballots:

===========  ======================================================  =====================  ===================
part         a ballot adds                                           its l1 and squared l2  share of the budget
===========  ======================================================  =====================  ===================
``first``    1 to the candidate in its first place                   1                      1/5
``second``   1 to its first two places, or its first and "the end"   1                      1/10
``third``    1 to the cell of its first three places                 1                      1/5
``lengths``  1 to the number of candidates that it lists             1                      1/10
``margins``  to each pair 1, -1, or 0 if it lists neither            see ``margins``        2/5
===========  ======================================================  =====================  ===================

Law of the histograms (all but the margins): counts + independent discrete Laplace noise of scale S/(share eps),
S their l1 sensitivity; with delta > 0 discrete Gaussian noise of variance S/(2 share rho), S being squared l2 too.

Proof. One ballot adds 1 to one cell of a histogram. If a ballot is added or removed, l1 and squared l2 are 1; if one is
replaced, two cells change by 1 or none does, and both are at most 2. So a histogram costs its share of eps, or of rho;
so do the margins (``margins``), and the shares add up to 1. All of it is spent when a complete ballot is added, or
replaced by its reverse without the last place. Cells that no ballot can have (a candidate twice, a candidate after the
end) are always 0 and get no noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.data.ballots import Ballots
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.central import CentralNoise
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for
from rankdp.rankers.ballot_model import LEVELS, prefix_cells
from rankdp.types import Flags, Floats, Longs

MOST_CANDIDATES = 50
_PARTS = {"first": 2, "second": 1, "third": 2, "lengths": 1, "margins": 4}


class NoisyPrefixes(CentralNoise[BallotProtection]):
    """Releases the prefixes, lengths and margins of ballots.

    Parameters
    ----------
    candidates
        The number of candidates, from 2 to 50.
    protection
        What is protected.
    epsilon, delta
        For all parts together; with a delta above 0 the noise is Gaussian.
    """

    def __init__(self, candidates: int, protection: BallotProtection, epsilon: Real, delta: Real = 0) -> None:
        super().__init__(protection, epsilon, delta)
        self.candidates = whole("candidates", candidates, 2, MOST_CANDIDATES)
        parts = {part: size for part, size in _PARTS.items() if part not in LEVELS[candidates:]}
        self.shares = {part: Fraction(size, sum(parts.values())) for part, size in parts.items()}
        """The share of the budget that each part gets."""
        self.margins = NoisyMargins(candidates, protection, epsilon, delta, self.shares["margins"])

    def scale(self, part: str) -> Fraction:
        """The discrete Laplace scale of a histogram, or its discrete Gaussian standard deviation rounded up."""
        if self.rho is None:
            return self.protection.moved / (self.shares[part] * self.epsilon)
        return deviation_for(self.protection.moved, self.shares[part] * self.rho)

    @property
    def noise_variances(self) -> dict[str, float]:
        """The variance of the noise on a count, by part; for Laplace noise 2 scale^2, which is slightly too large."""
        laws = 1 if self.delta else 2
        histograms = {part: laws * float(self.scale(part)) ** 2 for part in self.shares if part != "margins"}
        return {**histograms, "margins": self.margins.noise_variance}

    @property
    def parameters(self) -> dict[str, object]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variances": self.noise_variances, **gaussian}

    def count(self, ballots: Ballots) -> dict[str, Longs]:
        """The true counts; margins as an antisymmetric table. A ballot that ranks nobody adds nothing."""
        m, counts = self.candidates, {}
        some = ballots.lengths > 0
        for part, cells in self._cells().items():
            listed = ballots.lengths if part == "lengths" else prefix_cells(ballots.orders, m, cells.ndim)
            counts[part] = np.zeros(cells.shape, np.int64)
            np.add.at(counts[part].reshape(-1), listed[some], ballots.weights[some])
        return {**counts, "margins": ballots.margins()}

    def noise(self, part: str, count: int, bits: Bits) -> Longs:
        """``count`` independent draws of the noise on a histogram."""
        cells = self._cells()[part]
        noise = np.zeros((count, *cells.shape), np.int64)
        law = discrete_laplace if self.rho is None else discrete_gaussian
        noise[:, cells] = law(self.scale(part), count * int(cells.sum()), bits).reshape(count, -1)
        return noise

    def sample(self, counts: Mapping[str, Longs], bits: Bits) -> dict[str, Longs | Floats]:
        """The noisy counts: integers, possibly negative; margins as ``NoisyMargins`` estimates them."""
        histograms = {part: counts[part] + self.noise(part, 1, bits)[0] for part in self._cells()}
        return {**histograms, "margins": self.margins.sample(counts["margins"], bits)}

    def _cells(self) -> dict[str, Flags]:
        """Which cells of each histogram a ballot can move."""
        levels = {level: possible(self.candidates, depth) for depth, level in enumerate(LEVELS[: self.candidates], 1)}
        return {**levels, "lengths": np.arange(self.candidates + 1) > 0}


def possible(candidates: int, depth: int) -> Flags:
    """Which prefixes a ballot can have; the index ``candidates`` marks the end."""
    places = np.indices((candidates + 1,) * depth)
    fits: Flags = places[0] < candidates
    for later in range(1, depth):
        for place in places[:later]:
            fits &= (places[later] == candidates) | ((place < candidates) & (place != places[later]))
    return fits
