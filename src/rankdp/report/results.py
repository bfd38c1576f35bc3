"""The table of a result: one row per item, with its range of ranks, its estimate and a bar for the interval.

The table takes plain data, so that leaderboards, elections, aggregates, scores, audits and surveys all look alike. Bars
are SVG elements that need neither a script nor a style attribute. On a narrow screen a row becomes a block: the rank,
the name and the estimate on one line, the bar below them, the other cells after it with their heads.

`leading` is a sentence on the first place, made from the same ranges of ranks as the column in the table, so the two
cannot contradict each other.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

_TICKS = 5  # at most about this many, so that their numbers fit above a bar
_MARGIN = 3.0  # percent of a bar's width on either side, so that no dot is cut
_NAMED = 4  # names in a sentence
_WIDE = 7  # columns above which cells may be broken
_MOST_COLUMNS = 8  # of numbers, side by side; a table with more continues below
_REACH = 4  # usual half-widths; longer intervals are cut, so that one unknown item does not squeeze all others


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people: cells are finished texts.

    Parameters
    ----------
    heads
        The name of each column.
    rows
        The cells, row by row.
    texts
        How many of the first columns are set as text; the others are set as numbers.
    title
        The heading; a page folds a table that has a title.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    title: str = ""

    def text(self, most: int = 10) -> str:
        """The first rows as lines of text, for a prompt.

        Parameters
        ----------
        most
            How many rows.
        """
        lines = [list(self.heads), *(list(row) for row in self.rows[:most])]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.heads))]
        aligned = (
            "  ".join(
                cell.ljust(width) if place < self.texts else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        more = [f"… and {len(self.rows) - most:,} more"] if len(self.rows) > most else []
        return "\n".join([*aligned, *more])

    def html(self) -> str:
        """The table as an element of a page; one with many columns of numbers becomes several tables."""
        numbers = range(self.texts, len(self.heads))
        parts = math.ceil(len(numbers) / _MOST_COLUMNS) or 1
        size = math.ceil(len(numbers) / parts)
        return "\n".join(self._part(numbers[part * size : (part + 1) * size], parts > 1) for part in range(parts))

    def _part(self, numbers: Sequence[int], some: bool) -> str:
        """The columns of text and these columns of numbers; of some columns only the rows that are not empty there."""
        places = [*range(self.texts), *numbers]
        body = "\n".join(
            _line(_cell(row[place], "text" * (place < self.texts), self.heads[place]) for place in places)
            for row in self.rows
            if not some or any(row[place] for place in numbers)
        )
        heads = _line(_head(self.heads[place], "text" * (place < self.texts)) for place in places)
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        kind = "'cells wide'" if len(self.heads) > _WIDE else "cells"
        return f"<table class={kind}>{caption}<thead>{heads}</thead><tbody>\n{body}\n</tbody></table>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One item of a result.

    Parameters
    ----------
    name
        What the item is called.
    estimate
        Its value.
    low, high
        The ends of its interval; NaN where no error is known, infinite where it has no end.
    ranks
        The best and the worst rank that it may have, None for a result without ranks.
    mark
        A word next to the name, such as "elected".
    cells
        Finished texts for the other columns, such as the number of votes.
    """

    name: str
    estimate: float
    low: float = math.nan
    high: float = math.nan
    ranks: tuple[int, int] | None = None
    mark: str = ""
    cells: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """Items in the order of their estimates.

    Parameters
    ----------
    rows
        The items, the best first.
    measure
        What is estimated, such as "strength" or "votes".
    level
        The probability that an interval, or a range of ranks, holds the truth.
    subject
        What an item is, such as "candidate".
    heads
        The names of the other columns, as many as a row has ``cells``.
    line
        A value to draw across all bars, such as a claim that no dot may cross, on a scale from 0; None for none.
    span
        The name of the column of intervals; by default it states the level.
    rank, to, decimal
        The name of the column of ranks, the word between the ends of an interval, and the decimal sign, for pages in
        other languages.
    """

    rows: Sequence[ResultRow]
    measure: str
    level: float = 0.95
    subject: str = "item"
    heads: Sequence[str] = ()
    line: float | None = None
    span: str = ""
    rank: str = "rank"
    to: str = "to"
    decimal: str = "."

    @property
    def ranked(self) -> bool:
        """Whether there is a column of ranks."""
        return any(row.ranks is not None for row in self.rows)

    @property
    def known(self) -> bool:
        """Whether any interval is known."""
        return any(not math.isnan(row.low) for row in self.rows)

    def table(self) -> Table:
        """The same as texts, for a terminal."""
        rows = []
        for row, estimate, interval in zip(self.rows, *self._numbers(), strict=True):
            rank = [_ranks(row)] if self.ranked else []
            name = f"{row.name} ({row.mark})" if row.mark else row.name
            rows.append([*rank, name, estimate, *([interval] if self.known else []), *row.cells])
        return Table(self._heads(), rows, texts=1 + self.ranked)

    def html(self, caption: str = "") -> str:
        """The table with its bars, as an element of a page.

        Parameters
        ----------
        caption
            The result in a sentence, for screen readers.
        """
        axis = _Axis(*self.shown_span, self.line, self.decimal)
        heads, body = self._heads(), []
        for row, estimate, interval in zip(self.rows, *self._numbers(), strict=True):
            mark = f" <span class=mark>{html.escape(row.mark)}</span>" if row.mark else ""
            others = zip(row.cells, self.heads, strict=True)
            body.append(
                _line(
                    [
                        *([_cell(_ranks(row), "rank")] if self.ranked else []),
                        f"<th scope=row class=name>{html.escape(row.name)}{mark}</th>",
                        f"<td class=bar>{axis.bar(row)}</td>",
                        _cell(estimate, "estimate"),
                        *([_cell(interval, "", self._span)] if self.known else []),
                        *(_cell(cell, "", head) for cell, head in others),
                    ]
                )
            )
        named = 1 + self.ranked
        top = [
            *(_head(head, kind) for head, kind in zip(heads, ["rank", "text"][-named:], strict=False)),
            f"<td class=bar>{axis.numbers()}</td>",
            *(_head(head) for head in heads[named:]),
        ]
        hidden = f"<caption class=unseen>{html.escape(caption)}</caption>" if caption else ""
        return (
            f"<table class=results>{hidden}<thead>{_line(top)}</thead><tbody>\n{chr(10).join(body)}\n</tbody></table>"
        )

    @property
    def _span(self) -> str:
        return self.span or f"{self.level:.0%} interval"

    def _heads(self) -> list[str]:
        rank = [self.rank] if self.ranked else []
        return [*rank, self.subject, self.measure, *([self._span] if self.known else []), *self.heads]

    def _numbers(self) -> tuple[list[str], list[str]]:
        """The texts of all estimates and of all intervals, each column with as many digits as it needs."""
        digits = digits_for([value for row in self.rows for value in (row.estimate, row.low, row.high)])

        def text(value: float) -> str:
            return local(shown(value, digits), self.decimal)

        estimates = [text(row.estimate) for row in self.rows]
        spans = [f"{text(row.low)} {self.to} {text(row.high)}" for row in self.rows]
        return estimates, ["–" if math.isnan(row.low) else span for row, span in zip(self.rows, spans, strict=True)]

    @property
    def shown_span(self) -> tuple[float, float]:
        """The ends of the axis: they include all estimates, and all intervals that are not unusually long."""
        estimates = [row.estimate for row in self.rows if math.isfinite(row.estimate)] or [0.0]
        estimates += [] if self.line is None else [0.0, self.line]
        least, most = min(estimates), max(estimates)
        widths = [row.high - row.low for row in self.rows if math.isfinite(row.high - row.low)]
        reach = max(_REACH * median(widths or [0.0]) / 2, (most - least) / 4)
        ends = [end for row in self.rows for end in (row.low, row.high) if math.isfinite(end)]
        return max(min([least, *ends]), least - reach), min(max([most, *ends]), most + reach)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The position of a value in a bar, in percent of its width."""

    least: float
    most: float
    line: float | None
    decimal: str

    def _at(self, value: float) -> str:
        within = min(max(value, self.least), self.most)
        share = (within - self.least) / ((self.most - self.least) or 1.0)
        return f"{_MARGIN + (100 - 2 * _MARGIN) * share:.2f}%"

    def bar(self, row: ResultRow) -> str:
        """A line for the interval and a dot for the estimate, over the lines of the round numbers."""
        parts = [f"<line x1='{x}' x2='{x}' y1=0 y2='100%' class=grid />" for x in map(self._at, self._ticks)]
        if self.line is not None:
            at = self._at(self.line)
            parts.append(f"<line x1='{at}' x2='{at}' y1=0 y2='100%' class=claim />")
        if not math.isnan(row.low):
            parts.append(
                f"<line x1='{self._at(row.low)}' x2='{self._at(row.high)}' y1='50%' y2='50%' class=interval />"
            )
            parts += ["<text x='0' y='50%' dy='0.35em' class=cut>‹</text>"] * (row.low < self.least)
            parts += ["<text x='100%' y='50%' dy='0.35em' class=cut>›</text>"] * (row.high > self.most)
        if math.isfinite(row.estimate):
            parts.append(f"<circle cx='{self._at(row.estimate)}' cy='50%' r=4.5 />")
        return f"<svg aria-hidden=true>{''.join(parts)}</svg>"

    @property
    def _ticks(self) -> list[float]:
        return ticks(self.least, self.most, _TICKS)

    def numbers(self) -> str:
        """The round numbers above the bars."""
        numbers = ((self._at(tick), local(f"{tick:,.10g}", self.decimal)) for tick in self._ticks)
        words = (f"<text x='{at}' y='80%'>{number}</text>" for at, number in numbers)
        return f"<svg aria-hidden=true>{''.join(words)}</svg>"


def leading(rows: Sequence[ResultRow], subject: str = "item", first_probability: float | None = None) -> str:
    """One sentence on the first place: who leads, and which items cannot be told apart from it.

    Parameters
    ----------
    rows
        The items, the best first, with their ranges of ranks.
    subject
        What an item is, in the singular.
    first_probability
        The probability that the first item is the best, where that is known.
    """
    if not rows:
        return ""
    first, sure = rows[0].name, "" if first_probability is None else f" (probability {percent(first_probability)})"
    others = [row.name for row in rows[1:] if row.ranks is not None and row.ranks[0] == 1]
    if not others:
        return f"{first} ranks first{sure}."
    if len(others) == len(rows) - 1 and len(rows) > 2:
        return f"{first} is ahead{sure}, but any of the {len(rows):,} {subject}s may be first."
    if len(others) > _NAMED:
        return f"{first} is ahead{sure}, but {len(others):,} other {subject}s cannot be told apart from it."
    return f"{first} is ahead{sure}, but cannot be told apart from {listed(others)}."


def listed(names: Sequence[str], last: str = "or") -> str:
    """Names in a sentence: "A", "A or B", "A, B or C"."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def percent(value: float) -> str:
    """A probability in whole percents, which never says that something is certain or impossible."""
    if value > 0.99:
        return "over 99%"
    return "below 1%" if value < 0.01 else f"{value:.0%}"


