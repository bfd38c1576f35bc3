"""`rankdp attack`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import MECHANISM, MECHANISM_OR_AUTO
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.group()
def attack() -> None:
    """What an attacker learns from a release, on simulated data."""


@attack.command("inference")
@click.option(
    "--items", type=click.IntRange(2, 6), default=4, show_default=True, help="How many items the secret ranking has."
)
@click.option("--epsilon", "-e", default="1", show_default=True, help="A number, adaptive or adaptive-log.")
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=MECHANISM,
    help="What is attacked; may be repeated.  [default: kendall, reinsertion]",
)
@click.option("--releases", default="1,3,10,30,100", show_default=True, metavar="N,N,…", help="Of the same ranking.")
@click.option("--repetitions", type=int, default=1000, show_default=True, help="How often the attack is repeated.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the simulation.")
@reporting
def attack_inference(
    items: int,
    epsilon: str,
    mechanisms: tuple[str, ...],
    releases: str,
    repetitions: int,
    seed: int,
) -> Report:
    """How often the whole secret ranking is found from several releases of it (Xu, Section 4)."""
    from rankdp.attack.attack_report import inference_report
    from rankdp.attack.inference import success_curve
    from rankdp.privacy.bits import SeededBits

    try:
        counts = [int(count) for count in releases.split(",")]
    except ValueError:
        raise click.UsageError(f"--releases takes whole numbers with commas between, got {releases!r}.") from None
    curves = {
        name: success_curve(name, items, counts, epsilon, repetitions, SeededBits(seed))
        for name in mechanisms or ("kendall", "reinsertion")
    }
    return inference_report(curves, items, epsilon)


@attack.command("position")
@click.option("--items", type=int, default=6, show_default=True, help="How many items are ranked.")
@click.option("--epsilon", "-e", default="1", show_default=True, help="Of the release.")
@click.option("--mechanism", type=MECHANISM_OR_AUTO, default="auto", show_default=True, help="What made the release.")
@click.option("--landed", type=int, default=1, show_default=True, help="Where the release shows the item.")
@click.option("--prior", metavar="P,P,…", help="What was believed before, position by position; flat if not given.")
@reporting
def attack_position(items: int, epsilon: str, mechanism: str, landed: int, prior: str | None) -> Report:
    """What one release tells about where one item really stood."""
    from rankdp.attack.attack_report import position_report
    from rankdp.attack.position import position_attack
    from rankdp.mechanisms.registry import mechanism as build

    try:
        before = None if prior is None else [float(share) for share in prior.split(",")]
    except ValueError:
        raise click.UsageError(f"--prior takes numbers with commas between, got {prior!r}.") from None
    result = position_attack(build(mechanism, items, epsilon), landed, before)  # type: ignore[arg-type]
    return position_report(result)


@attack.command("votes")
@click.option("--epsilon", "-e", metavar="NUMBER", help="Of the leaderboard; without it the plain fit is attacked.")
@click.option("--items", type=int, default=8, show_default=True, help="How many items are compared.")
@click.option(
    "--comparisons", type=int, default=60, show_default=True, help="How many votes each leaderboard is made from."
)
@click.option(
    "--method",
    type=click.Choice(["bradley-terry", "copeland"]),
    default="bradley-terry",
    show_default=True,
    help="What makes the leaderboards.",
)
@click.option("--repetitions", type=int, default=400, show_default=True, help="How many leaderboards are attacked.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the simulation.")
@reporting
def attack_votes(epsilon: str | None, **setting: Any) -> Report:
    """Whether a vote was in the data of a published leaderboard (Cai, Section 2.2)."""
    from rankdp.attack.attack_report import votes_report
    from rankdp.attack.votes import membership_experiment

    return votes_report(membership_experiment(epsilon, **setting))
