"""`rankdp attack`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import MECHANISM, MECHANISM_OR_AUTO, PATH, choice, items_option, option, standard_input
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.data.orders import Ties
    from rankdp.mechanisms.registry import Protect
    from rankdp.report.document import Report


_protect = choice(
    "--protect",
    ["position", "ranking"],
    help="What epsilon protects: one item's position in a ranking, or the whole ranking.",
)


@click.group()
def attack() -> None:
    """Measure what an attacker learns, on simulated or real data."""


@attack.command("inference")
@option("--items", "Number of ranked items.", type=click.IntRange(2, 6), default=4)
@option(
    "--epsilon -e",
    "Epsilon of each of the N releases; adaptive is (items-1)/sqrt(N), adaptive-log that times log(N).",
    "NUMBER|adaptive|adaptive-log",
    default="1",
)
@_protect
@option(
    "--mechanism mechanisms",
    "Mechanism to attack; may be repeated. Without it: kendall and reinsertion.",
    multiple=True,
    type=MECHANISM,
)
@option("--releases", "How many releases of the same ranking the attacker sees.", "N,N,…", default="1,3,10,30,100")
@option("--repetitions", "Simulated attacks for each number of releases.", default=1000)
@option("--seed", "Seed of the simulation.", default=0)
@reporting
def attack_inference(
    items: int, epsilon: str, protect: Protect, mechanisms: tuple[str, ...], releases: str, repetitions: int, seed: int
) -> Report:
    """Find a secret ranking from several releases of it.

    Prints how often the attacker's most likely ranking is the right one (Xu, Section 4).
    """
    from rankdp.attack.inference import inference_report, success_curve
    from rankdp.privacy.bits import SeededBits

    try:
        counts = [int(count) for count in releases.split(",")]
    except ValueError:
        raise click.UsageError(f"--releases must be whole numbers separated by commas, got {releases!r}.") from None
    curves = {
        name: success_curve(name, items, counts, epsilon, repetitions, SeededBits(seed), protect)
        for name in mechanisms or ("kendall", "reinsertion")
    }
    return inference_report(curves, items, epsilon if protect == "position" else f"{epsilon} for the whole ranking in")


@attack.command("position")
@option("--items", "Number of ranked items.", default=6)
@option("--epsilon -e", "Epsilon of the release.", "NUMBER", default="1")
@_protect
@option("--mechanism", "Mechanism to attack.", type=MECHANISM_OR_AUTO, default="auto")
@option("--landed", "Position of the item in the release, from 1.", default=1)
@option("--prior", "Probability of each true position before the release; equal if not given.", "P,P,…")
@reporting
def attack_position(
    items: int, epsilon: str, protect: Protect, mechanism: str, landed: int, prior: str | None
) -> Report:
    """Infer an item's true position from one release."""
    from rankdp.attack.inference import position_attack
    from rankdp.mechanisms.registry import mechanism as build

    try:
        before = None if prior is None else [float(share) for share in prior.split(",")]
    except ValueError:
        raise click.UsageError(f"--prior must be numbers separated by commas, got {prior!r}.") from None
    result = position_attack(build(mechanism, items, epsilon, protect=protect), landed, before)
    return result.report()


@attack.command("signature")
@click.argument("ballots", metavar="BALLOTS", callback=standard_input, type=PATH)
@option("--demand demanded", "Candidate whom a coercer demands in the next place.", "NAME", multiple=True)
@option("--limit", "Share of unique ballots that a truncated table should stay below.", default=0.01)
@choice(
    "--ties",
    ["refuse", "listed", "random"],
    help="Tied candidates: refuse the file, keep the order of the file, or break ties at random.",
)
@items_option
@reporting
def attack_signature(
    ballots: Path, demanded: tuple[str, ...], limit: float, ties: Ties, items: list[str] | None
) -> Report:
    """Count the ballots that are signatures. For the curator's eyes only.

    BALLOTS is a CSV, Parquet or PrefLib file of rankings. For each number of places that a published table could show,
    prints how many ballots are unique and how many voters a coercer could bind by prescribing the order of their last
    places.
    """
    from rankdp.attack.signature import signature_attack
    from rankdp.data.rankings import Rankings

    return signature_attack(Rankings.read(ballots, items, ties=ties), demanded, limit).report()


@attack.command("votes")
@option("--epsilon -e", "Epsilon of the leaderboard; without it, the fit without noise is attacked.", "NUMBER")
@option("--items", "Number of compared items.", default=8)
@option("--comparisons", "Number of simulated comparisons.", default=60)
@choice(
    "--method",
    ["bradley-terry", "wins", "copeland"],
    help="How the leaderboard is made: log-strengths, wins, or majorities.",
)
@option("--repetitions", "Simulated leaderboards.", default=400)
@option("--seed", "Seed of the simulation.", default=0)
@reporting
def attack_votes(epsilon: str | None, **setting: Any) -> Report:
    """Tell from a leaderboard whether a vote was counted.

    Membership inference as in Cai, Section 2.2.
    """
    from rankdp.attack.membership import membership_experiment

    return membership_experiment(epsilon, **setting).report()
