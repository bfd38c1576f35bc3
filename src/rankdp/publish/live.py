"""Live boards: votes arrive, the leaderboard is published again, and one budget pays for all of it.

    LiveBoard.create (charged once) -> add votes -> board -> add votes -> board -> ...

``mechanisms.votes.running_totals`` has the mechanism and its proof. What it needs of this module: of every voter at
most c comparisons are counted *over all updates*, and which of a voter's comparisons are counted depends on that
voter's own rows, in this update and the ones before, and on nothing else.

**The state** is a file (SQLite, hash-chained as a ledger is) that holds

- the public terms and, for every update, its released node: noisy numbers;
- the sum of the open block, which has noise of its own from its first moment on;
- *secret*: how many comparisons of each voter have been counted, under HMAC-SHA256 of the voter's id, and the HMAC of
  every file of votes that was counted, both with a key that is in a file of its own.

No vote and no true count is in it. Pages that are written over are wiped, and the write-ahead log is emptied after
every update, because two versions of an open block together would say exactly what was added between them.

**Kills.** An update is one transaction: it has happened, with its votes, its voters' counts and its node, or it has
not, and then no number drawn for it was seen. The board is computed from the nodes in the state, at no cost, so a kill
between the update and its board loses nothing: ``board`` publishes it again, and the same votes are refused as counted
already. Of a copy that was restored the ledger knows that it is old, and it is refused: continued, it would release
other nodes for the same steps, and the budget paid for one of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np

from rankdp.checks import one_of
from rankdp.data.columns import listed_items
from rankdp.data.comparisons import Comparisons
from rankdp.data.tables import check_items
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.running_totals import RunningTotals, counted
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Provenance, Release, released
from rankdp.privacy.store import Store, Writing
from rankdp.privacy.voter_files import VoterKey, note_state, paid_by, payer, refuse_old_copies
from rankdp.publish import leaderboard
from rankdp.publish.leaderboard import Leaderboard
from rankdp.publish.live_scores import scores_of_totals
from rankdp.publish.live_state import (
    LiveStates,
    LiveTerms,
    check_joining,
    check_number,
    keep_open,
    nodes_of,
    open_block_of,
    totals_of,
    updates,
)
from rankdp.types import Longs

UNITS = ("voter", "comparison")


def rank_live(
    path: str | os.PathLike[str],
    votes: Any = None,
    *,
    items: Iterable[Any] | str | os.PathLike[str] | None = None,
    epsilon: Real | None = None,
    protect: str | None = None,
    max_per_voter: int | None = None,
    boards: int | None = None,
    top: int | None = None,
    scale: str = "log-strength",
    level: float = 0.95,
    ridge: float | None = None,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    **reading: Any,
) -> Release[Leaderboard]:
    """Add new votes to a live board, which is begun where there is none, and publish it.

    Parameters
    ----------
    path
        The state of the live board.
    votes
        A path or frame with the new votes; None publishes the newest board again.
    items
        The public list of items, or a file that holds it; those of before, and any that join. Needed to begin.
    epsilon, protect, max_per_voter, boards
        As in ``LiveBoard.create``; needed to begin, and later either not given or the same.
    top, scale, level, ridge
        As in ``LiveBoard.board``.
    ledger
        The budget: charged once, when the live board begins, and given again with every call.
    bits
        ``SeededBits(seed)`` begins a rehearsal, whose boards carry no guarantee.
    **reading
        How to open ``votes``; see ``Comparisons.read``.
    """
    one_of("scale", scale, ("log-strength", "elo"))
    listed = None if items is None else check_items(listed_items(items))
    terms = {"epsilon": epsilon, "protect": protect, "max_per_voter": max_per_voter, "boards": boards}
    new = not Path(path).exists()
    if new:
        for name, value in {"items": listed, "epsilon": epsilon, "protect": protect, "votes": votes}.items():
            if value is None:
                raise InputError(
                    f"{os.fspath(path)}: there is no live board here yet, and to begin one needs ", Setting(name)
                )
        live = None
    else:
        live = LiveBoard.open(path, ledger=ledger)
        live._check_terms(terms, bits)
    names = listed if listed is not None else live.items if live is not None else ()
    leaderboard.check_request(len(names), level, top)
    opened = None if votes is None else Comparisons.of(votes, items=names, **reading)
    if live is None:
        assert opened is not None
        RunningTotals.of(Protection.of(str(protect), max_per_voter), positive(epsilon or 0), boards)
        (opened.bound(max_per_voter) if max_per_voter else opened).count()  # whatever is refused is refused unpaid
        live = LiveBoard.create(
            path,
            names,
            epsilon or 0,
            protect=str(protect),
            max_per_voter=max_per_voter,
            boards=boards,
            ledger=ledger,
            bits=bits,
        )
    try:
        if opened is not None:
            live.add(opened, items=names)
        return live.board(top=top, scale=scale, level=level, ridge=ridge)
    finally:
        live.close()


class LiveBoard:
    """A leaderboard whose votes keep arriving; use ``create`` and ``open``.

    Parameters
    ----------
    store, key, ledger
        The open state, the key of its voters, and who paid for it.
    """

    def __init__(self, store: Store, key: VoterKey, ledger: Ledger | None) -> None:
        self._store, self._key, self._ledger = store, key, ledger

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        items: Iterable[Any],
        epsilon: Real,
        *,
        protect: str = "voter",
        max_per_voter: int | None = None,
        boards: int | None = None,
        ledger: Ledger | None = None,
        bits: Bits | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Begin a live board: its state is made, and all boards that it will ever publish are charged.

        Parameters
        ----------
        path
            The state, a file that must not exist yet.
        items
            The public list of items; others may join later.
        epsilon
            How much all boards together may give away about one ``protect``.
        protect
            "voter" (all comparisons of one voter, in all updates) or "comparison" (one comparison).
        max_per_voter
            With ``protect="voter"`` the most comparisons that are counted of one voter over all updates.
        boards
            How many updates there will be at most. None for any number: then the noise of the n-th board grows with the
            square root of n, where a limit would keep that of a long series lower.
        ledger
            The budget to charge, once; later calls are given the same one and charge nothing.
        bits
            ``SeededBits(seed)`` makes a rehearsal, whose boards carry no guarantee.
        key
            The file of the key that voters are hashed with, ``path`` + ".key" unless given.
        """
        one_of("protect", protect, UNITS)
        totals = RunningTotals.of(Protection.of(protect, max_per_voter), epsilon, boards)
        names, source = check_items(items), bits or SecureBits()
        check_number(names)
        if Path(path).exists():
            raise InputError(f"{os.fspath(path)}: this file exists; a live board begins with a new one")
        terms = LiveTerms(totals, source.seed, None, names, (1,) * len(names), 0)
        what = f"live board {Path(path).name}: all {boards or ''} boards".replace("  ", " ")
        with spending(ledger, totals.guarantee, what, source) as charge:
            made = cls(LiveStates(path, create=True), VoterKey.beside(path, key, new=True), ledger)

            def work(writing: Writing) -> None:
                if writing.state().number:
                    raise InputError(f"{os.fspath(path)}: another process has begun this live board")
                writing.append(
                    {
                        "kind": "made",
                        **made._key.mark(),
                        "protect": protect,
                        "max_per_voter": max_per_voter,
                        "epsilon": str(totals.epsilon),
                        "boards": boards,
                        "block": totals.block,
                        "seed": source.seed,
                        "items": list(names),
                        **({} if ledger is None else paid_by(ledger)),
                    }
                )
                if totals.block > 1:
                    keep_open(writing, totals.noise(len(names), terms.bits(0)))

            Path(path).chmod(0o600)
            charge.leaves()
            made._store.write(work)
            charge.commit(Provenance.now("live board", {"boards": boards, "epsilon": str(totals.epsilon)}, source))
        return made

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        ledger: Ledger | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Go on with a live board.

        Parameters
        ----------
        path
            Its state.
        ledger
            The budget that paid for it, which knows an old copy of the state; needed if there was one.
        key
            The file of its key, ``path`` + ".key" unless given.
        """
        store = LiveStates(path)
        live = cls(store, VoterKey.beside(path, key), ledger)
        store.read(live._terms)
        return live

    @property
    def totals(self) -> RunningTotals:
        """The mechanism: what is protected, epsilon, and how many boards there may be."""
        return self._store.read(self._terms).totals

    @property
    def items(self) -> tuple[str, ...]:
        """The items that are there now."""
        return self._store.read(self._terms).items

    def add(self, votes: Comparisons | Any, *, items: Iterable[Any] | None = None, **reading: Any) -> int:
        """Count new votes, in one step that happens wholly or not at all, and return its number.

        Parameters
        ----------
        votes
            A path or a frame, opened with the options in ``reading``; ``Comparisons`` only of the same items.
        items
            All items from now on: those of before, and any that join. None for those of before.
        **reading
            How to open ``votes``; see ``Comparisons.read``.
        """
        names = self.items if items is None else check_items(items)
        opened = votes if isinstance(votes, Comparisons) else Comparisons.of(votes, items=names, **reading)

        def work(writing: Writing) -> int:
            terms = self._terms(writing)
            check_joining(terms.items, names, opened)
            check_number(names)
            step, limit = terms.step + 1, terms.totals.steps
            if limit is not None and step > limit:
                raise InputError(f"{self._store.path}: all {limit} boards of this live board have been published")
            batches = self._key.hashes(b"batch", (digest.hex() for digest in opened.digests()))
            self._refuse_counted(writing, batches)
            added = self._counted(writing, opened, terms.totals.protection)
            bits = terms.bits(step)
            block = open_block_of(writing)
            if len(block):
                joined = len(names) - len(terms.items)
                block = np.concatenate([block, terms.totals.noise_of_items(joined, bits)])
            node, block = terms.totals.step(step, added, block, bits)
            writing.many("INSERT INTO batches VALUES (?, ?)", [(batch, step) for batch in batches])
            if len(block):
                keep_open(writing, block)
            new = list(names[len(terms.items) :])
            writing.append({"kind": "board", "step": step, "joined": new, "node": node.tolist()})
            return step

        step = self._store.write(work)
        self._store.settle()
        if self._ledger is not None:
            note_state(self._ledger, self._store.read(lambda writing: writing.state()))
        return step

    def board(
        self, *, top: int | None = None, scale: str = "log-strength", level: float = 0.95, ridge: float | None = None
    ) -> Release[Leaderboard]:
        """The leaderboard after all updates so far, from released numbers; it costs nothing and may be had again.

        Parameters
        ----------
        top
            Also say which items are in the top so many, and how surely.
        scale
            "log-strength", or "elo" for 1000 + 400/ln 10 times that.
        level
            The confidence of the intervals.
        ridge
            The weight that pulls scores to the middle; chosen from public and released numbers unless given.
        """
        terms, nodes = self._store.read(lambda writing: (self._terms(writing), nodes_of(writing)))
        one_of("scale", scale, ("log-strength", "elo"))
        leaderboard.check_request(len(terms.items), level, top)
        if not terms.step:
            raise InputError(f"{self._store.path}: no votes have been counted yet, so there is no board")
        drawn = scores_of_totals(totals_of(terms, nodes), ridge)
        board = leaderboard.build(
            terms.items,
            drawn.scores,
            drawn.errors,
            level=level,
            score_name="score",
            top=top,
            warnings=[
                *drawn.warnings,
                "Epsilon is for all boards of this series together, those that are still to come too.",
            ],
        )
        protection = terms.totals.protection
        parameters = {
            "protect": protection.unit,
            "max_per_voter": protection.moved if protection.unit == "voter" else None,
            "epsilon": str(terms.totals.epsilon),
            "board": terms.step,
            "boards": terms.totals.steps,
            "items": len(terms.items),
            **drawn.parameters,
        }
        value = board.as_elo() if scale == "elo" else board
        return released(value, terms.totals.guarantee, "live differences", parameters, terms.bits(terms.step))

    def close(self) -> None:
        """Give the file back; a later call opens it again."""
        self._store.close()

    def _check_terms(self, given: Mapping[str, Any], bits: Bits | None) -> None:
        """Refuse terms other than those that the live board began with."""
        terms = self._store.read(self._terms)
        law, unit = terms.totals, terms.totals.protection
        most = unit.moved if unit.unit == "voter" else None
        agreed = {"epsilon": law.epsilon, "protect": unit.unit, "max_per_voter": most, "boards": law.steps}
        for name, value in given.items():
            said = positive(value) if name == "epsilon" and value is not None else value
            if said is not None and said != agreed[name]:
                raise InputError(
                    f"{self._store.path}: ",
                    Setting(name),
                    f" of this live board is {agreed[name]} for good, got {value}",
                )
        if bits is not None and bits.seed != terms.seed:
            raise InputError(f"{self._store.path}: a live board is a rehearsal from its beginning or never")

    def _terms(self, writing: Writing) -> LiveTerms:
        """What the state says, with its key and its ledger checked."""
        made = writing.event(1)
        if made is None:
            raise InputError(f"{self._store.path}: this live board was never finished: remove it and begin again")
        self._key.check(writing, self._store)
        if self._ledger is not None:
            refuse_old_copies(writing, self._store, self._ledger, "would release other numbers for the same steps")
        paying = None if self._ledger is None else payer(self._ledger)
        if made.get("paid_by") != paying:
            wanted = "the ledger that paid for it" if made.get("paid_by") else "no ledger, since none has paid for it"
            raise InputError(f"{self._store.path}: this live board must be given {wanted}, with ", Setting("ledger"))
        protection = Protection.of(made["protect"], made["max_per_voter"])
        totals = RunningTotals(protection, Fraction(made["epsilon"]), made["boards"], made["block"])
        joined = [*enumerate(updates(writing), 1)]
        items = [*made["items"], *(item for _, body in joined for item in body["joined"])]
        since = [1] * len(made["items"]) + [step for step, body in joined for _ in body["joined"]]
        return LiveTerms(totals, made["seed"], paying, tuple(items), tuple(since), len(joined))

    def _refuse_counted(self, writing: Writing, batches: list[bytes]) -> None:
        """Refuse votes that were counted before, whole files that are the same byte for byte."""
        if len(set(batches)) < len(batches):
            raise InputError("the same file of votes is given twice")
        for (step,) in writing.found("SELECT step FROM batches WHERE batch IN", batches)[:1]:
            raise InputError(
                f"these votes were counted already, for board {step}; without votes the newest board is published again"
            )

    def _counted(self, writing: Writing, votes: Comparisons, protection: Protection) -> Longs:
        """What new votes add, with the voters' counts brought up to date in the same transaction."""
        if protection.unit != "voter":
            if votes.per_voter is not None:
                raise InputError("votes that are bounded per voter go with ", Setting("protect", "voter"), " only")
            return counted(votes.count())
        known: dict[str, bytes] = {}

        def left(voters: list[str]) -> Longs:
            hashes = self._key.hashes(b"voter", voters)
            known.update(zip(voters, hashes, strict=True))
            used = dict(writing.found("SELECT voter, counted FROM voters WHERE voter IN", hashes))
            return np.array([protection.moved - used.get(voter, 0) for voter in hashes], dtype=np.int64)

        counts, voters, used = votes.bound(protection.moved).count_within(left)
        writing.many(
            "INSERT INTO voters VALUES (?, ?) ON CONFLICT (voter) DO UPDATE SET counted = counted + excluded.counted",
            [(known[voter], number) for voter, number in zip(voters, used.tolist(), strict=True) if number],
        )
        return counted(counts)
