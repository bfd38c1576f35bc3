"""Comparisons: a table of votes, described and not yet counted.

Each row says which of two items somebody preferred, or that they tied. The table stays where it is (a file, a frame,
a table of a database) until it is counted, in process or by the engine that holds it, into exact integers
(half-wins: 2 for a win, 1 to each side for a tie). Four ways to write such a table are recognised by their columns,
and `recognised` says what was understood:

    left, right, winner          winner is left, right or tie, or the winner's name
    winner, loser                no ties
    item_1, item_2, outcome      1: item_1 won, 0: item_2 won, 0.5: a tie, blank: missing
    model_a, model_b, winner     winner is model_a, model_b, tie or both_bad, or the winner's name

The list of items is public and comes from the caller. `items_from_data=True` takes it from the votes and thereby
publishes which items occur.

**Bounding.** `bound(c)` keeps at most c comparisons of each voter: those with the smallest

    md5("<voter>|<pair>|<occurrence>"),   <pair> = "<key of winner>><key of loser>" or, tied, "<key>=<key>" sorted,

where equal comparisons of one voter are numbered 1, 2, … (a weight of w is w of them) and an item's key is the
beginning of the MD5 of a public text and its name. The choice depends on the voter's own comparisons and on nothing
else: not on another voter, not on the order of rows, not on the engine. So for two tables that differ in one voter
- added or removed: the kept comparisons differ by at most c, the half-wins of all pairs (and of all items) by at most
  2c in l1;
- replaced: at most c go and c come, at most 4c half-wins in l1.
The hash serves to choose evenly, not to hide: nothing is promised that rests on MD5 being hard to invert.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankdp.data.columns import ITEM_NAMES, VOTER_NAMES, _first, _listed, _refuse_twins
from rankdp.data.tables import check_item, check_items, natural
from rankdp.errors import InputError, system_problem

if TYPE_CHECKING:
    from rankdp.data.counts import PairCounts

FIRST, SECOND, TIE, NO_OUTCOME, STRANGE_OUTCOME, LEFT_OUT = range(6)
"""What an outcome cell means; `LEFT_OUT` is a both_bad that the caller chose to drop."""

PROBLEMS = (
    "",
    "unknown outcome",
    "bad weight",
    "missing voter",
    "missing item",
    "unknown item",
    "missing outcome",
    "self-comparison",
    "both bad",
)
"""What can be wrong with a row, by number; a row has the first that applies. The last is a choice, not a mistake."""
ALWAYS_REFUSED = (1, 2)
MISSING_OUTCOME = 6
BOTH_BAD = 8

MOST_WEIGHT = 10**9
MOST_BOUNDED_WEIGHT = 10**6
"""Bounding looks at each of a weight's comparisons, so that a table that is bounded takes smaller weights."""

SPACES = " \t\n\r\v\f"
BLANKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-")
WHOLE = r"^[0-9]{1,12}(\.0*)?$"
WEIGHT_NAMES = ("weight", "weights", "count", "multiplicity")
_ROWS_NOT_PEOPLE = {"id", "race", "race_id", "ballot", "ballot_id", "session", "session_id"}
_PEOPLE = tuple(name for name in VOTER_NAMES if name not in _ROWS_NOT_PEOPLE)
_SALT = "rankdp item "

Kind = Literal["text", "whole", "number", "other"]
Problem = Literal["refuse", "drop"]
LongArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Style:
    """One way to write a comparison in columns."""

    columns: tuple[str, ...]
    words: Mapping[str, int] = field(default_factory=dict)
    """Spellings of an outcome, in small letters."""
    named: bool = False
    """Whether an outcome may also be the winner's name."""
    said: str = ""

    @property
    def numbers(self) -> bool:
        """Whether outcomes are numbers."""
        return bool(self.words) and not self.named


