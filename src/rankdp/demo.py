"""The main job on built-in data: a poll in, private synthetic polls out, and how much of the result survives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankdp.aggregation.estimates import aggregate
from rankdp.aggregation.means import Estimate
from rankdp.data.rankings import Rankings
from rankdp.data.synthetic import town_poll
from rankdp.mechanisms.registry import candidates, describe, mechanism
from rankdp.privacy.release import Release
from rankdp.publish.privatize import privatize
from rankdp.report.document import Report
from rankdp.report.plots import COLOURS, SERIES, new_figure
from rankdp.report.results import Table
from rankdp.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPSILONS = (1.0, 2.0, 4.0, 8.0)
_REPEATS = 40  # releases behind the last two lines: enough for them to get better from epsilon to epsilon


@dataclass(frozen=True, slots=True)
class Demo:
    """The poll, its first release at each epsilon with estimated mean ranks, and the accuracy of many releases."""

    poll: Rankings
    releases: Mapping[float, Release[Rankings]]
    true: Mapping[str, float]
    estimates: Mapping[float, Estimate]
    errors: Mapping[float, float]
    """By epsilon: the root mean squared error of a mean rank."""
    in_order: Mapping[float, float]
    """By epsilon: the share of item pairs that the estimates and the true mean ranks put in the same order."""

    @property
    def found(self) -> dict[float, dict[str, float]]:
        """By epsilon: the estimated mean ranks by item."""
        return {epsilon: _by_item(self.poll, one.values) for epsilon, one in self.estimates.items()}

    def mechanism(self, epsilon: float) -> str:
        """The mechanism that auto chose, and what it keeps."""
        return describe(mechanism("auto", len(self.true), epsilon))

    def report(self) -> Report:
        """Mean ranks, places and what is promised, for readers."""
        columns = [self.true, *self.found.values()]
        positions = [{item: place for place, item in enumerate(_order(means), 1)} for means in columns]
        rows = [
            [item, *(f"{means[item]:.2f}  #{place[item]}" for means, place in zip(columns, positions, strict=True))]
            for item in _order(self.true)
        ]
        rows.append(["typical error of a mean rank", "", *(f"{self.errors[epsilon]:.2f}" for epsilon in EPSILONS)])
        rows.append(["item pairs in the true order", "", *(f"{self.in_order[epsilon]:.0%}" for epsilon in EPSILONS)])
        middle = EPSILONS[1]
        return Report(
            title=f"What should our town build next? Mean rank over {len(self.poll):,} made-up voters, and place",
            records=[
                {"item": item, "true": self.true[item]}
                | {f"epsilon {epsilon:g}": means[item] for epsilon, means in self.found.items()}
                for item in _order(self.true)
            ],
            facts=lambda: {
                "true_mean_ranks": self.true,
                "synthetic": {
                    f"{epsilon:g}": {
                        "mean_ranks": self.found[epsilon],
                        "typical_error": self.errors[epsilon],
                        "pairs_in_order": self.in_order[epsilon],
                        **release.to_dict(),
                    }
                    for epsilon, release in self.releases.items()
                },
            },
            tables=[Table(["item", "true", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)], [*rows])],
            words=[
                f"The last two lines are means over {_REPEATS} releases at each epsilon.",
                f"Mechanism: {self.mechanism(middle)}.",
                f"Promise at epsilon {middle:g}: {self.releases[middle].explain().removeprefix('Protects ')}",
            ],
            figure=self._figure,
        )

    def _figure(self) -> Figure:
        figure, (left, right) = new_figure(2, width=12, height=5)
        _mean_rank_lines(left, self.true, self.found)
        _concordance_curves(right, len(self.true), [2 ** (step / 4) for step in range(-8, 17)])
        return figure


def run_demo() -> Demo:
    """Privatize the built-in poll many times at each epsilon, and aggregate the releases."""
    poll = town_poll()
    true = poll.ranks().mean(axis=0)
    releases, estimates, errors, in_order = {}, {}, {}, {}
    for epsilon in EPSILONS:
        drawn = [privatize(poll, epsilon) for _ in range(_REPEATS)]
        found = [aggregate(release).mean_ranks for release in drawn]
        releases[epsilon], estimates[epsilon] = drawn[0], found[0]
        errors[epsilon] = float(np.sqrt(np.mean([(one.values - true) ** 2 for one in found])))
        in_order[epsilon] = float(np.mean([_agreeing(one.values, true) for one in found]))
    return Demo(poll, releases, _by_item(poll, true), estimates, errors, in_order)


def _by_item(poll: Rankings, values: Floats) -> dict[str, float]:
    return dict(zip(poll.items, values.tolist(), strict=True))


def _order(means: Mapping[str, float]) -> list[str]:
    """The items, best mean rank first."""
    return sorted(means, key=lambda item: means[item])


def _agreeing(one: Floats, other: Floats) -> float:
    """The share of item pairs that two lists of mean ranks put in the same order."""
    first, second = np.triu_indices(len(one), 1)
    return float(np.mean((one[first] < one[second]) == (other[first] < other[second])))


def _concordance_curves(axes: Axes, items: int, epsilons: Sequence[float]) -> None:
    """The expected share of pairs that each mechanism keeps in order, against epsilon; it needs no data."""
    kept: dict[str, list[float]] = {}
    for epsilon in epsilons:
        for candidate in candidates(items, epsilon, purpose="order"):
            kept.setdefault(type(candidate).name, []).append(candidate.expected_concordance())
    for name in sorted(kept, key=lambda name: -kept[name][-1]):
        axes.plot(epsilons, kept[name], color=COLOURS[name], label=name)
    axes.axhline(0.5, color="0.7", linewidth=0.8, linestyle=":")
    axes.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="pairs kept in order",
        ylim=(0.48, 1.01),
        title=f"What a ranking of {items} items keeps",
    )
    axes.set_xticks([0.25, 0.5, 1, 2, 4, 8, 16], ["1/4", "1/2", "1", "2", "4", "8", "16"])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(frameon=False)


def _mean_rank_lines(axes: Axes, true: Mapping[str, float], synthetic: Mapping[float, Mapping[str, float]]) -> None:
    """The estimated mean rank of every item, by epsilon, and on the right the true one."""
    epsilons = sorted(synthetic)
    ticks = np.arange(len(epsilons) + 1)
    ordered = sorted(true, key=lambda item: true[item])
    labels = _spread([true[item] for item in ordered], gap=(max(true.values()) - min(true.values())) / 22)
    for colour, item, label in zip(np.resize(SERIES, len(true)), ordered, labels, strict=True):
        levels = [*(synthetic[epsilon][item] for epsilon in epsilons), true[item]]
        axes.plot(ticks, levels, color=str(colour), marker="o", markersize=4)
        axes.text(ticks[-1] + 0.12, label, item, va="center", color=str(colour))
    axes.set_xticks(ticks, [*(f"{epsilon:g}" for epsilon in epsilons), "true"])
    axes.set(xlabel="epsilon", ylabel="mean rank (1 = best)", title="What the private polls say")
    axes.set_xlim(-0.2, len(epsilons) + 1.1)
    axes.invert_yaxis()


def _spread(levels: Sequence[float], gap: float) -> list[float]:
    """Heights for labels near rising ``levels``, at least ``gap`` apart; labels that are too close are spread out."""
    groups: list[list[float]] = []
    for level in levels:
        groups.append([level])
        while len(groups) > 1 and _top(groups[-1], gap) - _top(groups[-2], gap) < gap * len(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_top(group, gap) - gap * (len(group) - 1 - i) for group in groups for i in range(len(group))]


def _top(group: Sequence[float], gap: float) -> float:
    """The height of the last label of a group centred on its mean."""
    return sum(group) / len(group) + gap * (len(group) - 1) / 2
