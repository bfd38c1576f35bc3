"""What audits found: each says whether the claim holds, in words and as plain data."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from rankdp.report.document import plain

_SAMPLER_LEVEL = 1e-6  # a false alarm of the sampler's chi-squared test
_INDEPENDENCE_LEVEL = 1e-6


class Audit(ABC):
    """What one audit found, as a frozen dataclass."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def holds(self) -> bool:
        """Whether the claim survives."""

    @abstractmethod
    def explain(self) -> str:
        """The verdict in plain words."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the fields, the verdict and its words."""
        facts = {**dataclasses.asdict(self), **self._more_facts()}  # type: ignore[call-overload]
        claimed = {"claimed_epsilon": facts.pop("claimed")} if "claimed" in facts else {}
        verdict = {"holds": self.holds, "explanation": self.explain()}
        return dict(plain({"kind": self.kind, **claimed, **facts, **verdict}))

    def _more_facts(self) -> dict[str, Any]:
        """Facts that replace fields or add to them."""
        return {}


@dataclass(frozen=True)
class ExactAudit(Audit):
    """What enumeration found: the realised epsilon lies between ``epsilon_low`` and ``epsilon_high``.

    Parameters
    ----------
    subject
        What was audited, in words.
    claimed
        The claimed epsilon.
    epsilon_low, epsilon_high
        Bounds of the realised epsilon, exact rationals unless it is infinite.
    worst
        The output and the neighbours with the largest ratio of probabilities, in words.
    basis
        Where the probabilities come from, in words.
    cases
        How many pairs of neighbours and outputs were compared.
    tolerance
        How far computed probabilities may be off; 0 for exact ones.
    delta
        The claimed delta.
    delta_low, delta_high
        Bounds of the realised delta at the claimed epsilon; None if the claim has no delta.
    sampler_p_value
        The p-value of the sampler's draws against the enumerated law; None if nothing was drawn.
    rho, rho_low
        The claimed parameter of zCDP, and what it is at least; None if that was not looked at.
    """

    subject: str
    claimed: Fraction
    epsilon_low: Fraction | float
    epsilon_high: Fraction | float
    worst: str
    basis: str
    cases: int
    tolerance: float = 0.0
    delta: Fraction = Fraction(0)
    delta_low: Fraction | None = None
    delta_high: Fraction | None = None
    sampler_p_value: float | None = None
    rho: float | None = None
    rho_low: float | None = None

    kind: ClassVar[str] = "exact"

    @property
    def sampler_agrees(self) -> bool:
        """Whether fresh draws are consistent with the enumerated law."""
        return self.sampler_p_value is None or self.sampler_p_value >= _SAMPLER_LEVEL

    @property
    def law_holds(self) -> bool:
        """False where the law provably breaks the claim."""
        if self.rho is not None and self.rho_low is not None and self.rho_low > self.rho:
            return False
        if self.delta_low is not None:
            return self.delta_low <= self.delta
        return self.epsilon_low <= self.claimed

    @property
    def holds(self) -> bool:
        """Whether neither the law nor the sampler breaks the claim."""
        return self.law_holds and self.sampler_agrees

    def explain(self) -> str:
        """The verdict in plain words."""
        start = ("Holds" if self.tolerance else "Holds exactly") if self.law_holds else "VIOLATION"
        if self.delta_low is not None and self.delta_high is not None:
            what = f"at epsilon {show(self.claimed)} the realised delta"
            low, high, claimed = show(self.delta_low, 6), show(self.delta_high, 6), show(self.delta)
        else:
            what, claimed = "the realised epsilon", show(self.claimed)
            low, high = show(self.epsilon_low, 6), show(self.epsilon_high, 6)
        words = (
            f"{start}: {what} of {self.subject} is {low if low == high else f'between {low} and {high}'}; claimed "
            f"{claimed}. Worst: {self.worst} ({self.cases:,} cases, from {self.basis})."
        )
        if self.rho is not None and self.rho_low is not None:
            words += f" As zCDP, rho is at least {show(max(self.rho_low, 0))}; claimed {show(self.rho)}."
        if self.sampler_p_value is None:
            return words
        agrees = (
            "The sampler's draws agree with that law"
            if self.sampler_agrees
            else "VIOLATION: the sampler does not draw the law that was enumerated"
        )
        return f"{words} {agrees} (chi-squared p = {self.sampler_p_value:.2g})."

    def _more_facts(self) -> dict[str, Any]:
        """Rationals as text, and the ends also as floats that are rounded outwards."""
        return {
            "epsilon_low": floor_float(self.epsilon_low),
            "epsilon_high": ceil_float(self.epsilon_high),
            "epsilon_low_exact": _shortened(self.epsilon_low, math.floor),
            "epsilon_high_exact": _shortened(self.epsilon_high, math.ceil),
            "delta_low": None if self.delta_low is None else floor_float(self.delta_low),
            "delta_high": None if self.delta_high is None else ceil_float(self.delta_high),
        }


