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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError
from rankdp.theory.permutations import all_permutations, places
from rankdp.types import Floats, Ints, Longs

_WHOLE_UP_TO = 8  # items of which all rankings are counted
_SLICES = 48
_COARSE = 10
_COORDINATES = 6
_CATEGORIES = 512


@dataclass(frozen=True)
class View:
    """How many cells there are, some of them in words, and how many prepared outputs fall into each."""

    cells: int
    words: Callable[[Longs], str]
    count: Callable[[Any], Longs]
    ordered: bool = False


@dataclass(frozen=True)
class Views:
    """Several views of the same outputs, which are prepared for all of them at once."""

    prepare: Callable[[Any], Any]
    views: Sequence[View]

    def tally(self, outputs: Any) -> list[Longs]:
        """How many outputs fall into each cell, for every view."""
        prepared = self.prepare(outputs)
        return [view.count(prepared) for view in self.views]


def counted_from_one(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of items for readers: those that count all items from 0 count from 1, as the exact audit does."""
    counts = labels.dtype.kind in "iu" and np.array_equal(np.sort(labels), np.arange(len(labels)))
    return labels + 1 if counts else labels


def ranking_views(labels: NDArray[Any]) -> Views:
    """Views of rows that list these items, best first: of short ones all from one count of whole rankings."""
    items, known = len(labels), np.sort(labels)
    shown = counted_from_one(known)

    def orders(outputs: Any) -> Ints:
        given = np.asarray(outputs)
        if given.ndim != 2 or given.shape[1] != items:
            raise InputError(f"outputs must be rankings of {items} items in rows, got shape {given.shape}")
        index = np.minimum(np.searchsorted(known, given), items - 1)
        return np.where(known[index] == given, index, -1).astype(np.int32)

    def place_words(item: int) -> Callable[[Longs], str]:
        return lambda cells: f"item {shown[item]} is at place {_runs(cells + 1)}"

    if items > _WHOLE_UP_TO:

        def at(item: int) -> Callable[[Longs], Longs]:
            return lambda standing: np.bincount(standing[:, item], minlength=items + 1)

        views = [View(items + 1, place_words(item), at(item), ordered=True) for item in range(items)]
        return Views(lambda outputs: _standing(orders(outputs)), views)

    listed = all_permutations(items)
    standing = np.argsort(listed, axis=1)

    def whole_words(cells: Longs) -> str:
        if len(cells) > 1:
            return f"the output is one of {len(cells)} rankings"
        return (
            f"the output is {' '.join(map(str, shown[listed[cells[0]]])) if cells[0] < len(listed) else 'no ranking'}"
        )

    def order_words(i: int, j: int) -> Callable[[Longs], str]:
        before = [f"item {shown[a]} is before item {shown[b]}" for a, b in ((i, j), (j, i))]
        return lambda cells: " or ".join((*before, "neither")[cell] for cell in cells)

    def part(cells: NDArray[Any], count: int) -> Callable[[Longs], Longs]:
        """From a count of whole rankings that of their cells; what is no ranking has the last one."""
        of_all = np.append(cells, count - 1)
        return lambda whole: np.bincount(of_all, weights=whole, minlength=count).astype(np.int64)

    views = [View(len(listed) + 1, whole_words, lambda whole: whole)]
    views += [
        View(items + 1, place_words(item), part(standing[:, item], items + 1), ordered=True) for item in range(items)
    ]
    views += [
        View(3, order_words(i, j), part(standing[:, i] > standing[:, j], 3))
        for i, j in itertools.combinations(range(items), 2)
    ]
    return Views(lambda outputs: count_rankings(orders(outputs)), views)


def count_rankings(orders: Ints) -> Longs:
    """How often each permutation of 0..m-1 stands in a row, in lexicographic order, and in the end all other rows."""
    items = orders.shape[1]
    proper = (np.sort(orders, axis=1) == np.arange(items)).all(axis=1)
    return np.append(np.bincount(places(orders[proper]), minlength=math.factorial(items)), len(orders) - proper.sum())


def _standing(orders: Ints) -> Longs:
    """Row by row the place of every item, m where it does not stand at all."""
    rows, items = orders.shape
    place = np.full((rows, items + 1), items)
    np.put_along_axis(place, np.where(orders >= 0, orders, items), np.arange(items)[None], axis=1)
    return place


def number_views(samples: Sequence[NDArray[Any]]) -> Views:
    """Views of numbers, or of rows of numbers; the coordinates whose medians differ most are watched."""
    first = [_columns(sample) for sample in samples]
    pooled = np.concatenate(first)
    width = pooled.shape[1]
    spread = np.ptp(np.stack([np.median(part, axis=0) for part in first]), axis=0)
    watched = np.sort(np.argsort(-spread, kind="stable")[:_COORDINATES]).tolist()

    def prepare(outputs: Any) -> NDArray[Any]:
        columns = _columns(outputs)
        if columns.shape[1] != width:
            raise InputError(f"outputs must have {width} numbers a row like the first ones, got {columns.shape[1]}")
        return columns

    views = [_slices(d, _edges(pooled[:, d], _SLICES), width) for d in watched]
    coarse = {d: _edges(pooled[:, d], _COARSE) for d in watched}
    views += [_areas(i, j, coarse[i], coarse[j]) for i, j in itertools.combinations(watched, 2)]
    if pooled.dtype.kind == "f":
        views += [_bits(d, pooled[:, d], width) for d in watched]
    return Views(prepare, views)


def _slices(d: int, edges: NDArray[Any], width: int) -> View:
    ends = [-np.inf, *edges, np.inf]

    def words(cells: Longs) -> str:
        if len(cells) == cells[-1] - cells[0] + 1:
            return f"{_coordinate(d, width)} is from {ends[cells[0]]:.6g} to below {ends[cells[-1] + 1]:.6g}"
        return f"{_coordinate(d, width)} is in one of {len(cells)} slices"

    def count(columns: NDArray[Any]) -> Longs:
        return np.bincount(np.searchsorted(edges, columns[:, d], side="right"), minlength=len(edges) + 1)

    return View(len(edges) + 1, words, count, ordered=True)


def _areas(i: int, j: int, first: NDArray[Any], second: NDArray[Any]) -> View:
    cells = (len(first) + 1) * (len(second) + 1)

    def count(columns: NDArray[Any]) -> Longs:
        row, column = (np.searchsorted(e, columns[:, d], side="right") for e, d in ((first, i), (second, j)))
        return np.bincount(row * (len(second) + 1) + column, minlength=cells)

    return View(cells, lambda cells: f"coordinates {i + 1} and {j + 1} are in one of {len(cells)} areas", count)


def _bits(d: int, values: Floats, width: int) -> View:
    low, high = (int(end) for end in np.quantile(lowest_bits(values), [0.001, 0.999], method="nearest"))
    high = max(high, low + 1)

    def count(columns: NDArray[Any]) -> Longs:
        return np.bincount(np.clip(lowest_bits(columns[:, d]), low, high) - low, minlength=high - low + 1)

    def words(cells: Longs) -> str:
        return f"the lowest bit of {_coordinate(d, width)} stands for 2^{_runs(cells + low)}"

    return View(high - low + 1, words, count, ordered=True)


def value_views(samples: Sequence[NDArray[Any]]) -> Views:
    """One view of values of any kind, told apart by equality."""
    values, counts = np.unique(np.concatenate(samples), return_counts=True)
    known = np.sort(values[np.argsort(-counts, kind="stable")[:_CATEGORIES]])

    def words(cells: Longs) -> str:
        shown = [repr(known[cell].item()) if cell < len(known) else "anything else" for cell in cells[:3]]
        return f"the output is {' or '.join(shown)}{' …' if len(cells) > 3 else ''}"

    def count(outputs: NDArray[Any]) -> Longs:
        index = np.minimum(np.searchsorted(known, outputs), len(known) - 1)
        return np.bincount(np.where(known[index] == outputs, index, len(known)), minlength=len(known) + 1)

    return Views(np.asarray, [View(len(known) + 1, words, count)])


def named_views(events: Mapping[str, Callable[[Any], Any]]) -> Views:
    """Events that the caller names: functions of the outputs that say for each whether it happened."""

    def view(name: str, event: Callable[[Any], Any]) -> View:
        return View(
            2,
            lambda cells: {(1,): name, (0,): f"not: {name}"}.get(tuple(cells.tolist()), "anything"),
            lambda outputs: np.bincount(np.asarray(event(outputs), dtype=np.bool_).astype(np.int64), minlength=2),
        )

    return Views(lambda outputs: outputs, [view(name, event) for name, event in events.items()])


def fitting_views(samples: Sequence[Any]) -> Views:
    """The views for outputs like these."""
    arrays = [np.asarray(sample) for sample in samples]
    first = arrays[0]
    if first.dtype.kind in "iu" and first.ndim == 2 and all(_are_rankings(part, first[0]) for part in arrays):
        return ranking_views(first[0])
    if first.dtype.kind in "iufb" and first.ndim in (1, 2):
        return number_views(arrays)
    if first.ndim == 1 and first.dtype.kind in "USM":
        return value_views(arrays)
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


def lowest_bits(values: Floats) -> Longs:
    """The exponent of the lowest bit that is set in each float: 0.75 has -2; 0 and what is not finite count as 1024."""
    numbers = np.asarray(values, dtype=np.float64)
    proper = np.isfinite(numbers) & (numbers != 0)
    mantissa, exponent = np.frexp(np.where(proper, numbers, 1.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(proper, exponent.astype(np.int64) - 53 + lowest, 1024)


def _runs(values: Longs) -> str:
    """1 to 3, 5: runs of neighbouring whole numbers."""
    parts = []
    for _, run in itertools.groupby(enumerate(sorted(values.tolist())), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}")
    return ", ".join(parts)
