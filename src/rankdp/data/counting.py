"""Counting in process: Arrow batches to item numbers, item numbers to counts, on all cores.

The fast path for files and frames. A cell's text is looked at once per distinct value of a batch (or of a row group,
whose dictionary Parquet has made already, see `vote_pages`) and the work per row is a handful of look-ups in compiled
loops. Each thread reads its own row groups and counts into its own table.

Bounding holds two numbers per row in memory (who, and what was said), deals them out by voter, and then chooses
within one voter after the other: 12 bytes per row at the peak, 8 more if rows have weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdp.data.comparisons import (
    PROBLEMS,
    Comparisons,
    Diagnostics,
    LongArray,
    VoteColumns,
    diagnose,
    item_keys,
    refusal,
    refused,
    text_of,
    weight_limit,
)

if TYPE_CHECKING:
    from rankdp.data.counts import PairCounts

from rankdp.data.vote_cells import Items, Names, Outcomes, Voters, Weights
from rankdp.data.vote_tables import Batch, Frame, Table, find_files

_DENSE = 1 << 24  # cells of a square table that each thread may have
_WIDEST_RANGE = 1 << 22
_PARALLEL_ROWS = 1 << 20
_FOLD_ROWS = 1 << 25
_MOST_THREADS = 8
_NONE64, _NONE32, _NONE8 = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8)


def open_files(pattern: str) -> InProcess:
    """CSV or Parquet files by path or pattern."""
    return InProcess(find_files(pattern))


def open_frame(frame: Any) -> InProcess:
    """Any Arrow-compatible frame."""
    return InProcess(Frame(frame))


@dataclass(slots=True)
class _Tally:
    """What one thread has seen: rows, problems, and the first row with each problem."""

    rows: int
    problems: LongArray
    found: dict[int, tuple[int, int, dict[str, Any]]]
    """By problem that is refused: file, row in the file, and its cells."""

    @classmethod
    def empty(cls) -> _Tally:
        return cls(0, np.zeros(len(PROBLEMS), np.int64), {})


class _Rows:
    """One thread's way from a batch to item numbers, outcomes and weights, and on to a counting loop."""

    def __init__(self, votes: Comparisons, names: Names) -> None:
        self._votes, self._columns = votes, votes.columns
        self._items = Items(names), Items(names)
        self._outcomes = Outcomes(votes, names)
        self._weights = Weights(weight_limit(votes))
        self.tally = _Tally.empty()

    def arrays(self, batch: Any) -> tuple[Any, Any, Any, Any]:
        """Left items, right items, outcomes (empty if the left one always wins) and weights (empty if all are 1)."""
        columns = self._columns
        left = self._items[0].numbers(batch.column(columns.left))
        right = self._items[1].numbers(batch.column(columns.right))
        if columns.outcome is not None:
            outcome = self._outcomes.judge(batch.column(columns.outcome), left, right)
        else:
            outcome = _NONE8
        weights = _NONE64 if columns.weight is None else self._weights.numbers(batch.column(columns.weight))
        return left, right, outcome, weights

    def run(self, stream: Iterator[Batch], loop: Callable[[tuple[Any, ...], Any, LongArray, LongArray], None]) -> None:
        """Feed every batch to a counting loop; stop at the first row that must be refused."""
        for file, start, batch in stream:
            if not batch.num_rows:
                continue
            problems, firsts = np.zeros(len(PROBLEMS), np.int64), np.zeros(len(PROBLEMS), np.int64)
            loop(self.arrays(batch), batch, problems, firsts)
            self.tally.rows += batch.num_rows
            self.tally.problems += problems
            for problem in set(np.flatnonzero(problems).tolist()).intersection(refused(self._votes)):
                row = int(firsts[problem])
                cells = {name: batch.column(name)[row].as_py() for name in batch.schema.names}
                self.tally.found[problem] = file, start + row, cells
            if self.tally.found:
                return


