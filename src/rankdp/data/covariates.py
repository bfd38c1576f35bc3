"""Covariates of comparisons: columns, differences of columns, or which item stood on the left.

    length_a-length_b:500    how much longer the left answer was, cut to 500 either way
    agreed:1                 a column that holds such a difference already
    position                 1 for the item on the left (or first), its bound is 1

A bound is public and said by the caller. A covariate is read as (left - right), cut to its bound and divided by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdp.data.cells import numbers, row_number
from rankdp.data.columns import listed_names
from rankdp.errors import InputError, Setting
from rankdp.types import Floats, Longs

POSITION = "position"
_MOST_COMPARISONS = 1 << 40


@dataclass(frozen=True, slots=True)
class Covariate:
    """One covariate: what it is called, its columns (plus and, perhaps, minus), and its bound."""

    name: str
    bound: float

    def columns(self, known: Iterable[str]) -> tuple[str, ...]:
        """The columns that it is read from: one, two for a difference, none for the position."""
        names = list(known)
        if self.name in names:
            return (self.name,)
        if self.name == POSITION:
            return ()
        for at, sign in enumerate(self.name):
            plus, minus = self.name[:at].strip(), self.name[at + 1 :].strip()
            if sign == "-" and plus in names and minus in names:
                return plus, minus
        rule = f" must name columns or differences of two (a-b): {self.name!r} is neither"
        raise InputError(Setting("covariates"), f"{rule}; the columns are {listed_names(names)}")


def covariates_of(said: str | Sequence[str]) -> tuple[Covariate, ...]:
    """What ``length_a-length_b:500,position`` means, or a list of such words."""
    words = said.split(",") if isinstance(said, str) else list(said)
    found = []
    for word in words:
        name, colon, text = str(word).strip().rpartition(":")
        if not colon and str(word).strip() == POSITION:
            name, text = POSITION, "1"
        try:
            bound = float(text)
        except ValueError:
            bound = 0.0
        if not name.strip() or not 0 < bound < float("inf"):
            rule = " must be words like length_a-length_b:500, with a public bound above 0"
            raise InputError(Setting("covariates"), f"{rule}, got {word!r}")
        found.append(Covariate(name.strip(), bound))
    names = [covariate.name for covariate in found]
    if not found or len(set(names)) < len(names):
        raise InputError(Setting("covariates"), f" must name each covariate once, got {listed_names(names)}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class VoteRows:
    """Comparisons of equal items and covariates together: ``first < second``, how many there are, outcomes, covariates.

    The rows are in order, so that all but the outcomes is the same for tables that differ in an outcome, however
    comparisons are spread over rows with weights: otherwise the rounding of sums over rows would show the outcomes.
    """

    first: Longs
    second: Longs
    weights: Longs
    outcomes: Longs
    """The sum of the outcomes of a row's comparisons, each 1 if the first item won, -1 if the second, 0 for a tie."""
    covariates: Floats
    """first - second, between -1 and 1."""

    @classmethod
    def of(cls, left: Longs, right: Longs, outcome: Longs, weights: Longs, covariates: Floats) -> VoteRows:
        """From rows: the items on either side, the outcome (0 left, 1 right, 2 tie), covariates as left - right."""
        if int(weights.sum(dtype=np.float64)) > _MOST_COMPARISONS:
            raise InputError(f"there must be at most 2^40 comparisons with covariates, got {int(weights.sum()):,}")
        first, second = np.minimum(left, right), np.maximum(left, right)
        side = np.where(left == first, 1, -1)
        outcomes = weights * side * np.array([1, -1, 0])[outcome]
        keys = [first, second, *(covariates * side[:, None] + 0.0).T]  # there is one zero
        order = np.lexsort(keys[::-1])
        order = order[weights[order] > 0]
        if not len(order):
            return cls(first[:0], second[:0], weights[:0], outcomes[:0], covariates[:0])
        new = np.append(True, np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0))
        starts, kept = np.flatnonzero(new), order[new]
        many, said = (np.add.reduceat(values[order], starts) for values in (weights, outcomes))
        return cls(first[kept], second[kept], many, said, np.column_stack([key[kept] for key in keys[2:]]))


def read_covariates(batch: Any, covariates: Sequence[Covariate], what: str) -> Floats:
    """The covariates of an Arrow batch as left - right, cut and divided by their bounds."""
    columns = []
    for covariate in covariates:
        parts = [_numbers(batch, name, what) for name in covariate.columns(batch.schema.names)]
        value = np.ones(batch.num_rows) if not parts else parts[0] if len(parts) == 1 else parts[0] - parts[1]
        columns.append(np.clip(value / covariate.bound, -1, 1))
    return np.column_stack(columns)


def _numbers(batch: Any, name: str, what: str) -> Floats:
    try:
        values = numbers(batch.column(name), "covariate", row_number)
    except InputError:
        values = np.full(1, np.nan)
    if not np.isfinite(values).all():
        raise InputError(f"{what}: the column {name!r} must hold a finite number in every row, to serve as a covariate")
    return values
