"""Results by scores and by pairs, counted in draws of the exact count.

A draw is the released numbers with noise that is drawn again, from a public seed, taken off (``inference.draws``). It
costs nothing, and whoever has the release can repeat it. The truth that it speaks of is the count of these very ballots
without noise; whether other voters would vote alike is another matter.

- *Votes and points* are the released numbers and their intervals quantiles of the draws. Neither can be negative: where
  some draws are, the law of the others is taken, and its mean is the estimate.
- *Ranks.* By scores, the ranks in the draws. By pairs and in runoffs a candidate's rank in a draw is 1 plus the number
  of candidates ahead: the ones who beat it, or who had more votes in the last round that counted both.
- *Winners.* The share of draws with the same winners. By pairs the rule is applied to each draw in which some winner
  does not beat every other candidate (with more than ``_MOST_ORDERED`` candidates such draws count as different). For
  runoffs see ``runoff_draws``.

A result without noise is its own only draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdp.inference.draws import Draws
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.rounds import NoisyNumber, NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.publish.election_result import Election
from rankdp.rankers.condorcet import condorcet_winner, copeland, ranked_pairs, schulze
from rankdp.rankers.kemeny import kemeny
from rankdp.types import Floats, Longs

SEED = 1
_DRAWS, _MOST_NUMBERS, _FEWEST = 2000, 10_000_000, 100
_TABLES = 400  # draws of all margins, to some of which a rule is applied
_MOST_ORDERED = 10  # candidates: Kemeny's rule takes milliseconds up to here

ORDERS: dict[str, Callable[[Floats], Any]] = {
    "kemeny": lambda margins: kemeny(np.maximum(margins, 0)).order,
    "copeland": copeland,
    "ranked-pairs": ranked_pairs,
    "schulze": schulze,
    "condorcet": copeland,  # which puts a Condorcet winner first
}
"""By rule, from margins to an order, best first."""


@dataclass(frozen=True, slots=True)
class Number:
    """How many ballots there are: a public number, or a noisy one with the noise that it got."""

    value: int
    noise: NoisyNumber | None = None

    def draws(self, count: int) -> Floats:
        """Draws of the true number, in opposite pairs; ``count`` is even."""
        if self.noise is None:
            return np.full(count, float(self.value))
        half = self.noise.noise(count // 2, SeededBits(SEED + 1))
        return self.value + np.concatenate([-half, half])


def by_scores(
    items: Sequence[str],
    scores: Floats,
    noise: NoisyBorda | NoisyVotes | None,
    rule: str,
    seats: int,
    level: float,
    number: Number | None = None,
) -> Election:
    """The result of noisy scores, Borda's or votes.

    Parameters
    ----------
    items, scores
        The candidates and what was released of them: centred Borda scores, or votes.
    noise
        The mechanism that released it; None for an exact count.
    rule
        The name of the rule.
    seats
        How many win.
    level
        The confidence of the intervals.
    number
        How many ballots there are. By "plurality" None where the votes tell.
    """
    m = len(items)
    borda = rule == "borda"
    if borda:
        scores = scores - scores.mean()  # true ones add up to 0
    order = np.argsort(-scores, kind="stable")
    errors = _score_errors(noise, m)
    truths = np.concatenate([scores - errors, scores + errors])[:, order]
    same = truths[:, :seats].min(axis=1) > truths[:, seats:].max(axis=1)
    sizes = truths.sum(axis=1) if number is None else number.draws(len(truths))
    if borda:
        truths, scores = _points(truths, sizes), _points(scores, np.float64(number.value if number else 0))
    result = started(rule, [items[item] for item in order], seats, level, "points" if borda else "votes")
    result = replace(result, winners_probability=float(same.mean()))
    result = with_number(result, sizes, number)
    drawn = Draws(truths)
    return finished(result, scores[order], drawn, drawn)


def by_pairs(
    items: Sequence[str],
    margins: Floats,
    noise: NoisyMargins | None,
    rule: str,
    seats: int,
    level: float,
    number: Number,
) -> Election:
    """The result of noisy margins: the rule is applied to the margins as they were released.

    Parameters
    ----------
    items, margins
        The candidates and the released margins.
    noise
        The mechanism that released them; None for an exact count.
    rule
        A name of ``ORDERS``.
    seats, level, number
        As for ``by_scores``.
    """
    m = len(items)
    order: Longs = np.asarray(ORDERS[rule](margins), np.int64)
    margins = margins[order][:, order]
    errors = np.zeros((1, m, m)) if noise is None else noise.noise(_TABLES // 2, SeededBits(SEED))
    truths = np.concatenate([margins - errors, margins + errors])
    first = condorcet_winner(margins)
    if rule == "condorcet":
        seats, same = int(first is not None), _condorcet_winners(truths) == (-1 if first is None else first)
    else:
        same = np.asarray((truths[:, :seats, seats:] > 0).all(axis=(1, 2)))
        for draw in np.flatnonzero(~same) if m <= _MOST_ORDERED else ():
            same[draw] = set(np.asarray(ORDERS[rule](truths[draw]))[:seats].tolist()) == set(range(seats))
    names = [items[item] for item in order]
    result = replace(
        started(rule, names, seats, level, "points"),
        winners_probability=float(same.mean()),
        at_least=m > _MOST_ORDERED and rule != "condorcet",
        margins=margins,
        margin_half_width=half_width(errors[:, *np.triu_indices(m, 1)].ravel(), level),
        condorcet_winner=None if first is None else names[first],
    )
    sizes = number.draws(len(truths))
    points = Draws(_points(truths.sum(axis=2), sizes))
    ahead = Draws((truths > 0).sum(axis=2).astype(np.float64))
    result = with_number(result, sizes, number)
    return finished(result, _points(margins.sum(axis=1), np.float64(number.value)), points, ahead)


def _condorcet_winners(tables: Floats) -> Longs:
    """Who beats every other in each table of margins, -1 where nobody does."""
    beats_all = (tables > 0).sum(axis=2) == tables.shape[-1] - 1
    return np.where(beats_all.any(axis=1), beats_all.argmax(axis=1), -1)


def started(rule: str, names: Sequence[str], seats: int, level: float, score_name: str) -> Election:
    """A result of which the order is known."""
    return Election(rule, tuple(names), tuple(names[:seats]), score_name=score_name, level=level)


def _points(scores: Any, ballots: Any) -> Any:
    """Borda points from centred scores: one for every candidate ranked lower, a half for every one tied with it."""
    m = scores.shape[-1]
    return (scores + (m - 1) * np.asarray(ballots)[..., None]) / 2


def with_number(result: Election, sizes: Floats, number: Number | None) -> Election:
    """With the number of ballots, as a fact where it is public."""
    if number is not None and number.noise is None:
        return replace(result, ballots=number.value)
    drawn = Draws(sizes[:, None])
    low, high = drawn.interval(result.level)
    stated = float(drawn.estimate[0]) if number is None else float(number.value)
    return replace(result, ballots=stated, ballots_low=float(low[0]), ballots_high=float(high[0]))


def finished(result: Election, scores: Floats, draws: Draws, ahead: Draws) -> Election:
    """With intervals and ranks; candidates are in the order of the result."""
    truths = Draws(_not_negative(draws.values))
    scores = np.where((draws.values < 0).any(axis=0), truths.estimate, scores)
    if ahead is draws:  # scores that decide the order fall along it; means of draws do so up to chance
        scores = np.minimum.accumulate(scores)
    (low, high), (first, last) = truths.interval(result.level), ahead.rank_range(result.level)
    first, last = np.maximum.accumulate(first), np.maximum.accumulate(last)
    if (draws.values == draws.values[0]).all():  # an exact count
        first = last = np.arange(1, len(scores) + 1)
    return replace(
        result,
        scores=tuple(scores.tolist()),
        low=tuple(np.minimum(low, scores).tolist()),
        high=tuple(np.maximum(high, scores).tolist()),
        ranks=tuple(first.tolist()),
        rank_low=tuple(first.tolist()),
        rank_high=tuple(last.tolist()),
    )


def _not_negative(draws: Floats) -> Floats:
    """Draws of counts that cannot be negative: those below 0 are replaced by others of the same count.

    This is their law given that the count is not negative. Where no draw is, the count is taken as 0.
    """
    kept = draws.copy()
    for column in kept.T:
        below = column < 0
        if below.any():
            column[below] = 0 if below.all() else np.resize(column[~below], int(below.sum()))
    return kept


def draw_count(numbers: int) -> int:
    """How many draws of this many numbers."""
    return 2 * max(_FEWEST, min(_DRAWS, _MOST_NUMBERS // numbers) // 2)


def _score_errors(noise: NoisyBorda | NoisyVotes | None, m: int) -> Floats:
    """Draws of the noise, one per row, in points or votes."""
    if noise is None:
        return np.zeros((1, m))
    if isinstance(noise, NoisyBorda):
        drawn = noise.noise(draw_count(m * m) // 2, SeededBits(SEED))  # the time for a draw grows with m^2
        return np.asarray(drawn - drawn.mean(axis=1, keepdims=True))
    draws = draw_count(m) // 2
    return noise.noise(m * draws, SeededBits(SEED)).reshape(draws, m) / noise.unit


def half_width(errors: Floats, level: float) -> float:
    """Half the width of an interval around a number with such errors."""
    low, high = Draws(np.concatenate([errors, -errors])[:, None]).interval(level)
    return float(high[0] - low[0]) / 2
