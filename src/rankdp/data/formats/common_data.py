"""Cast vote records in NIST's common data format (SP 1500-103), JSON or XML: one file with records and their contests.

Recognised by ``CastVoteRecordReport`` near the start of a .json or .xml file. What counts is nested like this, and XML
has ``ObjectId`` where JSON has ``@id``:

    CVR                       one record: CurrentSnapshotId names the snapshot that counts
      CVRSnapshot             @id
        CVRContest            ContestId
          CVRContestSelection ContestSelectionId
            SelectionPosition HasIndication (only "yes" is a mark), Rank
    Election
      Candidate               @id, Name
      Contest                 @id, Name, VotesAllowed, VoteVariation
        ContestSelection      @id, CandidateIds, or IsWriteIn, or Selection ("Yes" to a measure)

Each record is read on its own. ``rankdp.data.formats.cast_records`` says what marks mean; ``VotesAllowed`` is how
many without ranks are no overvote. All write-ins without a candidate's name are one choice, where the contest lists
one; elsewhere they are passed over. So the contest alone says who the candidates are, whatever is on the ballots.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

from rankdp.data.cells import check_item
from rankdp.data.cleaning import DROPPED
from rankdp.data.formats.cast_records import Contest, ballot_of, chosen_contest
from rankdp.data.formats.texts import bare_suffix, broken, opened
from rankdp.data.orders import CountedOrders
from rankdp.errors import InputError

_MOST_BYTES = 1 << 28  # parsed JSON takes up to 30 times as much memory
_MOST_TREE = 1 << 24  # of XML that is held at once: one record, and what stands outside records
_BLOCK = 1 << 20
_DEEPEST = 32
_RANK = re.compile(r"[1-9][0-9]{0,2}")
_NAMELESS = ""  # the selection of a write-in that refers to no choice of its contest


class _WrongError(ValueError):
    """What is wrong with a part of a report."""


def is_common_data(path: str) -> bool:
    """Whether a file holds such records."""
    if bare_suffix(path) not in (".json", ".xml") or not Path(path).is_file():
        return False
    try:
        with opened(path) as file:
            head = file.read(1 << 16)
    except OSError:  # told when the file is read
        return False
    return b"CastVoteRecordReport" in head and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"<")


def counted_records(path: str, contest: str | None) -> CountedOrders:
    """The candidates of a contest, its distinct ballots with their counts, and what was done with them."""
    found: Counter[tuple[str, frozenset[tuple[int, str]]]] = Counter()
    number = 0

    def take(record: Any) -> None:
        nonlocal number
        number += 1
        try:
            found.update(_contests(record).items())
        except _WrongError as error:
            raise InputError(f"{path}, record {number}: the record is not as it should be ({error})") from None

    report = _report(path, take)
    try:
        contests, notes = _listed(report)
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: its Election lacks what contests and candidates have ({error})") from None
    chosen = chosen_contest(list(contests.values()), contest, path)
    key = next(key for key, one in contests.items() if one is chosen)
    for name in chosen.choices:
        check_item(name, lambda: f"{path}: the candidate's name")
    counted: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for (of, marks), count in found.items():
        if of == key:
            for _, selection in marks:
                if selection not in chosen.places:
                    raise InputError(f"{path}: a mark is for {selection!r}, which {chosen.name!r} does not list")
            places = tuple(sorted((rank, chosen.places[selection][1]) for rank, selection in marks))
            counted[ballot_of(places, any(rank for rank, _ in marks), chosen.seats)] += count
    told = [f"the contest {chosen.name!r}", *notes.get(key, ())]
    ballots = [(count, one) for one, count in counted.items()]
    return CountedOrders.of(path, chosen.choices, ballots, None, told, chosen.name)


def _contests(record: Any) -> dict[str, frozenset[tuple[int, str]]]:
    """The contests in the current snapshot of a record, by id, with their marks: ranks (0 for none) and selections."""
    snapshots, current = _all(record, "CVRSnapshot"), _text(record, "CurrentSnapshotId")
    held = [one for one in snapshots if not current or _text(one, "@id") == current]
    if len(held) != 1:
        raise _WrongError(f"{len(held)} of its snapshots are the current one")
    found: dict[str, frozenset[tuple[int, str]]] = {}
    for contest in _all(held[0], "CVRContest"):
        marks = set()
        for selection in _all(contest, "CVRContestSelection"):
            for mark in _all(selection, "SelectionPosition"):
                if (_text(mark, "HasIndication") or "yes") != "yes":
                    continue
                name = _text(selection, "ContestSelectionId")
                if not name and "CVRWriteIn" not in mark:
                    raise _WrongError("a mark has no ContestSelectionId")
                rank = _text(mark, "Rank") or _text(selection, "Rank")
                if rank and not _RANK.fullmatch(rank):
                    raise _WrongError(f"a rank must be a whole number from 1 to 999, got {rank!r}")
                marks.add((int(rank or 0), name or _NAMELESS))
        if len({rank > 0 for rank, _ in marks}) > 1:
            raise _WrongError("some of the marks for a contest have ranks and others do not")
        if (key := _needed(contest, "ContestId")) in found:
            raise _WrongError("it has a contest twice")
        found[key] = frozenset(marks)
    return found


def _listed(report: Any) -> tuple[dict[str, Contest], dict[str, list[str]]]:
    """The contests by their ids, and notes about them."""
    contests: dict[str, Contest] = {}
    notes: dict[str, list[str]] = {}
    for election in _all(report, "Election"):
        names = {_needed(one, "@id"): _text(one, "Name") for one in _all(election, "Candidate")}
        for one in _all(election, "Contest"):
            key = _needed(one, "@id")
            own = Contest(
                _text(one, "Name") or key, int(_text(one, "VotesAllowed") or 1), _text(one, "VoteVariation") == "rcv"
            )
            contests[key], said = own, notes.setdefault(key, [])
            own.places[_NAMELESS] = 0, DROPPED
            for selection in _all(one, "ContestSelection"):
                mine = _needed(selection, "@id")
                ids = [part for text in _all(selection, "CandidateIds") for part in str(text).split()]
                name = " and ".join(filter(None, (names[each] for each in ids))) or _text(selection, "Selection")
                if not name and _text(selection, "IsWriteIn").lower() == "true":
                    own.places[_NAMELESS] = own.places[mine] = 0, own.choice("Write-in")
                    continue
                name = name or mine
                if name in own.choices:
                    said.append(f"several candidates are called {name!r}: their ids keep them apart")
                    name = f"{name} ({mine})"
                own.places[mine] = 0, own.choice(name)
    return {key: one for key, one in contests.items() if one.choices}, notes


def _all(held: Any, key: str) -> list[Any]:
    """What an object has under a name, as a list."""
    if not isinstance(held, dict):
        raise _WrongError(f"{str(held)[:40]!r} is where {key} should be")
    value = held.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(held: Any, key: str) -> str:
    """The one text or number under a name, without line ends; blank if there is none."""
    values = _all(held, key)
    if len(values) > 1 or (values and not isinstance(values[0], (str, int))):
        raise _WrongError(f"{key} must be one text")
    return " ".join(str(values[0]).split()) if values else ""


def _needed(held: Any, key: str) -> str:
    if not (text := _text(held, key)):
        raise _WrongError(f"{key} is missing")
    return text


def _report(path: str, take: Callable[[Any], None]) -> Any:
    """Hand each record of a file to `take`; what is left of the report is the result."""
    try:
        with opened(path) as file:
            if bare_suffix(path) == ".xml":
                return _Xml(path, take).read(file)
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise broken(path, error) from None
    if len(text) > _MOST_BYTES:
        raise InputError(f"{path}: a JSON file of cast vote records may unpack to at most {_MOST_BYTES >> 20} MB")
    try:
        report = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: the file could not be read as JSON ({error})") from None
    if not isinstance(report, dict):
        raise InputError(f"{path}: the file must hold one CastVoteRecordReport")
    for record in _all(report, "CVR"):
        take(record)
    return report


class _Xml:
    """XML as the objects that JSON has, one record at a time; a file with a document type could name others."""

    def __init__(self, path: str, take: Callable[[Any], None]) -> None:
        self._path, self._take = path, take
        self._open: list[dict[str, Any]] = [{}]
        self._texts: list[str] = []
        self._started = self._done = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.CharacterDataHandler = self._texts.append
        self._parser.EndElementHandler = self._end

    def read(self, file: Any) -> Any:
        """The report without its records."""
        size = 0
        try:
            while block := file.read(_BLOCK):
                self._parser.Parse(block, False)
                size += len(block)
                if size - self._done > _MOST_TREE:
                    raise InputError(f"{self._path}: a record, or what is no record, takes over {_MOST_TREE >> 20} MB")
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise InputError(f"{self._path}: the file could not be read as XML ({error})") from None
        if not isinstance(report := self._open[0].get("CastVoteRecordReport", [None])[0], dict):
            raise InputError(f"{self._path}: the file must hold one CastVoteRecordReport")
        return report

    def _doctype(self, *_: Any) -> None:
        raise InputError(f"{self._path}: cast vote records in XML must have no document type (DOCTYPE)")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) > _DEEPEST:
            raise InputError(f"{self._path}: elements are nested more than {_DEEPEST} deep")
        if len(self._open) == 2:
            self._started = self._parser.CurrentByteIndex
        self._open.append({"@id": attributes["ObjectId"]} if "ObjectId" in attributes else {})
        self._texts.clear()

    def _end(self, name: str) -> None:
        held, name = self._open.pop(), name.rpartition(":")[2]
        value = held or "".join(self._texts)
        self._texts.clear()
        if len(self._open) == 2 and name == "CVR":
            self._take(value)
            self._done += self._parser.CurrentByteIndex - self._started
        else:
            self._open[-1].setdefault(name, []).append(value)
