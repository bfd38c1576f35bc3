"""Permanent answers: who is asked the same question again gives the same synthetic answer, and it costs nothing.

Asking a voter every week at epsilon 1 costs 52 a year, for fresh noise averages out. A stored answer does not: the
second release is a copy of the first. A *question* is an epsilon, a mechanism, a list of items and a ``wave``. A voter
answers a question once, in the first call that asks them, and every later call returns that answer: *also when their
true ranking has changed*, since an answer that moved with the truth would be a second release. Say that the data are
new with another ``wave``; then they are drawn anew, and cost.

So a question costs its epsilon once, however many voters come later: each of them is drawn for once. ``charge`` is
called when a question is new, before anything is drawn, and charges the ledger there. Answers are on disk before they
are returned. A crash in between leaves the charge spent and the question new; it is charged again.

A voter is found by HMAC-SHA256(key, question, voter), so that the file does not say who has answered. The key is in a
file of its own, readable by its owner alone: whoever has both files can try names. Without its key a file of answers
is of no use, and it is refused. The answers themselves are synthetic, and may be known.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.atomic import NewFile
from rankdp.errors import InputError
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.store import Store, Writing, canonical

_KEY_BYTES = 32
_AT_ONCE = 500


class _Answers(Store):
    application, what = 0x524B4441, "file of answers"  # "RKDA"
    tables = """
    CREATE TABLE IF NOT EXISTS questions (question BLOB PRIMARY KEY, asked TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS answers (voter BLOB PRIMARY KEY, answer BLOB NOT NULL) WITHOUT ROWID
    """


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the same question gets the same answer."""

    epsilon: Real
    mechanism: str
    items: tuple[str, ...]
    wave: str = ""

    @property
    def text(self) -> str:
        """The question as text of which there is one only."""
        return canonical([str(positive(self.epsilon)), self.mechanism, list(self.items), self.wave])


class AnswerStore:
    """A file of answers with its key, ``path`` + ".key" unless ``key`` names another file; both are made if need be."""

    def __init__(
        self, path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None, wait: float = 60.0
    ) -> None:
        where = Path(key) if key is not None else Path(os.fspath(path) + ".key")
        self._key = _read_key(where, new=not Path(path).exists())
        self._store = _Answers(path, wait, create=True)

    def answers(
        self,
        question: Question,
        voters: Iterable[Any],
        draw: Callable[[NDArray[np.intp]], NDArray[np.int32]],
        charge: Callable[[], object] | None = None,
    ) -> NDArray[np.int32]:
        """One synthetic order for each of ``voters``, stored ones where there are any.

        ``draw`` gets the rows of the voters without an answer, the first row of each, and returns their synthetic
        orders; ``charge`` is called before, when the question is new. Voters are told apart by their text.
        """
        asked = hashlib.sha256(question.text.encode()).digest()
        ids = [hmac.digest(self._key, asked + str(voter).encode(), "sha256") for voter in voters]
        if not ids:
            raise InputError("voters must hold at least one voter, got none")

        def work(writing: Writing) -> dict[bytes, bytes]:
            known = _known(writing, ids)
            rows = {voter: row for row, voter in reversed(list(enumerate(ids))) if voter not in known}
            if not rows:
                return known
            if not writing.rows("SELECT 1 FROM questions WHERE question = ?", asked):
                if charge is not None:
                    charge()
                writing.run("INSERT INTO questions VALUES (?, ?)", asked, question.text)
            new = sorted(rows.items(), key=lambda one: one[1])
            drawn = _orders(draw(np.array([row for _, row in new], dtype=np.intp)), len(new))
            fresh = {voter: order.tobytes() for (voter, _), order in zip(new, drawn, strict=True)}
            writing.many("INSERT INTO answers VALUES (?, ?)", list(fresh.items()))
            return known | fresh

        found = self._store.write(work)
        return _together([found[voter] for voter in ids])

    def known(self, question: Question, voters: Iterable[Any]) -> NDArray[np.bool_]:
        """Which of the voters have answered the question."""
        asked = hashlib.sha256(question.text.encode()).digest()
        ids = [hmac.digest(self._key, asked + str(voter).encode(), "sha256") for voter in voters]
        found = self._store.read(lambda writing: _known(writing, ids))
        return np.array([voter in found for voter in ids], dtype=bool)

    def close(self) -> None:
        """Give the file back; a later call opens it again."""
        self._store.close()


def _known(writing: Writing, ids: list[bytes]) -> dict[bytes, bytes]:
    """The stored answers of these voters."""
    found: dict[bytes, bytes] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        found.update(writing.rows(f"SELECT voter, answer FROM answers WHERE voter IN ({marks})", *some))
    return found


def _orders(drawn: Any, rows: int) -> NDArray[np.int32]:
    array = np.ascontiguousarray(drawn, dtype="<i4")
    if array.ndim != 2 or len(array) != rows:
        raise InputError(f"draw must return one order for each of the {rows} rows, got shape {array.shape}")
    return array


def _together(answers: list[bytes]) -> NDArray[np.int32]:
    """Rows under rows; shorter ones are padded with -1."""
    width = max(map(len, answers))
    if min(map(len, answers)) < width:
        answers = [one + b"\xff" * (width - len(one)) for one in answers]
    return np.frombuffer(b"".join(answers), dtype="<i4").reshape(len(answers), width // 4).astype(np.int32)


def _read_key(path: Path, new: bool) -> bytes:
    """The key, made where there are no answers yet; the file appears whole or not at all."""
    try:
        if new and not path.exists():
            with NewFile(path, private=True) as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.keep_first()  # where another process was first, its key counts
        key = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: the key of the answers could not be read or made ({problem.strerror})") from None
    if len(key) < _KEY_BYTES:
        raise InputError(f"{path}: a key must have at least {_KEY_BYTES} bytes, got {len(key)}")
    return key
