"""From the cells of a table to item indices: names, blanks, and a list of items that grows but never moves.

Columns arrive dictionary-encoded (or are encoded here), so that text is looked at once per *distinct* value
and the work per cell is an integer look-up. Without a list of items given by the caller, the items are those
that occur. Their order must not depend on anybody's ranking (in order of first appearance it would *be* the
first voter's ranking), so new items are added in natural order of their names: `Course 2` before `Course 10`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.checks import (
    LARGE,
    OK,
    IntArray,
    Report,
    Where,
    check_item,
    check_items,
    explain,
    first_problem,
    natural,
)
from rankdp.errors import InputError

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-"})
"""The spellings of a missing item. A file uses one; a name listed in `items=` is an item all the same."""

_TILE_CELLS = 1 << 16


@dataclass(slots=True)
class Known:
    """The items met so far (indices never change) and the one spelling of missing met so far."""

    names: list[str]
    closed: bool
    """True when the caller gave the list: then an item outside it is refused."""
    declared: bool
    """True when the list was given by the caller or by the file itself, so that its order is to be kept."""
    blank: str | None = None
    blank_at: Callable[[], str] = str
    _index: dict[str, int] = field(init=False)
    _tuple: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._index = {name: position for position, name in enumerate(self.names)}

    @classmethod
    def start(cls, items: Iterable[str] | None, hint: Sequence[str] | None = None) -> Known:
        """Begin with the caller's list, else with the list that the file carries, else with nothing."""
        if items is not None:
            return cls(list(check_items(items)), closed=True, declared=True)
        return cls(list(check_items(hint)) if hint else [], closed=False, declared=bool(hint))

    @property
    def items(self) -> tuple[str, ...]:
        """The items so far; the same tuple as long as nothing was added."""
        if len(self._tuple) != len(self.names):
            self._tuple = tuple(self.names)
        return self._tuple

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def position(self, name: str | None) -> int:
        """The index of an item, -1 for missing (and for a value that no row uses)."""
        return -1 if name is None else self._index.get(name, -1)

    def add(self, names: Iterable[str]) -> None:
        """Append new items in the natural order of their names."""
        for name in sorted(set(names) - self._index.keys(), key=natural):
            self._index[name] = len(self.names)
            self.names.append(name)

    def meet_blank(self, spelling: str, at: Callable[[], str]) -> None:
        """Note a missing cell; two spellings of missing in one table are refused."""
        if self.blank is None:
            self.blank, self.blank_at = spelling, at
        elif self.blank != spelling:
            raise InputError(
                f"{at()}: missing is spelled {_spelled(spelling)} here "
                f"and {_spelled(self.blank)} at {self.blank_at()}; "
                "one table spells it one way (or items= names the one that is an item)"
            )


def _spelled(blank: str) -> str:
    return repr(blank) if blank else "as a blank"


