"""Every way rankdp says no: one sentence that names the argument, the rule and the value."""

from __future__ import annotations


class RankdpError(Exception):
    """A refusal that is meant to be read by a person; the command line prints it and exits with 1."""


class InputError(RankdpError, ValueError):
    """An argument, a file or a row breaks a stated rule."""


class Unsupported(RankdpError, NotImplementedError):
    """Nothing is wrong with the input, but no exact method or no guarantee is known for it."""
