"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.errors import RankdpError, Setting

if TYPE_CHECKING:
    from rankdp.privacy.bits import Bits
    from rankdp.privacy.ledger import Ledger


_opened: list[Ledger] = []  # by this run of the command line


def spellings(command: click.Command) -> dict[str, str]:
    """How a command spells the settings of the function that it calls: from its own table of parameters."""
    words: dict[str, str] = {}
    for parameter in command.params:
        long = max(parameter.opts, key=len)
        word = long if long.startswith("-") else parameter.make_metavar(click.Context(command))
        for name in (parameter.name, long.lstrip("-").replace("-", "_")):
            words[name or ""] = word
    return words


def noted(notes: list[str]) -> Callable[..., None]:
    """A function that takes the parts of a sentence, spells its settings as the command does, and notes it once."""
    spelling = spellings(click.get_current_context().command)

    def told(*parts: Any) -> None:
        words = "".join(part.spelled(spelling) if isinstance(part, Setting) else part for part in parts)
        if words not in notes:
            notes.append(words)

    return told


class _Speaking(click.Context):
    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> bool | None:
        """Let a refusal speak the language of the innermost command that it passes."""
        if isinstance(problem, RankdpError) and not problem.options:
            problem.options = spellings(self.command)
        return super().__exit__(kind, problem, trace)


def speaking(command: click.Command) -> click.Command:
    """The command, with the settings in its refusals, and in those of its subcommands, spelled as its options."""
    command.context_class = _Speaking
    for inner in getattr(command, "commands", {}).values():
        speaking(inner)
    return command


class RegisteredName(click.Choice[str]):
    """One of the names that are registered when it is parsed: listing them must not slow down every other command."""

    def __init__(self, load: Callable[[], tuple[str, ...]]) -> None:
        self._load = load
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        """The names."""
        return self._load()

    @choices.setter
    def choices(self, given: tuple[str, ...]) -> None: ...


def _mechanisms() -> tuple[str, ...]:
    from rankdp.mechanisms.registry import MECHANISMS

    return tuple(MECHANISMS)


def _noises() -> tuple[str, ...]:
    from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS

    return tuple(SCORE_MECHANISMS)


MECHANISM = RegisteredName(_mechanisms)
MECHANISM_OR_AUTO = RegisteredName(lambda: ("auto", *_mechanisms()))
NOISE = RegisteredName(_noises)

PATH = click.Path(path_type=Path)

Decorator = Callable[[Any], Any]


def choice(name: str, words: list[str], help: str, required: bool = False) -> Decorator:
    """An option that takes one of some words, the first of them by default."""
    otherwise: dict[str, Any] = {"required": True} if required else {"default": words[0]}
    return click.option(name, type=click.Choice(words), help=help, **otherwise)


def options(*several: Decorator) -> Decorator:
    """Several options as one decorator."""
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(several), command)


def seeded(help: str) -> Decorator:
    """The option --rehearse, which gives ``bits``: those of a seed, or None."""

    def bits(_: click.Context, __: click.Parameter, seed: int | None) -> Bits | None:
        from rankdp.privacy.bits import SeededBits

        return None if seed is None else SeededBits(seed)

    return click.option("--rehearse", "bits", type=int, metavar="SEED", callback=bits, help=help)


def names_in(_: click.Context, __: click.Parameter, path: Path | None) -> list[Any] | None:
    """The names that a file lists."""
    from rankdp.data.columns import listed_items

    return None if path is None else list(listed_items(path))


items_option = click.option(
    "--items", type=PATH, callback=names_in, metavar="FILE", help="Text file with the public item names, one a line."
)


def mapped(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """``rank_1=Q7`` as a mapping; commas may stand between several, where each has its sign."""
    found: dict[str, str] = {}
    for value in values:
        parts = value.split(",")
        for part in parts if all("=" in part for part in parts) else [value]:
            name, sign, column = part.partition("=")
            if not sign or not name.strip() or not column:
                raise click.BadParameter(f"must be NAME=COLUMN, such as rank_1=Q7, got {value!r}")
            found[name.strip()] = column
    return found or None


columns_option = click.option(
    "--columns",
    multiple=True,
    callback=mapped,
    metavar="NAME=COLUMN",
    help="Call a column by a name that is recognised, such as rank_1=Q7 or left=home; may be repeated.",
)
voter_column_option = click.option("--voter-column", metavar="NAME", help="Column with the voters, if not recognised.")
rehearse = seeded("Repeatable draw for tests: NOT private.")


_ledger_options = options(
    click.option(
        "--ledger",
        "ledger_file",
        type=PATH,
        metavar="FILE",
        help="Charge the release to the budget in FILE (see rankdp budget).",
    ),
    click.option("--dataset", metavar="NAME", help="Name of the data set, if the ledger has several."),
    click.option(
        "--convert",
        is_flag=True,
        help="With --ledger: charge a budget that protects another unit, at the release's price in that unit.",
    ),
)


def charged(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a budget, and as ``ledger`` the one that it charges; None if none is asked for."""

    @wraps(command)
    def run(ledger_file: Path | None, dataset: str | None, convert: bool, **arguments: Any) -> Any:
        return command(ledger=_open_ledger(ledger_file, dataset, convert), **arguments)

    decorated: Callable[..., Any] = _ledger_options(run)
    return decorated


def _open_ledger(path: Path | None, dataset: str | None, convert: bool) -> Ledger | None:
    if path is None:
        if dataset is not None or convert:
            raise click.UsageError(f"{'--convert' if convert else '--dataset'} goes with --ledger.")
        return None
    from rankdp.privacy.ledger import Ledger

    ledger = Ledger.open(path, dataset)
    ledger = ledger.using(convert=True) if convert else ledger
    _opened.append(ledger)
    return ledger


def after_failure(problem: BaseException) -> list[str]:
    """What of a budget is spent after this failure, where one was in play: its own notes, or what the ledgers say."""
    cause = problem.__cause__ if isinstance(problem, click.Abort) and problem.__cause__ else problem
    return getattr(cause, "__notes__", None) or [ledger.told() for ledger in _opened]


def sizes_of_tiers(_: click.Context, __: click.Parameter, value: str | None) -> list[int] | None:
    """``10,90`` as whole numbers."""
    if value is None:
        return None
    try:
        return [int(size) for size in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"tiers must be whole numbers with commas between them, got {value!r}") from None
