"""Instant runoff and the single transferable vote, from tallies that may be noisy.

A round counts every ballot for the highest continuing candidate on it (neither elected nor out); tied ones share it,
and a ballot that lists no continuing candidate is exhausted. Then

- *instant runoff*: the candidate with the fewest votes goes out, until two are left and counted ("two"), or until one
  has more than half of the votes that are not exhausted ("majority");
- *single transferable vote*, s seats: the quota is Droop's, floor(votes in the first round/(s + 1)) + 1. Whoever
  reaches it is elected. A surplus goes on by weighted inclusive Gregory: *all* ballots of the elected candidate go on,
  each at the worth it had times (votes - quota)/votes. If no surplus is left to transfer, the candidate with the
  fewest votes goes out. It ends when the seats are filled, or as many candidates continue as seats are left: they are
  elected.

Two named rules transfer surpluses:

| | in a round | a ballot's worth is rounded down to |
|---|---|---|
| ``gregory`` | all surpluses at once | 1/720720 of a vote |
| ``scottish`` | the largest one; who is elected keeps the ballots until then and gets no more | five decimal places |

``scottish`` is the Scottish Local Government Elections Order 2011 (rules 45 to 52). Of candidates with equally many
votes the one comes last who had fewer in the last round in which they differed, else the one listed later (the Order
draws lots).

A round counts only if more candidates continue than seats are left. Every round but the first follows an elimination or
transfers. Eliminations that another round follows are at most m - s - 1, because after m - s of them as many continue
as there are seats; rounds with transfers that another follows at most s - 1, because after the s-th election nothing is
counted and each such round transfers at least one surplus. So there are at most m - 1 rounds.

``run`` sees tallies only, from a ``Counter``; a private one adds noise. What a ballot is worth in a round, and whom it
counts for, follows from the ballot itself and the tallies *stated* so far (who was elected, put out, and at which
transfer value), not from the other ballots: that is what makes the rounds of a private count cost what they cost
(``mechanisms.ballots.rounds``). Meek's rule has no such rounds: it finds its transfer values by counting again and
again, and so is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.data.ballots import SHARES, Ballots
from rankdp.types import Flags, Longs

Counter = Callable[[Flags, Mapping[int, Fraction], Flags], Longs]
"""From who continues, the transfer values of the surpluses that go on now, and who is elected and keeps the ballots
until later, to tallies in units of a vote; the last entry is the worth of the exhausted ballots."""

METHODS = {"gregory": SHARES, "scottish": 100_000}
"""The rules of the single transferable vote, and the units of one vote that each counts in."""
UNTIL = ("two", "majority")


@dataclass(frozen=True, slots=True)
class Round:
    """One count. Candidates are indices; ``tallies`` are in units and 0 for anyone not continuing."""

    tallies: Longs
    standing: Flags
    exhausted: int
    """The worth of the ballots that list no continuing candidate, in units."""
    elected: tuple[int, ...]
    eliminated: int | None
    transfers: Mapping[int, Fraction]
    """By candidate whose surplus goes on after this round: the share of each ballot's worth that does."""


@dataclass(frozen=True, slots=True)
class Runoff:
    """The rounds, and all candidates from the first elected to the first put out."""

    rounds: tuple[Round, ...]
    order: tuple[int, ...]
    seats: int
    quota: int | None
    """In whole votes; None for an instant runoff."""
    unit: int = SHARES
    """The units of one vote."""

    @property
    def elected(self) -> tuple[int, ...]:
        """The winners, in the order of their election."""
        return self.order[: self.seats]


