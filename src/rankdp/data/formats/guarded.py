"""The bytes of a CSV file, checked before a parser sees them, so that one row cannot change how another is read.

A parser of CSV that is lenient about quotes lets a row such as ``x,"y`` swallow the rows after it. `Guard` lets through
what RFC 4180 allows and nothing else. Every quote toggles between inside and outside; one that opens must come after a
separator, a line end or a quote, one that closes before one of these. So every row has an even number of
quotes on its own. A row that is put in its place either has one too, and the rows around it are read as before, or
leaves the file with a quote that never closes, and the file is refused.

Line ends become LF, and the rows that pass are counted: the parser must deliver as many.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from rankdp.data.formats.texts import LONGEST_LINE, not_utf8
from rankdp.errors import InputError

_CHUNK = 1 << 20
_QUOTE, _FEED = ord('"'), ord("\n")


class Guard(io.RawIOBase):
    """A CSV file (its bytes, decompressed) as checked UTF-8 with LF at line ends.

    ``tell`` is called with the number of bytes that have been read.
    """

    def __init__(self, path: str, file: IO[bytes], separator: str, tell: Callable[[int], None]) -> None:
        super().__init__()
        self._path, self._file, self._tell = path, file, tell
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
            raise self._refused(place, data, "a carriage return stands without a line feed; lines end with LF or CRLF")
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
        self._lines += len(feeds) - 1
        if self._ended and self._inside:
            raise InputError(f"{self._path}, line {self._opened}: a quote is opened here and never closed")
        return data

    def _check_quotes(self, text: Any, quotes: Any, data: bytes) -> None:
        opens, closes = quotes[self._inside :: 2], quotes[1 - self._inside :: 2]
        wrong = np.concatenate([opens[~self._edges[text[opens - 1]]], closes[~self._edges[text[closes + 1]]]])
        if len(wrong):
            rule = "a quote stands inside a cell; put such a cell in quotes and write each quote in it twice"
            raise self._refused(int(wrong.min()) - 1, data, rule)
        if len(opens):
            self._opened = self._lines + int(np.count_nonzero(text[1 : opens[-1]] == _FEED)) + 1
