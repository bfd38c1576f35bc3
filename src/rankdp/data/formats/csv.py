"""CSV, wide and long: read and written in columns, told about in lines.

How a file is read depends on its first line alone: fields are separated by commas (or by tabs or semicolons, when the
header has no comma), quotes are double quotes, every cell is text. Arrow reads the cells; Python's own reader is used
for the header, and to find the line of a mistake once there is one.

A parser of CSV that is lenient about quotes lets a row such as ``x,"y`` swallow the rows after it. A `Guard` in front
of it lets through what RFC 4180 allows and nothing else. Every quote toggles between inside and outside; one that
opens must come after a separator, a line end or a quote, one that closes before one of these. So every row has an even
number of quotes on its own. A row that is put in its place either has one too, and the rows around it are read as
before, or leaves the file with a quote that never closes, and the file is refused. Line ends become LF, and the rows
that pass are counted: the parser must deliver as many. Blank lines are no rows; where there is one column, a blank line
above others could be a ballot that ranks nobody, and is refused.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from rankdp.data.cells import first_line
from rankdp.data.formats.texts import LONGEST_LINE, TableFile, blank_above, broken, codec, not_utf8, opened
from rankdp.errors import InputError
from rankdp.lazy import LazyModule
from rankdp.progress import tell

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")
pa_csv: Any = LazyModule("pyarrow.csv")

_QUALTRICS = "ResponseId"
_CHUNK = 1 << 20
_QUOTE, _FEED = ord('"'), ord("\n")
_ROW_BYTES = 64


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


class Guard(io.RawIOBase):
    """A CSV file (its bytes, decompressed) as checked UTF-8 with LF at line ends.

    ``alone`` says that there is one column; ``tell`` is called with the number of bytes that have been read.
    """

    def __init__(self, path: str, file: IO[bytes], separator: str, alone: bool, tell: Callable[[int], None]) -> None:
        super().__init__()
        self._path, self._file, self._tell = path, file, tell
        self._alone, self._blank = alone, 0
        self._edges = np.zeros(256, bool)
        self._edges[[_FEED, _QUOTE, ord(separator)]] = True
        self._ready, self._tail, self._read, self._lines = memoryview(b""), b"", 0, 0
        self._inside, self._opened, self._ended = 0, 0, False
        self.records = 0
        """Lines that are not blank, the header among them; a line end in quotes ends none."""
        self.problem: InputError | None = None
        """What was refused, whatever the parser makes of it."""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """The next bytes; none at the end."""
        while not self._ready and not self._ended:
            try:
                self._ready = memoryview(self._checked(self._more()))
            except InputError as error:
                self.problem = error
                raise
        size = min(len(into), len(self._ready))
        into[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def _more(self) -> bytes:
        """The next whole lines; the last one of the file gets a line end if it has none."""
        parts, held = [self._tail], len(self._tail)
        self._tail = b""
        while fresh := self._file.read(_CHUNK):
            self._read += len(fresh)
            self._tell(self._read)
            if cut := fresh.rfind(b"\n") + 1:
                parts.append(fresh[:cut])
                self._tail = fresh[cut:]
                return b"".join(parts)
            parts.append(fresh)
            held += len(fresh)
            if held > LONGEST_LINE:
                raise self._refused(0, b"", f"the line is longer than {LONGEST_LINE >> 20} MB")
        self._ended = True
        last = b"".join(parts)
        return last + b"\n" if last else last

    def _refused(self, place: int, data: bytes, rule: str) -> InputError:
        line = self._lines + data[:place].count(b"\n") + 1
        return InputError(f"{self._path}, line {line}: {rule}")

    def _checked(self, data: bytes) -> bytes:
        """The same lines with LF at their ends."""
        first = self._lines == 0
        data = data.replace(b"\r\n", b"\n")
        if (place := data.find(b"\r")) >= 0:
            raise self._refused(place, data, "a carriage return without a line feed; lines end with LF or CRLF")
        if (place := data.find(b"\0")) >= 0:
            raise self._refused(place, data, "the line holds a NUL byte")
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = self._lines + data[: error.start].count(b"\n") + 1
            raw = data[data.rfind(b"\n", 0, error.start) + 1 :].partition(b"\n")[0]
            raise not_utf8(self._path, line, raw) from None
        text = np.frombuffer(b"\n" + (data.removeprefix(b"\xef\xbb\xbf") if first else data), np.uint8)
        feeds = np.flatnonzero(text == _FEED)
        blank = feeds[1:][np.diff(feeds) == 1]
        if self._inside or b'"' in data:
            quotes = np.flatnonzero(text == _QUOTE)
            self._check_quotes(text, quotes, data)
            outside = (np.searchsorted(quotes, feeds[1:]) + self._inside) % 2 == 0
            blank = blank[outside[np.searchsorted(feeds[1:], blank)]]
            self.records += int(outside.sum())
            self._inside = (self._inside + len(quotes)) % 2
        else:
            self.records += len(feeds) - 1
        self.records -= len(blank)
        if self._alone:
            self._check_blank(np.searchsorted(feeds, blank), len(feeds) - 1)
        self._lines += len(feeds) - 1
        if self._ended and self._inside:
            raise InputError(f"{self._path}, line {self._opened}: a quote is opened here and never closed")
        return data

    def _check_blank(self, blank: Any, lines: int) -> None:
        """Refuse a blank line above others; ``blank`` are numbers of the ``lines`` of a block, from 1."""
        filled = np.setdiff1d(np.arange(1, lines + 1), blank)
        if len(blank):
            self._blank = self._blank or self._lines + int(blank[0])
        if self._blank and len(filled) and self._lines + filled[-1] > self._blank:
            raise blank_above(self._path, "line", self._blank)

    def _check_quotes(self, text: Any, quotes: Any, data: bytes) -> None:
        opens, closes = quotes[self._inside :: 2], quotes[1 - self._inside :: 2]
        wrong = np.concatenate([opens[~self._edges[text[opens - 1]]], closes[~self._edges[text[closes + 1]]]])
        if len(wrong):
            rule = "a quote inside a cell; put such a cell in quotes and write each quote in it twice"
            raise self._refused(int(wrong.min()) - 1, data, rule)
        if len(opens):
            self._opened = self._lines + int(np.count_nonzero(text[1 : opens[-1]] == _FEED)) + 1


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A CSV file; Arrow reads it, and Python finds the line of a row or of a mistake."""

    size: int = 0
    """Bytes of the header; a block holds many times as many."""
    separator: str = ","
    heads: int = 1
    """Lines before the first row: three where Qualtrics wrote them."""
    encoding: str | None = None

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Any, None, None]:
        """Record batches of columns as dictionaries of texts, or of texts where they are plain."""
        block = max(64 * self.size, 1 << 22 if batch_rows is None else max(1 << 20, batch_rows * _ROW_BYTES))
        text, coded = pa.string(), pa.dictionary(pa.int32(), pa.string())
        kinds = {name: text if name in plain else coded for name in columns}
        size, rows = None if codec(self.path) else Path(self.path).stat().st_size, 0
        with opened(self.path, encoding=self.encoding) as file:
            alone = len(self.names) == 1
            guard = Guard(self.path, file, self.separator, alone, lambda done: tell("reading", done, size))
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

    def where(self, row: int) -> str:
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
