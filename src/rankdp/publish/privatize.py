"""Privatize: a table of rankings in, a synthetic table out, each row protected on its own (eps-ranking DP).

Complete rankings of m items go through one mechanism for m items. A partial ranking of k items is a complete
ranking of those k: its *order* is protected and *which* items it lists is not, so partial tables are refused
unless the caller says that this is public. Files are streamed: batches are read and written in order while
workers privatize those in between.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankdp.data.files import open_rankings, open_writer
from rankdp.data.orders import Ties
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism
from rankdp.mechanisms.registry import MECHANISMS, Objective, mechanism
from rankdp.privacy.answers import AnswerStore, Question
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, one_each, positive
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Provenance, Release

_BATCHES_AHEAD = 4


def privatize(
    rankings: Rankings,
    epsilon: Real | Iterable[Real] | None = None,
    *,
    mechanism: str = "auto",
    objective: Objective = "concordance",
    listed_items_public: bool = False,
    ledger: Ledger | None = None,
    answers: AnswerStore | None = None,
    wave: str = "",
    bits: Bits | None = None,
) -> Release[Rankings]:
    """A synthetic copy of ``rankings``: the same voters and items, every order drawn anew around the true one.

    ``epsilon`` is one number for all, one per row, or None to use ``rankings.epsilons``. ``mechanism="auto"``
    takes the one that keeps most pairs in order, or with ``objective="aggregate"`` the one from which ``aggregate``
    learns most. With ``bits=SeededBits(seed)`` the result is a rehearsal without a guarantee.

    ``ledger`` is charged before anything is drawn. With ``answers`` whoever was asked the same question before gets the
    stored synthetic ranking again, at no cost; another ``wave`` says that the data are new.
    """
    if not isinstance(rankings, Rankings):
        raise InputError(f"rankings must be a rankdp.Rankings, got {type(rankings).__name__}")
    if one_each(epsilon):
        own = [float(positive(value, f"epsilon of row {row}")) for row, value in enumerate(epsilon, 1)]
        rankings = Rankings.from_orders(rankings.orders, rankings.items, rankings.voters, own)
        epsilon = None
    job = _Job(mechanism, cast("Real | None", epsilon), listed_items_public, bits or SecureBits(), objective)
    task = job.admit(rankings, job.bits.spawn())
    if answers is not None:
        return job.permanent(task, answers, wave, ledger)
    with spending(ledger, job.guarantee(), "privatize", job.bits) as charge:
        release = job.release(task.run(workers=os.cpu_count() or 1))
        charge.commit(release.provenance)
    return release


def privatize_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    epsilon: Real | None = None,
    *,
    mechanism: str = "auto",
    objective: Objective = "concordance",
    epsilon_column: str | None = None,
    listed_items_public: bool = False,
    ties: Ties = "refuse",
    items: Iterable[str] | None = None,
    ledger: Ledger | None = None,
    answers: AnswerStore | None = None,
    wave: str = "",
    bits: Bits | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Release[Path]:
    """Privatize a file of rankings into another, in memory that does not grow with its length; rows keep their order.

    The guarantee and provenance go to TARGET.release.json. Nothing is left behind unless the whole run
    succeeds. ``progress`` is called with the rows done and their total, None where only the end of the file
    tells.
    """
    if (epsilon is None) == (epsilon_column is None):
        raise InputError("give either one epsilon for everyone or the column that holds each voter's own")
    if ledger is not None and epsilon is None:
        raise Unsupported("a ledger charges before the file is read: give one epsilon for everyone, not epsilon_column")
    job = _Job(mechanism, epsilon, listed_items_public, bits or SecureBits(), objective)
    if answers is not None:
        with open_rankings(source, items=items, ties=ties) as reader:
            left_out = list(reader.ignored_columns)
            table = Rankings.read(source, items=items, ties=ties)
            with open_writer(target, like=reader) as writer:
                kept = job.permanent(job.admit(table, job.bits), answers, wave, ledger, columns_left_out=left_out)
                writer.write(kept.value)
                writer.promise(kept.to_dict())
        if progress:
            progress(len(table), len(table))
        return Release(Path(target), kept.guarantee, kept.provenance)
    with (
        open_rankings(source, items=items, ties=ties, epsilon_column=epsilon_column) as reader,
        open_writer(target, like=reader) as writer,
        ThreadPoolExecutor(1) as reading,
        ThreadPoolExecutor(os.cpu_count()) as drawing,
        spending(
            ledger, Guarantee(ITEM_POSITION, job.epsilon or Fraction(1)), f"privatize {target}", job.bits
        ) as charge,
    ):
        rows = 0
        batches = _prefetched(reading, iter(reader))
        for done in _in_order(drawing, (partial(job.work, batch, job.bits.spawn()) for batch in batches)):
            charge.leaves()
            writer.write(done)
            rows += len(done)
            if progress:
                progress(rows, reader.rows)
        left_out = list(reader.ignored_columns)
        release = job.release(Path(target), epsilon_column=epsilon_column, columns_left_out=left_out)
        writer.promise(release.to_dict())
        writer.keep()
        charge.commit(release.provenance)
    return release


def _prefetched(reading: ThreadPoolExecutor, batches: Iterator[Rankings]) -> Iterator[Rankings]:
    """The batches, the next one always being read while one is worked on."""
    upcoming = reading.submit(next, batches, None)
    while (batch := upcoming.result()) is not None:
        upcoming = reading.submit(next, batches, None)
        yield batch


def _in_order(workers: ThreadPoolExecutor, tasks: Iterable[Callable[[], Rankings]]) -> Iterator[Rankings]:
    """The results of the tasks in their order, a few computed ahead."""
    waiting: deque[Future[Rankings]] = deque()
    for task in tasks:
        waiting.append(workers.submit(task))
        if len(waiting) == _BATCHES_AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@dataclass(frozen=True, slots=True)
class _Task:
    """The work on one batch: which rows (None for all) go through which mechanism, with bits of their own."""

    batch: Rankings
    groups: list[tuple[NDArray[np.int64] | None, RankingMechanism]]
    bits: Bits

    def run(self, workers: int = 1) -> Rankings:
        """The synthetic batch, not checked again: the contract's tests check that a mechanism permutes its rows."""
        batch, orders = self.batch, self.batch.orders
        if len(self.groups) == 1 and self.groups[0][0] is None and orders.shape[1] == self.groups[0][1].items:
            out: Orders = self.groups[0][1].sample(orders, self.bits, workers)
        else:
            out = orders.copy()
            for rows, one in self.groups:
                chosen = slice(None) if rows is None else rows
                out[chosen, : one.items] = one.sample(orders[chosen, : one.items], self.bits, workers)
        return Rankings._of(out, batch.items, batch._voters, batch.epsilons)


