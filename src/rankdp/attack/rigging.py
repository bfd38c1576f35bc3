"""Rigging: how many votes, or accounts, lift an item by one place on a leaderboard.

Privacy does not stop invented votes, but it bounds what each protected unit can do. The cheapest vote for an item in
place r is a win over the item in place r - 1: it raises the one and lowers the other. The number of such votes after
which the fitted strengths change places is found by bisection, because the gap shrinks with every one of them.

- Under *outcome* and *comparison* every vote counts, whoever casts it: this many votes, even from one account.
- Under *voter* an account counts for at most c comparisons, however many it casts: ceil(votes/c) accounts. (Weights do
  not help it: k votes for one pair weigh c/k each, also where votes are weighed by their spread.)

And whatever the votes are, a accounts change the chance of any published fact by a factor of at most e^(a eps), and
that of its opposite too: to raise it from p to q takes a >= max(log(q/p), log((1-p)/(1-q)))/eps (`least_accounts`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING

import numpy as np

from rankdp.checks import number, share, whole
from rankdp.data.counts import PairCounts
from rankdp.rankers.bradley_terry import fit
from rankdp.report.plots import SERIES
from rankdp.types import Longs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Rigging:
    """What lifting each item by one place takes, from the second place on."""

    items: tuple[str, ...]
    votes: Longs
    comparisons: int

    def accounts(self, max_per_voter: int) -> Longs:
        """How many accounts it takes when each counts for at most this many comparisons.

        Parameters
        ----------
        max_per_voter
            c, a whole number of at least 1.
        """
        return -(-self.votes // whole("max_per_voter", max_per_voter, 1))

    def explain(self, max_per_voter: int = 10) -> str:
        """The median place, in words.

        Parameters
        ----------
        max_per_voter
            c, for the last sentence.
        """
        place = int(np.argsort(self.votes)[len(self.votes) // 2])
        votes, accounts = int(self.votes[place]), int(self.accounts(max_per_voter)[place])
        one = int(self.accounts(1)[place])
        return (
            f"With {self.comparisons:,} comparisons, half of the items gain a place by at most {votes:,} invented "
            f"votes: under 'outcome' and 'comparison' one account that may cast them all is enough; under 'voter' it "
            f"takes {one:,} accounts with 1 comparison each, or {accounts:,} with {max_per_voter}."
        )

    def draw(self, axes: Axes, bounds: Sequence[int] = (1, 10, 50)) -> None:
        """Accounts by place, a line for each bound.

        Parameters
        ----------
        axes
            Where to draw.
        bounds
            Values of c.
        """
        places = np.arange(2, len(self.votes) + 2)
        for colour, bound in zip(SERIES, bounds, strict=False):
            axes.plot(places, self.accounts(bound), "o-", markersize=3, color=colour, label=f"voter, c = {bound}")
        axes.plot(places, np.ones(len(places)), ":", color="0.5", label="outcome, comparison")
        axes.set(xlabel="place of the item", ylabel="accounts to gain a place", yscale="log", ylim=(0.8, None))
        axes.set_xticks(places[:: max(1, len(places) // 10)])
        axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(bounds) + 1, frameon=False)


def rigging(counts: PairCounts, ridge: float = 1.0) -> Rigging:
    """How many votes lift each item by one place.

    Parameters
    ----------
    counts
        The votes as they are.
    ridge
        Of the fit, above 0.
    """
    pull = number("ridge", ridge, 0)
    strengths = fit(counts, ridge=pull).theta
    order = np.argsort(-strengths, kind="stable")
    votes = [_votes(counts, below, above, pull) for above, below in pairwise(order.tolist())]
    return Rigging(tuple(counts.items[i] for i in order), np.array(votes, np.int64), int(counts.comparisons.sum()))


def _votes(counts: PairCounts, item: int, above: int, ridge: float) -> int:
    """The least number of wins of an item over the one above it after which it leads."""

    def leads(votes: int) -> bool:
        more = PairCounts.from_pairs(
            np.append(counts.first, item),
            np.append(counts.second, above),
            np.append(counts.half_wins_first, 2 * votes * counts.steps),
            np.append(counts.half_wins_second, 0),
            items=counts.items,
            steps=counts.steps,
        )
        theta = fit(more, ridge=ridge).theta
        return bool(theta[item] > theta[above])

    most = next(power for power in (2**k for k in count()) if leads(power))
    return bisect_left(range(most), True, lo=most // 2, key=leads)


def least_accounts(before: float, after: float, epsilon: float) -> int:
    """How many accounts it takes at the least to raise the chance of a published fact, whatever they vote.

    Parameters
    ----------
    before, after
        Its chance without and with them, between 0 and 1, the second the larger one.
    epsilon
        Of the release, for one account.
    """
    low, high, eps = share("before", before), share("after", after), number("epsilon", epsilon, 0)
    needed = max(math.log(high / low), math.log((1 - low) / (1 - high))) / eps
    return max(0, math.ceil(needed - 1e-12))