class Piles:
    """The ballots in a count: what each is worth, in units, and whom it counts for.

    A ballot is worth a whole number of units, ``unit`` at first, and never more. It counts for its highest tied group
    of continuing candidates, in equal parts rounded down to units; transfers round down too. So its parts, with what is
    exhausted of it, add up to at most ``unit`` in every round.

    Parameters
    ----------
    ballots
        The ballots.
    unit
        The units of one vote.
    """

    def __init__(self, ballots: Ballots, unit: int = SHARES) -> None:
        ahead, _ = ballots.places()
        self._nobody = len(ballots.items)
        # a row per candidate, so that the ballots of one lie side by side
        self._ahead = np.where(ahead < ballots.lengths[:, None], ahead, self._nobody).T.copy()
        self._weights = ballots.weights
        self._worth = np.full(len(ballots.weights), unit, np.int64)
        self._part = self._worth
        self._pile: Flags = self._ahead < 0

    def count(self, standing: Flags, transfers: Mapping[int, Fraction], held: Flags | None = None) -> Longs:
        """Transfer surpluses, and count for continuing candidates: a ``Counter`` without noise."""
        for item, value in transfers.items():
            moved = self._pile[item]
            parts, which = np.unique(self._part[moved], return_inverse=True)
            lost = np.array([part - int(part * value) for part in parts.tolist()], np.int64)
            self._worth[moved] -= lost[which]
        keeps = standing if held is None else standing | held
        goes = self._pile[~keeps].any(axis=0) | ~self._pile.any(axis=0)
        here = self._ahead[standing]
        best = here.min(axis=0)
        self._pile[:, goes] = False
        self._pile[standing] |= (here == best) & (best < self._nobody) & goes
        holders = self._pile.sum(axis=0)
        self._part = self._worth // np.maximum(holders, 1)
        units = self._weights * self._part
        tallies = np.array([units[pile].sum() for pile in self._pile], np.int64)
        return np.append(np.where(standing, tallies, 0), units[holders == 0].sum())


def run(
    candidates: int,
    count: Counter,
    *,
    seats: int = 1,
    method: str | None = None,
    until: str = "two",
    cast: int | None = None,
) -> Runoff:
    """The whole count.

    Parameters
    ----------
    candidates
        How many candidates there are, more than seats.
    count
        Tallies one round.
    seats
        How many are to be elected.
    method
        A name of ``METHODS`` for the single transferable vote; None for an instant runoff.
    until
        When an instant runoff ends: a word of ``UNTIL``.
    cast
        How many ballots there are, if that is public: the quota is then of the ballots not exhausted in the
        first round. Without it, of the sum of the first tallies.
    """
    unit = METHODS[method] if method else SHARES
    standing, held = np.ones(candidates, np.bool_), np.zeros(candidates, np.bool_)
    rounds: list[Round] = []
    elected: list[int] = []
    eliminated: list[int] = []
    quota, transfers, surpluses = 0, dict[int, Fraction](), dict[int, tuple[int, Fraction]]()

    def open_seats() -> bool:
        return len(elected) < seats < len(elected) + int(standing.sum())

    while open_seats():
        *counted, exhausted = count(standing.copy(), transfers, held.copy()).tolist()
        tallies, stood = np.where(standing, counted, 0), standing.copy()
        if method and not rounds:
            total = int(tallies.sum()) if cast is None else cast * unit - max(exhausted, 0)
            quota = max(total // (unit * (seats + 1)) + 1, 1) * unit
        ranked = _ranked(np.flatnonzero(standing).tolist(), tallies, rounds)
        if method:
            reached = [item for item in ranked if tallies[item] >= quota][: seats - len(elected)]
        else:
            half = sum(max(int(tallies[item]), 0) for item in ranked)
            reached = ranked[:1] if until == "majority" and 2 * tallies[ranked[0]] > half else []
        elected += reached
        standing[reached], held[reached] = False, True
        for item in reached if method else ():
            over = int(tallies[item]) - quota
            if over or method == "gregory":
                surpluses[item] = over, Fraction(over, int(tallies[item]))
        last, transfers = None, {}
        if open_seats() and surpluses:
            going = list(surpluses) if method == "gregory" else [max(surpluses, key=lambda item: surpluses[item][0])]
            transfers = {item: surpluses.pop(item)[1] for item in going}
            held[going] = False
        elif open_seats():
            last = [item for item in ranked if standing[item]][-1]
            eliminated.append(last)
            standing[last] = False
        rounds.append(Round(tallies, stood, exhausted, tuple(reached), last, transfers))
    left = _ranked(np.flatnonzero(standing).tolist(), rounds[-1].tallies, rounds)
    order = (*elected, *left, *reversed(eliminated))
    return Runoff(tuple(rounds), order, seats, quota // unit if method else None, unit)


def _ranked(items: Iterable[int], tallies: Longs, rounds: Sequence[Round]) -> list[int]:
    """From most votes to fewest; equals by the rounds before, then by the list."""
    sofar = [tallies, *(held.tallies for held in reversed(rounds))]
    return sorted(items, key=lambda item: (*(-int(said[item]) for said in sofar), item))
