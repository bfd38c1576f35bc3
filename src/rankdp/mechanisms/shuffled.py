"""The guarantee against everyone who sees synthetic rankings without names, order or time (``theory.shuffling``)."""

from __future__ import annotations

from fractions import Fraction

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.exact import shown, upwards
from rankdp.theory.shuffling import shuffled_epsilon


def epsilon_outside(made: RankingMechanism, answers: int, delta: float = 1e-6) -> float:
    """The epsilon of one whole answer for a reader of all answers in random order, or of results computed from them.

    Parameters
    ----------
    made
        The mechanism of every answer; all have the same length and epsilon.
    answers
        The number of answers.
    delta
        The probability with which the promise may fail.
    """
    return shuffled_epsilon(upwards(float(made.local_epsilon())), answers, delta, made.total_variation())


def outside_sentence(made: RankingMechanism, answers: int, delta: float = 1e-6) -> str:
    """One sentence for plans and survey pages, with its assumptions. Parameters as in ``epsilon_outside``."""
    found, failing = epsilon_outside(made, answers, delta), f"{delta:g}".replace("e-0", "e-")
    return (
        f"For everyone who does not receive single answers: epsilon {found:g} at delta {failing} with {answers:,} "
        f"whole answers at epsilon {shown(Fraction(made.local_epsilon()))}, if names, order and time are deleted and "
        "results are published once."
    )
