"""Cast vote records of Dominion's machines, as San Francisco, Alaska or Boulder publish them: a CSV file or JSON.

*CSV*, recognised by ``CvrNumber`` at the start of one of its first lines. The two lines above say the contest and the
choice of each column, and cells are 1 (marked), 0 or blank (the contest is not on that ballot):

    Election, 5.13.17.1
    ,,,,"Mayor (Number of positions=1, Number of ranks=2)", …
    ,,,,Ann(1),Bob(1),Ann(2),Bob(2)
    CvrNumber,TabulatorNum,BatchId,RecordId, …
    1,101,1,1,1,0,0,1

*JSON*, recognised by ``ContestManifest.json`` and ``CandidateManifest.json`` in a directory or .zip file. They name the
contests and choices, and ``CvrExport*.json`` hold sessions, of which the current version (``Modified`` after
adjudication, else ``Original``) lists marks with their ranks; ambiguous marks are not votes.

The two mean the same: a rank without a mark was skipped, two marks at one rank are an overvote, and the rule of
``rankdp.data.cleaning`` says what follows. Where a contest has no ranks, the marked ones are tied in the first place;
more than may be voted for are an overvote.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.cells import encode
from rankdp.data.cleaning import OVERVOTED, SKIPPED
from rankdp.data.columns import listed_names
from rankdp.data.formats.csv import CsvFile
from rankdp.data.formats.texts import bare_suffix, not_utf8, opened
from rankdp.data.orders import CountedOrders
from rankdp.errors import InputError, Setting
from rankdp.progress import tell

Marks = tuple[tuple[int, int], ...]
"""Pairs of a rank and a choice, in order."""

_MOST_BYTES = 1 << 28  # parsed JSON takes up to 30 times as much memory
_HEAD_LINES = 8
_CONTEST = re.compile(r"(?P<name>.*?)\s*\((?:Vote For|Number of positions)\s*=\s*(?P<seats>[0-9]+)[^()]*\)\s*")
_RANKED = re.compile(r"(?P<name>.*)\((?P<rank>[0-9]{1,3})\)\s*")
_MANIFESTS = ("ContestManifest.json", "CandidateManifest.json")


@dataclass(slots=True)
class Contest:
    """A contest: its name, how many may be voted for, whether choices have ranks, and the names of its choices."""

    name: str
    seats: int
    ranked: bool
    choices: list[str] = field(default_factory=list)
    places: dict[Any, tuple[int, int]] = field(default_factory=dict)
    """Where marks are: the rank and the choice of a column, or the choice (rank 0) of a candidate's id."""

    def choice(self, name: str) -> int:
        """The number of a choice, which is new if its name is."""
        if name not in self.choices:
            self.choices.append(name)
        return self.choices.index(name)


def is_dominion(path: str) -> bool:
    """Whether a file or directory holds such records."""
    if Path(path).is_dir() or bare_suffix(path) == ".zip":
        return _manifests(path) is not None
    if bare_suffix(path) not in (".csv", ".txt") or not Path(path).is_file():
        return False
    with opened(path) as file:
        heads = [file.readline(1 << 22) for _ in range(_HEAD_LINES)]
    return any(line.lstrip(b'="').startswith(b"CvrNumber") for line in heads[1:])


def counted_marks(path: str, contest: str | None) -> CountedOrders:
    """The candidates of a contest, its distinct ballots with their counts, and what was done with them.

    Parameters
    ----------
    path
        The file or directory.
    contest
        The name of the contest, where there are several.
    """
    records: CsvRecords | JsonRecords = (JsonRecords if _manifests(path) else CsvRecords)(path)
    chosen = chosen_contest(list(records.contests), contest, path)
    found: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for marks, count in records.marks(chosen).items():
        found[ballot_of(marks, chosen.ranked, chosen.seats)] += count
    counted = [(count, ballot) for ballot, count in found.items()]
    how = "" if chosen.ranked else f"; no ranks, so that up to {chosen.seats} marks share the first place"
    return CountedOrders.of(path, chosen.choices, counted, None, [f"the contest {chosen.name!r}{how}"])