class InProcess:
    """Votes in files and frames, counted here."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.what, self.kinds = table.what, table.kinds

    def names(self, columns: VoteColumns) -> set[str]:
        """Every item that occurs."""
        import pyarrow as pa

        found: set[str] = set()
        for stream in self._table.streams([columns.left, columns.right], 1):
            for _, _, batch in stream:
                for array in batch.columns:
                    if array.type == pa.string_view():
                        array = array.cast(pa.string())
                    found.update(text for text in map(text_of, array.unique().to_pylist()) if text is not None)
        return found

    def count(self, votes: Comparisons) -> tuple[PairCounts, Diagnostics]:
        """The counts of all pairs."""
        if votes.per_voter is not None:
            contents, facts = self._bounded(votes, votes.per_voter)
            return _count_contents(votes, [contents]), facts
        if len(votes.items) ** 2 <= _DENSE:
            return self._dense(votes)
        return self._sparse(votes)

    def half_wins(self, votes: Comparisons) -> tuple[LongArray, Diagnostics]:
        """Each item's half-wins."""
        if votes.per_voter is not None:
            counts, facts = self.count(votes)
            return counts.half_wins, facts
        from rankdp.data import counting_kernels

        wins, tallies = self._tables(votes, len(votes.items), counting_kernels.tally_wins)
        return wins, self._facts(votes, tallies)

    def _dense(self, votes: Comparisons) -> tuple[PairCounts, Diagnostics]:
        from rankdp.data import count_kernels, counting_kernels
        from rankdp.data.counts import PairCounts

        items = len(votes.items)
        table, tallies = self._tables(votes, items * items, counting_kernels.tally_pairs)
        facts = self._facts(votes, tallies)
        return PairCounts._of(votes.items, *count_kernels.pairs_of_dense(table, items)), facts

    def _tables(self, votes: Comparisons, cells: int, kernel: Any) -> tuple[LongArray, list[_Tally]]:
        """Count in one table per thread; the sum of the tables."""
        items, names = len(votes.items), Names(votes.items)

        def work(stream: Iterator[Batch]) -> tuple[LongArray, _Tally]:
            rows, table = _Rows(votes, names), np.zeros(cells, np.int64)
            rows.run(stream, lambda arrays, _, problems, firsts: kernel(*arrays, items, table, problems, firsts))
            return table, rows.tally

        tables, tallies = zip(*_in_threads(work, self._streams(votes)), strict=True)
        total = tables[0]
        for table in tables[1:]:
            total += table
        return total, list(tallies)

    def _streams(self, votes: Comparisons, most_threads: int = _MOST_THREADS) -> list[Iterator[Batch]]:
        columns = votes.columns
        used = [columns.left, columns.right, columns.outcome, columns.weight]
        used += [columns.voter] if votes.per_voter is not None else []
        threads = min(os.cpu_count() or 1, most_threads) if (self._table.rows or 0) >= _PARALLEL_ROWS else 1
        return self._table.streams([name for name in used if name is not None], threads)

    def _facts(self, votes: Comparisons, tallies: Sequence[_Tally]) -> Diagnostics:
        """Refuse the first row that is to be refused; else what was seen."""
        found = [(*at, problem) for tally in tallies for problem, at in tally.found.items()]
        if found:
            file, row, cells, problem = min(found, key=lambda at: at[:2])
            raise refusal(votes, problem, cells, self._table.where(file, row))
        problems = np.sum([tally.problems for tally in tallies], axis=0).tolist()
        return diagnose(problems, sum(tally.rows for tally in tallies))

    def _sparse(self, votes: Comparisons) -> tuple[PairCounts, Diagnostics]:
        """Many items: rows are held as contents, and folded into pairs when there are many."""
        from rankdp.data import counting_kernels

        rows, items = _Rows(votes, Names(votes.items)), len(votes.items)
        held: list[tuple[Any, LongArray]] = []
        folded: list[PairCounts] = []
        size = 0

        def loop(arrays: tuple[Any, ...], _: Any, problems: LongArray, firsts: LongArray) -> None:
            nonlocal size
            left, right, outcome, weights = arrays
            contents, kept_weights = np.empty(len(left), np.int64), np.empty(len(weights), np.int64)
            kept = counting_kernels.sort_out(
                *(left, right, outcome, weights, _NONE32, items),
                *(contents, kept_weights, _NONE32, problems, firsts),
            )
            held.append((contents[:kept], kept_weights[:kept] if len(weights) else _NONE64))
            size += kept
            if size >= _FOLD_ROWS:
                folded.append(_fold(votes, held))
                held.clear()
                size = 0

        for stream in self._streams(votes, 1):
            rows.run(stream, loop)
        facts = self._facts(votes, [rows.tally])
        folded.append(_fold(votes, held))
        return _sum_of(votes, folded), facts

    def _bounded(self, votes: Comparisons, most: int) -> tuple[Any, Diagnostics]:
        """The contents that are kept when each voter may contribute `most`."""
        voters, held, facts = self._dealable(votes)
        return _choose(votes, voters, held, most), facts

    def _dealable(self, votes: Comparisons) -> tuple[Voters, list[tuple[Any, Any, LongArray]], Diagnostics]:
        from rankdp.data import counting_kernels

        rows, items, voters = _Rows(votes, Names(votes.items)), len(votes.items), Voters()
        kind = np.int32 if 2 * items * items < 2**31 else np.int64
        held: list[tuple[Any, Any, LongArray]] = []

        def loop(arrays: tuple[Any, ...], batch: Any, problems: LongArray, firsts: LongArray) -> None:
            left, right, outcome, weights = arrays
            people = voters.numbers(batch.column(votes.columns.voter))
            contents, kept_weights = np.empty(len(left), kind), np.empty(len(weights), np.int64)
            kept_people = np.empty(len(left), np.int32)
            kept = counting_kernels.sort_out(
                *(left, right, outcome, weights, people, items),
                *(contents, kept_weights, kept_people, problems, firsts),
            )
            held.append((kept_people[:kept], contents[:kept], kept_weights[:kept] if len(weights) else _NONE64))

        for stream in self._streams(votes, 1):
            rows.run(stream, loop)
        return voters, held, self._facts(votes, [rows.tally])


