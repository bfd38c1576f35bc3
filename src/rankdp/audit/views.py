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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError
from rankdp.theory.permutations import all_permutations, places
from rankdp.types import Floats, Longs

_WHOLE_UP_TO = 8  # items of which all rankings are counted
_SLICES = 48
_COARSE = 10
_COORDINATES = 6
_CATEGORIES = 512


@dataclass(frozen=True)
class View:
    """How many cells there are, some of them in words, and the cell of each prepared output."""

    cells: int
    words: Callable[[Longs], str]
    cell: Callable[[Any], Longs]
    ordered: bool = False


@dataclass(frozen=True)
class Views:
    """Several views of the same outputs, which are prepared for all of them at once."""

    prepare: Callable[[Any], Any]
    views: Sequence[View]

    def tally(self, outputs: Any) -> list[Longs]:
        """How many outputs fall into each cell, for every view."""
        prepared = self.prepare(outputs)
        return [np.bincount(view.cell(prepared), minlength=view.cells) for view in self.views]


def counted_from_one(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of items for readers: items numbered from 0 are shown from 1, as in the exact audit."""
    counts = labels.dtype.kind in "iu" and np.array_equal(np.sort(labels), np.arange(len(labels)))
    return labels + 1 if counts else labels


def ranking_views(labels: NDArray[Any]) -> Views:
    """Views of rows that list these items, best first; the last cell of each is for what is no ranking."""
    items, known = len(labels), np.sort(labels)
    shown = counted_from_one(known)

    def standing(outputs: Any) -> Longs:
        """For every item its place in each row, m where the row is no ranking."""
        given = np.asarray(outputs)
        if given.ndim != 2 or given.shape[1] != items:
            raise InputError(f"outputs must be rankings of {items} items in rows, got shape {given.shape}")
        index = np.minimum(np.searchsorted(known, given), items - 1)
        place = np.full((items + 1, len(given)), items)
        place[np.where(known[index] == given, index, items).T, np.arange(len(given))] = np.arange(items)[:, None]
        place[:, (place[:items] == items).any(axis=0)] = items
        return place[:items]

    def place(item: int) -> View:
        words = f"item {shown[item]} is at place "
        return View(items + 1, lambda cells: words + _runs(cells + 1), lambda at: at[item], ordered=True)

    def order(i: int, j: int) -> View:
        before = [f"item {shown[a]} is before item {shown[b]}" for a, b in ((i, j), (j, i))]
        return View(
            3,
            lambda cells: " or ".join((*before, "neither")[cell] for cell in cells),
            lambda at: (at[i] > at[j]) + 2 * (at[i] == items),
        )

    by_place = [place(item) for item in range(items)]
    if items > _WHOLE_UP_TO:
        return Views(standing, by_place)
    listed = all_permutations(items)

    def whole_words(cells: Longs) -> str:
        if len(cells) > 1:
            return f"the output is one of {len(cells)} rankings"
        return (
            f"the output is {' '.join(map(str, shown[listed[cells[0]]])) if cells[0] < len(listed) else 'no ranking'}"
        )

    def whole(at: Longs) -> Longs:
        proper = at[0] < items
        cells = np.full(len(proper), len(listed))
        cells[proper] = places(np.argsort(at[:, proper], axis=0).T)
        return cells

    pairs = [order(i, j) for i, j in itertools.combinations(range(items), 2)]
    return Views(standing, [View(len(listed) + 1, whole_words, whole), *by_place, *pairs])


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

    return View(len(edges) + 1, words, lambda columns: _slice(edges, columns[:, d]), ordered=True)


def _areas(i: int, j: int, first: NDArray[Any], second: NDArray[Any]) -> View:
    across = len(second) + 1
    return View(
        (len(first) + 1) * across,
        lambda cells: f"coordinates {i + 1} and {j + 1} are in one of {len(cells)} areas",
        lambda columns: _slice(first, columns[:, i]) * across + _slice(second, columns[:, j]),
    )


def _slice(edges: NDArray[Any], values: NDArray[Any]) -> Longs:
    return np.searchsorted(edges, values, side="right")


def _bits(d: int, values: Floats, width: int) -> View:
    low, high = (int(end) for end in np.quantile(lowest_bits(values), [0.001, 0.999], method="nearest"))
    high = max(high, low + 1)
    return View(
        high - low + 1,
        lambda cells: f"the lowest bit of {_coordinate(d, width)} stands for 2^{_runs(cells + low)}",
        lambda columns: np.clip(lowest_bits(columns[:, d]), low, high) - low,
        ordered=True,
    )


def value_views(samples: Sequence[NDArray[Any]]) -> Views:
    """One view of values of any kind, told apart by equality."""
    values, counts = np.unique(np.concatenate(samples), return_counts=True)
    known = np.sort(values[np.argsort(-counts, kind="stable")[:_CATEGORIES]])

    def words(cells: Longs) -> str:
        shown = [repr(known[cell].item()) if cell < len(known) else "anything else" for cell in cells[:3]]
        return f"the output is {' or '.join(shown)}{' …' if len(cells) > 3 else ''}"

    def cell(outputs: NDArray[Any]) -> Longs:
        index = np.minimum(np.searchsorted(known, outputs), len(known) - 1)
        return np.where(known[index] == outputs, index, len(known))

    return Views(np.asarray, [View(len(known) + 1, words, cell)])


def named_views(events: Mapping[str, Callable[[Any], Any]]) -> Views:
    """Events that the caller names: functions of the outputs that say for each whether it happened."""

    def view(name: str, event: Callable[[Any], Any]) -> View:
        return View(
            2,
            lambda cells: {(1,): name, (0,): f"not: {name}"}.get(tuple(cells.tolist()), "anything"),
            lambda outputs: np.asarray(event(outputs), dtype=np.bool_).astype(np.int64),
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
