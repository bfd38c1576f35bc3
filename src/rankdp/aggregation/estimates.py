"""Aggregate: shares, mean ranks and win rates of the true rankings behind privatized ones.

Counting synthetic rankings as if they were true is biased: strong minorities overrule weak majorities. But the law of
the noise is public, so each voter's synthetic positions b give a number h(b) whose mean over the noise is the truth
(`rankdp.theory.debiasing`). The estimate is the weighted mean of h. Its standard error is that for the population which
the voters were drawn from: it contains their own differences as well as the noise. Nothing here costs privacy.

Where the noise cannot be debiased completely, intervals are longer by the largest bias, so that they hold whatever the
voters prefer. Boards by Borda are counted in draws of the true mean ranks: the debiased ones with their empirical
covariance, with a prior that makes items exchangeable and integrates their spread (`rankdp.inference.exchangeable`).

Weights by precision suppose that the epsilon that a voter chose says nothing about their preferences;
``combine="voters"`` supposes nothing and pays in variance. How many items a voter lists does say something: weights are
scaled so that the voters of each length together count as many as they are, pair by pair.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, get_args

import numpy as np

from rankdp.aggregation.means import Estimate, Part, estimate, evidence
from rankdp.aggregation.methods import Board, board_of, score
from rankdp.aggregation.origin import Origin, known_origin
from rankdp.aggregation.spark_tallies import SparkTallies
from rankdp.aggregation.tallies import Tallies, Tally
from rankdp.checks import one_of, whole
from rankdp.data.atomic import SIDECAR
from rankdp.data.cells import natural
from rankdp.data.files import open_rankings
from rankdp.data.rankings import Rankings
from rankdp.data.spark import SparkRankings, is_spark
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.inference.draws import Draws
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.exact import Real, one_each, positive
from rankdp.privacy.release import Release
from rankdp.report.notebook import Displayable
from rankdp.report.results import ResultTable
from rankdp.theory.debiasing import Debiasing, Family, pair_family, rank_family, share_family, top_family
from rankdp.theory.pair_laws import pairs
from rankdp.types import Floats, Longs

Combine = Literal["precision", "voters"]
"""How groups of voters with different noise are weighed: by how much their rows say, or by their number."""

_COVARIANCE_UP_TO, _FEW = 200, 30  # items; and voters, of which fewer may agree by chance

_Builder = Callable[[tuple[RankingMechanism, ...], tuple[float, ...]], Family]


class Aggregate(Displayable):
    """What privatized rankings say together. Each statistic is computed, or refused, when it is asked for.

    Parameters
    ----------
    tallies
        What was counted, group by group.
    combine
        "precision" or "voters": how the groups are weighed.
    release
        What is promised about the rankings, and so about everything here; None where nothing is known about it.
    """

    def __init__(
        self,
        tallies: Tallies,
        combine: Combine = "precision",
        release: Release[None] | None = None,
    ) -> None:
        one_of("combine", combine, get_args(Combine))
        if not tallies.groups:
            raise InputError("no ranking lists two items or more: there is nothing to aggregate")
        self.items, self.combine, self.release = tallies.items, combine, release
        self._tallies = tallies

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per item, best first by Borda; ``board`` has the other methods."""
        return self.board().leaderboard.rows()

    def results(self) -> ResultTable:
        """The items for readers, best first by Borda."""
        return self.board().leaderboard.results()

    def headline(self) -> str:
        """Who leads by Borda, and which items cannot be told apart from the leader."""
        return self.board().leaderboard.headline()

    @property
    def voters(self) -> int:
        """The rankings that list at least two items."""
        return sum(tally.voters for tally in self._tallies.groups)

    @property
    def left_out(self) -> int:
        """The rankings that list one item: they have no order."""
        return self._tallies.single

    @property
    def mechanisms(self) -> tuple[RankingMechanism, ...]:
        """What the rankings went through, one for each length and epsilon."""
        return tuple(dict.fromkeys(tally.made_by for tally in self._tallies.groups))

    @cached_property
    def item_voters(self) -> Longs:
        """How many voters list each item."""
        listed = np.asarray(sum(tally.landed.sum(axis=1) for tally in self._tallies.groups))
        return np.asarray(np.rint(listed).astype(np.int64))

    @cached_property
    def pair_voters(self) -> Longs:
        """Row i, column j: how many voters list both."""
        return self._tallies.pair_voters()

    @cached_property
    def win_rates(self) -> Estimate:
        """Row i, column j: the share of voters who prefer i to j, among those who list both; 1/2 for i = j."""
        numbers, levels = evidence(self.pair_voters)
        debiased = self._debiased(pair_family, numbers)
        tables = []
        for tally, group, choices, _ in debiased:
            table = np.zeros((len(numbers), tally.mechanism.items, tally.mechanism.items))
            table[:, *pairs(tally.mechanism.items)] = [choice.scores[group][:, 0] for choice in choices]
            tables.append(table)
        parts, ahead = [], np.zeros((len(self.items),) * 2)
        for (tally, group, choices, _), cells in zip(debiased, self._tallies.pair_sums(tables, levels), strict=True):
            count, score, square = np.moveaxis(cells, 2, 0)
            sums = count + count.T, score - score.T, square + square.T
            parts.append(Part(tally.mechanism.items, tally.voters, group, choices, 1.0, *sums))
            ahead += count
        with np.errstate(invalid="ignore"):
            naive = ahead / (ahead + ahead.T)
        found = estimate(parts, naive, levels, 0.5, (0.0, 1.0))
        for table, itself in zip(
            (found.values, found.standard_errors, naive, found.bias), (0.5, 0, 0.5, 0), strict=True
        ):
            np.fill_diagonal(table, itself)
        return found

    @cached_property
    def mean_ranks(self) -> Estimate:
        """Each item's mean rank, 1 for the best, among the voters who list it."""
        length = self._one_length("mean ranks")
        return self._by_position(rank_family, lambda _: 1.0, (length + 1) / 2, (1.0, float(length)))

    @cached_property
    def win_shares(self) -> Estimate:
        """Of the others that a voter lists with the item, the share that the item beats; the mean over those voters.

        It is (length - rank) / (length - 1), so it stands for mean ranks where lists differ in length.
        """
        return self._by_position(rank_family, lambda length: -1 / (length - 1), 0.5, (0.0, 1.0))

    @cached_property
    def shares(self) -> Estimate:
        """Row i, column b: the share of voters who have item i at position b (from 0), among those who list it."""
        length = self._one_length("shares of positions")
        return self._by_position(share_family, lambda _: 1.0, 1 / length, (0.0, 1.0))

    def in_top(self, top: int) -> Estimate:
        """The share of voters who have each item among their first ``top``; for lists, who list it.

        Parameters
        ----------
        top
            How many items of a ranking count.
        """
        length = self._one_length("shares of a top list")
        whole("top", top, 1, length - 1)
        return self._by_position(top_family(top), lambda _: 1.0, top / length, (0.0, 1.0))

    def covariance(self, estimate: Estimate) -> Floats:
        """The covariance of the errors of mean ranks or win shares, of a table that every voter lists completely.

        The empirical one: the sum over voters of products of what their rows say about two items, minus the means, with
        one more voter who ranks at random (a few equal answers leave some doubt), pulled towards the covariance of
        exchangeable items. Where voters list different items, the errors of items count as independent.

        Parameters
        ----------
        estimate
            The mean ranks or win shares.
        """
        diagonal = np.diag(np.nan_to_num(estimate.standard_errors**2))
        items = len(self.items)
        if not self._complete or items > _COVARIANCE_UP_TO or self.voters < _FEW:
            return diagonal
        debiased = self._debiased(rank_family, [float(self.voters)])
        scores = [choices[0].scores[group][:, 0] for _, group, choices, _ in debiased]
        weights = [float(choices[0].weights[group]) for _, group, choices, _ in debiased]
        tables = [np.triu(np.outer(said, said), 1)[None] for said in scores]
        cells = self._tallies.pair_sums(tables, np.zeros((items, items), np.int32))
        total = sum(weight * tally.voters for weight, (tally, *_) in zip(weights, debiased, strict=True))
        mean, products = np.zeros(items), np.zeros((items, items))
        for (tally, *_), said, weight in zip(debiased, scores, weights, strict=True):
            mean += weight * (tally.landed @ said) / total
        for (tally, *_), said, weight, cell in zip(debiased, scores, weights, cells, strict=True):
            sums = tally.landed @ said
            both = cell[:, :, 1] + cell[:, :, 1].T + np.diag(tally.landed @ said**2)
            off = np.outer(sums, mean)
            products += weight**2 * (both - off - off.T + tally.voters * np.outer(mean, mean))
        at_random = max(weight**2 * float(said.var()) for said, weight in zip(scores, weights, strict=True))
        products += at_random * (items * np.eye(items) - 1) / (items - 1)
        effective = total**2 / sum(
            weight**2 * tally.voters for weight, (tally, *_) in zip(weights, debiased, strict=True)
        )
        return _towards_exchangeable(np.asarray(products / total**2), effective)

    def wins(self) -> tuple[Floats, Floats, Floats, Floats]:
        """How many listed rivals each item beats in all rankings, their covariance, largest bias, and naive count."""
        total = np.zeros((4, len(self.items)))
        for length, *_ in self._lengths():
            found = self._by_position(rank_family, lambda length: -1 / (length - 1), 0.5, (0.0, 1.0), only=length)
            listed = sum(tally.landed.sum(axis=1) for tally in self._tallies.groups if tally.mechanism.items == length)
            met = listed * (length - 1)
            error = (met * found.standard_errors) ** 2
            total += np.nan_to_num([met * found.values, error, met * found.bias, met * found.naive])
        covariance = self.voters**2 * self.covariance(self.mean_ranks) if self._complete else np.diag(total[1])
        return total[0], covariance, total[2], total[3]

    def scores(self, method: str = "borda") -> Floats:
        """Each item's score, the mean of its draws, higher for better; an item that nobody lists has the prior's mean.

        Parameters
        ----------
        method
            "borda": minus the mean rank, or the win share where lists differ in length; "copeland": against how many
            others the item has the majority, even ones counting half; "bradley-terry": the log-strength;
            "kemeny": minus the place in Kemeny's ranking.
        """
        return self.draws(method).estimate

    def order(self, method: str = "borda") -> tuple[str, ...]:
        """The items from best to worst; ties in the order of the items.

        Parameters
        ----------
        method
            "borda", "copeland", "bradley-terry" or "kemeny".
        """
        return tuple(self.items[place] for place in np.argsort(-self.scores(method), kind="stable"))

    def draws(self, method: str = "borda") -> Draws:
        """Draws of the true scores, one column per item: intervals, ranks and probabilities are counted in them.

        Parameters
        ----------
        method
            As in ``scores``.
        """
        return score(self, method).draws

    def board(self, method: str = "borda", level: float = 0.95) -> Board:
        """A leaderboard: scores with their intervals, ranks, and which places cannot be told apart.

        Parameters
        ----------
        method
            "borda", "copeland", "bradley-terry" or "kemeny".
        level
            The confidence of the intervals.
        """
        return board_of(self, method, level)

    @property
    def _complete(self) -> bool:
        """Whether every voter lists every item."""
        return all(tally.mechanism.items == len(self.items) for tally in self._tallies.groups)

    @property
    def one_length(self) -> bool:
        """Whether all lists are equally long."""
        return len({mechanism.items for mechanism in self.mechanisms}) == 1

    def _one_length(self, what: str) -> int:
        lengths = sorted({mechanism.items for mechanism in self.mechanisms})
        if len(lengths) > 1:
            raise Unsupported(
                f"{what} need rankings of one length, got {lengths[0]} to {lengths[-1]} items listed: use win shares "
                "or win rates"
            )
        return lengths[0]

    def _lengths(self) -> Iterator[tuple[int, list[Tally], tuple[float, ...]]]:
        """For every length its groups, and their shares of its voters."""
        for length in sorted({mechanism.items for mechanism in self.mechanisms}):
            alike = [tally for tally in self._tallies.groups if tally.mechanism.items == length]
            voters = sum(tally.voters for tally in alike)
            yield length, alike, tuple(tally.voters / voters for tally in alike)

    def _debiased(self, family: _Builder, numbers: Sequence[float]) -> list[tuple[Tally, int, list[Debiasing], Floats]]:
        """For every group its number among the groups debiased together, and its rows' scores, by level of evidence.

        Last come the scores without debiasing.
        """
        found = []
        shared = 1 if self.combine == "precision" else 3  # the length; or the epsilon and the origin too
        for _, group in groupby(self._tallies.groups, lambda tally: tally.alike[:shared]):
            tallies = list(group)
            voters = sum(tally.voters for tally in tallies)
            shares = tuple(tally.voters / voters for tally in tallies)
            built = family(tuple(tally.mechanism for tally in tallies), shares)
            chosen = [built.debiased(number) for number in numbers]
            found += [(tally, place, chosen, built.target) for place, tally in enumerate(tallies)]
        return found

    def _by_position(
        self,
        family: _Builder,
        scale: Callable[[int], float],
        middle: float,
        limits: tuple[float, float],
        only: int | None = None,
    ) -> Estimate:
        """Means over the voters who list an item of ``middle`` + ``scale``(length) times what its position says.

        ``only`` takes the voters of one length alone.
        """
        numbers, levels = evidence(self.item_voters)
        parts, counted = [], []
        for tally, group, choices, truth in self._debiased(family, numbers):
            length, times = tally.mechanism.items, scale(tally.mechanism.items)
            if only in (None, length):
                voters = np.repeat(tally.landed.sum(axis=1)[:, None], truth.shape[1], axis=1).astype(float)
                sums, squares = np.zeros_like(voters), np.zeros_like(voters)
                for level, choice in enumerate(choices):
                    mine, scores = levels == level, times * choice.scores[group]
                    sums[mine], squares[mine] = tally.landed[mine] @ scores, tally.landed[mine] @ scores**2
                parts.append(Part(length, tally.voters, group, choices, times, voters, sums, squares))
                counted.append(times * (tally.landed @ truth))
        with np.errstate(invalid="ignore"):
            naive = middle + np.sum(counted, axis=0) / np.sum([part.voters for part in parts], axis=0)
        return estimate(parts, naive, levels[:, None], middle, limits)


