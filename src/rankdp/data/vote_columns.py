"""What a row of votes says: its columns, its outcome, its problems, and the sentence that refuses it.

Five ways to write a comparison are recognised by their columns (`rankdp.data.columns.VOTES`):

    left, right, winner          winner is left, right or tie, or the winner's name; also label; item_x, item_y, label
    winner, loser                no ties; also chosen, rejected
    item_1, item_2, outcome      1: item_1 won, 0: item_2 won, 0.5: a tie, blank: missing; also player1, player2, score
    model_a, model_b, winner     winner is model_a, model_b, tie or both_bad, or the winner's name
    model_a, model_b, winner_model_a, winner_model_b, winner_tie     one of the three is 1, the others are 0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from rankdp.data.cells import MISSING, Kind
from rankdp.data.columns import (
    VOTER_NAMES,
    VOTES,
    check_names,
    first_known,
    listed_names,
    recognise,
    refuse_nested,
    renamed,
    vote_style,
)
from rankdp.data.tables import Table
from rankdp.errors import InputError, Setting

FIRST, SECOND, TIE, NO_OUTCOME, STRANGE_OUTCOME, LEFT_OUT = range(6)
"""What an outcome cell means; `LEFT_OUT` is a both_bad that the caller chose to drop."""


class Problem(IntEnum):
    """What can be wrong with a row. The last two are choices, not mistakes."""

    NONE = 0
    UNKNOWN_OUTCOME = 1
    BAD_WEIGHT = 2
    MISSING_VOTER = 3
    MISSING_ITEM = 4
    UNKNOWN_ITEM = 5
    MISSING_OUTCOME = 6
    SELF_COMPARISON = 7
    BOTH_BAD = 8
    ANOTHER_CATEGORY = 9

    def __str__(self) -> str:
        return "self-comparison" if self is Problem.SELF_COMPARISON else self.name.lower().replace("_", " ")


_ALWAYS_REFUSED = {Problem.UNKNOWN_OUTCOME, Problem.BAD_WEIGHT}
MOST_WEIGHT = 10**9
"""The largest weight of one row."""

WHOLE = r"^[0-9]{1,12}(\.0*)?$"
WEIGHT_NAMES = (
    *("weight", "weights", "count", "counts", "multiplicity", "freq", "frequency"),
    *("ballots", "number_of_ballots"),
)
BALLOT_NAMES = ("ballot", "ballot_id", "cast_vote_record", "recordid", "cvr_number")
"""Columns that number ballots, which may start again in each precinct or batch."""
ROWS_NOT_PEOPLE = ("id", "race", "race_id", "ballot", "ballot_id", "session", "session_id")
_PEOPLE = tuple(name for name in VOTER_NAMES if name not in ROWS_NOT_PEOPLE)

BothBad = Literal["tie", "drop"]
OnProblem = Literal["refuse", "drop"]


@dataclass(frozen=True, slots=True)
class Style:
    """What the cells of a comparison say."""

    words: Mapping[str, int] = field(default_factory=dict)
    """Spellings of an outcome, in small letters."""
    named: bool = False
    """Whether an outcome may also be the winner's name."""
    said: str = ""


_TIES = {"tie": TIE, "draw": TIE}
_BOTH_BAD = dict.fromkeys(("both_bad", "bothbad", "both bad", "tie (bothbad)", "tie (both_bad)"), LEFT_OUT)
_NUMBERS = {
    FIRST: ("1", "1.0", "1.00", "1-0"),
    SECOND: ("0", "0.0", "0.00", "0-1"),
    TIE: ("0.5", ".5", "0.50", "1/2-1/2", "½-½"),
}
MARKED, UNMARKED = ("1", "1.0", "true"), ("0", "0.0", "false")
"""How a column of "winner_model_a" and the like says yes and no, in small letters; blank is no."""

