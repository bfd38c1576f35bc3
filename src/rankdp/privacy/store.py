"""A file that only grows: hash-chained events in SQLite, each on disk before the call that wrote it returns.

Event k is a line of canonical JSON and SHA-256(hash of event k - 1, that line). Only what can be computed from the
events is changed in place: the accounts, the unfinished charges, and the head (the number of events and the last hash),
which also reveals a tail that was cut off. ``walk`` names the first event that does not fit. Anyone who can rewrite the
whole file can rewrite the whole chain, and an old copy of the file is a valid chain: keep the head somewhere else and
check it later.

Durability: write-ahead log, ``synchronous=FULL`` (one fsync before a commit returns), ``BEGIN IMMEDIATE`` (the writer's
lock comes first, so nothing that was read has changed when it is written). The record that a charge was finished may be
lost without harm, so it skips the fsync. Locks of other processes are waited for in short random naps, up to a
deadline. SQLite's locks do not survive a fork, so connections are closed before one and reopened on either side.
The write-ahead log needs a file system of this machine: network file systems are not for ledgers.
Only the owner can read the file and its log (``data.private_files``).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rankdp.data.atomic import sync
from rankdp.data.private_files import make_private, tighten
from rankdp.errors import InputError, SystemProblem

T = TypeVar("T")

START = "0" * 64
_APPLICATION = 0x524B4450  # "RKDP"
_AT_ONCE = 500
_SHORTEST_NAP, _LONGEST_NAP = 0.0002, 0.02
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only",
    sqlite3.SQLITE_IOERR: "the disk does not take it: it is full, at its limit or failing",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_NOTADB: "it is not a ledger",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_PERM: "permission is denied",
}
_CHAIN = """
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS head (one INTEGER PRIMARY KEY CHECK (one = 1), events INTEGER NOT NULL, hash TEXT NOT NULL)
"""
_LEDGER = """
CREATE TABLE IF NOT EXISTS accounts (budget INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS unfinished (charge INTEGER PRIMARY KEY)
"""


class LedgerBroken(InputError):
    """The chain of entries is broken; the message names the first wrong one."""


def canonical(data: Any) -> str:
    """Canonical JSON: equal values give equal text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def link(previous: str, body: str) -> str:
    """The hash of an event after the one with the hash ``previous``."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class State:
    """How far a file's chain has come: the file (the hash of its first event), the last event's number and its hash."""

    file: str
    number: int
    hash: str


class Writing:
    """The operations inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, query: str, *values: Any) -> list[Any]:
        """The answer to a query."""
        return self._connection.execute(query, values).fetchall()

    def found(self, query: str, keys: list[bytes]) -> list[Any]:
        """The answers to a query that ends with IN, for any number of keys."""
        answers: list[Any] = []
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            answers += self.rows(f"{query} ({','.join('?' * len(some))})", *some)
        return answers

    def run(self, statement: str, *values: Any) -> None:
        """A statement without an answer."""
        self._connection.execute(statement, values)

    def many(self, statement: str, rows: list[Any]) -> None:
        """The same statement for many rows."""
        self._connection.executemany(statement, rows)

    def append(self, data: dict[str, Any]) -> int:
        """Put an event at the end of the chain; its number."""
        ((count, previous),) = self.rows("SELECT events, hash FROM head")
        body = canonical({**data, "number": count + 1})
        own = link(previous, body)
        self.run("INSERT INTO events VALUES (?, ?, ?)", count + 1, body, own)
        self.run("UPDATE head SET events = ?, hash = ?", count + 1, own)
        return int(count) + 1

    def state(self) -> State:
        """How far the chain has come; the file has no name before its first event."""
        ((number, last),) = self.rows("SELECT events, hash FROM head")
        first = self.rows("SELECT hash FROM events WHERE number = 1")
        return State(first[0][0] if first else "", number, last)

    def reaches(self, state: State) -> bool:
        """Whether the chain contains ``state``: an older copy does not, nor does one that continued differently."""
        return bool(self.rows("SELECT 1 FROM events WHERE number = ? AND hash = ?", state.number, state.hash))

    def event(self, number: int) -> dict[str, Any] | None:
        """One event by its number."""
        found = self.rows("SELECT body FROM events WHERE number = ?", number)
        return dict(json.loads(found[0][0])) if found else None

    def walk(self) -> Iterator[dict[str, Any]]:
        """All events in order; the first one that does not fit the chain raises ``LedgerBroken``."""
        previous, number = START, 0
        for place, body, own in self._connection.execute("SELECT number, body, hash FROM events ORDER BY number"):
            number += 1
            if place != number:
                raise LedgerBroken(f"entry {number} is missing: after entry {number - 1} comes entry {place}")
            if own != link(previous, str(body)):
                raise LedgerBroken(
                    f"entry {number} is broken: its hash does not fit its content and the entries before"
                )
            previous = own
            yield _parsed(body, number)
        ((count, last),) = self.rows("SELECT events, hash FROM head") or [(0, "nothing")]
        if (count, last) != (number, previous):
            raise LedgerBroken(
                f"entry {min(number, count) + 1} is broken: the head states {count} entries that end with the hash "
                f"{str(last)[:12]}…, but there are {number} that end with {previous[:12]}…"
            )


