"""Privatize: a table of rankings in, a synthetic table out, each row protected on its own.

``protect="position"`` is eps-ranking DP, ``protect="ranking"`` local DP: epsilon holds for any two rankings of a row.

    look at every row -> promise -> charge the ledger -> draw -> write

Complete rankings of m items go through one mechanism for m items. A partial ranking of k items is treated as a complete
ranking of those k: its *order* is protected, *which* items it lists is not. So partial tables are refused unless the
caller says that this is public, or asks for lists of the first k, whose items are secret (``top-ball``).

A voter with k rows gets k draws, and k draws at epsilon cost k epsilon (basic composition). So repeated voters are
refused unless the caller allows them; then k is the largest number of rows of any voter, and the guarantee and the
charge are for k epsilon. Voters' ids are public, and so is k. Ids are compared as trimmed text. A table without ids has
a guarantee for each row.

Files are streamed: batches are read and written in order while workers privatize those in between. Without a ledger
that is one pass, and an error in the last row removes the whole target. With a ledger the file is read once before
that: whatever is wrong with the data is refused before the charge, which is then exact.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from rankdp.data.files import open_rankings, open_writer
from rankdp.data.frames import RankingsReader
from rankdp.data.orders import Ties
from rankdp.data.rankings import Rankings
from rankdp.data.spark import is_spark
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.registry import Protect, Purpose, named, releases_lists
from rankdp.privacy.answers import AnswerStore, Question
from rankdp.privacy.bits import Bits, seeded
from rankdp.privacy.exact import Real, one_each, positive
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Release
from rankdp.publish.privatize_job import PrivatizeJob, PrivatizeRequest
from rankdp.publish.spark_rankings import privatize_spark
from rankdp.types import Ints, Longs

_BATCHES_AHEAD = 6
_IDS_LOOKED_AT = 20
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def privatize(
    rankings: Rankings | Any,
    epsilon: Real | Iterable[Real] | None = None,
    *,
    protect: Protect = "position",
    mechanism: str = "auto",
    purpose: Purpose = "aggregate",
    top: int | None = None,
    tiers: Sequence[int] | None = None,
    as_tiers: bool = False,
    listed_items_public: bool = False,
    repeated_voters: bool = False,
    ledger: Ledger | None = None,
    answers: AnswerStore | None = None,
    wave: str = "",
    bits: Bits | None = None,
    seed: int | None = None,
    target: str | os.PathLike[str] | None = None,
) -> Release[Any]:
    """A synthetic copy of a table: the same voters and items, every order drawn around the true one.

    Parameters
    ----------
    rankings
        The true rankings, or a path or table that ``Rankings.of`` opens. A Spark DataFrame stays on Spark: its tasks
        draw, once, and the result is a DataFrame of what they drew (see ``publish.spark_rankings``).
    epsilon
        The privacy of every ranking, smaller is more private: one number for all, one per row, or None to use
        ``rankings.epsilons``.
    protect
        What epsilon protects: "position", one item's position in a ranking, or "ranking", the whole ranking (local
        differential privacy).
    mechanism
        The name of a mechanism, or "auto" for the one that is best for the purpose.
    purpose
        What the rankings are for: "aggregate" needs the fewest respondents for ``aggregate``, "order" keeps most pairs
        of each ranking in order, and "top" keeps most of the first ``top`` items among the first.
    top
        With ``purpose="top"``, the length of the top list. With ``protect="ranking"`` and another purpose, lists of the
        first ``top`` items are released instead of rankings, and which items they are is protected as well as their
        order; rankings may then be partial, but ``items`` must be known and every one must list that many.
    tiers
        The sizes of the tiers, the top first, for a mechanism that has tiers ("auto" is "tiers" then); by default they
        are chosen from public numbers.
    as_tiers
        Release tier lists, for a mechanism that has tiers: the items of a tier are tied, because their order inside it
        is noise.
    listed_items_public
        Accept partial rankings; which items they list is then public.
    repeated_voters
        Accept voters with several rows; the guarantee and the charge then count all rows of a voter together.
    ledger
        A budget that is charged before anything is drawn.
    answers
        A file of answers: a voter who was asked the same question before gets the stored synthetic ranking again, at
        no further cost. It needs voters' ids, each once, complete rankings, and one epsilon.
    wave
        With ``answers``, the name of this collection: under a new name, rankings are drawn and charged again.
    bits
        Where the noise comes from. With ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    target
        With a Spark DataFrame, a new directory for Parquet files, which the result reads: a DataFrame is computed again
        by every action, and synthetic rankings must be drawn once.

    Returns
    -------
    Release
        The synthetic table (``Rankings``, or a Spark DataFrame) with its guarantee.
    """
    bits = seeded(bits, seed)
    if is_spark(rankings):
        if answers is not None or one_each(epsilon):
            raise Unsupported("stored answers and an epsilon per row are not for Spark: its rows have no order")
        if releases_lists(purpose, top, protect):
            raise Unsupported("lists of the first items are not drawn on Spark: privatize a table in memory, or a file")
        if target is None:
            raise InputError(
                Setting("target"), " must name a new directory for the synthetic rankings of a Spark table"
            )
    elif target is not None:
        raise InputError(Setting("target"), " is for Spark DataFrames: privatize_file writes files")
    else:
        rankings = Rankings.of(rankings)
    if one_each(epsilon):
        own = [float(positive(value, f"epsilon of row {row}")) for row, value in enumerate(epsilon, 1)]
        rankings, common = rankings.with_epsilons(own), None
    else:
        common = None if epsilon is None else positive(cast("Real", epsilon))
    request = PrivatizeRequest(
        common, protect, named(mechanism, tiers), purpose, top, as_tiers, listed_items_public, repeated_voters
    )
    job = PrivatizeJob(request, bits)
    if target is not None:
        return privatize_spark(rankings, os.fspath(target), job, ledger)
    groups = job.look(rankings)
    job.check_voters(lambda row: rankings.voters[row])
    if answers is not None:
        return _with_answers(job, rankings, answers, wave, ledger)
    with spending(ledger, job.guarantee(), "privatize", job.bits) as charge:
        drawn = job.draw(rankings, groups, job.bits.spawn(), workers=os.cpu_count() or 1)
        release = job.release(drawn, rankings.orders.shape[1])
        charge.commit(release.provenance)
    return release


def privatize_file(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    epsilon: Real | None = None,
    *,
    protect: Protect = "position",
    mechanism: str = "auto",
    purpose: Purpose = "aggregate",
    top: int | None = None,
    tiers: Sequence[int] | None = None,
    as_tiers: bool = False,
    epsilon_column: str | None = None,
    voter_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    layout: Literal["auto", "ranks"] = "auto",
    listed_items_public: bool = False,
    repeated_voters: bool = False,
    drop_voters: bool = False,
    shuffle: bool = False,
    ties: Ties = "refuse",
    items: Iterable[str] | None = None,
    ledger: Ledger | None = None,
    answers: AnswerStore | None = None,
    wave: str = "",
    bits: Bits | None = None,
    seed: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    told: Callable[..., None] = lambda *parts: None,
    **opening: Any,
) -> Release[Path]:
    """Privatize a file of rankings into another; rows keep their order, and a failure leaves nothing behind.

    The guarantee and provenance go to TARGET.release.json. Memory grows with the file only by 16 bytes per row, to find
    repeated voters (10^7 rows: 160 MB); with ``answers`` the table is loaded.

    Parameters
    ----------
    source
        The file of true rankings: CSV, JSON, Excel, Parquet, PrefLib or BLT, by its ending; or several tables.
    target
        The file to write, in the format of its ending.
    epsilon
        The privacy of every ranking, smaller is more private.
    protect, mechanism, purpose, top, tiers, as_tiers, listed_items_public, repeated_voters, answers, wave, bits
        As in ``privatize``.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    epsilon_column
        The column with each voter's own epsilon, instead of ``epsilon``; not with a ledger.
    voter_column
        The column of the voters' ids, where it does not have one of the usual names.
    columns
        Names to give to columns before they are recognised, such as ``{"rank_1": "Q7"}``.
    layout
        "ranks" if every column but the voter's is an item and holds its rank.
    drop_voters
        Leave the voters' ids out of the target. Otherwise they are published unchanged.
    shuffle
        Write the rows in random order, so that the order of the file does not show whose they are; the synthetic table
        is held in memory.
    ties
        Tied items: "refuse" them, keep their order in the file ("listed"), or break ties at "random".
    items
        The public names of all items; without it, the names that occur.
    ledger
        A budget that is charged after the file was checked and before anything is drawn.
    progress
        Called with the number of rows done and their total (None if it is not known yet).
    told
        Called with notes for the holder of the file, in parts like an error message: what was skipped, or that the ids
        look like addresses.
    **opening
        ``table``, ``sheet`` and ``encoding``, as in ``rankdp.data.tables.open_table``.

    Returns
    -------
    Release[Path]
        The target with its guarantee.
    """
    bits = seeded(bits, seed)
    if (epsilon is None) == (epsilon_column is None):
        raise InputError("give either ", Setting("epsilon"), " or ", Setting("epsilon_column"))
    if ledger is not None and epsilon is None:
        raise Unsupported("a ledger needs one epsilon for everyone, not ", Setting("epsilon_column"))
    common = None if epsilon is None else positive(epsilon)
    request = PrivatizeRequest(
        common, protect, named(mechanism, tiers), purpose, top, as_tiers, listed_items_public, repeated_voters
    )
    job = PrivatizeJob(request, bits)
    listed = None if items is None else tuple(items)
    named_columns = {"voter_column": voter_column, "epsilon_column": epsilon_column, "columns": columns}
    file = _RankingsFile(source, {"items": listed, "ties": ties, "layout": layout, **named_columns, **opening})
    with (
        file.open() as reader,
        open_writer(target, like=_as_wide_as(reader, request.lists), tiers=as_tiers) as writer,
    ):
        for note in reader.notes:
            told(note)
        dropped = [reader.columns.voter] if drop_voters and reader.columns.voter else []
        facts: dict[str, Any] = {
            "epsilon_column": epsilon_column,
            "columns_left_out": [*reader.columns.ignored, *dropped],
        }
        facts |= {"shuffled": True} if shuffle else {}
        published = partial(_published, drop_voters=drop_voters, told=told)
        if answers is not None:
            table = file.load()
            job.look(table)
            job.check_voters(lambda row: table.voters[row])
            kept = _with_answers(job, table, answers, wave, ledger, **facts)
            writer.write(_in_random_order(published(kept.value), job.bits) if shuffle else published(kept.value))
            writer.promise(kept.to_dict())
            if progress:
                progress(len(table), len(table))
            return Release(Path(target), kept.guarantee, kept.provenance)
        # without a ledger nothing is charged, and the guarantee is known at the end
        promise = (
            Guarantee(ITEM_POSITION, job.epsilon or Fraction(1)) if ledger is None else _guarantee_of(request, file)
        )
        with (
            spending(ledger, promise, f"privatize {target}", job.bits) as charge,
            closing(_streamed(job, reader)) as batches,
        ):
            rows, held = 0, []
            for batch in batches:
                job.count(batch)
                charge.leaves()
                public = published(batch)
                if shuffle:
                    held.append(public)
                else:
                    writer.write(public)
                rows += len(batch)
                if progress:
                    progress(rows, reader.rows)
            if held:
                writer.write(_in_random_order(Rankings.concatenate(held), job.bits))
            job.check_voters(file.voter_of)
            if ledger is not None and job.guarantee() != promise:
                raise InputError(f"{reader.path}: the file changed while it was read")
            release = job.release(Path(target), reader.width, **facts)
            writer.promise(release.to_dict())
            writer.keep()
            charge.commit(release.provenance)
    return release


@dataclass(frozen=True, slots=True)
class _RankingsFile:
    """A file of rankings and how to read it; it may be read several times."""

    source: Any
    reading: Mapping[str, Any]

    def open(self) -> RankingsReader:
        return open_rankings(self.source, **self.reading)

    def load(self) -> Rankings:
        return Rankings.read(self.source, **self.reading)

    def voter_of(self, row: int) -> Any:
        """The id in a row."""
        with self.open() as reader:
            for batch in reader:
                if row < len(batch):
                    return batch.voters[row]
                row -= len(batch)
        raise InputError("the file changed while it was read")


def _as_wide_as(reader: RankingsReader, lists: int | None) -> RankingsReader:
    """What the writer takes the width of its rows from: the reader, or the length of lists."""
    return reader if lists is None else replace(reader, width=lists)


def _published(batch: Rankings, drop_voters: bool, told: Callable[..., None]) -> Rankings:
    """A synthetic batch as it is published, with its voters' ids or without them."""
    if batch._voters is None or drop_voters:
        return batch.without_voters()
    some = [str(voter) for voter in batch[:_IDS_LOOKED_AT].voters]
    if sum(bool(_ADDRESS.fullmatch(voter)) for voter in some) * 2 > len(some):
        told(
            "the voters' ids look like e-mail addresses and are published as they are; ",
            Setting("drop_voters", True),
            " leaves them out",
        )
    return batch


