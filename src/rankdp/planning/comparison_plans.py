"""Planning for a leaderboard from comparisons (Cai): the error of its scores, from public numbers only.

N comparisons, spread evenly over the pairs of n items, make 2N/n of them an item. Around true scores t the estimate
errs by (z + w)/h: z the sampling noise of an item's wins, of variance h; w the privacy noise on them; and h = 2N/(n-1)
times the mean slope F'(t_i - t_j) of the link, the Fisher information of an item. (On one score rather than a
difference, centring takes a share 1/n of the variance away.) The ridge shrinks all scores alike and changes no order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.checks import positive, whole
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.planning.score_plans import accuracy_of_sorting
from rankdp.planning.situation import EXACT, HALF_WIDTH, PAIRS, TOP, Measure, Request, Situation
from rankdp.privacy.exact import Real, rational
from rankdp.publish.secret_designs import SecretDesign
from rankdp.publish.vote_scores import choose_ridge, count_cost
from rankdp.rankers.links import LOGISTIC
from rankdp.theory.noises.families import Gaussian, NormalLaplace
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.theory.score_laws import Uniform

_NODES = 40


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
        self.law = Uniform(-self.spread, self.spread)
        self.subject = f"a leaderboard of {items} items from {comparisons:,} comparison{'s' * (comparisons > 1)}"
        self._information = 2 * comparisons / (items - 1) * _mean_slope(self.law)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """An even design and scores of a stated spread."""
        return (
            f"All pairs are compared equally often, and log-strengths lie evenly between -{self.spread:g} and "
            f"{self.spread:g}.",
        )

    def _noise(self, option: str, epsilon: float) -> tuple[float, float]:
        """The variance of the privacy noise on an item's wins, and the ridge that ``rank`` would take with it."""
        exact = Fraction(epsilon)
        rest = exact - count_cost(self.protection, exact, None if self.delta else self.comparisons)
        if option == "wins" or self.protection.design_public:
            variance = NoisyWins(self.protection, rest, self.delta).noise_variance
            return variance, choose_ridge(2 * self.comparisons / self.items, variance)
        return SecretDesign(self.protection, rest, self.delta, "chance").expected_noise(self.items, self.comparisons)

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """Sampling error and privacy noise together; half-widths are for scores, which only Bradley-Terry gives."""
        if measure is HALF_WIDTH and option == "wins":
            return math.nan
        variance, _ = self._noise(option, epsilon)
        noise, sigma = _error(self._information, variance, gaussian=bool(self.delta))
        if measure is HALF_WIDTH:
            sigma *= math.sqrt(1 - 1 / self.items)
        return accuracy_of_sorting(measure, self.items, noise, sigma, self.law, request)

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """The privacy noise on an item's wins, and the ridge of the scores."""
        variance, ridge = self._noise(option, epsilon)
        found = {"noise_on_wins": math.sqrt(variance)}
        return {**found, "ridge": ridge} if option == "bradley-terry" else found


def _error(information: float, variance_on_wins: float, gaussian: bool) -> tuple[ScoreNoise, float]:
    """The law and the standard deviation of (z + w)/h."""
    total = 1 / information + variance_on_wins / information**2
    share = variance_on_wins / information**2 / total
    if gaussian or share < 1e-6:
        return Gaussian(), math.sqrt(total)
    return NormalLaplace(min(share, 1 - 1e-6)), math.sqrt(total)


def _mean_slope(law: Uniform) -> float:
    """E F'(t - t') for two independent scores."""
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    gap = law.width * (node + 1) / 2
    return float(law.width / 2 * weight @ (LOGISTIC.slope(gap) * LOGISTIC.slope(-gap) * law.difference_density(gap)))
