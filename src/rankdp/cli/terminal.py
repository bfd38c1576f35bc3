"""The terminal: messages on stderr, tables on stdout, a progress bar where a person watches."""

from __future__ import annotations

import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from rankdp.cli.options import PATH, by_name, check_new, force_option, option, options
from rankdp.progress import heard_by, tell

if TYPE_CHECKING:
    from rankdp.privacy.bits import Bits
    from rankdp.privacy.ledger import Ledger
    from rankdp.report.document import Report


_TEXT_WIDTH, _MANY_COLUMNS = 28, 5

PATIENCE = 2.0
"""Seconds of work before a bar is shown."""

output_options = options(
    option(
        "--output -o outputs",
        "Write a .csv, .json, .html, .png, .svg or .pdf file; may be repeated.",
        "FILE",
        PATH,
        multiple=True,
    ),
    option("--json as_json", "Print the result as JSON.", is_flag=True),
    force_option,
)


def reporting(command: Callable[..., Report]) -> Callable[..., None]:
    """Let a command return a report, which --output and --json deliver; files are checked before the command runs."""

    @wraps(command)
    def run(outputs: tuple[Path, ...], as_json: bool, **arguments: Any) -> None:
        check_files(outputs)
        deliver(command(**arguments), outputs, as_json)

    decorated: Callable[..., None] = output_options(run)
    return decorated


def check_files(outputs: Iterable[Path]) -> None:
    """Refuse files that could not be written, or exist and may not be replaced, before any work is done."""
    from rankdp.report.document import check_outputs

    check_new(*outputs)
    check_outputs(outputs)


def deliver(
    report: Report, outputs: Iterable[Path], as_json: bool = False, leaves: Callable[[], None] = lambda: None
) -> None:
    """Write a report to its files; then print its JSON, or its tables and words on stdout and the rest on stderr.

    ``leaves`` is called before its first byte goes anywhere.
    """
    report.write_all(outputs, leaves)
    clear()
    if as_json:
        click.echo(report.json())
    else:
        _show(report)
    for path in outputs:
        say(f"wrote {path}")
    if report.failed:
        raise click.exceptions.Exit(1)


def publish(
    counted: Any,
    report: Callable[[Any], Report],
    ledger: Ledger | None,
    bits: Bits | None,
    outputs: Iterable[Path],
    as_json: bool,
) -> None:
    """Charge for what was counted, draw it and deliver its report; from its first byte on the charge is final."""
    from rankdp.privacy.ledger import paid

    paid(counted, ledger, bits, lambda drawn, leaves: deliver(report(drawn), outputs, as_json, leaves))


