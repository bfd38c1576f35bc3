"""PairCounts: who won how often against whom, in exact integers.

A win counts 2 and a tie 1 for each side (*half-wins*), so that sums of wins and ties stay whole numbers; several
comparisons of a pair add up. Only pairs that were compared are kept, each once, with `first < second`, in order:
10,000 items and ten million comparisons take 200 MB, and one item's pairs lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankdp.data.rankings import Rankings
from rankdp.data.tables import IntArray, check_items
from rankdp.errors import InputError

LongArray = NDArray[np.int64]

MOST_HALVES = 2**53
"""Half-wins in all; up to here they are exact as floating-point numbers too."""

_DENSE = 4_000_000  # cells of a square table that still fits a processor's caches
_DENSE_RANKINGS = 400_000_000
_SWEEPS = 8
_DTYPES = (np.int32, np.int32, np.int64, np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairCounts:
    """Half-wins of every compared pair: `half_wins_first[k]` for item `first[k]` against item `second[k]`.

    The rules, checked once: `first < second`, pairs in increasing order and each once, half-wins not negative and
    not both 0, and at most 2^53 of them in all. The arrays become read-only.
    """

    items: tuple[str, ...]
    first: IntArray
    second: IntArray
    half_wins_first: LongArray
    half_wins_second: LongArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", check_items(self.items))
        for name, dtype in zip(self.__slots__[1:], _DTYPES, strict=True):
            object.__setattr__(self, name, _whole(name, getattr(self, name), dtype).copy())
        _check_pairs(self)
        self._freeze()

    @classmethod
    def _of(cls, items: tuple[str, ...], first: Any, second: Any, ahead: Any, behind: Any) -> Self:
        """Assemble parts that are already checked."""
        self = object.__new__(cls)
        for name, value in zip(cls.__slots__, (items, first, second, ahead, behind), strict=True):
            object.__setattr__(self, name, value)
        _check_total(ahead, behind)
        self._freeze()
        return self

    def _freeze(self) -> None:
        for array in (self.first, self.second, self.half_wins_first, self.half_wins_second):
            array.flags.writeable = False

    @classmethod
    def from_pairs(
        cls, left: Any, right: Any, half_wins_left: Any, half_wins_right: Any = None, *, items: int | Iterable[Any]
    ) -> Self:
        """Counts from rows in any order, in which a pair may come more than once and either way round.

        With `half_wins_right` a row holds any number of comparisons. Without it a row is one comparison: 2
        half-wins for the left item mean that it won, 1 a tie, 0 that it lost.
        """
        names = _names(items)
        if half_wins_right is None:
            return cls._of(names, *_count(left, right, half_wins_left, len(names)))
        left, right = _whole("left", left, np.int32), _whole("right", right, np.int32)
        ahead = _whole("half_wins_left", half_wins_left, np.int64)
        behind = _whole("half_wins_right", half_wins_right, np.int64)
        _check_rows(left, right, ahead, behind, len(names))
        _check_total(ahead, behind)
        swap = left > right
        low, high = np.where(swap, right, left), np.where(swap, left, right)
        ahead, behind = np.where(swap, behind, ahead), np.where(swap, ahead, behind)
        used = np.flatnonzero((ahead > 0) | (behind > 0))
        keys = low[used].astype(np.int64) * len(names) + high[used]
        order = used[np.argsort(keys, kind="stable")]
        starts = np.flatnonzero(np.diff(np.sort(keys), prepend=-1))
        if not len(order):
            nothing = np.empty(0, np.int64)
            return cls._of(names, nothing.astype(np.int32), nothing.astype(np.int32), nothing, nothing.copy())
        sums = (np.add.reduceat(half[order], starts) for half in (ahead, behind))
        return cls._of(names, low[order[starts]], high[order[starts]], *sums)

    @classmethod
    def from_dense(cls, wins: Any, items: Iterable[Any] | None = None) -> Self:
        """Counts from a square table: row i, column j holds how often i beat j, with a tie as 0.5 for each side."""
        table = np.asarray(wins)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
            raise InputError(f"wins must be a square table with one row and column per item, got shape {table.shape}")
        names = _names(len(table) if items is None else items)
        if len(names) != len(table):
            raise InputError(f"items must name the {len(table)} rows of wins, got {len(names)} names")
        if table.dtype.kind not in "iufb":
            raise InputError(f"wins must be numbers, got dtype {table.dtype}")
        doubled = 2 * table.astype(np.float64)
        if not (np.isfinite(doubled).all() and (doubled >= 0).all() and (doubled == np.floor(doubled)).all()):
            raise InputError("wins must be whole or half numbers of at least 0")
        if doubled.sum() > MOST_HALVES:
            raise InputError("wins must add up to at most 2^52, beyond which they are not exact")
        if np.diagonal(doubled).any():
            item = int(np.flatnonzero(np.diagonal(doubled))[0])
            raise InputError(f"wins must be 0 on the diagonal: {names[item]!r} is compared with itself")
        first, second = np.nonzero(np.triu(doubled + doubled.T, 1))
        halves = doubled.astype(np.int64)
        pairs = first.astype(np.int32), second.astype(np.int32), halves[first, second], halves[second, first]
        return cls._of(names, *pairs)

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> Self:
        """Every ranking compares every pair of the items that it lists; the higher one wins."""
        m = len(rankings.items)
        if m * m > _DENSE_RANKINGS:
            raise InputError(
                f"the pairs of {m:,} items are counted in a square table, which takes at most 20,000 items"
            )
        from rankdp.data import count_kernels

        table = np.zeros(m * m, np.int64)
        count_kernels.tally_rankings(np.ascontiguousarray(rankings.orders), table)
        return cls._of(rankings.items, *count_kernels.pairs_of_dense(table, m))

    @property
    def halves(self) -> LongArray:
        """Half-wins of both sides of each pair: twice the number of comparisons, exactly."""
        return self.half_wins_first + self.half_wins_second

    @property
    def comparisons(self) -> NDArray[np.float64]:
        """How often each pair was compared (a half when half a comparison was given)."""
        return self.halves / 2

    @property
    def half_wins(self) -> LongArray:
        """Each item's half-wins."""
        return self.records()[0]

    @property
    def half_losses(self) -> LongArray:
        """Each item's half-losses."""
        return self.records()[1]

    def records(self) -> tuple[LongArray, LongArray]:
        """Each item's half-wins and half-losses."""
        from rankdp.data import count_kernels

        pairs = (self.first, self.second, self.half_wins_first, self.half_wins_second)
        won, lost = count_kernels.records(*pairs, len(self.items))
        return won, lost

    @property
    def degree(self) -> LongArray:
        """With how many others each item was compared."""
        m = len(self.items)
        return np.bincount(self.first, minlength=m) + np.bincount(self.second, minlength=m)

    def dense(self) -> NDArray[np.float64]:
        """The square table of wins that `from_dense` takes."""
        wins = np.zeros((len(self.items), len(self.items)))
        wins[self.first, self.second] = self.half_wins_first / 2
        wins[self.second, self.first] = self.half_wins_second / 2
        return wins

    def __len__(self) -> int:
        """The number of compared pairs."""
        return len(self.first)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairCounts):
            return NotImplemented
        return self.items == other.items and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__[1:]
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return PairCounts, tuple(getattr(self, name) for name in self.__slots__)

    def __repr__(self) -> str:
        shown = ", ".join(self.items[:4]) + (", …" if len(self.items) > 4 else "")
        total = int(self.halves.sum()) / 2
        return f"PairCounts({total:,.15g} comparisons of {len(self):,} pairs of {len(self.items)} items: {shown})"