def aggregate(
    rankings: Rankings | Release[Any] | Any,
    mechanism: str | Sequence[str] | None = None,
    epsilon: Real | Iterable[Real] | None = None,
    *,
    combine: Combine = "precision",
) -> Aggregate:
    """What the true rankings behind synthetic ones say together.

    Parameters
    ----------
    rankings
        Synthetic rankings, or the release of them by ``privatize``, which knows its mechanism and epsilon. A partial
        ranking of k items went through the mechanism for k items. A Spark DataFrame is counted by its tasks.
    mechanism
        The mechanism that made the rankings, one for all or one per row; "auto" is the choice that ``privatize`` makes.
    epsilon
        The epsilon of the rankings, one for all or one per row; None stands for ``rankings.epsilons``.
    combine
        "precision" weighs voters of different epsilons by the precision of their rows, "voters" weighs all equally.
    """
    release = Release(None, rankings.guarantee, rankings.provenance) if isinstance(rankings, Release) else None
    held = rankings.value if isinstance(rankings, Release) else rankings
    if is_spark(held):
        return Aggregate(_on_spark(held, release, mechanism, epsilon), combine, release)
    each = [mechanism] if mechanism is None or isinstance(mechanism, str) else list(mechanism)
    code = {name: number for number, name in enumerate(dict.fromkeys(each))}
    table, origin = known_origin(rankings, next(iter(code), None), epsilon)
    if origin is None:
        raise InputError("mechanism must be given: rankings alone do not say what they went through")
    if len(each) != len(table) and each != [mechanism]:
        raise InputError(f"mechanism must be one name or one for each of the {len(table)} rankings, got {len(each)}")
    origins = [origin, *(Origin.said(str(name), origin.epsilon) for name in list(code)[1:])]
    codes = np.array([code[name] for name in each])
    return Aggregate(Tallies(origins, lambda: [(table, codes)]), combine, release)


