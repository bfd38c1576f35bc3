"""Which column is which: the names people give to voters, items, ranks and votes, recognised and told.

This module lists all patterns as data. A table of rankings is

- *wide*: one row per voter, a column per place that holds an item (``WIDE``);
- *ranked*: one row per voter, a column per item that holds its rank (``RANKED``);
- *long*: one row per voter and item, with the columns voter, item and rank, or rating: the higher the better, equal
  ratings of one voter being ties.

``layout="ranks"`` says that a table has one column of ranks per item, where the column names do not show it: all
columns except voter, epsilon and offset are items then. Where a public list of items is given and each has a column,
these are the items' columns.

``VOTES`` are the columns of a comparison; `rankdp.data.vote_columns` says what their cells mean. Everything else is
ignored, and listed as ignored, so that a caller can say so. ``columns={"rank_1": "Q7"}`` gives a column of the table
one of the names below before anything is recognised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rankdp.checks import one_of
from rankdp.data.cells import Kind
from rankdp.errors import InputError, Setting

_WHO = ("respondent", "person", "participant", "subject", "judge", "rater", "annotator", "worker")
_WHAT = ("ballot", "race", "session", "response")
VOTER_NAMES = (
    *(f"{who}{end}" for who in ("voter", "user") for end in ("", "_id", "id")),
    *(f"{who}{end}" for who in (*_WHO, *_WHAT) for end in ("", "_id")),
    *("responseid", "cast_vote_record", "recordid", "cvr_number"),
    "id",
)
ITEM_NAMES = (
    *("item", "item_id", "itemid", "item_name", "alternative"),
    *("candidate", "option", "choice", "object", "product"),
)
RANK_NAMES = ("rank", "ranking", "position", "place", "tier")
RATING_NAMES = ("rating", "stars", "score", "grade")

SCORED_NAMES = ("item", "name", "id", "item_name", "item_id", "candidate", "model", "player", "product")
SCORE_NAMES = ("score", "value", "rating", "points")

_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PLACE = rf"(?:#?(?P<rank>[0-9]{{1,9}})(?:st|nd|rd|th)?|(?P<word>{'|'.join((*_WORDS, *_NUMBERS))}))"
_CHOICE = r"(?:choice|preference|pref|ranking|ranked|rank|place|position|selection|vote)"

WIDE = {
    "rank_1, rank_2, …": rf"rank[ _.-]?{_PLACE}",
    "Choice 1, Choice 2, …": rf"{_CHOICE}[ _.-]?{_PLACE}(?: of [0-9]+)?",
    "1st, 2nd, … or First choice, …": rf"{_PLACE}[ _.-]{_CHOICE}|[0-9]+(?:st|nd|rd|th)|{'|'.join(_WORDS)}",
    "1, 2, 3, …": r"[0-9]{1,9}",
    "Question [1], Question [Rank 2], … (LimeSurvey), Question [1st choice], … (Google Forms)": (
        rf"(?P<before>.*)\[(?:{_CHOICE}[ _.-]?)?{_PLACE}(?:[ _.-]{_CHOICE})?\]"
    ),
    "Mayor Choice 1 of 5 Citywide, … (cast vote records)": (
        rf"(?P<before>.+?)[ _]{_CHOICE}[ _]?{_PLACE}(?: of [0-9]+)?(?P<after>\b.*)"
    ),
    "1st Choice Mayor, … (cast vote records)": rf"(?P<before>.*?){_PLACE}[ _]{_CHOICE}\b(?P<after>.*)",
}
"""Names of columns that hold the item at a place, in the order in which they are tried; all columns follow one."""
RANKED = {
    "rank of Tea, rank of Milk, …": r"rank of (?P<item>.+)",
    "Question [Tea], Question [Milk], … (Google Forms grids; Qualtrics, from its line of questions)": (
        r"(?P<before>.*\S)\s*\[(?P<item>[^\[\]]*[^\[\]\s])\s*\]"
    ),
    "rank_tea, rank_milk, …": r"rank_(?P<item>[^\W\d].*)",
    "tea_rank, milk_rank, …": r"(?P<item>.+)_rank",
}
"""Names of columns that hold the rank of an item: two or more."""
VOTES = {
    "named": (("left", "right", "winner"), ("left", "right", "label"), ("item_x", "item_y", "label")),
    "models": (("model_a", "model_b", "winner"),),
    "numbers": (
        ("item_1", "item_2", "outcome"),
        *((f"{who}{mark}1", f"{who}{mark}2", said) for who in ("player", "item", "team", "option") for mark in ("", "_")
          for said in ("score", "outcome", "result")),
        ("white", "black", "result"),
    ),
    "marked": (
        ("model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie"),
        ("left", "right", "winner_left", "winner_right", "winner_tie"),
    ),
    "won": (("winner", "loser"), ("chosen", "rejected")),
}  # fmt: skip
"""The columns of a comparison, by what they say."""

LAYOUTS = ("auto", "ranks")
"""Whether the names of the columns say what they hold, or all are items with their ranks."""
_LONGEST_NAME = 500
_NUMBERED = re.compile(r"\s*\([0-9]+\)\s*$")  # machines number each column: Mayor Choice 1 (45), Mayor Choice 2 (50)
_CELL = re.compile(rf"(?:{_CHOICE}|#)?\s*{_PLACE}(?:\.0*)?(?:\s*{_CHOICE})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Columns:
    """What a header was taken to mean."""

    layout: Literal["wide", "long", "ranked"]
    ranks: tuple[str, ...]
    """Wide: the columns from the first place to the last. Ranked: the columns of the items. Long: the item column and
    the rank column."""
    voter: str | None = None
    epsilon: str | None = None
    offset: str | None = None
    ignored: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    """Ranked: the items, in the order of their columns."""
    ratings: bool = False
    """Long: whether the second column of ``ranks`` holds ratings, the higher the better."""

    @property
    def used(self) -> list[str]:
        """The columns that are read."""
        return [name for name in (self.voter, *self.ranks, self.epsilon, self.offset) if name is not None]

    def notes(self, what: str) -> tuple[str, ...]:
        """What whoever holds the table should know about how it is read."""
        if not self.ratings:
            return ()
        return (f"{what}: {self.ranks[1]!r} holds ratings: of a voter's items, the one with the highest is first",)


def recognise(
    names: Sequence[str],
    what: str,
    voter_column: str | None = None,
    epsilon_column: str | None = None,
    offset_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    layout: str = "auto",
    items: Sequence[str] = (),
) -> Columns:
    """Find the voter, rank, item, epsilon and offset columns of a table, or say in one sentence what is missing.

    Columns that are called as the public list of ``items`` hold their ranks.
    """
    one_of("layout", layout, LAYOUTS)
    check_names(names, what, voter_column=voter_column, epsilon_column=epsilon_column, offset_column=offset_column)
    real = renamed(names, what, columns)
    shown = {column: name for name, column in real.items()}
    taken = {shown.get(column or "") for column in (voter_column, epsilon_column, offset_column)}
    free = [name for name in real if name not in taken]
    voter = voter_column
    if voter is None and (known := first_known(free, VOTER_NAMES)) is not None:
        voter = real[known]
    free = [name for name in free if real[name] != voter]
    found = _all_items(free, what, items) if layout == "ranks" else None
    found = found or _wide_columns(free, what) or _ranked_columns(free)
    if found is None and items and set(items) <= {name.strip() for name in free}:
        found = _all_items(free, what, items)
    found = found or _long_columns(free, what, voter, names)
    ranks = tuple(real[name] for name in found.ranks)
    used = {voter, epsilon_column, offset_column, *ranks}
    ignored = tuple(name for name in names if name not in used)
    return replace(found, voter=voter, ranks=ranks, epsilon=epsilon_column, ignored=ignored, offset=offset_column)


def renamed(names: Sequence[str], what: str, columns: Mapping[str, str] | None) -> dict[str, str]:
    """The columns of a table by the names under which they are looked for."""
    for name, column in (columns or {}).items():
        if column not in names:
            raise InputError(
                f"{what}: ", Setting("columns"), f" calls {column!r} {name}, but the columns are {listed_names(names)}"
            )
    asked = {column: name for name, column in (columns or {}).items()}
    return {asked.get(name, name): name for name in names if name in asked or name not in (columns or {})}


def recognise_scores(
    names: Sequence[str], what: str, item_column: str | None = None, score_column: str | None = None
) -> tuple[str, str]:
    """The item column and the score column of a table of scores, or one sentence that says what is missing."""
    check_names(names, what)
    chosen = []
    for role, asked, known in (("item", item_column, SCORED_NAMES), ("score", score_column, SCORE_NAMES)):
        column = asked if asked is not None else first_known(names, known)
        if column is None or column not in names:
            missing = f"must be given (no column is called {' or '.join(known[:3])})"
            hint = missing if asked is None else f"is {asked!r}"
            raise InputError(
                f"{what}: ", Setting(f"{role}_column"), f" {hint}, and the columns are {listed_names(names)}"
            )
        chosen.append(column)
    if chosen[0] == chosen[1]:
        both = Setting("item_column"), " and ", Setting("score_column")
        raise InputError(f"{what}: ", *both, f" must be two columns, got {chosen[0]!r} for both")
    return chosen[0], chosen[1]


def check_names(names: Sequence[str], what: str, **asked: str | None) -> None:
    """Refuse a table in which two columns have one name, or that lacks a column the caller asked for."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InputError(f"{what}: two columns are called {name!r}")
    for option, column in asked.items():
        if column is not None and column not in names:
            raise InputError(f"{what}: ", Setting(option), f" is {column!r}, but the columns are {listed_names(names)}")