def count_pairs(left: Any, right: Any, half_wins_left: Any, items: int | Iterable[Any]) -> PairCounts:
    """One comparison per row: the indices of two items, and 2 if the left one won, 1 for a tie, 0 if it lost.

    `items` are the names, or how many there are. Up to 2,000 items are counted in a square table; above that,
    rows are dealt to their smaller item and summed there.
    """
    return PairCounts.from_pairs(left, right, half_wins_left, items=items)


def components(counts: PairCounts) -> IntArray:
    """A number for each item, equal for two items exactly if a chain of comparisons links them; 0 for item 0."""
    return _labels(counts, directed=False)


def win_components(counts: PairCounts) -> IntArray:
    """A number for each item, equal for two exactly if each beat or tied the other, directly or through others.

    The Bradley-Terry maximum exists exactly if there is one such component (Ford 1957).
    """
    return _labels(counts, directed=True)


def one_win_component(counts: PairCounts) -> bool:
    """True if `win_components` finds one component; mostly without looking at all the pairs."""
    from rankdp.data import count_kernels

    m = len(counts.items)
    pairs = (counts.first, counts.second, counts.half_wins_first, counts.half_wins_second)
    beats, beaten = count_kernels.reached(*pairs, m, _SWEEPS)
    if min(beats, beaten) < 0:
        return bool(win_components(counts).max() == 0)
    return bool(beats == m and beaten == m)


def never_beaten(counts: PairCounts) -> IntArray:
    """The compared items without a loss or a tie."""
    won, lost = counts.records()
    return np.flatnonzero((lost == 0) & (won > 0)).astype(np.int32)


def always_beaten(counts: PairCounts) -> IntArray:
    """The compared items without a win or a tie."""
    won, lost = counts.records()
    return np.flatnonzero((won == 0) & (lost > 0)).astype(np.int32)


def _labels(counts: PairCounts, directed: bool) -> IntArray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    down, up = counts.half_wins_first > 0, counts.half_wins_second > 0
    winners = np.concatenate([counts.first[down], counts.second[up]])
    losers = np.concatenate([counts.second[down], counts.first[up]])
    m = len(counts.items)
    graph = coo_array((np.ones(len(winners), np.int8), (winners, losers)), shape=(m, m)).tocsr()
    _, labels = connected_components(graph, directed=directed, connection="strong")
    # numbered by their first items
    _, at, inverse = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(len(at), np.int32)
    place[np.argsort(at)] = np.arange(len(at), dtype=np.int32)
    numbered: IntArray = place[inverse]
    return numbered


