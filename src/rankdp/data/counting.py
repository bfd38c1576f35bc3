"""Counting in process: Arrow batches to item numbers, item numbers to counts, on all cores.

The fast path for files and frames. A cell's text is looked at once per distinct value of a batch (or of a row group,
whose dictionary Parquet has made already) and the work per row is a handful of look-ups in compiled loops. Each thread
reads its own row groups and counts into its own table.

Bounding holds two numbers per row in memory (who, and what was said), deals them out by voter, and then chooses
within one voter after the other: 12 bytes per row at the peak, 8 more if rows have weights.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankdp.data.checks import row_number
from rankdp.data.columns import Columns
from rankdp.data.comparisons import (
    BLANKS,
    LEFT_OUT,
    NO_OUTCOME,
    PROBLEMS,
    SPACES,
    STRANGE_OUTCOME,
    TIE,
    Comparisons,
    Diagnostics,
    Kind,
    LongArray,
    VoteColumns,
    diagnose,
    is_blank,
    is_weight,
    item_keys,
    refusal,
    refused,
    text_of,
    weight_limit,
)
from rankdp.data.csv_files import _Text, read_header
from rankdp.data.sources import system_problem
from rankdp.errors import InputError

if TYPE_CHECKING:
    from rankdp.data.counts import PairCounts

BATCH_ROWS = 1 << 16  # small enough for the columns of a batch to stay in the cache between two loops
_DENSE = 1 << 24  # cells of a square table that each thread may have
_WIDEST_RANGE = 1 << 22
_PARALLEL_ROWS = 1 << 20
_FOLD_ROWS = 1 << 25
_MOST_THREADS = 8
_NONE64, _NONE32 = np.empty(0, np.int64), np.empty(0, np.int32)

Batch = tuple[int, int, Any]
"""(which file, the number of its first row in that file, an Arrow record batch)"""


class Table(Protocol):
    """Votes that can be read again and again, batch by batch."""

    @property
    def what(self) -> str:
        """The table, in words."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Every column and what it holds."""

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """The batches, dealt out to at most so many threads; each stream in the order of rows."""

    def where(self, file: int, row: int) -> str:
        """Where a row stands, in words."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, if that is known beforehand."""


def kind_of(kind: Any) -> Kind:
    """What a column of an Arrow type holds."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return "number"
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.null())
    return "text" if kind in texts else "other"


def open_files(pattern: str) -> InProcess:
    """CSV or Parquet files by path or pattern."""
    return InProcess(find_files(pattern))


def find_files(pattern: str) -> ParquetFiles | CsvFiles:
    """The files that a path or pattern means, their headers looked at."""
    paths = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not paths:
        raise InputError(f"{pattern}: there is no such file")
    parquet = [path for path in paths if _is_parquet(path)]
    if parquet and len(parquet) != len(paths):
        raise InputError(f"{pattern}: some of the files are Parquet and some are not")
    return ParquetFiles(pattern, paths) if parquet else CsvFiles(pattern, paths)


def _is_parquet(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise system_problem(path, error, "read") from None


def open_frame(frame: Any) -> InProcess:
    """Any Arrow-compatible frame."""
    return InProcess(Frame(frame))


class ParquetFiles:
    """Parquet files, one after the other; threads take turns at row groups."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.what, self.paths = what, paths
        self._groups: list[tuple[int, int, int]] = []
        self.kinds: dict[str, Kind] = {}
        self._texts: set[str] = set()
        self._rows = 0
        for number, path in enumerate(paths):
            try:
                file = pq.ParquetFile(path)
            except (pa.ArrowException, OSError):
                raise InputError(f"{path}: this is not a whole Parquet file (damaged or cut short?)") from None
            kinds = {field.name: kind_of(field.type) for field in file.schema_arrow}
            if number and kinds != self.kinds:
                raise InputError(f"{path}: its columns are not those of {paths[0]}")
            self.kinds = kinds
            self._texts = {name for name, kind in kinds.items() if kind == "text"}
            start = 0
            for group in range(file.num_row_groups):
                self._groups.append((number, group, start))
                start += file.metadata.row_group(group).num_rows
            self._rows += start
            file.close()

    @property
    def rows(self) -> int | None:
        """How many rows the files' footers announce."""
        return self._rows

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """Every so-many-th row group to each thread."""
        threads = max(1, min(threads, len(self._groups)))
        return [self._stream(columns, self._groups[first::threads], threads > 1) for first in range(threads)]

    def _stream(self, columns: Sequence[str], groups: Sequence[tuple[int, int, int]], alone: bool) -> Iterator[Batch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        coded = [name for name in columns if name in self._texts]
        opened = -1
        file: Any = None
        for number, group, start in groups:
            path = self.paths[number]
            try:
                if number != opened:
                    opened, file = number, pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False)
                for batch in file.iter_batches(BATCH_ROWS, [group], list(columns), use_threads=not alone):
                    yield number, start, batch
                    start += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{path}: the file is damaged ({str(error).splitlines()[0]})") from None

    def where(self, file: int, row: int) -> str:
        """The file and the row."""
        return f"{self.paths[file]}, row {row + 1}"


