"""Arrow tables in and out: the one road between Rankings and every file format and data frame.

A table of item names is carried as dictionary columns (codes and a list of names), so that nothing here makes
a Python text per cell. The list of items travels in the table's metadata, which keeps its order and the items
that no voter lists.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from rankdp.checks import one_of
from rankdp.data.cells import (
    MISSING,
    Batch,
    Coded,
    Known,
    Where,
    WhereIn,
    arrow_ids,
    encode,
    epsilon_values,
    in_a_sentence,
    items_metadata,
    numbers,
    offset_values,
    text_of,
    understand,
)
from rankdp.data.columns import Columns, rank_of, recognise
from rankdp.data.orders import ReadTies, first_broken, orders_from_long, refuse_row
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, system_problem
from rankdp.lazy import LazyModule
from rankdp.types import Flags, Floats, Ints, Longs

pa: Any = LazyModule("pyarrow")

Number = TypeVar("Number", bound=np.generic)

OFFSET = "offset"
"""The column of public offsets in what is written."""
BATCH_ROWS = 131_072
_TILE_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class Reading:
    """How a table of rankings is to be read: the options of `Rankings.read`."""

    items: Iterable[Any] | None = None
    ties: ReadTies = "refuse"
    voter_column: str | None = None
    epsilon_column: str | None = None
    offset_column: str | None = None
    columns: Mapping[str, str] | None = None
    layout: str = "auto"

    def __post_init__(self) -> None:
        one_of("ties", self.ties, get_args(ReadTies))

    def recognise(self, names: Sequence[str], what: str) -> Columns:
        """What the columns of a table mean."""
        asked = self.voter_column, self.epsilon_column, self.offset_column
        listed = [str(item).strip() for item in self.items] if isinstance(self.items, (list, tuple)) else []
        return recognise(names, what, *asked, self.columns, self.layout, listed)


@dataclass(slots=True, eq=False, repr=False)
class RankingsReader:
    """An open file of rankings: iterate over it once for its batches, in the order of the file."""

    path: str
    columns: Columns
    """What the columns of the file were taken to mean."""
    _known: Known
    rows: int | None
    """The number of rankings; None for a wide CSV, which must be read to the end to know."""
    width: int
    """The number of columns that every batch's orders have."""
    _batches: Iterator[Rankings]
    close: Callable[[], None] = lambda: None
    """Closes the file."""
    notes: tuple[str, ...] = ()
    """What was skipped or cleaned on the way, for the eyes of whoever holds the file."""
    paths: tuple[str, ...] = ()
    """The files that are read, which must not be replaced meanwhile."""

    @property
    def items(self) -> tuple[str, ...]:
        """The items met so far: all of them from the start if declared, else once the last batch is read."""
        return self._known.items

    @property
    def declared_items(self) -> bool:
        """True when the caller or the file itself gave the list of items."""
        return self._known.declared

    def __iter__(self) -> Iterator[Rankings]:
        try:
            yield from self._batches
        except OSError as error:
            raise system_problem(self.path, error, "read") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def row_batches(
    stream: Iterable[Batch], columns: Columns, known: Known, what: str, where: WhereIn, ties: ReadTies
) -> Iterator[Rankings]:
    """Rankings from the batches of a table with a row per ranking."""
    for file, start, batch in stream:

        def at(row: int, file: int = file, start: int = start) -> str:
            return where(file, start + row)

        with in_a_sentence(what):
            rankings = _rankings_of(batch, columns, known, at, ties)
        yield rankings


def _rankings_of(batch: Any, columns: Columns, known: Known, where: Where, ties: ReadTies) -> Rankings:
    """The rankings of an Arrow batch with a row per ranking: a column per place, or a column per item."""
    if columns.layout == "wide":
        orders, tied = _gathered([encode(batch.column(name)) for name in columns.ranks], known, where), None
    else:
        ranks, positions = rank_table(batch, columns, known, where)
        if (silent := np.flatnonzero(~ranks.any(axis=1))).size:
            raise InputError(f"{where(int(silent[0]))}: no item is ranked; a ranking lists at least one")
        rows, places = np.nonzero(ranks)
        entries = rows.astype(np.int64), positions[places], ranks[rows, places]
        orders, again = orders_from_long(
            *entries, known.items, ties, lambda entry: where(int(rows[entry])), shape=ranks.shape
        )
        tied = _kept(again, ties)
    return Rankings._of(orders, known.items, *_about_voters(batch, columns, where), tied, known.from_data)


def _kept(tied: Flags, ties: ReadTies) -> Flags | None:
    """Which places are tied with the one before, where that is to be kept and there are any."""
    return tied if ties == "keep" and tied.any() else None


