"""Options and arguments that several commands share, and `-` for standard input and output."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.errors import InputError, RankdpError, Setting

if TYPE_CHECKING:
    from rankdp.privacy.bits import Bits
    from rankdp.privacy.ledger import Ledger


_DATA_TYPE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*#.*\n)*\s*#\s*DATA TYPE:\s*(so[ci]|to[ci])")
"""In the header of a PrefLib file; anywhere else it may be in a cell."""
_opened: list[Ledger] = []  # by this run of the command line


def spellings(command: click.Command) -> dict[str, str]:
    """How a command spells the settings of the function that it calls, from the command's parameters."""
    words: dict[str, str] = {}
    for parameter in command.params:
        long = max(parameter.opts, key=len)
        word = long if long.startswith("-") else parameter.make_metavar(click.Context(command))
        for name in (parameter.name, long.lstrip("-").replace("-", "_")):
            words[name or ""] = word
    return words


def noted(notes: list[str]) -> Callable[..., None]:
    """A function that joins the parts of a note, with settings spelled as options, and keeps each note once."""
    spelling = spellings(click.get_current_context().command)

    def note(*parts: Any) -> None:
        words = "".join(part.spelled(spelling) if isinstance(part, Setting) else part for part in parts)
        if words not in notes:
            notes.append(words)

    return note


class _Speaking(click.Context):
    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> bool | None:
        """Spell the settings in a refusal as options of the innermost command."""
        if isinstance(problem, RankdpError) and not problem.options:
            problem.options = spellings(self.command)
        return super().__exit__(kind, problem, trace)


def speaking(command: click.Command) -> click.Command:
    """The command; its refusals and its subcommands' refusals spell settings as options."""
    command.context_class = _Speaking
    for inner in getattr(command, "commands", {}).values():
        speaking(inner)
    return command


class RegisteredName(click.Choice[str]):
    """A choice whose names are loaded when it is parsed, so that they do not slow down every other command."""

    def __init__(self, load: Callable[[], tuple[str, ...]]) -> None:
        self._load = load
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        """The names."""
        return self._load()

    @choices.setter
    def choices(self, given: tuple[str, ...]) -> None: ...


class MechanismName(RegisteredName):
    """The name of a ranking mechanism; sizes of tiers or a radius may follow, as in kendall-ball-14."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, whose numbers the mechanism checks."""
        from rankdp.mechanisms.rankings.tiers import read_name
        from rankdp.mechanisms.registry import MECHANISMS

        base, numbers = read_name(str(value))
        if numbers and base in MECHANISMS and MECHANISMS[base].numbered:
            return str(value)
        return super().convert(value, param, ctx)


def _mechanisms() -> tuple[str, ...]:
    from rankdp.mechanisms.registry import MECHANISMS

    return tuple(MECHANISMS)


def _noises() -> tuple[str, ...]:
    from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS

    return tuple(SCORE_MECHANISMS)


MECHANISM = MechanismName(_mechanisms)
MECHANISM_OR_AUTO = MechanismName(lambda: ("auto", *_mechanisms()))
NOISE = RegisteredName(_noises)

PATH = click.Path(path_type=Path)

Decorator = Callable[[Any], Any]