def _in_threads(work: Callable[[Iterator[Batch]], Any], streams: Sequence[Iterator[Batch]]) -> list[Any]:
    if len(streams) == 1:
        return [work(streams[0])]
    with ThreadPoolExecutor(len(streams)) as pool:
        return list(pool.map(work, streams))


def _choose(votes: Comparisons, voters: Voters, held: list[tuple[Any, Any, LongArray]], most: int) -> Any:
    """Deal the rows out by voter and choose within each; `held` is emptied on the way, to make room."""
    from rankdp.data import voter_kernels

    items, weighted = len(votes.items), votes.columns.weight is not None
    sizes, amounts = np.zeros(len(voters), np.int64), np.zeros(len(voters) if weighted else 0, np.int64)
    for people, _, weights in held:
        voter_kernels.count_voters(people, weights, sizes, amounts)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places, kind = starts[:-1].copy(), held[0][1].dtype if held else np.int32
    dealt = np.empty(starts[-1], kind)
    dealt_weights = np.empty(starts[-1] if weighted else 0, np.int64)
    held.reverse()
    while held:
        people, contents, weights = held.pop()
        voter_kernels.deal(people, contents, weights, places, dealt, dealt_weights)
    digits = item_keys(votes.items)
    keys = np.frombuffer("".join(digits).encode(), np.uint8).reshape(items, -1)
    texts, ends = voters.texts()
    room = np.minimum(amounts if weighted else sizes, most)

    def work(part: tuple[int, int]) -> Any:
        chosen = np.empty(int(room[part[0] : part[1]].sum()), kind)
        hashes = np.empty(min(most, len(chosen)), np.uint64)
        kept = voter_kernels.choose(
            *(dealt, dealt_weights, starts, *part, most, items, keys, texts, ends),
            *(voter_kernels.MD5_SINES, voter_kernels.MD5_TURNS, hashes, chosen),
        )
        return chosen[:kept]

    threads = min(os.cpu_count() or 1, _MOST_THREADS) if starts[-1] >= _PARALLEL_ROWS else 1
    # parts of about equally many rows, more than threads, since some voters take longer than others
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], 4 * threads + 1)[1:-1]).tolist()
    edges = [0, *cuts, len(voters)]
    parts = list(pairwise(edges))
    if threads == 1:
        return np.concatenate([work(part) for part in parts])
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(work, parts)))


def _count_contents(votes: Comparisons, parts: Sequence[Any]) -> PairCounts:
    from rankdp.data import count_kernels, counting_kernels
    from rankdp.data.counts import PairCounts

    items = len(votes.items)
    if items * items <= _DENSE:
        table = np.zeros(items * items, np.int64)
        for contents in parts:
            counting_kernels.tally_contents(contents, items, table)
        return PairCounts._of(votes.items, *count_kernels.pairs_of_dense(table, items))
    return _fold(votes, [(contents, _NONE64) for contents in parts])


def _fold(votes: Comparisons, held: Sequence[tuple[Any, LongArray]]) -> PairCounts:
    """Pair counts of contents, with weights or without."""
    from rankdp.data import counting_kernels
    from rankdp.data.counts import PairCounts

    total = sum(len(contents) for contents, _ in held)
    left, right, halves = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int8)
    start = 0
    for contents, _ in held:
        part = slice(start, start + len(contents))
        counting_kernels.split_contents(contents, len(votes.items), left[part], right[part], halves[part])
        start += len(contents)
    if votes.columns.weight is None or votes.per_voter is not None:
        return PairCounts.from_pairs(left, right, halves, items=votes.items)
    weights = np.concatenate([_NONE64, *(weights for _, weights in held)])
    return PairCounts.from_pairs(left, right, halves * weights, (2 - halves) * weights, items=votes.items)


def _sum_of(votes: Comparisons, parts: Sequence[PairCounts]) -> PairCounts:
    from rankdp.data.counts import PairCounts

    if len(parts) == 1:
        return parts[0]
    joined = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("first", "second", "half_wins_first", "half_wins_second")
    )
    return PairCounts.from_pairs(*joined, items=votes.items)
