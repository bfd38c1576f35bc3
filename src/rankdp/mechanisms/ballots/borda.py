"""Noisy Borda scores: the centred scores of all ballots plus exact noise (``shaped``).

The scores are those of ``Ballots.centred_borda``: on one ballot the items below an item less those above it, m - 1, m -
3, …, 1 - m when it is complete. Their sum is 0: the direction that carries nothing about the order costs nothing.

One ballot's scores lie in the permutohedron K (``permutohedron``); the squared l2 sensitivity is m (m^2 - 1)/3 times
s^2.
"""

from __future__ import annotations

from rankdp.checks import whole
from rankdp.mechanisms.ballots.permutohedron import MOST_ITEMS, PermutohedronNoise
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.shaped import ShapedNoise
from rankdp.privacy.exact import Real


class NoisyBorda(ShapedNoise):
    """Releases the centred Borda scores of ballots.

    ``noise_variance`` is v, such that the noise on a difference of two scores has the variance 2 v (a mean over all
    pairs). Any sum of scores with factors a that add up to 0 has the variance v norm(a)^2.

    Parameters
    ----------
    items
        How many there are, from 2 to 500.
    protection, epsilon, delta, share
        As for ``ShapedNoise``.
    """

    def __init__(
        self, items: int, protection: BallotProtection, epsilon: Real, delta: Real = 0, share: Real = 1
    ) -> None:
        super().__init__(whole("items", items, 2, MOST_ITEMS), protection, epsilon, delta, share)

    @property
    def shape(self) -> PermutohedronNoise:
        """Noise on the permutohedron."""
        return PermutohedronNoise(self.items, self.rate)

    @property
    def l2_squared(self) -> int:
        """How far neighbours' scores can be apart in squared l2."""
        return self.protection.borda_l2_squared(self.items)
