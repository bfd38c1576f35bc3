"""Planning for an election by ranked ballots: how likely the published winner is the right one, or how many must vote.

What voters will say is not known, so it is assumed: true scores are independent normal numbers around their mean, with
a spread that elections we have seen have (``rankers.margin_belief``): for Borda's points 0.28 n m of n ballots and m
candidates, which makes margins of 0.4 n; for first places 0.8 n/m. On top comes the noise of ``mechanisms.ballots``,
Laplace on votes and nearly normal on points; the order of sorted noisy scores is that of ``theory.recovery``.

By pairs, the scores are the row sums of the margins. For a runoff only the winner is told, by its last round: a margin
of 0.4 n against noise of variance t^2, which is right with probability 1/2 + arctan(0.4 n/t)/pi. Rounds before it
decide between candidates who are further apart or matter less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rankdp.checks import share, whole
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.planning.score_plans import accuracy_of_sorting
from rankdp.planning.situation import EXACT, PAIRS, RIGHT_WINNER, TALLY, TOP, Measure, Request, Situation
from rankdp.privacy.exact import Real, positive, rational
from rankdp.publish.ballot_rules import borda_noise, margin_noise, vote_noise
from rankdp.rankers.margin_belief import SPREAD_OF_SCORES
from rankdp.report.document import Report, Table
from rankdp.theory.noises.families import Gaussian, Laplace
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.theory.score_laws import Normal

_SPREAD_OF_VOTES = 0.8
_LAPLACE_UP_TO = 3  # candidates: with more, K-norm noise on one score is nearly normal
_MOST_VOTERS = 10**9


class ManyBallots(Situation):
    """``voters`` ballots that rank ``items`` candidates."""

    measures = (RIGHT_WINNER, PAIRS, EXACT, TOP, TALLY)
    options: tuple[str, ...] = ("borda", "pairs", "plurality", "irv")

    def __init__(self, items: int, voters: int, protect: str = "ballot", delta: Real = 0) -> None:
        self.items, self.voters = whole("items", items, 2), whole("voters", voters, 1)
        self.protection = BallotProtection(protect)
        self.protects, self.delta = self.protection.protects, rational(delta, "delta")
        self.subject = f"an election of {items} candidates by {voters:,} voter{'s' * (voters > 1)}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That voters disagree as much as elsewhere."""
        return (
            "How far candidates are apart is assumed to be as in elections that have been published; "
            "a close race needs more.",
        )

    def _noise(self, option: str, epsilon: float) -> tuple[ScoreNoise, float, float]:
        """The law and deviation of the noise on one score, and the spread of the true scores."""
        public = self.items, self.protection, Fraction(epsilon), self.delta
        if option == "plurality":
            votes = vote_noise(*public)
            law = Gaussian() if votes.delta else Laplace()
            return law, math.sqrt(votes.noise_variance()), _SPREAD_OF_VOTES * self.voters / self.items
        points = borda_noise(*public) if option == "borda" else margin_noise(*public).scores
        law = Gaussian() if points.delta or self.items > _LAPLACE_UP_TO else Laplace()
        spread = SPREAD_OF_SCORES * self.voters * self.items / math.sqrt(2)
        return law, math.sqrt(points.noise_variance), spread

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """By the quadratures of ``theory.recovery``; for a runoff as the module says."""
        if measure is TALLY and option not in ("plurality", "irv"):
            return math.nan  # points are no votes
        if option == "irv":
            if measure not in (RIGHT_WINNER, TALLY):
                return math.nan
            rounds = self.items - 1
            votes = vote_noise(self.items, self.protection, Fraction(epsilon), self.delta, rounds=rounds)
            if measure is TALLY:  # of the last round, which has the most noise
                around: ScoreNoise = Gaussian() if votes.delta else Laplace()
                return math.sqrt(votes.noise_variance(rounds - 1)) * float(around.quantile((1 + request.level) / 2))
            noise = math.sqrt(2 * votes.noise_variance(rounds - 1))
            return 0.5 + math.atan(SPREAD_OF_SCORES * self.voters / noise) / math.pi
        law, deviation, spread = self._noise(option, epsilon)
        if measure is TALLY:
            return deviation * float(law.quantile((1 + request.level) / 2))
        asked = (TOP, Request(1, request.level)) if measure is RIGHT_WINNER else (measure, request)
        return accuracy_of_sorting(asked[0], self.items, law, deviation / spread, Normal(), asked[1])

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """The deviation of the noise on a score."""
        return {} if option == "irv" else {"noise_on_a_score": self._noise(option, epsilon)[1]}


def voters_needed(
    items: int, epsilon: Real, right_winner: float, *, protect: str = "ballot", delta: Real = 0
) -> dict[str, int | None]:
    """By rule how many voters make the published winner the right one with this probability, the fewest first.

    Parameters
    ----------
    items
        How many candidates there are.
    epsilon
        The privacy of the result.
    right_winner
        The probability that is asked for.
    protect, delta
        As for ``rankdp.elect``.

    Returns
    -------
    dict
        None for a rule that a thousand million voters are too few for.
    """
    exact, asked = float(positive(epsilon)), share("right_winner", right_winner)

    def accuracy(option: str, voters: int) -> float:
        return ManyBallots(items, voters, protect, delta).accuracy(option, RIGHT_WINNER, exact, Request(1))

    found: dict[str, int | None] = {}
    for option in ManyBallots.options:
        low, high = 0, 1
        while high <= _MOST_VOTERS and accuracy(option, high) < asked:
            low, high = high, 2 * high
        while high <= _MOST_VOTERS and high - low > max(1, low // 200):  # to half a percent
            middle = (low + high) // 2
            low, high = (low, middle) if accuracy(option, middle) >= asked else (middle, high)
        found[option] = high if high <= _MOST_VOTERS else None
    return dict(sorted(found.items(), key=lambda entry: math.inf if entry[1] is None else entry[1]))


def voters_report(
    items: int, epsilon: Real, right_winner: float, *, protect: str = "ballot", delta: Real = 0
) -> Report:
    """The report of ``voters_needed``.

    Parameters
    ----------
    items, epsilon, right_winner, protect, delta
        As for ``voters_needed``.
    """
    needed = voters_needed(items, epsilon, right_winner, protect=protect, delta=delta)
    best, fewest = next(iter(needed.items()))
    situation = ManyBallots(items, 1, protect, delta)
    said = "No number of voters is" if fewest is None else f"About {fewest:,} voters are"
    return Report(
        title=f"Voters for the right winner of {items} candidates at epsilon {epsilon}",
        records=[{"rule": rule, "voters": count} for rule, count in needed.items()],
        facts=lambda: {"voters": needed, "recommended": best, "assumptions": situation.assumptions},
        tables=[Table(["rule", "voters"], [[rule, "–" if n is None else f"{n:,}"] for rule, n in needed.items()])],
        words=[
            f"{said} enough for the right winner with probability {RIGHT_WINNER.show(right_winner)} by {best}. "
            + " ".join(situation.assumptions)
        ],
        footer=[f"Epsilon protects {situation.protects}. All numbers follow from public numbers only."],
    )