def refuse_nested(what: str, kinds: Mapping[str, Kind], used: Sequence[str], *more: Kind) -> None:
    """Refuse columns that hold lists or structures, or `more`."""
    for name in used:
        if kinds[name] in ("nested", *more):
            raise InputError(f"{what}: the column {name!r} must hold texts or numbers")


def rank_of(text: str) -> int | None:
    """The rank that a cell says: 2, 2nd, Rank 2, second choice; None where it says none."""
    match = _CELL.fullmatch(text.strip())
    return None if match is None else _rank(match)


def _rank(match: re.Match[str]) -> int:
    groups = match.groupdict()
    if word := groups.get("word"):
        return next(words.index(word.lower()) for words in (_WORDS, _NUMBERS) if word.lower() in words) + 1
    return int(groups.get("rank") or re.sub(r"[^0-9]", "", match[0]) or _WORDS.index(match[0].lower()) + 1)


def _matched(pattern: str, name: str) -> re.Match[str] | None:
    """A column's name against a pattern; nobody calls a column by a text that takes long to match."""
    return re.fullmatch(pattern, name.strip(), re.IGNORECASE) if len(name) <= _LONGEST_NAME else None


def _wide_columns(names: Sequence[str], what: str) -> Columns | None:
    """The columns of places, by the first pattern that some column follows."""
    for pattern in WIDE.values():
        contests: dict[tuple[str, str], dict[int, str]] = {}
        for name in names:
            match = _matched(pattern, name)
            if match is None:
                continue
            groups = match.groupdict()
            found = contests.setdefault((groups.get("before") or "", _NUMBERED.sub("", groups.get("after") or "")), {})
            if (rank := _rank(match)) in found:
                raise InputError(f"{what}: the columns {found[rank]!r} and {name!r} both hold rank {rank}")
            found[rank] = name
        several = "before" in pattern
        lone = pattern == WIDE["1, 2, 3, …"] or several  # a number alone is no proof
        contests = {key: found for key, found in contests.items() if len(found) > 1 or not lone}
        if len(contests) > 1:
            shown = "; ".join(next(iter(found.values())) for found in contests.values())
            raise InputError(
                f"{what}: there are several contests ({shown}): say which columns are meant, rank_1, rank_2, …, by ",
                Setting("columns"),
            )
        for found in contests.values():
            return Columns("wide", _in_order(found, what))
    return None