class CsvFiles:
    """CSV files with the same columns; every cell that is read comes as a dictionary of texts."""

    def __init__(self, what: str, paths: Sequence[str]) -> None:
        self.what, self.paths = what, paths
        self._headers: list[tuple[list[str], str, int]] = []
        for path in paths:
            try:
                self._headers.append(read_header(path))
            except OSError as error:
                raise system_problem(path, error, "read") from None
        names = self._headers[0][0]
        for path, (other, _, _) in zip(paths, self._headers, strict=True):
            if sorted(other) != sorted(names):
                raise InputError(f"{path}: its columns are not those of {paths[0]}")
        self.kinds: dict[str, Kind] = dict.fromkeys(names, "text")
        if len(self.kinds) != len(names):
            twin = next(name for at, name in enumerate(names) if name in names[:at])
            raise InputError(f"{paths[0]}: two columns are called {twin!r}")

    rows: int | None = None

    @property
    def separator(self) -> str:
        """What stands between the fields."""
        return self._headers[0][1]

    def _text(self, file: int, columns: Sequence[str]) -> _Text:
        names, separator, _ = self._headers[file]
        return _Text(self.paths[file], names, separator, Columns("wide", None, tuple(columns), None, ()))

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """One stream: Arrow's reader looks ahead by itself."""
        return [self._stream(columns)]

    def _stream(self, columns: Sequence[str]) -> Iterator[Batch]:
        for number in range(len(self.paths)):
            start = 0
            for batch in self._text(number, columns).batches(max(1 << 22, self._headers[number][2] * 64)):
                yield number, start, batch
                start += batch.num_rows

    def where(self, file: int, row: int) -> str:
        """The file and the line."""
        return self._text(file, ()).line(row)


