"""Planning for a vector of scores (Jeong): how well sorting the noisy scores recovers their order.

Each noise has the smallest standard deviation that its epsilon allows for scores in the bounds, (24).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rankdp.checks import number, whole
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS
from rankdp.planning.situation import EXACT, HALF_WIDTH, PAIRS, TOP, Measure, Request, Situation
from rankdp.theory import recovery
from rankdp.theory.assumed_laws import score_law
from rankdp.theory.noises import GeneralizedNormal, ScoreNoise
from rankdp.theory.score_laws import ScoreLaw
from rankdp.theory.whole_order import order_probability_iid


class ScoreVector(Situation):
    """``items`` scores between public ``bounds``, independent draws of a publicly assumed ``law``.

    ``law`` is "uniform", "normal", "exponential" or "beta" on the bounds, a frozen scipy distribution or a public
    sample, such as last year's scores. With ``delta`` above 0, Gaussian noise is an option.
    """

    measures = (PAIRS, EXACT, TOP, HALF_WIDTH)
    protects = "one score"

    def __init__(
        self, items: int, bounds: tuple[float, float] = (0.0, 1.0), law: Any = "uniform", delta: float = 0
    ) -> None:
        self.items, self.delta = whole("items", items, 2), number("delta", delta, 0, below=1)
        low, high = (float(end) for end in bounds)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(
                Setting("bounds"), f" must be two finite numbers, the lower below the upper, got {low:g} and {high:g}"
            )
        self.span = high - low
        self.law: ScoreLaw = score_law(law, low, high)
        self.options = tuple(
            name
            for name, kind in SCORE_MECHANISMS.items()
            if "epsilon" in kind.needs and "count" not in kind.needs and (self.delta or "delta" not in kind.needs)
        )
        self.subject = f"{items} scores between {low:g} and {high:g}"
        self._assumed = f"{'an' if law == 'exponential' else 'a'} {law}" if isinstance(law, str) else "the given"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The law of the scores, and the looser promise of Gaussian noise."""
        return (
            f"Scores are independent draws of {self._assumed} law.",
            *([f"Gaussian noise keeps its epsilon except with probability {self.delta:g}."] if self.delta else []),
        )

    def _noise(self, option: str, epsilon: float) -> tuple[ScoreNoise, float]:
        noise, sigma = _planned(option, epsilon, self.delta)
        return noise, sigma * self.span

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """By the closed forms and quadratures of ``theory.recovery``."""
        noise, sigma = self._noise(option, epsilon)
        return accuracy_of_sorting(measure, self.items, noise, sigma, self.law, request)

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """The standard deviation of the noise, and its shape."""
        noise, sigma = self._noise(option, epsilon)
        shape = {"p": noise.p} if isinstance(noise, GeneralizedNormal) else {}
        return {"standard_deviation": sigma, **shape}


@lru_cache(maxsize=1024)
def _planned(option: str, epsilon: float, delta: float) -> tuple[ScoreNoise, float]:
    return SCORE_MECHANISMS[option].planned(epsilon, delta)


def accuracy_of_sorting(
    measure: Measure, items: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, request: Request
) -> float:
    """The measure for ``items`` independent scores of this law, released with errors of sigma times ``noise``."""
    if measure is HALF_WIDTH:
        return sigma * float(noise.quantile((1 + request.level) / 2))
    if measure is PAIRS:
        return recovery.concordance(noise, sigma, law)
    if measure is EXACT:
        return order_probability_iid(items, noise, sigma, law, tolerance=2e-3, most_cells=512).value
    return recovery.top_k_overlap_iid(items, request.top, noise, sigma, law)
