"""`rankdp plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import choice, options
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.group()
def plan() -> None:
    """Find the accuracy of an epsilon, or the epsilon for an accuracy.

    Computed from public numbers, without simulation: no data are read and no privacy is spent.
    """


_questions = options(
    click.option("--epsilon", "-e", metavar="NUMBER", help="Find the accuracy of this epsilon."),
    click.option(
        "--pairs", type=float, metavar="SHARE", help="Find the epsilon that keeps this share of all pairs in order."
    ),
    click.option(
        "--exact",
        type=float,
        metavar="SHARE",
        help="Find the epsilon that keeps the exact order with this probability.",
    ),
    click.option(
        "--overlap", type=float, metavar="SHARE", help="Find the epsilon that keeps this share of the true top K."
    ),
    click.option(
        "--top", type=int, metavar="K", help="Length of the top list, which is what matters then.  [default: 3]"
    ),
)
_level = click.option("--level", default=0.95, help="Confidence of the interval.")
_intervals = options(
    click.option(
        "--half-width",
        type=float,
        metavar="NUMBER",
        help="Find the epsilon for intervals of scores this wide to either side.",
    ),
)


@plan.command("ranking")
@click.option("--items", type=int, required=True, help="Number of ranked items.")
@click.option("--voters", type=int, help="Expected number of rankings, for --win-rate.")
@click.option(
    "--win-rate",
    type=float,
    metavar="SHARE",
    help="Find the epsilon for intervals of win rates this wide to either side, from all rankings together.",
)
@_level
@_questions
@reporting
def plan_ranking(**options: Any) -> Report:
    """Plan `rankdp privatize`: one person's ranking."""
    return _plan("ranking", **options)


@plan.command("comparisons")
@click.option("--items", type=int, required=True, help="Number of compared items.")
@click.option("--comparisons", type=int, required=True, help="Expected number of comparisons.")
@choice(
    "--protect",
    ["comparison", "outcome", "voter"],
    required=True,
    help="What is protected: one comparison; one outcome, who met whom being public; or all votes of a voter.",
)
@click.option("--max-per-voter", type=int, metavar="C", help="With --protect voter: the most comparisons of one voter.")
@click.option("--delta", default="0", metavar="NUMBER", help="Above 0: Gaussian noise is considered for win counts.")
@click.option("--spread", default=1.0, help="Log-strengths are assumed to lie within plus or minus this number.")
@_intervals
@_level
@_questions
@reporting
def plan_comparisons(**options: Any) -> Report:
    """Plan `rankdp rank`: a leaderboard from comparisons."""
    return _plan("comparisons", **options)


@plan.command("scores")
@click.option("--items", type=int, required=True, help="Number of released scores.")
@click.option(
    "--bounds",
    type=float,
    nargs=2,
    default=(0.0, 1.0),
    metavar="LOW HIGH",
    help="Two public numbers that every score lies between.",
)
@choice("--law", ["uniform", "normal", "exponential", "beta"], help="Distribution of the true scores that is assumed.")
@click.option("--delta", default=0.0, metavar="NUMBER", help="Above 0: Gaussian noise is considered too.")
@_intervals
@_level
@_questions
@reporting
def plan_scores(**options: Any) -> Report:
    """Plan `rankdp scores`: scores with noise on each."""
    return _plan("scores", **options)


@plan.command("election")
@click.option("--items", type=int, required=True, help="Number of candidates.")
@click.option("--voters", type=int, help="Expected number of ballots; without it, found for --epsilon.")
@click.option(
    "--right-winner",
    type=float,
    metavar="SHARE",
    help="Find the epsilon, or the number of voters, for the right winner with this probability.",
)
@click.option(
    "--tally",
    type=float,
    metavar="VOTES",
    help="Find the epsilon for intervals of tallies this wide to either side (with plurality and irv).",
)
@_level
@choice(
    "--protect",
    ["ballot", "voter"],
    help="What is protected: what stands on one ballot; or also whether it was cast.",
)
@click.option("--delta", default="0", metavar="NUMBER", help="Above 0: Gaussian noise is considered too.")
@_questions
@reporting
def plan_election(**options: Any) -> Report:
    """Plan `rankdp elect`: the result of ranked ballots."""
    if options["voters"] is not None:
        return _plan("election", **options)
    from rankdp.planning.election_plans import voters_report

    asked = {name: options.pop(name) for name in ("items", "epsilon", "right_winner", "protect", "delta")}
    others = [value for name, value in options.items() if name not in ("voters", "level")]
    if asked["epsilon"] is None or asked["right_winner"] is None or any(value is not None for value in others):
        raise click.UsageError("Without --voters give --epsilon and --right-winner: how many must vote is found then.")
    return voters_report(**asked)


@plan.command("respondents")
@click.option("--items", type=int, required=True, help="Number of ranked items.")
@click.option("--epsilon", "-e", metavar="NUMBER", required=True, help="Epsilon of every ranking.")
@click.option(
    "--half-width",
    type=float,
    required=True,
    metavar="SHARE",
    help="Width of a win rate's interval to either side; 0.03 is 3 percentage points.",
)
@click.option("--level", default=0.95, help="Confidence of each interval.")
@click.option("--every", is_flag=True, help="Confidence that all intervals hold at once, not each alone.")
@reporting
def plan_respondents(items: int, epsilon: str, half_width: float, level: float, every: bool) -> Report:
    """Plan `rankdp aggregate`: how many rankings are needed."""
    from rankdp.aggregation.respondents import compare_report

    return compare_report(items, epsilon, half_width, level, every=every)


def _votes_per_voter(_: click.Context, __: click.Parameter, value: str) -> dict[int, int]:
    """``1:500,20:40`` as numbers of voters by numbers of votes."""
    try:
        pairs = [part.split(":") for part in value.split(",")]
        return {int(votes): int(voters) for votes, voters in pairs}
    except ValueError:
        raise click.BadParameter(
            f"must be VOTES:VOTERS with commas between, such as 1:500,20:40, got {value!r}"
        ) from None


@plan.command("voters")
@click.option("--items", type=int, required=True, help="Number of compared items.")
@click.option(
    "--votes-per-voter",
    required=True,
    callback=_votes_per_voter,
    metavar="V:N,…",
    help="A public guess of how many voters N give V comparisons each, such as 1:500,20:40.",
)
@click.option("--epsilon", "-e", metavar="NUMBER", required=True, help="Epsilon for all comparisons of a voter.")
@click.option("--level", default=0.95, help="Confidence of the intervals.")
@click.option("--spread", default=1.0, help="Log-strengths are assumed to lie within plus or minus this number.")
@reporting
def plan_voters(items: int, votes_per_voter: dict[int, int], epsilon: str, level: float, spread: float) -> Report:
    """Plan --max-per-voter of `rankdp rank`: how many comparisons of each voter to use."""
    from rankdp.planning.voter_bounds import voter_bounds_report

    return voter_bounds_report(items, votes_per_voter, epsilon, level, spread)


def _plan(situation: str, **question: Any) -> Report:
    from rankdp.planning.plan import plan as make
    from rankdp.planning.plan_report import plan_report

    return plan_report(make(situation, **question))
