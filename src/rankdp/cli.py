"""The command line: parse, call one function of the library, print.

Results go to stdout and words to stderr. Exit codes: 0 done, 1 refused (one sentence says why), 2 wrong usage.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rankdp.errors import RankdpError
from rankdp.version import __version__

if TYPE_CHECKING:
    from rankdp.privacy.ledger import Ledger
    from rankdp.privacy.release import Release

_MECHANISM_NAMES = ("auto", "kendall", "ulam", "reinsertion", "laplace", "optimal")
_NOISE_NAMES = ("laplace", "gaussian", "generalized-normal", "staircase", "ball")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="rankdp")
def cli() -> None:
    """Publish rankings without publishing the people behind them."""


def _charged(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every command that spends."""
    for option in (
        click.option("--dataset", metavar="NAME", help="Whose budget, where the ledger has several."),
        click.option(
            "--ledger",
            "ledger_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Charge the budget in FILE first (rankdp budget).",
        ),
    ):
        command = option(command)
    return command


@cli.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--epsilon", "-e", metavar="NUMBER", help="Privacy of every ranking: smaller is more private.")
@click.option("--epsilon-column", metavar="NAME", help="Column with each voter's own epsilon, instead of --epsilon.")
@click.option("--mechanism", type=click.Choice(_MECHANISM_NAMES), default="auto", show_default=True)
@click.option(
    "--objective",
    type=click.Choice(["concordance", "aggregate"]),
    default="concordance",
    show_default=True,
    help="What auto is best at: keeping pairs in order, or unbiased aggregates (rankdp aggregate).",
)
@click.option(
    "--listed-items-public", is_flag=True, help="Accept partial rankings; which items are listed stays public."
)
@click.option(
    "--ties",
    type=click.Choice(["refuse", "listed", "random"]),
    default="refuse",
    show_default=True,
    help="Tied items: refuse, keep the order of the file, or break at random.",
)
@click.option(
    "--items", "items_file", type=click.Path(path_type=Path), help="File with the public item names, one a line."
)
@click.option(
    "--answers",
    "answers_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keep every answer in FILE: who is asked again gives the same one, at no cost.",
)
@click.option("--wave", default="", metavar="NAME", help="With --answers: the data are new.")
@_charged
@click.option("--rehearse", "seed", type=int, metavar="SEED", help="Repeatable draw for tests: NOT private.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def privatize(
    source: Path,
    target: Path,
    epsilon: str | None,
    epsilon_column: str | None,
    mechanism: str,
    objective: Any,
    listed_items_public: bool,
    ties: Any,
    items_file: Path | None,
    answers_file: Path | None,
    wave: str,
    ledger_file: Path | None,
    dataset: str | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Replace every ranking in IN by a private synthetic one, in OUT.

    CSV, Parquet and PrefLib files, by their endings. OUT.release.json states the guarantee.
    """
    from rankdp.data.comparisons import listed_items
    from rankdp.privacy.answers import AnswerStore
    from rankdp.privacy.bits import SeededBits
    from rankdp.privatizing import privatize_file

    if (epsilon is None) == (epsilon_column is None):
        raise click.UsageError("Give either --epsilon or --epsilon-column.")
    started = time.perf_counter()
    with _progress("privatizing") as progress:
        release = privatize_file(
            source,
            target,
            epsilon,
            mechanism=mechanism,
            objective=objective,
            epsilon_column=epsilon_column,
            listed_items_public=listed_items_public,
            ties=ties,
            items=listed_items(items_file) if items_file else None,
            ledger=_ledger(ledger_file, dataset),
            answers=AnswerStore(answers_file) if answers_file else None,
            wave=wave,
            bits=None if seed is None else SeededBits(seed),
            progress=progress,
        )
    seconds = time.perf_counter() - started
    if as_json:
        summary = {"out": str(target), "rows": progress.rows, "seconds": round(seconds, 3), **release.to_dict()}
        click.echo(json.dumps(summary, indent=2))
    else:
        _say(f"{target}: {progress.rows:,} rankings in {seconds:.1f} s, mechanism {release.provenance.mechanism}")
        if left_out := release.provenance.parameters["columns_left_out"]:
            _say(f"columns left out, because nothing protects them: {', '.join(left_out)}")
        _say_choice(release)
        _say(release.explain())


def _say_choice(release: Release[Any]) -> None:
    """Why auto chose what it chose, where it chose one thing."""
    from rankdp.mechanisms.registry import mechanism, why

    facts = release.provenance.parameters
    if facts["asked_for"] == "auto" and len(facts["choices"]) == 1:
        (choice,) = facts["choices"]
        chosen = mechanism(choice["mechanism"], choice["items"], choice["epsilon"])
        _say(why(chosen, facts["objective"]))  # type: ignore[arg-type]


@cli.command()
@click.argument("votes", metavar="VOTES")
@click.option(
    "--epsilon", "-e", metavar="NUMBER", required=True, help="Privacy of the leaderboard: smaller is more private."
)
@click.option(
    "--protect",
    type=click.Choice(["comparison", "outcome", "voter"]),
    required=True,
    help="What is protected: one comparison; one outcome, who met whom being public; or all votes of a voter.",
)
@click.option("--max-per-voter", type=int, metavar="C", help="With --protect voter: use at most C comparisons of each.")
@click.option("--method", type=click.Choice(["bradley-terry", "copeland"]), default="bradley-terry", show_default=True)
@click.option(
    "--items", "items_file", type=click.Path(path_type=Path), help="File with the public item names, one a line."
)
@click.option("--items-from-data", is_flag=True, help="Take the items from the votes, which makes the list public.")
@click.option("--top", type=int, metavar="K", help="Also say which items are in the top K, and how surely.")
@click.option("--scale", type=click.Choice(["log-strength", "elo"]), default="log-strength", show_default=True)
@click.option("--delta", default="0", metavar="NUMBER", help="Above 0: Gaussian noise on wins, (epsilon, delta)-DP.")
@click.option("--ridge", type=float, metavar="NUMBER", help="Instead of the one chosen from public numbers.")
@click.option("--link", default="logistic", show_default=True, help="Or secant, best-of-three.")
@click.option("--calibration", type=click.Choice(["tight", "paper"]), default="tight", show_default=True)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option("--voter-column", metavar="NAME")
@click.option("--weight-column", metavar="NAME")
@click.option("--both-bad", type=click.Choice(["tie", "drop"]), default="tie", show_default=True)
@click.option("--on-problem", type=click.Choice(["refuse", "drop"]), default="refuse", show_default=True)
@click.option("--table", metavar="NAME", help="The table of a .duckdb file.")
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="board.csv, .json, .html or .png; may be repeated.",
)
@click.option("--title", default="Leaderboard", show_default=True)
@_charged
@click.option("--rehearse", "seed", type=int, metavar="SEED", help="Repeatable draw for tests: NOT private.")
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def rank(
    votes: str,
    epsilon: str,
    items_file: Path | None,
    outputs: tuple[Path, ...],
    title: str,
    ledger_file: Path | None,
    dataset: str | None,
    seed: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Publish a leaderboard from a table of VOTES, with every vote protected.

    CSV or Parquet files (patterns too) or a DuckDB table, with columns such as left, right, winner; winner, loser;
    item_1, item_2, outcome; or model_a, model_b, winner.
    """
    from rankdp.data.comparisons import Comparisons
    from rankdp.privacy.bits import SeededBits
    from rankdp.ranking import rank as publish
    from rankdp.reports import check_ending, to_json, write_board

    for path in outputs:
        check_ending(path)
    reading = {
        name: options.pop(name)
        for name in ("items_from_data", "voter_column", "weight_column", "both_bad", "on_problem", "table")
    }
    comparisons = Comparisons.read(votes, items=items_file, **reading)
    _say(comparisons.recognised)
    release = publish(
        comparisons,
        epsilon,
        ledger=_ledger(ledger_file, dataset),
        bits=None if seed is None else SeededBits(seed),
        **options,
    )
    for path in outputs:
        write_board(release, path, title)
    if as_json:
        click.echo(to_json(release))
    else:
        _board_table(release.value, title)
        for warning in release.value.warnings:
            _say(f"note: {warning}")
        _say(release.explain())


def _board_table(board: Any, title: str) -> None:
    from math import isfinite

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", title_style="bold")
    table.add_column("item")
    for head in (board.score_name, f"{board.level:.0%} interval", "rank", "rank interval"):
        table.add_column(head, justify="right")
    if board.top is not None:
        table.add_column(f"in the top {board.top}", justify="right")
    for row in board.rows():
        digits = 0 if board.score_name == "elo" else 2
        cells = [
            escape(row["item"]),
            f"{row[board.score_name]:.{digits}f}",
            " … ".join(f"{end:.{digits}f}" if isfinite(end) else "–" for end in (row["low"], row["high"])),
            str(row["rank"]),
            f"{row['rank_low']} – {row['rank_high']}",
        ]
        if board.top is not None:
            cells.append(f"{'yes' if row['in_top'] else 'no'} ({row['top_probability']:.0%})")
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


@cli.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--epsilon", "-e", metavar="NUMBER", help="Privacy of every score: smaller is more private.")
@click.option(
    "--bounds", nargs=2, metavar="LO HI", help="Two public numbers that every score lies between; never from the data."
)
@click.option("--noise", type=click.Choice(_NOISE_NAMES), default="laplace", show_default=True)
@click.option(
    "--delta", default="0", metavar="NUMBER", help="For gaussian, generalized-normal with p above 1, and ball noise."
)
@click.option("--p", "-p", metavar="NUMBER", help="The shape of generalized-normal or ball noise (inf: a cube).")
@click.option("--gamma", metavar="NUMBER", help="The first stair of staircase noise, as a share of the range.")
@click.option(
    "--outside",
    type=click.Choice(["refuse", "clip"]),
    default="refuse",
    show_default=True,
    help="A score outside the bounds: refuse the file, or move it to the nearest bound.",
)
@click.option("--clamp-output", is_flag=True, help="Move noisy scores back into the bounds (costs no privacy).")
@click.option("--item-column", metavar="NAME", help="Column with the names, where it is not item, name or id.")
@click.option("--score-column", metavar="NAME", help="Column with the scores, where it is not score or value.")
@_charged
@click.option("--rehearse", "seed", type=int, metavar="SEED", help="Repeatable draw for tests: NOT private.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def scores(
    source: Path,
    target: Path,
    ledger_file: Path | None,
    dataset: str | None,
    seed: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Add noise to every score in IN, each one protected, and write them to OUT.

    CSV or Parquet in; CSV, Parquet or JSON out, by their endings. OUT.release.json states the guarantee.
    """
    from rankdp.privacy.bits import SeededBits
    from rankdp.scoring import privatize_scores_file

    release = privatize_scores_file(
        source,
        target,
        ledger=_ledger(ledger_file, dataset),
        bits=None if seed is None else SeededBits(seed),
        **options,
    )
    facts = release.provenance.parameters
    if as_json:
        click.echo(json.dumps({"out": str(target), "rows": facts["scores"], **release.to_dict()}, indent=2))
        return
    _say(f"{target}: {facts['scores']:,} scores, {facts['noise']} noise")
    if left_out := facts["columns_left_out"]:
        _say(f"columns left out, because nothing protects them: {', '.join(left_out)}")
    low, high = facts["bounds"]
    _say(f"noise of standard deviation {facts['standard_deviation']:.3g} on every score, bounds {low:g} to {high:g}")
    _say(release.explain())


@cli.command()
@click.option("--plot", type=click.Path(path_type=Path), default=Path("rankdp-demo.png"), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(plot: Path, as_json: bool) -> None:
    """Privatize a built-in poll and show what survives."""
    from rankdp.demo import run_demo

    shown = run_demo()
    shown.save_plot(plot)
    if as_json:
        numbers = {
            "true_mean_ranks": shown.true,
            "synthetic": {
                f"{epsilon:g}": {"mean_ranks": shown.synthetic[epsilon], **release.to_dict()}
                for epsilon, release in shown.releases.items()
            },
            "plot": str(plot),
        }
        click.echo(json.dumps(numbers, indent=2))
        return
    _demo_table(shown)
    middle = sorted(shown.releases)[1]
    for words in (
        f"Why this mechanism: {shown.why(middle)}.",
        f"What epsilon {middle:g} promises every voter: {shown.releases[middle].explain()}",
        "Mean ranks of synthetic rankings are drawn to the middle, the more so the smaller epsilon is: compare the "
        "order of the items rather than the numbers.",
        f"Plot: {plot}",
    ):
        click.echo("\n" + textwrap.fill(words, 100))


def _demo_table(shown: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"What should our town build next? Mean rank over {len(shown.poll):,} made-up voters, and place",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("item")
    table.add_column("true", justify="right")
    for epsilon in shown.releases:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    columns = [shown.true, *shown.synthetic.values()]
    places = [{item: place for place, item in enumerate(shown.order(means), 1)} for means in columns]
    for item in shown.order(shown.true):
        table.add_row(
            item, *(f"{means[item]:.2f}  #{place[item]}" for means, place in zip(columns, places, strict=True))
        )
    table.add_section()
    table.add_row("item pairs in the true order", "", *(f"{shown.pairs_in_order(one):.0%}" for one in shown.releases))
    Console(width=None if sys.stdout.isatty() else 110).print(table)


@cli.command()
@click.argument("synthetic", metavar="SYNTHETIC", type=click.Path(path_type=Path))
@click.option("--mechanism", type=click.Choice(_MECHANISM_NAMES[1:]), help="What made the rankings, without a sidecar.")
@click.option("--epsilon", "-e", metavar="NUMBER", help="At which epsilon, without a sidecar.")
@click.option("--epsilon-column", metavar="NAME", help="Column with each voter's own epsilon.")
@click.option(
    "--method",
    type=click.Choice(["borda", "copeland", "bradley-terry", "kemeny"]),
    default="borda",
    show_default=True,
    help="What orders the items.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option("--bias", type=float, default=0.0, metavar="SHARE", help="Allow this much bias where it saves variance.")
@click.option(
    "--combine",
    type=click.Choice(["precision", "voters"]),
    default="precision",
    show_default=True,
    help="Weigh voters of different epsilons by one over the noise's variance, or all alike.",
)
@click.option(
    "--items", "items_file", type=click.Path(path_type=Path), help="File with the public item names, one a line."
)
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="table.csv, .json, .html or .png; may be repeated.",
)
@click.option("--title", default="Aggregate", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the aggregate as JSON.")
def aggregate(
    synthetic: Path,
    method: str,
    level: float,
    items_file: Path | None,
    outputs: tuple[Path, ...],
    title: str,
    as_json: bool,
    **options: Any,
) -> None:
    """The collective order behind privatized rankings, without the bias of the noise.

    SYNTHETIC is a file from `rankdp privatize`, whose sidecar says how it was made, or any file of rankings made with
    a stated mechanism and epsilon. Costs no privacy.
    """
    from rankdp.aggregation.estimates import aggregate_file
    from rankdp.aggregation.pages import check_ending, origin, table_of, to_dict, write_aggregate
    from rankdp.data.comparisons import listed_items

    for path in outputs:
        check_ending(path)
    found = aggregate_file(synthetic, items=listed_items(items_file) if items_file else None, **options)
    for path in outputs:
        write_aggregate(found, path, method, level, title)
    if as_json:
        click.echo(json.dumps(to_dict(found, method, level), indent=2))
        return
    _table(title, *table_of(found, method, level), texts=2)
    _say(origin(found, method))


@cli.command()
@click.argument("users", metavar="USERS", type=click.Path(path_type=Path))
@click.argument("items", metavar="ITEMS", type=click.Path(path_type=Path))
@click.argument("rankings", metavar="RANKINGS", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", "target", type=click.Path(path_type=Path), required=True, help="A new directory for the model."
)
@click.option("--model", type=click.Choice(["linear", "two-tower"]), default="linear", show_default=True)
@click.option("--loss", type=click.Choice(["logistic", "exponential", "psi"]), default="logistic", show_default=True)
@click.option(
    "--mechanism", type=click.Choice(_MECHANISM_NAMES), help="What made RANKINGS, if no release file says it."
)
@click.option("--epsilon", "-e", metavar="NUMBER", help="With --mechanism: the epsilon of every ranking.")
@click.option("--epsilon-column", metavar="NAME", help="With --mechanism: the column with each user's own epsilon.")
@click.option("--debias/--naive", default=True, show_default=True, help="Undo the mechanism's noise in the labels.")
@click.option("--interaction/--common", default=None, help="Linear: personal rankings, or one for everybody.")
@click.option("--l2", type=float, help="Strength of the regularisation.")
@click.option("--early-stopping/--no-early-stopping", default=None, help="Stop when validation users gain nothing.")
@click.option("--user-column", metavar="NAME", help="Column with the ids of USERS.")
@click.option("--item-column", metavar="NAME", help="Column with the names of ITEMS.")
@click.option("--user-feature", "user_features", multiple=True, metavar="NAME", help="Use these columns; repeatable.")
@click.option("--item-feature", "item_features", multiple=True, metavar="NAME", help="Use these columns; repeatable.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the curves and settings as JSON.")
def learn(
    users: Path,
    items: Path,
    rankings: Path,
    target: Path,
    user_features: tuple[str, ...],
    item_features: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Learn who prefers what, from privatized RANKINGS and tables of features.

    USERS and ITEMS are CSV or Parquet files with a column of ids and columns of numbers. RANKINGS.release.json, which
    `rankdp privatize` writes, says which noise to undo.
    """
    from rankdp.learning import learn_files

    settings = {name: value for name, value in options.items() if value is not None}
    done = learn_files(
        users,
        items,
        rankings,
        target,
        user_features=user_features or None,
        item_features=item_features or None,
        **settings,
    )
    if as_json:
        click.echo(json.dumps({"out": str(target), **done.report.to_dict()}, indent=2))
        return
    for note in done.report.notes:
        _say(note)
    _say(f"{target}: {len(done.report.history)} epochs, {done.report.history.stopped}; see report.html")


_UNIT_HELP = "comparison, outcome, voter (with --max-per-voter), position, ranking, score, or a guarantee's own words."


def _ledger(path: Path | None, dataset: str | None) -> Ledger | None:
    """The ledger that a command charges, None where none was asked for."""
    if path is None:
        if dataset is not None:
            raise click.UsageError("--dataset goes with --ledger.")
        return None
    from rankdp.privacy.ledger import Ledger

    return Ledger.open(path, dataset)


@cli.group()
def budget() -> None:
    """Keep a budget of epsilon for a data set: create, show, verify, export, spend."""


def _unit(protects: str, max_per_voter: int | None) -> str:
    """A unit by its short name, or in the words of the guarantees."""
    from rankdp.mechanisms.units import PROTECT, Protection
    from rankdp.privacy.guarantee import ITEM_POSITION, ONE_SCORE, WHOLE_RANKING

    if protects in PROTECT:
        return Protection.of(protects, max_per_voter).protects
    if max_per_voter is not None:
        raise click.UsageError("--max-per-voter goes with --protects voter.")
    return {"position": ITEM_POSITION, "ranking": WHOLE_RANKING, "score": ONE_SCORE}.get(protects, protects)


@budget.command("create")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", required=True, metavar="NAME", help="Whose budget it is: one name for the same people.")
@click.option("--protects", required=True, metavar="UNIT", help=_UNIT_HELP)
@click.option("--max-per-voter", type=int, metavar="C", help="With --protects voter.")
@click.option("--epsilon", "-e", required=True, metavar="NUMBER", help="All that may ever be spent.")
@click.option("--delta", default="0", metavar="NUMBER", show_default=True)
@click.option(
    "--accounting",
    type=click.Choice(["auto", "basic", "renyi"]),
    default="auto",
    show_default=True,
    help="With a delta: add up, or count by Rényi divergences (better for many Gaussian releases).",
)
def budget_create(
    file: Path, dataset: str, protects: str, max_per_voter: int | None, epsilon: str, delta: str, accounting: Any
) -> None:
    """Add a budget to FILE, which is made if need be."""
    from rankdp.privacy.ledger import Ledger

    made = Ledger.create(file, dataset, _unit(protects, max_per_voter), epsilon, delta, accounting=accounting)
    _say(f"{file}: {dataset} may spend epsilon {epsilon}" + (f" and delta {delta}" if delta != "0" else ""))
    _say(f"head {made.verify().head} (note it elsewhere; rankdp budget verify --head asks for it)")


@budget.command("show")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Whose budget, where FILE has several.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Also plot spending over time: .png, .pdf, .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def budget_show(file: Path, dataset: str | None, output: Path | None, as_json: bool) -> None:
    """What is spent, what is left, and on what."""
    from rankdp.budget.reports import budget_table, check_ending, history_table, save_plot, to_dict
    from rankdp.privacy.ledger import Ledger

    if output is not None:
        check_ending(output)
    ledger = Ledger.open(file, dataset)
    if output is not None:
        save_plot(ledger, output)
    if as_json:
        click.echo(json.dumps(to_dict(ledger), indent=2))
        return
    _table(f"Budget of {ledger.dataset}", *budget_table(ledger))
    heads, rows = history_table(ledger)
    if rows:
        _table("Charges", heads, rows, texts=4)
    if output is not None:
        _say(f"Plot: {output}")


@budget.command("verify")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Any of those in FILE: the whole file is checked.")
@click.option("--head", metavar="HASH", help="A head that was noted before: it must be in the chain.")
def budget_verify(file: Path, dataset: str | None, head: str | None) -> None:
    """Check the chain of entries and all totals; the first broken entry is named."""
    from rankdp.privacy.ledger import verify_file

    found = verify_file(file, head)
    _say(f"{file}: {found.entries:,} entries, every hash and every total holds")
    click.echo(found.head)


@budget.command("export")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT.csv", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Whose budget, where FILE has several.")
def budget_export(file: Path, target: Path, dataset: str | None) -> None:
    """Write one line for each charge, exact numbers as fractions."""
    from rankdp.budget.reports import export_csv
    from rankdp.privacy.ledger import Ledger

    _say(f"{target}: {export_csv(Ledger.open(file, dataset), target):,} charges")


@budget.command("spend")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="Whose budget, where FILE has several.")
@click.option("--protects", required=True, metavar="UNIT", help=_UNIT_HELP)
@click.option("--max-per-voter", type=int, metavar="C", help="With --protects voter.")
@click.option("--epsilon", "-e", required=True, metavar="NUMBER")
@click.option("--delta", default="0", metavar="NUMBER", show_default=True)
@click.option("--partition", metavar="NAME", help="With --part: the release is about one part of the voters only.")
@click.option("--part", metavar="NAME")
@click.option("--convert", is_flag=True, help="Pay for a release that protects another unit, at its price.")
@click.argument("what", metavar="WHAT")
def budget_spend(
    file: Path,
    dataset: str | None,
    protects: str,
    max_per_voter: int | None,
    epsilon: str,
    delta: str,
    what: str,
    **options: Any,
) -> None:
    """Charge a release that another tool is about to make."""
    from rankdp.privacy.exact import positive, rational
    from rankdp.privacy.guarantee import Guarantee
    from rankdp.privacy.ledger import Ledger

    guarantee = Guarantee(_unit(protects, max_per_voter), positive(epsilon), rational(delta, "delta"), local=False)
    entry = Ledger.open(file, dataset).spend(guarantee, what, **options)
    _say(f"entry {entry.number}: charged; release now")
    for words in filter(None, entry.converted):
        _say(f"converted: {words}")


