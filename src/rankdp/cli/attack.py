"""`rankdp attack`."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import MECHANISM_NAMES
from rankdp.cli.terminal import print_table


@click.group()
def attack() -> None:
    """What somebody who means ill learns from a release, on simulated data."""


@attack.command("inference")
@click.option("--items", type=click.IntRange(2, 6), default=4, show_default=True)
@click.option("--epsilon", "-e", default="1", show_default=True, help="A number, adaptive or adaptive-log.")
@click.option("--mechanism", "mechanisms", multiple=True, type=click.Choice(MECHANISM_NAMES[1:]))
@click.option("--releases", default="1,3,10,30,100", show_default=True, metavar="N,N,…", help="Of the same ranking.")
@click.option("--repetitions", type=int, default=1000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--output", "-o", "outputs", multiple=True, type=click.Path(path_type=Path), help="attack.png or .html.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def attack_inference(
    items: int,
    epsilon: str,
    mechanisms: tuple[str, ...],
    releases: str,
    repetitions: int,
    seed: int,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """How often the whole secret ranking is found from several releases of it (Xu, Section 4)."""
    import dataclasses

    from rankdp.attack.attack_page import check_ending, draw_success, write_picture
    from rankdp.attack.inference import success_curve
    from rankdp.privacy.bits import SeededBits

    for path in outputs:
        check_ending(path)
    try:
        counts = [int(count) for count in releases.split(",")]
    except ValueError:
        raise click.UsageError(f"--releases takes whole numbers with commas between, got {releases!r}.") from None
    curves = {
        name: success_curve(name, items, counts, epsilon, repetitions, SeededBits(seed))
        for name in mechanisms or ("kendall", "reinsertion")
    }
    words = (
        f"Each release of a ranking of {items} items costs its epsilon ({epsilon}) again. Publish it once, or keep the "
        "answer and give the same one every time."
    )
    for path in outputs:
        write_picture(draw_success(curves), words, path, "The inference attack")
    if as_json:
        plain = {name: [dataclasses.asdict(one) for one in curve] for name, curve in curves.items()}
        click.echo(json.dumps(_without_nan(plain), indent=2))
        return
    print_table(
        f"How often {repetitions:,} attackers find a whole ranking of {items} items, epsilon {epsilon} a release",
        ["releases", *curves],
        [[str(count), *(_share(curve[at]) for curve in curves.values())] for at, count in enumerate(counts)],
    )
    click.echo("\n" + textwrap.fill(words, 100))


def _share(found: Any) -> str:
    return f"{found.probability:.1%} ({found.low:.0%} – {found.high:.0%})"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and value != value else value


@attack.command("position")
@click.option("--items", type=int, default=6, show_default=True)
@click.option("--epsilon", "-e", default="1", show_default=True)
@click.option("--mechanism", type=click.Choice(MECHANISM_NAMES), default="auto", show_default=True)
@click.option("--landed", type=int, default=1, show_default=True, help="Where the release shows the item.")
@click.option("--prior", metavar="P,P,…", help="What was believed before, position by position; flat if not given.")
@click.option("--output", "-o", "outputs", multiple=True, type=click.Path(path_type=Path), help="bars.png or .html.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def attack_position(
    items: int, epsilon: str, mechanism: str, landed: int, prior: str | None, outputs: tuple[Path, ...], as_json: bool
) -> None:
    """What one release tells about where one item really stood."""
    from rankdp.attack.attack_page import check_ending, write_picture
    from rankdp.attack.position import position_attack
    from rankdp.mechanisms.registry import mechanism as build

    for path in outputs:
        check_ending(path)
    try:
        before = None if prior is None else [float(share) for share in prior.split(",")]
    except ValueError:
        raise click.UsageError(f"--prior takes numbers with commas between, got {prior!r}.") from None
    found = position_attack(build(mechanism, items, epsilon), landed, before)  # type: ignore[arg-type]
    for path in outputs:
        write_picture(found.draw, found.explain(), path, "The position attack")
    if as_json:
        numbers = {"prior": found.prior.tolist(), "posterior": found.posterior.tolist(), "landed": landed}
        click.echo(json.dumps({**numbers, "odds_factor": found.odds_factor}, indent=2))
        return
    rows = [
        [str(place), f"{before:.1%}", f"{after:.1%}", ("█" * round(40 * after)).ljust(40)]
        for place, (before, after) in enumerate(zip(found.prior, found.posterior, strict=True), 1)
    ]
    print_table("Where did the item really stand?", ["position", "before", "after", ""], rows, texts=0)
    click.echo("\n" + textwrap.fill(found.explain(), 100))


@attack.command("votes")
@click.option("--epsilon", "-e", metavar="NUMBER", help="Of the leaderboard; without it the plain fit is attacked.")
@click.option("--items", type=int, default=8, show_default=True)
@click.option("--comparisons", type=int, default=60, show_default=True)
@click.option("--method", type=click.Choice(["bradley-terry", "copeland"]), default="bradley-terry", show_default=True)
@click.option("--repetitions", type=int, default=400, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--output", "-o", "outputs", multiple=True, type=click.Path(path_type=Path), help="curve.png or .html.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def attack_votes(epsilon: str | None, outputs: tuple[Path, ...], as_json: bool, **setting: Any) -> None:
    """Whether a vote was in the data of a published leaderboard (Cai, Section 2.2)."""
    from rankdp.attack.attack_page import check_ending, write_picture
    from rankdp.attack.votes import membership_experiment

    for path in outputs:
        check_ending(path)
    found = membership_experiment(epsilon, **setting)
    for path in outputs:
        write_picture(found.draw, found.explain(), path, "The score attack")
    if as_json:
        numbers = {"area": found.area, "advantage": found.advantage, "bound": found.advantage_bound}
        click.echo(json.dumps({**numbers, "chance": found.advantage_error}, indent=2))
    else:
        click.echo(textwrap.fill(found.explain(), 100))
