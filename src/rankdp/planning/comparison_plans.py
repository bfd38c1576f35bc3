"""Planning for a leaderboard from comparisons: what ``rank`` would publish for items of stated strengths.

N comparisons are spread evenly over the pairs of n items whose log-strengths lie evenly in an interval. A few times,
votes are drawn and noise is added, always from the same random numbers, and the released numbers go through the
estimate that ``rank`` makes (``publish.board_estimators``). Interval widths are averages over these boards. Estimates
vary around a multiple of the truth; the multiple and the variance come from the same boards. More than 25 items are
represented by 25 that are each compared equally often, and their order by the order of 60.
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
from rankdp.inference.draws import COUNT, Draws, generator
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyDegrees, NoisyResiduals, NoisyTable, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.planning.situation import EXACT, HALF_WIDTH, PAIRS, TOP, Measure, Request, Situation
from rankdp.privacy.exact import Real, rational
from rankdp.publish.board_estimators import DEGREES, HiddenDesign
from rankdp.types import Floats

_BOARDS, _SIMULATED = 8, 25  # simulated boards, and the most items of each
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
        self._drawn: dict[tuple[str, float, float], tuple[float, Floats]] = {}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """An even design and scores of a stated spread."""
        return (
            f"All pairs are compared equally often, and log-strengths lie evenly between -{self.spread:g} and "
            f"{self.spread:g}.",
        )

    def _field(self, most: int) -> tuple[Floats, Floats]:
        """The strengths of at most ``most`` items, and the expected wins of the row's item over the column's."""
        items = min(self.items, most)
        truth = self.spread * (2 * np.arange(items)[::-1] + 1 - items) / items
        met = 2 * self.comparisons / self.items / (items - 1) * (1 - np.eye(items))
        return truth, met * expit(truth[:, None] - truth)

    @cached_property
    def _votes(self) -> list[Floats]:
        """Wins of the row's item over the column's, drawn a few times; pairs meet by chance."""
        return list(generator().poisson(np.tile(self._field(_SIMULATED)[1], (_BOARDS, 1, 1))).astype(float))

    def _boards(self, option: str, epsilon: float, level: float) -> tuple[float, Floats]:
        """The half-width of an interval, and simulated estimates, one per row."""
        asked = option, epsilon, level
        if asked not in self._drawn:
            self._drawn[asked] = self._by_wins(epsilon) if option == "wins" else self._by_strengths(epsilon, level)
        return self._drawn[asked]

    def _by_wins(self, epsilon: float) -> tuple[float, Floats]:
        """Wins with sampling error and noise; pairs meet by chance, so wins are Poisson."""
        wins = self._field(_MOST)[1].sum(axis=1)
        deviation = np.sqrt(wins + NoisyWins(self.protection, Fraction(epsilon), self.delta).noise_variance)
        return math.nan, wins + deviation * generator().standard_normal((COUNT, len(wins)))

    def _by_strengths(self, epsilon: float, level: float) -> tuple[float, Floats]:
        """From simulated boards (see the module)."""
        boards = [self._board(table, seed, epsilon) for seed, table in enumerate(self._votes)]
        ends = np.array([board.interval(level) for board in boards])
        found, truth = np.array([board.estimate for board in boards]), self._field(_SIMULATED)[0]
        times = float((found @ truth).mean() / (truth @ truth))
        error = math.sqrt(np.square(found - times * truth).mean())
        field = self._field(_MOST)[0]
        estimates = times * field + error * generator().standard_normal((COUNT, len(field)))
        return float((ends[:, 1] - ends[:, 0]).mean() / 2), estimates

    def _board(self, table: Floats, seed: int, epsilon: float) -> Draws:
        """The draws that ``rank`` would make from these votes."""
        random, items = np.random.default_rng(seed), len(table)

        def release(noisy: NoisyCounts) -> Floats:
            counts, variance = self._counted(noisy, table)
            deviation = math.sqrt(variance)
            if noisy.rho is None:
                return counts + random.laplace(0, deviation / math.sqrt(2), len(counts))
            return counts + random.normal(0, deviation, len(counts))

        if self.protection.design_public:
            noisy = NoisyWins(self.protection, Fraction(epsilon), self.delta)
            return by_wins(release(noisy) / 2, table + table.T, noisy.noise_variance)
        hidden = HiddenDesign(self.protection, Fraction(epsilon), self.delta)
        total = None if self._public is None else float(table.sum())
        draws = hidden.estimate(self._kind(epsilon), items, total, release, pairs=self.items - 1).draws
        assert draws is not None
        return draws

    @property
    def _public(self) -> float | None:
        """The number of comparisons, where it is public."""
        return self.comparisons if self.protection.count_public else None

    def _kind(self, epsilon: float) -> str:
        """What ``rank`` would release where the design is hidden."""
        kind = HiddenDesign(self.protection, Fraction(epsilon), self.delta).kind(self.items, self._public)
        return "residuals" if kind == "objective" else kind

    def _counted(self, noisy: NoisyCounts, table: Floats) -> tuple[Floats, float]:
        """The counts that ``noisy`` would release, and the variance of their noise."""
        variance = noisy.count_variance
        if isinstance(noisy, NoisyTable):  # each item represents several, so it meets fewer others here
            return 2 * table[~np.eye(len(table), dtype=np.bool_)], variance * (self.items - 1) / (len(table) - 1)
        if isinstance(noisy, NoisyDegrees):
            return np.asarray((table + table.T).sum(axis=1)), variance
        if isinstance(noisy, NoisyWins):
            return 2 * table.sum(axis=1), variance
        if isinstance(noisy, NoisyResiduals):
            table, variance = table * noisy.weights, noisy.noise_variance
        return np.asarray((table - table.T).sum(axis=1)), variance

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """Half-widths are for strengths, which only Bradley-Terry has."""
        half_width, estimates = self._boards(option, epsilon, request.level)
        if measure is HALF_WIDTH:
            return half_width
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
        hidden, kind = HiddenDesign(self.protection, Fraction(epsilon), self.delta), self._kind(epsilon)
        degree, table = 2 * self.comparisons / self.items, hidden.table(1 - DEGREES)
        if kind == "residuals" and self._public is None and hidden.table_pays(self.items - 1, degree, table):
            kind = "table"
        return {"released": kind}
