"""Covariates of public comparisons: one noisy vector contains what outcomes say about covariates.

Comparison r of items i and j has the outcome y in {-1, 0, 1} (1: i won, 0: a tie) and public covariates z, differences
such as how much longer i's answer was, scaled by public bounds to [-1, 1]. The model is

    log-odds that i wins = t_i - t_j + b . z.

Only y is secret (``protect="outcome"``). For any public numbers g_r (*instruments*) the equations

    sum_r (y_r - tanh(h_r/2)) (e_i - e_j) = 0,   sum_r (y_r - tanh(h_r/2)) g_r = 0,   h_r = t_i - t_j + b . z_r

have the truth as their root in expectation, so only the differences D (``differences``) and V = sum_r y_r g_r are
needed from the outcomes. Maximum likelihood uses g = z. But the noise is scaled to the *largest* |g|, so where noise
dominates, g = sign(z) is better: every comparison then has the largest weight. Each covariate gets g = clip(z/c) with
the c that minimises (sum g^2 + v)/(sum g z)^2, v the variance of the noise: a choice by public numbers.

Law: G V, with G g whole numbers of at most G = 2^20, and cube noise of scale 2G/eps (``cube_noise``). Proof of eps:
changing one outcome changes y by at most 2 and each coordinate of G V by at most 2G; a row of weight w is w
comparisons, one of which changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.privacy.bits import Bits
from rankdp.privacy.cube_noise import CubeNoise
from rankdp.types import Floats, Longs

STEPS = 1 << 20
"""G: the integer that represents 1."""
_CUTS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class NoisyCovariates:
    """Releases V for public covariates.

    Parameters
    ----------
    covariates
        z, one row for each comparison, between -1 and 1.
    weights
        How many equal comparisons each row represents.
    epsilon
        The cost of V.
    """

    covariates: Floats
    weights: Longs
    epsilon: Fraction

    @property
    def scale(self) -> Fraction:
        """The scale of the cube noise on G V."""
        return 2 * STEPS / self.epsilon

    @property
    def cube(self) -> CubeNoise:
        """The cube noise on G V."""
        return CubeNoise(self.covariates.shape[1], 1 / self.scale)

    def check(self) -> None:
        """Refuse noise that does not fit 52 bits, which depends on public numbers only."""
        _ = self.cube

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one coordinate of V."""
        return self.cube.variance / STEPS**2

    def instruments(self) -> Longs:
        """G g, one row for each comparison."""
        return np.column_stack([self._instrument(column) for column in self.covariates.T])

    def _instrument(self, z: Floats) -> Longs:
        def error(g: Floats) -> float:
            strength = float(self.weights @ (g * z))
            return (float(self.weights @ g**2) + self.noise_variance) / strength**2 if strength > 0 else np.inf

        candidates = [np.sign(z) if cut == 0 else np.clip(z / cut, -1, 1) for cut in _CUTS]
        best = min(candidates, key=error)
        return np.clip(np.rint(best * STEPS), -STEPS, STEPS).astype(np.int64)

    def sample(self, instruments: Longs, outcomes: Longs, bits: Bits) -> Floats:
        """Noisy V, from the outcomes -1, 0 or 1 of all rows.

        Parameters
        ----------
        instruments
            The result of `instruments`.
        outcomes
            For each row the sum of its comparisons' outcomes, between minus its weight and its weight.
        bits
            Where the noise comes from.
        """
        true = instruments.T @ outcomes  # whole numbers below 2^61
        return np.asarray((true + self.cube.sample(1, bits)[0]) / STEPS)