_TIES = {"tie": TIE, "draw": TIE}
_BOTH_BAD = dict.fromkeys(("both_bad", "bothbad", "both bad", "tie (bothbad)", "tie (both_bad)"), LEFT_OUT)
_NUMBERS = {FIRST: ("1", "1.0", "1.00"), SECOND: ("0", "0.0", "0.00"), TIE: ("0.5", ".5", "0.50")}

STYLES = (
    Style(
        ("left", "right", "winner"),
        {"left": FIRST, "right": SECOND, **_TIES},
        named=True,
        said="{2!r} says left, right or tie, or names the winner",
    ),
    Style(
        ("model_a", "model_b", "winner"),
        {"model_a": FIRST, "model_b": SECOND, **_TIES, **_BOTH_BAD},
        named=True,
        said="{2!r} says model_a, model_b or tie, or names the winner; both_bad {both_bad}",
    ),
    Style(
        ("item_1", "item_2", "outcome"),
        {spelling: outcome for outcome, spellings in _NUMBERS.items() for spelling in spellings},
        said="{2!r} is 1 if {0!r} won, 0 if {1!r} won, 0.5 for a tie and blank if missing",
    ),
    Style(("winner", "loser"), said="{0!r} won against {1!r}"),
)


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """What the columns of a table of votes were taken to mean."""

    style: Style
    left: str
    right: str
    outcome: str | None
    voter: str | None
    weight: str | None
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How many rows were used, and how many were dropped for which reason. NOT for publication: these are exact
    facts about secret votes, and no noise protects them.
    """

    rows: int
    dropped: Mapping[str, int]
    for_publication: Literal[False] = False

    @property
    def used(self) -> int:
        """The rows that were counted (or bounded)."""
        return self.rows - sum(self.dropped.values())

    def __str__(self) -> str:
        reasons = "".join(f"; {count:,} dropped: {reason}" for reason, count in self.dropped.items())
        return f"{self.rows:,} rows, {self.used:,} used{reasons} (not for publication)"


class Engine(Protocol):
    """What holds the votes and counts them."""

    @property
    def what(self) -> str:
        """The table, in words, for a sentence."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Every column and what it holds."""

    def names(self, columns: VoteColumns) -> set[str]:
        """Every item that occurs."""

    def count(self, votes: Comparisons) -> tuple[PairCounts, Diagnostics]:
        """The counts of all pairs."""

    def half_wins(self, votes: Comparisons) -> tuple[LongArray, Diagnostics]:
        """Each item's half-wins."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparisons:
    """Votes between pairs of items, where they are and how to read them. Made by `read`, `from_frame`, `from_table`."""

    items: tuple[str, ...]
    columns: VoteColumns
    engine: Engine
    items_from_data: bool
    """True if the list of items was taken from the votes, which makes public which items occur."""
    both_bad: Literal["tie", "drop"]
    on_problem: Problem
    per_voter: int | None = None
    """The most comparisons kept of one voter; None for all."""
    outcomes_required: bool = False
    """True if a missing outcome is refused even where other problems are dropped."""

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        items_from_data: bool = False,
        voter_column: str | None = None,
        weight_column: str | None = None,
        both_bad: Literal["tie", "drop"] = "tie",
        on_problem: Problem = "refuse",
        table: str | None = None,
        engine: Any = "auto",
    ) -> Self:
        """Votes in CSV or Parquet files (a path or a pattern like ``votes-*.parquet``) or in a table of a DuckDB file.

        `items` is the public list, or a file with one name per line (or a CSV file with a column `item`).
        `on_problem="drop"` leaves out rows with a self-comparison, an unknown or missing item, a missing outcome or
        (when bounding) a missing voter; "refuse" stops at the first. Unknown outcomes and bad weights are always
        refused. `engine` is "auto", "process", "duckdb" or an Ibis backend.
        """
        source = os.fspath(path)
        if source.endswith((".duckdb", ".ddb")) or table is not None:
            from rankdp.data.engines import duckdb_file

            held: Engine = duckdb_file(source, table)
        elif engine in ("auto", "process"):
            from rankdp.data.counting import open_files

            held = open_files(source)
        else:
            from rankdp.data.engines import files_on

            held = files_on(source, engine)
        return cls._on(held, items, items_from_data, voter_column, weight_column, both_bad, on_problem)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        items_from_data: bool = False,
        voter_column: str | None = None,
        weight_column: str | None = None,
        both_bad: Literal["tie", "drop"] = "tie",
        on_problem: Problem = "refuse",
        engine: Any = "auto",
    ) -> Self:
        """Votes in a pandas, Polars or PyArrow table, in a DuckDB relation or in any other Arrow-compatible frame."""
        if engine in ("auto", "process"):
            from rankdp.data.counting import open_frame

            held: Engine = open_frame(frame)
        else:
            from rankdp.data.engines import frame_on

            held = frame_on(frame, engine)
        return cls._on(held, items, items_from_data, voter_column, weight_column, both_bad, on_problem)

    @classmethod
    def from_table(
        cls,
        source: Any,
        table: str | None = None,
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        items_from_data: bool = False,
        voter_column: str | None = None,
        weight_column: str | None = None,
        both_bad: Literal["tie", "drop"] = "tie",
        on_problem: Problem = "refuse",
    ) -> Self:
        """Votes in an Ibis table expression, or in the table called `table` of an Ibis or DuckDB connection."""
        from rankdp.data.engines import open_table

        held = open_table(source, table)
        return cls._on(held, items, items_from_data, voter_column, weight_column, both_bad, on_problem)

    @classmethod
    def of(cls, source: Any, **options: Any) -> Self:
        """Votes from whatever holds them: a path, a frame, an Ibis table; the options are those of the way taken."""
        if isinstance(source, cls):
            if options:
                raise InputError(f"these votes are open already: {', '.join(options)} cannot be given again")
            return source
        if isinstance(source, (str, os.PathLike)):
            return cls.read(source, **options)
        if type(source).__module__.partition(".")[0] == "ibis" or "table" in options:
            return cls.from_table(source, **options)
        return cls.from_frame(source, **options)

    @classmethod
    def _on(
        cls,
        engine: Engine,
        items: Iterable[Any] | str | os.PathLike[str] | None,
        items_from_data: bool,
        voter_column: str | None,
        weight_column: str | None,
        both_bad: Literal["tie", "drop"],
        on_problem: Problem,
    ) -> Self:
        _one_of("both_bad", both_bad, ("tie", "drop"))
        _one_of("on_problem", on_problem, ("refuse", "drop"))
        columns = recognise_votes(engine.kinds, engine.what, voter_column, weight_column)
        if (items is None) == (not items_from_data):
            raise InputError(
                "items must list the public items, or items_from_data=True must say that the items that occur may be "
                f"made public; got {'neither' if items is None else 'both'}"
            )
        names = _from_data(engine, columns) if items is None else check_items(listed_items(items))
        if columns.style.named:
            words = columns.style.words
            if word := next((name for name in names if name.lower() in words), None):
                raise InputError(
                    f"{engine.what}: an item is called {word!r}, which as an outcome would be ambiguous; "
                    "rename it, or use the columns item_1, item_2, outcome"
                )
        return cls(names, columns, engine, items_from_data, both_bad, on_problem)

    @property
    def recognised(self) -> str:
        """What the columns were taken to mean, in a sentence or two; it says nothing about the rows."""
        columns = self.columns
        named = tuple(name for name in (columns.left, columns.right, columns.outcome) if name is not None)
        bad = "counts as a tie" if self.both_bad == "tie" else "is dropped"
        parts = [columns.style.said.format(*named, both_bad=bad)]
        if columns.voter is not None:
            parts.append(f"{columns.voter!r} is the voter")
        if columns.weight is not None:
            parts.append(f"{columns.weight!r} says how many equal comparisons a row stands for")
        if columns.ignored:
            parts.append(f"ignored: {_listed(columns.ignored)}")
        text = f"{self.engine.what}: {'; '.join(parts)}."
        if self.items_from_data:
            text += f" The list of {len(self.items)} items was taken from the votes, which makes it public."
        return text

    def bound(self, c: int) -> Self:
        """The same votes with at most `c` comparisons of each voter (see the module for which, and what it gives)."""
        if isinstance(c, bool) or not isinstance(c, (int, np.integer)) or c < 1:
            raise InputError(f"c, the most comparisons of one voter, must be a whole number of at least 1, got {c!r}")
        if self.columns.voter is None:
            raise InputError(
                f"{self.engine.what}: no column holds the voter, so that contributions cannot be bounded; "
                "name it with voter_column"
            )
        return replace(self, per_voter=min(int(c), self.per_voter or int(c)))

    @property
    def drops(self) -> bool:
        """Whether rows may be left out, so that how many are counted depends on what they say."""
        return self.on_problem == "drop" or self.drops_both_bad

    @property
    def drops_both_bad(self) -> bool:
        """Whether rows are left out because of their outcome."""
        return self.both_bad == "drop" and LEFT_OUT in self.columns.style.words.values()

    def requiring_outcomes(self) -> Self:
        """The same votes, with a missing outcome refused whatever `on_problem` says."""
        return replace(self, outcomes_required=True)

    def count(self) -> PairCounts:
        """Half-wins of every pair that was compared."""
        return self.engine.count(self)[0]

    def half_wins(self) -> LongArray:
        """Each item's half-wins, in the order of `items`."""
        return self.engine.half_wins(self)[0]

    def diagnostics(self) -> Diagnostics:
        """Rows used and dropped, by reason. Computed from the secret votes and NOT for publication."""
        return self.engine.half_wins(self)[1]

    def __repr__(self) -> str:
        bounded = "" if self.per_voter is None else f", at most {self.per_voter} per voter"
        return f"Comparisons({self.engine.what}: {len(self.items)} items{bounded})"


