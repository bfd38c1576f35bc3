"""What every file with a table gives, and how text files are opened: compressed (`.gz`, `.zst`, `.bz2`) or not.

Input is untrusted: memory is taken by blocks, and a line that is longer than any block is refused.
"""

from __future__ import annotations

import codecs
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rankdp.data.cells import Kind
from rankdp.errors import InputError, Setting
from rankdp.lazy import LazyModule

pa: Any = LazyModule("pyarrow")

COMPRESSED = (".gz", ".zst", ".bz2")
LONGEST_LINE = 1 << 26
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ONE_BYTE = re.compile(r"ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|tis-620|hp-roman8|ptcp154")
_MANY_BYTES = {
    *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "gbk", "gb2312", "big5", "big5hkscs"),
    *("shift_jis", "cp932", "euc_jp", "euc_kr", "cp949"),
}
"""Encodings with characters of several bytes in which no line end is part of one."""
_ARROW_NAMES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


@dataclass(frozen=True)
class TableFile(ABC):
    """A file with a table: what its columns hold, its rows in Arrow batches, and the places of its rows."""

    path: str
    names: list[str]
    """The columns, as they are in the file: checked by ``rankdp.data.tables``."""

    @property
    def footer(self) -> Any:
        """What the file says about its rows before they are read, such as their number; None for nothing."""
        return None

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the columns hold."""
        return dict.fromkeys(self.names, "text")

    @abstractmethod
    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Any, None, None]:
        """Record batches of about ``batch_rows`` rows; texts may come as dictionaries, unless a column is ``plain``."""

    @abstractmethod
    def where(self, row: int) -> str:
        """The place of a row: the file and its line."""


def bare_suffix(path: str) -> str:
    """The ending that says the format, without that of the compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")


def codec(path: str) -> str | None:
    """How a file is compressed, by its ending."""
    return _ARROW_NAMES.get(Path(path).suffix.lower())


def known_encoding(name: str) -> str:
    """An encoding in which one line cannot change how another is read: no bytes switch to another set of characters."""
    try:
        found = codecs.lookup(name).name
    except LookupError:
        found = ""
    single = _ONE_BYTE.fullmatch(found) and bytes(range(128)).decode(found, "replace") == "".join(map(chr, range(128)))
    if found not in _MANY_BYTES and not single:
        raise InputError(
            Setting("encoding"),
            f" must be one such as latin-1, windows-1252, utf-16, shift_jis or gb18030, got {name!r}",
        )
    return found


def opened(path: str, ending: str = "", encoding: str | None = None) -> IO[bytes]:
    """A file's bytes, decompressed and as UTF-8.

    Another ``ending`` than its own may say how it is compressed. Without an ``encoding`` it is UTF-16 where its first
    two bytes say so, else UTF-8.
    """
    file: io.BufferedReader
    if (packed := codec(path + ending)) is None:
        file = Path(path).open("rb")  # noqa: SIM115
    else:
        file = io.BufferedReader(pa.CompressedInputStream(pa.OSFile(path), packed))
    try:
        wide = file.peek(2)[:2] in _UTF_16
    except OSError:  # told when the file is read
        wide = False
    encoding = encoding or ("utf-16" if wide else "utf-8")
    return file if encoding == "utf-8" else io.BufferedReader(_Recoded(path, file, encoding))


class _Recoded(io.RawIOBase):
    """Another encoding as UTF-8."""

    def __init__(self, path: str, file: IO[bytes], encoding: str) -> None:
        super().__init__()
        self._path, self._file, self._encoding, self._ready = path, file, encoding, b""
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """The next bytes; none at the end."""
        while not self._ready:
            raw = self._file.read(1 << 16)
            try:
                self._ready = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError:
                raise InputError(f"{self._path}: the text is not valid {self._encoding.upper()}") from None
            if not raw:
                break
        size = min(len(into), len(self._ready))
        into[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def whole(path: str, encoding: str | None = None) -> bytes:
    """All bytes of a file that is loaded at once, as from `opened`; what Arrow cannot decompress is refused."""
    with opened(path, encoding=encoding) as file:
        try:
            return file.read()
        except OSError as error:
            raise broken(path, error) from None


def lines_of(path: str, content: bytes) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers."""
    for number, raw in enumerate(content.splitlines(), 1):
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise not_utf8(path, number, raw) from None


def blank_above(path: str, row: str, number: int) -> InputError:
    """What refuses a blank row that others follow; ``row`` is what the format calls it."""
    return InputError(
        f"{path}, {row} {number}: the {row} is blank and {row}s follow it; delete it, or write 'blank' into it if it "
        "is a ballot that ranks nobody"
    )


def broken(path: str, error: OSError) -> OSError | InputError:
    """A failure to decompress as a sentence; a failure of the system stays what it is."""
    if codec(path) is None or error.errno:
        return error
    return InputError(f"{path}: the file could not be decompressed as {codec(path)} (damaged or cut short?)")


def not_utf8(path: str, line: int, raw: bytes) -> InputError:
    """The refusal of a line that is not UTF-8, with what it would say in the usual other encoding."""
    bad = next(at for at in range(len(raw)) if raw[at] > 127)
    start = max(raw.rfind(b",", 0, bad) + 1, bad - 15)
    guess = raw[start : bad + 15].split(b",")[0].strip().decode("cp1252", "replace")
    return InputError(
        f"{path}, line {line}: the text is not valid UTF-8; in Windows-1252 it would say {guess!r}: if that is right, "
        "use ",
        Setting("encoding", "windows-1252"),
    )
