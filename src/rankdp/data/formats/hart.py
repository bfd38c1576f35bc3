"""Hart's cast vote records (Verity): a directory or .zip file (a "CVR Archive") with an XML file per sheet of a ballot.

Recognised by ``Cvr``, the root of the first one. Signatures (``.sig.xml``) are skipped. A record names the contests of
its sheet; of the choices it has only the marked ones:

    Contest        Name, Id; InvalidVote where a primary's voter mixed parties: then no mark counts
      Option       Name (none for a write-in), Value
        WriteInData    WriteInDataStatus: a "Rejected" write-in is passed over

The digits of a Value are ranks: 0100 is a mark at rank 2. A contest whose Values have one digit has no ranks. It is
refused, because records do not say how many choices a voter has. No manifest lists the candidates: the ones who are
marked anywhere are known.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rankdp.data.cells import natural
from rankdp.data.cleaning import DROPPED
from rankdp.data.formats.cast_records import Contest, Marks
from rankdp.data.formats.texts import bare_suffix
from rankdp.errors import InputError
from rankdp.progress import tell

_MOST_BYTES = 1 << 20  # a sheet takes some thousand
_REJECTED = ""  # the name of a write-in that officials rejected
_VALUE = re.compile(r"[01]{1,999}")


def is_hart(path: str) -> bool:
    """Whether a directory or .zip file holds such records."""
    if not Path(path).is_dir() and bare_suffix(path) != ".zip":
        return False
    try:
        files = _files(path)
        return bool(files) and _local(_parsed(files[0])) == "Cvr"
    except (InputError, OSError, zipfile.BadZipFile):
        return False


class Hart:
    """A directory or .zip file of records, all read at once."""

    items_from_data = True

    def __init__(self, path: str) -> None:
        self.path = path
        self._held: dict[str, tuple[Contest, Counter[frozenset[tuple[int, str]]]]] = {}
        self._digits: dict[str, int] = {}
        files = _files(path)
        for done, file in enumerate(files, 1):
            root = _parsed(file)
            try:
                self._add(root)
            except ValueError as error:
                raise InputError(f"{file}: the record is not as it should be ({error})") from None
            tell("reading", done, len(files))
        self.contests = [contest for contest, _ in self._held.values()]

    def marks(self, contest: Contest) -> Counter[Marks]:
        """The distinct sets of marks for a contest, and how many ballots have each."""
        if not contest.ranked:
            raise InputError(
                f"{self.path}: no ranks are marked in the contest {contest.name!r}, and Hart's records do not say how "
                "many choices a voter has"
            )
        (held,) = (counted for one, counted in self._held.values() if one is contest)
        contest.choices = sorted({name for marks in held for _, name in marks} - {_REJECTED}, key=natural)
        places = {name: at for at, name in enumerate(contest.choices)} | {_REJECTED: DROPPED}
        found: Counter[Marks] = Counter()
        for marks, count in held.items():
            found[tuple(sorted((rank, places[name]) for rank, name in marks))] += count
        return found

    def _add(self, root: Any) -> None:
        """Add a record: one ballot of each of its contests."""
        if _local(root) != "Cvr":
            raise ValueError(f"its root is {_local(root)!r} and not 'Cvr'")
        own: set[str] = set()
        for one in root.findall("{*}Contests/{*}Contest"):
            name, key = _text(one, "Name"), _text(one, "Id")
            if not name or not key or key in own:
                raise ValueError("a contest has no Name or Id, or is there twice")
            own.add(key)
            contest, counted = self._held.setdefault(key, (Contest(name, 1, ranked=False), Counter()))
            marks = set()
            for option in one.findall("{*}Options/{*}Option"):
                value, choice = _text(option, "Value"), _text(option, "Name") or "Write-in"
                if not _VALUE.fullmatch(value):
                    raise ValueError(f"a Value must consist of 0 and 1, got {value!r}")
                if len(value) != (digits := self._digits.setdefault(key, len(value))):
                    raise ValueError(f"{name!r}: a Value has {len(value)} digits and an earlier one {digits}")
                contest.ranked = digits > 1
                if _text(option, "WriteInData/{*}WriteInDataStatus") == "Rejected":
                    choice = _REJECTED
                marks |= {(rank, choice) for rank, digit in enumerate(value, 1) if digit == "1"}
            counted[frozenset() if one.find("{*}InvalidVote") is not None else frozenset(marks)] += 1


class _NoDoctype(ElementTree.TreeBuilder):
    """Elements of a file without a document type, which could define entities."""

    def doctype(self, *_: Any) -> None:
        raise ValueError("it has a document type (DOCTYPE)")


def _files(path: str) -> list[Any]:
    """The records, in the order of their names."""
    folder: Any = zipfile.Path(path) if bare_suffix(path) == ".zip" else Path(path)
    named = ((file.name.lower(), file) for file in folder.iterdir())
    return [file for name, file in sorted(named, key=str) if name.endswith(".xml") and not name.endswith(".sig.xml")]


def _parsed(file: Any) -> Any:
    """The root of a record."""
    try:
        with file.open("rb") as unpacked:
            text = unpacked.read(_MOST_BYTES + 1)
        if len(text) <= _MOST_BYTES:
            return ElementTree.fromstring(text, ElementTree.XMLParser(target=_NoDoctype()))
    except (OSError, ValueError, ElementTree.ParseError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{file}: the file could not be read as XML ({error})") from None
    raise InputError(f"{file}: a record may have at most {_MOST_BYTES >> 20} MB, and this one has more")


def _local(root: Any) -> str:
    """The name of an element without its namespace."""
    return str(root.tag).rpartition("}")[2]


def _text(held: Any, path: str) -> str:
    """The text of an element below another, without line ends; blank if there is none."""
    return " ".join((held.findtext(f"{{*}}{path}") or "").split())
