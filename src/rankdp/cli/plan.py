"""`rankdp plan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.group()
def plan() -> None:
    """Which epsilon? What accuracy it buys, or which one an accuracy needs.

    From public numbers only, without simulation: nothing is read, nothing is spent.
    """


def _planned(command: Callable[..., Report]) -> Callable[..., None]:
    """The options that all plans share: one question, and where the answer goes."""
    planned = reporting(command)
    for option in (
        click.option("--top", type=int, metavar="K", help="The length of a top list, for --overlap.  [default: 3]"),
        click.option("--overlap", type=float, metavar="SHARE", help="Ask for: this share of the true top K kept."),
        click.option("--exact", type=float, metavar="SHARE", help="Ask for: the exact order with this probability."),
        click.option("--pairs", type=float, metavar="SHARE", help="Ask for: this share of all pairs in order."),
        click.option("--epsilon", "-e", metavar="NUMBER", help="Ask what this epsilon buys."),
    ):
        planned = option(planned)
    return planned


_interval_options = (
    click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the interval."),
    click.option("--half-width", type=float, metavar="NUMBER", help="Ask for: this half-width of a score's interval."),
)


def _with_intervals(command: Callable[..., None]) -> Callable[..., None]:
    for option in _interval_options:
        command = option(command)
    return command


@plan.command("ranking")
@click.option("--items", type=int, required=True, help="How many items are ranked.")
@_planned
def plan_ranking(**options: Any) -> Report:
    """One person's ranking, released as a synthetic one (rankdp privatize)."""
    return _plan("ranking", **options)


@plan.command("comparisons")
@click.option("--items", type=int, required=True, help="How many items are compared.")
@click.option("--comparisons", type=int, required=True, help="How many comparisons there will be, about.")
@click.option(
    "--protect", type=click.Choice(["comparison", "outcome", "voter"]), required=True, help="What epsilon protects."
)
@click.option(
    "--max-per-voter", type=int, metavar="C", help="With --protect voter: the comparisons of each that are used."
)
@click.option("--delta", default="0", metavar="NUMBER", help="Above 0: Gaussian noise on wins.")
@click.option("--spread", type=float, default=1.0, show_default=True, help="Log-strengths lie within +-SPREAD.")
@_with_intervals
@_planned
def plan_comparisons(**options: Any) -> Report:
    """A leaderboard from comparisons (rankdp rank)."""
    return _plan("comparisons", **options)


@plan.command("scores")
@click.option("--items", type=int, required=True, help="How many scores are released.")
@click.option(
    "--bounds",
    type=float,
    nargs=2,
    default=(0.0, 1.0),
    show_default=True,
    metavar="LOW HIGH",
    help="Between which numbers the scores lie.",
)
@click.option(
    "--law",
    type=click.Choice(["uniform", "normal", "exponential", "beta"]),
    default="uniform",
    show_default=True,
    help="How the true scores are spread.",
)
@click.option("--delta", type=float, default=0.0, metavar="NUMBER", help="Above 0: Gaussian noise takes part.")
@_with_intervals
@_planned
def plan_scores(**options: Any) -> Report:
    """A vector of scores with noise on each (rankdp scores)."""
    return _plan("scores", **options)


@plan.command("respondents")
@click.option("--items", type=int, required=True, help="How many items are ranked.")
@click.option("--epsilon", "-e", metavar="NUMBER", required=True, help="Privacy of every ranking.")
@click.option("--half-width", type=float, required=True, metavar="SHARE", help="Of every win rate: 0.03 is 3 points.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of each interval.")
@click.option("--every", is_flag=True, help="All intervals hold together at that confidence.")
@reporting
def plan_respondents(
    items: int,
    epsilon: str,
    half_width: float,
    level: float,
    every: bool,
) -> Report:
    """How many privatized rankings make every win rate as sure as asked (rankdp aggregate)."""
    from rankdp.aggregation.respondents import compare_report

    return compare_report(items, epsilon, half_width, level, every=every)


def _plan(situation: str, **question: Any) -> Report:
    from rankdp.planning.plan import plan as make
    from rankdp.planning.plan_report import plan_report

    return plan_report(make(situation, **question))
