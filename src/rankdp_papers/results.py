"""What became of one specification: its rows, and the verdicts, pictures and sentences that follow from them."""

from __future__ import annotations

import itertools
import operator
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from rankdp.errors import InputError
from rankdp_papers.experiment import NUMBERS, Row
from rankdp_papers.pictures import draw, image
from rankdp_papers.specification import FigurePlan, Size, Specification
from rankdp_papers.verdicts import Verdict, judge, select

NUMBER = re.compile(r"\{[^{}]*\}")
_TAKE: Mapping[str, Callable[[Sequence[float]], float]] = {"smallest": min, "largest": max, "mean": fmean}
_COMPARISONS: Mapping[str, Callable[[float, float], float]] = {"minus": operator.sub, "over": operator.truediv}


@dataclass(frozen=True)
class Reproduced:
    """The table of one specification and the core-seconds that it took, whenever that was; or why there is none."""

    specification: Specification
    size: Size
    rows: Sequence[Row]
    seconds: float
    missing: str | None = None

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        """What the table says of each claim."""
        return [] if self.missing else [judge(claim, self.rows) for claim in self.specification.claims]

    @cached_property
    def pictures(self) -> Mapping[str, bytes]:
        """The table drawn: figure.png and .svg as the paper draws it, ours.png and .svg with our own lines."""
        drawn = {name: draw(plan, self.rows) for name, plan in self.plans.items()}
        return {f"{name}.{kind}": image(one, kind) for name, one in drawn.items() for kind in ("png", "svg")}

    @property
    def plans(self) -> Mapping[str, FigurePlan]:
        """How it is drawn."""
        plans = {"figure": self.specification.figure, "ours": self.specification.ours}
        return {} if self.missing else {name: plan for name, plan in plans.items() if plan is not None}

    @cached_property
    def seen(self) -> str:
        """What we see, with its numbers taken from the table."""
        return filled(self.specification.seen, self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the table."""
        head = {name: getattr(self.specification, name) for name in ("name", "title", "source")}
        claims = [verdict.to_dict() for verdict in self.verdicts]
        return {**head, "core_seconds": self.seconds, "missing": self.missing, "claims": claims}

    def summary(self) -> str:
        """One line: what became of the claims."""
        if self.missing:
            return f"{self.specification.name}: left out, {self.missing}"
        counts = Counter(verdict.answer for verdict in self.verdicts)
        answers = ", ".join(f"{answer} {count}" for answer, count in counts.items())
        return f"{self.specification.name}: {answers} ({self.seconds:.0f} core-seconds)"


def filled(text: str, rows: Sequence[Row]) -> str:
    """The text with each ``{method = "kendall", items = 5, show = ".2f"}`` replaced by the number that it selects.

    Besides columns (see ``verdicts.select``) it takes ``show``, a format; ``take``, the smallest, largest or mean where
    several rows are meant; ``of``, a column to show instead of the value; ``minus`` and ``over``, a name with which
    each row is compared, for the difference or ratio of the two values. A point that this size of the run does not have
    becomes "(not run)".
    """
    return NUMBER.sub(lambda match: _number(match.group(), rows), " ".join(text.split()))


def _number(wanted: str, rows: Sequence[Row]) -> str:
    try:
        columns = tomllib.loads(f"number = {wanted}")["number"]
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"seen: {wanted} must be an inline table of TOML: {problem}") from None
    show, take, of = columns.pop("show", ".2g"), columns.pop("take", None), columns.pop("of", "value")
    compare = {name: columns.pop(name) for name in _COMPARISONS if name in columns}
    chosen = select(rows, columns)
    values = [row[of] for row in chosen]
    for name, other in compare.items():
        pairs = _side_by_side(chosen, rows, other)
        values = [_COMPARISONS[name](first["value"], second["value"]) for first, second in pairs]
    if not values:
        return "(not run)"
    if take is None and len(set(values)) > 1:
        raise InputError(f"seen: {wanted} must select one value, got {len(set(values))}")
    return format(_TAKE[take or "smallest"](values), show)


def _side_by_side(chosen: Sequence[Row], rows: Sequence[Row], other: str) -> Iterator[tuple[Row, Row]]:
    """Each of the chosen rows, and the row that differs from it in one column only, which has ``other``."""
    for row, partner in itertools.product(chosen, rows):
        different = [partner[name] for name in row if name not in NUMBERS and row[name] != partner[name]]
        if different == [other]:
            yield row, partner
