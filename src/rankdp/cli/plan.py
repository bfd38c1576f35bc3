"""`rankdp plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import choice, need, option, options
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.group()
def plan() -> None:
    """Find the accuracy of an epsilon, or the reverse.

    Computed from public numbers: no data are read and no privacy is spent. Leaderboards are predicted by the inference
    that `rank` uses, on simulated votes.
    """


_questions = options(
    option("--epsilon -e", "Find the accuracy of this epsilon.", "NUMBER"),
    option("--pairs", "Find the epsilon that keeps this share of all pairs in order.", "SHARE", float),
    option("--exact", "Find the epsilon that keeps the exact order with this probability.", "SHARE", float),
    option("--overlap", "Find the epsilon that keeps this share of the true top K.", "SHARE", float),
    option("--top", "Length of the top list to plan for.  [default: 3]", "K", int),
)
_level = option("--level", "Confidence of the interval.", default=0.95)
_intervals = options(
    option("--half-width", "Find the epsilon for intervals of scores with this half-width.", "NUMBER", float),
)


_promise = choice(
    "--protect",
    ["position", "ranking"],
    help="What epsilon protects: one item's position in a ranking, or the whole ranking.",
)


@plan.command("ranking")
@option("--items", "Number of ranked items.", type=int, required=True)
@_promise
@option("--voters", "Expected number of rankings, for --win-rate.", type=int)
@option(
    "--win-rate",
    "Find the epsilon for intervals of win rates with this half-width, from all rankings together.",
    "SHARE",
    float,
)
@_level
@_questions
@reporting
def plan_ranking(**options: Any) -> Report:
    """Plan `rankdp privatize`: one person's ranking."""
    return _plan("ranking", **options)


@plan.command("comparisons")
@option("--items", "Number of compared items.", type=int, required=True)
@option("--comparisons", "Expected number of comparisons.", type=int, required=True)
@choice(
    "--protect",
    ["comparison", "outcome", "voter"],
    required=True,
    help="What is protected: one comparison; only its outcome (who met whom is public); or all votes of a voter.",
)
@option("--max-per-voter", "With --protect voter: the most comparisons of one voter.", "C", int)
@option("--delta", "Above 0: Gaussian noise is considered for win counts.", "NUMBER", default="0")
@option("--spread", "Log-strengths are assumed to lie within plus or minus this number.", default=1.0)
@_intervals
@_level
@_questions
@reporting
def plan_comparisons(**options: Any) -> Report:
    """Plan `rankdp rank`: a leaderboard from comparisons."""
    return _plan("comparisons", **options)


@plan.command("scores")
@option("--items", "Number of released scores.", type=int, required=True)
@option("--bounds", "Two public numbers that every score lies between.", "LOW HIGH", float, nargs=2, default=(0.0, 1.0))
@choice("--law", ["uniform", "normal", "exponential", "beta"], help="Distribution of the true scores that is assumed.")
@option("--delta", "Above 0: Gaussian noise is considered too.", "NUMBER", default=0.0)
@_intervals
@_level
@_questions
@reporting
def plan_scores(**options: Any) -> Report:
    """Plan `rankdp scores`: noisy scores."""
    return _plan("scores", **options)


