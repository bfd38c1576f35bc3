"""Limits of the public numbers in a request. They are checked before data are counted and before a budget is charged.

A release that fails after its charge stays paid for (``privacy.ledger.spending``), so every refusal that public numbers
allow is made here. The limits come from the arithmetic after the charge:

- Noise. The scale of every count's noise is at most a few hundred times c/epsilon, where c is the number of comparisons
  that can change between neighbours (the factor covers sensitivities and shares of epsilon). Noisy counts must be whole
  numbers below 2^53, which doubles hold exactly. With c/epsilon <= 2^31 a count exceeds 2^53 only if its noise is more
  than 2^13 times its scale, with probability e^-8192.
- delta. Doubles reach down to 2.2e-308; smaller ones become 0.
- prior. At 10 an item one deviation above another wins all but e^-10 of their comparisons, so a wider prior makes no
  difference. Below 0.01 no interval could ever show a difference.
"""

from __future__ import annotations

from fractions import Fraction

from rankdp.checks import positive as positive_float
from rankdp.errors import InputError, Setting
from rankdp.privacy.exact import Real, positive, rational, shown

MOST_EPSILON = 10**6
MOST_NOISE = 1 << 31
LEAST_DELTA = Fraction(1, 10**300)
PRIORS = 0.01, 10.0


def checked_epsilon(epsilon: Real) -> Fraction:
    """An epsilon that is not far beyond any protection."""
    exact = positive(epsilon)
    if exact > MOST_EPSILON:
        raise InputError(
            Setting("epsilon"), f" must be at most {MOST_EPSILON:,}, far beyond any protection, got {epsilon!s}"
        )
    return exact


def checked_delta(delta: Real) -> Fraction:
    """A delta that is 0, or that doubles can hold."""
    exact = rational(delta, "delta")
    if not 0 <= exact < 1:
        raise InputError(Setting("delta"), f" must be at least 0 and below 1, got {delta!s}")
    if 0 < exact < LEAST_DELTA:
        raise InputError(Setting("delta"), f" must be 0 or at least 1e-300, got {delta!s}")
    return exact


def check_noise(moved: int, epsilon: Fraction) -> None:
    """Refuse noise that does not fit the arithmetic; ``moved`` comparisons can change between neighbours."""
    if moved <= MOST_NOISE * epsilon:
        return
    if moved == 1:
        raise InputError(
            Setting("epsilon"), f" must be at least {shown(Fraction(1, MOST_NOISE))}, got {shown(epsilon)}"
        )
    raise InputError(
        Setting("max_per_voter"),
        " must be at most ",
        f"{int(MOST_NOISE * epsilon):,} at epsilon {shown(epsilon)} ({MOST_NOISE:,} times epsilon), got {moved:,}",
    )


def checked_prior(prior: float) -> float:
    """A deviation of the prior within ``PRIORS``."""
    deviation = positive_float("prior", prior)
    if not PRIORS[0] <= deviation <= PRIORS[1]:
        raise InputError(Setting("prior"), f" must lie between {PRIORS[0]:g} and {PRIORS[1]:g}, got {prior!s}")
    return deviation
