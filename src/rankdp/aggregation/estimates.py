"""Aggregate: unbiased shares, mean ranks and win rates from privatized rankings (docs/theory.md).

Counting synthetic rankings as if they were true is biased: strong minorities overrule weak majorities. But the law of
the noise is public, so each voter's synthetic positions b give a number h(b) whose mean over the noise is the truth
(`rankdp.theory.estimators`). With w(u) one over the public variance of voter u's mechanism (or 1),

    estimate = sum of w(u) h(u) / sum of w(u),    se^2 = sum of w(u)^2 (h(u) - estimate)^2 / (sum of w(u))^2 · n/(n-1),

n = (sum of w)^2 / sum of w^2 being the effective number of voters. The standard error is that for the population which
the voters were drawn from: it contains their own differences as well as the noise. Nothing here costs privacy.

Weights by precision suppose that the epsilon that a voter chose says nothing about their preferences;
``combine="voters"`` supposes nothing and pays in variance. How many items a voter lists does say something: weights are
scaled so that the voters of each length together count as many as they are, pair by pair.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from rankdp.aggregation.origin import Origin, known_origin
from rankdp.aggregation.respondents import quantile
from rankdp.aggregation.tallies import Tallies, Tally
from rankdp.checks import one_of
from rankdp.data.atomic import SIDECAR
from rankdp.data.counts import PairCounts
from rankdp.data.files import open_rankings
from rankdp.data.rankings import Rankings
from rankdp.data.tables import natural
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.release import Release
from rankdp.rankers.bradley_terry import fit_wins
from rankdp.theory.estimators import Estimator, rank_estimator, share_estimator
from rankdp.types import Floats, Longs

Combine = Literal["precision", "voters"]
"""How groups of voters with different noise are weighed: by one over its variance, or by their number."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Unbiased numbers with standard errors, beside what counting the synthetic rankings would say."""

    values: Floats
    standard_errors: Floats
    naive: Floats
    bias: float
    """The largest bias that is left: 0 up to rounding, unless some was allowed or was unavoidable."""

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of normal intervals, made longer by the bias; they may leave the range of a share.

        Parameters
        ----------
        level
            The confidence of each interval.
        """
        reach = quantile(level) * self.standard_errors + self.bias
        return self.values - reach, self.values + reach


class Aggregate:
    """What privatized rankings say together. Each statistic is computed, or refused, when it is asked for.

    Parameters
    ----------
    items
        The names of the items.
    tallies
        What was counted, one for each group of voters with the same length and noise.
    combine
        "precision" or "voters": how the groups are weighed.
    release
        What is promised about the rankings, and so about everything here; None where nothing is known about it.
    """

    def __init__(
        self,
        items: tuple[str, ...],
        tallies: Sequence[Tally],
        combine: Combine = "precision",
        release: Release[None] | None = None,
    ) -> None:
        one_of("combine", combine, get_args(Combine))
        if not tallies:
            raise InputError("no ranking lists two items or more: there is nothing to aggregate")
        self.items, self.combine, self.release = items, combine, release
        self._tallies = tuple(tallies)

    def __repr__(self) -> str:
        return f"Aggregate({self.voters:,} voters, {len(self.items)} items, {len(self._tallies)} mechanisms)"

    @property
    def voters(self) -> int:
        """The rankings that list at least two items."""
        return sum(tally.voters for tally in self._tallies)

    @property
    def mechanisms(self) -> tuple[RankingMechanism, ...]:
        """What the rankings went through, one for each length and epsilon."""
        return tuple(tally.mechanism for tally in self._tallies)

    @cached_property
    def win_rates(self) -> Estimate:
        """Row i, column j: the share of voters who prefer i to j, among those who list both; 1/2 for i = j."""
        parts, bias, ahead = [], 0.0, np.zeros((len(self.items),) * 2)
        for tally in self._tallies:
            if tally.pairs is None:
                raise tally.refusal or Unsupported("win rates are not known")
            count, score, square = np.moveaxis(tally.cells, 2, 0)
            weight = self._weight(tally.pairs.mean_variance + 0.25)
            length = tally.mechanism.items
            parts.append(_Part(length, weight, count + count.T, score - score.T, square + square.T))
            bias, ahead = max(bias, tally.pairs.bias), ahead + count
        values, errors = _weighted(parts)
        with np.errstate(invalid="ignore"):
            naive = ahead / (ahead + ahead.T)
        for table, itself in ((values, 0.0), (errors, 0.0), (naive, 0.5)):
            np.fill_diagonal(table, itself)
        return Estimate(values + 0.5, errors, naive, bias)

    @cached_property
    def mean_ranks(self) -> Estimate:
        """Each item's mean rank, 1 for the best, among the voters who list it."""
        length = self._one_length("mean ranks")
        return self._by_position(rank_estimator, (length**2 - 1) / 12, np.arange(1.0, length + 1))

    @cached_property
    def shares(self) -> Estimate:
        """Row i, column b: the share of voters who have item i at position b (from 0), among those who list it."""
        length = self._one_length("shares of positions")
        return self._by_position(share_estimator, (1 - 1 / length) / length, np.eye(length))

    @property
    def pair_voters(self) -> Longs:
        """Row i, column j: how many voters list both."""
        both = sum((tally.cells[:, :, 0] for tally in self._tallies if tally.pairs), np.zeros((len(self.items),) * 2))
        return np.rint(both + both.T).astype(np.int64)

    def scores(self, method: str = "borda") -> Floats:
        """Each item's score, higher for better.

        Parameters
        ----------
        method
            "borda": minus the mean rank; "copeland": against how many others the item has the majority, even ones
            counting half; "bradley-terry": the centred log-strength; "kemeny": minus the place in Kemeny's ranking.
        """
        one_of("method", method, SCORES)
        return SCORES[method](self)

    def order(self, method: str = "borda") -> tuple[str, ...]:
        """The items from best to worst; equal ones in the order of the items.

        Parameters
        ----------
        method
            "borda", "copeland", "bradley-terry" or "kemeny".
        """
        return tuple(self.items[place] for place in np.argsort(-self.scores(method), kind="stable"))

    def _weight(self, variance: float) -> float:
        return 1 / variance if self.combine == "precision" else 1.0

    def _one_length(self, what: str) -> int:
        lengths = sorted({tally.mechanism.items for tally in self._tallies})
        if len(lengths) > 1:
            raise Unsupported(
                f"{what} need rankings of one length, got {lengths[0]} to {lengths[-1]} items listed: use win rates"
            )
        return lengths[0]

    def _by_position(
        self, undo: Callable[[RankingMechanism, float], Estimator], between: float, naive: Floats
    ) -> Estimate:
        """Means, over the voters who list an item, of h and of ``naive`` at its position.

        ``between`` is the variance between voters who order the items at random.
        """
        parts, bias = [], 0.0
        for tally in self._tallies:
            estimator = undo(tally.mechanism, tally.bias)
            weight = self._weight(estimator.mean_variance + between)
            voters = tally.landed @ np.ones_like(naive)
            sums, squares = tally.landed @ estimator.values, tally.landed @ estimator.values**2
            parts.append(_Part(len(naive), weight, voters, sums, squares))
            bias = max(bias, estimator.bias)
        landed = np.sum([tally.landed for tally in self._tallies], axis=0)
        with np.errstate(invalid="ignore"):
            counted = landed @ naive / (landed @ np.ones_like(naive))
        return Estimate(*_weighted(parts), counted, bias)