def rank_span(low: int, high: int) -> str:
    """A range of ranks: "2–5", or "2" alone."""
    return str(low) if low == high else f"{low}–{high}"


def digits_for(values: Sequence[float]) -> int:
    """How many decimals show three digits of the largest number; 0 from a hundred up, and for whole numbers."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    largest = max(finite, default=0.0)
    return max(0, 2 - math.floor(math.log10(largest))) if any(value % 1 for value in finite) else 0


def shown(value: float, digits: int) -> str:
    """A number as text, never as -0; "–" where it is not finite."""
    return f"{round(value, digits) + 0.0:,.{digits}f}" if math.isfinite(value) else "–"


def local(number: str, decimal: str) -> str:
    """A number with this decimal sign, a point or a comma; the other one separates thousands."""
    return number.translate(str.maketrans(".,", ",.")) if decimal == "," else number


def ticks(least: float, most: float, parts: int) -> list[float]:
    """Round numbers between two ends, at most ``parts`` steps of 1, 2 or 5 times a power of ten."""
    if not most > least:
        return [least]
    unit = 10.0 ** math.floor(math.log10((most - least) / parts))
    step = next(times * unit for times in (1, 2, 5, 10) if most - least <= parts * times * unit * (1 + 1e-9))
    return [float(f"{turn * step:.10g}") for turn in range(math.ceil(least / step), math.floor(most / step) + 1)]


def _ranks(row: ResultRow) -> str:
    return "" if row.ranks is None else rank_span(*row.ranks)


def _line(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str, kind: str = "", head: str = "") -> str:
    """A cell; its heading is repeated where a narrow screen has no header row."""
    named = f' data-head="{html.escape(head, quote=True)}"' if head else ""
    return f"<td{f' class={kind}' if kind else ''}{named}>{html.escape(text)}</td>"


def _head(text: str, kind: str = "") -> str:
    return f"<th{f' class={kind}' if kind else ''}>{html.escape(text)}</th>"