STYLES = {
    "named": Style(
        {"left": FIRST, "right": SECOND, **_TIES}, named=True, said="{2!r} says left, right or tie, or names the winner"
    ),
    "models": Style(
        {"model_a": FIRST, "model_b": SECOND, **_TIES, **_BOTH_BAD},
        named=True,
        said="{2!r} says model_a, model_b or tie, or names the winner; both_bad {both_bad}",
    ),
    "numbers": Style(
        {spelling: outcome for outcome, spellings in _NUMBERS.items() for spelling in spellings},
        said="{2!r} is 1 if {0!r} won, 0 if {1!r} won, 0.5 for a tie and blank if missing",
    ),
    "marked": Style(said="{2!r}, {3!r} or {4!r} is 1: {0!r} won, {1!r} won, or a tie"),
    "won": Style(said="{0!r} won against {1!r}"),
}


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
    marks: tuple[str, ...] = ()
    """Three columns of which one is 1: the left one won, the right one won, a tie."""
    category: str | None = None
    """The column that says which of several leaderboards a row is for."""

    @property
    def told(self) -> tuple[str, ...]:
        """The columns of the comparison itself."""
        return tuple(name for name in (self.left, self.right, self.outcome, *self.marks) if name is not None)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How many rows were used, and how many were dropped for which reason. NOT for publication: these are exact
    facts about secret votes, and no noise protects them.
    """

    rows: int
    dropped: Mapping[str, int]

    @property
    def used(self) -> int:
        """The rows that were counted."""
        return self.rows - sum(self.dropped.values())

    def __str__(self) -> str:
        reasons = "".join(f"; {count:,} dropped: {reason}" for reason, count in self.dropped.items())
        return f"{self.rows:,} rows, {self.used:,} used{reasons} (not for publication)"


@dataclass(frozen=True, slots=True)
class BadRows:
    """The rows that break one rule: how many there are, and the cells and the place of the first."""

    problem: Problem
    rows: int
    cells: Mapping[str, Any]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VoteRules:
    """A table of votes and how its rows are counted."""

    table: Table
    items: tuple[str, ...]
    columns: VoteColumns
    both_bad: BothBad = "tie"
    on_problem: OnProblem = "refuse"
    per_voter: int | None = None
    outcomes_required: bool = False
    category: str | None = None

    @property
    def used(self) -> list[str]:
        """The columns that are read."""
        columns = self.columns
        voter = columns.voter if self.per_voter is not None else None
        category = columns.category if self.category is not None else None
        return [name for name in (*columns.told, columns.weight, voter, category) if name is not None]

    @property
    def words(self) -> dict[str, int]:
        """What the spellings of an outcome mean."""
        bad = TIE if self.both_bad == "tie" else LEFT_OUT
        return {word: bad if meaning == LEFT_OUT else meaning for word, meaning in self.columns.style.words.items()}

    @property
    def refused(self) -> list[Problem]:
        """The problems that stop the counting."""
        mistakes = [problem for problem in Problem if Problem.NONE < problem < Problem.BOTH_BAD]
        return mistakes if self.on_problem == "refuse" else [one for one in mistakes if not _droppable(self, one)]

    @property
    def drops_both_bad(self) -> bool:
        """Whether rows are left out because of their outcome."""
        return LEFT_OUT in self.words.values()

    @property
    def drops(self) -> bool:
        """Whether rows may be left out, so that how many are counted depends on what they say."""
        return self.on_problem == "drop" or self.drops_both_bad or self.category is not None


def refusal(rules: VoteRules, bad: Sequence[BadRows]) -> InputError:
    """The refusal of all rows that break a rule, one example of each kind; ``bad`` is ordered by first rows."""
    droppable = [rows for rows in bad if _droppable(rules, rows.problem)]
    ordered = [*droppable, *(rows for rows in bad if rows not in droppable)]
    parts: list[str | Setting] = []
    for number, rows in enumerate(ordered):
        where = rows.where if not parts else f"; {rows.where.rpartition(', ')[2]}"
        many = f"{rows.rows:,} such rows" if rows.rows > 1 else ""
        parts += [f"{where}: ", *_said(rules, rows.problem, rows.cells)]
        if number == len(droppable) - 1:
            parts += [f" ({many}{'; ' * bool(many)}", Setting("on_problem", "drop"), " leaves such rows out)"]
        elif many:
            parts += [f" ({many})"]
    return InputError(*parts)


def _droppable(rules: VoteRules, problem: Problem) -> bool:
    """Whether rows with this problem may be left out."""
    required = problem is Problem.MISSING_OUTCOME and rules.outcomes_required
    return problem not in _ALWAYS_REFUSED and not required


def _said(rules: VoteRules, problem: Problem, cells: Mapping[str, Any]) -> list[str | Setting]:
    """What is wrong with a row."""
    columns = rules.columns
    left, right = cells[columns.left], cells[columns.right]
    blank = " and ".join(columns.marks) or repr(columns.outcome)
    match problem:
        case Problem.UNKNOWN_OUTCOME if columns.marks:
            got = ", ".join(repr(cells[name]) for name in columns.marks)
            return [f"one of {', '.join(columns.marks)} must be 1 and the others 0, got {got}"]
        case Problem.UNKNOWN_OUTCOME:
            spelled = [*columns.style.words, *(["the name of one of the two items"] if columns.style.named else [])]
            rule, column = f"{', '.join(spelled[:-1])} or {spelled[-1]}", columns.outcome or ""
            return [f"{column!r} must be {rule}, got {cells[column]!r}"]
        case Problem.BAD_WEIGHT:
            rule, column = f"a whole number from 0 to {MOST_WEIGHT:,}", columns.weight or ""
            return [f"{column!r} must be {rule}, got {cells[column]!r}"]
        case Problem.MISSING_OUTCOME if rules.outcomes_required:
            return [
                f"{blank} is blank, and leaving such rows out would make public which outcomes are missing, which ",
                Setting("protect", "outcome"),
                " counts as secret: use ",
                Setting("protect", "comparison"),
                " or ",
                Setting("protect", "voter"),
            ]
        case Problem.MISSING_OUTCOME:
            return [f"{blank} is blank"]
        case Problem.MISSING_VOTER:
            rule = "contributions can only be bounded when every row names its voter"
            return [f"{columns.voter!r} is blank, and {rule}"]
        case Problem.MISSING_ITEM:
            return [f"{columns.left if is_blank(left, rules.items) else columns.right!r} is blank"]
        case Problem.UNKNOWN_ITEM:
            unknown = left if left not in rules.items else right
            return [f"{unknown!r} is not one of the {len(rules.items)} items given"]
        case _:
            return [f"{left!r} is compared with itself"]


def recognise_votes(
    kinds: Mapping[str, Kind],
    what: str,
    voter_column: str | None = None,
    weight_column: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> VoteColumns:
    """Find the columns of a comparison, of the voter and of the weight, or say in one sentence what is missing."""
    check_names(list(kinds), what, voter_column=voter_column, weight_column=weight_column)
    real = renamed(list(kinds), what, columns)
    names = [name for name, column in real.items() if column not in (voter_column, weight_column)]
    found = vote_style(names)
    if found is None:
        raise _no_votes(list(kinds), what)
    style, matched = found
    left, right, *rest = (real[name] for name in matched)
    free = [name for name in names if name not in matched]
    voter = voter_column if voter_column is not None else real.get(first_known(free, _PEOPLE) or "")
    free = [name for name in free if real[name] != voter]
    weight = weight_column if weight_column is not None else real.get(first_known(free, WEIGHT_NAMES) or "")
    marks = tuple(rest) if style == "marked" else ()
    outcome = rest[0] if rest and not marks else None
    used = [name for name in (left, right, outcome, *marks, voter, weight) if name is not None]
    refuse_nested(what, kinds, used, "other")
    ignored = tuple(name for name in kinds if name not in used)
    return VoteColumns(STYLES[style], left, right, outcome, voter, weight, ignored, marks)


def _no_votes(names: list[str], what: str) -> InputError:
    try:
        recognise(names, what)
    except InputError:
        ways = "; ".join(", ".join(several[0]) for several in VOTES.values())
        return InputError(
            f"{what}: comparisons need the columns {ways}, or those named by ",
            Setting("columns"),
            f"; the columns are {listed_names(names)}",
        )
    return InputError(
        f"{what}: these are rankings, not votes between two items: elect finds their collective order, and privatize "
        "makes synthetic ones"
    )


def is_blank(text: str | None, items: Iterable[str] = ()) -> bool:
    """Whether a cell's text means that nothing is there; a name in `items` is an item however it is spelled."""
    return text is None or (text in MISSING and text not in items)