class Sectioned(click.Command):
    """A command whose help lists its options in sections; options of no section are listed under "Method".

    Parameters
    ----------
    *arguments
        As in ``click.Command``.
    sections
        The names of the parameters in each section, with spaces between them.
    **more
        As in ``click.Command``.
    """

    def __init__(self, *arguments: Any, sections: dict[str, str], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._sections = {name: section for section, names in sections.items() for name in names.split()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of options per section."""
        lists: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Data", "Privacy", "Method", "Output")}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = "Output" if "--help" in parameter.opts else "Method"
                lists[self._sections.get(parameter.name or "", section)].append(record)
        for section, records in lists.items():
            with formatter.section(section):
                formatter.write_dl(records)


SHARED_SECTIONS = {
    "Data": "items items_from_data voter_column columns layout weight_column table sheet encoding",
    "Privacy": "epsilon protect delta ledger_file dataset convert bits",
    "Output": "outputs as_json title force",
}
"""The sections of options that several commands share."""


def sections(**more: str) -> dict[str, str]:
    """The shared sections with further parameters of one command."""
    return {name: f"{names} {more.get(name, '')}" for name, names in SHARED_SECTIONS.items()}


def need(example: str, **wanted: Any) -> None:
    """Refuse a call with missing options: name all of them, with an example to copy.

    Parameters
    ----------
    example
        A complete call.
    **wanted
        What must be given, by parameter: how it is written, and its value.
    """
    if missing := [words for words, value in wanted.values() if not value]:
        raise click.UsageError(f"Missing: {'; '.join(missing)}.\nExample: {example}")


_FORCED = "rankdp.force"


def _forced(context: click.Context, _: click.Parameter, given: bool) -> None:
    context.meta[_FORCED] = given


force_option = click.option(
    "--force", is_flag=True, expose_value=False, callback=_forced, help="Replace files that exist already."
)


def check_new(*paths: Path, source: str | Path | None = None) -> None:
    """Refuse to replace a file, unless --force was given; that ``source`` is not overwritten is checked elsewhere."""
    context = click.get_current_context(silent=True)
    for path in paths:
        if path.is_file() and not (context and context.meta.get(_FORCED)) and path != Path(source or ""):
            raise InputError(f"{path} exists already: choose another name, or replace it with --force")


def option(names: str, help: str, metavar: str | None = None, type: Any = None, **more: Any) -> Decorator:
    """An option: its names separated by spaces, its help, its placeholder and its type."""
    return click.option(*names.split(), help=help, metavar=metavar, type=type, **more)


def choice(name: str, words: list[str], help: str, required: bool = False) -> Decorator:
    """An option that takes one of some words; the first one is the default."""
    otherwise: dict[str, Any] = {"required": True} if required else {"default": words[0]}
    return click.option(name, type=click.Choice(words), help=help, **otherwise)


def options(*several: Decorator) -> Decorator:
    """Several options as one decorator."""
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(several), command)


def seeded(help: str) -> Decorator:
    """The option --rehearse, which gives ``bits``: seeded ones, or None."""

    def bits(_: click.Context, __: click.Parameter, seed: int | None) -> Bits | None:
        from rankdp.privacy.bits import SeededBits

        return None if seed is None else SeededBits(seed)

    return option("--rehearse bits", help, "SEED", int, callback=bits)


def in_a_line(source: Any) -> str:
    """A file, or several, as written on the command line."""
    return " ".join(map(str, source)) if isinstance(source, list) else str(source)


def names_in(_: click.Context, __: click.Parameter, given: Path | None) -> list[Any] | None:
    """The names that a file lists, or the names on the command line if there is no such file."""
    from rankdp.data.tables import listed_items

    if given is not None and "," in str(given) and not given.exists():
        return [name.strip() for name in str(given).split(",")]
    return None if given is None else list(listed_items(given))


items_option = option(
    "--items", "Public item names: a text file, one name per line, or a,b,c.", "FILE|NAMES", PATH, callback=names_in
)


def mapped(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """``rank_1=Q7`` as a mapping; several may be separated by commas if each has its ``=``."""
    found: dict[str, str] = {}
    for value in values:
        parts = value.split(",")
        for part in parts if all("=" in part for part in parts) else [value]:
            name, sign, column = part.partition("=")
            if not sign or not name.strip() or not column:
                raise click.BadParameter(f"must be NAME=COLUMN, such as rank_1=Q7, got {value!r}")
            found[name.strip()] = column
    return found or None


columns_option = option(
    "--columns",
    "Give a column a name that is recognised, such as rank_1=Q7 or left=home; may be repeated.",
    "NAME=COLUMN",
    multiple=True,
    callback=mapped,
)
voter_column_option = option("--voter-column", "Column with the voters, if not recognised.", "NAME")
layout_option = choice(
    "--layout",
    ["auto", "ranks"],
    help="ranks: every column but the voter's is an item and holds its rank; auto: decided by the column names.",
)
sheet_option = option("--sheet", "Sheet to read in an Excel workbook with several.", "NAME")
encoding_option = option(
    "--encoding", "Encoding of a text file, such as windows-1252; UTF-8 or UTF-16 if not given.", "NAME"
)
OPENING = ("table", "sheet", "encoding")
opening_options = options(option("--table", "Table to read in a .duckdb file.", "NAME"), sheet_option, encoding_option)
rehearse = seeded("Repeatable draw for tests: NOT private.")


_ledger_options = options(
    option("--ledger ledger_file", "Charge the release to the budget in FILE (see rankdp budget).", "FILE", PATH),
    option("--dataset", "Name of the data set, if the ledger has several.", "NAME"),
    option(
        "--convert",
        "With --ledger: charge a budget that protects another unit, at the release's price in that unit.",
        is_flag=True,
    ),
)


def charged(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a budget, and pass it the opened ``ledger``, or None."""

    @wraps(command)
    def run(ledger_file: Path | None, dataset: str | None, convert: bool, **arguments: Any) -> Any:
        ledger = _open_ledger(ledger_file, dataset, convert)
        result = command(ledger=ledger, **arguments)
        promised = not arguments.get("bits") and not arguments.get("without_noise")
        if ledger is None and promised and not arguments.get("as_json"):
            click.echo("no --ledger: no budget counts this release", err=True)
        return result

    decorated: Callable[..., Any] = _ledger_options(run)
    return decorated


def _open_ledger(path: Path | None, dataset: str | None, convert: bool) -> Ledger | None:
    if path is None:
        if dataset is not None or convert:
            raise click.UsageError(f"{'--convert' if convert else '--dataset'} needs --ledger.")
        return None
    from rankdp.privacy.ledger import Ledger

    ledger = Ledger.open(path, dataset)
    ledger = ledger.using(convert=True) if convert else ledger
    _opened.append(ledger)
    return ledger


def forget_ledgers() -> None:
    """Forget the ledgers of an earlier run in this process."""
    _opened.clear()


def after_failure(problem: BaseException) -> list[str]:
    """What was spent of a budget before this failure: from its notes, or from the open ledgers."""
    cause = problem.__cause__ if isinstance(problem, click.Abort) and problem.__cause__ else problem
    return getattr(cause, "__notes__", None) or [ledger.told() for ledger in _opened]


def sizes_of_tiers(_: click.Context, __: click.Parameter, value: str | None) -> list[int] | None:
    """``10,90`` as whole numbers."""
    if value is None:
        return None
    try:
        return [int(size) for size in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"must be whole numbers separated by commas, got {value!r}") from None


# `-` for a file. Input may be read several times, so it is kept in a private directory; its first bytes decide its
# format. Output is copied when it is complete, so that a failure leaves nothing half-written in a pipe.

DASH = Path("-")
_copies: list[str] = []  # of standard input, by this run of the command line


def by_name(words: str) -> str:
    """Words in which the temporary copies of standard input are called by its name."""
    return reduce(lambda text, copy: text.replace(copy, "standard input"), _copies, words)


def standard_input(context: click.Context, _: click.Parameter, path: Any) -> Any:
    """The callback of an argument for files to read: `-` becomes a temporary copy of standard input.

    One file is returned by itself, several as a list.
    """
    if isinstance(path, tuple):
        kept = [standard_input(context, _, one) for one in path]
        return kept[0] if len(kept) == 1 else kept
    if path is None or Path(path) != DASH:
        return path
    return type(path)(context.with_resource(_kept_input()))


@contextmanager
def _kept_input() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rankdp-") as place:
        kept = Path(place) / "stdin"
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        named = kept.rename(kept.with_name(f"stdin{_ending(kept)}"))
        _copies.append(str(named))
        try:
            yield named
        except RankdpError as refusal:
            refusal.args = tuple(by_name(part) if isinstance(part, str) else part for part in refusal.args)
            raise


@contextmanager
def standard_output(path: Path, source: Path | list[Path]) -> Iterator[Path]:
    """A file to write from ``source``: ``path``, or for `-` a CSV file that is copied to standard output."""
    if path != DASH:
        check_new(path, source=None if isinstance(source, list) else source)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="rankdp-") as place:
        target = Path(place) / "stdout.csv"
        yield target
        with target.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _ending(path: Path) -> str:
    """The ending that a file should have, from its first bytes."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    if head.startswith(b"PAR1"):
        return ".parquet"
    for magic, packed in ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"), (b"BZh", ".bz2")):
        if head.startswith(magic):
            from rankdp.data.formats.texts import opened

            with suppress(OSError), opened(str(path), packed) as file:  # damage is reported when the file is read
                head = file.read(1 << 12)
            return f"{_text_ending(head)}{packed}"
    return _text_ending(head)


def _text_ending(head: bytes) -> str:
    if head.lstrip()[:1] in (b"{", b"["):
        return ".jsonl"
    if kind := _DATA_TYPE.match(head):
        return f".{kind[1].decode()}"
    return ".blt" if re.match(rb"\s*\d+ +\d+\s", head) else ".csv"
