"""Elect: ranked ballots in, a published result out, with every ballot protected.

| rule | what is released under the guarantee | what follows from it, for free |
|---|---|---|
| borda | noisy Borda scores (``mechanisms.ballots.borda``) | an order |
| pairs | noisy margins (``ballots.margins``) | an order by Kemeny, Copeland, …; a Condorcet winner |
| plurality | noisy votes for first places, or the first few (``ballots.rounds``) | an order |
| irv, stv | noisy tallies round by round (``ballots.rounds``) | who goes out, who is elected |
| borda or plurality, winners alone | one name, or several (``ballots.selection``) | |

``auto`` is borda, or with enough ballots borda and then the margins of close pairs, at a share that public numbers say
(``close_pairs``). Where the number of ballots is secret, it
gets a twentieth of epsilon for a noisy number first; both parts add up to epsilon, and their rho to that of zCDP, a
pure part being worth eps^2/2.

    check what is asked -> read and count the ballots -> charge the ledger -> draw -> result

Everything that is refused is refused in the first two steps, where nothing is charged yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.checks import one_of, share, whole
from rankdp.data.ballots import SHARES, Ballots
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.mechanisms.ballots.selection import JointTopK, PermuteAndFlip
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.privacy.exact import Real, positive, rational, upwards
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, paid
from rankdp.privacy.noise import discrete_laplace
from rankdp.privacy.release import Release, released
from rankdp.publish.ballot_rules import borda_noise, margin_noise, vote_noise
from rankdp.publish.close_pairs import ask, share_of_scores
from rankdp.publish.election_result import (
    PAIR_RULES,
    Election,
    by_close_pairs,
    by_pairs,
    by_rounds,
    by_scores,
)
from rankdp.rankers.runoff import Piles, run

RULES = ("auto", "borda", "pairs", "plurality", "irv", "stv")
ANNOUNCED = ("everything", "winners")
_LARGEST_EPSILON = 10**6
_COUNT_SHARE = Fraction(1, 20)

Mechanism = NoisyBorda | NoisyMargins | NoisyVotes | PermuteAndFlip | JointTopK


def elect(
    ballots: Ballots | Any,
    epsilon: Real,
    *,
    rule: str = "auto",
    protect: str = "ballot",
    delta: Real = 0,
    seats: int = 1,
    first: int = 1,
    pairs_by: str = "kemeny",
    announce: str = "everything",
    level: float = 0.95,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    deliver: Callable[[Release[Election], Callable[[], None]], None] | None = None,
    **reading: Any,
) -> Release[Election]:
    """The result of an election by ranked ballots, with every ballot protected.

    Parameters
    ----------
    ballots
        ``Ballots`` or ``Rankings``, a file, lists of names, a frame or a table of an engine: whatever ``Ballots.of``
        opens with the options in ``reading``. Complete or truncated, with ties where the format has them.
    epsilon
        How much the result may give away about one ballot: smaller is more private. Exact: 0.1 is a tenth.
    rule
        "borda"; "pairs" (majorities between two); "plurality" (first places); "irv" (instant runoff); "stv" (single
        transferable vote); or "auto": borda, followed with enough ballots by majorities between those who are close.
    protect
        "ballot" (one ballot, replaced by any other; how many there are is public) or "voter" (one ballot, cast or not;
        how many there are stays secret).
    delta
        Above 0, Gaussian noise is used where it is smaller, for (epsilon, delta)-differential privacy.
    seats
        How many win, fewer than there are candidates; an instant runoff has one winner.
    first
        With "plurality": how many candidates a ballot votes for, the first ones on it.
    pairs_by
        How pairs are put in order: "kemeny", "copeland", "ranked-pairs" or "schulze".
    announce
        "everything", or "winners": only the names of the winners, chosen by permute-and-flip (one seat) or jointly
        (several), for "borda" and "plurality". With few ballots that errs less, because no score is released.
    level
        The confidence of the intervals, between 0 and 1.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    deliver
        Called with the release, and with a function to call before its first byte leaves the process, while the charge
        is still held: what fails before that gives the charge back (``rankdp.privacy.ledger.spending``).
    **reading
        How to open ``ballots``: ``items`` (the public list of candidates), ``voter_column``, ``weight_column``; for
        engines ``table``; see ``Ballots.read``.

    Returns
    -------
    Release[Election]
        The result with its guarantee and provenance.
    """
    request = ElectionRequest.of(epsilon, rule, protect, delta, seats, first, pairs_by, announce, level)
    counted = request.count(Ballots.of(ballots, **reading))
    return paid(counted, ledger, bits, deliver)


@dataclass(frozen=True, slots=True)
class ElectionRequest:
    """What an election is asked to be, checked; all of it is public. The words are those of ``elect``."""

    epsilon: Fraction
    rule: str
    protection: BallotProtection
    delta: Fraction
    seats: int
    first: int
    pairs_by: str
    announce: str
    level: float

    @classmethod
    def of(
        cls,
        epsilon: Real,
        rule: str,
        protect: str,
        delta: Real,
        seats: int,
        first: int,
        pairs_by: str,
        announce: str,
        level: float,
    ) -> ElectionRequest:
        """Check the words of ``elect``, before any ballot is read."""
        one_of("rule", rule, RULES)
        one_of("pairs_by", pairs_by, PAIR_RULES)
        one_of("announce", announce, ANNOUNCED)
        exact, loss = positive(epsilon), rational(delta, "delta")
        if exact > _LARGEST_EPSILON:
            raise InputError(
                Setting("epsilon"), f" must be at most {_LARGEST_EPSILON:,}, far beyond any protection, got {epsilon!s}"
            )
        if not 0 <= loss < 1:
            raise InputError(Setting("delta"), f" must be at least 0 and below 1, got {delta!s}")
        whole("seats", seats, 1)
        for name, asked, rules in (
            ("first", first != 1, ("plurality",)),
            ("pairs_by", pairs_by != "kemeny", ("pairs", "auto")),
            ("announce", announce == "winners", ("borda", "plurality")),
            ("seats", seats != 1, tuple(known for known in RULES if known != "irv")),
        ):
            if asked and rule not in rules:
                allowed = " or ".join(rules) if len(rules) < 4 else f"{', '.join(rules[:-1])} or {rules[-1]}"
                raise InputError(Setting(name), " goes with ", Setting("rule"), f" {allowed}, got {rule}")
        protection = BallotProtection(protect)
        return cls(exact, rule, protection, loss, seats, first, pairs_by, announce, share("level", level))

    def count(self, ballots: Ballots) -> CountedBallots:
        """Take the ballots; all that is refused because of them is refused here, where nothing is charged yet."""
        m = len(ballots.items)
        whole("seats", self.seats, 1, m - 1)
        whole("first", self.first, 1, m)
        counted = CountedBallots(self, ballots)
        if isinstance(mechanism := counted.mechanism, (NoisyBorda, NoisyMargins, NoisyVotes)):
            mechanism.noise(0, SeededBits(0))  # refuses what it cannot draw
        return counted


@dataclass(frozen=True, slots=True)
class CountedBallots:
    """The secret ballots, and what is asked of them."""

    request: ElectionRequest
    ballots: Ballots

    @property
    def what(self) -> str:
        """The release in a few words, for the ledger."""
        return f"elect by {self.request.rule}"

    @property
    def counting(self) -> Fraction:
        """What of epsilon goes into knowing how many ballots there are."""
        asked = self.request
        secret = asked.rule == "auto" and not asked.protection.count_public
        return asked.epsilon * _COUNT_SHARE if secret else Fraction(0)

    @property
    def guarantee(self) -> Guarantee:
        """What the result will promise."""
        asked, part = self.request, self.mechanism.guarantee
        rho = None if part.rho is None else upwards(part.rho + float(self.counting) ** 2 / 2)
        return Guarantee(asked.protection.protects, asked.epsilon, part.delta, local=False, rho=rho)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism for the rule, at what is left of epsilon; for ``auto`` that of Borda scores."""
        asked, rule, m = self.request, self.request.rule, len(self.ballots.items)
        public = m, asked.protection, asked.epsilon - self.counting, asked.delta
        if asked.announce == "winners":
            # a ballot's votes lie in [0, 1] and its Borda scores in [1 - m, m - 1]
            spread = asked.protection.moved * (SHARES if rule == "plurality" else 2 * (m - 1))
            if asked.seats == 1:
                return PermuteAndFlip(asked.protection, spread, asked.epsilon)
            return JointTopK(asked.protection, spread, asked.epsilon, asked.seats)
        if rule in ("auto", "borda"):
            return borda_noise(*public)
        if rule == "pairs":
            return margin_noise(*public)
        return vote_noise(*public, k=asked.first) if rule == "plurality" else vote_noise(*public, rounds=m - 1)

    def draw(self, bits: Bits) -> Release[Election]:
        """Add the noise; the caller has charged ``guarantee``."""
        asked, m = self.request, len(self.ballots.items)
        known = self.ballots.count if asked.protection.count_public else None
        if self.counting:
            known = max(1, self.ballots.count + int(discrete_laplace(1 / self.counting, 1, bits)[0]))
        mechanism = self.mechanism
        if asked.rule == "auto" and isinstance(mechanism, NoisyBorda) and known is not None:
            share = share_of_scores(m, known, mechanism)
            result, told = self._close_pairs(mechanism, share, known, bits)
        else:
            told = getattr(mechanism, "parameters", {"announce": "winners"})
            result = self._result(asked.rule, mechanism, bits)
        rule = result.rule
        result = replace(result, ballots=known)
        parameters = {
            "rule": asked.rule,
            "protect": asked.protection.unit,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "candidates": m,
            "seats": asked.seats,
            **({"first": asked.first} if rule == "plurality" else {}),
            **({"pairs_by": asked.pairs_by} if rule in ("pairs", "close-pairs") else {}),
            **({"noisy_ballots": known} if self.counting else {}),
            **told,
        }
        if self.ballots.items_from_data:
            listed = "The list of candidates was taken from the ballots: who is listed at all is not protected."
            result = replace(result, warnings=(*result.warnings, listed))
        return released(result, self.guarantee, f"elect by {rule}", parameters, bits)

    def _close_pairs(
        self, whole: NoisyBorda, share: Fraction, known: float, bits: Bits
    ) -> tuple[Election, dict[str, float]]:
        """Scores, and the margins of pairs that they leave open, if they get less than all; and public parameters."""
        asked, ballots = self.request, self.ballots
        if share == 1:
            return self._result("borda", whole, bits), whole.parameters
        told = ask(whole, share, ballots.centred_borda(), ballots.margins(), known, bits)
        result = by_close_pairs(ballots.items, *told, known, asked.pairs_by, asked.seats, asked.level)
        return result, {**told[0].parameters, "share_of_scores": float(share)}

    def _result(self, rule: str, mechanism: Mechanism, bits: Bits) -> Election:
        """The result by this rule, from what the mechanism releases."""
        asked, ballots = self.request, self.ballots
        items, seats, level = ballots.items, asked.seats, asked.level
        if isinstance(mechanism, (PermuteAndFlip, JointTopK)):
            counted = ballots.first_k(asked.first) if rule == "plurality" else ballots.centred_borda()
            chosen = tuple(items[item] for item in np.ravel(mechanism.sample(counted, bits)).tolist())
            return Election(rule, chosen, chosen, level=level)
        if isinstance(mechanism, NoisyBorda):
            scores = mechanism.sample(ballots.centred_borda(), bits)
            return by_scores(items, scores, mechanism, rule, seats, level)
        if isinstance(mechanism, NoisyMargins):
            margins = mechanism.sample(ballots.margins(), bits)
            return by_pairs(items, margins, mechanism, asked.pairs_by, seats, level)
        if rule == "plurality":
            votes = mechanism.sample(ballots.first_k(asked.first), bits) / SHARES
            return by_scores(items, votes, mechanism, rule, seats, level)
        piles, rounds = Piles(ballots), iter(range(len(items)))

        def tallies(standing: Any, transfers: Any) -> Any:
            return mechanism.sample(piles.count(standing, transfers), bits, next(rounds))

        cast = ballots.count if asked.protection.count_public else None
        runoff = run(len(items), tallies, seats=seats, quota=rule == "stv", votes=cast)
        return by_rounds(items, runoff, mechanism, rule, level)
