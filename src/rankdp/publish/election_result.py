"""The published result of an election: an order, scores with intervals, shared ranks, and how sure it all is.

Everything here is computed from released and public numbers, with noise that is drawn again from a public seed: it
costs nothing, and whoever has the release can repeat it. The truth that it speaks of is the count of these very ballots
without noise; whether other voters would vote alike is another matter.

- *Plausible truths* are the released numbers minus noise that is drawn again. By scores, intervals and ranges of ranks
  are counted in them (``inference.draws``).
- *Ranks* by pairs and in runoffs: two candidates are told apart when one is ahead in a share 1 - (1 - level)/(m - 1) of
  the plausible truths; so all m - 1 comparisons of a candidate hold together with the probability ``level``. A rank is
  1 plus the candidates who are placed before and surely ahead: those who cannot be told apart share it.
- *Winners.* How likely they are the true ones, at least. By scores and pairs this is 2p - 1, where p is the share of
  plausible truths with the same winners; by pairs, of those in which every winner beats every other candidate, which
  puts them first whatever the rule. Why not p: plausible truths are right on average over elections and say too much in
  a close one, where the noise gives one of two level candidates a lead that is evidence for nothing. For two who are
  level, 2p - 1 is about uniform between 0 and 1, so 1/2 on average: as often as right.
- *Runoffs.* The product over the rounds of how likely the true tallies decide alike. The order in which several go out
  one after the other does not matter if they have fewer votes together than anyone else has alone (and no quota is in
  reach): then whoever goes out first, the others follow, whatever is transferred. Of all ways to cut the rounds into
  such runs the likeliest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdp.data.ballots import SHARES
from rankdp.errors import Unsupported
from rankdp.inference.draws import Draws
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.rankers.condorcet import condorcet_winner, copeland, ranked_pairs, schulze
from rankdp.rankers.kemeny import kemeny
from rankdp.rankers.runoff import Round, Runoff
from rankdp.report.notebook import Displayable
from rankdp.report.results import ResultRow, ResultTable
from rankdp.types import Flags, Floats, Longs

_SEED = 1
_DRAWS, _MOST_NUMBERS, _FEWEST = 4000, 20_000_000, 100
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
class CountedRound:
    """A round of a runoff, as it was stated; tallies are in votes, of candidates by name."""

    tallies: dict[str, float]
    elected: tuple[str, ...]
    eliminated: str | None
    transfers: dict[str, float]
    """By candidate elected in this round: the share of each ballot's worth that goes on."""
    half_width: float
    """Of the interval of every tally of this round."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Election(Displayable):
    """A published result; candidates stand in the order of the result, the first one first.

    Parameters
    ----------
    rule
        A name of ``ballot_rules.RULES``.
    items
        The candidates in order; only the winners where nothing else was released.
    winners
        As many of them as there are seats; by "condorcet" nobody where no candidate beats every other.
    winners_probability
        How likely, at least, the winners are those of the true count; None where nothing beside them was released.
    ballots
        How many ballots there are, None where that is secret.
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
    rounds, quota
        The transcript of a runoff, and Droop's quota where there is one.
    warnings
        What a reader should know.
    """

    rule: str
    items: tuple[str, ...]
    winners: tuple[str, ...]
    winners_probability: float | None = None
    ballots: int | None = None
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
    warnings: tuple[str, ...] = ()

    def headline(self) -> str:
        """Who won, by which rule, and how sure that is."""
        names, of = ", ".join(self.winners), ""
        if self.ballots is not None:
            of = f", of {self.ballots:,} ballot{'s' * (self.ballots != 1)}"
        nobody = "no candidate beats every other in the released margins"
        if self.rule != "condorcet":
            said = [f"Elected by {RULE_NAMES[self.rule]}: {names}{of}".removesuffix(".") + "."]
        elif self.winners:
            said = [f"The Condorcet winner is {names}{of}: the released margins over all other candidates are above 0."]
        else:
            said = [f"There is no Condorcet winner{of}: {nobody}."]
        if self.winners_probability is not None and self.winners_probability < TOLD:
            said.append("The noise is too large to say how likely the exact count gives the same.")
        elif self.winners_probability is not None:
            least = "at least " if self.winners_probability <= _HIGHEST else ""
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
    items: Sequence[str], scores: Floats, noise: NoisyBorda | NoisyVotes, rule: str, seats: int, level: float
) -> Election:
    """The result of noisy scores, Borda's or votes.

    Parameters
    ----------
    items, scores
        The candidates and what was released of them, in points or in votes.
    noise
        The mechanism that released it.
    rule
        The name of the rule.
    seats
        How many win.
    level
        The confidence of the intervals.
    """
    if isinstance(noise, NoisyBorda):
        scores = scores - scores.mean()  # true ones add up to 0
    order = np.argsort(-scores, kind="stable")
    errors = _score_errors(noise, len(items))
    draws = Draws(np.concatenate([scores - errors.T, scores + errors.T])[:, order])
    truths = draws.values.T
    result = Election(
        rule,
        tuple(items[item] for item in order),
        tuple(items[item] for item in order[:seats]),
        _floor(truths[:seats].min(axis=0) > truths[seats:].max(axis=0)),
        score_name="votes" if isinstance(noise, NoisyVotes) else "points",
        level=level,
    )
    (low, high), (first, last) = draws.interval(level), draws.rank_range(level)
    first, last = np.maximum.accumulate(first), np.maximum.accumulate(last)
    return replace(
        result,
        scores=tuple(scores[order].tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        ranks=tuple(first.tolist()),
        rank_low=tuple(first.tolist()),
        rank_high=tuple(last.tolist()),
    )


def by_pairs(
    items: Sequence[str], margins: Floats, noise: NoisyMargins, rule: str, seats: int, level: float
) -> Election:
    """The result of noisy margins: the rule is applied to the margins as they were released.

    Parameters
    ----------
    items, margins
        The candidates and the released margins.
    noise
        The mechanism that released them.
    rule
        A name of ``ORDERS``.
    seats, level
        As for ``by_scores``.
    """
    order: Longs = np.asarray(ORDERS[rule](margins), np.int64)
    margins = margins[order][:, order]
    errors = noise.noise(_draws(len(items) ** 2), SeededBits(_SEED))
    truths = margins - errors
    first = condorcet_winner(margins)
    if rule == "condorcet":
        seats, same = int(first is not None), _condorcet_winners(truths) == (-1 if first is None else first)
    else:
        same = (truths[:, :seats, seats:] > 0).all(axis=(1, 2))
    names = tuple(items[item] for item in order)
    result = Election(
        rule,
        names,
        names[:seats],
        _floor(same),
        score_name="points",
        level=level,
        margins=margins,
        margin_half_width=float(np.quantile(np.abs(errors[:, *np.triu_indices(len(items), 1)]), level)),
        condorcet_winner=None if first is None else names[first],
    )
    half = float(np.quantile(np.abs(errors.sum(axis=2)), level))
    return _finished(result, margins.sum(axis=1), half, (truths > 0).mean(axis=0))


def _condorcet_winners(tables: Floats) -> Longs:
    """Who beats every other in each table of margins, -1 where nobody does."""
    beats_all = (tables > 0).sum(axis=2) == tables.shape[-1] - 1
    return np.where(beats_all.any(axis=1), beats_all.argmax(axis=1), -1)


def by_rounds(items: Sequence[str], counted: Runoff, noise: NoisyVotes, rule: str, level: float) -> Election:
    """The result of a runoff: a candidate's score is the last tally, and two are compared in the round one left.

    Parameters
    ----------
    items, counted
        The candidates and the count as it was stated.
    noise
        The mechanism that released its tallies.
    rule
        "irv" or "stv".
    level
        As for ``by_scores``.
    """
    m, order = len(items), list(counted.order)
    place = {item: row for row, item in enumerate(order)}
    ahead = np.full((m, m), 0.5)
    scores, halves, rounds, plausible = np.zeros(m), np.zeros(m), [], []
    draws = _draws(m * len(counted.rounds))
    for number, held in enumerate(counted.rounds):
        standing = np.flatnonzero(held.standing)
        tallies = held.tallies[standing] / SHARES
        errors = noise.noise(len(standing) * draws, SeededBits(_SEED), number).reshape(len(standing), draws) / SHARES
        half = float(np.quantile(np.abs(errors), level))
        truths = tallies[:, None] - errors
        plausible.append(truths)
        rows = [place[item] for item in standing.tolist()]
        ahead[np.ix_(rows, rows)] = _ahead(truths)  # until the round in which one of two left
        scores[rows], halves[rows] = tallies, half
        named = {items[item]: float(held.tallies[item] / SHARES) for item in standing.tolist()}
        out = None if held.eliminated is None else items[held.eliminated]
        went_on = {items[item]: float(value) for item, value in held.transfers.items()}
        rounds.append(CountedRound(named, tuple(items[item] for item in held.elected), out, went_on, half))
    result = Election(
        rule,
        tuple(items[item] for item in order),
        tuple(items[item] for item in counted.elected),
        _same_winners(counted, plausible),
        score_name="votes",
        level=level,
        rounds=tuple(rounds),
        quota=counted.quota,
    )
    return _finished(result, scores, halves, ahead)


def _same_winners(counted: Runoff, plausible: Sequence[Floats]) -> float:
    """A floor of the probability that the true tallies lead to the same winners, from the last round to the first."""
    rounds = counted.rounds
    floors = [*([0.0] * len(rounds)), 1.0]
    for number in reversed(range(len(rounds))):
        out, alike = [], [(1, _decided_alike(rounds[number], plausible[number], counted.quota))]
        for last in range(number, len(rounds)):
            leaving = rounds[last].eliminated
            if leaving is None:
                break
            out.append(leaving)
            if len(out) > 1:
                alike.append((len(out), _out_together(rounds[number], plausible[number], out, counted.quota)))
        floors[number] = max(chance * floors[number + length] for length, chance in alike)
    return floors[0]


def _decided_alike(held: Round, truths: Floats, quota: int | None) -> float:
    """How likely the true tallies decide a round as the released ones did."""
    if held.eliminated is not None:
        return _out_together(held, truths, [held.eliminated], quota)
    assert quota is not None
    elected: Flags = np.isin(np.flatnonzero(held.standing), held.elected)
    return float(((truths >= quota) == elected[:, None]).all(axis=0).mean())


def _out_together(held: Round, truths: Floats, out: Sequence[int], quota: int | None) -> float:
    """How likely these have fewer votes together than anyone else who stands has, and nobody can reach the quota."""
    leaving: Flags = np.isin(np.flatnonzero(held.standing), out)
    together = np.maximum(truths[leaving], 0).sum(axis=0) if len(out) > 1 else truths[leaving][0]
    alike = together < truths[~leaving].min(axis=0)
    if quota is not None:
        alike &= truths[~leaving].max(axis=0) + (together if len(out) > 1 else 0) < quota
    return float(alike.mean())


def _floor(same: Flags) -> float:
    """How likely the winners are the true ones, at least; ``same`` says which plausible truths have them (2p - 1)."""
    return max(0.0, 2 * float(same.mean()) - 1)


def _finished(result: Election, scores: Floats, half: float | Floats, ahead: Floats) -> Election:
    """With intervals, ranks and warnings; ``ahead[i, j]`` is how likely place i is rightly before place j."""
    m = len(scores)
    surely = np.triu(ahead >= 1 - (1 - result.level) / (m - 1))  # in a cycle someone behind may beat someone before
    ranks = np.maximum.accumulate(1 + surely.sum(axis=0))
    lowest = np.maximum(m - surely.sum(axis=1), ranks)
    return replace(
        result,
        scores=tuple(scores.tolist()),
        low=tuple((scores - half).tolist()),
        high=tuple((scores + half).tolist()),
        ranks=tuple(ranks.tolist()),
        rank_low=tuple(ranks.tolist()),
        rank_high=tuple(lowest.tolist()),
    )


def _chance(value: float) -> str:
    if value > _HIGHEST:
        return "above 99.9%"
    return "below 0.1%" if value < 1 - _HIGHEST else f"{value:.1%}"


def _draws(numbers: int) -> int:
    """How often noise of so many numbers is drawn again."""
    return max(_FEWEST, min(_DRAWS, _MOST_NUMBERS // numbers))


def _score_errors(noise: NoisyBorda | NoisyVotes, m: int) -> Floats:
    """Draws of the noise in columns, in points or votes."""
    if isinstance(noise, NoisyBorda):
        drawn = noise.noise(_draws(m * m), SeededBits(_SEED)).T  # the time for a draw grows with m^2
        return np.asarray(drawn - drawn.mean(axis=0))
    draws = _draws(m)
    return noise.noise(m * draws, SeededBits(_SEED)).reshape(m, draws) / SHARES


def _ahead(truths: Floats) -> Floats:
    """The share of columns in which the row's candidate is before the column's."""
    return np.array([(row > truths).mean(axis=1) for row in truths])
