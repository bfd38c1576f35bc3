"""Parts of an election's ballots: orders, perhaps with ties, and how often each was cast, cleaned by a rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankdp.checks import is_whole
from rankdp.data.cells import Known
from rankdp.data.cleaning import DROPPED, OVERVOTED, SKIPPED, Cleaner
from rankdp.data.rankings import Rankings
from rankdp.data.vote_columns import MOST_WEIGHT
from rankdp.errors import InputError, Setting
from rankdp.types import Flags, Ints, Longs

Part = tuple[Rankings, Longs]
"""Orders, with ties if there are any, and how often each was cast."""


def cleaned(rankings: Rankings, cast: Longs, cleaner: Cleaner) -> Part:
    """Ballots that list items by index, cleaned; items that are no candidates stay in the list, on no ballot."""
    meant = [cleaner.meaning(name) for name in rankings.items]
    items = list(dict.fromkeys([*rankings.items, *(name for name in meant if isinstance(name, str))]))
    if cleaner.listed and (strange := [name for name in items if name not in (*cleaner.listed, *rankings.items)]):
        raise InputError(
            Setting("items"),
            f" has no {strange[0]!r} to count write-ins for: add that name, or set ",
            Setting("write_ins"),
            " to drop",
        )
    place = {name: number for number, name in enumerate(items)}
    table = [place[name] if isinstance(name, str) else DROPPED if name is None else name for name in meant]
    orders, tied = cleaner.clean(_moved(rankings.orders, table), rankings.tied, cast)
    return Rankings._of(orders, tuple(items), tied=tied, items_from_data=rankings.items_from_data), cast


def _moved(orders: Ints, table: Sequence[int]) -> Ints:
    """The orders with other indices for their items; codes below 0 stay what they are."""
    return np.array([*table, DROPPED, OVERVOTED, SKIPPED], np.int32)[orders]


def listed_over(rankings: Rankings, listed: tuple[str, ...], cleaner: Cleaner, what: str) -> Rankings:
    """The same orders over the public list, with the words that cleaning removes behind it."""
    for name in rankings.items:
        if name not in listed and cleaner.meaning(name) == name:
            raise InputError(f"{what}: {name!r} is not one of the {len(listed)} items given")
    known = with_words(listed, rankings.items, cleaner)
    orders = _moved(rankings.orders, [known.position(name) for name in rankings.items])
    return Rankings._of(orders, known.items, tied=rankings.tied)


def with_words(listed: Sequence[str], names: Iterable[str], cleaner: Cleaner) -> Known:
    """The public list, and other names that are words for nobody or write-ins: cleaning removes them."""
    more = [name for name in dict.fromkeys(names) if name not in listed and cleaner.meaning(name) != name]
    return Known.start([*listed, *more])


def without(table: Rankings, gone: Sequence[str]) -> Rankings:
    """The table without items that no order lists."""
    if not gone:
        return table
    items = tuple(name for name in table.items if name not in gone)
    orders = _moved(table.orders, [items.index(name) if name in items else -1 for name in table.items])
    return Rankings._of(orders, items, tied=table.tied, items_from_data=table.items_from_data)


def distinct(rankings: Rankings, weights: Longs) -> Part:
    """Every different ballot once, with the sum of its weights."""
    tied = 0 if rankings.tied is None else rankings.tied
    codes, inverse = np.unique(2 * rankings.orders + tied, axis=0, return_inverse=True)
    total = np.zeros(len(codes), np.int64)
    np.add.at(total, inverse.ravel(), weights)
    return Rankings._of(codes >> 1, rankings.items, tied=(codes & 1 == 1) & (codes >= 0)), total


def orders_of_ranks(ranks: Longs) -> tuple[Ints, Flags]:
    """Orders of a table of ranks (0 for none), and which places are tied with the one before.

    A rank of nobody is a place with -1. After k candidates tied at rank r the next rank is r + 1 or r + k.
    """
    rows, m = ranks.shape
    order = np.argsort(np.where(ranks > 0, ranks, np.iinfo(np.int64).max), axis=1, kind="stable")
    held = np.take_along_axis(ranks, order, axis=1)
    before = np.pad(held, ((0, 0), (1, 0)))[:, :-1]
    tied = (held > 0) & (held == before)
    opening = np.maximum.accumulate(np.where(tied, 0, np.arange(m)), axis=1)
    size = np.maximum(np.arange(m) - np.pad(opening, ((0, 0), (1, 0)))[:, :-1], 1)
    skipped = held - before - np.where(held - before >= size, size, 1)
    skipped = np.where(tied | (held == 0), 0, np.minimum(skipped, 2))  # two in a row mean the same as more
    places = np.arange(m) + np.cumsum(skipped, axis=1)
    shape = rows, int(places.max(initial=0)) + 1
    orders, ties = np.full(shape, -1, np.int32), np.zeros(shape, np.bool_)
    row, place = np.nonzero(held > 0)
    at = row, places[row, place]
    orders[at], ties[at] = order[row, place], tied[row, place]
    return orders, ties


def whole_weights(weights: Sequence[Any]) -> Longs:
    """Whole weights, one for each row, or a sentence."""
    for row, weight in enumerate(weights, 1):
        if not is_whole(weight) or not 0 <= weight <= MOST_WEIGHT:
            rule = f"a weight must be a whole number from 0 to {MOST_WEIGHT:,}"
            raise InputError(f"weights, row {row}: {rule}, got {weight!r}")
    return np.array(weights, np.int64)


def refuse_repeated(voters: int, rows: int, what: str) -> None:
    """Refuse voters with several ballots."""
    if voters < rows:
        people = f"{voters:,} voter{'s' * (voters != 1)}"
        raise InputError(
            f"{what}: {rows:,} ballots come from {people}, and an election counts one ballot of each voter; "
            "if every row is another person's, leave out the column of voters"
        )
