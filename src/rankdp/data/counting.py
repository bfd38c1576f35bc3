"""Counting in process: Arrow batches to contents, contents to counts.

A cell is looked at once per distinct value of a batch (Parquet and CSV readers hand texts on as dictionaries), and a
row is looked up in a table of what every combination of cells means (`vote_columns.content`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankdp.data.counts import PairCounts
from rankdp.data.covariates import Covariate, VoteRows, read_covariates
from rankdp.data.sources import Table, check_rows, kind_of
from rankdp.data.tables import MISSING, SPACES, Batch, Coded, Kind, encode, in_a_sentence, text_of
from rankdp.data.vote_columns import (
    ELSEWHERE,
    FIRST,
    MARKED,
    NO_OUTCOME,
    PROBLEMS,
    SECOND,
    STRANGE_OUTCOME,
    TIE,
    UNMARKED,
    Diagnostics,
    VoteRules,
    content,
    is_blank,
    weight_of,
)
from rankdp.data.voter_loads import Said, Voted, VoterLoads
from rankdp.errors import InputError
from rankdp.types import Ints, Longs

_DENSE = 1 << 23  # cells of a table of contents that each thread may have
_PARALLEL_ROWS = 1 << 20
_FOLD_ROWS = 1 << 25
_MOST_THREADS = 8
_NAMED = 16
_FEW_COMBINATIONS = 1 << 15
_ROWS_PER_NUMBER = 16
_NONE = np.empty(0, np.int64)

Codes = tuple[Ints, Ints]
"""A code for each row, and what each code means."""


# -- what the cells mean -----------------------------------------------------------------------------------------


class _Names:
    """The number of every name: known items from 0 on, then unknown ones as they are met; -1 for a blank."""

    def __init__(self, items: Sequence[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(items)}
        self._known = frozenset(items)
        self._lock = Lock()

    def number(self, value: Any) -> int:
        """The number of the item that a cell names."""
        name = text_of(value)
        if name is None or is_blank(name, self._known):
            return -1
        number = self._numbers.get(name)
        if number is None:
            with self._lock:
                number = self._numbers.setdefault(name, len(self._numbers))
        return number


class _Column:
    """A column as codes, and what each of its distinct values means; meanings are kept while the values stay."""

    def __init__(self, meaning: Callable[[Any], int]) -> None:
        self._meaning = meaning
        self._values: list[Any] | None = None
        self._table = np.empty(0, np.int32)

    def read(self, array: Any) -> Codes:
        """The code of each row and the meaning of each code, the last one for null (code -1)."""
        column = _close(array) or encode(array)
        if column.values != self._values:
            self._values = column.values
            self._table = np.array([*map(self._meaning, self._values), self._meaning(None)], np.int32)
        return column.codes, self._table


class _Rows:
    """One thread's way from batches to contents, and what it saw on the way."""

    def __init__(self, rules: VoteRules, names: _Names) -> None:
        self._rules, self._names = rules, names
        self._words = rules.words
        self._left, self._right = _Column(names.number), _Column(names.number)
        self._outcome = _Column(self._outcome_of)
        self._weight = _Column(partial(weight_of, most=rules.most_weight))
        self._here = _Column(lambda value: text_of(value) == rules.category)
        self.rows = 0
        self.problems = np.zeros(len(PROBLEMS), np.int64)
        self.refused: dict[int, tuple[int, int, dict[str, Any]]] = {}
        """By problem that is refused: the file, the row in the file, and its cells."""
        self._judged_of: list[Ints] | None = None

    def _outcome_of(self, value: Any) -> int:
        style = self._rules.columns.style
        if style.numbers and value is not None and not isinstance(value, str):
            number = float(value)
            missing = NO_OUTCOME if number != number else STRANGE_OUTCOME
            return {1.0: FIRST, 0.0: SECOND, 0.5: TIE}.get(number, missing)
        text = text_of(value)
        word = None if text is None else self._words.get(text.lower())
        if word is not None:
            return word
        if not style.named:
            return NO_OUTCOME if is_blank(text) else STRANGE_OUTCOME
        item = self._names.number(value)
        return NO_OUTCOME if item < 0 else _NAMED + item

    def judged(self, stream: Iterator[Batch]) -> Iterator[tuple[Said, Any, Any]]:
        """What the good rows of each batch say, the batch and which rows those are; ends where one is to be refused."""
        columns = self._rules.columns
        for file, start, batch in stream:
            weights, voters = _NONE, None
            contents = self._contents(batch)
            if columns.weight is not None:
                codes, meaning = self._weight.read(batch.column(columns.weight))
                weights = meaning[codes].astype(np.int64)
                contents[(weights < 0) & (contents != -1)] = -2
            if self._rules.per_voter is not None:
                voters = _ids(batch.column(columns.voter))
                missing = voters.is_null().to_numpy(zero_copy_only=False)
                contents[missing & (contents != -1) & (contents != -2)] = -3
            if self._rules.category is not None:
                codes, here = self._here.read(batch.column(columns.category))
                contents[here[codes] == 0] = -ELSEWHERE
            self.rows += batch.num_rows
            if contents.min() >= 0:
                yield Said(contents, weights, voters), batch, slice(None)
                continue
            self._note(contents, file, start, batch)
            if self.refused:
                return
            good = contents >= 0
            weights = weights[good] if len(weights) else weights
            voters = None if voters is None else voters.filter(pa.array(good))
            yield Said(contents[good], weights, voters), batch, good

    def _contents(self, batch: Any) -> Longs:
        """Each row's content, or minus its first problem; where few names occur, judged once for each combination."""
        columns = self._rules.columns
        outcome: Codes = np.zeros(1, np.int32), np.array([FIRST, NO_OUTCOME], np.int32)
        if columns.outcome is not None:
            outcome = self._outcome.read(batch.column(columns.outcome))
        elif columns.marks:
            outcome = _marked([encode(batch.column(name)) for name in columns.marks])
        cells = self.left(batch), self._right.read(batch.column(columns.right)), outcome
        meanings = [meaning for _, meaning in cells]
        shape = [len(meaning) for meaning in meanings]
        if math.prod(shape) > max(batch.num_rows, _FEW_COMBINATIONS):
            return _judged(len(self._rules.items), *(meaning[codes] for codes, meaning in cells))
        if self._judged_of is None or any(old is not new for old, new in zip(self._judged_of, meanings, strict=True)):
            grid = np.ix_(*(np.roll(meaning, 1) for meaning in meanings))  # so that null, code -1, comes first
            self._table = np.broadcast_to(_judged(len(self._rules.items), *grid), shape).ravel()
            self._judged_of = meanings
        key = np.zeros(batch.num_rows, np.int32 if math.prod(shape) < 1 << 30 else np.int64)
        for (codes, _), size in zip(cells, shape, strict=True):
            key *= size
            key += codes
        key += (shape[1] + 1) * shape[2] + 1
        found: Longs = self._table.take(key)
        return found

    def left(self, batch: Any) -> Codes:
        """The item on the left of each row, as codes and what they mean."""
        return self._left.read(batch.column(self._rules.columns.left))

    def _note(self, contents: Longs, file: int, start: int, batch: Any) -> None:
        self.problems += np.bincount(np.maximum(-contents, 0), minlength=len(PROBLEMS))
        self.problems[0] = 0
        for problem in self._rules.refused:
            if self.problems[problem]:
                row = int(np.argmax(contents == -problem))
                cells = {name: batch.column(name)[row].as_py() for name in batch.schema.names}
                self.refused[problem] = file, start + row, cells


