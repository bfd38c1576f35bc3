"""Elect: ranked ballots in, a published result out, with every ballot protected.

| rule | what is released under the guarantee | what follows from it, for free |
|---|---|---|
| plurality | noisy votes for first places, or the first few (``ballots.rounds``) | an order |
| borda | noisy Borda scores (``mechanisms.ballots.borda``) | an order |
| irv, stv | noisy tallies round by round (``ballots.rounds``) | who goes out, who is elected |
| kemeny, copeland, ranked-pairs, schulze | noisy margins (``ballots.margins``) | an order |
| condorcet | noisy margins (``ballots.margins``) | whether someone beats every other, and who |
| borda or plurality, winners alone | one name, or several (``ballots.selection``) | |

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
from rankdp.mechanisms.ballots.selection import PermuteAndFlip, TopSet
from rankdp.privacy.bits import Bits, SeededBits, seeded
from rankdp.privacy.exact import Real
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, paid
from rankdp.privacy.release import Release, released
from rankdp.publish.ballot_rules import PAIR_RULES, RULES, borda_noise, check_rule, margin_noise, vote_noise
from rankdp.publish.election_result import Election, by_pairs, by_rounds, by_scores
from rankdp.publish.limits import checked_delta, checked_epsilon
from rankdp.rankers.runoff import Piles, run

ANNOUNCED = ("everything", "winners")

Mechanism = NoisyBorda | NoisyMargins | NoisyVotes | PermuteAndFlip | TopSet


def elect(
    ballots: Ballots | Any,
    epsilon: Real,
    *,
    rule: str,
    protect: str = "ballot",
    delta: Real = 0,
    seats: int = 1,
    first: int = 1,
    announce: str = "everything",
    level: float = 0.95,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
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
        How the ballots are counted: "plurality" (most first places), "borda" (most points), "irv" (instant runoff),
        "stv" (single transferable vote), "kemeny", "copeland", "ranked-pairs" or "schulze" (orders that follow from
        the margins between two), or "condorcet" (whether one candidate beats every other, and who).
    protect
        "ballot" (one ballot, replaced by any other; how many there are is public) or "voter" (one ballot, cast or not;
        how many there are stays secret).
    delta
        Above 0, Gaussian noise is used where it is smaller, for (epsilon, delta)-differential privacy.
    seats
        How many win, fewer than there are candidates; 1 with "irv" and "condorcet".
    first
        With "plurality": how many candidates a ballot votes for, the first ones on it.
    announce
        "everything", or "winners": only the names of the winners, chosen by permute-and-flip (one seat) or as a
        set (several), for "borda" and "plurality". With few ballots that errs less, because no score is released.
    level
        The confidence of the intervals, between 0 and 1.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    seed
        For a rehearsal without a promise: short for ``bits=SeededBits(seed)``.
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
    bits = seeded(bits, seed)
    request = ElectionRequest.of(epsilon, rule, protect, delta, seats, first, announce, level)
    counted = request.count(Ballots.of(ballots, **reading))
    return paid(counted, ledger, bits, deliver)


@dataclass(frozen=True, slots=True)
class ElectionRequest:
    """What an election is asked to be, checked; all of it is public. Parameters as in ``elect``."""

    epsilon: Fraction
    rule: str
    protection: BallotProtection
    delta: Fraction
    seats: int
    first: int
    announce: str
    level: float

    @classmethod
    def of(
        cls,
        epsilon: Real,
        rule: str | None,
        protect: str,
        delta: Real,
        seats: int,
        first: int,
        announce: str,
        level: float,
    ) -> ElectionRequest:
        """Check what ``elect`` was given, before any ballot is read."""
        rule = check_rule(rule)
        one_of("announce", announce, ANNOUNCED)
        exact, loss = checked_epsilon(epsilon), checked_delta(delta)
        whole("seats", seats, 1)
        for name, asked, rules in (
            ("first", first != 1, ("plurality",)),
            ("announce", announce == "winners", ("borda", "plurality")),
            ("seats", seats != 1, tuple(known for known in RULES if known not in ("irv", "condorcet"))),
        ):
            if asked and rule not in rules:
                allowed = " or ".join(rules) if len(rules) < 4 else f"{', '.join(rules[:-1])} or {rules[-1]}"
                raise InputError(Setting(name), " goes with ", Setting("rule"), f" {allowed}, got {rule}")
        protection = BallotProtection(protect)
        return cls(exact, rule, protection, loss, seats, first, announce, share("level", level))

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
    def guarantee(self) -> Guarantee:
        """What the result will promise."""
        return self.mechanism.guarantee

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism for the rule."""
        asked, rule, m = self.request, self.request.rule, len(self.ballots.items)
        public = m, asked.protection, asked.epsilon, asked.delta
        if asked.announce == "winners":
            # a ballot's votes lie in [0, 1] and its Borda scores in [1 - m, m - 1]
            spread = asked.protection.moved * (SHARES if rule == "plurality" else 2 * (m - 1))
            if asked.seats == 1:
                return PermuteAndFlip(asked.protection, spread, asked.epsilon)
            return TopSet(asked.protection, spread, asked.epsilon, asked.seats)
        if rule == "borda":
            return borda_noise(*public)
        if rule in PAIR_RULES:
            return margin_noise(*public)
        return vote_noise(*public, k=asked.first) if rule == "plurality" else vote_noise(*public, rounds=m - 1)

    def draw(self, bits: Bits) -> Release[Election]:
        """Add the noise; the caller has charged ``guarantee``."""
        asked, m = self.request, len(self.ballots.items)
        rule, mechanism = asked.rule, self.mechanism
        known = self.ballots.count if asked.protection.count_public else None
        result = replace(self._result(rule, mechanism, bits), ballots=known)
        parameters = {
            "rule": rule,
            "protect": asked.protection.unit,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "candidates": m,
            "seats": asked.seats,
            **({"first": asked.first} if rule == "plurality" else {}),
            **getattr(mechanism, "parameters", {"announce": "winners"}),
        }
        if self.ballots.items_from_data:
            listed = "The list of candidates was taken from the ballots: who is listed at all is not protected."
            result = replace(result, warnings=(*result.warnings, listed))
        return released(result, self.guarantee, f"elect by {rule}", parameters, bits)

    def _result(self, rule: str, mechanism: Mechanism, bits: Bits) -> Election:
        """The result by this rule, from what the mechanism releases."""
        asked, ballots = self.request, self.ballots
        items, seats, level = ballots.items, asked.seats, asked.level
        if isinstance(mechanism, (PermuteAndFlip, TopSet)):
            counted = ballots.first_k(asked.first) if rule == "plurality" else ballots.centred_borda()
            chosen = tuple(items[item] for item in np.ravel(mechanism.sample(counted, bits)).tolist())
            return Election(rule, chosen, chosen, level=level)
        if isinstance(mechanism, NoisyBorda):
            scores = mechanism.sample(ballots.centred_borda(), bits)
            return by_scores(items, scores, mechanism, rule, seats, level)
        if isinstance(mechanism, NoisyMargins):
            margins = mechanism.sample(ballots.margins(), bits)
            return by_pairs(items, margins, mechanism, rule, seats, level)
        if rule == "plurality":
            votes = mechanism.sample(ballots.first_k(asked.first), bits) / SHARES
            return by_scores(items, votes, mechanism, rule, seats, level)
        piles, rounds = Piles(ballots), iter(range(len(items)))

        def tallies(standing: Any, transfers: Any) -> Any:
            return mechanism.sample(piles.count(standing, transfers), bits, next(rounds))

        cast = ballots.count if asked.protection.count_public else None
        runoff = run(len(items), tallies, seats=seats, quota=rule == "stv", votes=cast)
        return by_rounds(items, runoff, mechanism, rule, level)
