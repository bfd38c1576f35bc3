"""JSON Lines, an object per line, and JSON arrays of objects, as dumps of arenas and logs have them.

A file whose first character is [ is an array. The first objects tell the columns and what each holds; what is nested
is left alone. Arrow parses the columns of JSON Lines that are used, block by block, and skips the rest; Python's own
parser reads arrays, a piece at a time, and finds the line of a mistake once there is one.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rankdp.data.formats.texts import LONGEST_LINE, TextFile, broken, codec, not_utf8, opened
from rankdp.data.tables import Kind, first_line
from rankdp.errors import InputError
from rankdp.progress import tell

_LOOKED_AT = 1000
_PIECE, _ROWS = 1 << 18, 1 << 14
_SPACE = re.compile(r"[ \t\r\n]*")


def read_keys(path: str) -> JsonFile:
    """The columns of a file, from its first objects."""
    kinds: dict[str, set[type]] = {}
    longest = 0
    for number, (line, value) in enumerate(_objects(path)):
        if number == _LOOKED_AT:
            break
        longest = max(longest, line[1])
        for key, cell in value.items():
            kinds.setdefault(key, set()).update(() if cell is None else {type(cell)})
    if not kinds:
        raise InputError(
            f"{path}: there is no object with a key; JSON Lines have an object on each line, arrays several"
        )
    told = {key: _kind(types) for key, types in kinds.items()}
    return JsonFile(path, list(told), told, longest, heads=0)


def _kind(types: set[type]) -> Kind:
    if types <= {str}:
        return "text"
    if types == {int}:
        return "whole"
    return "number" if types <= {int, float} or types == {bool} else "nested"


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    with opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise InputError(f"{path}, line {number}: the line is longer than {LONGEST_LINE >> 20} MB")
            if line.strip():
                yield number, line


def is_array(path: str) -> bool:
    """Whether a file is a JSON array: by its first character."""
    with opened(path) as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _objects(path: str) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """(The line and its size, and its object) of every line that is not blank, or of every object of an array."""
    if is_array(path):
        yield from _members(path)
        return
    for number, line in _lines(path):
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise not_utf8(path, number, line) from None
        except (ValueError, RecursionError):
            raise InputError(f"{path}, line {number}: this is not a JSON object on one line") from None
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: each line must be a JSON object")
        yield (f"line {number}", len(line)), value


def _members(path: str) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """(The number and the size, and the object itself) of every object in an array."""
    number, decode = 0, json.JSONDecoder().raw_decode
    with io.TextIOWrapper(opened(path), encoding="utf-8-sig") as file:

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
                yield (f"object {number}", end - at), value
                text, at = rest(text, end)
            text, at = rest(text, at + 1)
            if at < len(text):
                raise InputError(f"{path}: there is more behind the end of the array")
        except UnicodeDecodeError:
            raise InputError(f"{path}, near object {number + 1}: the text is not valid UTF-8") from None
        except RecursionError:
            raise InputError(f"{path}, object {number}: this is nested too deeply") from None


class JsonFile(TextFile):
    """A file of JSON Lines, or a JSON array; every object gives one row."""

    __slots__ = ()

    def batches(self, block: int, coded: Sequence[str], plain: Sequence[str] = ()) -> Generator[Any, None, None]:
        """Record batches of columns, as what they hold."""
        import pyarrow as pa
        import pyarrow.json as pj

        types = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "nested": pa.string()}
        schema = pa.schema([(name, types[self.kinds[name]]) for name in (*coded, *plain)])
        if is_array(self.path):
            yield from self._member_batches(schema)
            return
        parsing = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        try:
            for text in self._blocks(block):
                table = pj.read_json(
                    pa.BufferReader(text), pj.ReadOptions(block_size=len(text) + 1, use_threads=False), parsing
                )
                yield from table.combine_chunks().to_batches()
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise self._diagnosed(error, schema.names) from None
        except OSError as error:
            raise broken(self.path, error) from None

    def _member_batches(self, schema: Any) -> Iterator[Any]:
        import pyarrow as pa

        rows = ({name: value.get(name) for name in schema.names} for _, value in _objects(self.path))
        try:
            while some := list(islice(rows, _ROWS)):
                yield pa.RecordBatch.from_pylist(some, schema=schema)
        except (pa.ArrowException, OverflowError) as error:
            raise self._diagnosed(error, schema.names) from None

    def _blocks(self, block: int) -> Iterator[bytes]:
        """Whole lines, as many as fit a block; blank ones only at the end are left out."""
        rest = b""
        with opened(self.path) as file:
            done, size = 0, None if codec(self.path) else Path(self.path).stat().st_size
            while fresh := file.read(block):
                done += len(fresh)
                tell("reading", done, size)
                lines, newline, rest_of = (rest + fresh).rpartition(b"\n")
                rest = rest_of
                if len(rest) > LONGEST_LINE:
                    raise InputError(f"{self.path}: a line is longer than {LONGEST_LINE >> 20} MB")
                if lines.strip():
                    yield lines + newline
        if rest.strip():
            yield rest

    def line(self, row: int) -> str:
        """Where a row stands: the file and its line."""
        if is_array(self.path):
            return f"{self.path}, object {row + 1}"
        for number, (line, _) in enumerate(_lines(self.path)):
            if number == row:
                return f"{self.path}, line {line}"
        return f"{self.path}, line {row + 1}"

    def _diagnosed(self, error: Exception, columns: Sequence[str]) -> InputError:
        """Find the line that Arrow stumbled over."""
        allowed = {"text": (str,), "whole": (int,), "number": (int, float, bool), "nested": ()}
        try:
            for (line, _), value in _objects(self.path):
                for name in columns:
                    cell = value.get(name)
                    if cell is not None and type(cell) not in allowed[self.kinds[name]]:
                        held = {"text": "texts", "whole": "whole numbers"}.get(self.kinds[name], "numbers")
                        return InputError(
                            f"{self.path}, {line}: {name!r} must hold {held} as in those before, got {str(cell)[:60]!r}"
                        )
        except InputError as found:
            return found
        return InputError(f"{self.path}: the file could not be read as JSON ({first_line(error)})")