class Frame:
    """A table in memory, or a DuckDB relation that is run anew for every reading."""

    def __init__(self, frame: Any) -> None:
        import pyarrow as pa

        self.what = "frame"
        self._relation = frame if hasattr(frame, "to_arrow_reader") or hasattr(frame, "fetch_arrow_reader") else None
        if self._relation is not None:
            reader = self._reader(1)
            self.kinds: dict[str, Kind] = {field.name: kind_of(field.type) for field in reader.schema}
            reader.close()
            return
        if not isinstance(frame, pa.Table):
            if not hasattr(frame, "__arrow_c_stream__"):
                kinds = "pandas, Polars, DuckDB, PyArrow"
                raise InputError(f"frame must be an Arrow-compatible table ({kinds}), got {type(frame).__name__}")
            try:
                frame = pa.table(frame)
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise InputError(f"frame: Arrow cannot hold it ({str(error).splitlines()[0]})") from None
        self._table = frame
        names = frame.column_names
        if twin := next((name for at, name in enumerate(names) if name in names[:at]), None):
            raise InputError(f"frame: two columns are called {twin!r}")
        self.kinds = {field.name: kind_of(field.type) for field in frame.schema}

    def whole(self) -> Any:
        """All rows, as an Arrow table."""
        return self._table if self._relation is None else self._reader(BATCH_ROWS).read_all()

    def _reader(self, rows: int) -> Any:
        relation: Any = self._relation
        ask = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
        return ask(rows)

    @property
    def rows(self) -> int | None:
        """The rows of a table in memory."""
        return None if self._relation is not None else len(self._table)

    def streams(self, columns: Sequence[str], threads: int) -> list[Iterator[Batch]]:
        """Every so-many-th batch to each thread."""
        if self._relation is not None:
            return [_numbered(batch.select(list(columns)) for batch in self._reader(BATCH_ROWS))]
        batches = list(_numbered(iter(self._table.select(list(columns)).to_batches(BATCH_ROWS))))
        threads = max(1, min(threads, len(batches)))
        return [iter(batches[first::threads]) for first in range(threads)]

    def where(self, file: int, row: int) -> str:
        """The row, if rows have an order."""
        return self.what if self._relation is not None else f"{self.what}, {row_number(row)}"


def _numbered(batches: Iterator[Any]) -> Iterator[Batch]:
    start = 0
    for batch in batches:
        yield 0, start, batch
        start += batch.num_rows


class _Names:
    """The number of every name: known items from 0 on, then unknown ones as they are met; -1 for a blank."""

    def __init__(self, items: Sequence[str]) -> None:
        self._index = {name: number for number, name in enumerate(items)}
        self._known = frozenset(items)
        self._lock = Lock()
        numbers = {int(name): code for name, code in self._index.items() if _is_number(name)}
        self.base, self.table = 0, _NONE32
        if numbers and max(numbers) - min(numbers) < _WIDEST_RANGE:
            self.base = min(numbers)
            self.table = np.full(max(numbers) - self.base + 1, -1, np.int32)
            for number, code in numbers.items():
                self.table[number - self.base] = code

    def code(self, value: Any) -> int:
        """The number of the item that a cell names."""
        name = text_of(value)
        if name is None or is_blank(name, self._known):
            return -1
        found = self._index.get(name)
        if found is None:
            with self._lock:
                found = self._index.setdefault(name, len(self._index))
        return found


def _is_number(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(name)) == name


class _Dictionary:
    """Codes of a column and, for each distinct value, what it means; meanings are kept while the values stay."""

    def __init__(self, meaning: Callable[[Any], int], blank: int) -> None:
        self._meaning, self._blank = meaning, blank
        self._values: Any = None
        self.table = np.array([blank], np.int32)

    def codes(self, array: Any) -> NDArray[np.int32]:
        """The code of each row, -1 for null; `table[code + 1]` is its meaning."""
        import pyarrow as pa

        if pa.types.is_null(array.type):
            return np.full(len(array), -1, np.int32)
        if not pa.types.is_dictionary(array.type):
            if array.type == pa.string_view():
                array = array.cast(pa.string())
            array = array.dictionary_encode()
        values = array.dictionary
        if self._values is None or not values.equals(self._values):
            self._values = values
            self.table = np.array([self._blank, *map(self._meaning, values.to_pylist())], np.int32)
        codes = array.indices
        if codes.type != pa.int32():
            codes = codes.cast(pa.int32())
        if codes.null_count:
            codes = codes.fill_null(-1)
        numbers: NDArray[np.int32] = codes.to_numpy(zero_copy_only=False)
        return numbers


