"""Audits of a command: any program that reads a file of rankings and writes one, in any language.

The command is a list of words in which ``{in}`` and ``{out}`` stand for two files. For every input a file is written
with as many equal rows as draws are wanted, the command is run once (no shell, with a time limit), and the rows of what
it wrote are the draws. So the command must treat rows independently; ``audit_independence`` checks that with the same
sampler.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.audit.findings import StatisticalAudit
from rankdp.audit.statistical import audit_samples, ranking_neighbours
from rankdp.checks import whole
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Setting
from rankdp.privacy.exact import Real

_SHOWN = 300


class CommandSampler:
    """A sampler that runs a command on files.

    Parameters
    ----------
    command
        The words of the command; {in} and {out} in them become the names of the files.
    ending
        The ending of both files, which says their format.
    timeout
        Seconds after which a run is ended and refused.
    write
        ``write(path, order, count)`` writes the input, for formats other than files of rankings.
    read
        ``read(path)`` reads the output, for such formats.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        ending: str = ".csv",
        timeout: float = 60,
        write: Callable[[Path, Any, int], None] | None = None,
        read: Callable[[Path], Any] | None = None,
    ) -> None:
        words = [command] if isinstance(command, str) else list(command)
        if not all(any(place in word for word in words) for place in ("{in}", "{out}")):
            rule = " must be a list of words with {in} and {out} among them"
            raise InputError(Setting("command"), f"{rule}, got {words!r}")
        if not timeout > 0:
            raise InputError(f"timeout must be a number of seconds above 0, got {timeout!r}")
        self.command, self.ending, self.timeout = words, ending, timeout
        self.write, self.read = write or _write_rankings, read

    def __call__(self, order: Any, count: int) -> Any:
        """``count`` draws for one ranking."""
        with tempfile.TemporaryDirectory() as directory:
            source, target = Path(directory, f"in{self.ending}"), Path(directory, f"out{self.ending}")
            self.write(source, order, count)
            self._run(source, target)
            if not target.exists():
                raise InputError(Setting("command"), f" must write the file {{out}}, and {self.command[0]} wrote none")
            drawn = self.read(target) if self.read else _read_rankings(target, len(order))
        if len(drawn) != count:
            raise InputError(Setting("command"), f" must write as many rows as it reads, {count}, got {len(drawn)}")
        return drawn

    def _run(self, source: Path, target: Path) -> None:
        words = [word.replace("{in}", str(source)).replace("{out}", str(target)) for word in self.command]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.timeout, check=False
            )
        except subprocess.TimeoutExpired:
            slow = f" must end within {self.timeout:g} seconds, and {words[0]} did not"
            raise InputError(Setting("command"), slow) from None
        except OSError as problem:
            unknown = f" must be a program that can be run, got {words[0]!r}: {problem.strerror}"
            raise InputError(Setting("command"), unknown) from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-_SHOWN:]
            ended = f" must end with exit code 0, and {words[0]} ended with {done.returncode}"
            raise InputError(Setting("command"), f"{ended}{': ' * bool(said)}{said}")


def audit_command(
    command: Sequence[str],
    *,
    items: int,
    draws: int,
    claimed_epsilon: Real,
    confidence: float = 0.99,
    ending: str = ".csv",
    timeout: float = 60,
) -> StatisticalAudit:
    """Audit a command that privatizes a file of rankings.

    Parameters
    ----------
    command
        Its words, with ``{in}`` and ``{out}`` where the two files go.
    items
        How many items are ranked.
    draws, claimed_epsilon, confidence
        As in ``audit_samples``.
    ending, timeout
        As in ``CommandSampler``.
    """
    return audit_samples(
        CommandSampler(command, ending=ending, timeout=timeout),
        ranking_neighbours(range(whole("items", items, 2))),
        draws=draws,
        claimed_epsilon=claimed_epsilon,
        confidence=confidence,
        name=" ".join(command),
    )


def _names(items: int) -> list[str]:
    return [f"item{place}" for place in range(items)]


def _write_rankings(path: Path, order: Any, count: int) -> None:
    names = _names(len(order))
    row = [names[item] for item in np.asarray(order).tolist()]
    Rankings.from_orders([row] * count, items=names).write(path)


def _read_rankings(path: Path, items: int) -> Any:
    return np.asarray(Rankings.read(path, items=_names(items)).orders)
