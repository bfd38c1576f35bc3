"""Which column is which: the names people give to voters, items and ranks, recognised and told.

Wide tables have one row per voter and the columns `rank_1, rank_2, …` (or `rank1, rank2, …`); long tables
have one row per voter and item, with the columns voter, item and rank. Everything else is ignored, and listed
as ignored, so that a caller can say so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rankdp.errors import InputError, Setting

_WHO = ("respondent", "person", "participant", "subject", "judge", "rater", "annotator", "worker")
_WHAT = ("ballot", "race", "session")
VOTER_NAMES = (
    *(f"{who}{end}" for who in ("voter", "user") for end in ("", "_id", "id")),
    *(f"{who}{end}" for who in (*_WHO, *_WHAT) for end in ("", "_id")),
    "id",
)
ITEM_NAMES = (
    "item",
    "item_id",
    "itemid",
    "item_name",
    "alternative",
    "candidate",
    "option",
    "choice",
    "object",
    "product",
)
RANK_NAMES = ("rank", "ranking", "position", "place")

SCORED_NAMES = ("item", "name", "id", "item_name", "item_id", "candidate", "model", "player", "product")
SCORE_NAMES = ("score", "value", "rating", "points")

_RANK = re.compile(r"rank[ _.-]?(\d{1,9})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Columns:
    """What a header was taken to mean."""

    layout: Literal["wide", "long"]
    voter: str | None
    ranks: tuple[str, ...]
    """Wide: the columns from the first rank to the last. Long: the item column and the rank column."""
    epsilon: str | None
    ignored: tuple[str, ...]
    offset: str | None = None

    @property
    def used(self) -> list[str]:
        """The columns that are read."""
        return [name for name in (self.voter, *self.ranks, self.epsilon, self.offset) if name is not None]


def recognise(
    names: Sequence[str],
    what: str,
    voter_column: str | None = None,
    epsilon_column: str | None = None,
    offset_column: str | None = None,
) -> Columns:
    """Find the voter, rank, item, epsilon and offset columns of a table, or say in one sentence what is missing."""
    check_names(names, what, voter_column=voter_column, epsilon_column=epsilon_column, offset_column=offset_column)
    stated = {epsilon_column, offset_column}
    voter = voter_column if voter_column is not None else first_known(names, VOTER_NAMES, stated)
    taken = {voter, *stated}
    ranks = _rank_columns([name for name in names if name not in taken], what)
    layout: Literal["wide", "long"] = "wide"
    if not ranks:
        layout, ranks = "long", _long_columns(names, what, voter, taken)
    used = {*taken, *ranks}
    ignored = tuple(name for name in names if name not in used)
    return Columns(layout, voter, ranks, epsilon_column, ignored, offset_column)


def recognise_scores(
    names: Sequence[str], what: str, item_column: str | None = None, score_column: str | None = None
) -> tuple[str, str]:
    """The item column and the score column of a table of scores, or one sentence that says what is missing."""
    check_names(names, what)
    chosen = []
    for role, asked, known in (("item", item_column, SCORED_NAMES), ("score", score_column, SCORE_NAMES)):
        column = asked if asked is not None else first_known(names, known, set())
        if column is None or column not in names:
            hint = f"is {asked!r}" if asked is not None else f"must be given (or be called {', '.join(known[:3])})"
            raise InputError(
                f"{what}: ", Setting(f"{role}_column"), f" {hint}, and the columns are {listed_names(names)}"
            )
        chosen.append(column)
    if chosen[0] == chosen[1]:
        raise InputError(
            f"{what}: ",
            Setting("item_column"),
            " and ",
            Setting("score_column"),
            f" must be two columns, got {chosen[0]!r} for both",
        )
    return chosen[0], chosen[1]


def check_names(names: Sequence[str], what: str, **asked: str | None) -> None:
    """Refuse a table in which two columns have one name, or that lacks a column the caller asked for."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InputError(f"{what}: two columns are called {name!r}")
    for option, column in asked.items():
        if column is not None and column not in names:
            raise InputError(f"{what}: ", Setting(option), f" is {column!r}, but the columns are {listed_names(names)}")


def _rank_columns(names: Sequence[str], what: str) -> tuple[str, ...]:
    found: dict[int, str] = {}
    for name in names:
        match = _RANK.fullmatch(name.strip())
        if match is None:
            continue
        rank = int(match[1])
        if rank in found:
            raise InputError(f"{what}: the columns {found[rank]!r} and {name!r} both hold rank {rank}")
        found[rank] = name
    for expected, rank in enumerate(sorted(found), 1):
        if rank == 0:
            raise InputError(f"{what}: the rank columns must start at rank_1, got {found[0]!r}")
        if rank != expected:
            raise InputError(f"{what}: there is a column {found[rank]!r} but none for rank {expected}")
    return tuple(found[rank] for rank in sorted(found))


def _long_columns(names: Sequence[str], what: str, voter: str | None, taken: set[str | None]) -> tuple[str, str]:
    item = first_known(names, ITEM_NAMES, taken)
    rank = first_known(names, RANK_NAMES, taken)
    if item is None or rank is None or voter is None:
        raise InputError(
            f"{what}: rankings need the columns voter, rank_1, rank_2, … (one row per voter) "
            f"or voter, item, rank (one row per listed item); the columns are {listed_names(names)}"
        )
    return item, rank


def first_known(names: Sequence[str], known: Sequence[str], taken: set[str | None]) -> str | None:
    """The column whose name comes first in the list of known names, whatever its case."""
    present = {re.sub(r"[ .-]", "_", name.strip().lower()): name for name in reversed(names) if name not in taken}
    return next((present[name] for name in known if name in present), None)


def listed_names(names: Sequence[str]) -> str:
    """Column names for a message, on one line and not too many."""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "") if shown else "none"
