"""A collective order from what rankings say together: four methods, each counted in draws of the truth.

- borda: mean ranks, or where lists differ in length the mean share of listed rivals that an item beats: debiased scores
  with their covariance;
- bradley-terry: log-strengths from each item's wins over all others and from who was listed with whom. Strengths of
  items that no chain of lists connects are compared by the prior only;
- copeland: against how many others an item has the majority;
- kemeny: the place in Kemeny's ranking of the win rates.

Items are exchangeable, and their spread is integrated (``inference``): no design could follow the strengths. Copeland
and Kemeny are computed again from every draw of the table of win rates.

Every method also gives its result without debiasing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from rankdp.aggregation.means import Estimate
from rankdp.checks import one_of, share
from rankdp.inference.boards import centred, laplacian
from rankdp.inference.draws import COUNT, Draws, generator, reach
from rankdp.inference.exchangeable import exchangeable
from rankdp.inference.normal import Linear, fitted
from rankdp.publish.leaderboard import Leaderboard, build
from rankdp.types import Floats, Longs

_NONE = 1e-6  # a bias of the sum of wins that is rounding
_ANY = 0.5  # a bias of a win rate that says that any is possible
_SHOWN = 4  # parts, and items of a part, that a sentence names
_ORDERS = 200  # draws by Kemeny, each of which takes milliseconds to order
_FEWEST, _MOST_RATES = 100, 1 << 24  # draws of tables, and win rates that are held at once
_SCALE = 1 / 6  # of win shares: the median of the prior on their spread; evenly spread shares have 1/sqrt(12)


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
        """By item: its wins over all others, their covariance, their largest bias, and the naive count."""


class Scored(NamedTuple):
    """What a method says of the items; higher is better."""

    name: str
    draws: Draws
    """Of the true scores."""
    naive: Floats
    estimate: Estimate
    """What the scores were made from."""
    bias: Floats
    """The largest bias of each score that the draws do not contain."""
    limits: tuple[float, float] = (-np.inf, np.inf)
    """What scores are possible at all."""
    notes: tuple[str, ...] = ()
    sign: int = 1
    """-1 where people read the scores the other way round: a mean rank."""


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """A leaderboard, next to what counting the synthetic rankings would say."""

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
    """The leaderboard by a method; intervals are longer by the largest bias that the draws do not contain."""
    share("level", level)
    scored = score(result, method)
    board = build(result.items, scored.draws, level=level, score_name=scored.name, warnings=scored.notes)
    order, (least, most) = np.argsort(scored.draws.places), scored.limits
    low, high = (
        np.clip(board.low - scored.bias[order], least, most),
        np.clip(board.high + scored.bias[order], least, most),
    )
    board = replace(board, low=np.minimum(low, board.scores), high=np.maximum(high, board.scores))
    if scored.sign < 0:
        board = replace(board, scores=-board.scores, low=-board.high, high=-board.low)
    lead = scored.draws.values[:, order[0]] - scored.draws.values[:, order[1]]
    times = float((reach(level) * lead.std() / max(lead.mean(), 1e-9)) ** 2)
    places = np.empty(len(order), dtype=np.int64)
    places[np.argsort(-scored.naive, kind="stable")] = np.arange(1, len(order) + 1)
    return Board(board, scored.sign * scored.naive[order], places[order], scored.estimate, times)


def _borda(result: Statistics) -> Scored:
    """Higher is better, so the draws are of minus the mean rank."""
    estimate, sign = (result.mean_ranks, -1) if result.one_length else (result.win_shares, 1)
    name = "mean rank" if result.one_length else "win share"
    known = np.isfinite(estimate.values)
    middle, half = sum(estimate.limits) / 2, (estimate.limits[1] - estimate.limits[0]) / 2
    precision = _precision(result, estimate)
    centre = float((estimate.values[known] - middle).mean())
    off = sign * np.where(known, estimate.values - middle - centre, 0)
    drawn, _ = exchangeable(precision @ off, precision, 2 * half * _SCALE)
    draws = Draws(drawn - drawn.mean(axis=1, keepdims=True) + sign * (middle + centre))
    low, high = sorted(sign * end for end in estimate.limits)
    return Scored(name, draws, sign * estimate.naive, estimate, np.nan_to_num(estimate.bias), (low, high), sign=sign)


def _bradley_terry(result: Statistics) -> Scored:
    """An error of the wins becomes one of the strengths by the inverse of the information, and so does a bias."""
    met = result.pair_voters * (1.0 - np.eye(len(result.items)))
    wins, covariance, bias, counted = result.wins()

    def linear(sums: Floats) -> Linear:
        def at(theta: Floats) -> tuple[Floats, Floats, Floats]:
            chance = expit(theta[:, None] - theta)
            return sums - (met * chance).sum(axis=1), laplacian(met * chance * chance.T), covariance.copy()

        return at

    degrees = met.sum(axis=1)
    draws = Draws(centred(fitted(linear(wins), len(met), None)[2], degrees))
    naive = centred(fitted(linear(counted), len(met))[0], degrees)
    slope = linear(wins)(draws.estimate)[1]
    reached = np.abs(np.linalg.pinv(slope, hermitian=True)) @ bias if bias.max() > _NONE else np.zeros(len(met))
    notes = _disconnected(result.items, _parts(met))
    return Scored("log-strength", draws, naive, result.win_shares, reached, notes=notes)


def _copeland(result: Statistics) -> Scored:
    rates = result.win_rates
    draws = Draws(_majorities(_rate_draws(result, COUNT)))
    naive = _majorities(np.nan_to_num(rates.naive, nan=0.5)[None])[0]
    return Scored("majorities", draws, naive, rates, np.zeros(len(naive)), notes=_pair_notes(result, rates))


def _kemeny(result: Statistics) -> Scored:
    rates = result.win_rates
    draws = Draws(np.array([-_kemeny_places(table) for table in _rate_draws(result, _ORDERS)]))
    naive = -_kemeny_places(np.nan_to_num(rates.naive, nan=0.5))
    notes = _pair_notes(result, rates)
    return Scored("kemeny place", draws, naive, rates, np.zeros(len(naive)), notes=notes, sign=-1)


METHODS: dict[str, Callable[[Statistics], Scored]] = {
    "borda": _borda,
    "copeland": _copeland,
    "bradley-terry": _bradley_terry,
    "kemeny": _kemeny,
}


def _rate_draws(result: Statistics, count: int) -> Floats:
    """Draws of the table of win rates: 1/2 + s_i - s_j + c_ij, and a bias anywhere within its bound.

    s are the potentials that fit the known rates best, with the errors of win shares; c is what they leave, with the
    errors of rates. Both are exchangeable with integrated spreads: a rate that nobody knows follows the others.
    """
    rates, items, random = result.win_rates, len(result.items), generator()
    first, second = np.triu_indices(items, 1)
    known = np.isfinite(rates.values) & (result.pair_voters > 0) & ~np.eye(items, dtype=np.bool_)
    leads = np.where(known, rates.values - 0.5, 0)
    potentials = np.linalg.pinv(laplacian(known.astype(float)), hermitian=True) @ leads.sum(axis=1)
    placed = result.mean_ranks if result.one_length else result.win_shares
    precision = _precision(result, placed) * (np.ptp(placed.limits) * items / (items - 1)) ** 2
    count = max(_FEWEST, min(count, _MOST_RATES // items**2))
    place, _ = exchangeable(precision @ potentials, precision, _SCALE, count)
    said = np.where(known, np.maximum(rates.standard_errors, _NONE) ** -2.0, 0)[first, second]
    left = (leads - potentials[:, None] + potentials)[first, second]
    drawn = random.permutation(exchangeable(said * left, said, _SCALE, count)[0])  # s and c are paired at random
    drawn += place[:, first] - place[:, second] + rates.bias[first, second] * random.uniform(-1, 1, drawn.shape)
    tables = np.full((count, items, items), 0.5)
    tables[:, first, second] += drawn
    tables[:, second, first] -= drawn
    return tables


def _precision(result: Statistics, placed: Estimate) -> Floats:
    """The inverse of the covariance of mean ranks or win shares; 0 for items that nobody lists."""
    covariance, unknown = result.covariance(placed), ~np.isfinite(placed.values)
    covariance[unknown], covariance[:, unknown] = 0, 0
    precision = np.asarray(np.linalg.pinv(covariance, rcond=1e-10, hermitian=True), np.float64)
    precision[unknown], precision[:, unknown] = 0, 0
    return precision


def _majorities(tables: Floats) -> Floats:
    """Against how many others each item has the majority; even ones count half."""
    return np.asarray((np.sign(tables - 0.5).sum(axis=2) + tables.shape[1] - 1) / 2)


def _kemeny_places(rates: Floats) -> Floats:
    from rankdp.rankers.kemeny import kemeny

    places = np.empty(len(rates))
    places[kemeny(rates, rounds=0).order] = np.arange(1, len(rates) + 1)
    return places


def _parts(met: Floats) -> Longs:
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
    told = "only the prior compares strengths of different parts"
    return (f"No list connects these {len(found)} parts, {told}: {named}{rest}.",)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _pair_notes(result: Statistics, rates: Estimate) -> tuple[str, ...]:
    first, second = np.triu_indices(len(result.items), 1)
    never, words = int((result.pair_voters[first, second] == 0).sum()), []
    if never:
        pairs = f"{never:,} of {len(first):,} pairs of items"
        words.append(f"{pairs} are listed together by nobody; the others stand for them.")
    if np.max(rates.bias) >= _ANY:
        words.append(
            "How the noise moves two items together is not known for rankings this long, so no majority is sure: borda "
            "and bradley-terry say more."
        )
    return tuple(words)
