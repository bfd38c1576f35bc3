"""The rules that every table of rankings obeys, checked once, each broken rule told in one sentence.

A row lists each item at most once, from most to least preferred, with blanks only after the last listed item
and at least one item listed. Small tables are checked with NumPy; from `LARGE` cells on a compiled kernel
does it, so that a script with a few hundred ballots never waits for a compiler.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]
Where = Callable[[int], str]
"""Says where a row (counted from 0) stands, in the words of its source: `row 7`, or `votes.csv, line 8`."""

Report = tuple[int, int, int]
"""(rule, row, column) of the first broken row; the rule is OK when there is none."""

LARGE = 100_000
OK, REPEATED, GAP, EMPTY, OUTSIDE = range(5)

_BREAK = re.compile(r"[\r\n\x00\x0b\x0c\x85\u2028\u2029]")
_DIGITS = re.compile(r"(\d+)")


def row_number(row: int) -> str:
    """Rows are counted from 1, as a person counts them."""
    return f"row {row + 1}"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sorting key that puts `Course 2` before `Course 10`."""
    parts = _DIGITS.split(name)
    # isdecimal, not isdigit: int() must accept what is taken for a number
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part)


def check_items(items: Iterable[Any]) -> tuple[str, ...]:
    """The item names as a tuple: at least one, none blank, none twice, none that breaks a line."""
    if isinstance(items, str):
        raise InputError(f"items must be a list of names, got the single text {items!r}")
    names = tuple(item if isinstance(item, str) else _number_name(item) for item in items)
    if not names:
        raise InputError("items must name at least one item, got an empty list")
    seen: set[str] = set()
    for position, name in enumerate(names):
        check_item(name, partial("items[{}]".format, position))
        if name in seen:
            raise InputError(f"items must be different, got {name!r} twice")
        seen.add(name)
    return names


def check_item(name: str, what: Callable[[], str]) -> None:
    """One item name: not blank, no space at either end, no line break; `what` is asked only to complain."""
    if not name.strip():
        raise InputError(f"{what()} is blank; an item needs a name")
    if name != name.strip() or _BREAK.search(name):
        raise InputError(f"{what()} is {name!r}; an item's name has no space at its ends and no line break")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what()} is {name!r}, which is not valid Unicode text") from None


def _number_name(item: Any) -> str:
    if isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)):
        return str(int(item))
    raise InputError(f"an item must be a text or a whole number, got {item!r}")


def check_epsilons(epsilons: Any, rows: int, where: Where = row_number) -> FloatArray:
    """Each voter's own epsilon: one finite number above 0 per row."""
    try:
        values = np.array(epsilons, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("epsilons must be numbers, one for each row") from None
    if values.shape != (rows,):
        raise InputError(f"epsilons must hold one number for each of the {rows} rows, got shape {values.shape}")
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        row = int(bad[0])
        raise InputError(f"{where(row)}: epsilon must be a finite number above 0, got {float(values[row])!r}")
    return values


def check_voters(voters: Any, rows: int) -> Any:
    """Voter ids as a read-only NumPy array, or the Arrow array they came in: one for each row, none blank."""
    if voters is None:
        return None
    if type(voters).__module__.partition(".")[0] == "pyarrow":
        if voters.null_count:
            row = voters.is_null().to_pylist().index(True)
            raise InputError(f"{row_number(row)}: the voter id is blank")
        count = len(voters)
    else:
        values = list(voters)
        count = len(values)
        for row, voter in enumerate(values):
            if voter is None or (isinstance(voter, float) and math.isnan(voter)) or voter == "":
                raise InputError(f"{row_number(row)}: the voter id is blank")
        whole = all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values)
        fits = whole and all(-(2**63) <= int(v) < 2**63 for v in values)
        voters = np.array(values, dtype=np.int64 if fits else object) if count else np.empty(0, object)
        voters.flags.writeable = False
    if count != rows:
        raise InputError(f"voters must hold one id for each of the {rows} rows, got {count}")
    return voters


def check_orders(orders: IntArray, items: Sequence[str], where: Where = row_number) -> None:
    """Check a whole n x width array of item indices, or say which row breaks which rule."""
    explain(first_problem(orders, len(items)), orders, items, where)


def first_problem(orders: IntArray, items: int) -> Report:
    """(rule, row, column) of the first broken row; (OK, -1, -1) when there is none."""
    if orders.size >= LARGE:
        from rankdp.data import order_kernels as kernels

        report = kernels.check_rows(np.ascontiguousarray(orders), items)
        return int(report[0]), int(report[1]), int(report[2])
    return _first_problem_small(orders, items)


def _first_problem_small(orders: IntArray, items: int) -> Report:
    rows, width = orders.shape
    if rows and not width:
        return EMPTY, 0, 0
    outside = (orders < -1) | (orders >= items)
    listed = orders >= 0
    gap = np.zeros_like(listed)
    gap[:, 1:] = np.logical_or.accumulate(~listed, axis=1)[:, :-1] & listed[:, 1:]
    sorting = np.argsort(orders, axis=1, kind="stable")
    ordered = np.take_along_axis(orders, sorting, axis=1)
    twice = np.zeros_like(listed)
    # a stable sort keeps the first of two equal items first, so the mark falls on the second
    np.put_along_axis(twice[:, :], sorting[:, 1:], (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0), 1)
    broken = outside | gap | twice
    bad = broken.any(axis=1) | ~listed[:, 0]
    if not bad.any():
        return OK, -1, -1
    row = int(bad.argmax())
    if not broken[row].any():
        return EMPTY, row, 0
    column = int(broken[row].argmax())
    rule = OUTSIDE if outside[row, column] else GAP if gap[row, column] else REPEATED
    return rule, row, column


def explain(
    report: Report,
    orders: IntArray,
    items: Sequence[str],
    where: Where = row_number,
    blank: str = "",
) -> None:
    """Raise the sentence for a report of `first_problem`; do nothing when all is well.

    `blank` is the text that was read as missing, so that an item called `None` is not lost without a hint.
    """
    rule, row, column = report
    if rule == OK:
        return
    if rule == OUTSIDE:
        raise InputError(
            f"{where(row)}: position {column + 1} holds the index {int(orders[row, column])}; "
            f"an index lies in 0..{len(items) - 1}, or is -1 after the last listed item"
        )
    if rule == EMPTY:
        raise InputError(f"{where(row)}: no item is listed{_hint(blank)}; a ranking lists at least one")
    name = items[int(orders[row, column])]
    if rule == REPEATED:
        raise InputError(f"{where(row)}: {name!r} is listed twice; a ranking lists each item once")
    gap = int(np.flatnonzero(orders[row] < 0)[0]) + 1
    raise InputError(
        f"{where(row)}: position {gap} is blank{_hint(blank)} but position {column + 1} is {name!r}; "
        "only the end of a ranking may be blank"
    )


def _hint(blank: str) -> str:
    return f" ({blank!r} is read as missing unless items= names it)" if blank else ""
