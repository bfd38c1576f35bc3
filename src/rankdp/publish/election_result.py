"""The published result of an election: an order, scores with intervals, shared ranks, and how sure it all is.

Everything here is computed from released and public numbers, with noise that is drawn again from a public seed: it
costs nothing, and whoever has the release can repeat it. The truth that it speaks of is the count of these very ballots
without noise; whether other voters would vote alike is another matter.

- *Intervals* are released number +- the quantile of abs(noise), of each number alone.
- *Plausible truths* are what the true numbers may be, given the released ones (``leaderboard.plausible_truths``).
- *Ranks.* Two candidates are told apart when one is ahead in a share 1 - (1 - level)/(m - 1) of the plausible truths;
  so all m - 1 comparisons of a candidate hold together with the probability ``level``. A rank is 1 plus the candidates
  who are surely ahead: those who cannot be told apart share it.
- *Winners.* How likely they are the true ones, at least. By scores, the share of plausible truths with the same ones.
  By pairs, that with every winner beating every other, which puts them first whatever the rule. In a runoff, the
  product over its rounds of how likely the true tallies decide alike. The order in which several go out one after the
  other does not matter if they have fewer votes together than anyone else has alone (and no quota is in reach): then
  whoever goes out first, the others follow, whatever is transferred. Of all ways to cut the rounds into such runs the
  likeliest is taken.
- *Close races.* Plausible truths are right on average over elections, and say too much in one that is closer than most:
  of two who are level the noise makes one the winner by some lead, and that lead is evidence for nothing. So by scores
  and pairs no more is said than 2p - 1, p the least share of plausible truths in which a winner is ahead of another
  candidate. For two who are level, 2p - 1 is about uniform between 0 and 1, so 1/2 on average: as often as right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdp.data.ballots import SHARES
from rankdp.errors import Unsupported
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.publish.close_pairs import Answer
from rankdp.publish.leaderboard import indistinct, plausible_truths
from rankdp.rankers.condorcet import condorcet_probabilities, copeland, ranked_pairs, schulze
from rankdp.rankers.kemeny import kemeny
from rankdp.rankers.margin_belief import MarginBelief
from rankdp.rankers.runoff import Round, Runoff
from rankdp.report.notebook import Shown
from rankdp.report.plots import Intervals
from rankdp.types import Flags, Floats, Longs

_SEED = 1
_DRAWS, _MOST_NUMBERS, _FEWEST = 4000, 20_000_000, 100
_SURE = 0.9  # below this probability a result says that its winners are not certain
_CAUTIOUS = 0.12  # the spread of cycles, of the ballots, when it is said how sure a result is
TOLD = 0.05  # a floor below this tells nothing

PAIR_RULES: dict[str, Callable[[Floats], Any]] = {
    "kemeny": lambda margins: kemeny(np.maximum(margins, 0)).order,
    "copeland": copeland,
    "ranked-pairs": ranked_pairs,
    "schulze": schulze,
}
"""From margins to an order, best first."""


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


@dataclass(frozen=True, slots=True)
class AskedPair:
    """The margin of one candidate over another, by name, and the half width of its interval."""

    first: str
    second: str
    margin: float
    half_width: float


@dataclass(frozen=True, slots=True, eq=False)
class Election(Shown):
    """A published result; candidates stand in the order of the result, the first one first.

    Parameters
    ----------
    rule
        "borda", "pairs", "close-pairs", "plurality", "irv" or "stv".
    items
        The candidates in order; only the winners where nothing else was released.
    winners
        So many of them as there are seats.
    winners_probability
        How likely, at least, the winners are those of the true count; None where nothing beside them was released.
    ballots
        How many ballots there are, None where that is secret; a noisy number where one was released.
    score_name, scores, low, high
        What is counted, and the interval of each score; empty where none was released.
    ranks, rank_low, rank_high
        Ranks from 1, shared where candidates cannot be told apart, and their intervals.
    level
        The confidence of the intervals.
    margins, margin_half_width
        By pairs: how many more ballots put the row's candidate first than the column's, and how exact that is.
    condorcet_winner, condorcet_probability
        By pairs: who most likely beats every other, and how likely.
    asked
        By close pairs: those that were asked for, the better placed candidate first.
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
    condorcet_probability: float | None = None
    asked: tuple[AskedPair, ...] = ()
    rounds: tuple[CountedRound, ...] = ()
    quota: int | None = None
    warnings: tuple[str, ...] = ()

    def intervals(self) -> Intervals:
        """Scores with their intervals, to be drawn; refused where only names were released."""
        if not self.scores:
            raise Unsupported("only the winners' names were released: there is nothing to draw")
        axis = f"{self.score_name}, with the {self.level:.0%} interval"
        return Intervals(self.items, self.scores, self.low, self.high, axis)

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
    truths = _truths(scores, errors)[order]
    half = float(np.quantile(np.abs(errors), level))
    result = Election(
        rule,
        tuple(items[item] for item in order),
        tuple(items[item] for item in order[:seats]),
        _sureness(truths[:seats, None] > truths[seats:]),
        score_name="votes" if isinstance(noise, NoisyVotes) else "points",
        level=level,
    )
    return _finished(result, scores[order], half, _ahead(truths))