def _close(array: Any) -> Coded | None:
    """Whole numbers as codes without a look at each distinct one, where they lie close together."""
    if not pa.types.is_integer(array.type):
        return None
    low, high = pc.min_max(array).as_py().values()
    if low is None or not -(2**31) <= low <= high < min(low + len(array) // _ROWS_PER_NUMBER, 2**31):
        return None
    codes = pc.subtract(array.cast(pa.int32()), pa.scalar(low, pa.int32())).fill_null(-1)
    return Coded(codes.to_numpy(), list(range(low, high + 1)), array.null_count)


def _ids(array: Any) -> Any:
    """Voters' ids as whole numbers or as texts without spaces around them, null where there is none."""
    if pa.types.is_dictionary(array.type):
        values = array.dictionary
        array = (values.cast(pa.string()) if kind_of(values.type) == "text" else values).take(array.indices)
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        return array.cast(pa.int64())
    if kind_of(array.type) != "text":
        numbers = array.dictionary_encode()
        return pa.array(map(text_of, numbers.dictionary.to_pylist()), pa.string()).take(numbers.indices)
    texts = pc.utf8_trim(array.cast(pa.string()), SPACES)
    return pc.if_else(pc.is_in(texts, pa.array(sorted(MISSING))), pa.scalar(None, pa.string()), texts)


def _marked(columns: Sequence[Coded]) -> Codes:
    """Outcomes from three columns of which one is 1: as many digits of base 3 (no, yes, neither) as columns."""
    total = np.zeros(len(columns[0].codes), np.int32)
    for column in columns:
        texts = [text_of(value) for value in column.values]
        digits = [1 if str(text).lower() in MARKED else 0 if _unmarked(text) else 2 for text in texts]
        total = total * 3 + np.array([*digits, 0], np.int32)[column.codes]
    meaning = np.full(27 + 1, STRANGE_OUTCOME, np.int32)
    meaning[[0, 9, 3, 1]] = NO_OUTCOME, FIRST, SECOND, TIE
    return total, meaning


def _unmarked(text: str | None) -> bool:
    return is_blank(text) or str(text).lower() in UNMARKED


def _judged(items: int, left: Ints, right: Ints, outcome: Ints) -> Longs:
    """What rows with these items and outcomes say; an outcome may be the number of the item that it names."""
    if outcome.max(initial=0) >= _NAMED:  # some name their winners
        named = outcome - _NAMED
        meant = np.where(named == left, FIRST, np.where(named == right, SECOND, STRANGE_OUTCOME))
        outcome = np.where(named < 0, outcome, meant)
    contents: Longs = content(items, left.astype(np.int64), right.astype(np.int64), outcome, _Arrays)
    return contents


class _Arrays:
    """Functions of Ibis, for arrays."""

    least, greatest = np.minimum, np.maximum

    @staticmethod
    def cases(*cases: tuple[Any, Any], else_: Any) -> Any:
        """The value of the first condition that holds; the last one is written first."""
        for holds, value in reversed(cases):
            else_ = np.where(holds, value, else_) if holds.any() else else_
        return else_


# -- counting ----------------------------------------------------------------------------------------------------


class InProcess:
    """Votes in files and frames, counted here."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.what = table.what
        self.kinds: Mapping[str, Kind] = table.kinds

    def names(self, columns: Sequence[str]) -> set[str | None]:
        """Every text that occurs in these columns."""
        names: set[str | None] = set()
        with in_a_sentence(self.what):
            for stream in self._table.streams(columns, 1):
                for _, _, batch in stream:
                    for array in batch.columns:
                        column = encode(array)  # whose dictionary may hold values that no row uses
                        rows = column.first_rows().tolist()
                        values = [*column.values, None]
                        names.update(text_of(value) for value, row in zip(values, rows, strict=True) if row >= 0)
        return names

    def count(self, rules: VoteRules) -> tuple[PairCounts, Diagnostics]:
        """The counts of all pairs."""
        if rules.per_voter is not None:
            voted, facts = self._voted(rules)
            kept = voted.kept(np.full(len(voted.ids), rules.per_voter))
            return PairCounts._of_contents(rules.items, *kept), facts
        names, threads = _Names(rules.items), 1
        dense = 2 * len(rules.items) ** 2 <= _DENSE
        if dense and (self._table.rows or 0) >= _PARALLEL_ROWS:
            threads = min(os.cpu_count() or 1, _MOST_THREADS)

        def work(stream: Iterator[Batch]) -> tuple[_Rows, PairCounts]:
            rows = _Rows(rules, names)
            return rows, (_dense if dense else _sparse)(rules.items, rows.judged(stream))

        with in_a_sentence(self.what):
            streams = self._table.streams(rules.used, threads)
            with ThreadPoolExecutor(len(streams)) as pool:
                done = list(pool.map(work, streams))
            facts = self._facts(rules, [rows for rows, _ in done])
        return _sum_of([counts for _, counts in done]), facts

    def _voted(self, rules: VoteRules) -> tuple[Voted, Diagnostics]:
        """Who said what, all of it."""
        rows = _Rows(rules, _Names(rules.items))
        with in_a_sentence(self.what):
            said = [part for stream in self._table.streams(rules.used) for part, *_ in rows.judged(stream)]
            facts = self._facts(rules, [rows])
        return Voted.of(said), facts

    def loads(self, rules: VoteRules, spread: bool) -> VoterLoads:
        """The comparisons grouped by their voters' loads (see `Comparisons.loads`)."""
        return self._voted(rules)[0].loads(rules.items, spread)

    def rows(self, rules: VoteRules, covariates: Sequence[Covariate]) -> VoteRows:
        """The comparisons one by one, with their covariates (see `Comparisons.rows`)."""
        if rules.columns.outcome is None and any(not covariate.columns(self.kinds) for covariate in covariates):
            raise InputError(f"{self.what}: winner and loser do not say who stood on the left, so there is no position")
        more = {name for covariate in covariates for name in covariate.columns(self.kinds)}
        if secret := sorted(more & set(rules.used)):
            raise InputError(f"{self.what}: the column {secret[0]!r} says who met whom and who won: it is no covariate")
        rows = _Rows(rules, _Names(rules.items))
        parts = []
        with in_a_sentence(self.what):
            for stream in self._table.streams([*dict.fromkeys([*rules.used, *sorted(more)])]):
                for said, batch, good in rows.judged(stream):
                    codes, meaning = rows.left(batch)
                    values = read_covariates(batch, covariates, self.what)
                    parts.append([said.contents, meaning[codes][good], values[good], said.amounts])
            self._facts(rules, [rows])
        if not parts:
            raise InputError(f"{self.what}: there are no comparisons")
        contents, left, values, amounts = (np.concatenate(column) for column in zip(*parts, strict=True))
        return VoteRows.of(len(rules.items), contents, amounts, left.astype(np.int64), values)

    def _facts(self, rules: VoteRules, parts: Sequence[_Rows]) -> Diagnostics:
        """Refuse the first row that is to be refused, and rows that are missing; else what was seen."""
        refused = [(*at, problem) for part in parts for problem, at in part.refused.items()]
        if refused:
            file, row, cells, problem = min(refused, key=lambda at: at[:2])
            raise rules.refusal(problem, cells, self._table.where(file, row))
        rows = sum(part.rows for part in parts)
        check_rows(self.what, self._table.rows, rows)
        return Diagnostics.of(np.sum([part.problems for part in parts], axis=0).tolist(), rows)


def _dense(items: tuple[str, ...], judged: Iterator[tuple[Said, Any, Any]]) -> PairCounts:
    """Count in a table with a cell for every content."""
    table = np.zeros(2 * len(items) ** 2, np.int64)
    for said, *_ in judged:
        # sums of a batch are exact as floats: they stay far below 2^53
        sums = np.bincount(said.contents, said.weights if len(said.weights) else None)
        table[: len(sums)] += sums.astype(np.int64, copy=False)
    wins, ties = table.reshape(2, len(items), len(items))
    return PairCounts._from_table(items, 2 * wins + ties + ties.T)


def _sparse(items: tuple[str, ...], judged: Iterator[tuple[Said, Any, Any]]) -> PairCounts:
    """Many items: contents are held, and folded into pairs when there are many."""
    held, folded = list[Said](), []
    for said, *_ in judged:
        held.append(said)
        if sum(len(part.contents) for part in held) >= _FOLD_ROWS:
            folded.append(_fold(items, held))
            held = []
    return _sum_of([*folded, _fold(items, held)])


def _fold(items: tuple[str, ...], held: Sequence[Said]) -> PairCounts:
    parts = ([_NONE, *(getattr(said, name) for said in held)] for name in ("contents", "amounts"))
    return PairCounts._of_contents(items, *(np.concatenate(part) for part in parts))


def _sum_of(parts: Sequence[PairCounts]) -> PairCounts:
    if len(parts) == 1:
        return parts[0]
    columns = ("first", "second", "half_wins_first", "half_wins_second")
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in columns)
    return PairCounts.from_pairs(*joined, items=parts[0].items)