@dataclass(frozen=True)
class EventBound:
    """One event on the held-out draws: how often it happened for either input, and what that proves.

    Parameters
    ----------
    event
        The event, in words.
    inputs
        The two neighbouring inputs, in words; the event is likelier for the first.
    hits
        How often the event happened for each.
    draws
        How many draws of each there were.
    probability_low
        A lower confidence bound of the event's probability for the first input.
    probability_high
        An upper confidence bound of it for the second.
    epsilon_low
        The lower bound of epsilon that follows.
    """

    event: str
    inputs: tuple[str, str]
    hits: tuple[int, int]
    draws: tuple[int, int]
    probability_low: float
    probability_high: float
    epsilon_low: float


@dataclass(frozen=True)
class StatisticalAudit(Audit):
    """What samples show: with this confidence, epsilon is at least ``epsilon_low``.

    Parameters
    ----------
    subject, claimed, delta
        As in ``ExactAudit``.
    confidence
        The confidence of ``epsilon_low``, over all events together.
    events
        The events that were counted on the held-out draws.
    plain_estimate
        The largest log-ratio of observed frequencies (Xu, equation (8)): no bound; NaN if there is none.
    draws
        How many draws were made in total.
    pairs
        How many pairs of neighbours were searched.
    """

    subject: str
    claimed: Fraction
    delta: Fraction
    confidence: float
    events: tuple[EventBound, ...]
    plain_estimate: float
    draws: int
    pairs: int

    kind: ClassVar[str] = "statistical"

    @property
    def epsilon_low(self) -> float:
        """The best bound of all events, at least 0."""
        return max(0.0, *(event.epsilon_low for event in self.events))

    @property
    def worst(self) -> EventBound:
        """The event that shows most."""
        return max(self.events, key=lambda event: event.epsilon_low)

    @property
    def holds(self) -> bool:
        """Whether the claim survives."""
        return self.epsilon_low <= self.claimed

    def explain(self) -> str:
        """The verdict in plain words."""
        start = "No violation found" if self.holds else "VIOLATION"
        loss = f" with delta {show(self.delta)}" if self.delta else ""
        best = self.worst
        return (
            f"{start}: with {100 * self.confidence:.4g}% confidence epsilon is at least {_down(self.epsilon_low)}; "
            f"claimed {show(self.claimed)}{loss}. Told apart by: {best.event}, which happened in {best.hits[0]:,} of "
            f"{best.draws[0]:,} draws from {best.inputs[0]} and {best.hits[1]:,} of {best.draws[1]:,} from "
            f"{best.inputs[1]}." + self._plainly()
        )

    def _plainly(self) -> str:
        """The estimate of the paper, called what it is."""
        if not math.isfinite(self.plain_estimate):
            return ""
        return (
            f" (The largest log-ratio of observed frequencies, {show(self.plain_estimate)}, may be chance: it bounds "
            "nothing, and is shown because Xu's equation (8) estimates epsilon by it.)"
        )

    def _more_facts(self) -> dict[str, Any]:
        return {"epsilon_low": self.epsilon_low}


@dataclass(frozen=True)
class IndependenceAudit(Audit):
    """Whether draws are independent, question by question.

    Parameters
    ----------
    subject
        What was audited, in words.
    p_values
        The p-value of each question, by its name.
    constant
        Whether all draws were the same, so that nothing can be told.
    level
        The smallest corrected p-value that passes.
    """

    subject: str
    p_values: dict[str, float]
    constant: bool
    level: float = _INDEPENDENCE_LEVEL

    kind: ClassVar[str] = "independence"

    @property
    def p_value(self) -> float:
        """The smallest, corrected for how many there are."""
        return min(1.0, len(self.p_values) * min(self.p_values.values(), default=1.0))

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against independent draws."""
        return self.constant or self.p_value >= self.level

    def explain(self) -> str:
        """The verdict in plain words."""
        if self.constant:
            return "Inconclusive: every draw is the same, by a huge epsilon, no randomness or one seed for all."
        if self.holds:
            return f"The draws look independent (smallest p-value {self.p_value:.2g} after correction)."
        worst = min(self.p_values, key=lambda name: self.p_values[name])
        return f"VIOLATION: the draws are not independent, see {worst} (p = {self.p_value:.2g}): is a seed used twice?"


def floor_float(value: Fraction | float) -> float:
    """A float at most ``value``."""
    number = float(value)
    return number if number <= value else math.nextafter(number, -math.inf)


def ceil_float(value: Fraction | float) -> float:
    """A float at least ``value``."""
    return -floor_float(-value)


def _shortened(value: Fraction | float, rounded: Callable[[Fraction], int]) -> str:
    """An exact bound in at most 30 decimals, rounded away from what it bounds."""
    if not math.isfinite(value):
        return str(value)
    exact = Fraction(rounded(Fraction(value) * 10**30), 10**30)
    return str(exact) if exact.denominator < 10**6 else f"{exact.numerator * (10**30 // exact.denominator)}e-30"


def show(value: Fraction | float, digits: int = 4) -> str:
    """A number for a sentence, with this many significant digits."""
    number = float(value)
    return "infinite" if math.isinf(number) else "none" if math.isnan(number) else f"{number:.{digits}g}"


def _down(value: float) -> str:
    """Three digits after the point, rounded down: a bound is never overstated."""
    return f"{math.floor(value * 1000) / 1000:g}"