def _borda(result: Aggregate) -> Floats:
    return -result.mean_ranks.values


def _copeland(result: Aggregate) -> Floats:
    lead = np.sign(_rates(result) - 0.5)
    return np.asarray((lead.sum(axis=1) + len(result.items) - 1) / 2)


def _bradley_terry(result: Aggregate) -> Floats:
    """Fitted to each item's debiased wins over all others.

    Noise can carry those beyond what was played, so a ridge of one comparison keeps the strengths finite.
    """
    rates, voters = _rates(result), result.pair_voters
    design = PairCounts.from_dense(voters / 2, result.items)  # only how often two met is used, not who won
    half_wins = np.rint(2 * (voters * rates).sum(axis=1)).astype(np.int64)
    strengths = fit_wins(design, half_wins, ridge=1.0).theta
    return np.asarray(strengths - strengths.mean())


def _kemeny(result: Aggregate) -> Floats:
    from rankdp.rankers.kemeny import kemeny

    places = np.empty(len(result.items))
    places[kemeny(_rates(result)).order] = np.arange(len(result.items))
    return -places


def _rates(result: Aggregate) -> Floats:
    rates = result.win_rates.values
    if np.isnan(rates).any():
        first, second = (int(place) for place in np.argwhere(np.isnan(rates))[0])
        raise InputError(
            f"no voter lists both {result.items[first]!r} and {result.items[second]!r}: "
            "a collective order needs every pair listed by some voter"
        )
    return rates


SCORES: dict[str, Callable[[Aggregate], Floats]] = {
    "borda": _borda,
    "copeland": _copeland,
    "bradley-terry": _bradley_terry,
    "kemeny": _kemeny,
}


class _Part(NamedTuple):
    """One group: its length and weight; and, cell by cell, its voters, the sum of h and the sum of its squares."""

    length: int
    weight: float
    voters: Floats
    sums: Floats
    squares: Floats


