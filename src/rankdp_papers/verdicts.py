"""A verdict for a claim, by one rule, with the number that decides and its standard error.

At each place of the table a claim says that some quantity, its *margin*, is at least 0 (or above 0). With its standard
error s the margin is *inside* where it is at least 2s and *outside* where it is below -2s.

    holds           inside at every place
    does not hold   outside at some place
    undecided       otherwise

A claim with k places would be outside somewhere too often by chance, so there -2s becomes -zs with 1 - Phi(z) =
(1 - Phi(2))/k (Bonferroni). An exact number has s = 0.

* above: margin = value(first) - value(second) - margin, where all other columns agree; must be above 0;
  not below: the same, and may be 0;
* trend: of any two values along a column the later one is higher (or lower) for "does not hold"; for "holds" the change
  from end to end of every line must be above 0 by two standard errors;
* equals: margin = tolerance - abs(value - target);
* at most: margin = bound - value; at least: margin = value - bound;
* slope: margin = tolerance - abs(slope of log(value) on log(x) - target).

A claim with several readings is undecided where they disagree.

Where both sides are 0, or both are 1, they are saturated: such a place neither supports nor contradicts.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist, fmean
from typing import Any, Literal, NamedTuple

import numpy as np

from rankdp.checks import one_of
from rankdp.errors import InputError
from rankdp_papers.experiment import NUMBERS, Row
from rankdp_papers.specification import Claim

Answer = Literal["holds", "does not hold", "undecided"]
_ERRORS = 2.0  # standard errors, inside or outside
_ROUNDING = 1e-12  # exact numbers that differ by less are equal


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: the number that is least in favour, its standard error, and where it was found.

    ``mean`` is that of all places, where several are taken together.
    """

    claim: Claim
    answer: Answer
    what: str
    number: float
    error: float
    place: str
    mean: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        claim = {"text": self.claim.text, "by": self.claim.by, "where": self.claim.where, "verdict": self.answer}
        numbers = {"number": self.number, "standard_error": self.error, "mean": self.mean}
        return {**claim, "what": self.what, **numbers, "at": self.place}

    def explain(self) -> str:
        """The numbers in words: smallest difference 0.012 ± 0.001 at items 5 (mean 0.1)."""
        spread = f" ± {self.error:.2g}" if self.error else ""
        where = f" at {self.place}" if self.place else ""
        mean = "" if self.mean is None else f" (mean {self.mean:.3g})"
        number = _show(self.number) if self.error or abs(self.number) > _ROUNDING else "0"
        return f"{self.what} {number}{spread}{where}{mean}"


class _Measured(NamedTuple):
    """A margin that the claim says is at least 0 (above 0 if ``strict``), its standard error and what to show of it.

    A ``saturated`` place neither supports nor contradicts.
    """

    margin: float
    error: float
    shown: float
    place: str
    strict: bool = False
    saturated: bool = False

    @property
    def inside(self) -> bool:
        """Whether it supports the claim by two standard errors."""
        return self.margin - _ERRORS * self.error > (_ROUNDING if self.strict else -_ROUNDING)


class _Checked(NamedTuple):
    """What was measured. ``mean``: show it too."""

    what: str
    measured: list[_Measured]
    mean: bool = False


def judge(claim: Claim, rows: Sequence[Row]) -> Verdict:
    """The verdict of a table, with the place that is least in favour."""
    if claim.readings:
        return _of_all([judge(_reading(claim, more), rows) for more in claim.readings], claim)
    one_of("check", claim.check, _CHECKS)
    chosen = select(rows, claim.select)
    if not chosen:
        raise InputError(f"the claim {claim.text!r} selects no rows")
    check = _CHECKS[claim.check]
    try:
        inspect.signature(check).bind(chosen, **claim.options)
    except TypeError as problem:
        raise InputError(f"the claim {claim.text!r}, check {claim.check!r}: {problem}") from None
    what, measured, with_mean = check(chosen, **claim.options)
    if not measured:
        raise InputError(f"the claim {claim.text!r}: no rows have both sides of it")
    speaking = [one for one in measured if not one.saturated]
    against = _outside(measured)
    doubtful = [one for one in speaking if not one.inside]
    worst = min(against or doubtful or speaking or measured, key=lambda one: one.margin)
    supported = bool(speaking) and not doubtful
    mean = fmean(one.shown for one in measured) if with_mean and len(measured) > 1 else None
    answer: Answer = "does not hold" if against else "holds" if supported else "undecided"
    return Verdict(claim, answer, what, worst.shown, worst.error, worst.place, mean)


def _reading(claim: Claim, more: Mapping[str, Any]) -> Claim:
    return replace(claim, select={**claim.select, **more}, readings=())


def _of_all(verdicts: Sequence[Verdict], claim: Claim) -> Verdict:
    """The verdict of several readings: what all say, or undecided where they disagree."""
    answers = [one.answer for one in verdicts]
    if len(set(answers)) == 1:
        return replace(verdicts[0], claim=claim)
    order = ("does not hold", "undecided", "holds")
    worst, reading = min(zip(verdicts, claim.readings, strict=True), key=lambda pair: order.index(pair[0].answer))
    holding = answers.count("holds")
    place = ", ".join([*map(str, reading.values()), worst.place])
    return replace(
        worst,
        claim=claim,
        answer="undecided",
        what=f"holds in {holding} of {len(answers)} readings; otherwise {worst.what}",
        place=place,
    )


