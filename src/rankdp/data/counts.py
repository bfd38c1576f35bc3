"""PairCounts: how often each item beat each other item, in exact integers.

A win counts 2 and a tie 1 for each side (*half-wins*), so that sums of wins and ties stay whole numbers; several
comparisons of a pair add up. Only pairs that were compared are kept, each once, with `first < second`, in order:
10,000 items and ten million comparisons take 200 MB, and one item's pairs lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdp.checks import whole
from rankdp.data.cells import check_items
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError
from rankdp.jit import kernel
from rankdp.types import Floats, Ints, Longs

MOST_HALVES = 2**53
"""The largest total of half-wins; up to here floating-point numbers are exact too."""

STEPS = 1 << 16
"""The steps in which a comparison is counted where voters are weighed (`votes`)."""
LOADS = 11
"""Voters are grouped by loads of 1, 2 to 3, 4 to 7, …, and 1,024 or more comparisons."""

_DENSE_RANKINGS = 400_000_000
_COLUMNS = {"first": np.int32, "second": np.int32, "half_wins_first": np.int64, "half_wins_second": np.int64}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairCounts:
    """Half-wins of every compared pair, checked once and read-only."""

    items: tuple[str, ...]
    first: Ints
    """The items of each pair as indices, `first < second`; pairs in increasing order and each once."""
    second: Ints
    half_wins_first: Longs
    """The half-wins of either item against the other: not negative, not both 0, with a total of at most 2^53."""
    half_wins_second: Longs
    steps: int = 1
    """The steps in which a comparison is counted: a win adds 2 `steps` half-wins. Noise must be in the same steps."""

    def __post_init__(self) -> None:
        columns = [_whole(name, getattr(self, name), dtype).copy() for name, dtype in _COLUMNS.items()]
        names, (first, second, ahead, behind) = check_items(self.items), columns
        _check_rows(first, second, ahead, behind, len(names))
        keys = first.astype(np.int64) * len(names) + second
        if (first > second).any() or (np.diff(keys) <= 0).any():
            raise InputError("pairs must be given once, first < second, in increasing order; use PairCounts.from_pairs")
        if ((ahead == 0) & (behind == 0)).any():
            raise InputError("every pair must have been compared, got one with 0 half-wins on both sides")
        self._hold(names, columns, whole("steps", self.steps, 1, MOST_HALVES))

    @classmethod
    def _of(cls, items: tuple[str, ...], first: Any, second: Any, ahead: Any, behind: Any, steps: int = 1) -> Self:
        """Assemble parts that are already checked."""
        self = object.__new__(cls)
        self._hold(items, (first, second, ahead, behind), steps)
        return self

    def _hold(self, items: tuple[str, ...], columns: Sequence[Any], steps: int) -> None:
        _check_total(*columns[2:])
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "steps", steps)
        for name, column in zip(_COLUMNS, columns, strict=True):
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def from_pairs(
        cls,
        left: Any,
        right: Any,
        half_wins_left: Any,
        half_wins_right: Any = None,
        *,
        items: int | Iterable[Any],
        steps: int = 1,
    ) -> Self:
        """Counts from rows in any order, in which a pair may come more than once and either way round.

        `left` and `right` are indices of `items`, which are names or a number. Without `half_wins_right` a row is one
        comparison, and its `half_wins_left` are 2 if the left item won, 1 for a tie, 0 if it lost.
        """
        from scipy.sparse import coo_array

        names = _names(items)
        left, right = _whole("left", left, np.int32), _whole("right", right, np.int32)
        if half_wins_right is None:
            ahead = _whole("half_wins_left", half_wins_left, np.int8)
            if (wrong := (ahead < 0) | (ahead > 2)).any():
                row = int(wrong.argmax())
                rule = "half_wins_left must be 0, 1 or 2 for one comparison"
                raise InputError(f"row {row + 1}: {rule}, got {ahead[row]}")
            behind = 2 - ahead
        else:
            ahead = _whole("half_wins_left", half_wins_left, np.int64)
            behind = _whole("half_wins_right", half_wins_right, np.int64)
        _check_rows(left, right, ahead, behind, len(names))
        _check_total(ahead, behind)
        swap = left > right
        halves = np.empty(len(left), np.complex128)  # one number for both sides: floats are exact up to 2^53
        halves.real, halves.imag = np.where(swap, behind, ahead), np.where(swap, ahead, behind)
        places = np.minimum(left, right), np.maximum(left, right)
        table = coo_array((halves, places), shape=(len(names), len(names))).tocsr()  # which adds up equal places
        table.eliminate_zeros()
        first = np.repeat(np.arange(len(names), dtype=np.int32), np.diff(table.indptr))
        ahead, behind = (part.astype(np.int64) for part in (table.data.real, table.data.imag))
        return cls._of(names, first, table.indices.astype(np.int32, copy=False), ahead, behind, steps)

    @classmethod
    def from_dense(cls, wins: Any, items: Iterable[Any] | None = None) -> Self:
        """Counts from a square table: row i, column j holds how often i beat j, a tie being 0.5 for each side.

        The items are called "0", "1", … where their names are not given.
        """
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
        return cls._from_table(names, doubled.astype(np.int64))

    @classmethod
    def _from_table(cls, items: tuple[str, ...], halves: Longs) -> Self:
        """From a checked square table of the half-wins of the row's item over the column's."""
        met = halves != 0
        first, second = np.nonzero(np.triu(met | met.T, 1))
        pairs = first.astype(np.int32), second.astype(np.int32)
        return cls._of(items, *pairs, halves[first, second], halves[second, first])

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> Self:
        """Counts from rankings, each of which compares every pair of the items that it lists; the higher one wins.

        There may be at most 20,000 items.
        """
        m = len(rankings.items)
        if m * m > _DENSE_RANKINGS:
            raise InputError(
                f"the pairs of {m:,} items are counted in a square table, which takes at most 20,000 items"
            )
        table = np.zeros(m * m, np.int64)
        tally_rankings(np.ascontiguousarray(rankings.orders), table)
        return cls._from_table(rankings.items, table.reshape(m, m))

    @property
    def halves(self) -> Longs:
        """Half-wins of both sides of each pair: twice the number of comparisons, times `steps`, exactly."""
        return self.half_wins_first + self.half_wins_second

    @property
    def comparisons(self) -> Floats:
        """How often each pair was compared (a half when half a comparison was given)."""
        return self.halves / (2 * self.steps)

    @property
    def half_wins(self) -> Longs:
        """Each item's half-wins."""
        return self.records()[0]

    @property
    def half_losses(self) -> Longs:
        """Each item's half-losses."""
        return self.records()[1]

    def records(self) -> tuple[Longs, Longs]:
        """Each item's half-wins and half-losses."""
        items, ahead, behind = len(self.items), self.half_wins_first, self.half_wins_second
        # sums of floats are exact up to 2^53
        won = np.bincount(self.first, ahead, items) + np.bincount(self.second, behind, items)
        lost = np.bincount(self.first, behind, items) + np.bincount(self.second, ahead, items)
        return won.astype(np.int64), lost.astype(np.int64)

    @property
    def degree(self) -> Longs:
        """With how many others each item was compared."""
        m = len(self.items)
        return np.bincount(self.first, minlength=m) + np.bincount(self.second, minlength=m)

    def dense(self) -> Floats:
        """The square table of wins that `from_dense` takes."""
        wins = np.zeros((len(self.items), len(self.items)))
        wins[self.first, self.second] = self.half_wins_first / (2 * self.steps)
        wins[self.second, self.first] = self.half_wins_second / (2 * self.steps)
        return wins

    def __len__(self) -> int:
        """The number of compared pairs."""
        return len(self.first)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairCounts):
            return NotImplemented
        return (self.items, self.steps) == (other.items, other.steps) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return PairCounts, tuple(getattr(self, name) for name in self.__slots__)

    def __repr__(self) -> str:
        shown = ", ".join(self.items[:4]) + (", …" if len(self.items) > 4 else "")
        total = int(self.halves.sum()) / (2 * self.steps)
        return f"PairCounts({total:,.15g} comparisons of {len(self):,} pairs of {len(self.items)} items: {shown})"