def chosen_contest(contests: Sequence[Contest], asked: str | None, path: str) -> Contest:
    """The contest that was asked for, or the only one; of several the only one with ranks.

    Parameters
    ----------
    contests
        All contests of the records.
    asked
        A contest's name, in any case.
    path
        The file, for messages.
    """
    if asked is not None:
        wanted = [one for one in contests if one.name.casefold() == asked.strip().casefold()]
    else:
        wanted = [one for one in contests if one.ranked] or list(contests)
    if len(wanted) == 1:
        return wanted[0]
    got = "got none" if asked is None else f"got {asked!r}"
    raise InputError(
        f"{path}: ", Setting("contest"), f" must name one of {listed_names([one.name for one in contests])}, {got}"
    )


def ballot_of(marks: Marks, ranked: bool, seats: int) -> tuple[tuple[int, ...], ...]:
    """The groups of choices that marks mean, best first.

    Parameters
    ----------
    marks
        Pairs of a rank and a choice, in order.
    ranked
        Whether the ranks count; if not, the choices share the first place.
    seats
        How many choices without ranks may be marked.
    """
    if not ranked:
        voted = tuple(sorted({choice for _, choice in marks}))
        return (voted,) if len(voted) <= seats else ((OVERVOTED,),)
    places = [{choice for at, choice in marks if at == rank} for rank in range(1, max(marks, default=(0, 0))[0] + 1)]
    return tuple((OVERVOTED,) if len(here) > 1 else (*here,) if here else (SKIPPED,) for here in places)