def _weighted(parts: Sequence[_Part]) -> tuple[Floats, Floats]:
    """The weighted mean and its standard error, cell by cell; NaN without a voter (for the error, with only one)."""
    whole = np.zeros(parts[0].sums.shape)
    mean, total, squared, spread = whole.copy(), whole.copy(), whole.copy(), whole.copy()
    present = {part.length: whole.copy() for part in parts}
    weighed = {part.length: whole.copy() for part in parts}
    for part in parts:
        present[part.length] += part.voters
        weighed[part.length] += part.weight * part.voters
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = [
            np.where(part.voters > 0, part.weight * present[part.length] / weighed[part.length], 0.0) for part in parts
        ]
        for weight, part in zip(weights, parts, strict=True):
            mean += weight * part.sums
            total += weight * part.voters
            squared += weight**2 * part.voters
        mean /= total
        for weight, part in zip(weights, parts, strict=True):
            spread += weight**2 * (part.squares - 2 * mean * part.sums + part.voters * mean**2)
        error = np.sqrt(np.maximum(spread, 0) / (total**2 - squared))
    return mean, np.where(np.isfinite(error), error, np.nan)


def aggregate(
    rankings: Rankings | Release[Rankings],
    mechanism: str | Sequence[str] | None = None,
    epsilon: Real | Iterable[Real] | None = None,
    *,
    combine: Combine = "precision",
    bias: float = 0.0,
) -> Aggregate:
    """Unbiased statistics of the true rankings behind synthetic ones.

    Parameters
    ----------
    rankings
        Synthetic rankings, or the release of them by ``privatize``, which knows its mechanism and epsilon. A partial
        ranking of k items went through the mechanism for k items.
    mechanism
        The name of what made the rankings, one for all or one per row; "auto" is the choice that ``privatize`` makes.
    epsilon
        At which epsilon, one for all or one per row; None stands for ``rankings.epsilons``.
    combine
        "precision" weighs voters of different epsilons by one over the noise's variance, "voters" weighs all alike.
    bias
        Allow a win rate this much bias (and a mean rank that share of its range) where this saves variance.
    """
    release = Release(None, rankings.guarantee, rankings.provenance) if isinstance(rankings, Release) else None
    each = [mechanism] if mechanism is None or isinstance(mechanism, str) else list(mechanism)
    code = {name: number for number, name in enumerate(dict.fromkeys(each))}
    table, origin = known_origin(rankings, next(iter(code), None), epsilon)
    if origin is None:
        raise InputError("mechanism must be given: rankings alone do not say what they went through")
    if len(each) != len(table) and each != [mechanism]:
        raise InputError(f"mechanism must be one name or one for each of the {len(table)} rankings, got {len(each)}")
    tallies = Tallies([origin, *(Origin.said(str(name), origin.epsilon) for name in list(code)[1:])], bias)
    tallies.add(table, np.array([code[name] for name in each]))
    return Aggregate(table.items, tallies.ordered(range(len(table.items))), combine, release)


def aggregate_file(
    path: str | os.PathLike[str],
    mechanism: str | None = None,
    epsilon: Real | None = None,
    *,
    epsilon_column: str | None = None,
    items: Iterable[Any] | None = None,
    combine: Combine = "precision",
    bias: float = 0.0,
) -> Aggregate:
    """Unbiased statistics of the true rankings behind a file of synthetic ones, read in a stream.

    PATH.release.json, which ``privatize_file`` writes, says what made the rankings and what is promised about them. The
    aggregate carries that promise. Where there is no such file, say what made them; where there is one, what you say
    must agree with it.

    Parameters
    ----------
    path
        The file of synthetic rankings.
    mechanism
        The name of what made the rankings.
    epsilon
        At which epsilon.
    epsilon_column
        The column with each voter's own epsilon, instead of ``epsilon``.
    items
        The public list of items; any other item in the file is refused.
    combine
        "precision" weighs voters of different epsilons by one over the noise's variance, "voters" weighs all alike.
    bias
        Allow a win rate this much bias (and a mean rank that share of its range) where this saves variance.
    """
    stated, release = Origin.beside(path), None
    if stated is not None:
        origin, release = stated
        origin.check(mechanism, epsilon, epsilon_column)
    elif mechanism is None:
        raise InputError(f"{os.fspath(path)}{SIDECAR} is missing: say which mechanism and epsilon made the rankings")
    elif (epsilon is None) == (epsilon_column is None):
        raise InputError("give either one epsilon for everyone or the column that holds each voter's own")
    else:
        origin = Origin.said(mechanism, None if epsilon is None else positive(epsilon), epsilon_column)
    tallies = Tallies([origin], bias)
    with open_rankings(path, items=items, epsilon_column=origin.epsilon_column) as reader:
        for batch in reader:
            tallies.add(batch)
        names, order = reader.items, list(range(len(reader.items)))
        if not reader.declared_items:
            order.sort(key=lambda item: natural(names[item]))
    return Aggregate(tuple(names[item] for item in order), tallies.ordered(order), combine, release)