def recognise_votes(
    kinds: Mapping[str, Kind], what: str, voter_column: str | None = None, weight_column: str | None = None
) -> VoteColumns:
    """Find the columns of a comparison, of the voter and of the weight, or say in one sentence what is missing."""
    names = list(kinds)
    _refuse_twins(names, what)
    for option, name in (("voter_column", voter_column), ("weight_column", weight_column)):
        if name is not None and name not in names:
            raise InputError(f"{what}: {option} is {name!r}, but the columns are {_listed(names)}")
    taken = {voter_column, weight_column}
    for style in STYLES:
        found = [_first(names, (column,), taken) for column in style.columns]
        if all(found):
            break
    else:
        ways = "; ".join(", ".join(style.columns) for style in STYLES)
        raise InputError(f"{what}: comparisons need the columns {ways}; the columns are {_listed(names)}")
    used = {*found, *taken}
    voter = voter_column if voter_column is not None else _first(names, _PEOPLE, used)
    weight = weight_column if weight_column is not None else _first(names, WEIGHT_NAMES, {*used, voter})
    left, right, *rest = (name for name in found if name is not None)
    outcome = rest[0] if rest else None
    for name in (left, right, outcome, voter, weight):
        if name is not None and kinds[name] == "other":
            raise InputError(f"{what}: the column {name!r} must hold texts or numbers")
    ignored = tuple(name for name in names if name not in {left, right, outcome, voter, weight})
    return VoteColumns(style, left, right, outcome, voter, weight, ignored)


