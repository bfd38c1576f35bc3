"""`rankdp elect`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import (
    OPENING,
    PATH,
    Sectioned,
    charged,
    check_new,
    choice,
    columns_option,
    in_a_line,
    items_option,
    layout_option,
    need,
    opening_options,
    option,
    rehearse,
    sections,
    standard_input,
    voter_column_option,
)
from rankdp.cli.terminal import check_files, deliver, output_options, publish, say
from rankdp.errors import Unsupported

if TYPE_CHECKING:
    from rankdp.privacy.bits import Bits
    from rankdp.privacy.ledger import Ledger


_CLEANING = "skipped overvote repeated write_ins exclude skipped_words overvote_words write_in_words"


@click.command(
    cls=Sectioned, sections=sections(Data=f"contest {_CLEANING}", Privacy="without_noise", Output="synthetic")
)
@click.argument("ballots", metavar="BALLOTS...", nargs=-1, required=True, callback=standard_input)
@option("--epsilon -e", "Privacy of the result: smaller is more private.", "NUMBER")
@option(
    "--without-noise",
    "Instead of --epsilon: the exact count, NOT PRIVATE, only for the holder of the ballots.",
    is_flag=True,
)
@option(
    "--rule",
    "How ballots are counted: plurality, borda, irv, stv, kemeny, copeland, ranked-pairs, schulze, or condorcet "
    "(whether one candidate beats every other, and who).  [required, except with --synthetic]",
    "RULE",
)
@choice(
    "--protect",
    ["ballot", "voter"],
    help="What is protected: the content of one ballot (their number is public); or also whether it was cast.",
)
@option("--seats", "Number of winners.", "S", default=1)
@option("--first", "With --rule plurality: a ballot votes for the first K on it.", "K", default=1)
@choice(
    "--stv",
    ["gregory", "scottish"],
    help="With --rule stv: transfer all surpluses at once, or as in Scottish council elections, the largest first and "
    "to five decimal places.",
)
@choice(
    "--until",
    ["two", "majority"],
    help="With --rule irv: count until two candidates are left, or end as soon as one has more than half.",
)
@choice(
    "--announce",
    ["everything", "winners"],
    help="Release scores and an order, or only the names of the winners (with borda and plurality).",
)
@option(
    "--turnout",
    "Published number of ballots: the result says if it contradicts the number of these ballots.",
    "N",
    int,
)
@option("--delta", "Above 0: Gaussian noise where smaller, (epsilon, delta)-DP.", "NUMBER", default="0")
@option("--level", "Confidence of the intervals.", default=0.95)
@items_option
@voter_column_option
@columns_option
@option("--weight-column", "Column with the number of equal ballots that a row represents.", "NAME")
@layout_option
@opening_options
@option("--contest", "Contest to count, in cast vote records that hold several.", "NAME")
@choice(
    "--skipped",
    ["next", "two", "exhaust"],
    help="A skipped rank: continue with the next one, end the ballot at two in a row, or end it at once.",
)
@choice("--overvote", ["exhaust", "skip"], help="Several candidates at one rank: end the ballot, or skip the rank.")
@choice("--repeated", ["next", "exhaust"], help="A candidate ranked again: continue with the next, or end the ballot.")
@choice("--write-ins", ["together", "keep", "drop"], help="Count them as one candidate, as spelled, or not at all.")
@option("--exclude", "Candidate to remove from every ballot; may be repeated.", "NAME", multiple=True)
@option("--skipped-word skipped_words", "Another spelling of a skipped rank.", "WORD", multiple=True)
@option("--overvote-word overvote_words", "Another spelling of an overvote.", "WORD", multiple=True)
@option("--write-in-word write_in_words", "Another spelling of a write-in.", "WORD", multiple=True)
@option(
    "--synthetic",
    "Instead of a result, write a table of synthetic ballots (.csv, .parquet or .soi) under the same guarantee.",
    "OUT",
    PATH,
)
@option("--title", "Heading of the result; by default with the ward or contest that the file states.")
@charged
@rehearse
@output_options
def elect(
    ballots: str | list[str],
    epsilon: str | None,
    without_noise: bool,
    synthetic: Path | None,
    outputs: tuple[Path, ...],
    title: str | None,
    ledger: Ledger | None,
    bits: Bits | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Publish an election result, with every ballot protected.

    BALLOTS is a CSV, JSON, Excel, Parquet, PrefLib or BLT file, several tables or a pattern such as 'ballots/*.csv', a
    DuckDB file, or cast vote records (also the directory or .zip file of a JSON export). Its columns are rank_1,
    rank_2, …, one row per ballot, optionally with a count of equal ballots; or voter, item and rank (or rating).

    \b
    Examples:
      rankdp elect ballots.csv --items candidates.txt --epsilon 1 --rule irv -o result.html
      rankdp elect council.blt --epsilon 0.5 --rule stv --seats 3 -o result.html -o result.csv
    """
    from rankdp.data.ballots import Ballots
    from rankdp.data.cleaning import Cleaning
    from rankdp.publish.election_report import election_report
    from rankdp.publish.election_result import CANDIDATES_FROM_BALLOTS
    from rankdp.publish.elections import ElectionRequest
    from rankdp.report.document import PICTURES

    rules = "--rule plurality, borda, irv, stv, kemeny, copeland, ranked-pairs, schulze or condorcet"
    need(
        f"rankdp elect {in_a_line(ballots)} --epsilon 1 --rule irv -o result.html",
        epsilon=("--epsilon NUMBER (or --without-noise)", epsilon or without_noise),
        rule=(rules, options["rule"] or synthetic),
    )
    if without_noise:
        _check_exact(epsilon=epsilon, ledger=ledger, rehearse=bits, synthetic=synthetic)
    check_files(outputs)
    columns = ("voter_column", "weight_column", "columns", "layout", "contest", *OPENING)
    reading = {name: options.pop(name) for name in ("items", *columns)}
    reading["cleaning"] = Cleaning(**{name: options.pop(name) for name in _CLEANING.split()})
    if synthetic is not None:
        _check_synthetic(outputs)
        check_new(synthetic, source=None if isinstance(ballots, list) else ballots)
        from rankdp.publish.synthetic_ballots import synthetic_ballots_file

        release = synthetic_ballots_file(
            ballots,
            synthetic,
            str(epsilon),
            protect=options["protect"],
            delta=options["delta"],
            ledger=ledger,
            bits=bits,
            **reading,
        )
        say(f"wrote {synthetic}: a table of {len(release.value):,} synthetic ballots")
        if release.provenance.parameters["candidates_from_ballots"]:
            say(f"note: {CANDIDATES_FROM_BALLOTS}")
        say(release.explain())
        return
    request = ElectionRequest.of(epsilon, **options)
    if request.announce == "winners" and any(path.suffix.lower() in PICTURES for path in outputs):
        raise Unsupported("names alone have no picture; choose .csv, .json or .html")
    table = Ballots.read(ballots, **reading)
    for note in table.notes:
        say(f"note: {note}")
    title = title or f"Election result{': ' * bool(table.title)}{table.title}"
    counted, report = request.count(table), partial(election_report, title=title)
    if without_noise:
        deliver(report(counted.exact()), outputs, as_json)
    else:
        publish(counted, report, ledger, bits, outputs, as_json)


def _check_exact(**given: Any) -> None:
    """Refuse options that a count without noise does not have."""
    for name, value in given.items():
        if value:
            raise click.UsageError(f"--without-noise is not private and is never charged: it takes no --{name}.")


def _check_synthetic(outputs: tuple[Path, ...]) -> None:
    """Refuse the options of a result with --synthetic, which spends all of epsilon on a table."""
    context = click.get_current_context()
    theirs = ("rule", "seats", "first", "stv", "until", "announce", "turnout", "level", "title", "as_json")
    given = [name for name in theirs if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT]
    if given or outputs:
        name = "output" if outputs else given[0].replace("_", "-").removeprefix("as-")
        raise click.UsageError(f"--synthetic writes ballots instead of a result: it takes no --{name}.")
