"""What cast vote records share: contests, the marks on a ballot, and what marks mean.

Marks are pairs of a rank and a choice. A rank without a mark was skipped, two marks at one rank are an overvote, and
the rule of ``rankdp.data.cleaning`` says what follows. Where a contest has no ranks, the marked ones are tied in the
first place; more than may be voted for are an overvote. A record is one ballot of each contest that it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rankdp.data.cleaning import OVERVOTED, SKIPPED
from rankdp.data.columns import listed_names
from rankdp.data.orders import CountedOrders
from rankdp.errors import InputError, Setting

Marks = tuple[tuple[int, int], ...]
"""Pairs of a rank and a choice, in order."""


@dataclass(slots=True)
class Contest:
    """A contest: its name, how many may be voted for, whether choices have ranks, and the names of its choices."""

    name: str
    seats: int
    ranked: bool
    choices: list[str] = field(default_factory=list)
    places: dict[Any, tuple[int, int]] = field(default_factory=dict)
    """Where marks are: the rank and the choice of a column, or the choice (rank 0) of a candidate's id."""

    def choice(self, name: str) -> int:
        """The number of a choice, which is new if its name is."""
        if name not in self.choices:
            self.choices.append(name)
        return self.choices.index(name)


class Records(Protocol):
    """The records of a file or directory."""

    path: str
    contests: list[Contest]
    items_from_data: bool
    """Whether the choices are the marked ones, because nothing lists them."""

    def marks(self, contest: Contest) -> Counter[Marks]:
        """The distinct sets of marks for a contest, and how many ballots have each."""
        ...


def counted_marks(records: Records, contest: str | None) -> CountedOrders:
    """The candidates of a contest, its distinct ballots with their counts, and what was done with them.

    Parameters
    ----------
    records
        The records.
    contest
        The name of the contest, where there are several.
    """
    chosen = chosen_contest(records.contests, contest, records.path)
    found: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for marks, count in records.marks(chosen).items():
        found[ballot_of(marks, chosen.ranked, chosen.seats)] += count
    counted = [(count, ballot) for ballot, count in found.items()]
    how = "" if chosen.ranked else f"; no ranks, so that up to {chosen.seats} marks share the first place"
    notes = [f"the contest {chosen.name!r}{how}"]
    orders = CountedOrders.of(records.path, chosen.choices, counted, None, notes, chosen.name)
    orders.known.from_data = records.items_from_data
    return orders


def chosen_contest(contests: Sequence[Contest], asked: str | None, path: str) -> Contest:
    """The contest that was asked for, or the only one; of several the only one with ranks.

    Parameters
    ----------
    contests
        All contests of the records.
    asked
        A contest's name, in any case.
    path
        The file, for messages.
    """
    if asked is not None:
        wanted = [one for one in contests if one.name.casefold() == asked.strip().casefold()]
    else:
        wanted = [one for one in contests if one.ranked] or list(contests)
    if len(wanted) == 1:
        return wanted[0]
    got = "got none" if asked is None else f"got {asked!r}"
    raise InputError(
        f"{path}: ", Setting("contest"), f" must name one of {listed_names([one.name for one in contests])}, {got}"
    )


def ballot_of(marks: Marks, ranked: bool, seats: int) -> tuple[tuple[int, ...], ...]:
    """The groups of choices that marks mean, best first.

    Parameters
    ----------
    marks
        Pairs of a rank and a choice, in order.
    ranked
        Whether the ranks count; if not, the choices share the first place.
    seats
        How many choices without ranks may be marked.
    """
    if not ranked:
        voted = tuple(sorted({choice for _, choice in marks}))
        return (voted,) if len(voted) <= seats else ((OVERVOTED,),)
    places = [{choice for at, choice in marks if at == rank} for rank in range(1, max(marks, default=(0, 0))[0] + 1)]
    return tuple((OVERVOTED,) if len(here) > 1 else (*here,) if here else (SKIPPED,) for here in places)
