"""The promise to everyone who sees synthetic rankings without names, order or time (``theory.shuffling``)."""

from __future__ import annotations

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.exact import upwards
from rankdp.theory.shuffling import shuffled_epsilon


def epsilon_outside(made: RankingMechanism, answers: int, delta: float = 1e-6) -> float:
    """The epsilon of one whole answer for who sees all answers in random order, or only what is computed from them.

    Parameters
    ----------
    made
        What every answer goes through; all of the same length and epsilon.
    answers
        How many answers there are.
    delta
        The probability with which the promise may fail.
    """
    return shuffled_epsilon(upwards(float(made.local_epsilon())), answers, delta)


def outside_sentence(made: RankingMechanism, answers: int, delta: float = 1e-6) -> str:
    """One sentence for plans and survey pages, with what it assumes. Parameters as in ``epsilon_outside``."""
    found = epsilon_outside(made, answers, delta)
    return (
        f"Of answers protected as a whole at epsilon {float(made.local_epsilon()):.3g}, everyone but whoever receives "
        f"single answers sees them at epsilon {found:g} and delta {delta:g} with {answers:,} answers, if their "
        "names, order and time are deleted and results are published once."
    )
