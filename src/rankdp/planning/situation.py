"""The parts of a plan: a situation described by public numbers, measures of accuracy, mechanisms side by side.

A situation computes, for each of its options (mechanisms, kinds of noise) and each measure, the accuracy that an
epsilon buys. Accuracy never falls with epsilon, so a root search finds the epsilon that an accuracy needs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rankdp.checks import positive
from rankdp.errors import InputError, Setting

EVERYDAY = 5.0  # an epsilon that people publish with: what it buys is stated if a goal needs much more
LEAST, MOST = 1e-3, 1e6  # the range in which an epsilon is searched
_STRIDE = 2048
_STEP = math.log(8) / _STRIDE  # in the logarithm of a needed epsilon
_SMALL_GAIN = 0.05  # in ``Measure.lead``, over one stride


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of how accurate a release is."""

    name: str
    words: str
    phrase: str
    share: bool = True

    def show(self, value: float) -> str:
        """The value as text."""
        if math.isnan(value):
            return "–"
        if not self.share:
            return f"±{value:.3g}"
        if value < 0.0005:
            return "below 0.1%" if value > 0 else "0%"
        return "above 99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"

    def lead(self, value: float, target: float) -> float:
        """How far an accuracy is ahead of the target, at least 0 if it meets it; NaN if it is not known.

        The scale makes curves over log epsilon nearly straight: log(-log) for shares, log for other measures.
        """
        if math.isnan(value):
            return math.nan
        if not self.share:
            return math.log(target / value) if value > 0 else math.inf
        if not 0 < value < 1:
            return math.copysign(math.inf, value - 0.5)
        return math.log(math.log(target) / math.log(value))

    def check(self, target: float) -> float:
        """The target as a number, or a refusal."""
        asked = positive(self.name, target)
        if self.share and asked >= 1:
            raise InputError(
                Setting(self.name), f" must be a share below 1, because noise rules out certainty, got {target!r}"
            )
        return asked


PAIRS = Measure("pairs", "pairs in order", "{value} of pairs in order")
EXACT = Measure("exact", "exact order", "the exact order with probability {value}")
TOP = Measure("overlap", "top {k} kept", "{value} of the top {k} kept")
HALF_WIDTH = Measure(
    "half_width", "{level:.0%} interval of a score", "a {level:.0%} interval of {value} for a score", share=False
)
RIGHT_WINNER = Measure("right_winner", "right winner", "the right winner with probability {value}")
TALLY = Measure(
    "tally", "{level:.0%} interval of a tally", "a {level:.0%} interval of {value} votes for a tally", share=False
)
WIN_RATE = Measure(
    "win_rate", "{level:.0%} interval of a win rate", "a {level:.0%} interval of {value} for a win rate", share=False
)
MEASURES = {one.name: one for one in (PAIRS, EXACT, TOP, HALF_WIDTH, RIGHT_WINNER, TALLY, WIN_RATE)}


class Situation(ABC):
    """One of the situations of the README, from public numbers only."""

    #: what is released, in words, such as "a ranking of 20 items"
    subject: str
    #: what the epsilon protects
    protects: str
    #: the names of what is compared, simple ones first
    options: tuple[str, ...]
    #: slow options: their epsilon is searched around the smallest one of the others
    slow: frozenset[str] = frozenset()
    #: the measures that it can compute, the most important one first
    measures: tuple[Measure, ...]
    #: how many things are ranked
    items: int

    @cached_property
    def _known(self) -> dict[tuple[str, Measure, float, Request], float]:
        return {}

    def accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """What ``epsilon`` buys with this option; NaN where it is not known. Cached, because curves need it again."""
        asked = (option, measure, epsilon, request)
        if asked not in self._known:
            self._known[asked] = self._accuracy(*asked)
        return self._known[asked]

    @abstractmethod
    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """Compute what ``accuracy`` returns."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions in addition to the given numbers, one sentence each."""
        return ()

    def options_for_top(self, k: int) -> tuple[str, ...]:
        """What is compared for a top list of k."""
        return self.options

    @property
    def respondents_head(self) -> str:
        """The head of the column with ``respondents``."""
        return "respondents for one"

    def respondents(self, option: str, epsilon: float) -> float | None:
        """How many respondents are worth one true ranking to an unbiased aggregate; None where that is not known."""
        return None

    def advice(self, best: str, epsilon: float) -> str:
        """What to know before choosing the best option at this epsilon."""
        return ""

    def promises(self, epsilon: float) -> tuple[list[str], list[list[str]], str]:
        """What the possible promises cost at this epsilon: heads and rows of a table, and a sentence."""
        return [], [], ""

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """Public parameters of the option at this epsilon that a user would set."""
        return {}


@dataclass(frozen=True, slots=True)
class Request:
    """The question: the length of the top list and the confidence of intervals."""

    top: int
    level: float = 0.95

    def words(self, measure: Measure) -> str:
        """The measure's words with these numbers in them."""
        return measure.words.format(k=self.top, level=self.level)

    def phrase(self, measure: Measure, value: float) -> str:
        """The measure's value as part of a sentence."""
        return measure.phrase.format(value=measure.show(value), k=self.top, level=self.level)


def needed_epsilon(
    situation: Situation, option: str, measure: Measure, target: float, request: Request, near: float | None = None
) -> float:
    """The smallest epsilon between ``LEAST`` and ``MOST`` that meets the target, rounded up; infinite if none does.

    Epsilons are whole powers of exp(``_STEP``). Strides of a factor 8 from epsilon 1, or growing ones from ``near``,
    bracket the answer (where more epsilon has stopped helping, the next stride goes to the end); the Illinois method
    finds it.
    """
    low_end, high_end = math.ceil(math.log(LEAST) / _STEP), math.floor(math.log(MOST) / _STEP)

    def lead(place: int) -> float:
        epsilon = min(max(math.exp(place * _STEP), LEAST), MOST)
        return measure.lead(situation.accuracy(option, measure, epsilon, request), target)

    low = high = 0 if near is None else min(max(round(math.log(near) / _STEP), low_end), high_end)
    stride = _STRIDE if near is None else 1
    at_low = at_high = lead(low)
    while not at_high >= 0:
        if high == high_end:
            return math.inf
        stuck = high - low == _STRIDE and at_high - at_low < _SMALL_GAIN
        low, at_low, high = high, at_high, high_end if stuck else min(high + stride, high_end)
        at_high, stride = lead(high), min(8 * stride, _STRIDE)
    while at_low >= 0 and low > low_end:  # the start meets the target: search below
        high, at_high, low = low, at_low, max(low - stride, low_end)
        at_low, stride = lead(low), min(8 * stride, _STRIDE)
    if at_low >= 0:
        return math.exp(low * _STEP)
    while high - low > 1:  # try where the straight line between the ends is 0; an end that stays counts half
        share = at_low / (at_low - at_high) if math.isfinite(at_low - at_high) else 0.5
        near = min(2, (high - low) // 2)
        place = min(max(low + round(share * (high - low)), low + near), high - near)
        if (here := lead(place)) >= 0:
            high, at_high, at_low = place, here, at_low / 2
        else:
            low, at_low, at_high = place, here, at_high / 2
    return math.exp(high * _STEP)
