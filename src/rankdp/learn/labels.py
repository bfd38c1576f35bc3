"""What a learner is told about each pair: the synthetic order, or an unbiased estimate of the order behind it.

A user's synthetic ranking has items at positions b. For the pair at b1, b2 the label is

    y = 1{b1 < b2}         the synthetic order (biased: docs/theory.md), or
    y = h(b1, b2)          with E h = 1{the first is truly preferred} over the mechanism (docs/theory.md).

The logistic loss needs less. With f_b the score of the item at b, the sum over a user's pairs is

    sum over pairs of log(1 + e^-d) + (1 - y) d = sum over pairs of log(e^f_b1 + e^f_b2) - sum over b of w(b) f_b,

where w(b) = sum over b' of h(b, b') estimates without bias how many listed items the one at b truly beats: the length
minus its rank. So unbiased *ranks* are enough, which are known for far longer rankings than unbiased pairs (1,000 items
for the Kendall mechanism instead of 50), and one number per item takes the place of one per pair. (Derived here.)

Labels are unbiased where that pays. With few users per parameter of a model they are debiased only as much as so few
users justify (`rankdp.theory.debiasing`, for users who agree, which is the worst case for a bias).

Users who share a length, a mechanism and an epsilon share h. Where epsilons differ, ``combine="precision"`` weighs
users by one over 1 + (variance of the noise) / (variance of a true label), and scales so that the users of each length
count as many as they are; that supposes that a user's epsilon says nothing about what they prefer.
``combine="users"`` supposes nothing and pays in variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from rankdp.aggregation.origin import Origin, check_groups, groups_of, known_origin, with_offsets
from rankdp.checks import one_of
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.release import Release
from rankdp.theory.debiasing import Debiasing, Family, pair_family, rank_family
from rankdp.theory.pair_laws import pairs as triangle
from rankdp.types import Flags, Floats, Ints, Longs

Combine = Literal["precision", "users"]
Debias = bool | Literal["always"]
"""Whether labels are debiased: as much as the number of users allows, or completely ("always")."""


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
    note: str = ""
    """What the labels are, for readers; empty where the order is used as it is."""

    def rows(self, chosen: Longs | slice) -> Labels:
        """Some of the users."""
        return replace(self, orders=np.ascontiguousarray(self.orders[chosen]), groups=self.groups[chosen])

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def total(self) -> float:
        """The weight of all pairs."""
        pairs = self.weights * self.lengths * (self.lengths - 1) / 2
        return float(np.bincount(self.groups, minlength=len(pairs)) @ pairs)


class _Group(NamedTuple):
    """What positions say: w, h where it is known, and the variance of the noise over that of a true label."""

    wins: Floats
    table: Floats | None
    noise: float
    ranks: Debiasing | None = None


def labels_of(
    rankings: Rankings | Release[Any],
    mechanism: str | Mapping[str, Any] | None = None,
    epsilon: Any = None,
    *,
    debias: bool = True,
    users: float | None = None,
    combine: Combine = "precision",
    pairs: bool = True,
) -> Labels:
    """The labels of rankings that went through ``mechanism`` at ``epsilon`` (one for all, or one per row).

    Without a mechanism, or with ``debias=False``, the order is used as it is. A release knows its mechanism and
    epsilon; for a bare table its ``provenance.parameters`` may be given as the ``mechanism``. ``users`` is how many
    there are per parameter that will be learnt; None for unbiased labels at any price. ``pairs=False`` does without h
    where it is out of reach.
    """
    one_of("combine", combine, get_args(Combine))
    table, origin = known_origin(rankings, mechanism, epsilon)
    if table.lengths.max() < 2:
        raise InputError("rankings must list two items or more in some row: there is no pair to learn from")
    if origin is None or not debias:
        patterns, codes = (None, None) if table.tied is None else np.unique(table.tied, axis=0, return_inverse=True)
        kinds, groups = groups_of(table, Fraction(1), codes)
        known = [
            _as_it_stands(length, None if patterns is None else patterns[code, :length]) for length, _, code, _ in kinds
        ]
    else:
        table = with_offsets(table, [origin])
        kinds, groups = groups_of(table, origin.epsilon)
        check_groups(len({kind[:3] for kind in kinds}))
        known = _undone_groups(kinds, np.bincount(groups, minlength=len(kinds)), origin, users, pairs)
    lengths = np.array([length for length, *_ in kinds])
    width = int(lengths.max())
    wins = np.zeros((len(kinds), width))
    tables = None if any(group.table is None for group in known) else np.full((len(kinds), width, width), 0.5)
    for number, (length, group) in enumerate(zip(lengths, known, strict=True)):
        wins[number, :length] = group.wins
        if tables is not None and group.table is not None:
            tables[number, :length, :length] = group.table
    weights = np.array([1 / (1 + group.noise) if combine == "precision" else 1.0 for group in known])
    counts = np.bincount(groups, minlength=len(kinds))
    for length in np.unique(lengths):
        same = lengths == length
        weights[same] *= counts[same].sum() / (counts[same] @ weights[same])
    orders = np.ascontiguousarray(table.orders[:, :width])
    return Labels(orders, groups.astype(np.int32), lengths, weights, wins, tables, _note(known))


def _as_it_stands(length: int, tied: Flags | None = None) -> _Group:
    """Two tied items are half in either order."""
    tier = np.arange(length) if tied is None else np.cumsum(~tied)
    table = (tier[:, None] < tier) + 0.5 * (tier[:, None] == tier)
    return _Group(table.sum(axis=1) - 0.5, table, 0.0)


def _undone_groups(
    kinds: Sequence[tuple[int, Fraction, int, int | None]],
    counts: Longs,
    origin: Origin,
    users: float | None,
    pairs: bool,
) -> list[_Group]:
    """What the positions of each group say; groups that differ only in their public offset are debiased together."""
    alike: dict[tuple[int, Fraction], list[int]] = {}
    for number, (length, own, *_) in enumerate(kinds):
        alike.setdefault((length, own), []).append(number)
    known: dict[int, _Group] = {}
    for (length, own), members in alike.items():
        if length < 2:
            known |= dict.fromkeys(members, _as_it_stands(length))
            continue
        shares = counts[members] / counts[members].sum()
        laws = tuple(origin.part(length, own, kinds[number][3]) for number in members)
        ranks = _chosen(rank_family, laws, tuple(shares.tolist()), users)
        noise = 12 * ranks.error**2 * (users or 1.0) / (length**2 - 1)
        table = _table(origin.choose(length, own), users, pairs)
        for number, scores, weight in zip(members, ranks.scores, ranks.weights, strict=True):
            known[number] = _Group((length - 1) / 2 - weight * scores[:, 0], table, noise, ranks)
    return [known[number] for number in range(len(kinds))]


def _table(mechanism: RankingMechanism, users: float | None, needed: bool) -> Floats | None:
    """h of pairs, None where it is out of reach and not needed."""
    try:
        if not needed and pair_family((mechanism,), (1.0,)).unknown:
            return None
        scores = _chosen(pair_family, (mechanism,), (1.0,), users).scores[0][:, 0]
    except Unsupported:
        if needed:
            raise
        return None
    first, second = triangle(mechanism.items)
    table = np.full((mechanism.items, mechanism.items), 0.5)
    table[first, second] += scores
    table[second, first] -= scores
    return table


def _chosen(
    family: Callable[..., Family], laws: tuple[RankingMechanism, ...], shares: tuple[float, ...], users: float | None
) -> Debiasing:
    built = family(laws, shares)
    return built.only_unbiased() if users is None else built.pulled(users)


def _note(groups: Sequence[_Group]) -> str:
    """One sentence: whether the labels are unbiased, and whether they are mostly noise."""
    known = [group.ranks for group in groups if group.ranks is not None]
    if not known:
        return ""
    if all(ranks.unbiased for ranks in known):
        words = (
            "Labels are unbiased: they correct for the noise. Losses and shares of pairs are estimates of "
            "those on the true rankings, which nobody has seen: noise may carry them below 0 or above 1."
        )
    else:
        words = (
            "With so few users the labels are pulled toward the middle, and so are the shares of pairs in order, "
            f"by at most {max(ranks.bias for ranks in known):.2g} ranks."
        )
    faint = any(ranks.error**2 > ranks.spread**2 / 2 for ranks in known)
    return words + " They are mostly noise: expect little from this model." * faint
