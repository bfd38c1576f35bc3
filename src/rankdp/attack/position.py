"""The position attack: what one release tells about where *my* item stood.

The attacker has a prior over the item's position and supposes nothing about the other items (all their orders equally
likely). Then the release matters only through the position b where the item landed, and

    posterior(a) = prior(a) M[a, b] / sum over a' of prior(a') M[a', b],    M the mechanism's position matrix.

eps-ranking DP says that no two positions' odds change by more than e^eps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.report.plots import SERIES
from rankdp.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class PositionAttack:
    """What the attacker believed before and believes after; positions count from 1."""

    landed: int
    prior: Floats
    posterior: Floats
    epsilon: float

    @property
    def odds_factor(self) -> float:
        """The largest change of the odds between two positions: never above e^epsilon."""
        possible = self.prior > 0
        change = self.posterior[possible] / self.prior[possible]
        return float(change.max() / change.min())

    @property
    def guess(self) -> int:
        """The most likely position."""
        return int(np.argmax(self.posterior)) + 1

    def explain(self) -> str:
        """The picture in words."""
        before, after = self.prior[self.guess - 1], self.posterior[self.guess - 1]
        return (
            f"The synthetic ranking shows the item at position {self.landed}. The best guess is position {self.guess}: "
            f"{after:.0%} likely, {before:.0%} before. The odds between two positions changed by a factor of at most "
            f"{self.odds_factor:.3g}; epsilon {self.epsilon:g} allows "
            + (f"{math.exp(self.epsilon):.3g}." if self.epsilon < 14 else f"e^{self.epsilon:g}.")
        )

    def draw(self, axes: Axes) -> None:
        """Bars, before and after."""
        positions = np.arange(1, len(self.prior) + 1)
        axes.bar(positions - 0.2, self.prior, 0.4, color="0.75", label="before the release")
        axes.bar(positions + 0.2, self.posterior, 0.4, color=SERIES[0], label="after the release")
        axes.set(
            xlabel="true position of the item",
            ylabel="how likely",
            title=f"The item was shown at position {self.landed} (epsilon {self.epsilon:g})",
        )
        axes.set_xticks(positions if len(positions) <= 20 else positions[:: len(positions) // 10])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.legend(frameon=False)


def position_attack(mechanism: RankingMechanism, landed: int, prior: ArrayLike | None = None) -> PositionAttack:
    """What an attacker believes about an item's true position after seeing one release.

    Parameters
    ----------
    mechanism
        The mechanism that drew the release.
    landed
        The item's position in the release, from 1 for the best.
    prior
        How likely each true position was before, best first: numbers of at least 0 that need not add up to 1; equal if
        not given.
    """
    m = mechanism.items
    landed = whole("landed", landed, 1, m)
    before = np.full(m, 1 / m) if prior is None else np.asarray(prior, dtype=np.float64)
    if before.shape != (m,) or not np.isfinite(before).all() or (before < 0).any() or before.sum() <= 0:
        raise InputError(f"prior must be {m} numbers of at least 0 that are not all 0, got {prior!r}")
    before = before / before.sum()
    after = before * mechanism.position_matrix()[:, landed - 1]
    return PositionAttack(landed, before, after / after.sum(), float(mechanism.epsilon))
