"""Privatize on Spark: a DataFrame of rankings in, a DataFrame of synthetic ones out, drawn by the tasks that hold them.

    look at every row -> promise -> charge the ledger -> draw once into files -> release the files

Every task draws from its own ``SecureBits``, keyed by the operating system of the worker that it runs on; no key and
no seed travels. The proof is that of ``privatize``: each row goes through the mechanism by itself, with independent
bits, so it does not matter which task draws it.

**One draw for one charge.** Every action runs a DataFrame again, and drawing again would publish several synthetic
rankings of one person for one charge. So the DataFrame that draws is never returned: it runs once, into Parquet files
of which Spark commits one attempt of each task, and the stored rows are compared with the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankdp.data.cells import Known, folded, natural
from rankdp.data.rankings import Rankings
from rankdp.data.spark import SparkRankings, new_directory
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Release
from rankdp.publish.privatize_job import Group, PrivatizeJob, drawn_orders


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one task saw."""

    rows: int
    lengths: frozenset[int]
    items: tuple[str, ...]
    blank: str | None


def privatize_spark(frame: Any, target: str, job: PrivatizeJob, ledger: Ledger | None = None) -> Release[Any]:
    """The synthetic DataFrame, with its guarantee, which goes to TARGET.release.json too.

    Parameters
    ----------
    frame
        A Spark DataFrame with a row per ranking.
    target
        A new directory for Parquet files, which the result reads.
    job
        What was asked for.
    ledger
        A budget that is charged before anything is drawn.
    """
    if job.epsilon is None:
        raise Unsupported("epsilon must be one number for all rankings on Spark, whose rows have no order")
    if job.request.as_tiers or job.bits.seed is not None:
        raise Unsupported("tier lists and rehearsals are not made on Spark: privatize a table in memory, or a file")
    held = SparkRankings.of(frame)
    rows, items, lengths = _looked_at(held)
    # one made-up row of each length shows which mechanisms are needed
    orders = np.full((len(lengths), held.width), -1, np.int32)
    for row, length in enumerate(sorted(lengths)):
        orders[row, :length] = np.arange(length)
    job.look(Rankings.from_orders(orders, items))
    most, voter = held.most_rows()
    job.admit_rows(most, lambda: voter)
    chosen = {length: mechanism for (length, _), mechanism in job.mechanisms.items()}
    offsets = job.with_offsets(held.width)
    drawing = held.mapped(partial(_drawn, chosen, offsets), items, offsets)
    with (
        new_directory(frame, target) as directory,
        spending(ledger, job.guarantee(), f"privatize {target}", job.bits) as charge,
    ):
        charge.leaves()
        result = directory.keep(drawing)
        if result.count() != rows or SparkRankings.of(result).most_rows()[0] != most:
            raise InputError("Spark table: it changed while it was read, so nothing is released")
        release = job.release(result, held.width, columns_left_out=list(held.columns.ignored))
        directory.promise(release.to_dict())
        charge.commit(release.provenance)
    return release


def _looked_at(held: SparkRankings) -> tuple[int, tuple[str, ...], set[int]]:
    """The number of rows, all items and all lengths, after every row was checked in its task."""
    parts = held.each_task(_look)
    known: dict[str, str] = {}
    for name in sorted({name for part in parts for name in part.items}, key=natural):
        if (other := known.setdefault(folded(name), name)) != name:
            raise InputError(
                f"Spark table: {other!r} and {name!r} differ in capitals or spaces only, and would be two items; "
                "spell them alike"
            )
    blanks = sorted({part.blank for part in parts if part.blank is not None})
    if len(blanks) > 1:
        raise InputError(f"Spark table: missing values are spelled {' and '.join(map(repr, blanks))}; use one spelling")
    rows = sum(part.rows for part in parts)
    if not rows:
        raise InputError("Spark table: there are no rows")
    # columns that are items keep their order, which is public
    items = held.columns.items or tuple(known.values())
    return rows, items, set().union(*(part.lengths for part in parts))


def _look(batches: Iterator[Rankings], known: Known) -> _Seen:
    rows, lengths = 0, set[int]()
    for batch in batches:
        rows += len(batch)
        lengths |= set(np.unique((batch.orders >= 0).sum(axis=1)).tolist())
    return _Seen(rows, frozenset(lengths), known.items, known.blank)


def _drawn(chosen: dict[int, RankingMechanism], with_offsets: bool, batch: Rankings) -> Rankings:
    """The synthetic rows of a batch, in a task, from its own bits."""
    lengths = (batch.orders >= 0).sum(axis=1)
    found = set(np.unique(lengths).tolist()) - {0, 1}
    if not found <= set(chosen):
        raise InputError("Spark table: it changed while it was read")
    groups: list[Group] = [(np.flatnonzero(lengths == length), chosen[length]) for length in found]
    drawn, offsets = drawn_orders(batch.orders, groups, SecureBits())
    return Rankings._of(drawn, batch.items, batch._voters, None, offsets if with_offsets else None)
