"""JSON Lines, an object per line, and JSON arrays of objects, as dumps of arenas and logs have them.

A file whose first character is [ is an array. The columns are the keys of the first object, in natural order: the order
in which it has them could be somebody's ranking. Every cell is text, a number as it is written (so that 2^60 + 1 and
1e3 stay what they are). An object with another key is refused, and so is one without a key that is used: the first
object is somebody's row too, and its keys must not change how the others are read.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rankdp.data.cells import natural
from rankdp.data.formats.texts import LONGEST_LINE, TableFile, broken, not_utf8, opened
from rankdp.errors import InputError
from rankdp.lazy import LazyModule
from rankdp.progress import tell

pa: Any = LazyModule("pyarrow")

_PIECE, _ROWS = 1 << 18, 1 << 14
_SPACE = re.compile(r"[ \t\r\n]*")


class _KeyTwice(Exception):
    """An object has the key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its keys and values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _KeyTwice(next(key for key in keys if keys.count(key) > 1))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_int=str, parse_float=str, parse_constant=str)


def read_keys(path: str, encoding: str | None = None) -> JsonFile:
    """The columns of a file, from its first object."""
    value = next((value for _, value in _objects(path, encoding)), None)
    if not value:
        raise InputError(
            f"{path}: there is no object with a key; JSON Lines have an object on each line, arrays several"
        )
    return JsonFile(path, sorted(value, key=natural), encoding)


def _lines(path: str, encoding: str | None) -> Iterator[tuple[int, bytes]]:
    with opened(path, encoding=encoding) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise InputError(f"{path}, line {number}: the line is longer than {LONGEST_LINE >> 20} MB")
            if line.strip():
                yield number, line


def is_array(path: str, encoding: str | None = None) -> bool:
    """Whether a file is a JSON array: by its first character."""
    with opened(path, encoding=encoding) as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _objects(path: str, encoding: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the object, for every line that is not blank or every object of an array."""
    if is_array(path, encoding):
        yield from _members(path, encoding)
        return
    for number, line in _lines(path, encoding):
        try:
            value = _DECODER.decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise not_utf8(path, number, line) from None
        except (ValueError, RecursionError):
            raise InputError(f"{path}, line {number}: this is not a JSON object on one line") from None
        except _KeyTwice as twice:
            raise InputError(f"{path}, line {number}: the key {str(twice)!r} is there twice") from None
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: each line must be a JSON object")
        yield f"line {number}", value


def _members(path: str, encoding: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the object, for every object in an array."""
    number, decode = 0, _DECODER.raw_decode
    with io.TextIOWrapper(opened(path, encoding=encoding), encoding="utf-8-sig") as file:

        def rest(text: str, at: int) -> tuple[str, int]:
            """The text with something that is not a space at the place where it goes on, if there is anything."""
            while True:
                at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
                if at < len(text) or not (more := file.read(_PIECE)):
                    return text, at
                text, at = more, 0

        try:
            text, at = rest("", 0)
            text, at = rest(text, at + 1)  # behind the bracket
            while not text.startswith("]", at):
                number += 1
                where = f"{path}, object {number}"
                if number > 1:
                    if not text.startswith(",", at):
                        raise InputError(f"{where}: a comma or the end of the array must come before it")
                    text, at = rest(text, at + 1)
                while True:
                    try:
                        value, end = decode(text, at)
                        break
                    except ValueError:  # perhaps only because not all of it is here yet
                        text, at = text[at:], 0
                        more = file.read(max(_PIECE, len(text)))
                        if not more or len(text) > LONGEST_LINE:
                            raise InputError(f"{where}: this is not a JSON object") from None
                        text += more
                if not isinstance(value, dict):
                    raise InputError(f"{where}: an array must hold JSON objects")
                yield f"object {number}", value
                text, at = rest(text, end)
            text, at = rest(text, at + 1)
            if at < len(text):
                raise InputError(f"{path}: there is more behind the end of the array")
        except UnicodeDecodeError:
            raise InputError(f"{path}, near object {number + 1}: the text is not valid UTF-8") from None
        except RecursionError:
            raise InputError(f"{path}, object {number}: this is nested too deeply") from None
        except _KeyTwice as twice:
            raise InputError(f"{path}, object {number}: the key {str(twice)!r} is there twice") from None


@dataclass(frozen=True)
class JsonFile(TableFile):
    """A file of JSON Lines, or a JSON array; every object gives one row."""

    encoding: str | None

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Any, None, None]:
        """Record batches of columns of text."""
        try:
            rows, done = self._rows(columns), 0
            while some := list(islice(rows, _ROWS)):
                texts = [self._column(cells, done) for cells in zip(*some, strict=True)]
                yield pa.RecordBatch.from_arrays(texts, list(columns))
                done += len(some)
                tell("reading", done)
        except OSError as error:
            raise broken(self.path, error) from None

    def _rows(self, wanted: Sequence[str]) -> Iterator[list[str | None]]:
        """The cells of every object."""
        known = set(self.names)
        for where, value in _objects(self.path, self.encoding):
            if not value.keys() <= known:
                new = next(key for key in value if key not in known)
                raise InputError(
                    f"{self.path}, {where}: the key {new!r} is not in the first object, whose keys are the columns"
                )
            if (missing := next((name for name in wanted if name not in value), None)) is not None:
                raise InputError(f"{self.path}, {where}: the key {missing!r} is missing; write null for a blank")
            yield [_cell(value[name], f"{self.path}, {where}", name) for name in wanted]

    def _column(self, cells: Sequence[str | None], start: int) -> Any:
        """Cells as an Arrow array; half of a surrogate pair, which JSON can write, is no text."""
        try:
            return pa.array(cells, pa.string())
        except UnicodeEncodeError as error:
            row = start + cells.index(error.object)
            raise InputError(f"{self.where(row)}: {error.object[:60]!r} is not valid Unicode text") from None

    def where(self, row: int) -> str:
        """The place of a row: the file and its line."""
        if is_array(self.path, self.encoding):
            return f"{self.path}, object {row + 1}"
        for number, (line, _) in enumerate(_lines(self.path, self.encoding)):
            if number == row:
                return f"{self.path}, line {line}"
        return f"{self.path}, line {row + 1}"


def _cell(value: Any, where: str, name: str) -> str | None:
    """What a cell says; null is no text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    raise InputError(f"{where}: {name!r} must hold a text or a number, got {str(value)[:60]!r}")
