"""The main job on built-in data: a poll in, private synthetic polls out, and what of the result survives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np

from rankdp.data.rankings import Rankings
from rankdp.data.synthetic import town_poll
from rankdp.mechanisms.registry import mechanism, why
from rankdp.privacy.release import Release
from rankdp.publish.privatize import privatize
from rankdp.report.plots import concordance_curves, mean_rank_lines, new_figure, save

EPSILONS = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Demo:
    """The poll, its releases and their mean ranks."""

    poll: Rankings
    releases: Mapping[float, Release[Rankings]]
    true: Mapping[str, float]
    synthetic: Mapping[float, Mapping[str, float]]

    def order(self, means: Mapping[str, float]) -> list[str]:
        """The items, best mean rank first."""
        return sorted(means, key=lambda item: means[item])

    def pairs_in_order(self, epsilon: float) -> float:
        """The share of item pairs that the synthetic mean ranks put as the true ones do."""
        true, synthetic = (np.array([means[i] for i in self.true]) for means in (self.true, self.synthetic[epsilon]))
        first, second = np.triu_indices(len(true), 1)
        return float(np.mean((true[first] < true[second]) == (synthetic[first] < synthetic[second])))

    def why(self, epsilon: float) -> str:
        """Which mechanism auto took, and why."""
        return why(mechanism("auto", len(self.true), epsilon))  # type: ignore[arg-type]

    def save_plot(self, path: str | PathLike[str]) -> None:
        """The picture of it all."""
        figure, (left, right) = new_figure(2, width=12, height=5)
        mean_rank_lines(left, self.true, self.synthetic)
        concordance_curves(right, len(self.true), [2 ** (step / 4) for step in range(-8, 17)])
        save(figure, path)


def run_demo() -> Demo:
    """Privatize the built-in poll at each epsilon."""
    poll = town_poll()
    releases = {epsilon: privatize(poll, epsilon) for epsilon in EPSILONS}
    synthetic = {epsilon: mean_ranks(release.value) for epsilon, release in releases.items()}
    return Demo(poll, releases, mean_ranks(poll), synthetic)


def mean_ranks(rankings: Rankings) -> dict[str, float]:
    """Each item's average rank in complete rankings."""
    return dict(zip(rankings.items, rankings.ranks().mean(axis=0).tolist(), strict=True))
