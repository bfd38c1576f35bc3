"""Cast vote records of Dominion's machines as JSON, in a directory or .zip file (as CSV: ``marked_csv``).

Recognised by ``ContestManifest.json`` and ``CandidateManifest.json``, which name the contests and choices.
``CvrExport*.json`` hold sessions, of which the current version (``Modified`` after adjudication, else ``Original``)
lists marks with their ranks; ambiguous marks are not votes. A session is one ballot, on however many cards. Where
officials set its contest aside (the condition ``InvalidContest`` of ``OutstackConditionManifest.json``: say, a voter of
another district) it stays a ballot, of which no mark counts.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankdp.data.formats.cast_records import Contest, Marks
from rankdp.data.formats.texts import bare_suffix
from rankdp.errors import InputError
from rankdp.progress import tell

_MOST_BYTES = 1 << 28  # parsed JSON takes up to 30 times as much memory
_MANIFESTS = ("ContestManifest.json", "CandidateManifest.json")
_CONDITIONS = "OutstackConditionManifest.json"


def is_dominion(path: str) -> bool:
    """Whether a directory or .zip file holds such records."""
    return (Path(path).is_dir() or bare_suffix(path) == ".zip") and _manifests(path) is not None


class Dominion:
    """A directory or .zip file of JSON records."""

    items_from_data = False

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = _manifests(path)
        self.contests: list[Contest] = []
        self._ids: dict[int, Contest] = {}
        listed, candidates = (self._list(name) for name in _MANIFESTS)
        known = self._list(_CONDITIONS) if (self._folder / _CONDITIONS).is_file() else []
        try:
            self._set_aside = {one["Id"] for one in known if one["Description"] == "InvalidContest"}
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
                for session in sessions["Sessions"]:
                    if own := [one for one in _contests(session) if one["Id"] == number]:
                        marks = [mark for one in own if not self._invalid(one) for mark in one["Marks"]]
                        found[self._said(marks, contest)] += 1
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise InputError(f"{self.path}, {file.name}: a session is not as it should be ({error!r})") from None
            tell("reading", done + 1, len(files))
        return found

    def _invalid(self, held: Any) -> bool:
        """Whether officials have set the contest of a session aside."""
        return not self._set_aside.isdisjoint(held.get("OutstackConditionIds") or ())

    def _said(self, marks: list[Any], contest: Contest) -> Marks:
        votes = (mark for mark in marks if not mark.get("IsAmbiguous"))
        return tuple(sorted({(_rank(mark["Rank"]), contest.places[mark["CandidateId"]][1]) for mark in votes}))

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


def _contests(session: Any) -> Iterator[Any]:
    """Every contest of every card of a session, in its current version."""
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
