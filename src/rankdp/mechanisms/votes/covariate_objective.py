"""Secret covariates: objective perturbation of the regression on items and covariates together.

All of a comparison is secret: who met whom, the covariates z in [-1, 1]^d, and who won. It is the mechanism of
``objective`` with rows x = (e_i - e_j, z): release the minimiser of

    sum_r -log F(y_r x_r . c) + sum_k ridge_k c_k^2/2 + w . c,

w independent Laplace noise, of scale b_t on items and b_z on covariates.

Proof of eps_1. As there, w = -gradient, and between neighbours one comparison leaves and one comes. Each moves the
gradient by a multiple of at most 1 of its x: together by 4 in l1 on items and by 2d on covariates. And the one that
comes adds u x x' to the Hessian, u <= 1/4, a factor of at most 1 + x' R^-1 x/4 <= 1 + (2/ridge_t + d/ridge_z)/4 on its
determinant, R the ridges. So

    eps_1 = 4/b_t + 2d/b_z + log(1 + (2/ridge_t + d/ridge_z)/4).

The gap between this ideal and what a computer does is closed as there: w is rounded real noise, the solver proves a
gradient of at most T (``rankers.proven_rows``, for every table), and exact noise on the result pays for the difference
with 2 eps_2. Beside it the sums of z_k^2, from which intervals are computed, are released with cube noise of scale
1/eps_3 (a replaced comparison moves each by at most 1): eps = eps_1 + 2 eps_2 + eps_3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.votes.objective import LARGEST_NOISE, covered, covering_scale, noise_step, rounded_laplace
from rankdp.privacy.bits import Bits
from rankdp.privacy.cube_noise import CubeNoise
from rankdp.rankers.proven_rows import GRID_BITS, SecretRows, fit_rows_within
from rankdp.types import Floats

_GAP_SHARE = Fraction(1, 500)
_MOMENT_SHARE = Fraction(1, 20)
_SCORE_STEP = Fraction(1, 1 << 40)
_SPREADS = 1 / 3, 1.0  # the variances that scores and effects are expected to have
_MOMENT = 1 / 6  # the mean square that covariates are expected to have, to choose ridges by


@dataclass(frozen=True)
class CovariateObjective:
    """Releases strengths and effects while comparisons are secret as a whole.

    Parameters
    ----------
    items, covariates, comparisons
        How many there are: public numbers.
    epsilon
        The guarantee's.
    """

    items: int
    covariates: int
    comparisons: int
    epsilon: Fraction

    @property
    def moment_epsilon(self) -> Fraction:
        """eps_3."""
        return self.epsilon * _MOMENT_SHARE

    @property
    def gap_epsilon(self) -> Fraction:
        """eps_2."""
        return self.epsilon * _GAP_SHARE

    def scales(self, ridges: tuple[Fraction, Fraction], share: Fraction) -> tuple[Fraction, Fraction] | None:
        """b_t and b_z, when covariates get ``share`` of what noise may cost; None where the Hessian costs too much."""
        ideal = self.epsilon - self.moment_epsilon - 2 * self.gap_epsilon
        bend = (2 / ridges[0] + self.covariates / ridges[1]) / 4
        left = ideal - Fraction(math.log1p(float(bend)) * (1 + 1e-12))
        return None if left <= 0 else (4 / (left * (1 - share)), 2 * self.covariates / (left * share))

    @cached_property
    def chosen(self) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
        """The ridges and scales of least expected squared error, by public numbers."""
        degree = 2 * self.comparisons / self.items
        sizes = (self.items, max(degree, 1e-3) / 4), (self.covariates, max(self.comparisons, 1) * _MOMENT / 4)
        least = float(1 / (2 * self.epsilon))
        best = None
        for share in (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            for first in np.geomspace(least, 1e5 * least, 30).tolist():
                for ratio in (1, 4, 16, 64):
                    ridges = Fraction(first), Fraction(first * ratio)
                    scales = self.scales(ridges, share)
                    if scales is None:
                        continue
                    error = 0.0
                    for (many, known), spread, ridge, scale in zip(sizes, _SPREADS, ridges, scales, strict=True):
                        ridge_, noise = float(ridge), 2 * float(scale) ** 2
                        error += many * (known + noise + ridge_**2 * spread) / (known + ridge_) ** 2 / spread
                    if best is None or error < best[0]:
                        best = error, ridges, scales
        assert best is not None  # a large ridge always costs little
        return best[1], best[2]

    @property
    def tolerance(self) -> float:
        """T: what doubles prove with ease, and no more than costs a tenth of a score's expected error."""
        (ridge, _), (scale, _) = ((float(first), float(second)) for first, second in self.chosen)
        known = max(2 * self.comparisons / self.items, 1e-3) / 4
        error = math.sqrt(known + 2 * scale**2) / (known + ridge)
        useful = 0.1 * error * float(self.gap_epsilon) * ridge / math.sqrt(self.items + self.covariates)
        return max(min(1e-7 + 1e-11 * self.comparisons * (2 + self.covariates), useful), 2.0**-60)

    def check(self) -> None:
        """Refuse what would not fit 64-bit integers: a fact about public numbers."""
        if self.output_scale > LARGEST_NOISE:
            raise InputError(f"epsilon is too small for secret covariates of {self.items} items, got {self.epsilon}")

    @property
    def noise_step(self) -> Fraction:
        """g, for items and covariates."""
        return noise_step(max(self.chosen[1]))

    @property
    def output_scale(self) -> Fraction:
        """The scale of the noise added to the result, in steps of 2^-40."""
        size, ridge = self.items + self.covariates, min(self.chosen[0])
        return covering_scale(size, self.tolerance, self.noise_step, ridge, self.gap_epsilon, _SCORE_STEP)

    def sample(self, rows: SecretRows, bits: Bits) -> tuple[Floats, Floats]:
        """Private strengths and effects, one after the other, and noisy sums of squares of the covariates."""
        ridges, scales = self.chosen
        counts = self.items, self.covariates
        step = self.noise_step
        drawn = [rounded_laplace(scale / step, count, bits) for scale, count in zip(scales, counts, strict=True)]
        linear = np.concatenate(drawn) * np.float64(step)
        pulls = np.repeat([float(ridge) for ridge in ridges], counts)
        solved = fit_rows_within(rows, self.tolerance, pulls, linear)
        return covered(solved, self.output_scale, _SCORE_STEP, bits), self.moments(rows, bits)

    def moments(self, rows: SecretRows, bits: Bits) -> Floats:
        """The sums of z_k^2 over all comparisons, on a grid of 2^-20, with cube noise."""
        squares = rows.steps.astype(object) ** 2 >> GRID_BITS
        weights = (rows.ahead + rows.behind) // 2
        sums = np.array([int(sum(column * weights)) for column in squares.T])
        drawn = CubeNoise(self.covariates, self.moment_epsilon / (1 << GRID_BITS)).sample(1, bits)[0]
        return np.asarray((sums + drawn) / (1 << GRID_BITS), dtype=np.float64)
