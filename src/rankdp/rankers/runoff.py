"""Instant runoff and the single transferable vote, from tallies that may be noisy.

A round counts every ballot for the highest candidate on it who still stands; tied ones share it. Then

- *instant runoff*: the candidate with the fewest votes goes out, until one is left, which takes m - 1 rounds;
- *single transferable vote*, s seats: the quota is Droop's, floor(votes in the first round/(s + 1)) + 1. Who reaches it
  is elected, and their ballots go on at the worth they had times (votes - quota)/votes (Gregory's method, weighted and
  inclusive: all ballots of the candidate go on, not only the last that came). If nobody reaches it, the candidate with
  the fewest votes goes out. It ends when the seats are filled, or as many stand as seats are left: they are elected.

Of candidates with equally many votes the one listed later goes out.

A round counts only if more candidates stand than seats are left. Going out makes that excess, at first m - s, smaller
by one; being elected leaves it, and fills one of s seats. With m - s rounds that put someone out nothing more is
counted, and of the rounds that elect the s-th ends the count: so there are at most (m - s) + s - 1 = m - 1 rounds.

``run`` sees tallies only, from a ``Counter``; a private one adds noise. What a ballot is worth in a round follows from
the ballot itself and the tallies *stated* so far (who was elected, put out, and at which transfer value), not from the
other ballots: that is what makes the rounds of a private count cost what they cost (``mechanisms.ballots.rounds``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.data.ballots import SHARES, Ballots
from rankdp.types import Flags, Longs

Counter = Callable[[Flags, Mapping[int, Fraction]], Longs]
"""From who stands, and the transfer values of those elected in the round before, to tallies in units of 1/SHARES."""


@dataclass(frozen=True, slots=True)
class Round:
    """One count. Candidates are indices; ``tallies`` are in units of 1/SHARES and 0 for those who do not stand."""

    tallies: Longs
    standing: Flags
    elected: tuple[int, ...]
    eliminated: int | None
    transfers: Mapping[int, Fraction]
    """By candidate elected in this round: the share of each ballot's worth that goes on."""


@dataclass(frozen=True, slots=True)
class Runoff:
    """The rounds, and all candidates from the first elected to the first put out."""

    rounds: tuple[Round, ...]
    order: tuple[int, ...]
    seats: int
    quota: int | None
    """In whole votes; None for an instant runoff."""

    @property
    def elected(self) -> tuple[int, ...]:
        """The winners, in the order of their election."""
        return self.order[: self.seats]


class Piles:
    """The ballots in a count: what each is worth, in units, and whom it counts for.

    A ballot is worth a whole number of units, SHARES at first, and never more. It counts for its highest tied group of
    those who stand, in equal parts rounded down to units; transfers round down too. So its parts add up to at most
    SHARES units in every round.
    """

    def __init__(self, ballots: Ballots) -> None:
        ahead, _ = ballots.places()
        self._nobody = len(ballots.items)
        # a row per candidate, so that the ballots of one lie side by side
        self._ahead = np.where(ahead < ballots.lengths[:, None], ahead, self._nobody).T.copy()
        self._weights = ballots.weights
        self._worth = np.full(len(ballots.weights), SHARES, np.int64)
        self._part = self._worth
        self._pile: Flags = self._ahead < 0

    def count(self, standing: Flags, transfers: Mapping[int, Fraction]) -> Longs:
        """Hand on the ballots of those elected, and count for those who stand: a ``Counter`` without noise."""
        for item, value in transfers.items():
            moved = self._pile[item]
            parts, which = np.unique(self._part[moved], return_inverse=True)
            lost = np.array([part - int(part * value) for part in parts.tolist()], np.int64)
            self._worth[moved] -= lost[which]
        here = self._ahead[standing]
        best = here.min(axis=0)
        self._pile[:] = False
        self._pile[standing] = (here == best) & (best < self._nobody)
        self._part = self._worth // np.maximum(self._pile.sum(axis=0), 1)
        units = self._weights * self._part
        return np.array([units[pile].sum() for pile in self._pile], np.int64)


def run(candidates: int, count: Counter, *, seats: int = 1, quota: bool, votes: int | None = None) -> Runoff:
    """The whole count.

    Parameters
    ----------
    candidates
        How many candidates there are, more than seats.
    count
        Tallies a round.
    seats
        How many are to be elected.
    quota
        Whether a quota elects (single transferable vote), or only being the last one left does (instant runoff).
    votes
        How many votes the quota is of; the sum of the first tallies if None.
    """
    standing = np.ones(candidates, np.bool_)
    rounds: list[Round] = []
    elected: list[int] = []
    eliminated: list[int] = []
    needed, transfers = 0, dict[int, Fraction]()
    while len(elected) < seats < len(elected) + standing.sum():
        tallies = np.where(standing, count(standing.copy(), transfers), 0)
        if quota and not rounds:
            total = int(tallies.sum()) // SHARES if votes is None else votes
            needed = max(total // (seats + 1) + 1, 1)
        ranked = sorted(np.flatnonzero(standing).tolist(), key=lambda item: (-int(tallies[item]), item))
        reached = [item for item in ranked if quota and tallies[item] >= needed * SHARES][: seats - len(elected)]
        transfers = {item: 1 - Fraction(needed * SHARES, int(tallies[item])) for item in reached}
        last = None if reached else ranked[-1]
        rounds.append(Round(tallies, standing.copy(), tuple(reached), last, transfers))
        elected += reached
        eliminated += [] if last is None else [last]
        standing[[*reached, *([] if last is None else [last])]] = False
    left = sorted(np.flatnonzero(standing).tolist(), key=lambda item: (-int(rounds[-1].tallies[item]), item))
    return Runoff(tuple(rounds), (*elected, *left, *reversed(eliminated)), seats, needed if quota else None)