def by_pairs(
    items: Sequence[str], margins: Floats, noise: NoisyMargins, pairs_by: str, seats: int, level: float
) -> Election:
    """The result of noisy margins.

    Parameters
    ----------
    items, margins
        The candidates and the released margins.
    noise
        The mechanism that released them.
    pairs_by
        A name of ``PAIR_RULES``.
    seats, level
        As for ``by_scores``.
    """
    m, upper = len(items), np.triu_indices(len(items), 1)
    scores, cycles = _parts(margins)
    kept, square = _kept(cycles, noise)
    order = pair_order(margins, noise, pairs_by)
    drawn = noise.noise(_draws(m * m), SeededBits(_SEED))
    score_errors, cycle_errors = _parts(drawn)
    own = np.random.default_rng(_SEED).standard_normal(drawn.shape)
    own = _parts((own - own.swapaxes(1, 2)) * np.sqrt(kept * square / max(2 * m * (m - 2), 1)))[1]
    truths = _joined(_truths(scores, score_errors.T).T, kept * (cycles - cycle_errors) + (1 - kept) * own)
    result = Election(
        "pairs",
        tuple(items[item] for item in order),
        (),
        level=level,
        margins=margins[order][:, order],
        margin_half_width=float(np.quantile(np.abs(drawn[:, *upper]), level)),
    )
    return _by_majorities(result, seats, scores[order], score_errors, truths[:, order][:, :, order])


def by_close_pairs(
    items: Sequence[str],
    noise: NoisyBorda,
    scores: Floats,
    answers: Sequence[Answer],
    belief: MarginBelief,
    ballots: float,
    pairs_by: str,
    seats: int,
    level: float,
) -> Election:
    """The result of noisy scores and the noisy margins of some pairs.

    Parameters
    ----------
    items, noise, scores
        The candidates, the mechanism for the scores and what it released.
    answers
        What was released of pairs.
    belief
        What follows from both about all margins; it says the order.
    ballots
        How many there are, about.
    pairs_by, seats, level
        As for ``by_pairs``.
    """
    m = len(items)
    order = np.asarray(PAIR_RULES[pairs_by](belief.margins()[0]), np.int64)
    cautious = MarginBelief(scores, noise.noise_variance, ballots, _CAUTIOUS)
    for first, second, margins, question in answers:
        cautious.hear(first, second, margins, question.noise_variance)
    truths = cautious.draws(_draws(m * m), np.random.default_rng(_SEED))[:, order][:, :, order]
    asked = _asked(items, order, answers, level)
    result = Election("close-pairs", tuple(items[item] for item in order), (), level=level, asked=asked)
    return _by_majorities(result, seats, (scores - scores.mean())[order], _score_errors(noise, m), truths)


def _by_majorities(result: Election, seats: int, scores: Floats, errors: Floats, truths: Floats) -> Election:
    """With winners and how sure they are; ``truths`` are tables of margins that may be the true ones, in its order."""
    chances = condorcet_probabilities(truths)
    likeliest = int(chances.argmax())
    result = replace(
        result,
        winners=result.items[:seats],
        winners_probability=_sureness(np.moveaxis(truths[:, :seats, seats:] > 0, 0, -1)),
        score_name="points",
        condorcet_winner=result.items[likeliest],
        condorcet_probability=float(chances[likeliest]),
    )
    half = float(np.quantile(np.abs(errors), result.level))
    return _finished(result, scores, half, (truths > 0).mean(axis=0))