class _Job:
    """One privatization: what was asked for, and what has been promised on the way."""

    def __init__(
        self, name: str, epsilon: Real | None, listed_items_public: bool, bits: Bits, objective: Objective
    ) -> None:
        mechanism(name, 2, 1, objective=objective)  # an unknown name is refused before anything is read
        self.name, self.bits, self.objective = name, bits, objective
        self.epsilon = None if epsilon is None else positive(epsilon)
        self.listed_items_public = listed_items_public
        self.partial = False
        self.items: int | None = None
        self.used: dict[tuple[int, Fraction], RankingMechanism] = {}
        self._admitting = Lock()

    def work(self, batch: Rankings, bits: Bits) -> Rankings:
        """The synthetic rows of a batch; batches may come in any order, which changes nothing in what is refused."""
        return self.admit(batch, bits).run()

    def admit(self, batch: Rankings, bits: Bits) -> _Task:
        """Check what the whole table must obey, build the mechanisms that the batch needs, say what is to be done."""
        if self.epsilon is None and batch.epsilons is None:
            raise InputError("epsilon must be given: the rankings hold no epsilon of their own")
        complete = batch.complete
        with self._admitting:
            some = not complete or self.items not in (None, len(batch.items))
            self.items = len(batch.items)
            if some and not self.listed_items_public:
                raise InputError(
                    "some rankings list only some of the items: their order can be protected, but not which items "
                    "they list; say that this is public with listed_items_public=True (--listed-items-public)"
                )
            self.partial |= some
            groups = [(rows, self._mechanism(length, eps)) for length, eps, rows in self._groups(batch, complete)]
        return _Task(batch, groups, bits)

    def _mechanism(self, length: int, epsilon: Fraction) -> RankingMechanism:
        if (length, epsilon) not in self.used:
            built = mechanism(self.name, length, epsilon, objective=self.objective)
            assert isinstance(built, RankingMechanism)
            self.used[length, epsilon] = built
        return self.used[length, epsilon]

    def _groups(self, batch: Rankings, complete: bool) -> Iterator[tuple[int, Fraction, Any]]:
        """The rows that share a length of at least two (one listed item has no order to protect) and an epsilon."""
        if complete and self.epsilon is not None:
            if len(batch.items) > 1:
                yield len(batch.items), self.epsilon, None
            return
        own = np.zeros(len(batch)) if batch.epsilons is None or self.epsilon is not None else batch.epsilons
        kinds, kind = np.unique(np.stack([batch.lengths, own]), axis=1, return_inverse=True)
        for place, (length, value) in enumerate(kinds.T.tolist()):
            if length > 1:
                yield int(length), self.epsilon or positive(value), np.flatnonzero(kind == place)

    def permanent(
        self, task: _Task, answers: AnswerStore, wave: str, ledger: Ledger | None, **facts: Any
    ) -> Release[Rankings]:
        """Stored answers where there are any, drawn ones elsewhere; charged when the question is new."""
        batch = task.batch
        if batch.voters is None or self.epsilon is None or not batch.complete or self.bits.seed is not None:
            raise InputError(
                "permanent answers need voters' ids, one epsilon for all, complete rankings and no rehearsal: "
                "only then is the same question the same"
            )
        ((_, one),) = task.groups
        names = sorted(batch.items)
        place = np.array([names.index(item) for item in batch.items], dtype=np.int32)  # in the question's own order

        def charge() -> None:
            if ledger is not None:
                ledger.spend(self.guarantee(), f"privatize, answers kept{f', wave {wave}' if wave else ''}")

        asked = Question(self.epsilon, one.name, tuple(names), wave)
        stored = answers.answers(
            asked, batch.voters, lambda rows: place[one.sample(batch.orders[rows], task.bits)], charge
        )
        orders = np.argsort(place).astype(np.int32)[stored]
        return self.release(batch.with_orders(orders), answers="kept", wave=wave, **facts)

    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees of all rows admitted so far."""
        if not self.used:
            raise InputError("no ranking lists two items or more: there is no order to protect")
        strongest = [one.guarantee for one in self.used.values()]
        return replace(
            strongest[0],
            epsilon=max(one.epsilon for one in strongest),
            whole_ranking_epsilon=max(one.whole_ranking_epsilon or 0 for one in strongest),
            personal=self.epsilon is None,
            listed_items_public=self.partial,
        )

    def release(self, value: Any, **facts: Any) -> Release[Any]:
        """The value with the weakest of all rows' guarantees, or as the rehearsal it is."""
        guarantee, personal = self.guarantee(), self.epsilon is None
        names = [name for name in MECHANISMS if any(one.name == name for one in self.used.values())]
        parameters = {
            "asked_for": self.name,
            "objective": self.objective,
            "epsilon": "each voter's own" if personal else str(self.epsilon),
            "choices": [{"mechanism": self.used[key].name, **self.used[key].parameters} for key in sorted(self.used)],
            **facts,
        }
        provenance = Provenance.now(" + ".join(names), parameters, self.bits)
        return Release(value, None if provenance.seed is not None else guarantee, provenance)
