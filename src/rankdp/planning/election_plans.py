"""Planning for an election by ranked ballots: how likely the published winner is the right one, or how many must vote.

How voters will vote is assumed: true scores are independent normal numbers around their mean, with a spread as in the
1,100 Scottish council contests of 2007 to 2022. The spread is 0.25 n for margins between two candidates in n ballots
(0.34 to 0.67 in other published elections: less noise would do there), hence 0.18 n m for Borda points with m
candidates, and 0.7 n/m for first places. To this comes the noise of
``mechanisms.ballots``, Laplace on votes and nearly normal on points. ``theory.recovery`` says how well sorting noisy
scores recovers the order.

For rules that use margins, the sorted scores have differences with the noise of a margin. In simulations these rules
find the true winner as often or slightly more often; only `condorcet` finds it less often if the winner is in doubt.

A runoff is planned for its winner only, by the last round: a margin of d n between the two who are left (d = 0.125 in
these contests as instant runoffs: they are the strongest, and many ballots are exhausted) against noise of variance t^2
is right with probability 1/2 + arctan(d n/t)/pi. The right winner is among the two more often than that. `stv` is
planned for one seat.
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
from rankdp.publish.ballot_rules import borda_noise, check_rule, margin_noise, vote_noise
from rankdp.report.document import Report
from rankdp.report.results import Table
from rankdp.theory.noises.families import Gaussian, Laplace
from rankdp.theory.noises.score_noise import ScoreNoise
from rankdp.theory.score_laws import Normal

SPREAD_OF_MARGINS, SPREAD_OF_VOTES, LAST_MARGIN = 0.25, 0.7, 0.125  # of n, of n/m, of n: see the module
_LAPLACE_UP_TO = 3  # candidates: with more, K-norm noise on one score is nearly normal
_MOST_VOTERS = 10**9


class ManyBallots(Situation):
    """``voters`` ballots that rank ``items`` candidates, counted by a rule."""

    def __init__(
        self, items: int, voters: int, rule: str | None = None, protect: str = "ballot", delta: Real = 0
    ) -> None:
        self.options = (check_rule(rule),)
        runoff = rule in ("irv", "stv")
        order = () if runoff else (PAIRS, EXACT, TOP)
        self.measures = (RIGHT_WINNER, *order, *((TALLY,) if runoff or rule == "plurality" else ()))
        self.items, self.voters = whole("items", items, 2), whole("voters", voters, 1)
        self.protection = BallotProtection(protect)
        self.protects, self.delta = self.protection.protects, rational(delta, "delta")
        self.subject = f"an election of {items} candidates by {voters:,} voter{'s' * (voters > 1)}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the winner leads as in published elections."""
        usual = "The lead of the winner is assumed to be as in 1,100 council elections; a close race needs more."
        return (usual, "One seat is assumed.") if self.options == ("stv",) else (usual,)

    def _noise(self, option: str, epsilon: float) -> tuple[ScoreNoise, float, float]:
        """The law and deviation of the noise on one score, and the spread of the true scores."""
        public = self.items, self.protection, Fraction(epsilon), self.delta
        if option == "plurality":
            votes = vote_noise(*public)
            law = Gaussian() if votes.delta else Laplace()
            return law, math.sqrt(votes.noise_variance()), SPREAD_OF_VOTES * self.voters / self.items
        points = borda_noise(*public) if option == "borda" else margin_noise(*public)
        law = Gaussian() if points.delta or self.items > _LAPLACE_UP_TO else Laplace()
        variance = points.noise_variance if option == "borda" else points.noise_variance * self.items**2 / 2
        return law, math.sqrt(variance), SPREAD_OF_MARGINS * self.voters * self.items / math.sqrt(2)

    def _accuracy(self, option: str, measure: Measure, epsilon: float, request: Request) -> float:
        """By the quadratures of ``theory.recovery``; for a runoff see the module."""
        if option in ("irv", "stv"):
            rounds = self.items - 1
            votes = vote_noise(self.items, self.protection, Fraction(epsilon), self.delta, rounds=rounds)
            if measure is TALLY:  # of the last round, which has the most noise
                around: ScoreNoise = Gaussian() if votes.delta else Laplace()
                return math.sqrt(votes.noise_variance(rounds - 1)) * float(around.quantile((1 + request.level) / 2))
            noise = math.sqrt(2 * votes.noise_variance(rounds - 1))
            return 0.5 + math.atan(LAST_MARGIN * self.voters / noise) / math.pi
        law, deviation, spread = self._noise(option, epsilon)
        if measure is TALLY:
            return deviation * float(law.quantile((1 + request.level) / 2))
        asked = (TOP, Request(1, request.level)) if measure is RIGHT_WINNER else (measure, request)
        return accuracy_of_sorting(asked[0], self.items, law, deviation / spread, Normal(), asked[1])

    def detail(self, option: str, epsilon: float) -> Mapping[str, Any]:
        """The deviation of the noise on a score."""
        return {} if option in ("irv", "stv") else {"noise_on_a_score": self._noise(option, epsilon)[1]}


def voters_needed(
    items: int, epsilon: Real, right_winner: float, *, rule: str | None, protect: str = "ballot", delta: Real = 0
) -> int | None:
    """How many voters it takes for the published winner to be right with this probability, to half a percent.

    Parameters
    ----------
    items
        The number of candidates.
    epsilon
        The privacy of the result.
    right_winner
        The target probability.
    rule, protect, delta
        As in ``rankdp.elect``.

    Returns
    -------
    int or None
        None if a billion voters are too few.
    """
    exact, asked, rule = float(positive(epsilon)), share("right_winner", right_winner), check_rule(rule)

    def accuracy(voters: int) -> float:
        return ManyBallots(items, voters, rule, protect, delta).accuracy(rule, RIGHT_WINNER, exact, Request(1))

    low, high = 0, 1
    while high <= _MOST_VOTERS and accuracy(high) < asked:
        low, high = high, 2 * high
    while high <= _MOST_VOTERS and high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if accuracy(middle) >= asked else (middle, high)
    return high if high <= _MOST_VOTERS else None


def voters_report(
    items: int, epsilon: Real, right_winner: float, *, rule: str | None, protect: str = "ballot", delta: Real = 0
) -> Report:
    """The report of ``voters_needed``.

    Parameters
    ----------
    items, epsilon, right_winner, rule, protect, delta
        As in ``voters_needed``.
    """
    needed = voters_needed(items, epsilon, right_winner, rule=rule, protect=protect, delta=delta)
    situation = ManyBallots(items, 1, rule, protect, delta)
    enough = f"No number of voters up to {_MOST_VOTERS:,} is" if needed is None else f"About {needed:,} voters are"
    return Report(
        title=f"Voters for the right winner of {items} candidates at epsilon {epsilon}",
        records=[{"rule": rule, "voters": needed}],
        facts=lambda: {"rule": rule, "voters": needed, "assumptions": situation.assumptions},
        tables=[Table(["rule", "voters"], [[str(rule), "–" if needed is None else f"{needed:,}"]])],
        headline=(
            f"{enough} enough for the right winner with probability {RIGHT_WINNER.show(right_winner)} by {rule}."
        ),
        words=situation.assumptions,
        computed=[f"Epsilon protects {situation.protects}. All numbers follow from public numbers only."],
    )