class _Items:
    """A column of items as numbers, in an array that the next batch uses again."""

    def __init__(self, names: _Names) -> None:
        self._names = names
        self._texts = _Dictionary(names.code, -1)
        self._room = _NONE32

    def numbers(self, array: Any) -> NDArray[np.int32]:
        import pyarrow as pa

        from rankdp.data import counting_kernels

        if len(self._room) < len(array):
            self._room = np.empty(len(array), np.int32)
        out = self._room[: len(array)]
        if pa.types.is_integer(array.type) and not array.null_count and len(self._names.table):
            values = array.to_numpy()
            if counting_kernels.look_up_numbers(values, self._names.base, self._names.table, out):
                return out
        counting_kernels.look_up(self._texts.codes(array), self._texts.table, out)
        return out


class _Outcomes:
    """A column of outcomes, each as one of FIRST, SECOND, TIE, …"""

    def __init__(self, votes: Comparisons, names: _Names) -> None:
        self._style, self._names = votes.columns.style, names
        self._both_bad = TIE if votes.both_bad == "tie" else LEFT_OUT
        self._texts = _Dictionary(self._meaning, NO_OUTCOME)

    def _meaning(self, value: Any) -> int:
        from rankdp.data.counting_kernels import NAMED

        text = text_of(value)
        word = self._style.words.get(text.lower()) if text is not None else None
        if word is not None:
            return self._both_bad if word == LEFT_OUT else word
        if not self._style.named:
            return NO_OUTCOME if is_blank(text) else STRANGE_OUTCOME
        code = self._names.code(value)
        return NO_OUTCOME if code < 0 else NAMED + code

    def judge(self, array: Any, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int8]:
        import pyarrow as pa

        from rankdp.data import counting_kernels

        out = np.empty(len(left), np.int8)
        if self._style.numbers and kind_of(array.type) != "text":
            if pa.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            counting_kernels.judge_numbers(values, out)
        else:
            counting_kernels.judge(left, right, self._texts.codes(array), self._texts.table, out)
        return out