def components(counts: PairCounts) -> Ints:
    """A number for each item, equal for two items exactly if a chain of comparisons links them; 0 for item 0."""
    return _labels(counts, directed=False)


def win_components(counts: PairCounts) -> Ints:
    """A number for each item, equal for two exactly if each beat or tied the other, directly or through others.

    The Bradley-Terry maximum exists exactly if there is one such component (Ford 1957).
    """
    return _labels(counts, directed=True)


def never_beaten(counts: PairCounts) -> Ints:
    """The compared items without a loss or a tie."""
    won, lost = counts.records()
    return np.flatnonzero((lost == 0) & (won > 0)).astype(np.int32)


def always_beaten(counts: PairCounts) -> Ints:
    """The compared items without a win or a tie."""
    won, lost = counts.records()
    return np.flatnonzero((won == 0) & (lost > 0)).astype(np.int32)


def _victories(counts: PairCounts) -> tuple[Ints, Ints]:
    """Who beat or tied whom."""
    down, up = counts.half_wins_first > 0, counts.half_wins_second > 0
    winners = np.concatenate([counts.first[down], counts.second[up]])
    return winners, np.concatenate([counts.second[down], counts.first[up]])


def _labels(counts: PairCounts, directed: bool) -> Ints:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    winners, losers = _victories(counts)
    m = len(counts.items)
    graph = coo_array((np.ones(len(winners), np.int8), (winners, losers)), shape=(m, m)).tocsr()
    _, labels = connected_components(graph, directed=directed, connection="strong")
    # numbered by their first items
    _, at, inverse = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(len(at), np.int32)
    place[np.argsort(at)] = np.arange(len(at), dtype=np.int32)
    numbered: Ints = place[inverse]
    return numbered


