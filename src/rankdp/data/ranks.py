"""From ranks to orders: a voter's items sorted by rank, with the ranks 1, 2, 3, … and a word for ties.

A tie (two items of one voter with one rank) has no place in an order. It is refused unless the caller
chooses: `ties="listed"` keeps the order in which the source lists the tied items (the order of the rows of a
long table, of the numbers between the braces of a PrefLib file, or of the columns of a table of ranks);
`ties="random"` draws their order uniformly at random, from the operating system's generator, separately for
every voter.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rankdp.data.checks import IntArray, Where, check_items, row_number
from rankdp.data.rankings import Ties
from rankdp.errors import InputError

_CHOICES = 'pass ties="listed" to keep the order in which they are listed, or ties="random" to draw it at random'


def check_ties(ties: str) -> None:
    """The choice must be one of the three."""
    if ties not in get_args(Ties):
        raise InputError(f'ties must be "refuse", "listed" or "random", got {ties!r}')


def refuse_tie(at: str, tied: Sequence[str], rank: int) -> InputError:
    """The sentence that refuses a tie and names the choices."""
    return InputError(f"{at}: {tied[0]!r} and {tied[1]!r} are tied at rank {rank}; {_CHOICES}")


def shuffle(values: list[int]) -> list[int]:
    """A uniformly random order of a few values."""
    secrets.SystemRandom().shuffle(values)
    return values


def break_ties(ranks: Sequence[int], items: list[int], names: Sequence[str], ties: Ties, at: str) -> list[int]:
    """One voter's items (sorted by rank, tied ones as listed) in their final order, or a sentence.

    After k items tied at rank r the next rank is r + 1 (dense ranks) or r + k (competition ranks).
    """
    result: list[int] = []
    start, allowed = 0, {1}
    while start < len(ranks):
        rank = ranks[start]
        end = start
        while end < len(ranks) and ranks[end] == rank:
            end += 1
        group = items[start:end]
        if rank not in allowed:
            raise InputError(f"{at}: rank {min(allowed)} is missing but {names[group[0]]!r} has rank {rank}")
        if len(group) > 1:
            if ties == "refuse":
                raise refuse_tie(at, [names[item] for item in group], rank)
            group = shuffle(group) if ties == "random" else group
        result += group
        allowed = {rank + 1, rank + end - start}
        start = end
    return result


def orders_from_ranks(ranks: Any, items: Iterable[Any] | None, ties: Ties) -> tuple[IntArray, tuple[str, ...]]:
    """Orders from an n x m table of ranks (1 the best; 0, NaN or None if not listed), and the items."""
    check_ties(ties)
    table = _rank_table(ranks)
    width = table.shape[1]
    names = tuple(str(item) for item in range(width)) if items is None else check_items(items)
    if len(names) != width:
        raise InputError(f"ranks must have one column for each of the {len(names)} items, got {width} columns")
    last = np.where(table == 0, np.iinfo(np.int64).max, table)
    orders = np.argsort(last, axis=1, kind="stable").astype(np.int32)
    listed = np.take_along_axis(table, orders, axis=1)
    strict = (listed == 0) | (listed == np.arange(1, width + 1))
    orders[listed == 0] = -1
    for row in np.flatnonzero(~strict.all(axis=1)).tolist():
        length = int(np.count_nonzero(listed[row]))
        order = break_ties(listed[row, :length].tolist(), orders[row, :length].tolist(), names, ties, row_number(row))
        orders[row, :length] = order
    return orders, names


def _rank_table(ranks: Any) -> NDArray[np.int64]:
    try:
        array = np.asarray(ranks)
    except ValueError:
        raise InputError("ranks must be a table of whole numbers with rows of one length") from None
    if array.dtype == object:
        try:
            array = np.array([[np.nan if cell is None else cell for cell in row] for row in ranks], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("ranks must be a table of whole numbers with rows of one length") from None
    if array.size == 0 or array.ndim != 2:
        raise InputError(f"ranks must be a table with one row per voter and one column per item, got {array.shape}")
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), 0, array)
        wrong = array != np.floor(array)
        if wrong.any() or np.isinf(array).any():
            row, column = np.argwhere(wrong | np.isinf(array))[0].tolist()
            raise InputError(f"row {row + 1}: a rank must be a whole number, got {float(array[row, column])!r}")
    elif array.dtype.kind not in "iu":
        raise InputError(f"ranks must be whole numbers, got dtype {array.dtype}")
    table = array.astype(np.int64)
    if (table < 0).any():
        row, column = np.argwhere(table < 0)[0].tolist()
        raise InputError(f"row {row + 1}: a rank must be 1 or more (0 if not listed), got {int(table[row, column])}")
    return table


def orders_from_long(
    voters: NDArray[np.int64],
    items: NDArray[np.int64],
    ranks: NDArray[np.int64],
    names: Sequence[str],
    ties: Ties,
    where: Where,
) -> IntArray:
    """Orders from entries (voter, item, rank); voters and items count from 0, `where` tells an entry."""
    _refuse_repeats(voters, items, names, where)
    sorting = np.lexsort((ranks, voters))  # stable: tied items stay as listed
    voter, rank = voters[sorting], ranks[sorting]
    lengths = np.bincount(voter)
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(voter)) - starts[voter]
    orders = np.full((len(lengths), int(lengths.max())), -1, np.int32)
    orders[voter, place] = items[sorting]
    wrong = rank != place + 1
    for row in np.unique(voter[wrong]).tolist():
        start, length = int(starts[row]), int(lengths[row])
        entries = slice(start, start + length)
        first = start + int(wrong[entries].argmax())
        order = break_ties(
            rank[entries].tolist(), orders[row, :length].tolist(), names, ties, where(int(sorting[first]))
        )
        orders[row, :length] = order
    return orders


def _refuse_repeats(voters: NDArray[np.int64], items: NDArray[np.int64], names: Sequence[str], where: Where) -> None:
    pairs = voters * len(names) + items
    sorting = np.argsort(pairs, kind="stable")
    again = sorting[1:][pairs[sorting[1:]] == pairs[sorting[:-1]]]
    if again.size:
        entry = int(again.min())
        name = names[int(items[entry])]
        raise InputError(f"{where(entry)}: {name!r} is listed twice by one voter; a ranking lists each item once")
