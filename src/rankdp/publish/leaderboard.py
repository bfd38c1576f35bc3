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
from rankdp.report.notebook import Displayable
from rankdp.report.results import ResultRow, ResultTable, leading, percent
from rankdp.types import Floats, Longs

ELO = 400 / math.log(10)
ITEMS_FROM_VOTES = "The list of items was taken from the votes: which items occur is not protected."
CATEGORIES_FROM_VOTES = "The list of categories was taken from the votes: which of them occur is not protected."
CATEGORIES_PUBLIC = "In which category a comparison was made is public, as who was compared with whom is."
LIMITS = frozenset({ITEMS_FROM_VOTES, CATEGORIES_FROM_VOTES, CATEGORIES_PUBLIC})
"""The warnings of a board that its promise leaves something out: a page tells them with the promise."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a covariate at its bound adds to the log-odds of winning, with its interval."""

    covariate: str
    bound: float
    effect: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, repr=False)
class Leaderboard(Displayable):
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
        """Log-strengths on the Elo scale: 1000 for the average opponent and 400/ln 10 points per unit."""
        scores, low, high = (1000 + ELO * values for values in (self.scores, self.low, self.high))
        return replace(self, scores=scores, low=low, high=high, score_name="elo")

    def results(self) -> ResultTable:
        """The table for readers; items have a range of ranks where errors are known."""
        known, top, chances = not np.isnan(self.low).all(), self.top, self.top_probability
        best, worst = (self.rank_low, self.rank_high) if known else (self.ranks, self.ranks)
        rows = []
        for row, item in enumerate(self.items):
            # a yes or no next to a probability could contradict it: 32% listed above 36%
            inside = "yes" if top is not None and row < top else "no"
            rows.append(
                ResultRow(
                    name=item,
                    estimate=float(self.scores[row]),
                    low=float(self.low[row]),
                    high=float(self.high[row]),
                    ranks=(int(best[row]), int(worst[row])),
                    cells=() if top is None else (inside if chances is None else percent(float(chances[row])),),
                )
            )
        heads = () if top is None else (f"in the top {top}",)
        return ResultTable(rows=rows, measure=self.score_name, level=self.level, heads=heads)

    def headline(self) -> str:
        """Who leads, and which items cannot be told apart from the leader."""
        if np.isnan(self.low).all():
            return f"{self.items[0]} has the highest {self.score_name}."
        best = self.best_probability
        return leading(self.results().rows, first_probability=None if best is None else float(best[0]))

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per item."""
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
    """Refuse a level or a top-k that no leaderboard of this many items can have."""
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
    """The leaderboard from draws of the true scores, best first.

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
        warnings=tuple(warnings),
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
    """A leaderboard of scores whose errors are unknown.

    Parameters
    ----------
    items, scores
        The items and their released scores.
    level, score_name, top, warnings
        As in ``build``.
    """
    order, unknown = np.argsort(-scores, kind="stable"), np.full(len(scores), math.nan)
    names, places = tuple(items[item] for item in order), np.arange(1, len(order) + 1)
    any_rank = np.ones_like(places), np.full_like(places, len(places))
    board = Leaderboard(names, scores[order], unknown, unknown, places, *any_rank, level, score_name)
    return replace(board, top=top, warnings=tuple(warnings))