def text_of(value: Any) -> str | None:
    """What a cell says, without spaces around it; whole numbers are written without a point, nothing is None."""
    if value is None or value != value:
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.strip(SPACES)
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if abs(value) < 2**64 and value == int(value) else repr(float(value))


def item_keys(items: Sequence[str]) -> list[str]:
    """A short public text for each item, all of one length and all different, by which bounding knows it."""
    digests = [hashlib.md5((_SALT + name).encode(), usedforsecurity=False).hexdigest() for name in items]
    digits = 12 if len({digest[:12] for digest in digests}) == len(items) else 32
    return [digest[:digits] for digest in digests]


def is_weight(text: str, most: int) -> bool:
    """Whether a text is a whole number from 0 to `most`."""
    return re.fullmatch(WHOLE, text) is not None and int(float(text)) <= most


def refusal(votes: Comparisons, problem: int, cells: Mapping[str, Any], where: str) -> InputError:
    """The sentence for a row that breaks a rule, from its cells."""
    columns = votes.columns
    left, right = (text_of(cells[name]) for name in (columns.left, columns.right))
    name = PROBLEMS[problem]
    if name == "unknown outcome":
        spelled = [*columns.style.words, *(["the name of one of the two items"] if columns.style.named else [])]
        rule = f"{columns.outcome!r} must be {_or(spelled)}, got {cells[columns.outcome or '']!r}"
        return InputError(f"{where}: {rule}")
    if name == "bad weight":
        most = weight_limit(votes)
        rule = f"{columns.weight!r} must be a whole number from 0 to {most:,}, got {cells[columns.weight or '']!r}"
        return InputError(f"{where}: {rule}")
    if name == "missing voter":
        said = f"{columns.voter!r} is blank, and contributions can only be bounded when every row names its voter"
    elif name == "missing item":
        said = f"{columns.left if is_blank(left, votes.items) else columns.right!r} is blank"
    elif name == "unknown item":
        stranger = left if left not in votes.items else right
        said = f"{stranger!r} is not one of the {len(votes.items)} items given"
    elif name == "missing outcome":
        said = f"{columns.outcome!r} is blank"
        if votes.outcomes_required:
            return InputError(
                f"{where}: {said}, and leaving such rows out would make public which outcomes are missing, which "
                "protect='outcome' counts as secret: use protect='comparison' or protect='voter'"
            )
    else:
        said = f"{left!r} is compared with itself"
    return InputError(f'{where}: {said} (on_problem="drop" leaves such rows out)')


