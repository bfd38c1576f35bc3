"""Shared by files about voters: a key for hashing voters, and a ledger that detects old copies.

A voter is found by HMAC-SHA256(key, context, voter). The key is in a separate file that only its owner can read; a
file that was written with another key is refused. The file and the ledger that pays for it are chains of events that
record each other: a file that does not contain what its ledger has recorded of it is an older copy, and so is a ledger
without the charge that the file has recorded.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self

from rankdp.data.atomic import NewFile
from rankdp.data.cells import id_text
from rankdp.errors import InputError
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.ledger.entries import now
from rankdp.privacy.store import State, Store, Writing

_KEY_BYTES = 32


class VoterKey:
    """The key of a file about voters."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], key: str | os.PathLike[str] | None) -> Self:
        """The key of the file at ``path``, in the file ``key`` or ``path`` + ".key"; created with a new file."""
        where = Path(key) if key is not None else Path(os.fspath(path) + ".key")
        return cls(_read_key(where, new=not Path(path).exists()))

    def hashes(self, context: bytes, voters: Iterable[Any]) -> list[bytes]:
        """A hash for each voter (or other text, without the spaces around it) in this context."""
        return [hmac.digest(self._key, context + id_text(voter).encode(), "sha256") for voter in voters]

    def mark(self) -> dict[str, str]:
        """For a file's first event, whose hash names the file: a random text, and its hash under this key."""
        salt = secrets.token_hex(16)
        return {"salt": salt, "key": self._seal(salt)}

    def check(self, writing: Writing, store: Store) -> None:
        """Refuse a file that was written with another key, in which nobody would be found."""
        made = writing.event(1)
        if made is not None and not hmac.compare_digest(made["key"], self._seal(made["salt"])):
            raise InputError(f"{store.path}: the key is not the one that this {store.what} was written with")

    def _seal(self, salt: str) -> str:
        return self.hashes(b"key", [salt])[0].hex()


def payer(ledger: Ledger) -> dict[str, str | None]:
    """Who pays: the ledger's file, its data set, and the part of the voters that releases are about."""
    partition, part = ledger._place
    file = ledger._store.read(lambda writing: writing.state().file)
    return {"ledger": file, "dataset": ledger.dataset, "partition": partition, "part": part}


def _receipt(writing: Writing) -> State:
    """A ledger's last charge, right after it was made; it is on disk and survives a loss of power."""
    ((number, own),) = writing.rows(
        "SELECT number, hash FROM events WHERE json_extract(body, '$.kind') = 'reserve' ORDER BY number DESC LIMIT 1"
    )
    return State(writing.state().file, number, own)


def _noted(writing: Writing, file: str) -> State | None:
    """The newest state of a file of answers that a ledger has recorded."""
    rows = writing.rows(
        "SELECT json_extract(body, '$.store.number'), json_extract(body, '$.store.hash') FROM events "
        "WHERE json_extract(body, '$.kind') = 'answers' AND json_extract(body, '$.store.file') = ? "
        "ORDER BY number DESC LIMIT 1",
        file,
    )
    return State(file, *rows[0]) if rows else None


def note_state(ledger: Ledger, store: Store, danger: str) -> None:
    """Record in the ledger, at no cost, how far a file has come; an older copy is refused, as by ``refuse_old_copies``.

    The record is written only if nothing else was recorded since the file was found to contain what is there: of two
    copies that are used at the same moment, one is refused.
    """
    state, recorded = store.read(lambda writing: writing.state()), False
    while not recorded:
        before = ledger._store.read(lambda writing: _noted(writing, state.file))
        if before is not None and not store.read(partial(Writing.reaches, state=before)):
            raise _older_copy(store, ledger, danger)
        if before is not None and before.number >= state.number:
            return

        def work(writing: Writing, known: State | None = before) -> bool:
            if _noted(writing, state.file) != known:
                return False
            writing.append({"kind": "answers", "when": now(), "dataset": ledger.dataset, "store": asdict(state)})
            return True

        recorded = ledger._store.write(work)


def paid_by(ledger: Ledger) -> dict[str, Any]:
    """For an event right after a charge: who paid, and the charge's entry."""
    return {"paid_by": payer(ledger), "receipt": asdict(ledger._store.read(_receipt))}


def refuse_old_copies(writing: Writing, store: Store, ledger: Ledger, danger: str) -> None:
    """Each of the two files must contain what the other has recorded; ``danger`` says what an old copy would do."""
    path, state = store.path, writing.state()
    ours = ledger._store.read(lambda writing: _noted(writing, state.file))
    if ours is not None and not writing.reaches(ours):
        raise _older_copy(store, ledger, danger)
    rows = writing.rows(
        "SELECT json_extract(body, '$.receipt.number'), json_extract(body, '$.receipt.hash') FROM events "
        "WHERE json_extract(body, '$.receipt.file') = ? ORDER BY number DESC LIMIT 1",
        payer(ledger)["ledger"],
    )
    if rows and not ledger._store.read(lambda writing: writing.reaches(State("", *rows[0]))):
        raise InputError(
            f"{ledger.path}: this ledger is an older copy than the one that paid for the {store.what} {path}, and has "
            "lost charges; restore the newest copy, or create a new ledger, which is charged from the beginning"
        )


def _older_copy(store: Store, ledger: Ledger, danger: str) -> InputError:
    return InputError(
        f"{store.path}: this {store.what} is an older copy than the one that {ledger.path} has paid for, and {danger}; "
        "restore the newest copy, or start a new file, which is charged from the beginning"
    )


def _read_key(path: Path, new: bool) -> bytes:
    """The key, created if there is no file yet; the file appears whole or not at all."""
    try:
        if new and not path.exists():
            with NewFile(path, private=True) as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.keep_first()  # if another process was first, its key counts
        key = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: the key could not be read or created ({problem.strerror})") from None
    if len(key) < _KEY_BYTES:
        raise InputError(f"{path}: a key must have at least {_KEY_BYTES} bytes, got {len(key)}")
    return key
