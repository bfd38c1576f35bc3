"""Elect: ranked ballots in, a published result out, with every ballot protected.

| rule | what is released under the guarantee | what follows from it, for free |
|---|---|---|
| plurality | noisy votes for first places, or the first few (``ballots.rounds``) | an order |
| borda | noisy Borda scores (``mechanisms.ballots.borda``) | an order |
| irv, stv | noisy tallies round by round, with what is exhausted (``ballots.rounds``) | who goes out, is elected |
| kemeny, copeland, ranked-pairs, schulze | noisy margins (``ballots.margins``) | an order |
| condorcet | noisy margins (``ballots.margins``) | whether someone beats every other, and who |
| borda or plurality, winners alone | one name, or several (``ballots.selection``) | |

Where the number of ballots is secret it is noisy too: it is the sum of the votes or tallies, or, next to points and
margins, a number of its own with a twentieth of the budget (``ballots.rounds.NoisyNumber``).

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
from rankdp.mechanisms.ballots.rounds import NoisyNumber, NoisyVotes
from rankdp.mechanisms.ballots.selection import PermuteAndFlip, TopSet
from rankdp.privacy.bits import Bits, SecureBits, SeededBits, seeded
from rankdp.privacy.exact import Real
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, paid
from rankdp.privacy.release import Provenance, Release, released
from rankdp.publish.ballot_rules import (
    PAIR_RULES,
    RULES,
    borda_noise,
    check_rule,
    margin_noise,
    number_share,
    vote_noise,
)
from rankdp.publish.election_draws import Number, by_pairs, by_scores
from rankdp.publish.election_result import CANDIDATES_FROM_BALLOTS, Election
from rankdp.publish.limits import checked_delta, checked_epsilon
from rankdp.publish.runoff_draws import by_rounds
from rankdp.rankers.runoff import METHODS, UNTIL, Piles, run

ANNOUNCED = ("everything", "winners")

Mechanism = NoisyBorda | NoisyMargins | NoisyVotes | PermuteAndFlip | TopSet


def elect(
    ballots: Ballots | Any,
    epsilon: Real | None,
    *,
    rule: str,
    protect: str = "ballot",
    delta: Real = 0,
    seats: int = 1,
    first: int = 1,
    stv: str = "gregory",
    until: str = "two",
    announce: str = "everything",
    turnout: int | None = None,
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
        How much the result may give away about one ballot: smaller is more private. Exact: 0.1 is a tenth. None counts
        without noise, for the eyes of whoever holds the ballots: that result has no guarantee and says so everywhere.
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
    stv
        With "stv": how surpluses are transferred, "gregory" or "scottish" (``rankers.runoff``).
    until
        With "irv": "two" counts on until two candidates are left, "majority" ends as soon as one has more than half of
        the votes.
    announce
        "everything", or "winners": only the names of the winners, chosen by permute-and-flip (one seat) or as a
        set (several), for "borda" and "plurality". With few ballots that errs less, because no score is released.
    turnout
        A published number of ballots: the result says if it contradicts their number here. With ``protect="voter"``
        that is noisy, and by "plurality", where blank ballots are not counted, only a published number that is too
        small contradicts it.
    level
        The confidence of the intervals, between 0 and 1.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    deliver
        Called with the release, and with a function to call before its first byte leaves the process, while the charge
        is still held: what fails before that gives the charge back (``rankdp.privacy.ledger.spending``).
    **reading
        How to open ``ballots``: ``items`` (the public list of candidates), ``voter_column``, ``weight_column``; for
        engines ``table``; ``cleaning`` (the rule for skipped ranks, overvotes and the like); see ``Ballots.read``.

    Returns
    -------
    Release[Election]
        The result with its guarantee and provenance.
    """
    bits = seeded(bits, seed)
    request = ElectionRequest.of(epsilon, rule, protect, delta, seats, first, announce, level, stv, until, turnout)
    if request.epsilon is None and (ledger is not None or bits is not None):
        raise InputError(Setting("ledger" if ledger else "seed"), " cannot be combined with a count without noise")
    counted = request.count(Ballots.of(ballots, **reading))
    return counted.exact() if request.epsilon is None else paid(counted, ledger, bits, deliver)