def _parsed(body: str, number: int) -> dict[str, Any]:
    try:
        data = dict(json.loads(body))
    except (TypeError, ValueError):
        data = {}
    if data.get("number") != number:
        raise LedgerBroken(f"entry {number} is broken: it is not the JSON of an entry with this number")
    return data


class Store:
    """A SQLite file that many processes write to. ``wait`` is how many seconds to wait for a lock of others."""

    application, tables, what = _APPLICATION, _LEDGER, "ledger"
    unwritten = "nothing counts as charged, so nothing is released"

    def __init__(self, path: str | os.PathLike[str], wait: float = 60.0, create: bool = False) -> None:
        self.path, self.wait = Path(path), wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        _STORES.add(self)
        if not create and not self.path.is_file():
            raise InputError(f"{self.path}: there is no {self.what} here; create one first")
        if create:
            self._create()
        with self._lock:
            self._connected()

    def write(self, work: Callable[[Writing], T], durable: bool = True) -> T:
        """Do ``work`` in one transaction: on return all of it is on disk; on failure nothing is written.

        Without ``durable`` it survives the end of the process, but a loss of power only after a later durable write.
        """
        return self._transaction("BEGIN IMMEDIATE", work, "written", "FULL" if durable else "NORMAL")

    def read(self, work: Callable[[Writing], T]) -> T:
        """Do ``work`` on one unchanging view of the file."""
        return self._transaction("BEGIN", work, "read")

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _transaction(self, begin: str, work: Callable[[Writing], T], doing: str, level: str = "FULL") -> T:
        with self._lock:
            connection = self._connected()
            try:
                connection.execute(f"PRAGMA synchronous = {level}")
                self._patiently(lambda: connection.execute(begin))
                try:
                    result = work(Writing(connection))
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as problem:
                raise self._refusal(problem, doing) from None
            return result

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Try again while others hold the lock; raise SQLite's error when the deadline has passed."""
        deadline, nap = time.monotonic() + self.wait, _SHORTEST_NAP
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as problem:
                if (problem.sqlite_errorcode & 0xFF) not in _BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0, nap))  # nothing secret depends on when to try again
            nap = min(2 * nap, _LONGEST_NAP)

    def _refusal(self, problem: sqlite3.Error, doing: str) -> SystemProblem:
        code = getattr(problem, "sqlite_errorcode", None)
        if code is not None and (code & 0xFF) in _BUSY:
            reason = f"other processes have kept it locked for {self.wait:g} seconds"
        else:
            reason = _REASONS.get(code & 0xFF if code is not None else -1, str(problem))
        so = f"; {self.unwritten}" if doing == "written" else ""
        return SystemProblem(f"{self.path}: the {self.what} could not be {doing} ({reason}){so}")

    def _connected(self) -> sqlite3.Connection:
        """The connection, opened when it is first needed; refused if another file is at the path now."""
        if self._connection is not None and self._file != _identity(self.path):
            raise InputError(
                f"{self.path}: the {self.what} was removed or replaced while it was open; {self.unwritten}"
            )
        if self._connection is None:
            try:
                self._connection, self._file = self._patiently(self._connect), _identity(self.path)
            except sqlite3.Error as problem:
                raise self._refusal(problem, "opened") from None
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={self._access()}",
            uri=True,
            isolation_level=None,
            timeout=0,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA secure_delete = ON")
            self._check_kind(connection, empty=False)
            tighten(self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_kind(self, connection: sqlite3.Connection, empty: bool) -> None:
        """Refuse a file that another program made; an empty one may be used.

        Tables are looked for first: where another process makes the file meanwhile, its kind is written with them.
        """
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (kind,) = connection.execute("PRAGMA application_id").fetchone()
        if kind != self.application and (tables or not empty):
            raise InputError(f"{self.path}: this is not a {self.what}")

    def _access(self) -> str:
        """Read and write; or read only if the place cannot be written and the log is empty."""
        log = self.path.with_name(self.path.name + "-wal")
        writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        return "rw" if writable or (log.exists() and log.stat().st_size) else "ro&immutable=1"

    def _create(self) -> None:
        """Create the file and its tables, unless another process was first; a file of another kind stays as it is."""
        try:
            with suppress(OSError):  # SQLite then finds no file and says why
                make_private(self.path)
            address = f"{self.path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=0)
            try:
                self._patiently(lambda: self._prepare(connection))
            finally:
                connection.close()
            sync(self.path.parent)
        except sqlite3.Error as problem:
            raise self._refusal(problem, "made") from None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._check_kind(connection, empty=True)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(f"PRAGMA application_id = {self.application}")
            for statement in f"{_CHAIN};{self.tables}".split(";"):
                connection.execute(statement)
            connection.execute("INSERT OR IGNORE INTO head VALUES (1, 0, ?)", (START,))
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_FORKING: list[Store] = []


def _before_fork() -> None:
    """Finish what other threads are writing, and close."""
    _FORKING[:] = list(_STORES)
    for store in _FORKING:
        store._lock.acquire()
        if store._connection is not None and not store._connection.in_transaction:
            store.close()


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file the path names now: charges must not go to a file that was removed or replaced."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
