"""Arrays of orders: the forms in which they are given, the rules they obey, and how ranks become orders.

Orders are one array of item indices, a row per voter, best first. A row lists each item at most once, with blanks (-1)
only after the last listed item and at least one item listed.

A tie (two items of one voter with one rank) has no place in an order. It is refused unless the caller
chooses: `ties="listed"` keeps the order in which the source lists the tied items (the order of the rows of a
long table, of the numbers between the braces of a PrefLib file, or of the columns of a table of ranks);
`ties="random"` draws their order uniformly at random, from the operating system's generator, separately for
every voter.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rankdp.checks import one_of
from rankdp.data.cells import Known, Where, check_items, natural, row_number
from rankdp.errors import InputError, Setting
from rankdp.types import Flags, Ints, Longs

Ties = Literal["refuse", "listed", "random"]
ReadTies = Literal["refuse", "listed", "random", "keep"]
"""Tied items: refuse them, keep the order in which the source lists them, or draw it at random."""

_LONGEST_TITLE = 200
_TILE_ROWS = 1 << 13  # rows that are checked at once, so that what is sorted stays in the cache

_CHOICES = (
    Setting("ties", "listed"),
    " keeps the order in which they are listed, ",
    Setting("ties", "random"),
    " draws it at random",
)


Groups = list[list[int]]
"""An order as groups of tied items, best first."""


@dataclass(frozen=True, slots=True)
class CountedOrders:
    """The distinct orders of a file, with how often each was cast."""

    known: Known
    """The items, in the order of the file or of the caller."""
    counts: Longs
    orders: Ints
    """Places of items, best first, -1 after the last."""
    tied: Flags
    """Whether a place is tied with the one before."""
    notes: tuple[str, ...]
    """What was skipped or cleaned."""
    offsets: Ints | None = None
    """The public offset of each voter, order by order."""
    title: str = ""
    """What the file says about which election it holds."""

    @classmethod
    def of(
        cls,
        path: str,
        names: Sequence[str],
        counted: Sequence[tuple[int, Iterable[Iterable[int]]]],
        items: Iterable[Any] | None,
        notes: Iterable[str],
        title: str = "",
    ) -> CountedOrders:
        """From counts and groups of tied indices into ``names``; ``items`` is the caller's list, if there is one.

        Indices below 0 stand for no candidate (``rankdp.data.cleaning``) and stay as they are.
        """
        known = Known.start(items, names)
        for name in names:
            if name not in known:
                raise InputError(f"{path}: {name!r} is not one of the {len(known.items)} items given")
        flat = [[(item, place > 0) for group in groups for place, item in enumerate(group)] for _, groups in counted]
        orders = np.full((len(flat), max(map(len, flat), default=0)), -1, np.int32)
        tied = np.zeros(orders.shape, np.bool_)
        for row, order in enumerate(flat):
            orders[row, : len(order)] = [known.position(names[item]) if item >= 0 else item for item, _ in order]
            tied[row, : len(order)] = [again for _, again in order]
        counts = np.array([count for count, _ in counted], np.int64)
        return cls(
            known, counts, orders, tied, tuple(f"{path}: {note}" for note in notes), title=title[:_LONGEST_TITLE]
        )


def orders_array(orders: Any, names: tuple[str, ...] | None) -> tuple[Ints, tuple[str, ...]]:
    """Orders as indices, whatever they came as, and the items that they index."""
    if not isinstance(orders, np.ndarray):
        rows = [row if isinstance(row, np.ndarray) else _row(row, number) for number, row in enumerate(orders)]
        if any(isinstance(cell, str) for row in rows for cell in row):
            return _named_orders(rows, names)
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            uneven = next(number for number, row in enumerate(rows) if len(row) != len(rows[0]))
            raise InputError(
                f"row {uneven + 1}: the row has {len(rows[uneven])} indices "
                f"and the first row {len(rows[0])}; pad rows of indices with -1"
            )
        orders = np.array(rows)
    elif orders.dtype.kind in "UO" and orders.ndim == 2:
        return _named_orders(orders.tolist(), names)
    array = index_array(orders, copy=True)
    if names is None:
        largest = int(array.max())
        # an index beyond the number of cells leaves some other one out, whatever the cells hold
        used = np.zeros(min(largest + 1, array.size + 1), bool)
        used[array[(array >= 0) & (array < len(used))]] = True
        if not used.all():
            raise InputError(
                f"no row lists the index {int(used.argmin())} (indices are counted from 0 to {largest}); "
                "pass items if some items are never listed"
            )
        names = tuple(str(index) for index in range(largest + 1))
    return array, names


def _row(row: Any, number: int) -> list[Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise InputError(f"row {number + 1}: a ranking must be a list of items, got {row!r}")
    return list(row)


def _named_orders(rows: Sequence[Any], names: tuple[str, ...] | None) -> tuple[Ints, tuple[str, ...]]:
    cleaned: list[list[str]] = []
    for number, row in enumerate(rows):
        listed = list(row)
        while listed and listed[-1] is None:
            listed.pop()
        if other := [cell for cell in listed if not isinstance(cell, str)]:
            raise InputError(f"row {number + 1}: rows of names hold names only, got {other[0]!r}")
        cleaned.append([cell.strip() for cell in listed])
    if names is None:
        names = check_items(sorted({cell for row in cleaned for cell in row}, key=natural))
    place = {name: position for position, name in enumerate(names)}
    array = np.full((len(cleaned), max(map(len, cleaned))), -1, np.int32)
    for number, row in enumerate(cleaned):
        if other := [cell for cell in row if cell not in place]:
            raise InputError(f"row {number + 1}: {other[0]!r} is not one of the {len(names)} items given")
        array[number, : len(row)] = [place[cell] for cell in row]
    return array, names


def index_array(orders: Any, copy: bool = False) -> Ints:
    """A 2-dimensional int32 array of indices, or the sentence that says why not."""
    array = np.asarray(orders)
    if array.size == 0:
        raise InputError(f"orders must have at least one row and one column, got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise InputError(f"orders must be whole numbers (item indices counted from 0), got dtype {array.dtype}")
    if array.ndim != 2:
        raise InputError(f"orders must be a table with one row per ranking, got {array.ndim} dimension(s)")
    if array.dtype != np.int32:
        if array.max() > np.iinfo(np.int32).max or array.min() < np.iinfo(np.int32).min:
            raise InputError("orders holds an index beyond 32 bits")
        return array.astype(np.int32, order="C")
    return np.array(array, order="C", copy=True if copy else None)


def check_orders(orders: Ints, items: Sequence[str]) -> None:
    """Check a whole n x width array of item indices, or say which row breaks which rule."""
    refuse_row(first_broken(orders, len(items)), orders, items, row_number)


def first_broken(orders: Ints, items: int) -> int:
    """The first row that breaks a rule; -1 when there is none."""
    for start in range(0, len(orders), _TILE_ROWS):
        row = _first_broken(orders[start : start + _TILE_ROWS], items)
        if row >= 0:
            return start + row
    return -1


def _first_broken(orders: Ints, items: int) -> int:
    listed, ordered = orders >= 0, np.sort(orders, axis=1)
    wrong = (orders < -1) | (orders >= items)
    wrong[:, 1:] |= (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    wrong[:, 1:] |= listed[:, 1:] & ~listed[:, :-1]
    broken = wrong.any(axis=1) | ~listed[:, :1].any(axis=1)
    return int(broken.argmax()) if broken.any() else -1


def refuse_row(row: int, orders: Ints, items: Sequence[str], where: Where, blank: str | None = None) -> None:
    """Raise the sentence for the row that `first_broken` found; do nothing at -1.

    `blank` is the text that was read as missing, so that an item called `None` is not lost without a hint.
    """
    if row < 0:
        return
    hint = f" ({blank!r} is read as missing unless items= names it)" if blank else ""
    order, seen = orders[row].tolist(), set[int]()
    for place, item in enumerate(order, 1):
        if not -1 <= item < len(items):
            raise InputError(
                f"{where(row)}: position {place} holds the index {item}; "
                f"an index lies in 0..{len(items) - 1}, or is -1 after the last listed item"
            )
        if item >= 0 and -1 in seen:
            raise InputError(
                f"{where(row)}: position {order.index(-1) + 1} is blank{hint} but position {place} is "
                f"{items[item]!r}; only the end of a ranking may be blank"
            )
        if item >= 0 and item in seen:
            raise InputError(f"{where(row)}: {items[item]!r} is listed twice; a ranking lists each item once")
        seen.add(item)
    raise InputError(f"{where(row)}: no item is listed{hint}; a ranking lists at least one")


def refuse_tie(at: str, tied: Sequence[str], rank: int) -> InputError:
    """The sentence that refuses a tie and names the choices."""
    return InputError(f"{at}: {tied[0]!r} and {tied[1]!r} are tied at rank {rank}; ", *_CHOICES)


def shuffle(values: list[int]) -> list[int]:
    """A uniformly random order of a few values."""
    secrets.SystemRandom().shuffle(values)
    return values


def orders_from_ranks(ranks: Any, items: Iterable[Any] | None, ties: Ties) -> tuple[Ints, tuple[str, ...]]:
    """Orders from an n x m table of ranks (1 the best; 0, NaN or None if not listed), and the items."""
    one_of("ties", ties, get_args(Ties))
    table = _rank_table(ranks)
    width, items = table.shape[1], getattr(ranks, "columns", None) if items is None else items
    names = tuple(str(item) for item in range(width)) if items is None else check_items(items)
    if len(names) != width:
        raise InputError(f"ranks must have one column for each of the {len(names)} items, got {width} columns")
    voters, listed = np.nonzero(table)
    orders, _ = orders_from_long(
        *(voters, listed, table[voters, listed], names, ties, lambda entry: row_number(int(voters[entry]))),
        shape=table.shape,
    )
    return orders, names


def _rank_table(ranks: Any) -> Longs:
    try:
        array = np.asarray(ranks)
        if array.dtype == object:
            array = np.array([[np.nan if cell is None else cell for cell in row] for row in ranks], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("ranks must be a table of whole numbers with rows of one length") from None
    if array.size == 0 or array.ndim != 2:
        raise InputError(f"ranks must be a table with one row per voter and one column per item, got {array.shape}")
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), 0, array)
        wrong = np.isinf(array) | (array != np.floor(array))
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise InputError(f"row {row + 1}: a rank must be a whole number, got {float(array[row, column])!r}")
    elif array.dtype.kind not in "iu":
        raise InputError(f"ranks must be whole numbers, got dtype {array.dtype}")
    table = array.astype(np.int64)
    if (table < 0).any():
        row, column = np.argwhere(table < 0)[0].tolist()
        raise InputError(f"row {row + 1}: a rank must be 1 or more (0 if not listed), got {int(table[row, column])}")
    return table


def orders_from_long(
    voters: Longs,
    items: Longs,
    ranks: Longs,
    names: Sequence[str],
    ties: ReadTies,
    where: Where,
    shape: tuple[int, int] | None = None,
) -> tuple[Ints, Flags]:
    """Orders from entries (voter, item, rank), and which places have the rank of the one before.

    Voters and items count from 0, `where` tells an entry. Without a `shape` the last voter and longest order say it.
    After k items tied at rank r the next rank is r + 1 (dense ranks) or r + k (competition ranks).
    """
    _refuse_repeats(voters, items, names, where)
    lots = np.frombuffer(secrets.token_bytes(8 * len(ranks)), np.uint64) if ties == "random" else np.arange(len(ranks))
    sorting = np.lexsort((lots, ranks, voters))
    voter, rank, item = voters[sorting], ranks[sorting], items[sorting]
    lengths = np.bincount(voter, minlength=shape[0] if shape else 0)
    place = np.arange(len(voter)) - (np.cumsum(lengths) - lengths)[voter]
    again = (place > 0) & (rank == np.roll(rank, 1))
    begins = np.flatnonzero(~again)
    before = np.where(place[begins] > 0, rank[begins - 1], 0)
    step = rank[begins] - before
    gaps = begins[(step != 1) & ((before == 0) | (step != begins - np.roll(begins, 1)))]
    wrong = np.sort(np.concatenate([gaps, np.flatnonzero(again)]) if ties == "refuse" else gaps)
    if wrong.size:
        at = int(wrong[0])
        said, name = where(int(sorting[at])), names[item[at]]
        if again[at]:
            raise refuse_tie(said, (names[item[at - 1]], name), int(rank[at]))
        missing = int(rank[at - 1]) + 1 if place[at] else 1
        raise InputError(f"{said}: rank {missing} is missing but {name!r} has rank {rank[at]}")
    orders = np.full(shape or (len(lengths), int(lengths.max())), -1, np.int32)
    tied = np.zeros(orders.shape, np.bool_)
    orders[voter, place], tied[voter, place] = item, again
    return orders, tied


def _refuse_repeats(voters: Longs, items: Longs, names: Sequence[str], where: Where) -> None:
    pairs = voters * len(names) + items
    sorting = np.argsort(pairs, kind="stable")
    again = sorting[1:][pairs[sorting[1:]] == pairs[sorting[:-1]]]
    if again.size:
        entry = int(again.min())
        name = names[int(items[entry])]
        raise InputError(f"{where(entry)}: {name!r} is listed twice by one voter; a ranking lists each item once")