def _names(items: int | Iterable[Any]) -> tuple[str, ...]:
    if isinstance(items, Iterable):
        return check_items(items)
    return tuple(map(str, range(whole("the number of items", items, 1, 2**29 - 1))))


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


def _check_rows(left: Any, right: Any, ahead: Any, behind: Any, items: int) -> None:
    """Equal lengths, indices inside the items, no item against itself, no negative half-wins."""
    columns = {"left": left, "right": right, "half_wins_left": ahead, "half_wins_right": behind}
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise InputError(f"the columns must have equal lengths, got {lengths}")
    inside = f"{{}} must be an item's index from 0 to {items - 1}, got {{}}"
    for name, wrong, sentence in (
        ("left", (left < 0) | (left >= items), inside),
        ("right", (right < 0) | (right >= items), inside),
        ("left", left == right, "item {1} is compared with itself"),
        ("half_wins_left", ahead < 0, "{} must be at least 0, got {}"),
        ("half_wins_right", behind < 0, "{} must be at least 0, got {}"),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(f"row {row + 1}: {sentence.format(name, columns[name][row])}")


def _check_total(ahead: Longs, behind: Longs) -> None:
    about = float(ahead.sum(dtype=np.float64)) + float(behind.sum(dtype=np.float64))  # this cannot wrap around
    if about > 2 * MOST_HALVES or int(ahead.sum()) + int(behind.sum()) > MOST_HALVES:
        raise InputError("the half-wins must add up to at most 2^53, beyond which they are not exact")


@kernel(effort=lambda orders, table: 1.7 * orders.size * orders.shape[1] / 2)
def tally_rankings(orders: Ints, table: Longs) -> None:
    """table[i * items + j] += 2 for every ranking that lists i above j."""
    items = np.int64(np.sqrt(len(table)) + 0.5)
    rows, width = orders.shape
    for row in range(rows):
        for a in range(width):
            i = np.int64(orders[row, a])
            if i < 0:
                break
            for b in range(a + 1, width):
                j = np.int64(orders[row, b])
                if j < 0:
                    break
                table[i * items + j] += 2
