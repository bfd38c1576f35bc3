"""Noisy margins: for every pair of items, how many more ballots put the first above the second.

Margins y (``Ballots.margins``) split into two parts that are orthogonal (HodgeRank: Jiang, Lim, Yao and Ye 2011): with
the centred Borda scores c_i, the sum of y_ij over j,

    y_ij = (c_i - c_j)/m + r_ij/m,        r_ij = m y_ij - (c_i - c_j),        the sum of r_ij over j is 0.

The scores say who is liked more; r is the cyclic part. The squared length of one complete ballot's margins is m(m-1)/2,
of which the scores have (m^2 - 1)/3 in m - 1 dimensions and the cyclic part (m-1)(m-2)/6 in the other (m-1)(m-2)/2.
So noise of the same size on every pair spends most of the budget on the few dimensions of the scores.

Law: a share of the budget goes to the scores (``borda``), the rest to r, an integer for each pair: independent discrete
Laplace noise of scale L/eps_r, L its l1 sensitivity; with delta > 0 discrete Gaussian noise of D^2/(2 sigma^2) = rho_r.
Proof: basic composition, of eps or of rho. Sensitivities for complete ballots are enough: r is linear in y, and a
ballot with ties adds an average of what complete ballots add.

The estimate subtracts the row sums of the noisy r, which are noise alone because the true ones are 0. This is
generalised least squares: the two parts are measured independently, and the known zeros are used.

Variance of an estimated margin, with v the variance of the noise of ``borda`` and w that of the noise on r:
(2 v + w (m-2)/m)/m^2. The shares minimise its sum: A/x + B/(1-x) for rho at x = sqrt(A)/(sqrt(A) + sqrt(B)), and
A/x^2 + B/(1-x)^2 for eps with cube roots. Relative to noise on the pairs alone it is 0.71 at m = 10 and 0.52 at m = 50
for rho, and tends to 1/3.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.permutohedron import size
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for
from rankdp.types import Floats, Longs


class NoisyMargins:
    """Releases the margin of every pair; the row sums of margins are Borda scores.

    Parameters
    ----------
    items
        The number of items m, from 2 to 500.
    protection
        What is protected.
    epsilon
        The guarantee's.
    delta
        0 for K-norm and Laplace noise; above 0 for Gaussian noise.
    spent
        The part of the guarantee's epsilon, or of its rho, that is spent here; the rest is for other releases.
    """

    def __init__(
        self, items: int, protection: BallotProtection, epsilon: Real, delta: Real = 0, spent: Real = 1
    ) -> None:
        self.scores = NoisyBorda(items, protection, epsilon, delta, spent)  # checks the arguments
        self.spent = self.scores.share
        m = self.scores.items
        self.items, self.protection, self.delta = m, protection, self.scores.delta
        self.share = _share_of_scores(m, pure=not self.delta) if m > 2 else Fraction(1)
        self.scores = NoisyBorda(items, protection, epsilon, delta, self.spent * self.share)

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP, or (eps, delta)-DP, for the unit of protection."""
        return self.scores.guarantee

    @property
    def scale(self) -> Fraction:
        """The discrete Laplace scale of the noise on r; for Gaussian noise its standard deviation, rounded up."""
        if self.items == 2:
            return Fraction(0)  # no cycle
        if self.scores.rho is not None:
            left = self.scores.rho * self.spent * (1 - self.share)
            return deviation_for(self.protection.cyclic_l2_squared(self.items), left)
        return self.protection.cyclic_l1(self.items) / (self.scores.epsilon * self.spent * (1 - self.share))

    @property
    def cyclic_variance(self) -> float:
        """The variance of the noise that the estimate leaves in r_ij, the cyclic part times m."""
        scale = float(self.scale)
        ratio = math.exp(-1 / scale) if scale else 0.0
        return (scale**2 if self.delta else 2 * ratio / (1 - ratio) ** 2) * (self.items - 2) / self.items

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one margin, in ballots."""
        return (2 * self.scores.noise_variance + self.cyclic_variance) / self.items**2

    @property
    def parameters(self) -> dict[str, float]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.scores.rho is None else {"rho": float(self.scores.rho)}
        return {"noise_variance": self.noise_variance, "share_of_scores": float(self.share), **gaussian}

    def noise(self, count: int, bits: Bits) -> Floats:
        """``count`` independent draws of the noise on the margins, count x m x m, for simulation only.

        Do not add them to margins: the rounding of floating-point sums would reveal something. ``sample`` rounds sums
        that are noisy already.
        """
        return self._margins(self.scores.noise(count, bits), self.cyclic_noise(count, bits))

    def sample(self, margins: Longs, bits: Bits) -> Floats:
        """The estimated margins of every pair, antisymmetric, from the noisy scores and the noisy cyclic part.

        Parameters
        ----------
        margins
            m x m integers: how many more ballots put i above j than j above i.
        bits
            Where the noise comes from.
        """
        return np.asarray(self.samples(margins, 1, bits)[0])

    def samples(self, margins: Longs, count: int, bits: Bits) -> Floats:
        """``count`` independent releases of the same margins, for rehearsals and audits."""
        if margins.shape != (self.items, self.items) or (margins != -margins.T).any():
            raise InputError(f"margins must be {self.items} x {self.items} numbers with y_ij = -y_ji")
        scores = margins.sum(axis=1)
        cycles = self.items * margins - (scores[:, None] - scores)
        return self._margins(self.scores.samples(scores, count, bits), cycles + self.cyclic_noise(count, bits))

    def cyclic_noise(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws of the noise on r, as antisymmetric matrices."""
        first, second = np.triu_indices(self.items, 1)
        draw = discrete_gaussian if self.delta else discrete_laplace
        noise = np.zeros((count, self.items, self.items), dtype=np.int64)
        noise[:, first, second] = draw(self.scale, count * len(first), bits).reshape(count, len(first))
        return noise - noise.transpose(0, 2, 1)

    def _margins(self, scores: Floats, cycles: Longs) -> Floats:
        """The estimate from the released numbers: row sums of the cyclic part are noise and are subtracted."""
        scores = scores - cycles.sum(axis=2) / self.items
        return np.asarray((cycles + (scores[:, :, None] - scores[:, None, :])) / self.items)  # antisymmetric to the bit


def _share_of_scores(m: int, pure: bool) -> Fraction:
    """The share of the budget with the smallest total variance, to a thousandth (see the module)."""
    if pure:
        scores = size(m) * (m + 1)
        cycles = (m - 1) * (m - 2) * (BallotProtection("voter").cyclic_l1(m) / m) ** 2
    else:
        scores, cycles = (m - 1) * (m * m - 1) / 3, ((m - 1) * (m - 2)) ** 2 / 12
    scores, cycles = (math.cbrt(scores), math.cbrt(cycles)) if pure else (math.sqrt(scores), math.sqrt(cycles))
    return Fraction(round(1000 * scores / (scores + cycles)), 1000)