def rank_table(
    batch: Any, columns: Columns, known: Known, where: Where, skipped: Callable[[Any], bool] = lambda value: False
) -> tuple[Longs, Longs]:
    """The ranks in a table with a column per item (0 for none, or a ``skipped`` cell), and the columns' items."""
    if strange := next((item for item in columns.items if item not in known), None):
        raise InputError(f"{where(0)}: {strange!r}, of a column, is not one of the {len(known.items)} items given")
    ranks = np.zeros((batch.num_rows, len(columns.ranks)), np.int64)
    for place, name in enumerate(columns.ranks):
        cells = encode(batch.column(name))
        rows = cells.first_rows().tolist()
        said = zip(cells.values, rows, strict=False)
        meaning = [0 if skipped(value) else _cell_rank(value, name, partial(where, row)) for value, row in said]
        ranks[:, place] = np.array([*meaning, 0], np.int64)[cells.codes]
    return ranks, np.array([known.position(item) for item in columns.items], np.int64)


def _cell_rank(value: Any, column: str, at: Callable[[], str]) -> int:
    """The rank in a cell, 0 where it is blank."""
    text = text_of(value)
    if text is None or text in MISSING:
        return 0
    rank = rank_of(text)
    if not rank or rank >= 2**31:
        raise InputError(f"{at()}: {column!r} must be a rank such as 1, 2nd or blank, got {value!r}")
    return rank


def _about_voters(batch: Any, columns: Columns, where: Where) -> tuple[Any, Any, Any]:
    voters = None if columns.voter is None else arrow_ids(batch.column(columns.voter), where)
    epsilons = None if columns.epsilon is None else epsilon_values(batch.column(columns.epsilon), where)
    offsets = None if columns.offset is None else offset_values(batch.column(columns.offset), where)
    return voters, epsilons, offsets


def _gathered(columns: Sequence[Coded], known: Known, where: Where) -> Ints:
    """The orders of a wide table, from its rank columns, best rank first."""
    meanings = understand(columns, known, where)
    # each column's table begins with the -1 that a null (code -1) finds one place before its start
    tables = [np.array([-1, *(known.position(name) for name in names)], dtype=np.int32) for names in meanings]
    orders = np.empty((len(columns[0].codes), len(columns)), np.int32)
    for start in range(0, len(orders), _TILE_ROWS):
        tile = slice(start, start + _TILE_ROWS)
        for position, (column, table) in enumerate(zip(columns, tables, strict=True)):
            orders[tile, position] = table[column.codes[tile] + 1]
    refuse_row(first_broken(orders, len(known.items)), orders, known.items, where, known.blank)
    return orders


def long_rankings(
    stream: Iterable[Batch], columns: Columns, known: Known, what: str, where: WhereIn, ties: ReadTies
) -> Rankings:
    """A table with a row per voter and listed item, loaded at once and grouped: voters in order of first appearance."""
    batches = list(stream)
    starts = np.cumsum([0, *(batch.num_rows for _, _, batch in batches)]).tolist()

    def at(row: int) -> str:
        number = bisect(starts, row) - 1
        file, start, _ = batches[number]
        return where(file, start + row - starts[number])

    with in_a_sentence(what):
        return _grouped(pa.Table.from_batches([batch for _, _, batch in batches]), columns, known, ties, at)


def _grouped(table: Any, columns: Columns, known: Known, ties: ReadTies, where: Where) -> Rankings:
    """Read and check the rows of a long table."""
    item_column, rank_column = columns.ranks
    voters, epsilons, offsets = _about_voters(table, columns, where)
    coded = encode(voters)
    ranks = said_ranks(table.column(rank_column), columns.ratings, where)
    if columns.ratings:
        ranks = ranks_of(ranks, coded.codes)
    cells = encode(table.column(item_column))
    names = understand([cells], known, where)[0]
    items = np.array([*(known.position(name) for name in names), -1], dtype=np.int64)[cells.codes]
    if (items < 0).any():
        raise InputError(f"{where(int((items < 0).argmax()))}: the item is blank")
    listed = np.flatnonzero(~np.isnan(ranks))
    silent = np.flatnonzero(np.bincount(coded.codes[listed], minlength=len(coded.values)) == 0)
    if silent.size:
        at = where(int((coded.codes == silent[0]).argmax()))
        raise InputError(f"{at}: voter {coded.values[int(silent[0])]!r} has no rank at all")
    entries = coded.codes[listed].astype(np.int64), items[listed], ranks[listed].astype(np.int64)
    orders, tied = orders_from_long(*entries, known.items, ties, lambda entry: where(int(listed[entry])))
    ids = pa.array(coded.values, type=voters.type)
    epsilons = None if epsilons is None else _one_each(epsilons, coded.codes, "epsilons", where)
    offsets = None if offsets is None else _one_each(offsets, coded.codes, "offsets", where)
    return Rankings._of(orders, known.items, ids, epsilons, offsets, _kept(tied, ties), known.from_data)


