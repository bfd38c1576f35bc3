"""Profiles of VoteKit, pref_voting and PrefLib-Tools, in and out, and columns of lists.

A profile is recognised by its attributes, so that reading one imports no library. All of them hold orders with counts,
as `CountedOrders` do. Profiles that go out are made by the library itself, which is imported then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rankdp.data.cells import decoded, first_line, natural
from rankdp.data.orders import CountedOrders
from rankdp.errors import InputError, Unsupported
from rankdp.lazy import LazyModule
from rankdp.types import Flags, Ints, Longs

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")

LIST_NAMES = ("ranking", "order", "ballot", "preferences", "rankings", "orders", "choices")
"""Columns of lists that are taken for orders, best first."""
_NOBODY = "~"  # VoteKit's word for a place that was left blank

Order = list[list[Any]]
"""Groups of tied candidates, best first."""


def counted_profile(source: Any, items: Iterable[Any] | None = None, *, ballots: bool = False) -> CountedOrders | None:
    """The orders of a profile of VoteKit, pref_voting or PrefLib-Tools; None for anything else.

    Items that are not on the caller's list are refused. Without it the list is the profile's. VoteKit and pref_voting
    take theirs from the ballots where nobody gives it, VoteKit in the order of the first ballots, and do not say so:
    theirs counts as found, and VoteKit's is put in natural order. One that ranks nobody is a ballot, and no ranking.
    """
    found = True
    if all(hasattr(source, name) for name in ("ballots", "candidates", "max_ranking_length")):
        listed = sorted({*source.candidates} - {_NOBODY}, key=lambda name: natural(str(name)))
        what, names, orders = "VoteKit profile", {name: name for name in listed}, _votekit(source)
    elif all(hasattr(source, name) for name in ("rankings_counts", "cmap", "candidates")):
        what, names, orders = "pref_voting profile", source.cmap, _pref_voting(source)
    elif all(hasattr(source, name) for name in ("multiplicity", "alternatives_name", "orders")):
        cast = ((source.multiplicity[order], [list(group) for group in order]) for order in source.orders)
        what, names, orders, found = "PrefLib instance", source.alternatives_name, cast, False
    else:
        return None
    place = {candidate: at for at, candidate in enumerate(names)}
    counted: list[tuple[int, Order]] = []
    for number, (count, order) in enumerate(orders, 1):
        if not float(count).is_integer() or count < 0:
            raise InputError(f"{what}, ballot {number}: it must have been cast a whole number of times, got {count}")
        groups = [[place[candidate] for candidate in group] for group in order if group]
        if int(count) and (groups or ballots):
            counted.append((int(count), groups))
    if not counted:
        raise InputError(f"{what}: there are no ballots; at least one is needed")
    profile = CountedOrders.of(what, tuple(map(str, names.values())), counted, items, ())
    profile.known.from_data = found and items is None
    return profile


def _votekit(profile: Any) -> Iterator[tuple[Any, Order]]:
    for ballot in profile.ballots:
        yield ballot.weight, [sorted(group - {_NOBODY}) for group in getattr(ballot, "ranking", None) or ()]


def _pref_voting(profile: Any) -> Iterator[tuple[Any, Order]]:
    for ranking, count in zip(*profile.rankings_counts, strict=True):
        ranks = getattr(ranking, "rmap", None)
        if ranks is None:
            yield int(count), [[int(candidate)] for candidate in ranking]
            continue
        tiers: dict[Any, list[Any]] = {}
        for candidate, rank in ranks.items():
            if rank is not None:
                tiers.setdefault(rank, []).append(candidate)
        yield int(count), [tiers[rank] for rank in sorted(tiers)]


def wide_lists(table: Any, name: str) -> Any:
    """An Arrow table with a column of lists as one with a column per place; a table without stays as it is."""
    at = table.column_names.index(name)
    column = table.column(at).combine_chunks()
    kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    if not any(is_kind(column.type) for is_kind in kinds):
        return table
    lengths = np.asarray(pc.list_value_length(column).fill_null(0))
    starts = np.cumsum(lengths) - lengths
    cells, width = decoded(pc.list_flatten(column)), int(lengths.max(initial=0))
    rest = table.remove_column(at)
    for place in range(width):
        taken = pa.array(starts + place, mask=lengths <= place)
        rest = rest.append_column(f"rank_{place + 1}", cells.take(taken))
    return rest


def _groups(orders: Ints, tied: Flags | None, row: int) -> list[list[int]]:
    groups: list[list[int]] = []
    for place, item in enumerate(orders[row].tolist()):
        if item < 0:
            break
        if groups and tied is not None and tied[row, place]:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise Unsupported(f"{name.partition('.')[0]} must be installed for this ({first_line(error)})") from None


def to_votekit(items: Sequence[str], orders: Ints, tied: Flags | None, counts: Longs) -> Any:
    """A VoteKit ``RankProfile``; ``counts`` says how often each order was cast."""
    ballot, profile = _library("votekit.ballot").RankBallot, _library("votekit.pref_profile").RankProfile
    ballots = []
    for row, count in enumerate(counts.tolist()):
        ranking = [frozenset(items[item] for item in group) for group in _groups(orders, tied, row)]
        ballots.append(ballot(ranking=ranking, weight=count))
    return profile(ballots=ballots, candidates=list(items), max_ranking_length=len(items))


def to_pref_voting(items: Sequence[str], orders: Ints, tied: Flags | None, counts: Longs) -> Any:
    """A pref_voting ``Profile`` where every order is complete and strict, else a ``ProfileWithTies``."""
    named, cast = dict(enumerate(items)), counts.tolist()
    if orders.shape[1] == len(items) and (orders >= 0).all() and (tied is None or not tied.any()):
        return _library("pref_voting.profiles").Profile(orders.tolist(), rcounts=cast, cmap=named)
    ranks = [
        {item: rank for rank, group in enumerate(_groups(orders, tied, row), 1) for item in group}
        for row in range(len(orders))
    ]
    made = _library("pref_voting.profiles_with_ties").ProfileWithTies
    return made(ranks, rcounts=cast, candidates=list(named), cmap=named)
