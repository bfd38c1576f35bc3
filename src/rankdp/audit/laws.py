"""The law a sampler really draws from, enclosed between whole numbers that are read off its own tables.

A table of cut points (``privacy.cut_tables``) decides a draw by enclosures ``low <= weight <= high`` of the weights
of its cells, as sharp as is asked for; the word that hits a cut point itself is settled by the same enclosures with
more digits. So the enclosures *are* the sampler: with them at some hundred bits, and the steps from cells to a ranking
followed one by one, the probability of every ranking lies between two rationals. Per mechanism:

- *optimal*, and *reinsertion* and *ulam* up to 5 items: a cell is a ranking.
- *kendall*: a row of cells, one for each stage; the sampler's own kernel turns it into a ranking, and different rows
  into different ones.
- *reinsertion* of 6 items: d items leave and come back evenly, so ``P(s) = sum over d of P(d) N(s, m-d) (m-d)!/m! /
  C(m, d)``, with N the number of increasing subsequences of that length.
- *ulam* of 6 items: a cell is m - L, a second table has the shapes with a first row of L, and a pair of tableaux of
  that shape is even among f^2 (the hook walk of Greene, Nijenhuis and Wilf 1979); the shape of a ranking is found here
  by Robinson-Schensted insertion. Evenness itself is a theorem, and the sampler is held to it by a chi-squared test.

A mechanism of one's own offers the same by a method ``exact_law(bits)``: a pair (low, high) of rationals for every
relative order s in lexicographic order, ``output[j] = input[s[j]]``, up to a common factor.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import TABLE_UP_TO, RankingMechanism
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.rankings.optimal import Optimal
from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.mechanisms.rankings.ulam import Ulam
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.theory.permutations import all_permutations, moves

#: for every ranking in lexicographic order a lower and an upper bound of its weight
EnclosedLaw: TypeAlias = list[tuple[Fraction, Fraction]]

MOST_ITEMS = 6
_MOST_BITS = 1 << 16
_LOG2_E = 1.4427


def sampler_law(mechanism: Any, items: int, bits: int) -> tuple[EnclosedLaw, str] | None:
    """The enclosed law of a right-invariant mechanism and where it comes from; None where there is none to read."""
    if hasattr(mechanism, "exact_law"):
        return _checked(mechanism.exact_law(bits), items), "its own exact_law"
    for kind, read in _READERS.items():
        if isinstance(mechanism, kind):
            assert isinstance(mechanism, RankingMechanism)
            needed = bits + math.ceil(_LOG2_E * float(mechanism.epsilon) * items)
            if needed > _MOST_BITS:
                raise Unsupported(
                    f"an exact audit reads tables of up to {_MOST_BITS} bits; epsilon {float(mechanism.epsilon):g} for "
                    f"{items} items needs {needed}"
                )
            return read(mechanism, needed), "the sampler's integer tables"
    return None


def _checked(given: Any, items: int) -> EnclosedLaw:
    law = [(Fraction(low), Fraction(high)) for low, high in given]
    if len(law) != math.factorial(items) or any(not 0 <= low <= high for low, high in law):
        raise InputError(
            f"exact_law must give a pair 0 <= low <= high for each of {math.factorial(items)} orders, got {len(law)}"
        )
    return law


def _enclosures(table: CutTable, bits: int) -> Weights:
    return table._weights(bits)


def _one_cell_each(table: CutTable, bits: int) -> EnclosedLaw:
    weights = _enclosures(table, bits)
    return [(Fraction(low), Fraction(high)) for low, high in zip(weights.low, weights.high, strict=True)]


def _kendall(mechanism: Kendall, bits: int) -> EnclosedLaw:
    from rankdp.mechanisms.rankings.sampling_kernels import insert_short

    m = mechanism.items
    stages = [_enclosures(table, bits) for table in mechanism._stages._tables]
    cells = np.array(list(itertools.product(*[range(stage + 1) for stage in range(1, m)])), dtype=np.int32)
    orders = np.tile(np.arange(m, dtype=np.int32), (len(cells), 1))
    out = np.empty_like(orders)
    insert_short(orders, cells, out)
    law: EnclosedLaw = [(Fraction(0), Fraction(0))] * len(cells)
    for place, row in zip(places(out).tolist(), cells.tolist(), strict=True):
        low = math.prod(stage.low[cell] for stage, cell in zip(stages, row, strict=True))
        high = math.prod(stage.high[cell] for stage, cell in zip(stages, row, strict=True))
        law[place] = law[place][0] + low, law[place][1] + high
    return law


def _reinsertion(mechanism: Reinsertion, bits: int) -> EnclosedLaw:
    m = mechanism.items
    if m <= TABLE_UP_TO:
        return _one_cell_each(mechanism._outputs, bits)
    weights = _enclosures(mechanism._taken, bits)
    listed = range(weights.first, weights.first + len(weights.low))
    low = [weights.low[d - weights.first] if d in listed else 0 for d in range(m + 1)]
    high = [weights.high[d - weights.first] if d in listed else weights.below + weights.above for d in range(m + 1)]
    share = [Fraction(math.factorial(m - d), math.factorial(m) * math.comb(m, d)) for d in range(m + 1)]
    law = []
    for s in all_permutations(m).tolist():
        ways = _increasing(s)
        law.append(
            (
                sum((low[d] * ways[m - d] * share[d] for d in range(m + 1)), Fraction(0)),
                sum((high[d] * ways[m - d] * share[d] for d in range(m + 1)), Fraction(0)),
            )
        )
    return law


def _ulam(mechanism: Ulam, bits: int) -> EnclosedLaw:
    from rankdp.mechanisms.rankings.ulam import _Shapes, _tableaux

    m = mechanism.items
    if m <= TABLE_UP_TO:
        return _one_cell_each(mechanism._outputs, bits)
    moved = _enclosures(mechanism._moved, bits)
    law = []
    for s in all_permutations(m).tolist():
        shape = _shape(s)
        family = _Shapes.of(m, shape[0])
        shapes = _enclosures(family.table, bits)
        cell = family.parts.index(shape)
        even = _tableaux(shape) ** 2
        low = Fraction(moved.low[m - shape[0]] * shapes.low[cell], sum(shapes.high) * even)
        high = Fraction(moved.high[m - shape[0]] * shapes.high[cell], sum(shapes.low) * even)
        law.append((low, high))
    return law


_READERS: dict[type, Callable[[Any, int], EnclosedLaw]] = {
    Kendall: _kendall,
    Ulam: _ulam,
    Reinsertion: _reinsertion,
    Optimal: lambda mechanism, bits: _one_cell_each(mechanism._outputs, bits),
}


def _increasing(s: list[int]) -> list[int]:
    """How many increasing subsequences of each length, by looking at every subset."""
    counts = [0] * (len(s) + 1)
    for size in range(len(s) + 1):
        counts[size] = sum(list(part) == sorted(part) for part in itertools.combinations(s, size))
    return counts


def _shape(s: list[int]) -> tuple[int, ...]:
    """The shape of the tableaux of a permutation, by Schensted's row insertion."""
    rows: list[list[int]] = []
    for value in s:
        bumped: int | None = value
        for row in rows:
            assert bumped is not None
            place = bisect.bisect_right(row, bumped)
            if place == len(row):
                row.append(bumped)
                bumped = None
                break
            row[place], bumped = bumped, row[place]
        if bumped is not None:
            rows.append([bumped])
    return tuple(len(row) for row in rows)


def places(permutations: NDArray[Any]) -> NDArray[np.int64]:
    """Where each row stands among all permutations in lexicographic order."""
    items = permutations.shape[1]
    digits = items ** np.arange(items - 1, -1, -1)
    return np.asarray(np.searchsorted(all_permutations(items) @ digits, permutations @ digits), dtype=np.int64)


@lru_cache(maxsize=8)
def neighbour_places(items: int) -> tuple[tuple[int, ...], ...]:
    """Row s: where c s stands in lexicographic order, for every move c."""
    table = np.stack([move[all_permutations(items)] for move in moves(items)], axis=1)
    found = places(table.reshape(-1, items)).reshape(table.shape[:2])
    return tuple(tuple(int(place) for place in row) for row in found)
