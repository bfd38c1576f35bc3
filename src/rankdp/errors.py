"""Every way rankdp says no: one sentence that names the argument, the rule and the value."""

from __future__ import annotations

import os
from fractions import Fraction


class RankdpError(Exception):
    """A refusal that is meant to be read by a person; the command line prints it and exits with 1."""


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
    reason = os.strerror(error.errno) if error.errno else next(iter(str(error).splitlines()), "no reason was given")
    return SystemProblem(f"{path}: the {what} could not be {doing} ({reason})")
