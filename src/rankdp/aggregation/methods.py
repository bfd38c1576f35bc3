"""A collective order from unbiased statistics: scores of the items, higher for better, by the name of the method.

Copeland, Bradley-Terry and Kemeny stand on the debiased win rates, Borda on the mean ranks. Bradley-Terry strengths are
fitted to each item's debiased wins over all others; noise can carry those beyond what was played, so a ridge of one
comparison keeps the strengths finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.rankers.bradley_terry import fit_wins

if TYPE_CHECKING:
    from rankdp.aggregation.estimates import Aggregate

Floats = NDArray[np.float64]


def borda(found: Aggregate) -> Floats:
    """Minus the mean rank."""
    return -found.mean_ranks.values


def copeland(found: Aggregate) -> Floats:
    """Against how many others an item has the majority, even ones counting half."""
    lead = np.sign(_rates(found) - 0.5)
    return np.asarray((lead.sum(axis=1) + len(found.items) - 1) / 2)


def bradley_terry(found: Aggregate) -> Floats:
    """Log-strengths, centred."""
    rates, voters = _rates(found), found.pair_voters
    design = PairCounts.from_dense(voters / 2, found.items)  # only how often two met is used, not who won
    half_wins = np.rint(2 * (voters * rates).sum(axis=1)).astype(np.int64)
    strengths = fit_wins(design, half_wins, ridge=1.0).theta
    return np.asarray(strengths - strengths.mean())


def kemeny_places(found: Aggregate) -> Floats:
    """Minus the place in Kemeny's ranking."""
    from rankdp.rankers.kemeny import kemeny

    places = np.empty(len(found.items))
    places[kemeny(_rates(found)).order] = np.arange(len(found.items))
    return -places


def _rates(found: Aggregate) -> Floats:
    rates = found.win_rates.values
    if np.isnan(rates).any():
        first, second = (int(place) for place in np.argwhere(np.isnan(rates))[0])
        raise InputError(
            f"no voter lists both {found.items[first]!r} and {found.items[second]!r}: "
            "a collective order needs every pair listed by somebody"
        )
    return rates


SCORES: dict[str, Callable[[Aggregate], Floats]] = {
    "borda": borda,
    "copeland": copeland,
    "bradley-terry": bradley_terry,
    "kemeny": kemeny_places,
}