def said_ranks(column: Any, ratings: bool, where: Where) -> Floats:
    """The ranks, or ratings, that a column of a long table holds, NaN where it is blank."""
    ranks = numbers(column, "rating" if ratings else "rank", where)
    wrong = np.isinf(ranks) if ratings else (ranks != np.floor(ranks)) | (ranks < 1) | (ranks >= 2**31)
    if (rows := np.flatnonzero(wrong & ~np.isnan(ranks))).size:
        rule = "a rating must be a finite number" if ratings else "a rank must be a whole number from 1 on"
        raise InputError(f"{where(int(rows[0]))}: {rule}, got {float(ranks[rows[0]]):g}")
    return ranks


def ranks_of(ratings: Floats, codes: Ints | Longs) -> Floats:
    """The rank of every rating among the ratings of its voter, 1 for the highest; a missing rating has no rank."""
    ranks = np.full(len(ratings), np.nan)
    rated = np.flatnonzero(~np.isnan(ratings))
    order = rated[np.lexsort((-ratings[rated], codes[rated]))]
    voter, rating = codes[order], ratings[order]
    begins = np.append(True, voter[1:] != voter[:-1])[: len(order)]
    steps = np.cumsum(begins | np.append(True, rating[1:] != rating[:-1])[: len(order)])
    ranks[order] = steps - np.maximum.accumulate(np.where(begins, steps, 0)) + 1
    return ranks


def _one_each(values: NDArray[Number], codes: Ints, what: str, where: Where) -> NDArray[Number]:
    """A voter's epsilon or offset, which must be the same in all of the voter's rows."""
    first = np.unique(codes, return_index=True)[1]
    differing = np.flatnonzero(values != values[first][codes])
    if differing.size:
        row = int(differing[0])
        raise InputError(f"{where(row)}: the voter has the {what} {values[first][codes[row]]} and {values[row]}")
    return values[first]


def arrow_voters(rankings: Rankings) -> Any:
    """The voters' ids as an Arrow array (text when they are of several kinds), or None."""
    voters = rankings._voters
    if not isinstance(voters, np.ndarray):
        return voters.combine_chunks() if isinstance(voters, pa.ChunkedArray) else voters
    try:
        return pa.array(voters)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([str(voter) for voter in voters])


def arrow_batch(
    rankings: Rankings, width: int, long: bool = False, first: int = 1, voter: str = "voter", epsilon: str = "epsilon"
) -> Any:
    """Rankings as an Arrow batch: a row for each with `width` ranks, or a row for each listed item, and its voter.

    Voters without ids are left out, or in a long table numbered from ``first`` on.
    """
    ids, values = arrow_voters(rankings), pa.array(rankings.items, pa.string())
    named: list[tuple[str, Any]] = []
    rows: Any = slice(None)
    if long:
        rows, places = np.nonzero(rankings.orders >= 0)
        numbered = places + 1 if rankings.tied is None else np.cumsum(~rankings.tied, axis=1)[rows, places]
        ids = pa.array(np.arange(first, first + len(rankings))) if ids is None else ids
        items = pa.DictionaryArray.from_arrays(pa.array(rankings.orders[rows, places]), values)
        named += [(voter, ids.take(pa.array(rows))), ("item", items)]
        named.append(("rank" if rankings.tied is None else "tier", pa.array(numbered)))
    else:
        named += [] if ids is None else [(voter, ids)]
        named += [(f"rank_{rank}", cells) for rank, cells in enumerate(_item_columns(rankings, width, values), 1)]
    more = (epsilon, rankings.epsilons), (OFFSET, rankings.offsets)
    named += [(name, pa.array(part[rows])) for name, part in more if part is not None]
    return pa.RecordBatch.from_arrays([cells for _, cells in named], [name for name, _ in named])


def _item_columns(rankings: Rankings, width: int, values: Any) -> list[Any]:
    """The orders as `width` Arrow dictionary columns over `values`, null where nothing is listed."""
    codes = np.empty(rankings.orders.shape[::-1], np.int32)
    for start in range(0, len(rankings), _TILE_ROWS):
        codes[:, start : start + _TILE_ROWS] = rankings.orders[start : start + _TILE_ROWS].T
    full = bool(codes.min() >= 0)
    indices = [pa.array(column, mask=None if full else column < 0) for column in codes]
    indices += [pa.nulls(len(rankings), pa.int32())] * (width - len(indices))
    return [pa.DictionaryArray.from_arrays(column, values, safe=False) for column in indices]


def to_arrow(rankings: Rankings) -> Any:
    """A PyArrow table with the list of items in its metadata (see `Rankings.to_arrow`)."""
    batch = arrow_batch(rankings, rankings.orders.shape[1], long=rankings.tied is not None)
    metadata = items_metadata(rankings.items, rankings.items_from_data)
    return pa.Table.from_batches([batch]).replace_schema_metadata(metadata)
