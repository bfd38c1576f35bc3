"""The published result of an election: an order, scores with intervals, shared ranks, and how sure it all is.

``election_draws`` and ``runoff_draws`` say how it is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rankdp.errors import Unsupported
from rankdp.report.notebook import Displayable
from rankdp.report.results import ResultRow, ResultTable, listed
from rankdp.types import Floats

_HIGHEST = 0.999  # a probability above it is not told
TOLD = 0.5  # a floor below this does not even say that the result is more likely right than wrong
CANDIDATES_FROM_BALLOTS = "The list of candidates was taken from the ballots: who is listed at all is not protected."
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
        How likely the exact count is to elect the same winners, and whether that is a lower bound; None where only
        the winners were released.
    ballots, ballots_low, ballots_high
        How many ballots there are; with an interval where that is noisy, None where it is not known. A noisy number
        by "plurality" is the sum of the votes: of the ballots that vote for somebody.
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
            of += " that vote for somebody" if self.rule == "plurality" else ""
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
            said += self._last_two()
            said.append("Some rounds are too close, with this noise, to say how likely the exact count is to agree.")
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

    def _last_two(self) -> list[str]:
        """How the last round of an instant runoff ended, which readers look for first."""
        if self.rule != "irv" or not self.rounds or len(self.rounds[-1].tallies) < 2:
            return []
        (first, votes), (second, others) = sorted(self.rounds[-1].tallies.items(), key=lambda of: -of[1])[:2]
        return [f"The last round ended {first} {votes:,.0f}, {second} {others:,.0f}."]

    def results(self) -> ResultTable:
        """The candidates for readers; refused where only names were released."""
        if not self.scores:
            raise Unsupported("only the winners' names were released: there is nothing to draw")
        mark = "Condorcet winner" if self.rule == "condorcet" else "elected"
        exact = self.low == self.high  # an exact count has no intervals
        rows = [
            ResultRow(
                name=name,
                estimate=self.scores[row],
                low=math.nan if exact else self.low[row],
                high=math.nan if exact else self.high[row],
                ranks=(self.rank_low[row], self.rank_high[row]),
                mark=mark if name in self.winners else "",
            )
            for row, name in enumerate(self.items)
        ]
        return ResultTable(rows=rows, measure=self.score_name, level=self.level, subject="candidate")

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per candidate."""
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


def _chance(value: float) -> str:
    if value > _HIGHEST:
        return "above 99.9%"
    return "below 0.1%" if value < 1 - _HIGHEST else f"{value:.1%}"