@dataclass(frozen=True, slots=True)
class ElectionRequest:
    """What an election is asked to be, checked; all of it is public. Parameters as in ``elect``."""

    epsilon: Fraction | None
    rule: str
    protection: BallotProtection
    delta: Fraction
    seats: int
    first: int
    announce: str
    level: float
    stv: str
    until: str
    turnout: int | None

    @classmethod
    def of(
        cls,
        epsilon: Real | None,
        rule: str | None,
        protect: str = "ballot",
        delta: Real = 0,
        seats: int = 1,
        first: int = 1,
        announce: str = "everything",
        level: float = 0.95,
        stv: str = "gregory",
        until: str = "two",
        turnout: int | None = None,
    ) -> ElectionRequest:
        """Check what ``elect`` was given, before any ballot is read."""
        rule = check_rule(rule)
        one_of("announce", announce, ANNOUNCED)
        one_of("stv", stv, METHODS)
        one_of("until", until, UNTIL)
        exact, loss = None if epsilon is None else checked_epsilon(epsilon), checked_delta(delta)
        whole("seats", seats, 1)
        if turnout is not None:
            whole("turnout", turnout, 0)
        for name, asked, rules in (
            ("first", first != 1, ("plurality",)),
            ("stv", stv != "gregory", ("stv",)),
            ("until", until != "two", ("irv",)),
            ("announce", announce == "winners", ("borda", "plurality")),
            ("seats", seats != 1, tuple(known for known in RULES if known not in ("irv", "condorcet"))),
        ):
            if asked and rule not in rules:
                allowed = " or ".join(rules) if len(rules) < 4 else f"{', '.join(rules[:-1])} or {rules[-1]}"
                raise InputError(Setting(name), " needs ", Setting("rule"), f" {allowed}, got {rule}")
        protection = BallotProtection(protect)
        level = share("level", level)
        return cls(exact, rule, protection, loss, seats, first, announce, level, stv, until, turnout)

    def count(self, ballots: Ballots) -> CountedBallots:
        """Take the ballots; all that is refused because of them is refused here, where nothing is charged yet."""
        m = len(ballots.items)
        whole("seats", self.seats, 1, m - 1)
        whole("first", self.first, 1, m)
        counted = CountedBallots(self, ballots)
        if self.epsilon is not None and isinstance(
            mechanism := counted.mechanism, (NoisyBorda, NoisyMargins, NoisyVotes)
        ):
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
        assert asked.epsilon is not None
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
        if rule == "plurality":
            return vote_noise(*public, k=asked.first)
        return vote_noise(*public, rounds=m - 1, unit=METHODS[asked.stv] if rule == "stv" else SHARES)

    def draw(self, bits: Bits) -> Release[Election]:
        """Add the noise; the caller has charged ``guarantee``."""
        mechanism = self.mechanism
        parameters = self._parameters | getattr(mechanism, "parameters", {"announce": "winners"})
        return released(self._result(mechanism, bits), self.guarantee, self.what, parameters, bits)

    def exact(self) -> Release[Election]:
        """The count without noise, which carries no guarantee and is not to be published."""
        return Release(self._result(None, None), None, Provenance.now(self.what, self._parameters, None))

    @property
    def _parameters(self) -> dict[str, Any]:
        asked = self.request
        more: dict[str, dict[str, Any]] = {
            "stv": {"stv": asked.stv},
            "irv": {"until": asked.until},
            "plurality": {"first": asked.first},
        }
        return {
            "rule": asked.rule,
            "protect": asked.protection.unit,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "candidates": len(self.ballots.items),
            "seats": asked.seats,
            **more.get(asked.rule, {}),
        }

    def _result(self, mechanism: Mechanism | None, bits: Bits | None) -> Election:
        """The result with what a reader should know; without a mechanism the exact count."""
        asked, ballots = self.request, self.ballots
        result = replace(self._counted(mechanism, bits), cleaning=ballots.cleaning.sentence)
        warnings = [*result.warnings]
        if ballots.items_from_data:
            warnings.append(CANDIDATES_FROM_BALLOTS)
        low, high = result.ballots_low, result.ballots_high
        if asked.turnout is not None and low is None and result.ballots not in (None, asked.turnout):
            warnings.append(
                f"The published number of {asked.turnout:,} ballots contradicts these ballots, of which there are "
                f"{result.ballots:,}."
            )
        if asked.turnout is not None and low is not None and high is not None:
            voting = asked.rule == "plurality"  # blank ballots are missing in the sum of the votes
            more = (low + high) / 2 - asked.turnout
            if (more if voting else abs(more)) > high - low:  # four standard errors at 95%
                warnings.append(
                    f"The published number of {asked.turnout:,} ballots contradicts these ballots, of which there are "
                    f"about {result.ballots:,.0f} ± {(high - low) / 2:,.0f}{' that vote for somebody' * voting}."
                )
        return replace(result, warnings=tuple(warnings))

    def _counted(self, mechanism: Mechanism | None, bits: Bits | None) -> Election:
        """The result by the rule, from what the mechanism releases."""
        asked, ballots, rule = self.request, self.ballots, self.request.rule
        items, seats, level = ballots.items, asked.seats, asked.level
        public = asked.protection.count_public or mechanism is None
        if isinstance(mechanism, (PermuteAndFlip, TopSet)):
            counted = ballots.first_k(asked.first) if rule == "plurality" else ballots.centred_borda()
            chosen = tuple(items[item] for item in np.ravel(mechanism.sample(counted, bits or SecureBits())).tolist())
            return Election(rule, chosen, chosen, ballots=ballots.count if public else None, level=level)
        if rule in ("irv", "stv"):
            return self._runoff(mechanism if isinstance(mechanism, NoisyVotes) else None, bits, public)
        number: Number | None = Number(ballots.count)
        if not public and bits is not None and asked.epsilon is not None:
            number = None
            if rule != "plurality":
                share = number_share(asked.protection)
                delta = mechanism.delta if isinstance(mechanism, (NoisyBorda, NoisyMargins)) else 0
                noisy = NoisyNumber(asked.protection, asked.epsilon, delta, share)
                number = Number(noisy.sample(ballots.count, bits), noisy)
        if rule in PAIR_RULES:
            margins = ballots.margins()
            noise = mechanism if isinstance(mechanism, NoisyMargins) else None
            seen = margins.astype(np.float64) if noise is None or bits is None else noise.sample(margins, bits)
            assert number is not None
            return by_pairs(items, seen, noise, rule, seats, level, number)
        scores = ballots.centred_borda() if rule == "borda" else ballots.first_k(asked.first)
        own = mechanism if isinstance(mechanism, (NoisyBorda, NoisyVotes)) else None
        counts = scores if own is None or bits is None else own.sample(scores, bits)
        stated = np.asarray(counts if rule == "borda" else counts / SHARES, np.float64)
        result = by_scores(items, stated, own, rule, seats, level, number)
        if number is None and asked.first > 1:  # several votes a ballot do not tell how many ballots there are
            return replace(result, ballots=None, ballots_low=None, ballots_high=None)
        return result

    def _runoff(self, mechanism: NoisyVotes | None, bits: Bits | None, public: bool) -> Election:
        """The result of a runoff, round by round."""
        asked, ballots = self.request, self.ballots
        method = asked.stv if asked.rule == "stv" else None
        piles, rounds = Piles(ballots, METHODS[method] if method else SHARES), iter(range(len(ballots.items)))

        def tallies(standing: Any, transfers: Any, held: Any) -> Any:
            counted, number = piles.count(standing, transfers, held), next(rounds)
            return counted if mechanism is None or bits is None else mechanism.sample(counted, bits, number)

        cast = ballots.count if public else None
        runoff = run(len(ballots.items), tallies, seats=asked.seats, method=method, until=asked.until, cast=cast)
        return by_rounds(ballots.items, runoff, mechanism, asked.rule, asked.level, method or asked.until, cast)
