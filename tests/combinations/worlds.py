"""Two neighbouring worlds in which the same calls are made, and a second, naive account of what those calls revealed.

A world is a directory with secret tables, ledgers, answers and published files. It knows nothing of how rankdp
keeps its accounts. It counts for itself, ledger by ledger and person by person, which independent draws were shown:

    sum over the draws shown of a person of their epsilons  <=  what the ledger has as spent.

A published file is identified by its inode and time, so that a value and a sidecar are known to be of one call.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import shutil
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import rankdp
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.store import Store

SIDECAR = ".release.json"
unlink = os.unlink  # a full disk still removes files


class Killed(BaseException):
    """The process is gone: nothing that it would have done afterwards happens."""


@dataclass
class Fault:
    """The ``at``-th change of a file fails as on a full disk, or the process is killed there."""

    kind: str
    at: int
    seen: int = 0

    @contextlib.contextmanager
    def injected(self) -> Iterator[None]:
        """Patch what changes names and contents of files, and the ledger's transactions for what is dead."""
        with contextlib.ExitStack() as patches:
            for name in ("replace", "unlink", "fsync", "link"):
                patches.enter_context(mock.patch.object(os, name, self._wrapped(getattr(os, name))))
            patches.enter_context(mock.patch.object(Store, "_transaction", self._if_alive(Store._transaction)))
            yield

    def _dead(self) -> bool:
        return self.kind == "kill" and self.seen >= self.at

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.seen += 1
            if self._dead():
                raise Killed
            if self.kind == "fail" and self.seen == self.at and call is not unlink:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*arguments, **options)

        return wrapped

    def _if_alive(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if self._dead():
                raise Killed
            return call(*arguments, **options)

        return wrapped


@dataclass(frozen=True)
class Outcome:
    """How a call ended: done, refused (its sentence) or killed; and the public facts that came with it."""

    ended: str
    words: str = ""
    public: dict[str, Any] = field(default_factory=dict)


class World:
    """Secret tables with everything that calls leave behind."""

    def __init__(self, root: Path, tables: dict[str, str]) -> None:
        self.root, self.out = root, root / "out"
        self.out.mkdir(parents=True)
        for name, text in tables.items():
            (root / name).write_text(text)
        rankdp.AnswerStore(self.answers).close()
        self.ledgers: dict[str, rankdp.Ledger] = {}
        self.shown: dict[str, dict[str, dict[int, Fraction]]] = defaultdict(lambda: defaultdict(dict))
        self.stored: dict[tuple[Any, ...], int] = {}
        self.backup: dict[tuple[Any, ...], int] | None = None
        self.files: dict[Path, tuple[int, int, int]] = {}
        self.origin: dict[Path, int] = {}
        self.step, self._draws = 0, 0

    @property
    def answers(self) -> Path:
        """The file of permanent answers."""
        return self.root / "answers.db"

    def fresh(self) -> int:
        """A number for a draw that was never shown before."""
        self._draws += 1
        return self._draws

    def attempt(self, call: Callable[[World], dict[str, Any]], fault: Fault | None) -> Outcome:
        """Make a call; check what must hold however it ends."""
        self.step += 1
        before, temporary = self.state(), set(self.root.rglob("*.tmp"))
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                if fault is None:
                    outcome = Outcome("done", public=call(self))
                else:
                    with fault.injected():
                        outcome = Outcome("done", public=call(self))
        except (rankdp.RankdpError, OSError) as refusal:
            outcome = Outcome("refused", str(refusal).replace(str(self.root), "ROOT"))
        except Killed:
            outcome = Outcome("killed")
            for ledger in self.ledgers.values():
                ledger.close()
        self._note_files()
        if outcome.ended == "refused" and fault is None:
            assert self.state() == before, f"a refusal changed something: {outcome.words}"
        if outcome.ended != "killed":
            assert set(self.root.rglob("*.tmp")) <= temporary, "a temporary file was left behind"
        self.check()
        return outcome

    def check(self) -> None:
        """Every draw that was shown is paid for, and every promise stands beside the value it was made for."""
        for name, people in self.shown.items():
            spent = self.ledgers[name].budgets[0].standing.epsilon
            for person, draws in people.items():
                assert sum(draws.values()) <= spent, f"{person}: {dict(draws)} shown under {name}, {spent} spent"
        for path in self.files:
            value = path.with_name(path.name.removesuffix(SIDECAR))
            if path.name.endswith(SIDECAR) and value in self.files:
                assert self.origin[path] == self.origin[value], f"{path.name} stands beside a value of another call"

    def state(self) -> dict[str, Any]:
        """All that a refusal must leave as it is."""
        return {
            "ledgers": {name: [budget.to_dict() for budget in one.budgets] for name, one in self.ledgers.items()},
            "entries": {
                name: [entry.to_dict() for entry in one.history() if entry.state != "cancelled"]
                for name, one in self.ledgers.items()
            },
            "answers": _rows(self.answers),
            "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.out.iterdir()},
        }

    def written(self, path: Path) -> bool:
        """Whether the file was replaced by the call under way."""
        return path.exists() and _identity(path) != self.files.get(path)

    def _note_files(self) -> None:
        now = {path: _identity(path) for path in self.out.rglob("*") if path.is_file()}
        for path, identity in now.items():
            if identity != self.files.get(path):
                self.origin[path] = self.step
        self.files = now

    def show(self, ledger: str | None, draws: dict[str, list[tuple[int, Fraction]]]) -> None:
        """Note the draws of each person that were shown under a ledger."""
        if ledger is not None:
            for person, shown in draws.items():
                self.shown[ledger][person].update(shown)

    def drawn_for(self, poll: Path) -> Any:
        """A context in which the people whose rankings are drawn are noted; their true orders tell them apart."""
        table = rankdp.Rankings.read(poll)
        whose = {tuple(order): str(voter) for order, voter in zip(table.orders.tolist(), table.voters, strict=True)}
        return _spied(whose)

    def save_answers(self) -> None:
        """A backup of the file of answers."""
        for path in (self.answers, Path(f"{self.answers}.key")):
            shutil.copy(path, f"{path}.backup")
        self.backup = dict(self.stored)

    def restore_answers(self) -> None:
        """The backup in place of the file of answers."""
        if self.backup is not None:
            for path in (self.answers, Path(f"{self.answers}.key")):
                shutil.copy(f"{path}.backup", path)
            self.stored = dict(self.backup)


@contextlib.contextmanager
def _spied(whose: dict[tuple[int, ...], str]) -> Iterator[Counter[str]]:
    people: Counter[str] = Counter()
    sample = RankingMechanism.sample

    def spying(self: Any, orders: Any, *rest: Any, **options: Any) -> Any:
        people.update(whose[tuple(order)] for order in np.asarray(orders).tolist())
        return sample(self, orders, *rest, **options)

    with mock.patch.object(RankingMechanism, "sample", spying):
        yield people


def _rows(path: Path) -> Any:
    """What stands in an SQLite file."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for name in sorted(names)}


def _identity(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
