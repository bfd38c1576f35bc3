"""Noisy prefixes, lengths and margins of ballots: what a model of them is fitted to.

Counts of a table of strict ballots of m candidates, each in whole ballots:

| part | a ballot adds | its l1 and squared l2 | share of the budget |
|---|---|---|---|
| ``first`` | 1 to the candidate in its first place | 1 | 1/5 |
| ``second`` | 1 to the cell of its first two places; it may end before | 1 | 1/10 |
| ``third`` | 1 to the cell of its first three places | 1 | 1/5 |
| ``lengths`` | 1 to the number of candidates that it lists | 1 | 1/10 |
| ``margins`` | to each pair 1, -1, or 0 if it lists neither | m (m-1)/2 | 2/5 |

Law: counts + independent discrete Laplace noise of scale S/(share eps) in each part, S the part's l1 sensitivity; with
delta > 0 discrete Gaussian noise of variance D/(2 share rho), D its squared l2 sensitivity.

Proof. One ballot adds a vector x of one entry 1 (prefixes, lengths) or of entries in [-1, 1] (margins), so that x has
the norms of the table. Where a ballot comes or goes, counts move by x. Where one is replaced they move by x - y: two
different cells move by 1 each, l1 and squared l2 at most 2; margins move by at most 2 a pair, l1 at most m (m-1) and
squared l2 at most 2 m (m-1) (``protection``). So a part costs its share of eps, or of rho, and the shares add up to 1;
both bounds are reached by a complete ballot and the reverse of it without its last place. Cells that no ballot can have
(a candidate twice, a candidate after the end) are 0 whatever the ballots, and get no noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive, rational
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for, rho_of
from rankdp.rankers.ballot_model import LEVELS, ballot_margins, prefix_cells
from rankdp.types import Flags, Ints, Longs

MOST_CANDIDATES = 50
_PARTS = {"first": 2, "second": 1, "third": 2, "lengths": 1, "margins": 4}


class NoisyPrefixes:
    """Releases the prefixes, lengths and margins of ballots.

    Parameters
    ----------
    candidates
        How many there are, from 2 to 50.
    protection
        What is protected.
    epsilon, delta
        Of all parts together; with a delta above 0 the noise is Gaussian.
    """

    def __init__(self, candidates: int, protection: BallotProtection, epsilon: Real, delta: Real = 0) -> None:
        self.candidates, self.protection = whole("candidates", candidates, 2, MOST_CANDIDATES), protection
        self.epsilon, self.delta = positive(epsilon), rational(delta, "delta")
        if not 0 <= self.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {delta!s}")
        self.rho = rho_of(self.epsilon, self.delta) if self.delta else None
        parts = {part: size for part, size in _PARTS.items() if part not in LEVELS[candidates:]}
        self.shares = {part: Fraction(size, sum(parts.values())) for part, size in parts.items()}
        """Of the budget, what each part gets."""

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP, or (eps, delta)-DP, for the unit of protection; it covers all parts."""
        rho = None if self.rho is None else float(self.rho)
        return Guarantee(self.protection.protects, self.epsilon, self.delta, local=False, rho=rho)

    def scale(self, part: str) -> Fraction:
        """The discrete Laplace scale of a part, or its discrete Gaussian standard deviation rounded up."""
        m, share = self.candidates, self.shares[part]
        if self.rho is None:
            distance = self.protection.margins_l1(m) if part == "margins" else self.protection.moved
            return distance / (share * self.epsilon)
        squared = self.protection.margins_l2_squared(m) if part == "margins" else self.protection.moved
        return deviation_for(squared, share * self.rho)

    @property
    def noise_variances(self) -> dict[str, float]:
        """For each part the variance of the noise on a count; for Laplace noise 2 scale^2, which errs upwards."""
        return {part: (1 if self.delta else 2) * float(self.scale(part)) ** 2 for part in self.shares}

    @property
    def parameters(self) -> dict[str, object]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variances": self.noise_variances, **gaussian}

    def count(self, orders: Ints, weights: Longs) -> dict[str, Longs]:
        """The true counts of ballots: rows of candidates, -1 after the last, with how often each was cast."""
        return {part: _tally(part, orders, weights, self.candidates) for part in self.shares}

    def sample(self, counts: Mapping[str, Longs], bits: Bits) -> dict[str, Longs]:
        """The noisy counts: integers, possibly negative; a further dimension in front holds several elections."""
        law, noisy = discrete_laplace if self.rho is None else discrete_gaussian, {}
        for part, cells in self._cells().items():
            noisy[part] = counts[part].copy()
            true = counts[part][..., cells]
            noisy[part][..., cells] = true + law(self.scale(part), true.size, bits).reshape(true.shape)
        return noisy

    def _cells(self) -> dict[str, Flags]:
        """Which cells of each part a ballot can move."""
        m = self.candidates
        levels = {level: possible(m, depth) for depth, level in enumerate(LEVELS[:m], 1)}
        listed = np.arange(m + 1) > 0
        return {**levels, "lengths": listed, "margins": np.ones(m * (m - 1) // 2, np.bool_)}


def possible(candidates: int, depth: int) -> Flags:
    """Which prefixes a ballot can have; an index of ``candidates`` stands for the end."""
    places = np.indices((candidates + 1,) * depth)
    fits: Flags = places[0] < candidates
    for later in range(1, depth):
        for place in places[:later]:
            fits &= (places[later] == candidates) | ((place < candidates) & (place != places[later]))
    return fits


def _tally(part: str, orders: Ints, weights: Longs, m: int) -> Longs:
    if part == "margins":
        return weights @ ballot_margins(orders, m)
    depth = LEVELS.index(part) + 1 if part in LEVELS else 1
    cells = prefix_cells(orders, m, depth) if part in LEVELS else (orders >= 0).sum(axis=1)
    tally = np.zeros((m + 1) ** depth, np.int64)
    np.add.at(tally, cells, weights)
    return tally.reshape((m + 1,) * depth)
