"""The forms in which orders are given, as one array of item indices: names or indices, lists or arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankdp.data.checks import IntArray, check_items, natural
from rankdp.errors import InputError


def orders_array(orders: Any, names: tuple[str, ...] | None) -> tuple[IntArray, tuple[str, ...]]:
    """Orders as indices, whatever they came as, and the items that they index."""
    if not isinstance(orders, np.ndarray):
        rows = [row if isinstance(row, np.ndarray) else _row(row, number) for number, row in enumerate(orders)]
        if any(isinstance(cell, str) for row in rows for cell in row):
            return _named_orders(rows, names)
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            uneven = next(number for number, row in enumerate(rows) if len(row) != len(rows[0]))
            raise InputError(
                f"row {uneven + 1}: the row has {len(rows[uneven])} indices "
                f"and the first row {len(rows[0])}; pad rows of indices with -1"
            )
        orders = np.array(rows)
    elif orders.dtype.kind in "UO" and orders.ndim == 2:
        return _named_orders(orders.tolist(), names)
    array = index_array(orders, copy=True)
    if names is None:
        largest = int(array.max())
        # an index beyond the number of cells leaves some other one out, whatever the cells hold
        used = np.zeros(min(largest + 1, array.size + 1), bool)
        used[array[(array >= 0) & (array < len(used))]] = True
        if not used.all():
            raise InputError(
                f"no row lists the index {int(used.argmin())} (indices are counted from 0 to {largest}); "
                "pass items= if some items are never listed"
            )
        names = tuple(str(index) for index in range(largest + 1))
    return array, names


def _row(row: Any, number: int) -> list[Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise InputError(f"row {number + 1}: a ranking must be a list of items, got {row!r}")
    return list(row)


def _named_orders(rows: Sequence[Any], names: tuple[str, ...] | None) -> tuple[IntArray, tuple[str, ...]]:
    cleaned: list[list[str]] = []
    for number, row in enumerate(rows):
        listed = list(row)
        while listed and listed[-1] is None:
            listed.pop()
        for cell in listed:
            if not isinstance(cell, str):
                raise InputError(f"row {number + 1}: rows of names hold names only, got {cell!r}")
        cleaned.append([cell.strip() for cell in listed])
    if names is None:
        names = check_items(sorted({cell for row in cleaned for cell in row}, key=natural))
    place = {name: position for position, name in enumerate(names)}
    array = np.full((len(cleaned), max(map(len, cleaned))), -1, np.int32)
    for number, row in enumerate(cleaned):
        for position, cell in enumerate(row):
            if cell not in place:
                raise InputError(f"row {number + 1}: {cell!r} is not one of the {len(names)} items given")
            array[number, position] = place[cell]
    return array, names


def index_array(orders: Any, copy: bool = False) -> IntArray:
    """A 2-dimensional int32 array of indices, or the sentence that says why not."""
    array = np.asarray(orders)
    if array.size == 0:
        raise InputError(f"orders must have at least one row and one column, got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise InputError(f"orders must be whole numbers (item indices counted from 0), got dtype {array.dtype}")
    if array.ndim != 2:
        raise InputError(f"orders must be a table with one row per ranking, got {array.ndim} dimension(s)")
    if array.dtype != np.int32:
        if array.max() > np.iinfo(np.int32).max or array.min() < np.iinfo(np.int32).min:
            raise InputError("orders holds an index beyond 32 bits")
        return array.astype(np.int32, order="C")
    return np.array(array, order="C", copy=True if copy else None)
