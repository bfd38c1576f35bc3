"""Views: ways to look at what a sampler releases, each of which sorts the outputs into finitely many cells.

An event is a set of cells of one view, so a view with k cells stands for 2^k events. Which view fits is seen from the
outputs themselves:

- *rankings*: the whole ranking (up to 8 items), the place of each item, the order of each two;
- *numbers* and *vectors*: each coordinate in slices by quantiles, each two coordinates together (so that a shift in
  both is seen at once), and, for floating-point numbers, the lowest bit that is set: noise that was added to
  floats leaves traces of the secret there (Mironov 2012), which no slice would show;
- *anything else*: the values themselves.

Where the slices lie is learnt from search draws and then fixed: any fixed function of the output may define an event.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError
from rankdp.theory.permutations import all_permutations, places

Counts = NDArray[np.int64]

_WHOLE_UP_TO = 8  # items of which all rankings are counted
_PAIRS_UP_TO = 8
_SLICES = 48
_COARSE = 10
_COORDINATES = 6
_CATEGORIES = 512


class View:
    """Its name, how many cells it has, and whether they are in a natural order."""

    def __init__(self, name: str, cells: int, ordered: bool, words: Callable[[NDArray[np.int64]], str]) -> None:
        self.name, self.cells, self.ordered, self.words = name, cells, ordered, words


class Views(ABC):
    """Several views of the same outputs, tallied together."""

    views: list[View]

    @abstractmethod
    def tally(self, outputs: Any) -> list[Counts]:
        """How many outputs fall into each cell, for every view."""


class RankingViews(Views):
    """Rows that list the same items, best first."""

    def __init__(self, labels: NDArray[Any]) -> None:
        self.labels = np.sort(labels)
        self.items = m = len(labels)
        self.plain = bool(np.array_equal(self.labels, np.arange(m)))
        self.views = []
        if m <= _WHOLE_UP_TO:
            self.views.append(View("ranking", math.factorial(m) + 1, False, self._rankings))
        for item in range(m):
            self.views.append(View(f"place of {self._name(item)}", m + 1, True, self._places(item)))
        if m <= _PAIRS_UP_TO:
            for i, j in itertools.combinations(range(m), 2):
                self.views.append(View("order of two", 3, False, self._order(i, j)))

    def _name(self, item: int) -> str:
        return f"item {self.labels[item]}"

    def _rankings(self, cells: NDArray[np.int64]) -> str:
        listed = all_permutations(self.items)
        shown = [" ".join(str(self.labels[i]) for i in listed[c]) if c < len(listed) else "no ranking" for c in cells]
        return f"the output is {shown[0]}" if len(shown) == 1 else f"the output is one of {len(shown)} rankings"

    def _places(self, item: int) -> Callable[[NDArray[np.int64]], str]:
        return lambda cells: f"{self._name(item)} is at place {_runs(cells + 1)}"

    def _order(self, i: int, j: int) -> Callable[[NDArray[np.int64]], str]:
        words = (f"{self._name(i)} is before {self._name(j)}", f"{self._name(j)} is before {self._name(i)}", "neither")
        return lambda cells: " or ".join(words[cell] for cell in cells)

    def tally(self, outputs: Any) -> list[Counts]:
        """From one count of whole rankings where that is in reach."""
        orders, m = self._orders(outputs), self.items
        if m > _WHOLE_UP_TO:
            return count_places(orders)
        whole = count_rankings(orders)
        return [
            whole,
            *(_regroup(whole, cell, view.cells) for cell, view in zip(_parts(m), self.views[1:], strict=True)),
        ]

    def _orders(self, outputs: Any) -> NDArray[np.int32]:
        orders = np.asarray(outputs)
        if orders.ndim != 2 or orders.shape[1] != self.items:
            raise InputError(f"outputs must be rankings of {self.items} items in rows, got shape {orders.shape}")
        if not self.plain:
            found = np.minimum(np.searchsorted(self.labels, orders), self.items - 1)
            orders = np.where(self.labels[found] == orders, found, -1)
        return np.ascontiguousarray(orders, dtype=np.int32)


def count_rankings(orders: NDArray[np.int32]) -> Counts:
    """How often each permutation of 0..m-1 stands in a row, in lexicographic order, and in the end all other rows."""
    items = orders.shape[1]
    proper = (np.sort(orders, axis=1) == np.arange(items)).all(axis=1)
    return np.append(np.bincount(places(orders[proper]), minlength=math.factorial(items)), len(orders) - proper.sum())


def count_places(orders: NDArray[np.int32]) -> list[Counts]:
    """For every item how often it stands at each place, and in the end how often it does not stand at all."""
    rows, items = orders.shape
    place = np.full((rows, items + 1), items)
    np.put_along_axis(place, np.where((orders >= 0) & (orders < items), orders, items), np.arange(items)[None], axis=1)
    return [np.bincount(place[:, item], minlength=items + 1) for item in range(items)]


@lru_cache(maxsize=8)
def _parts(items: int) -> tuple[NDArray[np.int64], ...]:
    """For every view but the first: the cell of each whole ranking, the improper one in the last cell."""
    place = np.argsort(all_permutations(items), axis=1)
    parts = [np.append(place[:, item], items) for item in range(items)]
    for i, j in itertools.combinations(range(items), 2):
        parts.append(np.append((place[:, i] > place[:, j]).astype(np.int64), 2))
    return tuple(parts)


def _regroup(whole: Counts, cell: NDArray[np.int64], cells: int) -> Counts:
    return np.bincount(cell, weights=whole, minlength=cells).astype(np.int64)


class NumberViews(Views):
    """Numbers, or rows of numbers."""

    def __init__(self, samples: Sequence[NDArray[Any]]) -> None:
        columns = [_columns(sample) for sample in samples]
        pooled = np.concatenate(columns)
        means = np.stack([np.median(part, axis=0) for part in columns])
        spread = np.ptp(means, axis=0)
        self.width = pooled.shape[1]
        self.watched = np.sort(np.argsort(-spread, kind="stable")[:_COORDINATES])
        self.fine = {d: _edges(pooled[:, d], _SLICES) for d in self.watched.tolist()}
        self.coarse = {d: _edges(pooled[:, d], _COARSE) for d in self.watched.tolist()}
        self.pairs = list(itertools.combinations(self.watched.tolist(), 2))
        self.floating = pooled.dtype.kind == "f"
        self.bits = {d: _bit_range(pooled[:, d]) for d in self.fine} if self.floating else {}
        self.views = [View(_coordinate(d, self.width), len(self.fine[d]) + 1, True, self._slice(d)) for d in self.fine]
        for i, j in self.pairs:
            cells = (len(self.coarse[i]) + 1) * (len(self.coarse[j]) + 1)
            self.views.append(View(f"coordinates {i + 1} and {j + 1}", cells, False, self._area(i, j)))
        for d, (first, last) in self.bits.items():
            self.views.append(View("lowest bit", last - first + 1, True, self._bit(d)))

    def tally(self, outputs: Any) -> list[Counts]:
        """Each view by itself."""
        columns = _columns(outputs)
        if columns.shape[1] != self.width:
            raise InputError(
                f"outputs must have {self.width} numbers a row like the first ones, got {columns.shape[1]}"
            )
        codes = [np.searchsorted(edges, columns[:, d], side="right") for d, edges in self.fine.items()]
        coarse = {d: np.searchsorted(edges, columns[:, d], side="right") for d, edges in self.coarse.items()}
        codes += [coarse[i] * (len(self.coarse[j]) + 1) + coarse[j] for i, j in self.pairs]
        codes += [np.clip(lowest_bits(columns[:, d]), *ends) - ends[0] for d, ends in self.bits.items()]
        return [np.bincount(code, minlength=view.cells) for code, view in zip(codes, self.views, strict=True)]

    def _slice(self, d: int) -> Callable[[NDArray[np.int64]], str]:
        def words(cells: NDArray[np.int64]) -> str:
            ends = [-np.inf, *self.fine[d], np.inf]
            if len(cells) == cells[-1] - cells[0] + 1:
                return f"{_coordinate(d, self.width)} is from {ends[cells[0]]:.6g} to below {ends[cells[-1] + 1]:.6g}"
            return f"{_coordinate(d, self.width)} is in one of {len(cells)} slices"

        return words

    def _area(self, i: int, j: int) -> Callable[[NDArray[np.int64]], str]:
        return lambda cells: f"coordinates {i + 1} and {j + 1} are in one of {len(cells)} areas"

    def _bit(self, d: int) -> Callable[[NDArray[np.int64]], str]:
        first = self.bits[d][0]
        return lambda cells: f"the lowest bit of {_coordinate(d, self.width)} stands for 2^{_runs(cells + first)}"


class OtherViews(Views):
    """Values of any kind, told apart by equality."""

    def __init__(self, samples: Sequence[NDArray[Any]]) -> None:
        values, counts = np.unique(np.concatenate([np.asarray(part) for part in samples]), return_counts=True)
        self.values = np.sort(values[np.argsort(-counts, kind="stable")[:_CATEGORIES]])
        self.views = [View("value", len(self.values) + 1, False, self._words)]

    def _words(self, cells: NDArray[np.int64]) -> str:
        shown = [repr(self.values[cell].item()) if cell < len(self.values) else "anything else" for cell in cells[:3]]
        return f"the output is {' or '.join(shown)}{' …' if len(cells) > 3 else ''}"

    def tally(self, outputs: Any) -> list[Counts]:
        """By value."""
        values = np.asarray(outputs)
        found = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        cells = np.where(self.values[found] == values, found, len(self.values))
        return [np.bincount(cells, minlength=len(self.values) + 1)]


class GivenViews(Views):
    """Events that the caller names: functions of the outputs that say for each whether it happened."""

    def __init__(self, events: Mapping[str, Callable[[Any], Any]]) -> None:
        self.events = dict(events)
        self.views = [View(name, 2, False, _happens(name)) for name in self.events]

    def tally(self, outputs: Any) -> list[Counts]:
        """How often each did not happen and did."""
        return [
            np.bincount(np.asarray(event(outputs), dtype=np.bool_).astype(np.int64), minlength=2)
            for event in self.events.values()
        ]


class Together(Views):
    """The views of several."""

    def __init__(self, parts: Sequence[Views]) -> None:
        self.parts = parts
        self.views = [view for part in parts for view in part.views]

    def tally(self, outputs: Any) -> list[Counts]:
        """One after the other."""
        return [counts for part in self.parts for counts in part.tally(outputs)]


def fitting_views(samples: Sequence[Any]) -> Views:
    """The views for outputs like these."""
    arrays = [np.asarray(sample) for sample in samples]
    first = arrays[0]
    if first.dtype.kind in "iu" and first.ndim == 2 and all(_are_rankings(part, first[0]) for part in arrays):
        return RankingViews(first[0])
    if first.dtype.kind in "iufb" and first.ndim in (1, 2):
        return NumberViews(arrays)
    if first.ndim == 1 and first.dtype.kind in "USM":
        return OtherViews(arrays)
    raise InputError(
        f"outputs must be rankings, numbers or rows of numbers, or texts, got an array of {first.dtype} and shape "
        f"{first.shape}"
    )


def _are_rankings(outputs: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Whether the first rows list the same items in some order each, no item twice."""
    if outputs.shape[1] < 2 or outputs.shape[1] != len(labels) or len(np.unique(labels)) < len(labels):
        return False
    return bool((np.sort(outputs[:1000], axis=1) == np.sort(labels)).all())