class _Weights:
    """A column of weights as whole numbers, -1 for what is none."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._texts = _Dictionary(self._meaning, -1)

    def _meaning(self, value: Any) -> int:
        text = text_of(value) or ""
        return int(float(text)) if is_weight(text, self._most) else -1

    def numbers(self, array: Any) -> LongArray:
        import pyarrow as pa

        from rankdp.data import counting_kernels

        if kind_of(array.type) == "text":
            codes = self._texts.codes(array)
            return self._texts.table[codes + 1].astype(np.int64)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        out = np.empty(len(array), np.int64)
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        counting_kernels.check_weights(values, self._most, out)
        return out


class _Voters:
    """Numbers for voters, in order of first appearance, and their ids as texts."""

    def __init__(self) -> None:
        self._whole: bool | None = None
        self._count = 0
        self._slots = np.full(1 << 12, -1, np.int32)
        self._ids = np.empty(1 << 11, np.int64)
        self._texts = np.empty(1 << 16, np.uint8)
        self._ends = np.zeros((1 << 11) + 1, np.int64)
        self._values: Any = None
        self._table = _NONE32
        self._blank: dict[int, None] = {}

    def numbers(self, array: Any) -> NDArray[np.int32]:
        """The voter of each row, -1 where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(array.type):
            if self._values is None or not array.dictionary.equals(self._values):
                self._values = array.dictionary
                self._table = np.append(self.numbers(array.dictionary), np.int32(-1))
            indices = array.indices.cast(pa.int32()).fill_null(len(self._table) - 1)
            dealt: NDArray[np.int32] = self._table[indices.to_numpy(zero_copy_only=False)]
            return dealt
        if pa.types.is_null(array.type):
            return np.full(len(array), -1, np.int32)
        if self._whole is None:
            self._whole = pa.types.is_integer(array.type) and array.type != pa.uint64()
        if not self._whole:
            return self._number_texts(_as_texts(array))
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False) if missing is not None else array.to_numpy()
        numbers = self._number_whole(values)
        if missing is not None:
            numbers[missing] = -1
        return numbers

    def _number_whole(self, values: NDArray[Any]) -> NDArray[np.int32]:
        from rankdp.data import counting_kernels

        out = np.empty(len(values), np.int32)
        done = 0
        while True:
            more, self._count = counting_kernels.number_whole(
                values[done:], self._slots, self._ids, self._count, out[done:]
            )
            done += more
            if done == len(values):
                return out
            self._ids = np.append(self._ids[: self._count], np.empty(3 * len(self._ids), np.int64))
            self._slots = np.full(4 * len(self._slots), -1, np.int32)
            counting_kernels.refill_whole(self._slots, self._ids, self._count)

    def _number_texts(self, array: Any) -> NDArray[np.int32]:
        from rankdp.data import counting_kernels

        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
        before, done = self._count, 0
        out = np.empty(len(array), np.int32)
        while True:
            done, self._count = counting_kernels.number_texts(
                data, offsets, self._slots, self._texts, self._ends, self._count, out, done
            )
            if done == len(array):
                break
            need = int(offsets[done + 1] - offsets[done])
            if self._ends[self._count] + need > len(self._texts):
                self._texts = np.append(self._texts, np.empty(3 * len(self._texts) + need, np.uint8))
            else:
                self._ends = np.append(self._ends, np.empty(3 * (len(self._ends) - 1), np.int64))
                self._slots = np.full(4 * len(self._slots), -1, np.int32)
                counting_kernels.refill_texts(self._slots, self._texts, self._ends, self._count)
        return self._without_blanks(array, out, before)

    def _without_blanks(self, array: Any, out: NDArray[np.int32], before: int) -> NDArray[np.int32]:
        if self._count > before:
            longest = max(map(len, BLANKS))
            lengths = np.diff(self._ends[before : self._count + 1])
            # a blank is short, but spaces may stand around it: long ids that begin or end with one are looked at too
            edges = np.isin(self._texts[self._ends[before : self._count]], list(SPACES.encode()))
            for code in (before + np.flatnonzero((lengths <= longest) | edges)).tolist():
                text = self._texts[self._ends[code] : self._ends[code + 1]].tobytes().decode("utf-8", "replace")
                if is_blank(text.strip(SPACES)):
                    self._blank[code] = None
        if self._blank:
            out[np.isin(out, np.fromiter(self._blank, np.int32))] = -1
        if array.null_count:
            out[array.is_null().to_numpy(zero_copy_only=False)] = -1
        return out

    def __len__(self) -> int:
        return self._count

    def texts(self) -> tuple[NDArray[np.uint8], LongArray]:
        """All ids as one run of bytes, and where each begins; the last entry is the end."""
        import pyarrow as pa

        if not self._whole:
            return self._texts, self._ends[: self._count + 1]
        array = pa.array(self._ids[: self._count]).cast(pa.string())
        offsets = np.frombuffer(array.buffers()[1], np.int32)[: len(array) + 1].astype(np.int64)
        return np.frombuffer(array.buffers()[2] or b"\0", np.uint8), offsets


def _as_texts(array: Any) -> Any:
    """An Arrow array of ids as texts; whole numbers are written without a point."""
    import pyarrow as pa

    if kind_of(array.type) == "text":
        return array if array.type == pa.string() else array.cast(pa.string())
    return pa.array([None if value is None else text_of(value) for value in array.to_pylist()], pa.string())


@dataclass(slots=True)
class _Tally:
    """What one thread has seen: rows, problems, and the first row with each problem."""

    rows: int
    problems: LongArray
    found: dict[int, tuple[int, int, Any, int]]
    """By problem: file, row in the file, the batch, and the row in the batch."""

    @classmethod
    def empty(cls) -> _Tally:
        return cls(0, np.zeros(len(PROBLEMS), np.int64), {})


