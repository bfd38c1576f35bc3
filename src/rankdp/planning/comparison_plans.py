"""Planning for a leaderboard from comparisons: what ``rank`` would say of a field of stated strengths.

N comparisons are spread evenly over the pairs of n items whose log-strengths lie evenly in an interval. The expected
counts, without luck and without noise, go through the same estimate that ``rank`` makes (``publish.board_estimators``).
Its intervals are those of the board. Estimates vary around it by luck and noise: with V the covariance of the posterior
and s its prior's deviation, by V - V^2/s^2. More than 60 items are represented by 60 that are compared as often each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from rankdp.checks import positive, whole
from rankdp.inference.boards import by_wins
from rankdp.inference.draws import COUNT, Draws, generator, opposite
from rankdp.inference.normal import PRIOR
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyDegrees, NoisyResiduals, NoisyTable, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.planning.situation import EXACT, HALF_WIDTH, PAIRS, TOP, Measure, Request, Situation
from rankdp.privacy.exact import Real, rational
from rankdp.publish.board_estimators import HiddenDesign
from rankdp.types import Floats

_MOST = 60


class ManyComparisons(Situation):
    """``comparisons`` votes between ``items`` items whose log-strengths lie evenly in [-spread, spread]."""

    measures = (PAIRS, EXACT, TOP, HALF_WIDTH)
    options: tuple[str, ...] = ("bradley-terry", "wins")

    def __init__(
        self,
        items: int,
        comparisons: int,
        protect: str,
        max_per_voter: int | None = None,
        delta: Real = 0,
        spread: float = 1.0,
    ) -> None:
        self.items, self.comparisons = whole("items", items, 2), whole("comparisons", comparisons, 1)
        self.protection = Protection.of(protect, max_per_voter)
        self.protects = self.protection.protects
        self.delta = rational(delta, "delta")
        self.spread = positive("spread", spread)
        self.subject = f"a leaderboard of {items} items from {comparisons:,} comparison{'s' * (comparisons > 1)}"
        self._drawn: dict[tuple[str, float], tuple[Draws | None, Floats]] = {}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """An even design and scores of a stated spread."""
        return (
            f"All pairs are compared equally often, and log-strengths lie evenly between -{self.spread:g} and "
            f"{self.spread:g}.",
        )

    @cached_property
    def _field(self) -> tuple[Floats, Floats]:
        """The strengths, and the expected wins of the row's item over the column's."""
        items = min(self.items, _MOST)
        truth = self.spread * (2 * np.arange(items)[::-1] + 1 - items) / items
        met = 2 * self.comparisons / self.items / (items - 1) * (1 - np.eye(items))
        return truth, met * expit(truth[:, None] - truth)

    def _boards(self, option: str, epsilon: float) -> tuple[Draws | None, Floats]:
        """Draws of the strengths that the expected board makes, and estimates as they vary, one per row."""
        if (option, epsilon) not in self._drawn:
            self._drawn[option, epsilon] = self._by_wins(epsilon) if option == "wins" else self._by_strengths(epsilon)
        return self._drawn[option, epsilon]

    def _by_wins(self, epsilon: float) -> tuple[None, Floats]:
        """Wins with luck and noise; pairs meet by chance, so that wins are Poisson."""
        _, table = self._field
        luck = table.sum(axis=1)
        deviation = np.sqrt(luck + NoisyWins(self.protection, Fraction(epsilon), self.delta).noise_variance)
        return None, table.sum(axis=1) + deviation * generator().standard_normal((COUNT, len(table)))

    def _by_strengths(self, epsilon: float) -> tuple[Draws, Floats]:
        _, table = self._field
        if self.protection.design_public:
            noise = NoisyWins(self.protection, Fraction(epsilon), self.delta).noise_variance
            draws = by_wins(table.sum(axis=1), table + table.T, noise)
        else:
            hidden = HiddenDesign(self.protection, Fraction(epsilon), self.delta)
            kind, public = self._kind(epsilon), self._public
            total = None if public is None else public * len(table) / self.items
            found = hidden.estimate(kind, len(table), total, self._expected, pairs=self.items - 1).draws
            assert found is not None
            draws = found
        values, vectors = np.linalg.eigh(np.cov(draws.values.T))
        spread = np.sqrt(np.maximum(values - values**2 / PRIOR**2, 0))
        around = generator().standard_normal((COUNT // 2, len(values))) * spread @ vectors.T
        return draws, draws.estimate + opposite(around)

    @property
    def _public(self) -> float | None:
        """The number of comparisons, where ``rank`` may know it."""
        return self.comparisons if self.protection.count_public else None

    def _kind(self, epsilon: float) -> str:
        """What ``rank`` would release where the design is hidden."""
        kind = HiddenDesign(self.protection, Fraction(epsilon), self.delta).kind(self.items, self._public)
        return "residuals" if kind == "objective" else kind

    def _expected(self, noisy: NoisyCounts) -> Floats:
        """What these counts are expected to be, without noise, as ``released`` has them."""
        table = self._field[1]
        if isinstance(noisy, NoisyTable):
            return 2 * table[~np.eye(len(table), dtype=np.bool_)]
        if isinstance(noisy, NoisyDegrees):
            return np.asarray((table + table.T).sum(axis=1))
        weighed = table * (noisy.weights if isinstance(noisy, NoisyResiduals) else 1.0)
        return np.asarray((weighed - weighed.T).sum(axis=1))

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """Half-widths are those of strengths, which only Bradley-Terry gives."""
        draws, estimates = self._boards(option, epsilon)
        if measure is HALF_WIDTH:
            if draws is None:
                return math.nan
            low, high = draws.interval(request.level)
            return float((high - low).mean() / 2)
        places = (-estimates).argsort(axis=1).argsort(axis=1)  # the true places are 0, 1, 2, …
        if measure is TOP:
            top = max(1, round(request.top * len(places[0]) / self.items))
            return float((places[:, :top] < top).mean())
        if measure is EXACT:
            return float((np.diff(places, axis=1) > 0).all(axis=1).mean()) if self.items <= _MOST else math.nan
        first, second = np.triu_indices(len(places[0]), 1)
        return float((places[:, first] < places[:, second]).mean())

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """What is released."""
        if option == "wins" or self.protection.design_public:
            return {"released": "wins"}
        return {"released": self._kind(epsilon)}
