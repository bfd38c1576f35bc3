"""A published leaderboard: scores, ranks, intervals and a top-k, computed from released and public numbers only.

Intervals account for both sampling and privacy noise and cost no budget. The error of the scores is simulated from its
first-order form: with H the Fisher information at the released scores, z ~ N(0, H) the sampling noise of the score
function and w the privacy noise,

    released - true = (H + gamma)^-1 (z + w - gamma true),

so that released + gamma H^+ released is free of the ridge's pull to the middle and errs by H^+ (z + w). Where the
design is secret, H is that of an even design with the same (public or noisy) number of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError

ELO = 400 / math.log(10)
_DRAWS = 4000
_DENSE_UP_TO = 1500

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Items with their scores, best first."""

    items: tuple[str, ...]
    scores: Vector
    low: Vector
    high: Vector
    ranks: NDArray[np.int64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    level: float
    score_name: str
    top: int | None = None
    top_probability: Vector | None = None
    warnings: tuple[str, ...] = ()

    def as_elo(self) -> Leaderboard:
        """Log-strengths on the chess players' scale: 1000 for the average item, 400/ln 10 points a unit."""
        scores, low, high = (1000 + ELO * values for values in (self.scores, self.low, self.high))
        return replace(self, scores=scores, low=low, high=high, score_name="elo")

    def rows(self) -> list[dict[str, Any]]:
        """One plain record an item."""
        records = []
        for place, item in enumerate(self.items):
            record: dict[str, Any] = {
                "item": item,
                self.score_name: float(self.scores[place]),
                "low": float(self.low[place]),
                "high": float(self.high[place]),
                "rank": int(self.ranks[place]),
                "rank_low": int(self.rank_low[place]),
                "rank_high": int(self.rank_high[place]),
            }
            if self.top is not None and self.top_probability is not None:
                record["in_top"] = place < self.top
                record["top_probability"] = float(self.top_probability[place])
            records.append(record)
        return records


def check_request(items: int, level: float, top: int | None) -> None:
    """Refuse a level or a top-k that no leaderboard of so many items can have."""
    if not 0 < level < 1:
        raise InputError(f"level must be above 0 and below 1, got {level}")
    if top is not None and not 1 <= top <= items:
        raise InputError(f"top must be between 1 and the number of items, {items}, got {top}")


def build(
    items: tuple[str, ...],
    scores: Vector,
    centres: Vector,
    errors: NDArray[np.float64],
    *,
    level: float,
    score_name: str,
    top: int | None,
    warnings: list[str],
) -> Leaderboard:
    """The leaderboard of ``scores``: ``centres`` minus a column of ``errors`` is a plausible truth.

    An item's rank is 1 plus the number of items whose interval lies wholly above its own, so that items that cannot be
    told apart share a rank.
    """
    order = np.argsort(-scores, kind="stable")
    tail = (1 - level) / 2
    above, below = np.quantile(errors, [1 - tail, tail], axis=1)
    low, high = np.minimum(centres - above, scores), np.maximum(centres - below, scores)
    rank_low = 1 + (low[None, :] > high[:, None]).sum(axis=1)
    rank_high = len(items) - (high[None, :] < low[:, None]).sum(axis=1)
    probability = None
    if top is not None:
        truths = centres[:, None] - errors
        cut = -np.partition(-truths, top - 1, axis=0)[top - 1]
        probability = (truths >= cut).mean(axis=1)[order]
    board = Leaderboard(
        tuple(items[i] for i in order),
        scores[order],
        low[order],
        high[order],
        rank_low[order],
        rank_low[order],
        rank_high[order],
        level,
        score_name,
        top,
        probability,
    )
    return replace(board, warnings=(*warnings, *_indistinct(board)))


def _indistinct(board: Leaderboard) -> list[str]:
    """Sentences about runs of places whose intervals all overlap."""
    runs, first = [], 0
    while first < len(board.items):
        last = first
        while last + 1 < len(board.items) and board.high[last + 1] >= board.low[first]:
            last += 1
        if last > first:
            runs.append(f"{first + 1} to {last + 1}")
        first = last + 1
    if not runs:
        return []
    shown = ", ".join(runs[:5]) + (f" and {len(runs) - 5} more runs" if len(runs) > 5 else "")
    return [f"At this epsilon places {shown} cannot be told apart."]


def information(first: NDArray[Any], second: NDArray[Any], weight: Vector, items: int) -> Vector:
    """The Fisher information sum of weight (e_i - e_j)(e_i - e_j)^T, dense."""
    matrix = np.zeros((items, items))
    np.add.at(matrix, (first, second), -weight)
    matrix += matrix.T
    matrix[np.diag_indices(items)] = -matrix.sum(axis=1)
    return matrix


def simulated_errors(
    matrix: Vector, noise: Callable[[int], Vector], random: np.random.Generator
) -> tuple[NDArray[np.float64], Callable[[Vector], Vector]]:
    """Columns of draws of H^+ (z + w), and the map v -> H^+ v. ``noise(count)`` draws privacy noise on wins.

    A one-dimensional ``matrix`` stands for its diagonal alone, good enough for long lists.
    """
    items = len(matrix)
    if matrix.ndim == 1:
        with np.errstate(divide="ignore"):
            inverse = 1 / matrix
        drawn = random.standard_normal((items, _DRAWS)) * np.sqrt(inverse)[:, None]
        return drawn + inverse[:, None] * noise(items * _DRAWS).reshape(items, _DRAWS), lambda vector: inverse * vector
    values, vectors = np.linalg.eigh(matrix)
    connected = values > 1e-9 * max(float(values[-1]), 1e-300)
    if connected.sum() < items - 1:  # a disconnected design says nothing about the distance of its parts
        return np.full((items, 2), np.inf) * [1, -1], lambda vector: np.zeros(items)
    basis, scale = vectors[:, connected], 1 / values[connected]
    pushed = basis.T @ noise(items * _DRAWS).reshape(items, _DRAWS)
    sampling = random.standard_normal(pushed.shape)
    return basis @ (
        np.sqrt(scale)[:, None] * sampling + scale[:, None] * pushed
    ), lambda vector: basis @ (scale * (basis.T @ vector))


def use_dense(items: int) -> bool:
    """Whether the Fisher information is worth inverting as a whole."""
    return items <= _DENSE_UP_TO