def _on_spark(frame: Any, release: Release[None] | None, mechanism: Any, epsilon: Any) -> SparkTallies:
    """The tallies of a Spark DataFrame, from its release or from what the caller says about it."""
    if release is not None:
        if mechanism is not None or epsilon is not None:
            raise InputError("a release knows its mechanism and epsilon: give neither")
        origin = Origin.stated(release.provenance.parameters)
    elif not isinstance(mechanism, str) or epsilon is None or one_each(epsilon):
        raise InputError("mechanism and epsilon must be given, one of each for all rankings of a Spark table")
    else:
        origin = Origin.said(mechanism, positive(epsilon))
    return SparkTallies(origin, SparkRankings.of(frame, origin.offset_column))


def aggregate_file(
    path: str | os.PathLike[str],
    mechanism: str | None = None,
    epsilon: Real | None = None,
    *,
    epsilon_column: str | None = None,
    items: Iterable[Any] | None = None,
    combine: Combine = "precision",
) -> Aggregate:
    """What the true rankings behind a file of synthetic ones say together, read in a stream.

    PATH.release.json, which ``privatize_file`` writes, says what made the rankings and what is promised about them. The
    aggregate carries that promise. Where there is no such file, say what made them; where there is one, what you say
    must agree with it.

    Parameters
    ----------
    path
        The file of synthetic rankings.
    mechanism
        The mechanism that made the rankings.
    epsilon
        The epsilon of the rankings.
    epsilon_column
        The column with each voter's own epsilon, instead of ``epsilon``.
    items
        The public list of items; any other item in the file is refused.
    combine
        "precision" weighs voters of different epsilons by the precision of their rows, "voters" weighs all equally.
    """
    stated, release = Origin.of_file(path), None
    if stated is not None:
        origin, release = stated
        origin.check(mechanism, epsilon, epsilon_column)
    elif mechanism is None:
        made = (Setting("mechanism"), " and ", Setting("epsilon"), " or ", Setting("epsilon_column"))
        raise InputError(f"{os.fspath(path)}{SIDECAR} is missing: give ", *made)
    elif (epsilon is None) == (epsilon_column is None):
        raise InputError("give either ", Setting("epsilon"), " or ", Setting("epsilon_column"))
    else:
        origin = Origin.said(mechanism, None if epsilon is None else positive(epsilon), epsilon_column)
    return Aggregate(_read(path, origin, items), combine, release)