@dataclass(frozen=True, slots=True)
class Coded:
    """One column: a code for each row (-1 for null) and what each code says."""

    codes: IntArray
    values: list[Any]
    nulls: int

    def first_rows(self) -> NDArray[np.int64]:
        """The first row that holds each code, -1 for a code that no row holds; the last entry is for null."""
        rows = np.full(len(self.values) + 1, -1, np.int64)
        # written from the last row to the first, so that the first one stays
        rows[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        return rows


def encode(column: Any) -> Coded:
    """Dictionary-encode an Arrow array, keeping the encoding that it has."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_null(column.type):
        return Coded(np.full(len(column), -1, np.int32), [], len(column))
    if not pa.types.is_dictionary(column.type):
        if column.type == pa.string_view():
            column = column.cast(pa.string())
        column = column.dictionary_encode()
    codes = column.indices
    nulls = codes.null_count
    if codes.type != pa.int32():
        codes = codes.cast(pa.int32())
    if nulls:
        codes = codes.fill_null(-1)
    return Coded(codes.to_numpy(zero_copy_only=not nulls), _values(column.dictionary), nulls)


def _values(dictionary: Any) -> list[Any]:
    import pyarrow as pa

    try:
        return list(dictionary.to_pylist())
    except UnicodeDecodeError:
        return list(dictionary.cast(pa.binary()).to_pylist())


def name_of(value: Any, known: Known, at: Callable[[], str]) -> str | None:
    """The item that a cell names: text without spaces around it, or a whole number; None if missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise InputError(f"{at()}: {value!r} is not valid UTF-8 text") from None
    if isinstance(value, str):
        name = value.strip()
        if name in MISSING and name not in known:
            return None
        if name not in known:
            check_item(name, lambda: f"{at()}: the item")
        return name
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise InputError(f"{at()}: an item must be a text or a whole number, got {value!r}")
    return str(int(value))


def spelling_of(value: Any) -> str:
    """How a missing cell was spelled: null, NaN and empty text are all the one blank."""
    if isinstance(value, bytes):
        value = value.decode()
    return value.strip() if isinstance(value, str) else ""


def understand(columns: Sequence[Coded], known: Known, where: Where) -> list[list[str | None]]:
    """Name every value of every column, adding the new items that some row uses and noting the blanks."""
    names: list[list[str | None]] = []
    new: list[tuple[int, str]] = []
    blanks: list[tuple[int, str]] = []
    for column in columns:
        strange = [not isinstance(value, str) or value not in known for value in column.values]
        rows = column.first_rows() if any(strange) or column.nulls else np.empty(0, np.int64)
        if column.nulls:
            blanks.append((int(rows[-1]), ""))
        meanings: list[str | None] = []
        for code, value in enumerate(column.values):
            if not strange[code]:
                meanings.append(value)
                continue
            row = int(rows[code])
            # a value that no row uses (a dictionary may hold more than its column) means nothing
            name = name_of(value, known, partial(where, row)) if row >= 0 else None
            meanings.append(name)
            if row >= 0 and name is None:
                blanks.append((row, spelling_of(value)))
            elif name is not None and name not in known:
                new.append((row, name))
        names.append(meanings)
    for row, spelling in sorted(blanks):
        known.meet_blank(spelling, partial(where, row))
    if new and known.closed:
        row, name = min(new)
        raise InputError(f"{where(row)}: {name!r} is not one of the {len(known.names)} items given")
    known.add(name for _, name in new)
    return names


def orders_from(arrays: Sequence[Any], known: Known, where: Where) -> Callable[[], IntArray]:
    """The orders of a wide table, from its rank columns (Arrow arrays, best rank first).

    The names are read at once, since they may add to the known ones; the call that follows gathers and checks the
    rows and touches nothing that is shared, so that it can be left to another thread.
    """
    columns = [encode(array) for array in arrays]
    meanings = understand(columns, known, where)
    # each column's table begins with the -1 that a null (code -1) finds one place before its start
    tables = [np.array([-1, *(known.position(name) for name in names)], dtype=np.int32) for names in meanings]
    return partial(_gathered, columns, tables, tuple(known.names), known.blank or "", where)


def _gathered(
    columns: Sequence[Coded], tables: Sequence[IntArray], items: tuple[str, ...], blank: str, where: Where
) -> IntArray:
    orders = np.empty((len(columns[0].codes), len(columns)), np.int32)
    if orders.size >= LARGE:
        report = _gather_large(columns, tables, len(items), orders)
    else:
        for position, (column, table) in enumerate(zip(columns, tables, strict=True)):
            orders[:, position] = table[column.codes + 1]
        report = first_problem(orders, len(items))
    explain(report, orders, items, where, blank)
    return orders


def _gather_large(columns: Sequence[Coded], tables: Sequence[IntArray], items: int, orders: IntArray) -> Report:
    """Gather and check in tiles of rows small enough to stay in the processor's cache between the two."""
    from rankdp.data import order_kernels as kernels

    starts = np.cumsum([1, *(len(table) for table in tables[:-1])], dtype=np.int64)
    meaning = np.concatenate(tables)
    tile = max(1, _TILE_CELLS // len(columns))
    codes = np.empty((len(columns), tile), np.int32)
    for first in range(0, len(orders), tile):
        part = orders[first : first + tile]
        for target, column in zip(codes, columns, strict=True):
            target[: len(part)] = column.codes[first : first + tile]
        if kernels.gather(codes, meaning, starts, part) and len(columns) <= items:
            continue
        rule, row, column_number = kernels.check_rows(part, items)
        if rule != OK:
            return rule, first + row, column_number
    return OK, -1, -1
