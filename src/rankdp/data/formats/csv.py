"""CSV, wide and long: read and written in columns, told about in lines.

How a file is read depends on its first line alone: fields are separated by commas (or by tabs or semicolons, when the
header has no comma), quotes are double quotes, every cell is text. Arrow reads the cells behind a `Guard`; Python's own
reader is used for the header, and to find the line of a mistake once there is one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.cells import first_line
from rankdp.data.formats.guarded import Guard
from rankdp.data.formats.jsonlines import read_keys
from rankdp.data.formats.texts import LONGEST_LINE, TextFile, bare_suffix, broken, codec, not_utf8, opened
from rankdp.errors import InputError
from rankdp.lazy import LazyModule
from rankdp.progress import tell

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")
pa_csv: Any = LazyModule("pyarrow.csv")

_QUALTRICS = "ResponseId"


def open_text(path: str, encoding: str | None = None) -> TextFile:
    """A CSV or JSON file, its columns looked at; `opened` says what the encoding is if none is given."""
    try:
        return (read_keys if holds_json(path, encoding) else read_header)(path, encoding)
    except OSError as error:
        raise broken(path, error) from None


def holds_json(path: str, encoding: str | None = None) -> bool:
    """Whether a file is JSON, by its ending or, where that does not say, by its first character."""
    if bare_suffix(path) in (".csv", ".tsv", ".txt"):
        return False
    if bare_suffix(path) in (".jsonl", ".ndjson", ".json"):
        return True
    with opened(path, encoding=encoding) as file:
        return file.read(64).lstrip()[:1] in (b"{", b"[")


def read_header(path: str, encoding: str | None = None) -> CsvFile:
    """The columns of a CSV file, from its first line; from its first three where that one is Qualtrics'."""
    with opened(path, encoding=encoding) as file:
        first = file.readline(LONGEST_LINE)
        try:
            line = first.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise not_utf8(path, 1, first) from None
        separator = "," if "," in line else next((mark for mark in "\t;" if mark in line), ",")
        more = file.read(max(1 << 16, 4 * len(first)))
    try:
        names = [name.strip() for name in next(csv.reader(io.StringIO(line), delimiter=separator), [])]
    except csv.Error as error:
        raise InputError(f"{path}, line 1: the header could not be read as CSV ({error})") from None
    if not any(names):
        raise InputError(f"{path}, line 1: the header is blank; the first line names the columns")
    if _QUALTRICS not in names:
        return CsvFile(path, names, len(first), separator, encoding=encoding)
    asked = _qualtrics_questions(path, more, separator, len(names))
    names = [_question_name(name, words) for name, words in zip(names, asked, strict=True)]
    return CsvFile(path, names, len(first), separator, 3, encoding)


def _qualtrics_questions(path: str, text: bytes, separator: str, width: int) -> list[str]:
    """The second line of an export of Qualtrics, which says what was asked; its third holds `{"ImportId":…}` only."""
    try:
        rows = csv.reader(io.StringIO(text.decode("utf-8", "replace"), newline=""), delimiter=separator)
        asked, ids = next(rows, []), next(rows, [])
    except csv.Error:
        asked, ids = [], []
    if not len(asked) == len(ids) == width or not all(cell.startswith('{"ImportId"') for cell in ids):
        raise InputError(
            f"{path}, line 3: a header with {_QUALTRICS!r} is Qualtrics', and its third line holds "
            f'{{"ImportId": …}} in every cell; keep both lines as they were exported, or rename {_QUALTRICS!r}'
        )
    return asked


def _question_name(name: str, asked: str) -> str:
    """`Q2_1`, asked as "Rank these - Tea", is called `Q2 [Tea]`: the rank of an item."""
    stem, mark, number = name.rpartition("_")
    item = asked.rpartition(" - ")[2].strip()
    return f"{stem} [{item}]" if mark and number.isdecimal() and " - " in asked and item else name