def _in_random_order(table: Rankings, bits: Bits) -> Rankings:
    """The rows in random order: sorted by one random word per row."""
    return table.take(np.argsort(bits.words(len(table)), kind="stable"))


def _guarantee_of(request: PrivatizeRequest, file: _RankingsFile) -> Guarantee:
    """The guarantee of privatizing a file, after reading it to the end."""
    job = PrivatizeJob(request, None)
    with file.open() as reader:
        for batch in reader:
            job.look(batch)
    job.check_voters(file.voter_of)
    return job.guarantee()


def _with_answers(
    job: PrivatizeJob, rankings: Rankings, answers: AnswerStore, wave: str, ledger: Ledger | None, **facts: Any
) -> Release[Rankings]:
    """Stored answers where there are any, new draws elsewhere; the store decides what is charged."""
    if job.request.repeated_voters:
        raise Unsupported(
            Setting("repeated_voters"),
            " must not be given with ",
            Setting("answers"),
            ", which keep one answer for each voter: privatize each of a voter's rows in a separate wave",
        )
    if job.request.lists is not None:
        raise Unsupported(Setting("answers"), " keep whole rankings, not lists of the first items")
    if rankings.voters is None or job.epsilon is None or not rankings.complete or job.bits.seed is not None:
        raise InputError(
            "stored answers need voters' ids, one epsilon for all, complete rankings and no rehearsal: "
            "only then can a question be recognised when it is asked again"
        )
    promise = job.guarantee()
    (chosen,) = job.mechanisms.values()
    names = sorted(rankings.items)
    position = np.array([names.index(item) for item in rankings.items], dtype=np.int32)  # in the question's order

    def draw(rows: Longs) -> Ints:
        """The synthetic orders, with their offsets as a last column if there are any."""
        drawn, offsets = chosen.sample_with_offsets(rankings.orders[rows], job.bits)
        return np.column_stack([position[drawn], offsets]) if chosen.has_offsets else position[drawn]

    stored = answers.answers(
        Question(chosen.epsilon, chosen.name, tuple(names), wave),
        rankings.voters,
        draw,
        ledger,
        promise,
        f"privatize, answers kept{f', wave {wave}' if wave else ''}",
    )
    orders = np.argsort(position).astype(np.int32)[stored[:, : chosen.items]]
    offsets = stored[:, -1] if chosen.has_offsets else np.zeros(len(orders), dtype=np.int32)
    if job.request.as_tiers:
        table = job.tied(rankings, orders, offsets, [(slice(None), chosen)])
    else:
        table = rankings.with_orders(orders, offsets if chosen.has_offsets else None)
    return job.release(table, chosen.items, answers="kept", wave=wave, **facts)


def _streamed(job: PrivatizeJob, reader: RankingsReader) -> Generator[Rankings, None, None]:
    """The synthetic batches in order; the next ones are read and drawn while one is written."""
    with ThreadPoolExecutor(1) as reading, ThreadPoolExecutor(os.cpu_count()) as drawing:
        batches = iter(reader)

        def ahead() -> Future[Rankings] | None:
            batch = next(batches, None)
            return None if batch is None else drawing.submit(job.privatized, batch, job.bits.spawn())

        waiting = deque(reading.submit(ahead) for _ in range(_BATCHES_AHEAD))
        while (drawn := waiting.popleft().result()) is not None:
            waiting.append(reading.submit(ahead))
            yield drawn.result()
