"""What a plan is made of: a situation described by public numbers, measures of accuracy, mechanisms side by side.

A situation knows, for each of its options (mechanisms, kinds of noise) and each measure, the accuracy that an epsilon
buys. Accuracy never falls with epsilon, so the epsilon that an accuracy needs is where a curve meets a line.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankdp.errors import InputError

EVERYDAY = 5.0  # an epsilon that people publish with: what it buys is said whenever much more is asked for
LEAST, MOST = 1e-3, 1e6  # where an epsilon is looked for
_PRECISION = 2e-3  # relative, of a needed epsilon


@dataclass(frozen=True, slots=True)
class Measure:
    """A way to say how accurate a release is."""

    name: str
    words: str
    phrase: str
    share: bool = True

    def show(self, value: float) -> str:
        """The value as a reader wants it."""
        if math.isnan(value):
            return "–"
        if not self.share:
            return f"±{value:.3g}"
        if value < 0.0005:
            return "below 0.1%" if value > 0 else "0%"
        return "above 99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"

    def meets(self, value: float, target: float) -> bool:
        """Whether an accuracy is as good as the target."""
        return value >= target if self.share else value <= target

    def check(self, target: float) -> float:
        """A target that can be asked for, or one sentence that says why not."""
        if isinstance(target, bool) or not isinstance(target, (int, float)) or not math.isfinite(target) or target <= 0:
            raise InputError(f"{self.name} must be a finite number above 0, got {target!r}")
        if self.share and target >= 1:
            raise InputError(f"{self.name} must be a share below 1, since noise never leaves certainty, got {target!r}")
        return float(target)


PAIRS = Measure("pairs", "pairs in order", "{value} of pairs in order")
EXACT = Measure("exact", "exact order", "the exact order with a probability of {value}")
TOP = Measure("overlap", "top {k} kept", "{value} of the top {k} kept")
HALF_WIDTH = Measure(
    "half_width", "{level:.0%} interval of a score", "a {level:.0%} interval of {value} for a score", share=False
)
MEASURES = {one.name: one for one in (PAIRS, EXACT, TOP, HALF_WIDTH)}


class Situation(ABC):
    """One of the three situations of the README, from public numbers only."""

    #: what is released, in words, such as "a ranking of 20 items"
    subject: str
    #: what the epsilon protects
    protects: str
    #: the names of what is compared, simple ones first
    options: tuple[str, ...]
    #: which accuracies it can tell
    measures: tuple[Measure, ...]
    #: how many things are ranked
    items: int

    @abstractmethod
    def accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """What ``epsilon`` buys with this option; NaN where it is not known."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was supposed beside the given numbers, a sentence each."""
        return ()

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """Public parameters of the option at this epsilon that a user would set."""
        return {}


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: the length of the top list and the confidence of intervals."""

    top: int
    level: float = 0.95

    def words(self, measure: Measure) -> str:
        """The measure's words with these numbers in them."""
        return measure.words.format(k=self.top, level=self.level)

    def phrase(self, measure: Measure, value: float) -> str:
        """The measure's value as part of a sentence."""
        return measure.phrase.format(value=measure.show(value), k=self.top, level=self.level)


def needed_epsilon(situation: Situation, option: str, measure: Measure, target: float, request: Request) -> float:
    """The smallest epsilon between ``LEAST`` and ``MOST`` that meets the target, rounded up; infinite if none does."""

    def meets(log_epsilon: float) -> bool:
        return measure.meets(situation.accuracy(option, measure, math.exp(log_epsilon), request), target)

    low = high = 0.0
    while not meets(high):
        if high >= math.log(MOST):
            return math.inf
        low, high = high, min(high + math.log(8), math.log(MOST))
    if low == high:  # epsilon 1 is enough: look below
        low = -math.log(8)
        while low > math.log(LEAST) and meets(low):
            low, high = low - math.log(8), low
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return math.exp(high)