@cli.command()
@click.argument("mechanism", metavar="[MECHANISM]", type=click.Choice(_MECHANISM_NAMES), required=False)
@click.option("--items", type=int, required=True, help="How many items are ranked.")
@click.option("--epsilon", "-e", metavar="NUMBER", required=True, help="The epsilon that is claimed.")
@click.option("--exact", is_flag=True, help="Only enumerate all outputs and neighbours (up to 6 items).")
@click.option("--draws", type=int, default=100_000, show_default=True, help="Draws in all for the statistical audit.")
@click.option("--level", type=float, default=0.99, show_default=True, help="Confidence of the lower bound.")
@click.option(
    "--command",
    metavar="WORDS",
    help="Audit a program instead: a command line with {in} and {out} for files of rankings.",
)
@click.option("--timeout", type=float, default=60, show_default=True, help="Seconds for each run of --command.")
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="report.html, .png or .json; may be repeated.",
)
@click.option("--rehearse", "seed", type=int, metavar="SEED", help="Repeatable draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def audit(
    mechanism: str | None,
    items: int,
    epsilon: str,
    exact: bool,
    draws: int,
    level: float,
    command: str | None,
    timeout: float,
    outputs: tuple[Path, ...],
    seed: int | None,
    as_json: bool,
) -> None:
    """Try to prove that MECHANISM, or any program, is less private than claimed.

    Exit code 0 when the claim survives, 1 when it is violated.
    """
    from rankdp.auditing import AuditReport, audit_command, audit_mechanism, write_audit
    from rankdp.auditing.report import check_ending
    from rankdp.mechanisms.registry import mechanism as build
    from rankdp.privacy.bits import SeededBits

    if (mechanism is None) == (command is None):
        raise click.UsageError("Give either MECHANISM or --command.")
    if exact and command is not None:
        raise click.UsageError("--exact goes with MECHANISM, not with --command.")
    for path in outputs:
        check_ending(path)
    if command is not None:
        found = audit_command(
            shlex.split(command),
            items=items,
            draws=draws,
            claimed_epsilon=epsilon,
            confidence=level,
            timeout=timeout,
        )
        report = AuditReport(found.subject, found.claimed, (found,))
    else:
        report = audit_mechanism(
            build(mechanism or "auto", items, epsilon),
            exact=True if exact else None,
            draws=0 if exact else draws,
            confidence=level,
            bits=None if seed is None else SeededBits(seed),
        )
    for path in outputs:
        write_audit(report, path)
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        click.echo(report.explain())
    if not report.holds:
        raise click.exceptions.Exit(1)


