"""Stored answers: a voter who is asked the same question again gives the same synthetic answer, at no further cost.

Asking a voter every week at epsilon 1 costs 52 a year, because fresh noise averages out. A stored answer costs nothing
more: the second release is a copy of the first. A *question* is a list of items and a ``wave``, with one epsilon and
one mechanism; asking it with another epsilon or mechanism is refused. A voter answers a question once, in the first
call that asks them, and every later call returns that answer, *even if their true ranking has changed*: an answer that
moved with the truth would be a second release. A new ``wave`` says that the rankings were collected again; they are
drawn and charged again.

**What is charged.** A ledger (its file, its data set and, where one is stated, the part of the voters) pays for a
question in the first release under it that returns any answer to it. It pays epsilon once, no matter who drew the
answers and whether another ledger paid for them. Later releases of the same question under the same ledger are free,
also for voters who join.

Proof. Fix a ledger and a voter v. What is released under the ledger about v is at most one draw for each question that
the ledger has paid for, and copies of it, and the plain releases, each of which was charged. By basic composition the
loss about v is at most the sum of the epsilons of those questions and releases, which is what the ledger has charged.
Other voters' answers are drawn independently of v's ranking and add nothing (parallel composition), so that one charge
serves all voters, also later ones. A plain ``privatize`` of the same voters is another draw and is charged in
full. Draws that were never released under a ledger are not in its total.

**Old copies.** "One draw" needs the file: a restored backup would draw again what it has forgotten. So both files are
chains of events that record each other. Before answers are returned under a ledger, the ledger records on disk how far
the file of answers has come; a file that does not contain what the ledger has recorded is refused. A crash before that
leaves answers that were never shown. In turn the file of answers keeps the charge's entry; a ledger without it has lost
charges and is refused too. Charging it again would not do: its total would still lack the other lost charges.

The charge is on disk before anything is drawn, and the answers are on disk before they are returned. A crash in between
leaves the charge spent and the question unpaid; it is charged again.

A voter is found by HMAC-SHA256(key, question, voter), so the file does not show who has answered. The key is in a
separate file that only its owner can read: anyone who has both files can try names. A file of answers without its key
is useless and is refused. The answers themselves are synthetic and may become known.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankdp.data.cells import id_text
from rankdp.errors import InputError, Setting
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.store import Store, Writing, canonical
from rankdp.privacy.voter_files import VoterKey, note_state, paid_by, payer, refuse_old_copies

_DANGER = "would draw again what it has forgotten"
_WHOLE = re.compile(r"\A(-?[0-9]+)\.0*\Z")
"""Files hold ids like this that were in a column of floats when they were written."""


class _Answers(Store):
    application, what = 0x524B4441, "file of answers"  # "RKDA"
    tables = """
    CREATE TABLE IF NOT EXISTS questions (question BLOB PRIMARY KEY, asked TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS answers (voter BLOB PRIMARY KEY, answer BLOB NOT NULL) WITHOUT ROWID
    """
    unwritten = "no answer is kept or released"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the same question gets the same answer.

    Parameters
    ----------
    epsilon
        The mechanism's epsilon: that of one item's position.
    mechanism
        The name of the mechanism that draws an answer.
    items
        What is ranked. An answer lists indices into this tuple.
    wave
        The name of the collection. A new one says that the rankings were collected again.
    """

    epsilon: Real
    mechanism: str
    items: tuple[str, ...]
    wave: str = ""

    @property
    def text(self) -> str:
        """The question as canonical text."""
        return canonical([str(positive(self.epsilon)), self.mechanism, list(self.items), self.wave])

    @property
    def digest(self) -> bytes:
        """The question as 32 bytes."""
        return hashlib.sha256(self.text.encode()).digest()


class AnswerStore:
    """A file of answers with its key; both are created if they do not exist.

    Parameters
    ----------
    path
        The file of answers.
    key
        The file of its key, ``path`` + ".key" unless given.
    wait
        How many seconds to wait for a lock of other processes.
    """

    def __init__(
        self, path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None, wait: float = 60.0
    ) -> None:
        self._key = VoterKey.of_file(path, key)
        self._store = _Answers(path, wait, create=True)

    def answers(
        self,
        question: Question,
        voters: Iterable[Any],
        draw: Callable[[NDArray[np.intp]], NDArray[np.int32]],
        ledger: Ledger | None = None,
        guarantee: Guarantee | None = None,
        what: str = "answers",
    ) -> NDArray[np.int32]:
        """One synthetic order for each voter: the stored one, or a new draw.

        Parameters
        ----------
        question
            What is asked. In one wave the same items have one epsilon and one mechanism; others are refused.
        voters
            Their ids, each once, compared as trimmed text; a whole number is one id however it is written: 7, 7.0 or
            "7.0".
        draw
            Gets the rows of the voters without an answer and returns their synthetic orders.
        ledger
            The ledger to charge before anything is drawn, unless it has paid for this question before. Answers drawn
            without a ledger are charged when they are first released under one.
        guarantee
            The guarantee of one answer, which the ledger is charged for; its epsilon is the question's, or that of a
            whole ranking, which is larger.
        what
            The description of the ledger's entry.

        Returns
        -------
        NDArray[np.int32]
            The orders, one row for each voter; shorter ones are padded with -1.
        """
        ids = self._ids(question, voters)
        if not ids:
            raise InputError("voters must hold at least one voter, got none")
        if len(set(ids)) < len(ids):
            raise InputError("voters must name each voter once: a voter has one answer to a question")
        if ledger is not None and (guarantee is None or guarantee.epsilon < positive(question.epsilon)):
            raise InputError("guarantee must state at least the question's epsilon if a ledger pays for it")

        def work(writing: Writing) -> dict[bytes, bytes]:
            _refuse_other_terms(writing, question)
            if ledger is not None:
                refuse_old_copies(writing, self._store, ledger, _DANGER)
            answers = self._known(writing, ids)
            new = [row for row, voter in enumerate(ids) if voter not in answers]
            due = None if ledger is None or _paid(writing, question, payer(ledger)) else ledger
            if not new and due is None:
                return answers
            charge = held.enter_context(spending(due, cast(Guarantee, guarantee), what, SecureBits()))
            # a random text tells the events of two copies apart, whose answers differ where all else is equal
            told = {"question": question.digest.hex(), "drawn": len(new), "salt": secrets.token_hex(16)}
            event: dict[str, Any] = {"kind": "answers", **told}
            if due is not None:
                event |= paid_by(due)
            drawn = _orders(draw(np.array(new, dtype=np.intp)), len(new)) if new else ()
            charge.leaves()
            fresh = {ids[row]: order.tobytes() for row, order in zip(new, drawn, strict=True)}
            writing.run("INSERT OR IGNORE INTO questions VALUES (?, ?)", question.digest, question.text)
            writing.many("INSERT INTO answers VALUES (?, ?)", list(fresh.items()))
            if not writing.state().number:  # the hash of the first event names the file
                writing.append({"kind": "made", **self._key.mark()})
            writing.append(event)
            return answers | fresh

        with ExitStack() as held:
            stored = self._store.write(work)
            if ledger is not None:
                note_state(ledger, self._store, _DANGER)
        return _stacked([stored[voter] for voter in ids])

    def known(self, question: Question, voters: Iterable[Any]) -> NDArray[np.bool_]:
        """Which voters have answered a question.

        Parameters
        ----------
        question
            What was asked.
        voters
            Their ids.

        Returns
        -------
        NDArray[np.bool_]
            True for each voter with an answer.
        """
        ids = self._ids(question, voters)
        stored = self._store.read(lambda writing: self._known(writing, ids))
        return np.array([voter in stored for voter in ids], dtype=bool)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        self._store.close()

    def _ids(self, question: Question, voters: Iterable[Any]) -> list[bytes]:
        texts = map(id_text, voters)
        return self._key.hashes(question.digest, (_WHOLE.sub(r"\1", text) for text in texts))

    def _known(self, writing: Writing, ids: list[bytes]) -> dict[bytes, bytes]:
        """The stored answers of these voters; with another key nobody would be found."""
        self._key.check(writing, self._store)
        return dict(writing.found("SELECT voter, answer FROM answers WHERE voter IN", ids))


def _refuse_other_terms(writing: Writing, question: Question) -> None:
    """Refuse to ask for the same items in the same wave with another epsilon or mechanism."""
    asked = [text for (text,) in writing.rows("SELECT asked FROM questions")]
    if question.text in asked:
        return
    asked_for = f"{question.mechanism} at epsilon {positive(question.epsilon)}"
    for epsilon, mechanism, items, wave in map(json.loads, asked):
        if wave == question.wave and sorted(items) == sorted(question.items):
            stored, named = f"{mechanism} at epsilon {epsilon}", f"wave {wave!r}" if wave else "the first wave"
            raise InputError(
                f"{named} of these items is stored with {stored}, got {asked_for}"
                + (" and the items in another order" if stored == asked_for else "")
                + ": ask with what is stored, or name a new collection with ",
                Setting("wave"),
                ", which is drawn and charged again",
            )


def _paid(writing: Writing, question: Question, pays: dict[str, str | None]) -> bool:
    """Whether this ledger has paid for the question: for everyone, or for the same part of the voters."""
    return bool(
        writing.rows(
            "SELECT 1 FROM events WHERE json_extract(body, '$.question') = ? "
            "AND json_extract(body, '$.paid_by.ledger') = ? AND json_extract(body, '$.paid_by.dataset') = ? "
            "AND (json_extract(body, '$.paid_by.part') IS NULL OR (json_extract(body, '$.paid_by.partition') = ? "
            "AND json_extract(body, '$.paid_by.part') = ?)) LIMIT 1",
            question.digest.hex(),
            *(pays[name] for name in ("ledger", "dataset", "partition", "part")),
        )
    )


def _orders(drawn: Any, rows: int) -> NDArray[np.int32]:
    array = np.ascontiguousarray(drawn, dtype="<i4")
    if array.ndim != 2 or len(array) != rows:
        raise InputError(f"draw must return one order for each of the {rows} rows, got shape {array.shape}")
    return array


def _stacked(answers: list[bytes]) -> NDArray[np.int32]:
    """The answers as rows of one array; shorter ones are padded with -1."""
    width = max(map(len, answers))
    if min(map(len, answers)) < width:
        answers = [answer + b"\xff" * (width - len(answer)) for answer in answers]
    return np.frombuffer(b"".join(answers), dtype="<i4").reshape(len(answers), width // 4).astype(np.int32)
