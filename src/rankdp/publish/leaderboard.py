"""A published leaderboard: scores, ranks, intervals and a top-k, computed from released and public numbers only.

Intervals account for both sampling and privacy noise and cost no budget: they are from draws of released - true
(``score_errors`` for Bradley-Terry scores).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdp.checks import share, whole
from rankdp.errors import InputError
from rankdp.report.notebook import Shown
from rankdp.report.plots import Intervals
from rankdp.types import Flags, Floats, Longs

ELO = 400 / math.log(10)
DENSE_UP_TO = 1500  # items: above, the Fisher information is not worth inverting as a whole


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

    def as_elo(self) -> Leaderboard:
        """Log-strengths on the chess players' scale: 1000 for the average item, 400/ln 10 points a unit."""
        scores, low, high = (1000 + ELO * values for values in (self.scores, self.low, self.high))
        return replace(self, scores=scores, low=low, high=high, score_name="elo")

    def intervals(self) -> Intervals:
        """Scores with their intervals, to be drawn."""
        axis = f"{self.score_name}, with its {self.level:.0%} interval"
        return Intervals(self.items, self.scores.tolist(), self.low.tolist(), self.high.tolist(), axis)

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
            if self.top is not None and self.top_probability is not None:
                record["in_top"] = row < self.top
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
    items: tuple[str, ...],
    scores: Floats,
    errors: Floats,
    *,
    level: float,
    score_name: str,
    top: int | None,
    warnings: list[str],
    spread: float | None = None,
) -> Leaderboard:
    """The leaderboard of released scores.

    An item's rank is 1 plus the number of items whose interval lies wholly above its own, so that items that cannot be
    told apart share a rank.

    Parameters
    ----------
    items, scores
        The items and their released scores.
    errors
        Draws of released - true, in columns. An infinite row says that nothing is known about the item.
    level
        The confidence of the intervals.
    score_name
        What the scores are called.
    top
        How many items make the top, None for no top.
    warnings
        Sentences about what makes the scores doubtful.
    spread
        Where the errors are those of unbiased scores, the variance s^2 that true scores are expected to have, for the
        chances of being in the top: log s^2 is held to be N(log spread, log(3)^2).
    """
    tail = (1 - level) / 2
    known: Flags = np.all(np.isfinite(errors), axis=1)
    above, below = np.full((2, len(items)), [[math.inf], [-math.inf]])
    above[known], below[known] = np.quantile(errors[known], [1 - tail, tail], axis=1)
    low, high = np.minimum(scores - above, scores), np.maximum(scores - below, scores)
    board = arranged(items, scores, low, high, level=level, score_name=score_name, warnings=warnings)
    if top is None:
        return board
    if spread is None:
        anything = np.random.default_rng(1).standard_normal(errors.shape) / math.sqrt(3)
        truths = np.where(known[:, None], scores[:, None] - errors, anything)
    else:
        steps = np.linspace(-3, 3, 61)
        truths = plausible_truths(scores, errors, spread * 3**steps, -(steps**2) / 2, known)
    cut = -np.partition(-truths, top - 1, axis=0)[top - 1]
    chances = (truths >= cut).mean(axis=1)[np.argsort(-scores, kind="stable")]
    return replace(board, top=top, top_probability=chances)


def arranged(
    items: Sequence[str],
    scores: Floats,
    low: Floats,
    high: Floats,
    *,
    level: float,
    score_name: str,
    warnings: Sequence[str] = (),
    above: Flags | None = None,
) -> Leaderboard:
    """Items with their scores and intervals as a leaderboard, best first, saying which places cannot be told apart.

    Parameters
    ----------
    items, scores, low, high
        The items, their scores (NaN for an unknown one) and the ends of their intervals.
    level
        The confidence of the intervals.
    score_name
        What the scores are called.
    warnings
        Sentences about what makes the scores doubtful.
    above
        Row i, column j: whether i is surely above j; by default, whether its interval lies wholly above.
    """
    order = np.argsort(-scores, kind="stable")
    above = low[:, None] > high[None, :] if above is None else above
    best, worst = 1 + above.sum(axis=0), len(scores) - above.sum(axis=1)
    board = Leaderboard(
        tuple(items[i] for i in order),
        scores[order],
        low[order],
        high[order],
        best[order],
        best[order],
        worst[order],
        level,
        score_name,
    )
    return replace(board, warnings=(*warnings, *indistinct(above[np.ix_(order, order)])))


def plausible_truths(
    centres: Floats, errors: Floats, spreads: Floats, log_prior: Floats, known: Flags | None = None
) -> Floats:
    """Draws of the true scores given the released ones, in columns.

    Noise spreads released scores further than the truth, so the first of many owes its place to luck too. With truths
    of variance s^2 around m and an error of variance v, the truth is near m + k (centre - m), k = s^2/(s^2 + v), and
    has variance s^2 v/(s^2 + v): drawn as m + k (centre - m - error) + (1 - k) u, u of variance s^2. What s^2 is, the
    released numbers say more or less surely (their likelihood, m profiled out); every column draws its own.

    Parameters
    ----------
    centres, errors
        As for ``build``.
    spreads, log_prior
        Values that s^2 may have, and the logarithms of how likely they are held before.
    known
        Which items the errors say anything about; all if not given.
    """
    known = np.ones(len(centres), np.bool_) if known is None else known
    variance = np.full(len(centres), math.inf)
    variance[known] = errors[known].var(axis=1)
    total = spreads[:, None] + variance[known]
    sums = (1 / total).sum(axis=1)
    middles = (centres[known] / total).sum(axis=1) / sums if known.any() else np.zeros(len(spreads))
    misfit = (np.log(total) + (centres[known] - middles[:, None]) ** 2 / total).sum(axis=1)
    logs = log_prior - (misfit + (np.log(sums) if known.any() else 0)) / 2
    chances = np.exp(logs - logs.max())
    random = np.random.default_rng(1)
    drawn = random.choice(len(spreads), errors.shape[1], p=chances / chances.sum())
    kept = spreads[drawn] / (spreads[drawn] + variance[:, None])
    own = np.sqrt(spreads[drawn]) * random.standard_normal(errors.shape)
    around = centres[:, None] - middles[drawn] - np.where(known[:, None], errors, 0)
    truths: Floats = middles[drawn] + kept * around + (1 - kept) * own
    return truths


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