def select(rows: Sequence[Row], wanted: Mapping[str, Any]) -> list[Row]:
    """The rows with these values: one, a list of them, or the "smallest" or "largest" of a column of numbers."""
    chosen = list(rows)
    for column, value in wanted.items():
        _need_column(rows, column)
        if value in ("smallest", "largest"):
            value = (min if value == "smallest" else max)(row[column] for row in chosen if column in row)
        allowed = value if isinstance(value, list) else [value]
        chosen = [row for row in chosen if column in row and row[column] in allowed]
    return chosen


def _above(
    rows: list[Row], column: str, first: Any, second: Any, margin: float = 0.0, *, strict: bool = True
) -> _Checked:
    measured = []
    for place, group in _groups(rows, column):
        by_name = {row[column]: row for row in group}
        if first in by_name and second in by_name:
            difference, error = _difference(by_name[first], by_name[second])
            still = _saturated(by_name[first], by_name[second])
            measured.append(_Measured(difference - margin, error, difference, place, strict, still))
    return _Checked("smallest difference", measured, mean=True)


def _trend(rows: list[Row], along: str, direction: str, slack: float = 0.0) -> _Checked:
    one_of("direction", direction, ("up", "down"))
    sign = 1.0 if direction == "up" else -1.0
    steps, ends = [], []
    for place, group in _groups(rows, along):
        ordered = sorted(group, key=lambda row: row[along])
        for a, b in itertools.combinations(ordered, 2):
            change, error = _difference(b, a)
            at = f"{along} {_show(a[along])} to {_show(b[along])}"
            steps.append(_Measured(sign * change + slack, error, change, f"{place}, {at}" if place else at))
        change, error = _difference(ordered[-1], ordered[0])
        ends.append(_Measured(sign * change, error, change, place, True, _saturated(ordered[0], ordered[-1])))
    if not steps or _outside(steps):
        return _Checked("worst reversal", steps)
    return _Checked("smallest change from end to end", ends, mean=True)


def _equals(
    rows: list[Row], target: float | str, tolerance: float | None = None, relative: float | None = None
) -> _Checked:
    measured = []
    for row in rows:
        aim = _aim(row, target)
        allowed = tolerance if tolerance is not None else (relative or 0.0) * abs(aim)
        off = row["value"] - aim
        measured.append(_Measured(allowed - abs(off), row["error"], off, _place(row, rows)))
    return _Checked("largest deviation", measured)


def _bounded(rows: list[Row], bound: float | str, *, sign: float, what: str) -> _Checked:
    measured = []
    for row in rows:
        margin = sign * (_aim(row, bound) - row["value"])
        measured.append(_Measured(margin, row["error"], row["value"], _place(row, rows)))
    return _Checked(what, measured)


def _slope(rows: list[Row], along: str, target: float | str, tolerance: float) -> _Checked:
    """Least squares in logarithms; the standard error follows from the errors of the values."""
    measured = []
    for place, group in _groups(rows, along):
        positive = [row for row in group if row["value"] > 0]
        if len(positive) < 2:
            raise InputError(f"a slope along {along} needs at least two values above 0, got {len(positive)}")
        x, y = (np.log([row[name] for row in positive]) for name in (along, "value"))
        weight = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        value, error = float(weight @ y), math.hypot(*(weight * [row["error"] / row["value"] for row in positive]))
        measured.append(_Measured(tolerance - abs(value - _aim(group[0], target)), error, value, place))
    return _Checked("slope", measured)


_CHECKS: dict[str, Callable[..., _Checked]] = {
    "above": _above,
    "not below": partial(_above, strict=False),
    "trend": _trend,
    "equals": _equals,
    "at most": partial(_bounded, sign=1.0, what="largest value"),
    "at least": partial(_bounded, sign=-1.0, what="smallest value"),
    "slope": _slope,
}


def _aim(row: Row, target: float | str) -> float:
    """A number, or what the row has in the column of that name."""
    return float(row[target] if isinstance(target, str) else target)


def _difference(one: Row, other: Row) -> tuple[float, float]:
    return one["value"] - other["value"], math.hypot(one["error"], other["error"])


def _outside(measured: Sequence[_Measured]) -> list[_Measured]:
    """The places that contradict the claim: by two standard errors for one place, by more for several."""
    z = -NormalDist().inv_cdf(NormalDist().cdf(-_ERRORS) / len(measured))
    return [one for one in measured if one.margin < -z * one.error - _ROUNDING]


def _saturated(one: Row, other: Row) -> bool:
    return bool(one["value"] == other["value"] and one["value"] in (0.0, 1.0))


def _need_column(rows: Sequence[Row], column: str) -> None:
    names = dict.fromkeys(name for row in rows for name in row)
    if rows and column not in names:
        raise InputError(f"there is no column {column!r}; there are {', '.join(names)}")


def _groups(rows: Sequence[Row], without: str) -> list[tuple[str, list[Row]]]:
    """Rows that agree in every column but ``without``, each group with its place in words."""
    _need_column(rows, without)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(value for name, value in row.items() if name not in (*NUMBERS, without))
        groups.setdefault(key, []).append(row)
    return [(_place(group[0], rows, without), group) for group in groups.values()]


def _place(row: Row, rows: Sequence[Row], without: str = "") -> str:
    """The columns in which ``rows`` differ, and their values here."""
    names = [name for name in row if name not in (*NUMBERS, without)]
    different = [name for name in names if any(other.get(name) != row[name] for other in rows)]
    return ", ".join(row[name] if isinstance(row[name], str) else f"{name} {_show(row[name])}" for name in different)


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