def _columns(outputs: Any) -> NDArray[Any]:
    array = np.asarray(outputs)
    return array.reshape(len(array), -1)


def _coordinate(d: int, width: int) -> str:
    return "the number" if width == 1 else f"coordinate {d + 1}"


def _edges(values: NDArray[Any], slices: int) -> NDArray[Any]:
    """Where slices begin: at every value but the first where there are few, else at quantiles."""
    different = np.unique(values)
    if len(different) <= slices:
        return different[1:]
    return np.unique(np.quantile(values, np.linspace(0, 1, slices + 1)[1:-1], method="lower"))


def lowest_bits(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The exponent of the lowest bit that is set in each float: 0.75 has -2; 0 and what is not finite count as 1024."""
    numbers = np.asarray(values, dtype=np.float64)
    proper = np.isfinite(numbers) & (numbers != 0)
    mantissa, exponent = np.frexp(np.where(proper, numbers, 1.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    return np.where(proper, exponent.astype(np.int64) - 53 + lowest, 1024)


def _bit_range(values: NDArray[Any]) -> tuple[int, int]:
    found = lowest_bits(values)
    ends = np.quantile(found, [0.001, 0.999], method="nearest")
    return int(ends[0]), int(max(ends[1], ends[0] + 1))


def _happens(name: str) -> Callable[[NDArray[np.int64]], str]:
    def words(cells: NDArray[np.int64]) -> str:
        return name if cells.tolist() == [1] else f"not: {name}" if cells.tolist() == [0] else "anything"

    return words


def _runs(values: NDArray[np.int64]) -> str:
    """1 to 3, 5: runs of neighbouring whole numbers."""
    parts, listed = [], sorted(values.tolist())
    for _, run in itertools.groupby(enumerate(listed), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}")
    return ", ".join(parts)