def _asked(items: Sequence[str], order: Longs, answers: Sequence[Answer], level: float) -> tuple[AskedPair, ...]:
    """Every pair once; where it was asked for twice, the mean weighted by how exact the answers are."""
    place = np.argsort(order)
    heard: dict[tuple[int, int], list[tuple[float, float, Floats]]] = {}
    for number, (first, second, margins, question) in enumerate(answers):
        errors, weight = (
            question.noise(_draws(len(first)), SeededBits(_SEED + number))[:, 0],
            1 / question.noise_variance,
        )
        for one, other, margin in zip(first.tolist(), second.tolist(), margins.tolist(), strict=True):
            turned = place[one] > place[other]
            heard.setdefault((other, one) if turned else (one, other), []).append(
                (weight, -margin if turned else margin, errors)
            )
    told = []
    for one, other in sorted(heard, key=lambda pair: (place[pair[0]], place[pair[1]])):
        parts = heard[one, other]
        total, draws = sum(weight for weight, _, _ in parts), min(len(errors) for _, _, errors in parts)
        margin = sum(weight * value for weight, value, _ in parts) / total
        error = np.sum([weight * errors[:draws] for weight, _, errors in parts], axis=0) / total
        told.append(AskedPair(items[one], items[other], margin, float(np.quantile(np.abs(error), level))))
    return tuple(told)


def pair_order(margins: Floats, noise: NoisyMargins, pairs_by: str) -> Longs:
    """The order of noisy margins, best first.

    The cyclic part is shrunk by how much of it must be noise (its mean square against the variance of the noise,
    empirical Bayes) before a rule orders the candidates: where there are few ballots this is nearly Borda's order.

    Parameters
    ----------
    margins, noise, pairs_by
        As for ``by_pairs``.
    """
    scores, cycles = _parts(margins)
    order: Longs = np.asarray(PAIR_RULES[pairs_by](_joined(scores, _kept(cycles, noise)[0] * cycles)), np.int64)
    return order


def _kept(cycles: Floats, noise: NoisyMargins) -> tuple[float, float]:
    """The share of the cyclic part that is not noise, and its mean square."""
    square = float((cycles[np.triu_indices(len(cycles), 1)] ** 2).mean())
    return (max(0.0, 1 - noise.cyclic_variance / square) if len(cycles) > 2 and square else 0.0), square


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
        truths = _truths(tallies, errors)
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


def _sureness(ahead: Flags) -> float:
    """How likely the winners are the true ones, at least; rows are winners, columns others, then plausible truths."""
    together, least = float(ahead.all(axis=(0, 1)).mean()), float(ahead.mean(axis=-1).min())
    return max(0.0, min(together, 2 * least - 1))


def _finished(result: Election, scores: Floats, half: float | Floats, ahead: Floats) -> Election:
    """With intervals, ranks and warnings; ``ahead[i, j]`` is how likely place i is rightly before place j."""
    m = len(scores)
    surely = ahead >= 1 - (1 - result.level) / (m - 1)
    ranks = np.maximum.accumulate(1 + surely.sum(axis=0))
    lowest = np.maximum(m - surely.sum(axis=1), ranks)
    result = replace(
        result,
        scores=tuple(scores.tolist()),
        low=tuple((scores - half).tolist()),
        high=tuple((scores + half).tolist()),
        ranks=tuple(ranks.tolist()),
        rank_low=tuple(ranks.tolist()),
        rank_high=tuple(lowest.tolist()),
    )
    return replace(result, warnings=tuple(_doubts(result, surely)))


def _doubts(result: Election, surely: Flags) -> list[str]:
    """That winners are not certain, and which places cannot be told apart."""
    found = []
    seats = len(result.winners)
    if result.winners_probability is not None and result.winners_probability < _SURE:
        told = f"with a probability of at least {result.winners_probability:.0%} the exact count gives the same."
        if result.winners_probability < TOLD:
            told = "how likely the exact count gives the same cannot be told from what was released."
        found.append(f"The noise leaves doubt about the winner{'s' * (seats > 1)}: {told}")
    return [*found, *indistinct(surely)]


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


def _truths(centres: Floats, errors: Floats) -> Floats:
    """Plausible truths, whose spread may be anything from far below the noise to beyond what was released."""
    variance = float(errors.var())
    spreads = np.geomspace(variance / 100, 10 * max(variance, float(centres.var())), 61)
    return plausible_truths(centres, errors, spreads, np.zeros(61))


def _ahead(truths: Floats) -> Floats:
    """The share of columns in which the row's candidate is before the column's."""
    return np.array([(row > truths).mean(axis=1) for row in truths])


def _parts(margins: Floats) -> tuple[Floats, Floats]:
    """Scores, and the cyclic part times m (``mechanisms.ballots.margins``), of one table or of several."""
    scores = margins.sum(axis=-1)
    return scores, margins.shape[-1] * margins - (scores[..., :, None] - scores[..., None, :])


def _joined(scores: Floats, cycles: Floats) -> Floats:
    joined: Floats = (scores[..., :, None] - scores[..., None, :] + cycles) / cycles.shape[-1]
    return joined
