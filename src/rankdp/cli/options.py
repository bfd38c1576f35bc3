"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rankdp.privacy.ledger import Ledger


_opened: list[Ledger] = []  # by this run of the command line


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

items_file_option = click.option(
    "--items",
    "items_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Text file with the public item names, one a line.",
)
rehearse = click.option("--rehearse", "seed", type=int, metavar="SEED", help="Repeatable draw for tests: NOT private.")


def charged(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every command that spends."""
    for option in (
        click.option("--dataset", metavar="NAME", help="Name of the data set, if the ledger has several."),
        click.option(
            "--ledger",
            "ledger_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Charge the release to the budget in FILE (see rankdp budget).",
        ),
    ):
        command = option(command)
    return command


def open_ledger(path: Path | None, dataset: str | None) -> Ledger | None:
    """The ledger that a command charges, None where none was asked for."""
    if path is None:
        if dataset is not None:
            raise click.UsageError("--dataset goes with --ledger.")
        return None
    from rankdp.privacy.ledger import Ledger

    ledger = Ledger.open(path, dataset)
    _opened.append(ledger)
    return ledger


def after_failure(problem: BaseException) -> list[str]:
    """What of a budget is spent after this failure, where one was in play: its own notes, or what the ledgers say."""
    cause = problem.__cause__ if isinstance(problem, click.Abort) and problem.__cause__ else problem
    return getattr(cause, "__notes__", None) or [ledger.told() for ledger in _opened]
