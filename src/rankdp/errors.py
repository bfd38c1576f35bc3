"""The errors of rankdp: one sentence each, with the argument, the rule and the value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting named in a message, optionally with its value; Python and the command line spell it differently."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"

    def spelled(self, options: Mapping[str, str]) -> str:
        """The setting as an option of a command, by the command's options; in words if it has no such option."""
        word = options.get(self.name, self.name.replace("_", " "))
        return word if self.value is None or self.value is True else f"{word} {self.value}"


def settings(names: Iterable[str], between: str = ", ") -> list[str | Setting]:
    """Several settings as parts of a sentence."""
    return [part for name in names for part in (between, Setting(name))][1:]


class RankdpError(Exception):
    """A refusal for a person to read; the command line prints it and exits with 1.

    Parameters
    ----------
    *parts
        The sentence in parts: texts, and the settings that it names.
    """

    options: Mapping[str, str] = {}
    """How the refused command spells settings; empty in Python."""

    def __init__(self, *parts: str | Setting) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        options = self.options
        return "".join(
            part.spelled(options) if options and isinstance(part, Setting) else str(part) for part in self.args
        )


class InputError(RankdpError, ValueError):
    """An argument, a file or a row breaks a stated rule."""


class Unsupported(RankdpError, NotImplementedError):
    """Nothing is wrong with the input, but no exact method or no guarantee is known for it."""


class BudgetExceeded(RankdpError):
    """A release does not fit its budget. All numbers are epsilons, exact; ``fits`` is the largest that still would."""

    def __init__(
        self, words: str, requested: Fraction, spent: Fraction, remaining: Fraction, short_by: Fraction, fits: Fraction
    ) -> None:
        super().__init__(words)
        self.requested, self.spent, self.remaining = requested, spent, remaining
        self.short_by, self.fits = short_by, fits


class SystemProblem(InputError):
    """The operating system refused: a disk is full, a file is missing, permission is denied."""


def system_problem(path: str, error: OSError, doing: str, what: str = "file") -> SystemProblem:
    """The operating system's refusal as one sentence: `path`, what could not be done to the file, and why."""
    if doing == "read" and isinstance(error, FileNotFoundError):
        return SystemProblem(f"{path}: there is no such {what}")
    reason = os.strerror(error.errno) if error.errno else next(iter(str(error).splitlines()), "no reason was given")
    return SystemProblem(f"{path}: the {what} could not be {doing} ({reason})")
