"""Which rule and which noise an election gets, from public numbers only.

*Noise.* An eps-DP release is (eps, delta)-DP too. So where a delta is allowed, the noise is Gaussian only if that is
smaller: by its variance, or for votes by the mean error of all tallies, which ``mechanisms.ballots.rounds`` minimises.

*Rule.* ``auto`` publishes an order of all candidates that contradicts the voters little: by Borda scores, which take
little noise but err where majorities run in cycles, or by pairs, which need more ballots. Let the margins of n ballots
be y = g + r, g the difference of two Borda scores over m and r the cyclic part, and let them be spread over the pairs
with the standard deviations 0.4 n and 0.06 n (as in the votes that we have seen). An order by an estimate of y that has
the correlation c with y loses, of all majorities, the share

    E[max(y, 0); placed wrongly]/E[max(y, 0)] = (1 - c)/2

(for normal y and estimates). Borda's estimate is g + e with Var e = 2 v/m^2; that from pairs is g + e' + k (r + e''),
k = Var r/(Var r + Var e''), the noise being that of ``mechanisms.ballots``. The rule with the larger c is taken.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes

SPREAD_OF_SCORES, SPREAD_OF_CYCLES = 0.4, 0.06
"""Standard deviations of the two parts of a margin, as shares of the ballots."""

_Noise = TypeVar("_Noise", NoisyBorda, NoisyMargins, NoisyVotes)


def borda_noise(m: int, protection: BallotProtection, epsilon: Fraction, delta: Fraction) -> NoisyBorda:
    """The noise of the smaller variance on Borda scores."""
    pure = NoisyBorda(m, protection, epsilon)
    return _less(pure, NoisyBorda(m, protection, epsilon, delta)) if delta else pure


def margin_noise(m: int, protection: BallotProtection, epsilon: Fraction, delta: Fraction) -> NoisyMargins:
    """The noise of the smaller variance on margins."""
    pure = NoisyMargins(m, protection, epsilon)
    return _less(pure, NoisyMargins(m, protection, epsilon, delta)) if delta else pure


def vote_noise(
    m: int, protection: BallotProtection, epsilon: Fraction, delta: Fraction, k: int = 1, rounds: int = 1
) -> NoisyVotes:
    """The noise that makes the mean error of all tallies smaller."""
    pure = NoisyVotes(m, protection, epsilon, k=k, rounds=rounds)
    return _less(pure, NoisyVotes(m, protection, epsilon, delta, k=k, rounds=rounds)) if delta else pure


def _less(pure: _Noise, gaussian: _Noise) -> _Noise:
    return gaussian if _size(gaussian) < _size(pure) else pure


def _size(noise: NoisyBorda | NoisyMargins | NoisyVotes) -> float:
    if not isinstance(noise, NoisyVotes):
        return noise.noise_variance
    law = 2 / math.pi if noise.delta else 1 / 2  # the squared mean of abs(noise), over its variance
    return sum((noise.candidates - r) * math.sqrt(law * noise.noise_variance(r)) for r in range(len(noise.shares)))


def order_correlations(
    m: int, ballots: float, protection: BallotProtection, epsilon: Fraction, delta: Fraction
) -> dict[str, float]:
    """For "borda" and "pairs" the correlation c of estimated margins with the true ones, as the module models it.

    Parameters
    ----------
    m, ballots
        How many candidates and ballots there are.
    protection, epsilon, delta
        The guarantee.
    """
    scores, cycles = (SPREAD_OF_SCORES * ballots) ** 2, (SPREAD_OF_CYCLES * ballots) ** 2 if m > 2 else 0.0
    noisy = scores + 2 * borda_noise(m, protection, epsilon, delta).noise_variance / m**2
    pairs = margin_noise(m, protection, epsilon, delta)
    split, left = scores + 2 * pairs.scores.noise_variance / m**2, cycles + pairs.cyclic_variance / m**2
    kept = cycles / left if left else 0.0
    true = math.sqrt(scores + cycles)
    return {
        "borda": scores / (true * math.sqrt(noisy)),
        "pairs": (scores + kept * cycles) / (true * math.sqrt(split + kept**2 * left)),
    }


def chosen_rule(m: int, ballots: int, protection: BallotProtection, epsilon: Fraction, delta: Fraction) -> str:
    """ "borda" or "pairs": whichever order is expected to contradict the voters less.

    Parameters
    ----------
    m, ballots
        How many candidates and ballots there are.
    protection, epsilon, delta
        The guarantee.
    """
    found = order_correlations(m, max(ballots, 1), protection, epsilon, delta)
    return max(found, key=lambda rule: found[rule])