@plan.command("election")
@option("--items", "Number of candidates.", type=int, required=True)
@option(
    "--rule",
    "How ballots will be counted: plurality, borda, irv, stv, kemeny, copeland, ranked-pairs, schulze or condorcet.  "
    "[required]",
    "RULE",
)
@option("--voters", "Expected number of ballots; without it, the plan computes how many are needed.", type=int)
@option(
    "--right-winner",
    "Find the epsilon, or the number of voters, for the right winner with this probability.",
    "SHARE",
    float,
)
@option(
    "--tally",
    "Find the epsilon for intervals of tallies with this half-width (with plurality, irv and stv).",
    "VOTES",
    float,
)
@_level
@choice(
    "--protect",
    ["ballot", "voter"],
    help="What is protected: the content of one ballot; or also whether it was cast.",
)
@option("--delta", "Above 0: Gaussian noise is considered too.", "NUMBER", default="0")
@_questions
@reporting
def plan_election(**options: Any) -> Report:
    """Plan `rankdp elect`: the result of ranked ballots."""
    if options["voters"] is not None:
        return _plan("election", **options)
    from rankdp.planning.election_plans import voters_report

    asked = {name: options.pop(name) for name in ("items", "epsilon", "right_winner", "rule", "protect", "delta")}
    others = [value for name, value in options.items() if name not in ("voters", "level")]
    if asked["epsilon"] is None or asked["right_winner"] is None or any(value is not None for value in others):
        raise click.UsageError(
            "Missing: --voters INTEGER; or give only --epsilon and --right-winner, and the plan computes the voters.\n"
            f"Example: {_EXAMPLES['election']}"
        )
    return voters_report(**asked)


@plan.command("respondents")
@option("--items", "Number of ranked items.", type=int, required=True)
@option("--epsilon -e", "Epsilon of every ranking.", "NUMBER", required=True)
@option(
    "--half-width",
    "Half-width of a win rate's interval; 0.03 is 3 percentage points.",
    "SHARE",
    float,
    required=True,
)
@option("--level", "Confidence of each interval.", default=0.95)
@option("--every", "Make --level the confidence that all intervals hold at once.", is_flag=True)
@_promise
@reporting
def plan_respondents(**options: Any) -> Report:
    """Plan `rankdp aggregate`: how many rankings are needed."""
    from rankdp.aggregation.respondents import compare_report

    return compare_report(**options)


def _votes_per_voter(_: click.Context, __: click.Parameter, value: str) -> dict[int, int]:
    """``1:500,20:40`` as numbers of voters by numbers of votes."""
    try:
        pairs = [part.split(":") for part in value.split(",")]
        return {int(votes): int(voters) for votes, voters in pairs}
    except ValueError:
        raise click.BadParameter(
            f"must be VOTES:VOTERS pairs separated by commas, such as 1:500,20:40, got {value!r}"
        ) from None


@plan.command("voters")
@option("--items", "Number of compared items.", type=int, required=True)
@option(
    "--votes-per-voter",
    "A public guess of how many voters N give V comparisons each, such as 1:500,20:40.",
    "V:N,…",
    required=True,
    callback=_votes_per_voter,
)
@option("--epsilon -e", "Epsilon for all comparisons of a voter.", "NUMBER", required=True)
@option("--level", "Confidence of the intervals.", default=0.95)
@option("--spread", "Log-strengths are assumed to lie within plus or minus this number.", default=1.0)
@reporting
def plan_voters(items: int, votes_per_voter: dict[int, int], epsilon: str, level: float, spread: float) -> Report:
    """Plan --max-per-voter of `rankdp rank`.

    It is how many comparisons of each voter count fully.
    """
    from rankdp.planning.voter_bounds import voter_bounds_report

    return voter_bounds_report(items, votes_per_voter, epsilon, level, spread)


_GOALS = ("pairs", "exact", "overlap", "half_width", "right_winner", "tally", "win_rate")
_EXAMPLES = {
    "ranking": "rankdp plan ranking --items 20 --epsilon 2",
    "comparisons": "rankdp plan comparisons --items 50 --comparisons 20000 --protect comparison --epsilon 1",
    "scores": "rankdp plan scores --items 20 --bounds 0 1 --epsilon 2",
    "election": "rankdp plan election --items 10 --rule borda --voters 5000 --right-winner 0.95",
}


def _plan(situation: str, **question: Any) -> Report:
    from rankdp.planning.plan import plan as make
    from rankdp.planning.plan_report import plan_report

    goals = [name for name in _GOALS if name in question]
    asked = question["epsilon"] is not None or any(question[name] is not None for name in goals)
    spelled = ", ".join(f"--{name.replace('_', '-')}" for name in goals)
    need(_EXAMPLES[situation], goal=(f"--epsilon NUMBER, or one of {spelled}", asked))
    return plan_report(make(situation, **question))