def is_blank(text: str | None, items: Iterable[str] = ()) -> bool:
    """Whether a cell's text means that nothing is there; a name in `items` is an item however it is spelled."""
    return text is None or (text in BLANKS and text not in items)


def weight_limit(votes: Comparisons) -> int:
    """The largest weight of one row."""
    return MOST_WEIGHT if votes.per_voter is None else MOST_BOUNDED_WEIGHT


def refused(votes: Comparisons) -> tuple[int, ...]:
    """The problems that stop the counting."""
    if votes.on_problem == "refuse":
        return tuple(range(1, BOTH_BAD))
    return (*ALWAYS_REFUSED, MISSING_OUTCOME) if votes.outcomes_required else ALWAYS_REFUSED


def diagnose(problems: Sequence[int], rows: int) -> Diagnostics:
    """The counts of each problem, named."""
    return Diagnostics(rows, {PROBLEMS[kind]: int(n) for kind, n in enumerate(problems) if kind and n})


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be {_or([repr(choice) for choice in choices])}, got {value!r}")


def _from_data(engine: Engine, columns: VoteColumns) -> tuple[str, ...]:
    names = sorted((name for name in engine.names(columns) if not is_blank(name)), key=natural)
    for name in names:
        check_item(name, lambda: f"{engine.what}: an item")
    if not names:
        raise InputError(f"{engine.what}: there are no items in the votes")
    return tuple(names)


def listed_items(items: Iterable[Any] | str | os.PathLike[str]) -> Iterable[Any]:
    """The list as given, or the lines of a file: one name each, or the column `item` of a CSV file."""
    if not isinstance(items, (str, os.PathLike)):
        return items
    path = os.fspath(items)
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise system_problem(path, error, "read") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the text is not valid UTF-8") from None
    if path.endswith(".csv"):
        header, *records = csv.reader(io.StringIO(text)) or [[]]
        column = _first(header, ITEM_NAMES, set())
        if column is None:
            raise InputError(f"{path}: a list of items needs the column item; the columns are {_listed(header)}")
        at = header.index(column)
        return [record[at].strip() for record in records if len(record) > at and record[at].strip()]
    return [line.strip() for line in text.splitlines() if line.strip()]
