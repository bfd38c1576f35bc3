"""Live boards: votes arrive, the leaderboard is published again, and one epsilon pays for all of it.

    LiveBoard.create (charged once) -> add votes -> board -> add votes -> board -> ...

``mechanisms.votes.running_counts`` has the mechanism and its proof. This module ensures two things for it:

- *Each vote counts once.* Every batch of votes has a name, and a name that was counted is refused.
- *A voter's bound is for all boards together.* The state keeps how much of c each voter has left, in steps of
  1/``STEPS`` comparison. A voter with k comparisons in a batch and s steps left has the weight min(1, s/k) on each,
  rounded down: the weights of all batches add up to at most c, and they depend on the voter's own rows alone.

**The state** is a private file (SQLite, mode 0600, hash-chained like a ledger). It holds the public terms, the released
nodes, and *secrets*: the sums of the steps since each level's last node, and how much of the bound voters have used,
under HMAC-SHA256 with a key in a separate file.

**Kills.** A batch is one transaction: its votes, its voters' steps and its node are stored together or not at all, and
a node is shown only after it is on disk. ``board`` is computed from nodes, so computing it again costs nothing.

**Restores.** A copy from last week would draw other nodes for the same steps. Before a board is shown, the ledger that
paid for it records how far the state has come; an older copy is refused. Therefore a live board needs a ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np

from rankdp.data.cells import check_items
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.data.tables import listed_items
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.inference.boards import by_table, by_wins
from rankdp.inference.normal import PRIOR
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.running_counts import RunningCounts
from rankdp.privacy.bits import Bits, SecureBits, SeededBits
from rankdp.privacy.exact import Real
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Provenance, Release, released
from rankdp.privacy.store import Store, Writing
from rankdp.privacy.voter_files import VoterKey, note_state, paid_by, payer, refuse_old_copies
from rankdp.publish import leaderboard
from rankdp.publish.leaderboard import Leaderboard
from rankdp.publish.limits import check_noise, checked_delta, checked_epsilon
from rankdp.publish.rank import prepared
from rankdp.types import Floats, Longs

_MOST_ITEMS = 200  # a node of a hidden design has m(m - 1) numbers
_SERIES = "Epsilon is for all boards of this series together, including those still to come."
_DANGER = "would release other numbers for the same steps"


class LiveStates(Store):
    """The file of a live board."""

    application, what = 0x524B444C, "live board"  # "RKDL"
    tables = """
    CREATE TABLE IF NOT EXISTS open_sums (one INTEGER PRIMARY KEY CHECK (one = 1), sums BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS voters (voter BLOB PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID
    """
    unwritten = "no vote is counted and nothing is released"


class LiveBoard:
    """A leaderboard whose votes keep arriving; use ``create`` and ``open``.

    Parameters
    ----------
    store
        Its state.
    key
        The key of the voters' hashes.
    ledger
        The budget that paid for it; None for a rehearsal.
    """

    def __init__(self, store: LiveStates, key: VoterKey, ledger: Ledger | None) -> None:
        self._store, self._key, self._ledger = store, key, ledger

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        items: Iterable[Any] | str | os.PathLike[str],
        epsilon: Real,
        *,
        protect: str,
        boards: int,
        max_per_voter: int | None = None,
        delta: Real = 0,
        ledger: Ledger | None,
        bits: Bits | None = None,
    ) -> Self:
        """Create a live board, and charge the ledger for all of its boards.

        Parameters
        ----------
        path
            A new file for its state; the key of its voters is in ``path`` + ".key".
        items
            The public list of items, or a file that holds it. It does not change.
        epsilon, delta
            For all boards together.
        protect
            "outcome" (who met whom is public), "comparison" or "voter", as in ``rank``.
        boards
            How many batches of votes there may be, at most 1,000: 52 for weekly boards of a year.
        max_per_voter
            With "voter": how many comparisons of a voter count, over all boards together.
        ledger
            The budget; None with a rehearsal only.
        bits
            ``SeededBits(seed)`` makes it a rehearsal, whose boards carry no guarantee.
        """
        names, source = check_items(listed_items(items)), bits if bits is not None else SecureBits()
        if (ledger is None) == (source.seed is None):
            raise InputError(Setting("ledger"), " must be given, except for a rehearsal: it detects a restored state")
        protection = Protection.of(protect, max_per_voter)
        counts = RunningCounts.of(protection, checked_epsilon(epsilon), checked_delta(delta), boards)
        check_noise(protection.moved, counts.epsilon / counts.levels)
        leaderboard.check_request(len(names), 0.95, None)
        if len(names) > _MOST_ITEMS:
            raise Unsupported(f"a live board takes at most {_MOST_ITEMS} items, got {len(names):,}")
        if Path(path).exists():
            raise InputError(f"{os.fspath(path)}: the file exists already: open it, or choose another name")
        terms = {
            "kind": "made",
            "items": list(names),
            "protect": protect,
            "max_per_voter": max_per_voter,
            "epsilon": str(counts.epsilon),
            "delta": str(counts.delta),
            "boards": boards,
            "base": counts.base,
            "seed": source.seed,
        }
        with spending(ledger, counts.guarantee, f"live board, {boards} boards", source) as charge:

            def work(writing: Writing) -> None:
                if writing.event(1) is not None:
                    raise InputError(f"{os.fspath(path)}: another process has begun this live board")
                writing.append({**terms, **key.mark(), **({} if ledger is None else paid_by(ledger))})

            key = VoterKey.of_file(path, None)  # no file before the charge, which may be refused
            live = cls(LiveStates(path, create=True), key, ledger)
            charge.leaves()
            live._store.write(work)
            charge.commit(Provenance.now("live board", {"boards": boards, "epsilon": str(counts.epsilon)}, source))
        return live

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, ledger: Ledger | None = None) -> Self:
        """Open an existing live board.

        Parameters
        ----------
        path
            Its state.
        ledger
            The budget that paid for it, which recognises an old copy of the state; None for a rehearsal.
        """
        live = cls(LiveStates(path), VoterKey.of_file(path, None), ledger)
        live._store.read(live._terms)
        return live

    @property
    def counts(self) -> RunningCounts:
        """The mechanism: what is protected, epsilon, and how many boards there may be."""
        return _counts(self._store.read(self._terms))

    def add(self, votes: Comparisons | Any, batch: str, **reading: Any) -> int:
        """Count new votes in one transaction, and return the number of the board.

        Parameters
        ----------
        votes
            ``Comparisons`` of the same items, or a path or table that is opened with the options in ``reading``. No
            vote may be in two batches.
        batch
            A public name, such as "2026-W47"; one that was counted already is refused.
        **reading
            How to open ``votes``; see ``Comparisons.read``.
        """
        terms = self._store.read(self._terms)
        opened = votes if isinstance(votes, Comparisons) else Comparisons.of(votes, items=terms["items"], **reading)
        if list(opened.items) != terms["items"]:
            raise InputError("votes must have the items of the live board, in their order")
        if not (isinstance(batch, str) and batch.strip()):
            raise InputError(Setting("batch"), f" must be a name, got {batch!r}")
        if opened.per_voter is not None:
            raise InputError("votes must not be bounded: the live board bounds each voter over all boards")

        def work(writing: Writing) -> int:
            terms = self._terms(writing)
            counts, before = _counts(terms), _updates(writing)
            number = len(before) + 1
            for place, body in enumerate(before, 1):
                if body["batch"] == batch.strip():
                    raise InputError(f"batch {batch.strip()!r} was counted already, for board {place}")
            if number > counts.steps:
                raise InputError(
                    f"{self._store.path}: all {counts.steps} boards of this live board have been published"
                )
            added, design = self._counted(writing, opened, counts.protection)
            node, sums = counts.step(
                number, added, _open_sums(writing, counts.levels, len(added)), _bits(terms, number)
            )
            writing.run("INSERT OR REPLACE INTO open_sums VALUES (1, ?)", sums.astype("<i8").tobytes())
            public = {} if design is None else {"design": design}
            writing.append({"kind": "board", "batch": batch.strip(), "node": node.tolist(), **public})
            return number

        return self._store.write(work)

    def board(self, *, top: int | None = None, level: float = 0.95) -> Release[Leaderboard]:
        """The leaderboard after all batches so far, from released numbers; it costs nothing and can be computed again.

        Parameters
        ----------
        top
            Also report which items are in the top k, with their probabilities.
        level
            The confidence of the intervals.
        """
        terms, updates = self._store.read(lambda writing: (self._terms(writing), _updates(writing)))
        leaderboard.check_request(len(terms["items"]), level, top)
        if not updates:
            raise InputError(f"{self._store.path}: no votes have been counted yet, so there is no board")
        if self._ledger is not None:
            note_state(self._ledger, self._store, _DANGER)  # before anything is shown that a copy would draw again
        counts, items, step = _counts(terms), tuple(terms["items"]), len(updates)
        nodes = counts.nodes(step)
        total = np.sum([np.array(updates[node - 1]["node"], np.int64) for node in nodes], axis=0)
        noise = counts.counts.noise_variance * len(nodes)
        wins = total / (2 * counts.protection.steps)
        if counts.protection.design_public:
            draws = by_wins(wins, _design(updates, len(items)), noise, PRIOR)
        else:
            table = np.zeros((len(items), len(items)))
            table[~np.eye(len(items), dtype=np.bool_)] = wins
            draws = by_table(table, noise, PRIOR)
        value = leaderboard.build(items, draws, level=level, score_name="score", top=top, warnings=[_SERIES])
        parameters = {
            "protect": counts.protection.unit,
            "max_per_voter": terms["max_per_voter"],
            "epsilon": terms["epsilon"],
            "delta": terms["delta"],
            "items": len(items),
            "board": step,
            "boards": counts.steps,
            "batch": updates[-1]["batch"],
            "noise_variance": noise,
        }
        return released(value, counts.guarantee, "live board", parameters, _bits(terms, step))

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        self._store.close()

    def _terms(self, writing: Writing) -> dict[str, Any]:
        """What the state says, with its key and its ledger checked."""
        made = writing.event(1)
        if made is None:
            raise InputError(f"{self._store.path}: this live board was never finished: remove it and create it again")
        self._key.check(writing, self._store)
        if made.get("paid_by") != (None if self._ledger is None else payer(self._ledger)):
            wanted = "the ledger that paid for it" if made.get("paid_by") else "no ledger, because it is a rehearsal"
            raise InputError(f"{self._store.path}: this live board must be given {wanted}, with ", Setting("ledger"))
        if self._ledger is not None:
            refuse_old_copies(writing, self._store, self._ledger, _DANGER)
        return made

    def _counted(self, writing: Writing, votes: Comparisons, protection: Protection) -> tuple[Longs, Any]:
        """What new votes add, and their public design; voters' steps are updated in the same transaction."""
        if protection.unit != "voter":
            votes = prepared(votes, protection)
        if protection.design_public:
            counted = votes.count()
            design = [counted.first.tolist(), counted.second.tolist(), (counted.halves // 2).tolist()]
            return counted.half_wins, design
        kind = RunningCounts(protection, Fraction(1), Fraction(0), 1, 2).counts
        if protection.unit == "comparison":
            return kind.counted(votes.count()), None
        loads = votes.voter_loads()
        names = dict(zip(loads, self._key.hashes(b"voter", loads), strict=True))
        used = dict(writing.found("SELECT voter, used FROM voters WHERE voter IN", list(names.values())))
        left = {voter: protection.moved * STEPS - used.get(name, 0) for voter, name in names.items()}
        allowance = {voter: (load, min(STEPS, left[voter] // load)) for voter, load in loads.items()}
        counted = votes.count_within(allowance)
        spent = [(names[voter], load * steps) for voter, (load, steps) in allowance.items()]
        if int(counted.halves.sum()) != 2 * sum(steps for _, steps in spent):
            raise InputError(f"{votes.table.what}: the votes changed while they were counted; add them again")
        writing.many(
            "INSERT INTO voters VALUES (?, ?) ON CONFLICT (voter) DO UPDATE SET used = used + excluded.used", spent
        )
        return kind.counted(counted), None


def _counts(terms: Mapping[str, Any]) -> RunningCounts:
    protection = Protection.of(terms["protect"], terms["max_per_voter"])
    return RunningCounts(
        protection, Fraction(terms["epsilon"]), Fraction(terms["delta"]), terms["boards"], terms["base"]
    )


def _bits(terms: Mapping[str, Any], step: int) -> Bits:
    """Where the noise of a step comes from: the operating system, or the seed of a rehearsal."""
    return SecureBits() if terms["seed"] is None else SeededBits(terms["seed"], f"/board {step}")


def _updates(writing: Writing) -> list[dict[str, Any]]:
    return [body for body in writing.walk() if body["kind"] == "board"]


def _open_sums(writing: Writing, levels: int, width: int) -> Longs:
    rows = writing.rows("SELECT sums FROM open_sums")
    sums = np.frombuffer(rows[0][0], dtype="<i8") if rows else np.zeros(levels * width)
    return sums.astype(np.int64).reshape(levels, width)


def _design(updates: Iterable[Mapping[str, Any]], items: int) -> Floats:
    """How often each pair has met."""
    met = np.zeros((items, items))
    for body in updates:
        first, second, comparisons = (np.array(part, np.int64) for part in body["design"])
        met[first, second] += comparisons
    return met + met.T
