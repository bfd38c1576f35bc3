"""Which noise an election gets, from public numbers only.

An eps-DP release is (eps, delta)-DP too. So where a delta is allowed, the noise is Gaussian only if that is
smaller: by its variance, or for votes by the mean error of all tallies, which ``mechanisms.ballots.rounds`` minimises.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes

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
