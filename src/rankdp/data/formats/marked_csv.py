"""Cast vote records as CSV files with a column for each choice at each rank: Dominion's and Clear Ballot's.

Cells are 1 (marked), 0 or blank (the contest is not on that ballot).

*Dominion*, recognised by ``CvrNumber`` at the start of one of its first lines. The two lines above say the contest and
the choice of each column:

    Election, 5.13.17.1
    ,,,,"Mayor (Number of positions=1, Number of ranks=2)", …
    ,,,,Ann(1),Bob(1),Ann(2),Bob(2)
    CvrNumber,TabulatorNum,BatchId,RecordId, …
    1,101,1,1,1,0,0,1

*Clear Ballot*, recognised by such columns on the first line (contest, rank, seats, choice, party):

    RowNumber,BoxID, … ,Choice_1_1:Mayor:1:Vote For 1:Ann:NON,Choice_2_1:Mayor:1:Vote For 1:Bob:NON, …
    1,B-1, … ,1,0, …
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np

from rankdp.data.cells import encode
from rankdp.data.formats.cast_records import Contest, Marks
from rankdp.data.formats.csv import CsvFile
from rankdp.data.formats.texts import bare_suffix, not_utf8, opened
from rankdp.errors import InputError

_HEAD_LINES = 8
_CONTEST = re.compile(r"(?P<name>.*?)\s*\((?:Vote For|Number of positions)\s*=\s*(?P<seats>[0-9]+)[^()]*\)\s*")
_RANKED = re.compile(r"(?P<name>.*)\((?P<rank>[0-9]{1,3})\)\s*")
_CLEAR = re.compile(
    r"Choice_[0-9]+_[0-9]+:(?P<contest>.*?)(?::(?P<rank>[0-9]{1,3}))?:(?:Vote For|Number of Winners) "
    r"(?P<seats>[0-9]{1,3}):(?P<name>.*):[^:]*"
)


def is_marked_csv(path: str) -> bool:
    """Whether a file holds such records."""
    if bare_suffix(path) not in (".csv", ".txt") or not Path(path).is_file():
        return False
    with opened(path) as file:
        heads = [file.readline(1 << 22) for _ in range(_HEAD_LINES)]
    return (b"Choice_" in heads[0] and b"RowNumber" in heads[0][:20]) or any(
        line.lstrip(b'="').startswith(b"CvrNumber") for line in heads[1:]
    )


class MarkedCsv:
    """A CSV file of records."""

    items_from_data = False

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
        self._contests: dict[str, Contest] = {}
        clear = any(_CLEAR.fullmatch(cell) for cell in rows[0])
        head = 0 if clear else next((at for at, row in enumerate(rows) if row and _plain(row[0]) == "CvrNumber"), 0)
        if not clear and (head < 2 or len(rows) < head + 2):
            raise InputError(f"{path}: cast vote records have the contests and choices above CvrNumber, and rows below")
        self._width, self._heads = len(rows[min(head + 1, len(rows) - 1)]), head + 1
        for column, cell in enumerate(rows[0] if clear else ()):
            if match := _CLEAR.fullmatch(cell):
                self._add(match["contest"], match["contest"], int(match["seats"]), match["rank"], match["name"], column)
        for column, (title, choice) in enumerate(() if clear else zip(rows[head - 2], rows[head - 1], strict=False)):
            if title.strip() and column < self._width:
                match = _CONTEST.fullmatch(title)
                name, seats = (match["name"], int(match["seats"])) if match else (title.strip(), 1)
                ranked = _RANKED.fullmatch(choice) if "Number of ranks" in title else None
                rank, said = (ranked["rank"], ranked["name"]) if ranked else (None, choice)
                self._add(title, name, seats, rank, said, column)
        self.contests = list(self._contests.values())

    def _add(self, title: str, name: str, seats: int, rank: str | None, choice: str, column: int) -> None:
        """One more column: a choice of a contest, at a rank if it has ranks."""
        own = self._contests.setdefault(title, Contest(name, seats, rank is not None))
        if (rank is not None) != own.ranked:
            raise InputError(
                f"{self.path}, column {column + 1}: {choice!r} has no rank, and others of its contest do"
                if own.ranked
                else f"{self.path}, column {column + 1}: {choice!r} has a rank, and others of its contest have none"
            )
        own.places[column] = int(rank or 0), own.choice(_plain(choice))

    def marks(self, contest: Contest) -> Counter[Marks]:
        """The distinct sets of marks for a contest, and how many ballots have each."""
        columns = list(contest.places)
        names = [str(column) for column in range(self._width)]
        text = CsvFile(self.path, names, heads=self._heads)
        found: Counter[Marks] = Counter()
        start = 0
        for batch in text.batches([str(column) for column in columns]):
            marked = np.zeros((batch.num_rows, len(columns)), np.bool_)
            there = np.zeros(batch.num_rows, np.bool_)
            for at, column in enumerate(columns):
                cells = encode(batch.column(str(column)))
                meaning = [{"1": 1, "0": 0, "": 2}.get(_plain(str(value)), -1) for value in cells.values]
                values = np.array([*meaning, 2], np.int8)[cells.codes]
                if (values < 0).any():
                    row = int(np.argmax(values < 0))
                    bad = cells.values[cells.codes[row]]
                    raise InputError(f"{text.where(start + row)}: a mark must be 1, 0 or blank, got {bad!r}")
                marked[:, at] = values == 1
                there |= values < 2
            distinct, counts = np.unique(np.packbits(marked[there], axis=1), axis=0, return_counts=True)
            for row, count in zip(np.unpackbits(distinct, axis=1).tolist(), counts.tolist(), strict=True):
                found[tuple(contest.places[column] for column, mark in zip(columns, row, strict=False) if mark)] += (
                    count
                )
            start += batch.num_rows
        return found


def _plain(cell: str) -> str:
    """A cell without what spreadsheets are made to see: ="3" says 3."""
    return cell.strip().removeprefix("=").strip('"').strip()