@cli.group()
def attack() -> None:
    """What somebody who means ill learns from a release, on simulated data."""


@attack.command("inference")
@click.option("--items", type=click.IntRange(2, 6), default=4, show_default=True)
@click.option("--epsilon", "-e", default="1", show_default=True, help="A number, adaptive or adaptive-log.")
@click.option("--mechanism", "mechanisms", multiple=True, type=click.Choice(_MECHANISM_NAMES[1:]))
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

    from rankdp.attacking.inference import success_curve
    from rankdp.attacking.pages import check_ending, draw_success, write_picture
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
    _table(
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
@click.option("--mechanism", type=click.Choice(_MECHANISM_NAMES), default="auto", show_default=True)
@click.option("--landed", type=int, default=1, show_default=True, help="Where the release shows the item.")
@click.option("--prior", metavar="P,P,…", help="What was believed before, position by position; flat if not given.")
@click.option("--output", "-o", "outputs", multiple=True, type=click.Path(path_type=Path), help="bars.png or .html.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def attack_position(
    items: int, epsilon: str, mechanism: str, landed: int, prior: str | None, outputs: tuple[Path, ...], as_json: bool
) -> None:
    """What one release tells about where one item really stood."""
    from rankdp.attacking.pages import check_ending, write_picture
    from rankdp.attacking.position import position_attack
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
    _table("Where did the item really stand?", ["position", "before", "after", ""], rows, texts=0)
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
    from rankdp.attacking.pages import check_ending, write_picture
    from rankdp.attacking.votes import membership_experiment

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


@cli.group()
def plan() -> None:
    """Which epsilon? What accuracy it buys, or which one an accuracy needs.

    From public numbers only, without simulation: nothing is read, nothing is spent.
    """


def _planned(command: Callable[..., None]) -> Callable[..., None]:
    """The options that all plans share: one question, and where the answer goes."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON."),
        click.option(
            "--output",
            "-o",
            "outputs",
            multiple=True,
            type=click.Path(path_type=Path),
            help="plan.png, .html or .json; may be repeated.",
        ),
        click.option("--top", type=int, metavar="K", help="The length of a top list, for --overlap.  [default: 3]"),
        click.option("--overlap", type=float, metavar="SHARE", help="Ask for: this share of the true top K kept."),
        click.option("--exact", type=float, metavar="SHARE", help="Ask for: the exact order with this probability."),
        click.option("--pairs", type=float, metavar="SHARE", help="Ask for: this share of all pairs in order."),
        click.option("--epsilon", "-e", metavar="NUMBER", help="Ask what this epsilon buys."),
    ):
        command = option(command)
    return command


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
def plan_ranking(**options: Any) -> None:
    """One person's ranking, released as a synthetic one (rankdp privatize)."""
    _plan("ranking", **options)


@plan.command("comparisons")
@click.option("--items", type=int, required=True, help="How many items are compared.")
@click.option("--comparisons", type=int, required=True, help="How many comparisons there will be, about.")
@click.option("--protect", type=click.Choice(["comparison", "outcome", "voter"]), required=True)
@click.option("--max-per-voter", type=int, metavar="C")
@click.option("--delta", default="0", metavar="NUMBER", help="Above 0: Gaussian noise on wins.")
@click.option("--spread", type=float, default=1.0, show_default=True, help="Log-strengths lie within +-SPREAD.")
@_with_intervals
@_planned
def plan_comparisons(**options: Any) -> None:
    """A leaderboard from comparisons (rankdp rank)."""
    _plan("comparisons", **options)


@plan.command("scores")
@click.option("--items", type=int, required=True, help="How many scores are released.")
@click.option("--bounds", type=float, nargs=2, default=(0.0, 1.0), show_default=True, metavar="LOW HIGH")
@click.option(
    "--law", type=click.Choice(["uniform", "normal", "exponential", "beta"]), default="uniform", show_default=True
)
@click.option("--delta", type=float, default=0.0, metavar="NUMBER", help="Above 0: Gaussian noise takes part.")
@_with_intervals
@_planned
def plan_scores(**options: Any) -> None:
    """A vector of scores with noise on each (rankdp scores)."""
    _plan("scores", **options)


@plan.command("respondents")
@click.option("--items", type=int, required=True, help="How many items are ranked.")
@click.option("--epsilon", "-e", metavar="NUMBER", required=True, help="Privacy of every ranking.")
@click.option("--half-width", type=float, required=True, metavar="SHARE", help="Of every win rate: 0.03 is 3 points.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of each interval.")
@click.option("--every", is_flag=True, help="All intervals hold together at that confidence.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def plan_respondents(items: int, epsilon: str, half_width: float, level: float, every: bool, as_json: bool) -> None:
    """How many privatized rankings make every win rate as sure as asked (rankdp aggregate)."""
    from rankdp.aggregation.respondents import compare

    needed = compare(items, epsilon, half_width, level, every=every)
    if as_json:
        click.echo(json.dumps({"respondents": dict(needed), "recommended": needed[0][0]}, indent=2))
        return
    _table(
        f"Respondents for +-{100 * half_width:g} points on every pair of {items} items at epsilon {epsilon}",
        ["mechanism", "respondents"],
        [[name, f"{count:,}"] for name, count in needed],
    )
    click.echo(
        f"\n{needed[0][1]:,} respondents suffice with {needed[0][0]}, whatever they prefer: "
        f"rankdp privatize --mechanism {needed[0][0]}"
    )


def _plan(situation: str, outputs: tuple[Path, ...], as_json: bool, **question: Any) -> None:
    from rankdp.planning.pages import check_ending, table_of, write_plan
    from rankdp.planning.plan import plan as make

    for path in outputs:
        check_ending(path)
    made = make(situation, **question)
    for path in outputs:
        write_plan(made, path)
    if as_json:
        click.echo(json.dumps(made.to_dict(), indent=2))
        return
    _table(f"Plan: {made.situation.subject}", *table_of(made))
    click.echo("\n" + textwrap.fill(made.explain(), 100))


def _table(title: str, heads: list[str], rows: list[list[str]], texts: int = 1) -> None:
    """A table on stdout; the first ``texts`` columns are set as text."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < texts else "right")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(f"[bold]{escape(title)}[/bold]", table, sep="\n")


def _say(words: str) -> None:
    click.echo(words, err=True)


class _Rows:
    """Counts rows and passes them on to a progress bar where somebody watches."""

    def __init__(self, show: Callable[[int, int | None], None]) -> None:
        self.rows = 0
        self._show = show

    def __call__(self, rows: int, total: int | None) -> None:
        self.rows = rows
        self._show(rows, total)


@contextmanager
def _progress(doing: str) -> Iterator[_Rows]:
    """A bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield _Rows(lambda rows, total: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn("rankings"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield _Rows(lambda rows, total: bar.update(task, completed=rows, total=total))


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = cli.main(prog_name="rankdp", standalone_mode=False) or 0
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except click.UsageError as problem:
        problem.show()
        code = 2
    except RankdpError as refusal:
        _say(f"rankdp: {refusal}")
        code = 1
    except (KeyboardInterrupt, click.Abort):
        _say("rankdp: interrupted; nothing was written")
        code = 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as problem:
        _say(f"rankdp: {problem.filename or 'the system'}: {problem.strerror or problem}")
        code = 1
    sys.exit(code)