class CsvRecords:
    """A CSV file of records."""

    def __init__(self, path: str) -> None:
        self.path = path
        with opened(path) as file:
            raw = b"".join(islice(file, 4 * _HEAD_LINES))
        try:
            rows = list(islice(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")), _HEAD_LINES))
        except UnicodeDecodeError:
            raise not_utf8(path, 1, raw) from None
        except csv.Error as error:
            raise InputError(f"{path}: its first lines could not be read as CSV ({error})") from None
        head = next((at for at, row in enumerate(rows) if row and _plain(row[0]) == "CvrNumber"), 0)
        if head < 2 or len(rows) < head + 2:
            raise InputError(f"{path}: cast vote records have the contests and choices above CvrNumber, and rows below")
        self._width, self._heads = len(rows[head + 1]), head + 1
        found: dict[str, Contest] = {}
        for column, (title, choice) in enumerate(zip(rows[head - 2], rows[head - 1], strict=False)):
            if not title.strip() or column >= self._width:
                continue
            match = _CONTEST.fullmatch(title)
            name, seats = (match["name"], int(match["seats"])) if match else (title.strip(), 1)
            ranked = _RANKED.fullmatch(choice) if "Number of ranks" in title else None
            own = found.setdefault(title, Contest(name, seats, ranked is not None))
            if (ranked is not None) != own.ranked:
                raise InputError(f"{path}, column {column + 1}: {choice!r} has no rank, and others of its contest do")
            said = _plain(ranked["name"] if ranked else choice)
            own.places[column] = int(ranked["rank"]) if ranked else 0, own.choice(said)
        self.contests = list(found.values())

    def marks(self, contest: Contest) -> Counter[Marks]:
        """The distinct sets of marks for a contest, and how many ballots have each."""
        columns = list(contest.places)
        names = [str(column) for column in range(self._width)]
        text = CsvFile(self.path, names, {}, 0, heads=self._heads)
        found: Counter[Marks] = Counter()
        start = 0
        for batch in text.batches(1 << 22, [str(column) for column in columns]):
            marked = np.zeros((batch.num_rows, len(columns)), np.bool_)
            there = np.zeros(batch.num_rows, np.bool_)
            for at, column in enumerate(columns):
                cells = encode(batch.column(str(column)))
                meaning = [{"1": 1, "0": 0, "": 2}.get(_plain(str(value)), -1) for value in cells.values]
                values = np.array([*meaning, 2], np.int8)[cells.codes]
                if (values < 0).any():
                    row = int(np.argmax(values < 0))
                    bad = cells.values[cells.codes[row]]
                    raise InputError(f"{text.line(start + row)}: a mark must be 1, 0 or blank, got {bad!r}")
                marked[:, at] = values == 1
                there |= values < 2
            distinct, counts = np.unique(np.packbits(marked[there], axis=1), axis=0, return_counts=True)
            for row, count in zip(np.unpackbits(distinct, axis=1).tolist(), counts.tolist(), strict=True):
                found[tuple(contest.places[column] for column, mark in zip(columns, row, strict=False) if mark)] += (
                    count
                )
            start += batch.num_rows
        return found


class JsonRecords:
    """A directory or .zip file of JSON records."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = _manifests(path)
        self.contests: list[Contest] = []
        self._ids: dict[int, Contest] = {}
        listed, candidates = (self._list(name) for name in _MANIFESTS)
        try:
            for one in listed:
                own = Contest(str(one["Description"]).strip(), int(one["VoteFor"]), int(one.get("NumOfRanks") or 0) > 0)
                self._ids[one["Id"]] = own
                self.contests.append(own)
            for one in candidates:
                if (mine := self._ids.get(one["ContestId"])) is not None:
                    mine.places[one["Id"]] = 0, mine.choice(str(one["Description"]).strip())
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: a manifest lacks what contests and candidates have ({error!r})") from None
        self.contests = [one for one in self.contests if one.choices]

    def marks(self, contest: Contest) -> Counter[Marks]:
        """The distinct sets of marks for a contest, and how many ballots have each."""
        found: Counter[Marks] = Counter()
        (number,) = (key for key, one in self._ids.items() if one is contest)
        files = sorted(
            (file for file in self._folder.iterdir() if re.fullmatch(r"CvrExport.*\.json", file.name)), key=str
        )
        for done, file in enumerate(files):
            sessions = _json(file)
            try:
                for held in _contests(sessions):
                    if held["Id"] == number:
                        marks = [mark for mark in held["Marks"] if not mark.get("IsAmbiguous")]
                        said = {(_rank(mark["Rank"]), contest.places[mark["CandidateId"]][1]) for mark in marks}
                        found[tuple(sorted(said))] += 1
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{self.path}, {file.name}: a session is not as it should be ({error!r})") from None
            tell("reading", done + 1, len(files))
        return found

    def _list(self, name: str) -> list[Any]:
        held = _json(self._folder / name)
        if not isinstance(held, dict) or not isinstance(held.get("List"), list):
            raise InputError(f"{self.path}, {name}: it must hold an object with a List")
        return list(held["List"])


def _rank(value: Any) -> int:
    rank = int(value)
    if not 0 <= rank <= 999:
        raise ValueError(f"a rank must be a whole number up to 999, got {value!r}")
    return rank


def _contests(held: Any) -> Iterator[Any]:
    """Every contest of every card of every session, in its current version."""
    for session in held["Sessions"]:
        modified = session.get("Modified")
        current = modified if modified and modified.get("IsCurrent", True) else session["Original"]
        for card in current.get("Cards") or [current]:
            yield from card["Contests"]


def _manifests(path: str) -> Any:
    """Where the manifests are, in a directory or a .zip file; None where there are none."""
    try:
        folder: Any = zipfile.Path(path) if bare_suffix(path) == ".zip" else Path(path)
        return folder if all((folder / name).is_file() for name in _MANIFESTS) else None
    except (OSError, zipfile.BadZipFile):
        return None


def _json(file: Any) -> Any:
    """What a file of records holds; one that unpacks to more than `_MOST_BYTES` is refused before it is parsed."""
    try:
        with file.open("rb") as unpacked:
            text = unpacked.read(_MOST_BYTES + 1)
        held = json.loads(text.decode("utf-8-sig")) if len(text) <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{file}: the file is missing or no JSON") from None
    if len(text) > _MOST_BYTES:
        raise InputError(
            f"{file}: a file of cast vote records may unpack to at most {_MOST_BYTES >> 20} MB, and this one unpacks "
            "to more; export the records in several files"
        )
    return held


def _plain(cell: str) -> str:
    """A cell without what spreadsheets are made to see: ="3" says 3."""
    return cell.strip().removeprefix("=").strip('"').strip()
