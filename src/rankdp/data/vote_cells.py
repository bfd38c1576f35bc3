"""What the cells of a table of votes mean, as numbers: items, outcomes, weights, voters; each distinct value once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.comparisons import (
    BLANKS,
    LEFT_OUT,
    NO_OUTCOME,
    SPACES,
    STRANGE_OUTCOME,
    TIE,
    Comparisons,
    LongArray,
    is_blank,
    is_weight,
    text_of,
)
from rankdp.data.vote_tables import kind_of

_WIDEST_RANGE = 1 << 22
_NONE64, _NONE32 = np.empty(0, np.int64), np.empty(0, np.int32)


class Names:
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

    def whole(self, array: Any, out: NDArray[np.int32]) -> bool:
        """Fill in the numbers of an Arrow array of whole numbers, each of them a known item; else False."""
        import pyarrow as pa

        from rankdp.data import counting_kernels

        if not len(self.table) or array.null_count or not pa.types.is_integer(array.type):
            return False
        return counting_kernels.look_up_numbers(array.to_numpy(), self.base, self.table, out)

    def codes(self, values: Any) -> NDArray[np.int32]:
        """The number of the item that each cell of an Arrow array names."""
        out = np.empty(len(values), np.int32)
        if not self.whole(values, out):
            for place, value in enumerate(values.to_pylist()):
                number = self._index.get(value)  # nearly always there, and a tenth of the work
                out[place] = self.code(value) if number is None else number
        return out

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


def _each(meaning: Callable[[Any], int]) -> Callable[[Any], NDArray[np.int32]]:
    """What a function of one cell makes of every cell of an Arrow array."""
    return lambda values: np.array([*map(meaning, values.to_pylist())], np.int32)


class Dictionary:
    """Codes of a column and, for each distinct value, what it means; meanings are kept while the values stay."""

    def __init__(self, meanings: Callable[[Any], NDArray[np.int32]], blank: int) -> None:
        self._meanings, self._blank = meanings, blank
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
            self.table = np.append(np.int32(self._blank), self._meanings(values))
        codes = array.indices
        if codes.type != pa.int32():
            codes = codes.cast(pa.int32())
        if codes.null_count:
            codes = codes.fill_null(-1)
        numbers: NDArray[np.int32] = codes.to_numpy(zero_copy_only=False)
        return numbers


class Items:
    """A column of items as numbers, in an array that the next batch uses again."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._texts = Dictionary(names.codes, -1)
        self._room = _NONE32

    def numbers(self, array: Any) -> NDArray[np.int32]:
        """The item number of each cell."""
        from rankdp.data import counting_kernels

        if len(self._room) < len(array):
            self._room = np.empty(len(array), np.int32)
        out = self._room[: len(array)]
        if not self._names.whole(array, out):
            counting_kernels.look_up(self._texts.codes(array), self._texts.table, out)
        return out


class Outcomes:
    """A column of outcomes, each as one of FIRST, SECOND, TIE, …"""

    def __init__(self, votes: Comparisons, names: Names) -> None:
        self._style, self._names = votes.columns.style, names
        self._both_bad = TIE if votes.both_bad == "tie" else LEFT_OUT
        self._texts = Dictionary(_each(self._meaning), NO_OUTCOME)

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
        """What each cell says about its two items."""
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


class Weights:
    """A column of weights as whole numbers, -1 for what is none."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._texts = Dictionary(_each(self._meaning), -1)

    def _meaning(self, value: Any) -> int:
        text = text_of(value) or ""
        return int(float(text)) if is_weight(text, self._most) else -1

    def numbers(self, array: Any) -> LongArray:
        """The weight in each cell, -1 where it is none."""
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


class Voters:
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
        from rankdp.data import voter_kernels

        out = np.empty(len(values), np.int32)
        done = 0
        while True:
            more, self._count = voter_kernels.number_whole(
                values[done:], self._slots, self._ids, self._count, out[done:]
            )
            done += more
            if done == len(values):
                return out
            self._ids = np.append(self._ids[: self._count], np.empty(3 * len(self._ids), np.int64))
            self._slots = np.full(4 * len(self._slots), -1, np.int32)
            voter_kernels.refill_whole(self._slots, self._ids, self._count)

    def _number_texts(self, array: Any) -> NDArray[np.int32]:
        from rankdp.data import voter_kernels

        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
        before, done = self._count, 0
        out = np.empty(len(array), np.int32)
        while True:
            done, self._count = voter_kernels.number_texts(
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
                voter_kernels.refill_texts(self._slots, self._texts, self._ends, self._count)
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