def _count(left: Any, right: Any, halves: Any, items: int) -> tuple[Any, ...]:
    from rankdp.data import count_kernels

    left, right = _whole("left", left, np.int32), _whole("right", right, np.int32)
    halves = _whole("half_wins_left", halves, np.int8)
    if not len(left) == len(right) == len(halves):
        raise InputError(_unequal({"left": left, "right": right, "half_wins_left": halves}))
    dense = items * items <= _DENSE and len(left) < 2**30
    table = np.zeros(items * items if dense else 0, np.int64)
    if dense:
        row = count_kernels.tally_dense(left, right, halves, items, table)
    else:
        row = count_kernels.first_bad_row(left, right, halves, items)
    if row >= 0:
        _check_rows(left[row:], right[row:], halves[row:], None, items, row)
        raise InputError(f"row {row + 1}: half_wins_left must be 0, 1 or 2 for one comparison, got {halves[row]}")
    if dense:
        pairs = _columns(min(len(left), items * (items - 1) // 2) + 1)
        return _cut(pairs, count_kernels.pairs_of_rows(table, items, *pairs))
    ends, words = np.empty(items + 1, np.int64), np.empty(len(left), np.uint32)
    count_kernels.deal(left, right, halves, ends, words)
    pairs = _columns(len(left))
    return _cut(pairs, count_kernels.tally_dealt(ends, words, *pairs))


def _columns(rows: int) -> Any:
    """Room for pairs. NumPy's large arrays come on huge pages, which a kernel's own do not."""
    return [np.empty(rows, dtype) for dtype in _DTYPES]


def _cut(columns: Any, count: int) -> tuple[Any, ...]:
    """The first pairs; a copy where much room would be kept for nothing."""
    return tuple(column[:count] if 2 * count > len(column) else column[:count].copy() for column in columns)


def _names(items: int | Iterable[Any]) -> tuple[str, ...]:
    if isinstance(items, (int, np.integer)) and not isinstance(items, bool):
        if not 1 <= items < 2**29:
            raise InputError(f"the number of items must be from 1 to 2^29, got {items}")
        return tuple(map(str, range(items)))
    return check_items(items)  # type: ignore[arg-type]


def _whole(name: str, values: Any, dtype: Any) -> Any:
    """A contiguous array of whole numbers of the type wanted; a copy only where the type differs."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(dtype)
    if array.ndim != 1:
        raise InputError(f"{name} must be a list of whole numbers, got {array.ndim} dimension(s)")
    if array.dtype.kind not in "iub":
        raise InputError(f"{name} must be whole numbers, got dtype {array.dtype}")
    if array.dtype != dtype:
        limits = np.iinfo(dtype)
        if array.size and (int(array.max()) > limits.max or int(array.min()) < limits.min):
            raise InputError(f"{name} holds a number beyond {limits.bits} bits")
        array = array.astype(dtype)
    return np.ascontiguousarray(array)


def _unequal(columns: dict[str, Any]) -> str:
    lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
    return f"the columns must have equal lengths, got {lengths}"


def _check_rows(left: Any, right: Any, ahead: Any, behind: Any, items: int, start: int = 0) -> None:
    """Indices inside the items, no item against itself, no negative half-wins."""
    columns = {"left": left, "right": right, "half_wins_left": ahead}
    if behind is not None:
        columns["half_wins_right"] = behind
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError(_unequal(columns))
    for name in ("left", "right"):
        outside = np.flatnonzero((columns[name] < 0) | (columns[name] >= items))
        if outside.size:
            row = int(outside[0])
            raise InputError(
                f"row {start + row + 1}: {name} must be an item's index from 0 to {items - 1}, got {columns[name][row]}"
            )
    same = np.flatnonzero(left == right)
    if same.size:
        row = int(same[0])
        raise InputError(f"row {start + row + 1}: item {left[row]} is compared with itself")
    for name in list(columns)[2:]:
        negative = np.flatnonzero(columns[name] < 0)
        if negative.size and behind is not None:
            row = int(negative[0])
            raise InputError(f"row {start + row + 1}: {name} must be at least 0, got {columns[name][row]}")


def _check_pairs(counts: PairCounts) -> None:
    first, second, m = counts.first, counts.second, len(counts.items)
    _check_rows(first, second, counts.half_wins_first, counts.half_wins_second, m)
    keys = first.astype(np.int64) * m + second
    if (first > second).any() or (np.diff(keys) <= 0).any():
        raise InputError("pairs must be given once, first < second, in increasing order; use PairCounts.from_pairs")
    if ((counts.half_wins_first == 0) & (counts.half_wins_second == 0)).any():
        raise InputError("every pair must have been compared, got one with 0 half-wins on both sides")
    _check_total(counts.half_wins_first, counts.half_wins_second)


def _check_total(ahead: LongArray, behind: LongArray) -> None:
    about = float(ahead.sum(dtype=np.float64)) + float(behind.sum(dtype=np.float64))  # this cannot wrap around
    if about > 2 * MOST_HALVES or int(ahead.sum()) + int(behind.sum()) > MOST_HALVES:
        raise InputError("the half-wins must add up to at most 2^53, beyond which they are not exact")
