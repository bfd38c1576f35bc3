"""What a learner is told about each pair: the order as it stands, or an unbiased estimate of the order behind it.

A user's synthetic ranking has items at positions b. For the pair at b1, b2 the label is

    y = 1{b1 < b2}         as it stands (biased: docs/theory.md), or
    y = h(b1, b2)          with E h = 1{the first is truly preferred} over the mechanism (docs/theory.md).

The logistic loss needs less. With f_b the score of what stands at b, the sum over a user's pairs is

    sum over pairs of log(1 + e^-d) + (1 - y) d = sum over pairs of log(e^f_b1 + e^f_b2) - sum over b of w(b) f_b,

where w(b) = sum over b' of h(b, b') estimates without bias how many listed items the one at b truly beats: the length
less its rank. So unbiased *ranks* are enough, which are known for far longer rankings than unbiased pairs (1,000 items
for the Kendall mechanism instead of 50), and one number per item takes the place of one per pair. (Derived here.)

Users who share a length, a mechanism and an epsilon share h. Where epsilons differ, ``combine="precision"`` weighs
users by one over 1 + (variance of the noise) / (variance of a true label), and scales so that the users of each length
count as many as they are; that supposes that a user's epsilon says nothing about what they prefer.
``combine="users"`` supposes nothing and pays in variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, cast, get_args

import numpy as np

from rankdp.aggregation.origin import Origin
from rankdp.data.rankings import Rankings
from rankdp.data.tables import check_epsilons
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.exact import one_each, positive
from rankdp.privacy.release import Release
from rankdp.theory.estimators import pair_estimator, rank_estimator
from rankdp.types import Floats, Ints, Longs

Combine = Literal["precision", "users"]
Choose = Callable[[int, Fraction], RankingMechanism]
"""The mechanism that a ranking of this length at this epsilon went through."""

_MOST_GROUPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Orders, and for every group of users what their positions say."""

    orders: Ints
    groups: Ints
    """The group of each row."""
    lengths: Longs
    """By group: how many items are listed."""
    weights: Floats
    """By group."""
    wins: Floats
    """Group x position: w(b)."""
    tables: Floats | None
    """Group x position x position: h; None where only ranks are known."""

    def rows(self, chosen: Longs) -> Labels:
        """Some of the users."""
        return replace(self, orders=np.ascontiguousarray(self.orders[chosen]), groups=self.groups[chosen])

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def total(self) -> float:
        """The weight of all pairs."""
        pairs = self.weights * self.lengths * (self.lengths - 1) / 2
        return float(np.bincount(self.groups, minlength=len(pairs)) @ pairs)


@dataclass(frozen=True, slots=True)
class _Group:
    length: int
    wins: Floats
    table: Floats | None
    noise: float
    """The variance of the noise over that of a true label."""


def labels_of(
    rankings: Rankings | Release[Any],
    mechanism: str | Mapping[str, Any] | None = None,
    epsilon: Any = None,
    *,
    debias: bool = True,
    bias: float = 0.0,
    combine: Combine = "precision",
    pairs: bool = True,
) -> Labels:
    """The labels of rankings that went through ``mechanism`` at ``epsilon`` (one for all, or one per row).

    Without a mechanism, or with ``debias=False``, the order counts as it stands. A release knows its mechanism and
    epsilon; its ``provenance.parameters`` may stand for it as the ``mechanism`` of a bare table. ``pairs=False`` does
    without h where it is out of reach.
    """
    if combine not in get_args(Combine):
        raise InputError(f"combine must be one of {', '.join(get_args(Combine))}, got {combine!r}")
    table, choose, own = _known(rankings, mechanism, epsilon)
    orders, lengths = np.ascontiguousarray(table.orders), table.lengths.astype(np.int64)
    if lengths.max() < 2:
        raise InputError("rankings must list two items or more in some row: there is no pair to learn from")
    if choose is None or not debias:
        kinds, codes = np.unique(lengths, return_inverse=True)
        groups = [_plain(int(length)) for length in kinds]
    else:
        groups, codes = _debiased(choose, own, lengths, bias, pairs)
    return _assembled(orders, codes.astype(np.int32), groups, combine)