def _read(path: str | os.PathLike[str], origin: Origin, items: Iterable[Any] | None) -> Tallies:
    """The tallies of a file, which is read again for every statistic of pairs."""
    public = origin.lists if items is None else items
    listed = None if public is None else list(public)
    declared = listed is not None

    def batches() -> Iterator[tuple[Rankings, None]]:
        nonlocal declared
        own, public = origin.epsilon_column, origin.offset_column
        with open_rankings(path, items=listed, ties="keep", epsilon_column=own, offset_column=public) as reader:
            declared = reader.declared_items
            for batch in reader:
                yield batch, None

    def sort(names: Sequence[str]) -> list[int]:
        return sorted(range(len(names)), key=lambda item: 0 if declared else natural(names[item]))

    return Tallies([origin], batches, sort)


def _towards_exchangeable(covariance: Floats, answers: float) -> Floats:
    """An empirical covariance of few answers, pulled towards the one of exchangeable items with the same trace.

    Its inverse would be too certain: with n answers and p dimensions about n/(n - p) times. The share of the pull has
    the least expected error for normal answers (Chen, Wiesel, Eldar and Hero, IEEE Trans. Signal Processing 58, 2010,
    formula (23)); errors add up to 0, so p is one less than the items.

    Parameters
    ----------
    covariance
        Of the errors of all items.
    answers
        The effective number of answers.
    """
    items = len(covariance)
    trace, square, free = float(np.trace(covariance)), float((covariance**2).sum()), items - 1
    uneven = (answers + 1 - 2 / free) * (square - trace**2 / free)
    share = min(1.0, ((1 - 2 / free) * square + trace**2) / uneven) if uneven > 0 else 1.0
    even = trace / free * (np.eye(items) - 1 / items)
    return np.asarray((1 - share) * covariance + share * even)
