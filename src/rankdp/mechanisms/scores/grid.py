"""Shared by all noises for scores: a public grid, and the contract of a mechanism on it.

Each score is publicly bounded by lo and hi. The range is cut into K public steps, a score becomes an integer in {0..K},
integer noise with an exact law is added, and lo plus that many steps is released. A neighbour changes one score to any
other, hence one integer by at most K: if the rounding to integers treats each score separately, the sensitivity is
exactly K steps. So a guarantee that is proved for the law of the noise on the integers holds for the release; no real
number is idealized.

Released integers are clipped to within 2^61 of 0. This happens after the noise, so it costs nothing, and no draw of
practical probability reaches that far.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import whole
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.scores.tails import ORDERS, pure_renyi
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive, rational
from rankdp.privacy.guarantee import ONE_SCORE, Guarantee
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.types import Floats, Longs

_FINE = 20  # log2 of the fewest steps in the bounds, and in the noise's standard deviation, if integers allow it
_FINEST = 40
_WIDEST = 50  # log2 of the largest standard deviation in steps
_MOST_STEPS = 1 << _WIDEST
_FARTHEST = 1 << 61


@dataclass(frozen=True, slots=True)
class Grid:
    """The bounds of a score and the number of steps between them."""

    low: Fraction
    high: Fraction
    steps: int

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, _MOST_STEPS)

    @property
    def step(self) -> Fraction:
        """The distance of neighbouring grid points."""
        return (self.high - self.low) / self.steps

    def integers(self, scores: Floats) -> Longs:
        """Each score as the number of steps above the lower bound, clipped to the bounds."""
        low, high = float(self.low), float(self.high)
        share = (np.clip(scores, low, high) - low) / float(self.high - self.low)
        return np.rint(np.clip(share, 0, 1) * self.steps).astype(np.int64)

    def scores(self, integers: Longs) -> Floats:
        """Integers as scores."""
        return np.asarray(float(self.low) + integers * float(self.step))


def check_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """The public bounds as exact numbers, the lower first."""
    if bounds is None:
        raise InputError(
            Setting("bounds"),
            " must be given, two public numbers that every score lies between: bounds read from the scores would "
            "reveal them",
        )
    got = " and ".join(map(str, bounds)) if isinstance(bounds, list | tuple) else repr(bounds)
    wrong = InputError(Setting("bounds"), f" must be two finite numbers, the lower below the upper, got {got}")
    try:
        low, high = (rational(end, "bounds") for end in bounds)
        apart = float(high - low) / _MOST_STEPS if float(low) < float(high) else 0.0
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    if isinstance(bounds, str) or not low < high:
        raise wrong
    if not apart > 0:
        raise InputError(Setting("bounds"), f" must be far enough apart for floating-point numbers, got {got}")
    return low, high


def fitting_steps(spread: float) -> int:
    """How many steps to cut the bounds into, for noise whose standard deviation is ``spread`` times their distance.

    A power of two from public numbers only: 2^20 steps, more if the noise would span fewer than 2^20 of them, fewer if
    it would not fit 64-bit integers.
    """
    log = math.log2(min(max(spread, 1e-300), 1e300))
    if log > _WIDEST:
        raise InputError(
            f"this privacy needs noise of 2^{math.ceil(log)} times the range of the bounds, more than 64-bit integers "
            "hold: choose a larger epsilon or delta, or p nearer to 1"
        )
    return 1 << max(0, min(_FINEST, max(_FINE, _FINE + math.ceil(-log)), math.floor(_WIDEST - log)))


@dataclass(frozen=True, slots=True)
class Asked:
    """The request as exact numbers; None for what was not given."""

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    p: Fraction | float | None = None
    gamma: Fraction | None = None
    count: int | None = None

    @classmethod
    def read(cls, epsilon: Real | None, delta: Real, p: Real | None, gamma: Real | None, count: int | None) -> Asked:
        """The numbers, read exactly; "inf" is a p."""
        shape: Fraction | float | None = None
        if p is not None:
            shape = math.inf if str(p).strip().lower() in ("inf", "infinity") else rational(p, "p")
        return cls(
            None if epsilon is None else positive(epsilon),
            rational(delta, "delta"),
            shape,
            None if gamma is None else rational(gamma, "gamma"),
            count,
        )


@dataclass(frozen=True)
class ScoreMechanism(ABC):
    """Noise for a vector of scores; neighbours differ in one score."""

    grid: Grid
    asked: Asked

    #: the name in the catalogue, on the command line and in figures
    name: ClassVar[str]
    #: its colour in figures
    colour: ClassVar[str] = "#5B5B5B"
    #: which of epsilon, delta, p, gamma and count are required
    needs: ClassVar[tuple[str, ...]]
    #: which of them are optional
    takes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Refuse a request that this noise cannot guarantee."""
        asked, known = self.asked, self.needs + self.takes
        if not 0 <= asked.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {asked.delta}")
        for option in ("epsilon", "p", "gamma"):
            if option not in known and getattr(asked, option) is not None:
                raise InputError(f"{option} must not be given for {self.name} noise, got {getattr(asked, option)}")
        if "epsilon" in self.needs and (asked.epsilon is None or asked.epsilon <= 0):
            raise InputError(
                f"epsilon must be a finite number above 0 for {self.name} noise, got {asked.epsilon or 'nothing'}"
            )
        if "delta" in self.needs and not asked.delta:
            raise InputError(
                f"delta must be above 0 and below 1 for {self.name} noise, which has no finite epsilon, got 0"
            )
        if "delta" not in known and asked.delta:
            raise InputError(f"delta must be 0 for {self.name} noise, which needs none, got {asked.delta}")
        if "count" in self.needs:
            whole("count", asked.count, 1)

    @classmethod
    @abstractmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[ScoreNoise, float]:
        """For plans: the continuous law of variance 1, and its standard deviation for bounds that are 1 apart."""

    @property
    def epsilon(self) -> Fraction:
        """The epsilon asked for."""
        assert self.asked.epsilon is not None
        return self.asked.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta asked for."""
        return self.asked.delta

    @property
    def guarantee(self) -> Guarantee:
        """(eps, delta)-DP for one score, with the Rényi curve where it is finite."""
        curve = ((order, self.renyi(order)) for order in ORDERS)
        finite = tuple(point for point in curve if math.isfinite(point[1]))
        return Guarantee(ONE_SCORE, self.epsilon, self.delta, local=False, renyi=finite)

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise in steps."""

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise on a score."""
        return self.deviation * float(self.grid.step)

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters, for the provenance of a release."""
        return {
            "noise": self.name,
            "bounds": [float(self.grid.low), float(self.grid.high)],
            "steps": self.grid.steps,
            "step": float(self.grid.step),
            "standard_deviation": self.standard_deviation,
        }

    def renyi(self, alpha: float) -> float:
        """The Rényi epsilon of order ``alpha`` > 1, rounded up; it may be infinite."""
        try:
            order = float(alpha)
        except (TypeError, ValueError):
            order = math.nan
        if not 1 < order < math.inf:
            raise InputError(f"alpha must be a finite number above 1, got {alpha}")
        return self._renyi(order)

    def _renyi(self, order: float) -> float:
        """``renyi`` for a checked order: by default the curve that every eps-DP mechanism obeys."""
        return pure_renyi(float(self.epsilon), order)

    @abstractmethod
    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """Rationals around -log P(noise = j), up to a constant, at most 2**-bits apart: for exact audits."""

    @abstractmethod
    def log_prob(self, j: ArrayLike) -> Floats:
        """log P(noise = j), in floating point."""

    @abstractmethod
    def noise(self, count: int, bits: Bits) -> Longs:
        """``count`` draws of the noise, in steps."""

    def sample(self, scores: ArrayLike, bits: Bits) -> Floats:
        """Noisy scores, on the grid but not necessarily within the bounds; scores outside them are clipped first."""
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InputError("scores must be one row of finite numbers")
        noisy = self.grid.integers(values) + self.noise(len(values), bits)
        return self.grid.scores(np.clip(noisy, -_FARTHEST, _FARTHEST))
