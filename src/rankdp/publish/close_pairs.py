"""An order of all candidates for any number of ballots: Borda scores first, then the margins of pairs that are close.

``auto`` publishes an order of all candidates that contradicts the voters little. Borda scores take little noise
but err where majorities run in cycles, and leave open who is first of two that are close. So with enough ballots only a
share of the budget goes to scores; the rest asks, in two halves, for the margins of those pairs which the numbers
released until then leave open (``rankers.margin_belief``, ``mechanisms.ballots.cube``): often a handful, with noise far
below that on all pairs. What is asked for depends on released numbers only, so the parts add up.

Whether there are enough ballots is said by

    u = 1.44 n/(t m),    t = sqrt(2 v)/m the noise on a margin by Borda scores that get all of the budget,

which is about n eps/m^2 for one replaced ballot. The gaps between neighbours, of some n/m, are then u times the noise:
how many pairs are open, for each candidate, depends on u alone, and so does the noise on them against Borda's, k being
proportional to m. From u = 5.5 on the questions pay (0.55 m for 7 to 10 candidates, 1100/m^3 for fewer, where Borda
scores have little noise of their own), with a share 2.2/u of scores, between 0.1 and 0.5. The constants were found by
simulation on published ballots; docs/benchmarks.md has what they give.
"""

from __future__ import annotations

import math
from fractions import Fraction

from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.cube import ChosenMargins
from rankdp.privacy.bits import Bits
from rankdp.privacy.cube_noise import MOST_NUMBERS
from rankdp.rankers.margin_belief import MarginBelief
from rankdp.types import Floats, Longs

_SCALE = 1.44  # makes u about n eps/m^2
_SMALLEST_SHARE, _LARGEST_SHARE, _SHARE = 0.1, 0.5, 2.2
_QUESTIONS = 2

Answer = tuple[Longs, Longs, Floats, ChosenMargins]
"""Pairs that were asked for, first and second ones, their noisy margins, and the mechanism that released them."""


def share_of_scores(m: int, ballots: float, noise: NoisyBorda) -> Fraction:
    """The share of the budget that ``auto`` spends on Borda scores, to a thousandth; 1 where that is all.

    Parameters
    ----------
    m, ballots
        How many candidates and ballots there are.
    noise
        The noise on Borda scores that get all of the budget.
    """
    enough = _SCALE * ballots / math.sqrt(2 * noise.noise_variance)
    if m < 3 or enough < max(1100 / m**3, min(0.55 * m, 5.5)):
        return Fraction(1)
    return Fraction(round(1000 * min(max(_SHARE / enough, _SMALLEST_SHARE), _LARGEST_SHARE)), 1000)


def ask(
    whole: NoisyBorda, share: Fraction, scores: Longs, margins: Longs, ballots: float, bits: Bits
) -> tuple[NoisyBorda, Floats, list[Answer], MarginBelief]:
    """Release scores, and then the margins of the pairs that released numbers leave open.

    Proof: ``share`` of the budget goes to the scores and the rest in equal parts to the questions, each about pairs
    that a function of public and released numbers names; adaptive composition, of eps or of rho.

    Parameters
    ----------
    whole, share
        The noise on scores that get all of the budget, and the share that they get.
    scores, margins
        The secret counts.
    ballots
        How many there are, about; public or released.
    bits
        Where the noise comes from.

    Returns
    -------
    tuple
        The noise on the scores, the noisy scores, the noisy margins, and what follows from both about all margins.
    """
    public = whole.protection, whole.epsilon, whole.delta
    noise = NoisyBorda(whole.items, *public, share)
    noisy = noise.sample(scores, bits)
    belief, answers = MarginBelief(noisy, noise.noise_variance, ballots), list[Answer]()
    for _ in range(_QUESTIONS):
        first, second = belief.pairs_to_ask(lambda pairs: _asked_variance(noise, pairs), MOST_NUMBERS)
        question = ChosenMargins(len(first), *public, (1 - share) / _QUESTIONS)
        answers.append((first, second, question.sample(margins[first, second], bits), question))
        belief.hear(*answers[-1][:3], question.noise_variance)
    return noise, noisy, answers, belief


def _asked_variance(scores: NoisyBorda, pairs: int) -> float:
    """About the variance of the noise on each of so many margins, with what the scores left."""
    left = (1 - scores.share) / _QUESTIONS
    if scores.rho is not None:
        return scores.protection.chosen_l2_squared(pairs) / (2 * float(scores.rho * left))
    return (pairs + 1) * (pairs + 2) / 3 * float(scores.protection.moved / (scores.epsilon * left)) ** 2
