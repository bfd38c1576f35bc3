"""The mechanisms side by side: which is best at the same epsilon, and the epsilon that each of them really costs.

The realised epsilon of a mechanism is the largest log-ratio over neighbours,

    max over outputs s and moves c of log P(s) - log P(c s),

found by enumeration for short rankings. Xu takes Laplace noise of scale b = 2(m-1)/eps on the ranks (Lemma 3). That
pays for a release of the noisy ranks; a release of their *order* costs less:

    realised epsilon <= m/b.

Proof: an order does not change when all noisy ranks move by the same amount. Let the neighbour's item move back by g
places, so that those it passes come forward by one. Add 1 to all ranks of the neighbour: now the item has moved by g+1,
those it passed by nothing and the m-1-g others by 1, m in all (without adding 1 it is 2g). So the log-ratio is at most
min(2g, m)/b, and scale m/eps is enough, nearly half the noise for long rankings: the mechanism "noisy-ranks".
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import numpy as np

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.noisy_ranks import RankLaplace
from rankdp.mechanisms.rankings.ulam import EXACT_UP_TO
from rankdp.mechanisms.registry import Protect, mechanism
from rankdp.theory.estimators import pair_estimator
from rankdp.theory.permutations import all_permutations, neighbour_places
from rankdp.types import Floats
from rankdp_papers.experiment import Cell, Row, exact_row

_PROMISES: dict[str, Protect] = {"one position": "position", "whole ranking": "ranking"}
ENUMERATED_UP_TO = 7
"""Items up to which all outputs and neighbours are tried."""
EQUAL_REALISED = "laplace + equal realised epsilon"
_VARIANCES_UP_TO = 10  # items; above, the noise of Kendall and Ulam cannot be debiased in floating point
_MOST_NOMINAL = 2.5  # the realised epsilon is above 0.44 of the nominal one for every m and eps tried


def built(name: str, items: int, epsilon: float) -> RankingMechanism:
    """The library's mechanism of this name at this epsilon, or the Laplace mechanism at equal realised epsilon."""
    if name == EQUAL_REALISED:
        return _laplace_at_realised(items, epsilon)
    return mechanism(name, items, epsilon)


def rivals(items: int) -> list[str]:
    """Who takes part at this length: the linear programme, Ulam's exact laws and enumeration are for short rankings."""
    short = [name for name, most in (("optimal", 6), ("ulam", EXACT_UP_TO)) if items <= most]
    enumerated = [EQUAL_REALISED] if items <= ENUMERATED_UP_TO else []
    return [*short, "tiers", "reinsertion", "kendall", "laplace", *enumerated, "noisy-ranks"]


def realised_epsilon(one: RankingMechanism) -> float:
    """The largest log-ratio over every output and every neighbour, for short rankings."""
    return worst_ratio(one.log_prob(all_permutations(one.items), np.arange(one.items)), one.items)


def worst_ratio(logs: Floats, items: int) -> float:
    """The same for a law of relative orders, whatever its normaliser."""
    return float((logs[:, None] - logs[neighbour_places(items)]).max())


@lru_cache(maxsize=256)
def _laplace_at_realised(items: int, epsilon: float) -> RankingMechanism:
    """Laplace noise of the scale at which the realised epsilon is this one, to eight digits."""
    from scipy.optimize import brentq

    def excess(nominal: float) -> float:
        return realised_epsilon(built("laplace", items, nominal)) - epsilon

    least = epsilon * 2 * (items - 1) / items  # scale m/eps, where the realised epsilon is at most eps
    nominal = brentq(excess, least, _MOST_NOMINAL * epsilon, xtol=1e-9 * epsilon)
    return built("laplace", items, nominal)


def laplace(cell: Cell) -> list[Row]:
    """The comparison of Lemma 4 at the paper's scale 2(m-1)/eps, at scale m/eps and at equal realised epsilon.

    The realised epsilon is enumerated for short rankings. For any length it is at least the log-ratio of one pair of
    neighbours (the first item moved to the end, and the input itself as the output) and at most m/b.
    """
    items, epsilon = cell["items"], cell["epsilon"]
    short = items <= ENUMERATED_UP_TO
    shares = {name: built(name, items, epsilon).expected_concordance() for name in rivals(items)}
    rows = [exact_row(name, "concordance", share) for name, share in shares.items()]
    realised = "realised epsilon divided by epsilon"
    for name in ("laplace", "noisy-ranks", *([EQUAL_REALISED] if short else [])):
        one = cast(RankLaplace, built(name, items, epsilon))
        identity = np.arange(items)
        here, there = one.log_prob(np.stack([identity, np.roll(identity, -1)]), identity)
        rows.append(exact_row(name, f"{realised}, at least", (here - there) / epsilon))
        rows.append(exact_row(name, f"{realised}, at most", items / float(one.scale) / epsilon))
        if short:
            rows.append(exact_row(name, realised, realised_epsilon(one) / epsilon))
    return rows


def best(cell: Cell) -> list[Row]:
    """The share of pairs kept, and the variance of an unbiased pairwise estimate from one person (mean over pairs)."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = []
    for name in rivals(items):
        one = built(name, items, epsilon)
        rows.append(exact_row(name, "concordance", one.expected_concordance()))
        if name in ("kendall", "ulam", "reinsertion") and items <= _VARIANCES_UP_TO:
            rows.append(exact_row(name, "variance", pair_estimator(one).mean_variance))
    return rows


def promises(cell: Cell) -> list[Row]:
    """The share of pairs that Algorithm 1 and the Kendall ball keep, by what epsilon protects."""
    items, epsilon = cell["items"], cell["epsilon"]
    return [
        exact_row(name, measure, mechanism(name, items, epsilon, protect=protect).expected_concordance())
        for name in ("kendall", "kendall-ball")
        for measure, protect in _PROMISES.items()
    ]
