"""A collective order from what rankings say together: four methods, each with its scores, their intervals and ranks.

- borda: mean ranks, or where lists differ in length the mean share of listed rivals that an item beats. The board is
  counted in draws of the true ones: debiased scores with their covariance, items exchangeable, their spread integrated;
- copeland: against how many others an item has the majority, even ones and pairs that nobody lists counting half. It
  surely has a majority where the interval of the win rate lies above 1/2;
- bradley-terry: log-strengths from each item's wins over all others and from who was listed with whom. With H the
  Fisher information, an error e of the wins becomes H^+ e of the strengths. Strengths of items that no chain of lists
  connects cannot be compared;
- kemeny: the place in Kemeny's ranking of the win rates; it is as sure as the majorities are.

Every method also says what it makes of the synthetic rankings counted as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from rankdp.aggregation.means import Estimate
from rankdp.aggregation.respondents import quantile
from rankdp.checks import one_of, share
from rankdp.data.counts import PairCounts
from rankdp.inference.draws import Draws
from rankdp.inference.exchangeable import exchangeable
from rankdp.publish.board_estimators import DENSE_UP_TO
from rankdp.publish.leaderboard import Leaderboard, arranged, build
from rankdp.rankers.bradley_terry import fit_wins
from rankdp.types import Flags, Floats, Longs

_ANY = 0.5  # a bias of a win rate that says that any is possible
_SHOWN = 4  # parts, and items of a part, that a sentence names


class Statistics(Protocol):
    """What the methods ask of an aggregate."""

    @property
    def items(self) -> tuple[str, ...]:
        """The names of the items."""

    @property
    def one_length(self) -> bool:
        """Whether all lists are equally long."""

    @property
    def mean_ranks(self) -> Estimate:
        """By item."""

    @property
    def win_shares(self) -> Estimate:
        """By item."""

    @property
    def win_rates(self) -> Estimate:
        """By pair."""

    @property
    def pair_voters(self) -> Longs:
        """By pair: how many list both."""

    def covariance(self, estimate: Estimate) -> Floats:
        """By item: of the errors of mean ranks or win shares, in ranks or in shares."""

    def wins(self) -> tuple[Floats, Floats, Floats, Floats]:
        """By item: its wins over all others, their standard error, their largest bias, and the naive count."""


class Scored(NamedTuple):
    """What a method says of the items; higher is better."""

    name: str
    scores: Floats
    naive: Floats
    reach: Callable[[float], tuple[Floats, Floats]]
    """The ends of the intervals by confidence."""
    estimate: Estimate
    """What the scores were made from."""
    above: Callable[[float], Flags] | None = None
    """Which item is surely above which, where the intervals do not say it."""
    notes: tuple[str, ...] = ()
    sign: int = 1
    """-1 where people read the scores the other way round: a mean rank."""
    draws: Draws | None = None
    """Draws of the true scores, where the board is counted in them."""


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """A leaderboard, and beside it what counting the synthetic rankings would say."""

    leaderboard: Leaderboard
    naive: Floats
    naive_places: Longs
    estimate: Estimate
    times: float | None = None
    """About how many times as many voters would tell the first two items apart; None where it is not known."""


def score(result: Statistics, method: str) -> Scored:
    """The scores by a method: "borda", "copeland", "bradley-terry" or "kemeny"."""
    one_of("method", method, METHODS)
    return METHODS[method](result)


def board_of(result: Statistics, method: str, level: float) -> Board:
    """The leaderboard by a method, with intervals of this confidence."""
    share("level", level)
    scored = score(result, method)
    if scored.draws is not None:
        return _drawn_board(result.items, scored, level)
    low, high = scored.reach(level)
    unknown = np.isnan(scored.scores)
    low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    above = scored.above(level) if scored.above else None
    board = arranged(
        result.items,
        scored.scores,
        low,
        high,
        level=level,
        score_name=scored.name,
        warnings=scored.notes,
        above=above,
    )
    if scored.sign < 0:
        board = replace(board, scores=-board.scores, low=-board.high, high=-board.low)
    return _beside(board, np.argsort(-scored.scores, kind="stable"), scored)


def _drawn_board(items: tuple[str, ...], scored: Scored, level: float) -> Board:
    """The board that draws make; intervals are longer by the largest bias that the debiased scores may have."""
    assert scored.draws is not None
    board = build(items, scored.draws, level=level, score_name=scored.name, warnings=scored.notes)
    order = np.argsort(scored.draws.places)
    bias = np.nan_to_num(scored.estimate.bias)[order]
    least, most = sorted(scored.sign * end for end in scored.estimate.limits)
    low, high = np.clip(board.low - bias, least, most), np.clip(board.high + bias, least, most)
    board = replace(board, low=np.minimum(low, board.scores), high=np.maximum(high, board.scores))
    if scored.sign < 0:
        board = replace(board, scores=-board.scores, low=-board.high, high=-board.low)
    lead = scored.draws.values[:, order[0]] - scored.draws.values[:, order[1]]
    times = float((quantile(level) * lead.std() / max(lead.mean(), 1e-9)) ** 2)
    return replace(_beside(board, order, scored), times=times)


def _beside(board: Leaderboard, order: Longs, scored: Scored) -> Board:
    """The board with what counting would say beside it."""
    places = np.empty(len(order), dtype=np.int64)
    places[np.argsort(-scored.naive, kind="stable")] = np.arange(1, len(order) + 1)
    return Board(board, scored.sign * scored.naive[order], places[order], scored.estimate)


def _borda(result: Statistics) -> Scored:
    """Higher is better, so the draws are those of minus the mean rank."""
    estimate, sign = (result.mean_ranks, -1) if result.one_length else (result.win_shares, 1)
    name = "mean rank" if result.one_length else "win share"
    known = np.isfinite(estimate.values)
    middle, reach = sum(estimate.limits) / 2, (estimate.limits[1] - estimate.limits[0]) / 2
    covariance = result.covariance(estimate)
    covariance[~known], covariance[:, ~known] = 0, 0
    precision = np.asarray(np.linalg.pinv(covariance, rcond=1e-10, hermitian=True), np.float64)
    precision[~known], precision[:, ~known] = 0, 0
    centre = float((estimate.values[known] - middle).mean())
    off = sign * np.where(known, estimate.values - middle - centre, 0)
    drawn, _ = exchangeable(precision @ off, precision, reach / 3)
    draws = Draws(drawn.values + sign * (middle + centre))
    scores = np.where(known, draws.estimate, np.nan)
    return Scored(name, scores, sign * estimate.naive, draws.interval, estimate, sign=sign, draws=draws)


def _copeland(result: Statistics) -> Scored:
    rates = result.win_rates

    def reach(level: float) -> tuple[Floats, Floats]:
        sure = _majorities(rates, level)
        return sure.sum(axis=1).astype(float), len(sure) - 1.0 - sure.sum(axis=0)

    scores, naive = ((_led(table).sum(axis=1) + len(table) - 1) / 2 for table in (rates.values, rates.naive))
    sure = _sure(rates)
    return Scored("majorities", scores, naive, reach, rates, sure, _pair_notes(result, rates))


def _kemeny(result: Statistics) -> Scored:
    rates = result.win_rates
    scores, naive = (-_kemeny_places(table) for table in (rates.values, rates.naive))

    def reach(level: float) -> tuple[Floats, Floats]:
        sure = _majorities(rates, level)
        worst, best = len(sure) - sure.sum(axis=1), 1.0 + sure.sum(axis=0)
        return np.minimum(-worst, scores), np.maximum(-best, scores)

    return Scored("kemeny place", scores, naive, reach, rates, _sure(rates), _pair_notes(result, rates), sign=-1)


def _bradley_terry(result: Statistics) -> Scored:
    """Noise can carry wins beyond what was played, so a ridge of one comparison keeps the strengths finite."""
    met = result.pair_voters
    wins, errors, bias, counted = result.wins()
    parts = _parts(met)
    scores, naive = (_strengths(met, one, result.items, parts) for one in (wins, counted))
    chance = expit(scores[:, None] - scores[None, :])
    weights = met * chance * (1 - chance)
    inverse = _inverse(weights)
    error, drawn = np.sqrt((inverse**2) @ errors**2), np.abs(inverse) @ bias
    alone = met.sum(axis=1) == 0
    scores, naive = np.where(alone, np.nan, scores), np.where(alone, np.nan, naive)

    def reach(level: float) -> tuple[Floats, Floats]:
        each = quantile(level) * error + drawn
        return scores - each, scores + each

    def above(level: float) -> Flags:
        low, high = reach(level)
        return np.asarray((parts[:, None] == parts[None, :]) & (low[:, None] > high[None, :]))

    shares = result.win_shares
    return Scored("log-strength", scores, naive, reach, shares, above, _disconnected(result.items, parts))


METHODS: dict[str, Callable[[Statistics], Scored]] = {
    "borda": _borda,
    "copeland": _copeland,
    "bradley-terry": _bradley_terry,
    "kemeny": _kemeny,
}


def _led(rates: Floats) -> Floats:
    """1 where the row has the majority, -1 where the column has, 0 where neither has or nothing is known."""
    return np.sign(np.nan_to_num(rates, nan=0.5) - 0.5)


def _majorities(rates: Estimate, level: float) -> Flags:
    with np.errstate(invalid="ignore"):
        return np.asarray(rates.interval(level)[0] > 0.5)


def _sure(rates: Estimate) -> Callable[[float], Flags]:
    return lambda level: _majorities(rates, level)


def _kemeny_places(rates: Floats) -> Floats:
    from rankdp.rankers.kemeny import kemeny

    places = np.empty(len(rates))
    places[kemeny(np.nan_to_num(rates, nan=0.5)).order] = np.arange(1, len(rates) + 1)
    return places


def _inverse(weights: Floats) -> Floats:
    """H^+ for the Fisher information of these weights of pairs; of long lists, the inverse of its diagonal."""
    total = weights.sum(axis=1)
    if len(weights) > DENSE_UP_TO:
        return np.diag(np.divide(1, total, out=np.zeros_like(total), where=total > 0))
    return np.asarray(np.linalg.pinv(np.diag(total) - weights, hermitian=True))


def _strengths(met: Longs, wins: Floats, items: tuple[str, ...], parts: Longs) -> Floats:
    """The fit to these wins, centred in every part; only how often two met is used, not who won."""
    design = PairCounts.from_dense(met / 2, items)
    theta = np.asarray(fit_wins(design, np.rint(2 * wins).astype(np.int64), ridge=1.0).theta)
    means = np.bincount(parts, theta) / np.bincount(parts)
    return np.asarray(theta - means[parts])


def _parts(met: Longs) -> Longs:
    """The part of each item: lists connect the items of a part, and no others."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(csr_array(met > 0), directed=False)[1], dtype=np.int64)


def _disconnected(items: tuple[str, ...], parts: Longs) -> tuple[str, ...]:
    found = [[items[place] for place in np.flatnonzero(parts == part)] for part in np.unique(parts)]
    if len(found) < 2:
        return ()
    named = " | ".join(_some(part) for part in found[:_SHOWN])
    rest = f" | and {len(found) - _SHOWN} more parts" if len(found) > _SHOWN else ""
    return (f"No list connects these {len(found)} parts, strengths compare within a part only: {named}{rest}.",)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _pair_notes(result: Statistics, rates: Estimate) -> tuple[str, ...]:
    first, second = np.triu_indices(len(result.items), 1)
    never, words = int((result.pair_voters[first, second] == 0).sum()), []
    if never:
        words.append(f"{never:,} of {len(first):,} pairs of items are listed together by nobody and count as even.")
    if np.max(rates.bias) >= _ANY:
        words.append(
            "How the noise moves two items together is not known for rankings this long, so no majority is sure: borda "
            "and bradley-terry say more."
        )
    return tuple(words)
