"""The signature attack: what publishing ballots as they are gives away.

A ballot shown to its k-th place is *unique* when no other ballot shows the same: who knows one of its places may find
all of them, and its voter can prove how they voted. A unique ballot stays unique when more places are shown, so the
share of unique ballots grows with k, and truncation to few places helps.

The *Italian attack* makes ballots unique on purpose. A coercer demands the first d places (a first preference, if
nothing else is said) and prescribes a different order to each voter for the places after them, as a signature to
look for in the published table. Of the (m-d)(m-d-1)…(m-k+1) orders of k places that begin as demanded, those that no
voter casts anyway are *free*: a ballot that shows one is the coerced voter's, and its absence is their disobedience.
So up to k places shown, as many voters can be bound as there are free orders (none if k <= d); without a named demand,
as many as for the first preference that has the fewest. Shorter ballots can be signatures too: the number is a floor.

(Di Cosmo, On privacy and anonymity in electronic and non electronic voting: the ballot-as-signature attack, 2007.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankdp.checks import share
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError
from rankdp.report.document import Report
from rankdp.report.plots import SERIES, drawing
from rankdp.report.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURATOR = "For the curator's eyes only: counted from the ballots without any noise. Do not publish it."


@dataclass(frozen=True, slots=True)
class Shown:
    """Ballots shown to one place: how many places, how many are unique, how many voters a coercer could bind."""

    places: int
    unique: int
    bound: int


@dataclass(frozen=True, slots=True)
class SignatureAttack:
    """What a published table of ballots gives away, by how many places it shows."""

    voters: int
    demanded: tuple[str, ...]
    limit: float
    shown: tuple[Shown, ...]

    @property
    def safe_places(self) -> int:
        """The most places at which a share of fewer than ``limit`` of the ballots are unique; 0 if there is none."""
        return sum(row.unique < self.limit * self.voters for row in self.shown)

    def explain(self) -> str:
        """The picture in words."""
        whole = self.shown[-1]
        demand = f"and demand {', then '.join(self.demanded)} first" if self.demanded else "whomever they demand first"
        safe = self.safe_places
        return (
            f"{whole.unique:,} of {self.voters:,} ballots ({whole.unique / self.voters:.1%}) are unique when shown "
            f"whole. A coercer who prescribes the order of the last places could bind {whole.bound:,} voters"
            f"{' ' if self.demanded else ', '}{demand}: each gets an order that nobody else casts. "
            + (
                f"Places to show if fewer than {100 * self.limit:.3g}% of the ballots may be unique: {safe}; "
                f"voters who could be bound then: {self.shown[safe - 1].bound:,}."
                if safe
                else f"Even first preferences alone leave {100 * self.limit:.3g}% of the ballots unique, or more."
            )
        )

    def report(self) -> Report:
        """A table and lines; every format says that it is not for publication."""
        rows = [
            [str(row.places), f"{row.unique:,}", f"{row.unique / self.voters:.1%}", f"{row.bound:,}"]
            for row in self.shown
        ]
        return Report(
            title="What publishing the ballots as they are gives away (for the curator's eyes only)",
            records=[
                {**asdict(row), "unique_share": row.unique / self.voters, "for_whom": CURATOR} for row in self.shown
            ],
            facts=lambda: {"for_whom": CURATOR, "safe_places": self.safe_places, **asdict(self)},
            tables=[Table(["places shown", "unique ballots", "share of all", "voters who could be bound"], rows)],
            headline=self.explain(),
            warnings=[CURATOR],
            figure=drawing(self.draw),
        )

    def draw(self, axes: Axes) -> None:
        """Two lines: unique ballots and voters who could be bound, as shares of all."""
        places = [row.places for row in self.shown]
        for colour, label, counts in (
            (SERIES[0], "ballots that are unique", [row.unique for row in self.shown]),
            (SERIES[1], "voters whom a coercer could bind", [row.bound for row in self.shown]),
        ):
            axes.plot(places, np.array(counts) / self.voters, "-o", color=colour, markersize=4, label=label)
        axes.axhline(self.limit, color="0.6", linestyle=":", label=f"{100 * self.limit:.3g}% of the voters")
        axes.set(xlabel="places shown", ylabel="share of all voters", ylim=(-0.02, 1.02))
        axes.set(title="Publishing the ballots as they are\n(for the curator's eyes only)")
        axes.set_xticks(places if len(places) <= 20 else places[:: len(places) // 10])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(color="0.93")
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2)


def signature_attack(ballots: Rankings, demanded: Sequence[str] = (), limit: float = 0.01) -> SignatureAttack:
    """How many ballots are unique, and how many voters could be bound by a signature, by how many places are shown.

    Parameters
    ----------
    ballots
        The ballots, one a voter, complete or truncated.
    demanded
        The places that a coercer demands, best first; without them any first preference.
    limit
        The share of unique ballots, above 0 and below 1, that a truncated table should stay below.
    """
    limit = share("limit", limit)
    names, m, n = tuple(demanded), len(ballots.items), len(ballots)
    if len(set(names)) < len(names) or not set(names) <= set(ballots.items):
        raise InputError(f"demanded must be different items of the ballots, got {', '.join(names)}")
    orders = np.full((n, m), -1, dtype=np.int32)
    orders[:, : ballots.orders.shape[1]] = ballots.orders[:, :m]
    orders = orders[np.lexsort(orders.T[::-1])]
    # equal prefixes are adjacent: a new one begins where a row differs from the row before it early enough
    changes = orders[1:] != orders[:-1]
    first_change = np.where(changes.any(axis=1), changes.argmax(axis=1), m)
    wanted = [ballots.items.index(name) for name in names]
    obeys = (orders[:, : len(wanted)] == wanted).all(axis=1)
    shown = []
    for places in range(1, m + 1):
        starts = np.flatnonzero(np.r_[True, first_change < places])
        unique = int((np.diff(np.r_[starts, n]) == 1).sum())
        cast = starts[(orders[starts, places - 1] >= 0) & obeys[starts]]
        most_cast = len(cast) if wanted else int(np.bincount(orders[cast, 0]).max(initial=0))
        fixed = len(wanted) or 1
        free = math.perm(m - fixed, places - fixed) - most_cast if places > fixed else 0
        shown.append(Shown(places, unique, min(free, n)))
    return SignatureAttack(n, names, limit, tuple(shown))