def _known(
    rankings: Rankings | Release[Any], mechanism: str | Mapping[str, Any] | None, epsilon: Any
) -> tuple[Rankings, Choose | None, Floats]:
    """The table, the mechanism of each (length, epsilon), and each row's epsilon."""
    if isinstance(rankings, Release):
        if mechanism is not None or epsilon is not None:
            raise InputError("a release knows its mechanism and epsilon: give neither")
        if not isinstance(rankings.value, Rankings):
            raise InputError(f"the release must hold a rankdp.Rankings, got {type(rankings.value).__name__}")
        mechanism, rankings = rankings.provenance.parameters, rankings.value
    if isinstance(mechanism, Mapping):
        if epsilon is not None:
            raise InputError("the parameters of a release know its epsilon: give none")
        origin = Origin.stated(mechanism)
        return rankings, origin.choose, _epsilons(rankings, origin.epsilon)
    if mechanism is None:
        if epsilon is not None:
            raise InputError("mechanism must be given with epsilon: which mechanism made the rankings?")
        return rankings, None, np.zeros(len(rankings))
    build(mechanism, 2, 1)  # refuses an unknown name

    def choose_named(length: int, value: Fraction) -> RankingMechanism:
        return cast(RankingMechanism, build(mechanism, length, value))

    if epsilon is not None and not one_each(epsilon):
        return rankings, choose_named, _epsilons(rankings, positive(epsilon))
    if epsilon is not None:
        return rankings, choose_named, check_epsilons(epsilon, len(rankings))
    return rankings, choose_named, _epsilons(rankings, None)


def _epsilons(table: Rankings, common: Fraction | None) -> Floats:
    if common is not None:
        return np.full(len(table), float(common))
    if table.epsilons is None:
        raise InputError("epsilon must be given: the rankings hold no epsilon of their own")
    return table.epsilons


def _plain(length: int) -> _Group:
    positions = np.arange(length)
    table = np.where(positions[:, None] < positions, 1.0, 0.0) + 0.5 * np.eye(length)
    return _Group(length, (length - 1 - positions).astype(np.float64), table, 0.0)


def _debiased(choose: Choose, own: Floats, lengths: Longs, bias: float, pairs: bool) -> tuple[list[_Group], Longs]:
    kinds, epsilon_codes = np.unique(own, return_inverse=True)
    key = epsilon_codes * (int(lengths.max()) + 1) + lengths
    keys, codes = np.unique(key, return_inverse=True)
    if len(keys) > _MOST_GROUPS:
        raise Unsupported(
            f"users must share at most {_MOST_GROUPS:,} different lengths and epsilons, got {len(keys):,}: "
            "let them choose from a few"
        )
    groups = []
    for combined in keys.tolist():
        which, length = divmod(combined, int(lengths.max()) + 1)
        groups.append(
            _unbiased(choose, length, positive(float(kinds[which])), bias, pairs) if length > 1 else _plain(1)
        )
    return groups, codes.astype(np.int64)


def _unbiased(choose: Choose, length: int, epsilon: Fraction, bias: float, pairs: bool) -> _Group:
    mechanism = choose(length, epsilon)
    if pairs:
        exact = pair_estimator(mechanism, bias)
        table = exact.values
        return _Group(length, np.asarray(table.sum(axis=1) - 0.5), table, 4 * exact.mean_variance)
    ranks = rank_estimator(mechanism, bias)
    try:
        known: Floats | None = pair_estimator(mechanism, bias).values
    except Unsupported:
        known = None
    return _Group(length, length - ranks.values, known, 12 * ranks.mean_variance / (length**2 - 1))


def _assembled(orders: Ints, codes: Ints, groups: list[_Group], combine: Combine) -> Labels:
    width = max(group.length for group in groups)
    wins, lengths = np.zeros((len(groups), width)), np.array([group.length for group in groups])
    tables = None if any(group.table is None for group in groups) else np.full((len(groups), width, width), 0.5)
    for g, group in enumerate(groups):
        wins[g, : group.length] = group.wins
        if tables is not None and group.table is not None:
            tables[g, : group.length, : group.length] = group.table
    weights = np.array([1 / (1 + group.noise) if combine == "precision" else 1.0 for group in groups])
    counts = np.bincount(codes, minlength=len(groups))
    for length in np.unique(lengths):
        same = lengths == length
        weights[same] *= counts[same].sum() / (counts[same] @ weights[same])
    return Labels(np.ascontiguousarray(orders[:, :width]), codes, lengths, weights, wins, tables)
