"""A published leaderboard: scores, ranks, intervals and a top-k, all counted in one set of draws of the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdp.checks import share, whole
from rankdp.errors import InputError
from rankdp.inference.draws import Draws
from rankdp.report.notebook import Shown
from rankdp.report.plots import Intervals
from rankdp.types import Flags, Floats, Longs

ELO = 400 / math.log(10)
_NAMED = 10  # items in a sentence


@dataclass(frozen=True, slots=True)
class Effect:
    """What a covariate at its bound adds to the log-odds of winning, with its interval."""

    covariate: str
    bound: float
    effect: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Leaderboard(Shown):
    """Items with their scores, best first."""

    items: tuple[str, ...]
    scores: Floats
    low: Floats
    high: Floats
    ranks: Longs
    rank_low: Longs
    rank_high: Longs
    level: float
    score_name: str
    top: int | None = None
    top_probability: Floats | None = None
    warnings: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    best_probability: Floats | None = None
    """The probability that each item is the best; None where no errors are known."""
    table: Floats | None = None
    """The released wins of the row's item over the column's, in the order of the board, where those were released."""

    def as_elo(self) -> Leaderboard:
        """Log-strengths on the chess players' scale: 1000 for the average opponent, 400/ln 10 points a unit."""
        scores, low, high = (1000 + ELO * values for values in (self.scores, self.low, self.high))
        return replace(self, scores=scores, low=low, high=high, score_name="elo")

    def intervals(self) -> Intervals:
        """Scores with their intervals, to be drawn."""
        known = self.best_probability is not None
        axis = f"{self.score_name}, with its {self.level:.0%} interval" if known else self.score_name
        ends = (self.low, self.high) if known else (self.scores, self.scores)
        return Intervals(self.items, self.scores.tolist(), ends[0].tolist(), ends[1].tolist(), axis)

    def rows(self) -> list[dict[str, Any]]:
        """One plain record an item."""
        records = []
        for row, item in enumerate(self.items):
            record: dict[str, Any] = {
                "item": item,
                self.score_name: float(self.scores[row]),
                "low": float(self.low[row]),
                "high": float(self.high[row]),
                "rank": int(self.ranks[row]),
                "rank_low": int(self.rank_low[row]),
                "rank_high": int(self.rank_high[row]),
            }
            if self.best_probability is not None:
                record["best_probability"] = float(self.best_probability[row])
            if self.top is not None:
                record["in_top"] = row < self.top
            if self.top_probability is not None:
                record["top_probability"] = float(self.top_probability[row])
            records.append(record)
        return records


def check_request(items: int, level: float, top: int | None) -> None:
    """Refuse a level or a top-k that no leaderboard of so many items can have."""
    if items < 2:
        raise InputError(f"a leaderboard needs at least 2 items, got {items}")
    share("level", level)
    if top is not None:
        whole("top", top, 1, items)


def build(
    items: Sequence[str],
    draws: Draws,
    *,
    level: float,
    score_name: str,
    top: int | None = None,
    warnings: Sequence[str] = (),
) -> Leaderboard:
    """The leaderboard that draws of the true scores make, best first.

    Parameters
    ----------
    items
        The items.
    draws
        Draws of their true scores.
    level
        The confidence of the intervals and of the ranges of ranks.
    score_name
        What the scores are called.
    top
        How many items make the top, None for no top.
    warnings
        Sentences about what makes the scores doubtful.
    """
    order = np.argsort(draws.places)
    (low, high), (first, last) = draws.interval(level), draws.rank_range(level)
    board = Leaderboard(
        tuple(items[item] for item in order),
        draws.estimate[order],
        low[order],
        high[order],
        np.arange(1, len(order) + 1),
        first[order],
        last[order],
        level,
        score_name,
        best_probability=draws.best[order],
        warnings=(*warnings, *_undecided(items, draws, level)),
    )
    return board if top is None else replace(board, top=top, top_probability=draws.top(top)[order])


def without_intervals(
    items: Sequence[str],
    scores: Floats,
    *,
    level: float,
    score_name: str,
    top: int | None = None,
    warnings: Sequence[str] = (),
) -> Leaderboard:
    """A leaderboard of scores of which no errors are known.

    Parameters
    ----------
    items, scores
        The items and their released scores.
    level, score_name, top, warnings
        As for ``build``.
    """
    order, unknown = np.argsort(-scores, kind="stable"), np.full(len(scores), math.nan)
    names, places = tuple(items[item] for item in order), np.arange(1, len(order) + 1)
    any_rank = np.ones_like(places), np.full_like(places, len(places))
    board = Leaderboard(names, scores[order], unknown, unknown, places, *any_rank, level, score_name)
    return replace(board, top=top, warnings=tuple(warnings))


def _undecided(items: Sequence[str], draws: Draws, level: float) -> list[str]:
    """Which items at the top cannot be told apart."""
    found = [items[item] for item in draws.contenders(level)]
    if len(found) == 1:
        return []
    if len(found) > _NAMED:
        return [f"The best item is not clear: it is one of {len(found)} items (with {level:.0%} probability)."]
    return [f"The best item is not clear: it is one of {', '.join(found)} (with {level:.0%} probability)."]


def indistinct(above: Flags) -> list[str]:
    """Sentences about runs of places of which the first is not surely above the others.

    Parameters
    ----------
    above
        Row i, column j: whether place i is surely above place j.
    """
    runs, first = [], 0
    while first < len(above):
        last = first
        while last + 1 < len(above) and not above[first, last + 1]:
            last += 1
        if last > first:
            runs.append(f"{first + 1} to {last + 1}")
        first = last + 1
    if not runs:
        return []
    if len(runs) > 5:
        runs[5:] = [f"{len(runs) - 5} more runs"]
    shown = " and ".join(filter(None, (", ".join(runs[:-1]), runs[-1])))
    return [f"At this epsilon places {shown} cannot be told apart."]