class CsvFile(TextFile):
    """A CSV file; Arrow reads it, and Python finds the line of a row or of a mistake."""

    __slots__ = ()

    def batches(self, block: int, coded: Sequence[str], plain: Sequence[str] = ()) -> Generator[Any, None, None]:
        """Record batches of columns as dictionaries of texts, and of others as texts."""
        kinds = {name: pa.string() for name in plain}
        kinds |= {name: pa.dictionary(pa.int32(), pa.string()) for name in coded}
        size, rows = None if codec(self.path) else Path(self.path).stat().st_size, 0
        with opened(self.path, encoding=self.encoding) as file:
            guard = Guard(self.path, file, self.separator, lambda done: tell("reading", done, size))
            try:
                with pa_csv.open_csv(
                    pa.PythonFile(io.BufferedReader(guard, block), "r"),
                    read_options=pa_csv.ReadOptions(
                        column_names=self.names, skip_rows_after_names=self.heads, block_size=block
                    ),
                    parse_options=pa_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=kinds, include_columns=list(kinds), null_values=[""], strings_can_be_null=True
                    ),
                ) as reader:
                    for batch in reader:
                        yield batch
                        rows += batch.num_rows
            except (InputError, pa.ArrowException, UnicodeDecodeError) as error:
                raise guard.problem or self._diagnosed(error) from None
            except OSError as error:
                raise broken(self.path, error) from None
        if rows != guard.records - self.heads:
            raise InputError(f"{self.path}: the file holds {guard.records - self.heads:,} rows and {rows:,} were read")

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The line and the fields of every row below the header, as Arrow counts rows."""
        with io.TextIOWrapper(opened(self.path, encoding=self.encoding), "utf-8-sig", "replace", "") as file:
            lines = csv.reader(file, delimiter=self.separator)
            before = 0
            try:
                for _ in range(self.heads):
                    next(lines, None)
                before = lines.line_num
                for record in lines:
                    if record:
                        yield before + 1, record
                    before = lines.line_num
            except csv.Error as error:
                raise InputError(
                    f"{self.path}, line {before + 1}: the line could not be read as CSV ({error})"
                ) from None

    def line(self, row: int) -> str:
        """The place of a row: the file and its line, the header being line 1."""
        for number, (line, _) in enumerate(self._records()):
            if number == row:
                return f"{self.path}, line {line}"
        return f"{self.path}, line {row + 2}"

    def _diagnosed(self, error: Exception) -> InputError:
        """Find the line that Arrow stumbled over."""
        try:
            for number, record in self._records():
                if (fields := len(record)) != len(self.names):
                    rule = f"the line has {fields} fields and the header {len(self.names)}"
                    return InputError(f"{self.path}, line {number}: {rule}")
        except InputError as found:
            return found
        return InputError(f"{self.path}: the file could not be read as CSV ({first_line(error)})")


def _quoted(name: str) -> str:
    """A text as a CSV field."""
    return '"' + name.replace('"', '""') + '"' if any(mark in name for mark in '",\r\n') else name


def _fields(column: Any) -> Any:
    """A column as CSV fields."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _fields(column.dictionary), safe=False).cast(pa.string())
    text = column.cast(pa.string())
    special = pc.match_substring_regex(text, '[",\r\n]')
    if not pc.any(special).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), text)


def _write_rows(file: Any, columns: list[Any]) -> None:
    """Join columns of fields into lines and write them in one go."""
    *front, last = columns
    last = pc.binary_join_element_wise(last, "\n", "", null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(*front, last, ",", null_handling="replace", null_replacement="")
    if not isinstance(lines, pa.Array):
        lines = lines.combine_chunks()
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1]
    file.write(memoryview(lines.buffers()[2])[int(offsets[0]) : int(offsets[-1])])


class CsvSink:
    """Writes the rows of Arrow batches, one a line, below the names of their columns."""

    def __init__(self, temporary: str, packed: str | None = None) -> None:
        self._file = pa.output_stream(temporary, compression=packed)
        self._begun = False

    def write(self, batch: Any) -> None:
        """Append one batch."""
        if not self._begun:
            self._file.write((",".join(map(_quoted, batch.schema.names)) + "\n").encode())
            self._begun = True
        _write_rows(self._file, [_fields(column) for column in batch.columns])

    def finish(self, items: Sequence[str], from_data: bool) -> None:
        """Close the file."""
        self._file.close()

    def abandon(self) -> None:
        """Let go of the file."""
        self._file.close()
