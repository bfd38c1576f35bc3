"""Noisy votes: first preferences, votes for the first k, and every round of a runoff, from one budget.

Law: in round r, tallies in units of 1/u vote, plus independent discrete Laplace noise of scale S u/eps_r on each. S is
the l1 sensitivity of the votes of a round (``protection``); u is SHARES, or the unit of the rule
(``rankers.runoff.METHODS``). The eps_r add up to eps over all rounds that the rule can have, m - 1 for runoffs; they
are fixed before anything is counted. With delta > 0: discrete Gaussian noise of variance S u^2/(2 rho_r), because S is
the squared l2 sensitivity too. A round of a runoff has one more tally, the worth of the exhausted ballots.

Round r of a runoff counts m + 1 - r candidates (or fewer). The mean error of all tallies is proportional to the sum of
(m + 1 - r)/eps_r, or of (m + 1 - r)/sqrt(rho_r). It is smallest if eps_r is proportional to the square root of
m + 1 - r, or rho_r to its power 2/3 (Lagrange). So rounds with many candidates, whose last two are often close, get
more.

Proof of eps. Let t_1, t_2, … be the released tallies. By a public rule they decide who is still in round r and at which
values ballots were transferred. Given them, what a ballot adds to the tallies of the round, exhausted ballots included,
is a function f_r of that ballot alone: its entries are at least 0 and add up to at most u (``runoff.Piles``: a ballot
counts for candidates or is exhausted, and its worth never grows). So for the *same* tallies of earlier rounds,
neighbours' tallies of round r differ by f_r(b), or by f_r(b) - f_r(b'), at most S u in l1, and

    P(t_r | t_1 … t_(r-1)) <= e^(eps_r) P'(t_r | t_1 … t_(r-1)).

The product over all rounds is at most e^eps. (Transfer values computed from the *true* tallies would break this: one
ballot would change the worth of all others.) In the same way round r is rho_r-zCDP, and rho adds up over adaptively
chosen rounds (Bun, Steinke 2016, Lemma 2.3).

A count that ends early has spent less than it was charged.

``NoisyNumber`` releases the number of ballots together with points or margins, which do not reveal it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from rankdp.data.ballots import SHARES
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.central import CentralNoise
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace
from rankdp.privacy.zcdp import deviation_for
from rankdp.types import Longs


class NoisyNumber(CentralNoise[BallotProtection]):
    """Releases the number of ballots, where it is secret: one ballot changes it by 1.

    Law: the number plus discrete Laplace noise of scale 1/(share eps), or discrete Gaussian noise of variance
    1/(2 share rho).

    Parameters
    ----------
    protection, epsilon, delta, share
        As in ``CentralNoise``.
    """

    @property
    def scale(self) -> Fraction:
        """The discrete Laplace scale, or the discrete Gaussian standard deviation rounded up."""
        return 1 / (self.epsilon * self.share) if self.rho is None else deviation_for(1, self.rho * self.share)

    def noise(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws of the noise."""
        return (discrete_laplace if self.rho is None else discrete_gaussian)(self.scale, count, bits)

    def sample(self, ballots: int, bits: Bits) -> int:
        """The noisy number."""
        return ballots + int(self.noise(1, bits)[0])


class NoisyVotes(CentralNoise[BallotProtection]):
    """Releases votes in units, in one round or several.

    Parameters
    ----------
    candidates
        The number of candidates.
    protection
        The unit of protection.
    epsilon, delta
        For all rounds together; with a delta above 0 the noise is Gaussian.
    k
        How many candidates a ballot votes for at a time.
    rounds
        The largest number of rounds.
    unit
        How many units a vote has.
    """

    def __init__(
        self,
        candidates: int,
        protection: BallotProtection,
        epsilon: Real,
        delta: Real = 0,
        *,
        k: int = 1,
        rounds: int = 1,
        unit: int = SHARES,
    ) -> None:
        super().__init__(protection, epsilon, delta)
        self.candidates, self.rounds, self.unit = candidates, rounds, unit
        self._moved = protection.votes(k, candidates)
        power = 2 / 3 if self.delta else 1 / 2
        parts = [round(1000 * (candidates - number) ** power) for number in range(rounds)]
        self.shares = tuple(Fraction(part, sum(parts)) for part in parts)
        """The share of the budget that each round gets."""

    def scale(self, number: int) -> Fraction:
        """The discrete Laplace scale of a round, or the discrete Gaussian standard deviation rounded up, in units."""
        if self.rho is None:
            return self._moved * self.unit / (self.epsilon * self.shares[number])
        variance = self._moved * self.unit**2 / (2 * self.rho * self.shares[number])
        return Fraction(math.isqrt(math.ceil(variance)) + 1)

    def noise_variance(self, number: int = 0) -> float:
        """The variance of the noise on one tally of a round, in votes; the grid of units is too fine to matter."""
        return (1 if self.delta else 2) * float(self.scale(number) / self.unit) ** 2

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters, for the provenance of a release."""
        gaussian = {} if self.rho is None else {"rho": float(self.rho)}
        return {"noise_variances": [self.noise_variance(number) for number in range(len(self.shares))], **gaussian}

    def noise(self, count: int, bits: Bits, number: int = 0) -> Longs:
        """``count`` independent draws of a round's noise, in units."""
        law = discrete_laplace if self.rho is None else discrete_gaussian
        return law(self.scale(number), count, bits)

    def sample(self, units: Longs, bits: Bits, number: int = 0) -> Longs:
        """The noisy votes of a round, counted from 0, in units and possibly negative."""
        return units + self.noise(len(units), bits, number)
