"""The published result of an election: an order, scores with intervals, shared ranks, and how sure it all is.

Everything here is counted in *draws* of the exact count: the released numbers with noise that is drawn again, from a
public seed, taken off (``inference.draws``). It costs nothing, and whoever has the release can repeat it. The truth
that it speaks of is the count of these very ballots without noise; whether other voters would vote alike is another
matter.

- *Intervals* are quantiles of the draws.
- *Ranks.* By scores, the ranks in the draws. By pairs and in runoffs a candidate's rank in a draw is 1 plus the number
  of candidates ahead: the ones who beat it, or who had more votes in the last round that counted both.
- *Winners.* The share of draws with the same winners. By pairs the rule is applied to each draw in which some winner
  does not beat every other candidate (with more than ``_MOST_ORDERED`` candidates such draws count as different).
- *Winners of runoffs.* Only the rounds that were held are released; had another candidate gone out, the next tallies
  would be unknown. So draws tell a lower bound: the share of them in which every round is decided alike. The order in
  which several go out one after the other does not matter if they have fewer votes together than anyone else has alone
  (and no quota is in reach): then whoever goes out first, the others follow. A draw counts if its rounds can be cut
  into such runs in some way.

A result without noise is its own only draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdp.errors import Unsupported
from rankdp.inference.draws import Draws
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.rounds import NoisyNumber, NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.rankers.condorcet import condorcet_winner, copeland, ranked_pairs, schulze
from rankdp.rankers.kemeny import kemeny
from rankdp.rankers.runoff import Round, Runoff
from rankdp.report.notebook import Displayable
from rankdp.report.results import ResultRow, ResultTable, listed
from rankdp.types import Flags, Floats, Longs

_SEED = 1
_DRAWS, _MOST_NUMBERS, _FEWEST = 2000, 10_000_000, 100
_TABLES = 400  # draws of all margins, to some of which a rule is applied
_MOST_ORDERED = 10  # candidates: Kemeny's rule takes milliseconds up to here
_HIGHEST = 0.999  # a probability above it is not told
TOLD = 0.05  # a floor below this tells nothing
RULE_NAMES = {
    "plurality": "first places",
    "borda": "Borda's count",
    "irv": "an instant runoff",
    "stv": "the single transferable vote",
    "kemeny": "Kemeny's rule",
    "copeland": "Copeland's rule",
    "ranked-pairs": "ranked pairs",
    "schulze": "Schulze's rule",
}

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
        half = self.noise.noise(count // 2, SeededBits(_SEED + 1))
        return self.value + np.concatenate([-half, half])


@dataclass(frozen=True, slots=True)
class CountedRound:
    """A round of a runoff, as it was stated; tallies are in votes, of candidates by name."""

    tallies: dict[str, float]
    exhausted: float
    """The worth of the ballots that list no continuing candidate."""
    elected: tuple[str, ...]
    eliminated: str | None
    transfers: dict[str, float]
    """By candidate whose surplus goes on after this round: the share of each ballot's worth that does."""
    half_width: float
    """Of the interval of every tally of this round, and of the exhausted votes."""
    gains: dict[str, float]
    """Votes more than in the round before."""
    gain_half_width: float
    """Of the interval of every gain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Election(Displayable):
    """A published result; candidates are in the order of the result.

    Parameters
    ----------
    rule
        A name of ``ballot_rules.RULES``.
    items
        The candidates in order; only the winners where nothing else was released.
    winners
        As many of them as there are seats; by "condorcet" nobody where no candidate beats every other.
    winners_probability, at_least
        How likely the winners are those of the exact count, and whether that is a lower bound; None where nothing
        beside the winners was released.
    ballots, ballots_low, ballots_high
        How many ballots there are; with an interval where that is noisy, None where it is not known.
    score_name, scores, low, high
        What is counted, and the interval of each score; empty where none was released.
    ranks, rank_low, rank_high
        Ranks from 1, shared where candidates cannot be told apart, and their intervals.
    level
        The confidence of the intervals.
    margins, margin_half_width
        By pairs: how many more ballots put the row's candidate first than the column's, and how exact that is.
    condorcet_winner
        By pairs: who beats every other in the released margins, None where nobody does.
    rounds, quota, quota_low, quota_high
        The transcript of a runoff, and Droop's quota where there is one, with the interval of the exact count's.
    method
        Of a runoff: how surpluses are transferred (a name of ``runoff.METHODS``), or when it ends ("two", "majority").
    cleaning
        The rule by which the ballots were cleaned, in a sentence.
    warnings
        What a reader should know.
    """

    rule: str
    items: tuple[str, ...]
    winners: tuple[str, ...]
    winners_probability: float | None = None
    at_least: bool = False
    ballots: float | None = None
    ballots_low: float | None = None
    ballots_high: float | None = None
    score_name: str = ""
    scores: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    ranks: tuple[int, ...] = ()
    rank_low: tuple[int, ...] = ()
    rank_high: tuple[int, ...] = ()
    level: float = 0.95
    margins: Floats | None = None
    margin_half_width: float | None = None
    condorcet_winner: str | None = None
    rounds: tuple[CountedRound, ...] = ()
    quota: int | None = None
    quota_low: float | None = None
    quota_high: float | None = None
    method: str = ""
    cleaning: str = ""
    warnings: tuple[str, ...] = ()

    def headline(self) -> str:
        """Who won, by which rule, and how sure that is."""
        names, of = listed(self.winners, "and"), ""
        if self.ballots is not None and self.ballots_low is not None and self.ballots_high is not None:
            of = f" from about {self.ballots:,.0f} ± {(self.ballots_high - self.ballots_low) / 2:,.0f} ballots"
        elif self.ballots is not None:
            of = f" from {self.ballots:,} ballot{'s' * (self.ballots != 1)}"
        nobody = "no candidate beats every other in the released margins"
        if self.rule != "condorcet":
            said = [f"Elected by {RULE_NAMES[self.rule]}{of}: {names}".removesuffix(".") + "."]
        elif self.winners:
            said = [f"{names} is the Condorcet winner{of}: the released margins over all other candidates are above 0."]
        else:
            said = [f"There is no Condorcet winner{of}: {nobody}."]
        if self.at_least and (self.winners_probability or 0) < TOLD:
            said.append("The noise is too large to say how likely the exact count gives the same.")
        elif self.winners_probability is not None and self.low != self.high:
            least = "at least " if self.at_least and self.winners_probability <= _HIGHEST else ""
            same = f"elects the same candidate{'s' * (len(self.winners) > 1)}"
            said.append(
                f"The probability that the exact count {'says the same' if self.rule == 'condorcet' else same} is "
                f"{least}{_chance(self.winners_probability)}."
            )
        if not self.scores:
            said.append("Only the names were released; how many votes each got was not.")
        return " ".join(said)

    def results(self) -> ResultTable:
        """The candidates for readers; refused where only names were released."""
        if not self.scores:
            raise Unsupported("only the winners' names were released: there is nothing to draw")
        mark = "Condorcet winner" if self.rule == "condorcet" else "elected"
        rows = [
            ResultRow(
                name=name,
                estimate=self.scores[row],
                low=self.low[row],
                high=self.high[row],
                ranks=(self.rank_low[row], self.rank_high[row]),
                mark=mark if name in self.winners else "",
            )
            for row, name in enumerate(self.items)
        ]
        return ResultTable(rows=rows, measure=self.score_name, level=self.level, subject="candidate")

    def rows(self) -> list[dict[str, Any]]:
        """One plain record a candidate."""
        if not self.scores:
            return [{"candidate": name, "place": place, "winner": True} for place, name in enumerate(self.items, 1)]
        return [
            {
                "candidate": name,
                self.score_name: self.scores[row],
                "low": self.low[row],
                "high": self.high[row],
                "rank": self.ranks[row],
                "rank_low": self.rank_low[row],
                "rank_high": self.rank_high[row],
                "winner": name in self.winners,
            }
            for row, name in enumerate(self.items)
        ]


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
    result = _start(rule, [items[item] for item in order], seats, level, "points" if borda else "votes")
    result = replace(result, winners_probability=float(same.mean()))
    result = _with_number(result, sizes, number)
    return _finished(result, scores[order], Draws(truths), Draws(truths))


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
    errors = np.zeros((1, m, m)) if noise is None else noise.noise(_TABLES // 2, SeededBits(_SEED))
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
        _start(rule, names, seats, level, "points"),
        winners_probability=float(same.mean()),
        at_least=m > _MOST_ORDERED and rule != "condorcet",
        margins=margins,
        margin_half_width=_half(errors[:, *np.triu_indices(m, 1)].ravel(), level),
        condorcet_winner=None if first is None else names[first],
    )
    sizes = number.draws(len(truths))
    points = Draws(_points(truths.sum(axis=2), sizes))
    ahead = Draws((truths > 0).sum(axis=2).astype(np.float64))
    result = _with_number(result, sizes, number)
    return _finished(result, _points(margins.sum(axis=1), np.float64(number.value)), points, ahead)


def _condorcet_winners(tables: Floats) -> Longs:
    """Who beats every other in each table of margins, -1 where nobody does."""
    beats_all = (tables > 0).sum(axis=2) == tables.shape[-1] - 1
    return np.where(beats_all.any(axis=1), beats_all.argmax(axis=1), -1)


def by_rounds(
    items: Sequence[str],
    counted: Runoff,
    noise: NoisyVotes | None,
    rule: str,
    level: float,
    method: str,
    cast: int | None,
) -> Election:
    """The result of a runoff: a candidate's score is the last tally, and two are compared in the round one left.

    Parameters
    ----------
    items, counted
        The candidates and the count as it was stated.
    noise
        The mechanism that released its tallies; None for an exact count.
    rule
        "irv" or "stv".
    level
        As for ``by_scores``.
    method
        How surpluses are transferred, or when an instant runoff ends.
    cast
        How many ballots there are, where that is public.
    """
    m, order = len(items), list(counted.order)
    place = {item: row for row, item in enumerate(order)}
    scores, rounds, truths, said = np.zeros(m), list[CountedRound](), list[Floats](), np.zeros(m + 1)
    draws = _draws(m * len(counted.rounds)) // 2
    for number, held in enumerate(counted.rounds):
        stated = np.append(held.tallies, held.exhausted) / counted.unit
        errors = np.zeros((1, m + 1))
        if noise is not None:
            drawn = noise.noise((m + 1) * draws, SeededBits(_SEED + number), number)
            errors = drawn.reshape(draws, m + 1) / counted.unit
        truths.append(np.concatenate([stated - errors, stated + errors]))
        standing = np.flatnonzero(held.standing).tolist()
        scores[[place[item] for item in standing]] = stated[standing]
        moved = (truths[-1] - stated) - ((truths[-2] - said) if number else 0)
        gains = {items[item]: float(stated[item] - said[item]) for item in standing} if number else {}
        rounds.append(
            CountedRound(
                {items[item]: float(stated[item]) for item in standing},
                float(stated[m]),
                tuple(items[item] for item in held.elected),
                None if held.eliminated is None else items[held.eliminated],
                {items[item]: float(value) for item, value in held.transfers.items()},
                _half((truths[-1] - stated)[:, m], level),
                gains,
                _half(moved[:, m], level) if number else 0.0,
            )
        )
        said = stated
    cast_draws = truths[0].sum(axis=1) if cast is None else np.full(len(truths[0]), float(cast))
    valid = cast_draws - np.maximum(truths[0][:, m], 0) if cast is not None else truths[0][:, :m].sum(axis=1)
    quotas = None if counted.quota is None else np.maximum(np.floor(valid / (counted.seats + 1)) + 1, 1)
    result = replace(
        _start(rule, [items[item] for item in order], counted.seats, level, "votes"),
        winners_probability=float(_same_seats(counted, truths, quotas).mean()),
        at_least=noise is not None,
        rounds=tuple(rounds),
        quota=counted.quota,
        method=method,
    )
    if quotas is not None:
        low, high = Draws(quotas[:, None]).interval(level)
        result = replace(result, quota_low=min(low[0], result.quota), quota_high=max(high[0], result.quota))
    result = _with_number(result, cast_draws, None if cast is None else Number(cast))
    lasts = np.stack([truths[_last(counted, item)][:, item] for item in order], axis=1)
    return _finished(result, scores, Draws(lasts), Draws(_ahead(counted, truths)[:, order]))


def _last(counted: Runoff, item: int) -> int:
    """The last round that counted a candidate."""
    return max(number for number, held in enumerate(counted.rounds) if held.standing[item])


def _ahead(counted: Runoff, truths: Sequence[Floats]) -> Floats:
    """In each draw, how many a candidate is ahead of, in the last round that counted both."""
    m = len(counted.order)
    last = [_last(counted, item) for item in range(m)]
    beaten = np.zeros((len(truths[0]), m))
    for one in range(m):
        for other in range(one + 1, m):
            held = truths[min(last[one], last[other])]
            ahead = held[:, one] > held[:, other]
            beaten[:, one] += ahead
            beaten[:, other] += ~ahead
    return beaten


def _same_seats(counted: Runoff, truths: Sequence[Floats], quotas: Floats | None) -> Flags:
    """The draws whose rounds are decided as the released ones were, in runs of eliminations whose order is free."""
    rounds = counted.rounds
    reached: list[Flags] = [np.zeros(len(truths[0]), np.bool_) for _ in range(len(rounds) + 1)]
    reached[0][:] = True
    surpluses: dict[int, Floats] = {}
    for number, held in enumerate(rounds):
        if quotas is not None:
            surpluses |= {item: truths[number][:, item] - quotas for item in held.elected}
        reached[number + 1] |= reached[number] & _decided_alike(held, truths[number], quotas, surpluses)
        for item in held.transfers:
            surpluses.pop(item, None)
        out: list[int] = []
        for last in range(number, len(rounds)):
            leaving = rounds[last].eliminated
            if leaving is None or rounds[last].elected:
                break
            out.append(leaving)
            if len(out) > 1:
                reached[last + 1] |= reached[number] & _out_together(held, truths[number], out, quotas)
    return reached[-1]


def _decided_alike(held: Round, truths: Floats, quotas: Floats | None, surpluses: dict[int, Floats]) -> Flags:
    """The draws that elect, put out and transfer as the released tallies did."""
    standing = np.flatnonzero(held.standing)
    alike = np.ones(len(truths), np.bool_)
    if quotas is not None:
        alike &= ((truths[:, standing] >= quotas[:, None]) == np.isin(standing, held.elected)).all(axis=1)
    elif held.elected:
        alike &= 2 * truths[:, held.elected[0]] > np.maximum(truths[:, standing], 0).sum(axis=1)
    if held.eliminated is not None:
        others = [item for item in standing if item != held.eliminated and item not in held.elected]
        alike &= truths[:, held.eliminated] < truths[:, others].min(axis=1)
    if len(held.transfers) == 1 and len(surpluses) > 1:  # the largest of several surpluses
        (item,) = held.transfers
        rest = [over for other, over in surpluses.items() if other != item]
        alike &= surpluses[item] >= np.max(rest, axis=0)
    return alike


def _out_together(held: Round, truths: Floats, out: Sequence[int], quotas: Floats | None) -> Flags:
    """The draws in which these have fewer votes together than anyone else who stands, and nobody reaches the quota."""
    others = [item for item in np.flatnonzero(held.standing) if item not in out]
    together = np.maximum(truths[:, list(out)], 0).sum(axis=1)
    alike: Flags = together < truths[:, others].min(axis=1)
    return alike if quotas is None else alike & (truths[:, others].max(axis=1) + together < quotas)


def _start(rule: str, names: Sequence[str], seats: int, level: float, score_name: str) -> Election:
    return Election(rule, tuple(names), tuple(names[:seats]), score_name=score_name, level=level)


def _points(scores: Any, ballots: Any) -> Any:
    """Borda points from centred scores: one for every candidate ranked lower, a half for every one tied with it."""
    m = scores.shape[-1]
    return (scores + (m - 1) * np.asarray(ballots)[..., None]) / 2


def _with_number(result: Election, sizes: Floats, number: Number | None) -> Election:
    """With the number of ballots, as a fact where it is public."""
    if number is not None and number.noise is None:
        return replace(result, ballots=number.value)
    drawn = Draws(sizes[:, None])
    low, high = drawn.interval(result.level)
    stated = float(drawn.estimate[0]) if number is None else float(number.value)
    return replace(result, ballots=stated, ballots_low=float(low[0]), ballots_high=float(high[0]))


def _finished(result: Election, scores: Floats, draws: Draws, ahead: Draws) -> Election:
    """With intervals and ranks; candidates are in the order of the result."""
    (low, high), (first, last) = draws.interval(result.level), ahead.rank_range(result.level)
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


def _chance(value: float) -> str:
    if value > _HIGHEST:
        return "above 99.9%"
    return "below 0.1%" if value < 1 - _HIGHEST else f"{value:.1%}"


def _draws(numbers: int) -> int:
    """How many draws of this many numbers."""
    return 2 * max(_FEWEST, min(_DRAWS, _MOST_NUMBERS // numbers) // 2)


def _score_errors(noise: NoisyBorda | NoisyVotes | None, m: int) -> Floats:
    """Draws of the noise, one per row, in points or votes."""
    if noise is None:
        return np.zeros((1, m))
    if isinstance(noise, NoisyBorda):
        drawn = noise.noise(_draws(m * m) // 2, SeededBits(_SEED))  # the time for a draw grows with m^2
        return np.asarray(drawn - drawn.mean(axis=1, keepdims=True))
    draws = _draws(m) // 2
    return noise.noise(m * draws, SeededBits(_SEED)).reshape(draws, m) / noise.unit


def _half(errors: Floats, level: float) -> float:
    """Half the width of an interval around a number with such errors."""
    low, high = Draws(np.concatenate([errors, -errors])[:, None]).interval(level)
    return float(high[0] - low[0]) / 2
