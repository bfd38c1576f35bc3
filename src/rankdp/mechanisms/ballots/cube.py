"""Noisy margins of a few pairs: each ballot adds -1, 0 or 1 to every one of them, so it moves them within a cube.

Pairs are chosen beforehand, or from what was released before. With k of them K = [-1, 1]^k; for pairs without a cycle,
as neighbours in an order are, every corner is some ballot's, and no additive noise that is eps-DP fits better (Hardt
and Talwar 2010, ``privacy.cube_noise``). The squared l2 sensitivity is k s^2. The rest is that of ``shaped``.
"""

from __future__ import annotations

from rankdp.checks import whole
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.shaped import ShapedNoise
from rankdp.privacy.cube_noise import MOST_NUMBERS, CubeNoise
from rankdp.privacy.exact import Real


class ChosenMargins(ShapedNoise):
    """Releases the margins of some pairs.

    Parameters
    ----------
    pairs
        How many, from 1 to 200.
    protection, epsilon, delta, share
        As for ``ShapedNoise``.
    """

    def __init__(
        self, pairs: int, protection: BallotProtection, epsilon: Real, delta: Real = 0, share: Real = 1
    ) -> None:
        super().__init__(whole("pairs", pairs, 1, MOST_NUMBERS), protection, epsilon, delta, share)

    @property
    def shape(self) -> CubeNoise:
        """Noise in the cube."""
        return CubeNoise(self.items, self.rate)

    @property
    def l2_squared(self) -> int:
        """How far neighbours' margins can be apart in squared l2."""
        return self.protection.chosen_l2_squared(self.items)
