"""A ledger and a file of answers know each other: each notes how far the other had come, so that an old copy shows.

Both are chains of events. The ledger appends ``{"kind": "answers", "store": …}``, which costs nothing, before answers
are released under it; the file of answers keeps the entry that paid for a question. A chain that does not contain what
the other file has noted is an older copy, or a copy that went its own way (``rankdp.privacy.answers``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rankdp.privacy.ledger.entries import now
from rankdp.privacy.store import State, Writing

if TYPE_CHECKING:
    from rankdp.privacy.ledger.charges import Ledger


def payer(ledger: Ledger) -> dict[str, str | None]:
    """Who pays: the ledger's file, its data set, and the part of the voters that releases are about."""
    partition, part = ledger._place
    file = ledger._store.read(lambda writing: writing.state().file)
    return {"ledger": file, "dataset": ledger.dataset, "partition": partition, "part": part}


def receipt(ledger: Ledger) -> State:
    """The last charge, right after one was made: charges are on disk for good, and no loss of power takes them away."""

    def work(writing: Writing) -> State:
        ((number, own),) = writing.rows(
            "SELECT number, hash FROM events WHERE json_extract(body, '$.kind') = 'reserve' "
            "ORDER BY number DESC LIMIT 1"
        )
        return State(writing.state().file, number, own)

    return ledger._store.read(work)


def reaches(ledger: Ledger, state: State) -> bool:
    """Whether the ledger contains an entry that was noted before."""
    return ledger._store.read(lambda writing: writing.reaches(state))


def noted(ledger: Ledger, file: str) -> State | None:
    """The furthest state of a file of answers under which something was released under this ledger."""
    return ledger._store.read(lambda writing: _noted(writing, file))


def note(ledger: Ledger, state: State) -> None:
    """Note, on disk, how far a file of answers has come; a state that is not beyond the noted one changes nothing."""

    def work(writing: Writing) -> None:
        before = _noted(writing, state.file)
        if before is None or before.number < state.number:
            writing.append({"kind": "answers", "when": now(), "dataset": ledger.dataset, "store": asdict(state)})

    before = noted(ledger, state.file)
    if before is None or before.number < state.number:
        ledger._store.write(work)


def _noted(writing: Writing, file: str) -> State | None:
    rows = writing.rows(
        "SELECT json_extract(body, '$.store.number'), json_extract(body, '$.store.hash') FROM events "
        "WHERE json_extract(body, '$.kind') = 'answers' AND json_extract(body, '$.store.file') = ? "
        "ORDER BY number DESC LIMIT 1",
        file,
    )
    return State(file, *rows[0]) if rows else None