def _in_order(found: Mapping[int, str], what: str) -> tuple[str, ...]:
    for expected, rank in enumerate(sorted(found), 1):
        if rank == 0:
            raise InputError(f"{what}: the rank columns must start at rank_1, got {found[0]!r}")
        if rank != expected:
            raise InputError(f"{what}: there is a column {found[rank]!r} but none for rank {expected}")
    return tuple(found[rank] for rank in sorted(found))


def _ranked_columns(names: Sequence[str]) -> Columns | None:
    """The columns of items that hold ranks; of several questions the first with two items or more."""
    for pattern in RANKED.values():
        questions: dict[str, dict[str, str]] = {}
        for name in names:
            if match := _matched(pattern, name):
                question = questions.setdefault(match.groupdict().get("before") or "", {})
                question.setdefault(match["item"].strip(), name)
        for found in questions.values():
            if len(found) > 1:
                return Columns("ranked", tuple(found.values()), items=tuple(found))
    return None


def _all_items(names: Sequence[str], what: str, listed: Sequence[str]) -> Columns:
    """Every column as an item, whose rank it holds; with a list of items only theirs, if all have one."""
    if listed and set(listed) <= {name.strip() for name in names}:
        names = [name for name in names if name.strip() in listed]
    items = [name.strip() for name in names]
    if len(items) < 2 or not all(items):
        raise InputError(
            f"{what}: ",
            Setting("layout", "ranks"),
            f" needs a named column for each of at least two items, got {listed_names(names)}",
        )
    return Columns("ranked", tuple(names), items=tuple(items))


def _long_columns(free: Sequence[str], what: str, voter: str | None, names: Sequence[str]) -> Columns:
    item = first_known(free, ITEM_NAMES)
    for known in (RANK_NAMES, RATING_NAMES):
        rank = first_known(free, known)
        if item is not None and rank is not None and voter is not None:
            return Columns("long", (item, rank), ratings=known is RATING_NAMES)
    if vote_style(names):
        raise InputError(f"{what}: these are votes between two items, not rankings: rank makes a leaderboard of them")
    raise InputError(
        f"{what}: rankings need the columns voter, rank_1, rank_2, … (one row per voter) or voter, item, rank (one row "
        f"per listed item), or those named by ",
        Setting("columns"),
        "; if every column is an item and holds its rank, use ",
        Setting("layout", "ranks"),
        f"; the columns are {listed_names(names)}",
    )


def vote_style(names: Sequence[str]) -> tuple[str, list[str]] | None:
    """What the columns of a comparison say and which they are; None if there is no comparison."""
    for style, ways in VOTES.items():
        for way in ways:
            matched = [first_known(names, (column,)) for column in way]
            if all(matched):
                return style, [name for name in matched if name is not None]
    return None


def first_known(names: Sequence[str], known: Sequence[str]) -> str | None:
    """The column whose name comes first in the list of known names, whatever its case."""
    present = {re.sub(r"[ .-]", "_", name.strip().lower()): name for name in reversed(names)}
    return next((present[name] for name in known if name in present), None)


def listed_names(names: Sequence[str]) -> str:
    """Column names for a message, on one line and not too many."""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "") if shown else "none"
