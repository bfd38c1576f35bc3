"""The rules of an election by name, and their noise, from public numbers only.

The officer names the rule: a program that chose one by epsilon could elect someone else at another epsilon.

An eps-DP release is (eps, delta)-DP too. So with a delta the noise is Gaussian only if that is smaller: by its
variance, or for votes by the mean error of all tallies, which ``mechanisms.ballots.rounds`` minimises.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

from rankdp.data.ballots import SHARES
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes

_Noise = TypeVar("_Noise", NoisyBorda, NoisyMargins, NoisyVotes)

RULES = {
    "plurality": "most first places",
    "borda": "most points by place",
    "irv": "instant runoff",
    "stv": "single transferable vote",
    "kemeny": "the order that overrules the fewest preferences",
    "copeland": "most duels won",
    "ranked-pairs": "largest majorities first",
    "schulze": "strongest chains of majorities",
    "condorcet": "who wins every duel, if anyone does",
}
"""What each rule does, in a few words."""
PAIR_RULES = ("kemeny", "copeland", "ranked-pairs", "schulze", "condorcet")
"""The rules that use only the margins between pairs of candidates."""


def check_rule(rule: str | None) -> str:
    """The name of a rule, or a refusal that lists all of them.

    Parameters
    ----------
    rule
        A name of ``RULES``.
    """
    if rule in RULES:
        return str(rule)
    *rules, last = [f"{name} ({words})" for name, words in RULES.items()]
    choose = f"choose {', '.join(rules)} or {last}"
    if rule is None:
        raise InputError(Setting("rule"), f" is required: {choose}")
    if rule == "auto":
        raise InputError(Setting("rule", rule), f" was removed, because the rule it used depended on epsilon: {choose}")
    if rule == "pairs":
        raise InputError(
            Setting("rule", rule), " was removed: name the rule itself, kemeny, copeland, ranked-pairs or schulze"
        )
    raise InputError(Setting("rule"), f" {rule!r} is unknown: {choose}")


def borda_noise(m: int, protection: BallotProtection, epsilon: Fraction, delta: Fraction) -> NoisyBorda:
    """The noise on Borda scores with the smaller variance."""
    spent = 1 - number_share(protection)
    pure = NoisyBorda(m, protection, epsilon, 0, spent)
    return _smaller(pure, NoisyBorda(m, protection, epsilon, delta, spent)) if delta else pure


def margin_noise(m: int, protection: BallotProtection, epsilon: Fraction, delta: Fraction) -> NoisyMargins:
    """The noise on margins with the smaller variance."""
    spent = 1 - number_share(protection)
    pure = NoisyMargins(m, protection, epsilon, 0, spent)
    return _smaller(pure, NoisyMargins(m, protection, epsilon, delta, spent)) if delta else pure


def number_share(protection: BallotProtection) -> Fraction:
    """The part of the budget for the number of ballots, where points and margins do not reveal it.

    A twentieth makes the other noise 5% larger, and at epsilon 1 the number is within 60 in 19 of 20 results. Plurality
    votes and the tallies of a runoff contain the number themselves.
    """
    return Fraction(0) if protection.count_public else Fraction(1, 20)


def vote_noise(
    m: int,
    protection: BallotProtection,
    epsilon: Fraction,
    delta: Fraction,
    k: int = 1,
    rounds: int = 1,
    unit: int = SHARES,
) -> NoisyVotes:
    """The noise that makes the mean error of all tallies smaller."""
    pure = NoisyVotes(m, protection, epsilon, k=k, rounds=rounds, unit=unit)
    return _smaller(pure, NoisyVotes(m, protection, epsilon, delta, k=k, rounds=rounds, unit=unit)) if delta else pure


def _smaller(pure: _Noise, gaussian: _Noise) -> _Noise:
    return gaussian if _size(gaussian) < _size(pure) else pure


def _size(noise: NoisyBorda | NoisyMargins | NoisyVotes) -> float:
    if not isinstance(noise, NoisyVotes):
        return noise.noise_variance
    law = 2 / math.pi if noise.delta else 1 / 2  # the squared mean of abs(noise), over its variance
    return sum((noise.candidates - r) * math.sqrt(law * noise.noise_variance(r)) for r in range(len(noise.shares)))
