"""The terminal: words on stderr, tables on stdout, a progress bar where a person watches."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import PATH, options

if TYPE_CHECKING:
    from rankdp.report.document import Report


output_options = options(
    click.option(
        "--output",
        "-o",
        "outputs",
        metavar="FILE",
        multiple=True,
        type=PATH,
        help="Write a .csv, .json, .html, .png, .svg or .pdf file; may be repeated.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)


def reporting(command: Callable[..., Report]) -> Callable[..., None]:
    """Let a command return a report, which goes where --output and --json say; files are checked before it runs."""

    @wraps(command)
    def run(outputs: tuple[Path, ...], as_json: bool, **arguments: Any) -> None:
        from rankdp.report.document import check_outputs

        check_outputs(outputs)
        deliver(command(**arguments), outputs, as_json)

    decorated: Callable[..., None] = output_options(run)
    return decorated


def deliver(
    report: Report, outputs: Iterable[Path], as_json: bool = False, leaves: Callable[[], None] = lambda: None
) -> None:
    """Write a report to its files; then its JSON on stdout, or its tables and words there and the rest on stderr.

    ``leaves`` is called before the first byte of it goes anywhere.
    """
    report.write_all(outputs, leaves)
    if as_json:
        click.echo(report.json())
    else:
        _show(report)
    if report.failed:
        raise click.exceptions.Exit(1)


def _show(report: Report) -> None:
    for warning in report.warnings:
        say(f"note: {warning}")
    for table in report.tables:
        print_table(table.title or report.title, table.heads, table.rows, table.texts)
    if not report.tables:
        click.echo(report.title)
    for words in report.words:
        click.echo("\n" + textwrap.fill(words, 100))
    for words in report.footer:
        say(words)
    if report.release:
        say(report.release.explain())


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> None:
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


def many(count: int, noun: str) -> str:
    """A number of things: 1 ranking, 2 rankings."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def say(words: str) -> None:
    """A line on stderr."""
    click.echo(words, err=True)


class Rows:
    """Counts rows and passes them on to a progress bar."""

    def __init__(self, show: Callable[[int, int | None], None]) -> None:
        self.rows = 0
        self._show = show

    def __call__(self, rows: int, total: int | None) -> None:
        """Rows done, and how many there are if that is known."""
        self.rows = rows
        self._show(rows, total)


@contextmanager
def progress_bar(doing: str, unit: str = "rankings") -> Iterator[Rows]:
    """A bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield Rows(lambda rows, total: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield Rows(lambda rows, total: bar.update(task, completed=rows, total=total))
