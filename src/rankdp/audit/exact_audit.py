"""What an exact audit found, and the exact numbers it is made of.

``decimal`` rounds logarithms correctly, so a little outwards encloses them between rationals.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLER_LEVEL = 1e-6  # a false alarm of the sampler's chi-squared test
_FEWEST_EXPECTED = 5
_DIGITS = 180


@dataclass(frozen=True)
class ExactAudit:
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

    kind = "exact"

    @property
    def sampler_agrees(self) -> bool:
        """Whether fresh draws follow the enumerated law, as far as they can tell."""
        return self.sampler_p_value is None or self.sampler_p_value >= _SAMPLER_LEVEL

    @property
    def law_holds(self) -> bool:
        """False where the law provably breaks the claim."""
        if self.delta_low is not None:
            return self.delta_low <= self.delta
        return self.epsilon_low <= self.claimed

    @property
    def holds(self) -> bool:
        """Whether neither the law nor the sampler breaks the claim."""
        return self.law_holds and self.sampler_agrees

    def explain(self) -> str:
        """The verdict in plain words."""
        words = [self._verdict()]
        if self.sampler_p_value is not None and not self.sampler_agrees:
            words.append(
                f"VIOLATION: the sampler does not draw the law that was enumerated (chi-squared p = "
                f"{self.sampler_p_value:.2g})."
            )
        elif self.sampler_p_value is not None:
            words.append(f"The sampler's draws agree with that law (chi-squared p = {self.sampler_p_value:.2g}).")
        return " ".join(words)

    def _verdict(self) -> str:
        start = ("Holds" if self.tolerance else "Holds exactly") if self.law_holds else "VIOLATION"
        if self.delta_low is not None and self.delta_high is not None:
            return (
                f"{start}: at epsilon {show(self.claimed)} the realised delta of {self.subject} is between "
                f"{show(self.delta_low, 6)} and {show(self.delta_high, 6)}; claimed {show(self.delta)}. Worst: "
                f"{self.worst} ({self.cases:,} cases, from {self.basis})."
            )
        low, high = show(self.epsilon_low, 6), show(self.epsilon_high, 6)
        range_ = low if low == high else f"between {low} and {high}"
        return (
            f"{start}: the realised epsilon of {self.subject} is {range_}; claimed {show(self.claimed)}. Worst: "
            f"{self.worst} ({self.cases:,} cases, from {self.basis})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: rationals as text."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "claimed_epsilon": str(self.claimed),
            "epsilon_low": floor_float(self.epsilon_low),
            "epsilon_high": ceil_float(self.epsilon_high),
            "epsilon_low_exact": str(self.epsilon_low),
            "epsilon_high_exact": str(self.epsilon_high),
            "delta": str(self.delta),
            "delta_low": None if self.delta_low is None else floor_float(self.delta_low),
            "delta_high": None if self.delta_high is None else ceil_float(self.delta_high),
            "worst": self.worst,
            "basis": self.basis,
            "cases": self.cases,
            "tolerance": self.tolerance,
            "sampler_p_value": self.sampler_p_value,
            "holds": self.holds,
            "explanation": self.explain(),
        }


def chi_squared(observed: NDArray[Any], law: NDArray[np.float64]) -> float:
    """The p-value of counts against a law, rare cells pooled; 0 where something impossible was seen."""
    from scipy.stats import chisquare

    total = float(observed.sum())
    expected = law * (total / law.sum())
    if observed[law == 0].sum():
        return 0.0
    seen, due = [0.0], [0.0]
    for cell in np.argsort(expected, kind="stable"):  # rare ones together until five are expected
        if due[-1] >= _FEWEST_EXPECTED:
            seen.append(0.0)
            due.append(0.0)
        seen[-1] += float(observed[cell])
        due[-1] += float(expected[cell])
    if len(due) > 1 and due[-1] < _FEWEST_EXPECTED:
        last_seen, last_due = seen.pop(), due.pop()
        seen[-1] += last_seen
        due[-1] += last_due
    if len(due) < 2:
        return 1.0
    return float(chisquare(seen, np.array(due) * (sum(seen) / sum(due))).pvalue)


def floor_float(value: Fraction | float) -> float | None:
    """A float at most ``value``; None for infinity, which JSON does not know."""
    if math.isinf(value):
        return None
    number = float(value)
    return number if number <= value else math.nextafter(number, -math.inf)


def ceil_float(value: Fraction | float) -> float | None:
    """A float at least ``value``; None for infinity."""
    if math.isinf(value):
        return None
    number = float(value)
    return number if number >= value else math.nextafter(number, math.inf)


def log_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around log(value), for value > 0, at most 1e-170 (1 + log) apart.

    The quotient is off by a relative 10^-179, so its logarithm by as much, and rounding that by a unit in its last
    place: a hundred such units outwards are enough, also where the logarithm is 0.
    """
    with decimal.localcontext(decimal.Context(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)) as context:
        logarithm = (Decimal(value.numerator) / Decimal(value.denominator)).ln(context)
    unit = Fraction(10) ** (max(logarithm.adjusted(), 0) + 3 - _DIGITS)
    return Fraction(logarithm) - unit, Fraction(logarithm) + unit


def show(value: Fraction | float, digits: int = 4) -> str:
    """A number for a sentence, in so many significant digits."""
    number = float(value)
    return "infinite" if math.isinf(number) else "none" if math.isnan(number) else f"{number:.{digits}g}"