class _Rows:
    """One thread's way from a batch to item numbers, outcomes and weights, and on to a counting loop."""

    def __init__(self, votes: Comparisons, names: _Names) -> None:
        self._votes, self._columns = votes, votes.columns
        self._items = _Items(names), _Items(names)
        self._outcomes = _Outcomes(votes, names)
        self._weights = _Weights(weight_limit(votes))
        self._always_first = np.zeros(0, np.int8)
        self.tally = _Tally.empty()

    def arrays(self, batch: Any) -> tuple[Any, Any, Any, Any]:
        """Left items, right items, outcomes, and weights (empty if there are none)."""
        columns = self._columns
        left = self._items[0].numbers(batch.column(columns.left))
        right = self._items[1].numbers(batch.column(columns.right))
        if columns.outcome is not None:
            outcome = self._outcomes.judge(batch.column(columns.outcome), left, right)
        else:
            if len(self._always_first) < len(left):
                self._always_first = np.zeros(len(left), np.int8)
            outcome = self._always_first[: len(left)]
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
            for problem in np.flatnonzero(problems).tolist():
                row = int(firsts[problem])
                self.tally.found.setdefault(problem, (file, start + row, batch, row))
            if any(problem in self.tally.found for problem in refused(self._votes)):
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
        items, names = len(votes.items), _Names(votes.items)

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
        stops = refused(votes)
        found = [(*at, problem) for tally in tallies for problem, at in tally.found.items() if problem in stops]
        if found:
            file, row, batch, place, problem = min(found, key=lambda at: (at[0], at[1]))
            cells = {name: batch.column(name)[place].as_py() for name in batch.schema.names}
            raise refusal(votes, problem, cells, self._table.where(file, row))
        problems = np.sum([tally.problems for tally in tallies], axis=0).tolist()
        return diagnose(problems, sum(tally.rows for tally in tallies))

    def _sparse(self, votes: Comparisons) -> tuple[PairCounts, Diagnostics]:
        """Many items: rows are held as contents, and folded into pairs when there are many."""
        from rankdp.data import counting_kernels

        rows, items = _Rows(votes, _Names(votes.items)), len(votes.items)
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

    def _dealable(self, votes: Comparisons) -> tuple[_Voters, list[tuple[Any, Any, LongArray]], Diagnostics]:
        from rankdp.data import counting_kernels

        rows, items, voters = _Rows(votes, _Names(votes.items)), len(votes.items), _Voters()
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


def _choose(votes: Comparisons, voters: _Voters, held: list[tuple[Any, Any, LongArray]], most: int) -> Any:
    """Deal the rows out by voter and choose within each; `held` is emptied on the way, to make room."""
    from rankdp.data import counting_kernels

    items, weighted = len(votes.items), votes.columns.weight is not None
    sizes, amounts = np.zeros(len(voters), np.int64), np.zeros(len(voters) if weighted else 0, np.int64)
    for people, _, weights in held:
        counting_kernels.count_voters(people, weights, sizes, amounts)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places, kind = starts[:-1].copy(), held[0][1].dtype if held else np.int32
    dealt = np.empty(starts[-1], kind)
    dealt_weights = np.empty(starts[-1] if weighted else 0, np.int64)
    held.reverse()
    while held:
        people, contents, weights = held.pop()
        counting_kernels.deal(people, contents, weights, places, dealt, dealt_weights)
    digits = item_keys(votes.items)
    keys = np.frombuffer("".join(digits).encode(), np.uint8).reshape(items, -1)
    texts, ends = voters.texts()
    room = np.minimum(amounts if weighted else sizes, most)

    def work(part: tuple[int, int]) -> Any:
        chosen = np.empty(int(room[part[0] : part[1]].sum()), kind)
        hashes = np.empty(min(most, len(chosen)), np.uint64)
        kept = counting_kernels.choose(
            *(dealt, dealt_weights, starts, *part, most, items, keys, texts, ends),
            *(counting_kernels.MD5_SINES, counting_kernels.MD5_TURNS, hashes, chosen),
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