def _show(report: Report, name: str = "") -> None:
    for warning in report.warnings:
        say(f"note: {name}{warning}")
    for table in report.shown_tables():
        print_table(table.title or report.title, table.heads, table.rows, table.texts)
    for part in report.parts:
        _show(part, f"{part.title}: ")
    if not report.shown_tables() and not report.parts:
        click.echo(report.title)
    for words in filter(None, [report.headline, *report.words]):
        click.echo(f"\n{_wrapped(words)}")
    if report.command:
        click.echo(f"\n{report.command}")
    for words in (*report.sure, *report.computed, *report.promised()):
        say(words)


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> None:
    """A table on stdout; the first ``texts`` columns are set as text.

    If many columns of numbers do not fit, they are printed in several tables, each with the text columns and without
    rows that are empty there.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=shutil.get_terminal_size((110, 24)).columns, highlight=False)
    lines = [list(row) for row in rows]
    parts = _fitting([list(heads), *lines], texts, console.width)
    for number, columns in enumerate(parts, 1):
        ends = [heads[place] for place in dict.fromkeys((*columns[:1], *columns[-1:]))]
        consecutive = len(ends) == 1 or all(end.isdecimal() for end in ends)
        named = " to ".join(ends) if consecutive else f"part {number} of {len(parts)}"
        part = f" ({named})" if len(parts) > 1 else ""
        table = Table()
        for place in (*range(texts), *columns):
            table.add_column(escape(heads[place]), justify="left" if place < texts else "right")
        for row in lines:
            if not part or any(row[place] for place in columns):
                table.add_row(*(escape(row[place]) for place in (*range(texts), *columns)))
        console.print(f"[bold]{escape(title + part)}[/bold]", table, sep="\n")


def _fitting(lines: Sequence[Sequence[str]], texts: int, width: int) -> list[list[int]]:
    """The columns of numbers in parts that fit a terminal next to the text columns; one part if there are few."""
    from rich.cells import cell_len

    wide = [max(cell_len(line[place]) for line in lines) + 3 for place in range(len(lines[0]))]
    numbers = list(range(texts, len(wide)))
    room = width - 1 - sum(min(wide[place], _TEXT_WIDTH) for place in range(texts))
    if len(numbers) < _MANY_COLUMNS or sum(wide[texts:]) <= room:
        return [numbers]
    parts: list[list[int]] = [[]]
    for place in numbers:
        if parts[-1] and sum(wide[other] for other in (*parts[-1], place)) > room:
            parts.append([])
        parts[-1].append(place)
    return parts


def _wrapped(words: str) -> str:
    """Lines as long as the terminal, or 100 characters; words stay whole, so that paths and commands can be copied."""
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    return textwrap.fill(words, width, break_long_words=False, break_on_hyphens=False)


def many(count: int, noun: str) -> str:
    """A number of things: 1 ranking, 2 rankings."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def say(words: str) -> None:
    """Print a line on stderr, above a progress bar."""
    words = by_name(words)
    if Bar.shown and Bar.shown[-1]._live is not None:
        Bar.shown[-1]._live.console.print(words, markup=False, highlight=False)
    elif sys.stderr.isatty():
        click.echo(_wrapped(words), err=True)
    else:
        click.echo(words, err=True)


class Rows:
    """Counts rows and reports the progress."""

    def __init__(self, doing: str) -> None:
        self.rows = 0
        self._doing = doing

    def __call__(self, rows: int, total: int | None) -> None:
        """Rows done, and how many there are if that is known."""
        self.rows = rows
        if total is not None:  # otherwise reading the file reports its own progress
            tell(self._doing, rows, total)


class Bar:
    """A progress bar on a terminal, for work that takes longer than a moment."""

    shown: ClassVar[list[Bar]] = []

    def __init__(self, console: Any = None) -> None:
        self._console: Any = console
        self._live: Any = None
        self._task: Any = None
        self._lock, self._ended = threading.Lock(), False
        self._timer = threading.Timer(PATIENCE, self.start)
        self._timer.daemon = True
        self._last: tuple[str, float, float | None] = ("working", 0, None)

    def start(self) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            Remaining(),
        )
        with self._lock:
            if self._ended:
                return
            self._live = Progress(*columns, console=self._console or Console(stderr=True), transient=True)
            doing, done, total = self._last
            self._task = self._live.add_task(doing, total=total, completed=int(done))
            self._live.start()
            self.shown.append(self)

    def hear(self, doing: str, done: float, total: float | None) -> None:
        """Take note of how far the work is."""
        with self._lock:
            self._last = doing, done, total
            if self._live is not None and self._task is not None:
                self._live.update(self._task, description=doing, completed=done, total=total)

    def stop(self) -> None:
        """Remove the bar for good."""
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._live is not None:
                self._live.stop()
                self._live = None
                self.shown.remove(self)

    @contextmanager
    def watching(self) -> Iterator[Bar]:
        """Show the bar after a while, until the end of the block."""
        self._timer.start()
        try:
            with heard_by(self.hear):
                yield self
        finally:
            self.stop()


def watched(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with a progress bar on a terminal, and nothing in a pipe."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        if not sys.stderr.isatty():
            return command(*arguments, **options)
        with Bar().watching():
            return command(*arguments, **options)

    return run


def clear() -> None:
    """Remove the bar before results are printed."""
    for bar in list(Bar.shown):
        bar.stop()
