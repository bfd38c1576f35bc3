"""`rankdp reproduce`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rankdp.cli.terminal import Rows, clear, print_table, say
from rankdp.errors import InputError, RankdpError

_SHOWN = 30  # claims up to which all are printed; above, the report has them


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--full", is_flag=True, help="Run at the papers' own sizes, which takes many times as long.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    metavar="DIR",
    help="Directory for tables, figures and the report.",
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Number of processes; one for each core if not given.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write tables and Markdown pages into this directory; figures that are not run come from its tables.",
)
@click.option(
    "--redraw",
    is_flag=True,
    help="Run nothing: judge and draw the tables in the --markdown directory again.",
)
@click.option("--list", "listing", is_flag=True, help="List what can be reproduced, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
def reproduce(
    names: tuple[str, ...],
    full: bool,
    output: Path,
    jobs: int | None,
    markdown: Path | None,
    redraw: bool,
    listing: bool,
    as_json: bool,
) -> None:
    """Run the papers' experiments and check their claims.

    NAME is a paper (xu, cai, jeong), one of its figures (xu/figure2) or a TOML file of your own; without a NAME all are
    run. Data sets are looked up in the directory given by the environment variable RANKDP_DATA. Finished work is kept:
    after an interruption the same command continues.
    """
    from rankdp_papers.documents import write_markdown
    from rankdp_papers.reproduction import reproduce as run
    from rankdp_papers.specification import find
    from rankdp_papers.tables import kept

    if redraw:
        if markdown is None or names:
            raise InputError("redraw needs the directory of --markdown and takes no NAME: it makes all of its pages")
        if not kept(markdown / "tables"):
            raise InputError(f"{markdown}: there are no tables to draw again")
        write_markdown([], markdown)
        return
    if listing:
        rows = [[one.name, one.source, one.title] for one in find(names)]
        print_table("What can be reproduced", ["name", "where", "what"], rows, texts=3)
        return
    try:
        done = run(
            names,
            output,
            size="full" if full else "quick",
            jobs=jobs,
            progress=Rows("reproducing"),
            expected=_announce,
            finished=lambda result: say(result.summary()),
        )
    except KeyboardInterrupt:
        raise RankdpError(
            f"interrupted; what was done is kept in {output}, the same command continues from there"
        ) from None
    if markdown is not None:
        write_markdown(done, markdown)
    clear()
    if as_json:
        click.echo(json.dumps([one.to_dict() for one in done], indent=2))
        return
    verdicts = [(one.specification.name, verdict) for one in done for verdict in one.verdicts]
    few = len(verdicts) <= _SHOWN
    shown = [(name, verdict) for name, verdict in verdicts if few or verdict.answer != "holds"]
    print_table(
        "What is claimed, and what we find" if few else "What does not hold, or is undecided",
        ["figure", "claim", "by", "verdict", "number"],
        [[name, one.claim.text, one.claim.by, one.answer, one.explain()] for name, one in shown],
        texts=5,
    )
    if not few:
        click.echo(f"\nThe other {len(verdicts) - len(shown)} of {len(verdicts)} claims hold.")
    click.echo(f"\nTables, figures and the page with all of them: {output / 'report.html'}")


def _announce(seconds: float) -> None:
    if seconds >= 1:  # 0 for a user's figures, whose time is unknown
        say(f"this takes about {_duration(seconds)}; finished parts are kept")


def _duration(seconds: float) -> str:
    """Seconds, minutes or hours, rounded."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds > 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} seconds"
