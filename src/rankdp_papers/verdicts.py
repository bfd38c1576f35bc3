"""A verdict for a claim: what the table says of it, with the number that decides and its standard error.

A claim *does not hold* when some place contradicts it beyond its error, *holds* when the table supports it and nothing
contradicts, and is *undecided* when the errors are too large to tell. "Beyond its error" means z standard errors, with
z chosen so that all the places of a claim together raise a false alarm in one of a hundred tables (Bonferroni).

* above: value(first) - value(second) > margin wherever the other columns agree; supported when the mean difference is
  significantly above the margin;
* trend: of any two values along a column the later one is higher (or lower); supported when the mean change from end to
  end is;
* equals: abs(value - target) <= tolerance; supported when the errors are below the tolerance;
* at most: value <= bound; supported when every value is, errors aside; at least: value >= bound;
* slope: the slope of log(value) on log(x) equals the target.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from rankdp.errors import InputError
from rankdp_papers.experiment import Row
from rankdp_papers.specification import Claim

Answer = Literal["holds", "does not hold", "undecided"]
_FALSE_ALARM = 0.01
_SUPPORT = 3.0  # standard errors of a mean that count as support
_ROUNDING = 1e-12  # differences of closed forms below it are none


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
        return f"{self.what} {_show(self.number)}{spread}{where}{mean}"


@dataclass(frozen=True)
class _Measured:
    """A quantity that the claim says is at least 0: how far above it is, its standard error, and what to show of it.

    ``sharp``: its error is small enough to see a departure of the size that the claim allows.
    """

    ahead: float
    error: float
    shown: float
    place: str
    sharp: bool = True


def judge(claim: Claim, rows: Sequence[Row]) -> Verdict:
    """The verdict of a table."""
    if claim.check not in _CHECKS:
        raise InputError(f"check must be one of {', '.join(_CHECKS)}, got {claim.check!r}")
    chosen = select(rows, claim.select)
    if not chosen:
        raise InputError(f"the claim {claim.text!r} selects no rows")
    check = _CHECKS[claim.check]
    try:
        inspect.signature(check).bind(claim, chosen, **claim.options)
    except TypeError as problem:
        raise InputError(f"the claim {claim.text!r}, check {claim.check!r}: {problem}") from None
    return check(claim, chosen, **claim.options)


def select(rows: Sequence[Row], wanted: Mapping[str, Any]) -> list[Row]:
    """The rows with these values: one, a list of them, or the "smallest" or "largest" of a column of numbers."""
    chosen = list(rows)
    for column, value in wanted.items():
        if rows and column not in rows[0]:
            raise InputError(f"there is no column {column!r}; there are {', '.join(rows[0])}")
        if value in ("smallest", "largest"):
            value = (min if value == "smallest" else max)(row[column] for row in chosen)
        allowed = value if isinstance(value, list) else [value]
        chosen = [row for row in chosen if row[column] in allowed]
    return chosen


def _above(claim: Claim, rows: list[Row], column: str, first: Any, second: Any, margin: float = 0.0) -> Verdict:
    found = []
    for place, group in _groups(rows, column):
        by_name = {row[column]: row for row in group}
        if first in by_name and second in by_name:
            one, other = by_name[first], by_name[second]
            difference = one["value"] - other["value"]
            found.append(_Measured(difference - margin, math.hypot(one["error"], other["error"]), difference, place))
    if not found:
        raise InputError(f"the claim {claim.text!r}: no rows have both {first!r} and {second!r} as {column}")
    return _verdict(claim, "smallest difference", found, _significant(found), _mean(found))


def _trend(claim: Claim, rows: list[Row], along: str, direction: str, slack: float = 0.0) -> Verdict:
    if direction not in ("up", "down"):
        raise InputError(f"the claim {claim.text!r}: direction must be up or down, got {direction!r}")
    sign = 1.0 if direction == "up" else -1.0
    steps, ends = [], []
    for place, group in _groups(rows, along):
        ordered = sorted(group, key=lambda row: row[along])
        for a, b in itertools.combinations(ordered, 2):
            change, error = b["value"] - a["value"], math.hypot(a["error"], b["error"])
            at = _join(place, f"{along} {_show(a[along])} to {_show(b[along])}")
            steps.append(_Measured(sign * change + slack, error, change, at))
        a, b = ordered[0], ordered[-1]
        change = b["value"] - a["value"]
        ends.append(_Measured(sign * change, math.hypot(a["error"], b["error"]), change, place))
    if not steps:
        raise InputError(f"the claim {claim.text!r}: no group has two values of {along}")
    if _contradiction(steps):
        return _verdict(claim, "worst reversal", steps, supported=False)
    return _verdict(claim, "smallest change from end to end", ends, _significant(ends), _mean(ends))


def _equals(
    claim: Claim,
    rows: list[Row],
    target: float | str,
    tolerance: float | None = None,
    relative: float | None = None,
) -> Verdict:
    found = []
    for row in rows:
        aim = _aim(row, target)
        allowed = tolerance if tolerance is not None else (relative or 0.0) * abs(aim)
        off = row["value"] - aim
        found.append(_Measured(allowed - abs(off), row["error"], off, _place(row, rows), row["error"] <= allowed))
    return _verdict(claim, "largest deviation", found, supported=all(one.sharp for one in found))


def _bounded(claim: Claim, rows: list[Row], bound: float | str, *, sign: float, what: str) -> Verdict:
    found = [
        _Measured(sign * (_aim(row, bound) - row["value"]), row["error"], row["value"], _place(row, rows))
        for row in rows
    ]
    return _verdict(claim, what, found, supported=all(one.ahead >= -_ROUNDING for one in found))


def _slope(claim: Claim, rows: list[Row], along: str, target: float | str, tolerance: float) -> Verdict:
    found = []
    for place, group in _groups(rows, along):
        value, error = _log_slope([row for row in group if row["value"] > 0], along)
        ahead = tolerance - abs(value - _aim(group[0], target))
        found.append(_Measured(ahead, error, value, place, error <= tolerance))
    return _verdict(claim, "slope", found, supported=all(one.sharp for one in found))


def _aim(row: Row, target: float | str) -> float:
    """A number, or what the row has in the column of that name."""
    return float(row[target] if isinstance(target, str) else target)


def _log_slope(rows: Sequence[Row], along: str) -> tuple[float, float]:
    """Least squares in logarithms; the standard error follows from the errors of the values."""
    if len(rows) < 2:
        raise InputError(f"a slope along {along} needs at least two values above 0, got {len(rows)}")
    x = np.log([row[along] for row in rows])
    y = np.log([row["value"] for row in rows])
    weight = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    spread = np.array([row["error"] / row["value"] for row in rows])
    return float(weight @ y), float(np.sqrt(np.sum((weight * spread) ** 2)))


_CHECKS: dict[str, Callable[..., Verdict]] = {
    "above": _above,
    "trend": _trend,
    "equals": _equals,
    "at most": partial(_bounded, sign=1.0, what="largest value"),
    "at least": partial(_bounded, sign=-1.0, what="smallest value"),
    "slope": _slope,
}


def _verdict(
    claim: Claim, what: str, found: Sequence[_Measured], supported: bool, mean: float | None = None
) -> Verdict:
    """Decide, and report the place that is least in favour."""
    contradicting = _contradiction(found)
    worst = min(contradicting or found, key=lambda one: one.ahead)
    answer: Answer = "does not hold" if contradicting else "holds" if supported else "undecided"
    return Verdict(claim, answer, what, worst.shown, worst.error, worst.place, mean)


def _mean(found: Sequence[_Measured]) -> float | None:
    """Of what is shown, where there are several."""
    return sum(one.shown for one in found) / len(found) if len(found) > 1 else None


def _contradiction(found: Sequence[_Measured]) -> list[_Measured]:
    z = NormalDist().inv_cdf(1 - _FALSE_ALARM / len(found))
    return [one for one in found if one.ahead < -z * one.error - _ROUNDING]


def _significant(found: Sequence[_Measured]) -> bool:
    """Whether the mean of all is above 0 beyond its error."""
    mean = sum(one.ahead for one in found) / len(found)
    error = math.sqrt(sum(one.error**2 for one in found)) / len(found)
    return mean > _SUPPORT * error + _ROUNDING


def _groups(rows: Sequence[Row], without: str) -> list[tuple[str, list[Row]]]:
    """Rows that agree in every column but ``without``, each group with its place in words."""
    if without not in rows[0]:
        raise InputError(f"there is no column {without!r}; there are {', '.join(rows[0])}")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(value for name, value in row.items() if name not in ("value", "error", without))
        groups.setdefault(key, []).append(row)
    return [(_place(group[0], rows, without), group) for group in groups.values()]


def _place(row: Row, rows: Sequence[Row], without: str = "") -> str:
    """The columns in which ``rows`` differ, and their values here."""
    names = [name for name in row if name not in ("value", "error", without)]
    return ", ".join(_at(name, row[name]) for name in names if any(other[name] != row[name] for other in rows))


def _at(name: str, value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{name} {_show(value)}"


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
