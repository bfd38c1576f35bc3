"""Files in formats made for ballots: election files and cast vote records.

| format | recognised by |
|---|---|
| PrefLib, BLT | the ending |
| NIST's common data format, JSON or XML | ``CastVoteRecordReport`` |
| Dominion's JSON, a directory or .zip file | its manifests |
| Hart's XML, a directory or .zip file | ``Cvr``, the root of its first file |
| Dominion's and Clear Ballot's CSV | their headers |
| Scottish wards as CSV | two numbers on the first line, and ``Candidate 1`` |

Every other file is a table (``rankdp.data.ballot_tables``), also the spreadsheets of ES&S and Unisyn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rankdp.data.files import COUNTED
from rankdp.data.formats.cast_records import Records, counted_marks
from rankdp.data.formats.common_data import counted_records, is_common_data
from rankdp.data.formats.dominion import Dominion, is_dominion
from rankdp.data.formats.hart import Hart, is_hart
from rankdp.data.formats.marked_csv import MarkedCsv, is_marked_csv
from rankdp.data.formats.preflib import counted_orders
from rankdp.data.formats.scottish import counted_ward, is_scottish
from rankdp.data.formats.texts import bare_suffix, known_encoding
from rankdp.data.orders import CountedOrders
from rankdp.data.tables import a_file
from rankdp.errors import InputError, Setting

BallotFormat = Literal["election", "common", "dominion", "hart", "marks", "ward"]

_RECORDS: dict[str, Callable[[str], Records]] = {"dominion": Dominion, "hart": Hart, "marks": MarkedCsv}


def ballot_format(path: str) -> BallotFormat | None:
    """The format of a file or directory that holds ballots; None for a table."""
    if bare_suffix(path).removeprefix(".") in COUNTED:
        return "election"
    if is_common_data(path):
        return "common"
    if is_dominion(path):
        return "dominion"
    if is_hart(path):
        return "hart"
    if is_marked_csv(path):
        return "marks"
    return "ward" if is_scottish(path) else None


def counted_ballots(path: str, held: BallotFormat, contest: str | None, encoding: str | None = None) -> CountedOrders:
    """The candidates of a contest, its distinct ballots with their counts, and what was done with them."""
    if encoding is not None:
        if held not in ("election", "ward"):
            raise InputError(f"{path}: ", Setting("encoding"), " is for tables, BLT and PrefLib files")
        encoding = known_encoding(encoding)
    if contest is not None and held in ("election", "ward"):
        raise only_records(path)
    if held == "common":
        return counted_records(path, contest)
    if held in _RECORDS:
        return counted_marks(_RECORDS[held](path), contest)
    if held == "ward":
        return counted_ward(path, encoding)
    with a_file(path, "ballots"):
        return counted_orders(path, bare_suffix(path).removeprefix("."), None, ballots=True, encoding=encoding)


def only_records(path: str) -> InputError:
    """The sentence that refuses a contest's name where there is one contest only."""
    return InputError(f"{path}: ", Setting("contest"), " is for cast vote records that hold several contests")
