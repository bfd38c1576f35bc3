"""Comparisons: a table of votes, described and not yet counted.

Each row says which of two items a voter preferred, or that they tied. The table stays where it is (a file, a frame,
a table of a database) until it is counted, in process or by the engine that holds it, into exact integers
(half-wins: 2 for a win, 1 to each side for a tie). `vote_columns` lists the ways to write such a table; `recognised`
says what was understood.

The list of items is public and comes from the caller. `items_from_data=True` takes it from the votes, which
publishes which items occur.

**Bounding.** `bound(c)` keeps at most c comparisons of each voter, those with the smallest hash of the voter's id, what
the comparison says, and its number among the voter's equal comparisons (a weight of w is w of them). The choice
depends on the voter's own comparisons and on nothing else: not on another voter, not on the order of rows. So for two
tables that differ in one voter
- added or removed: the kept comparisons differ by at most c, the half-wins of all pairs (and of all items) by at most
  2c in l1;
- replaced: at most c go and c come, at most 4c half-wins in l1.
The hash serves to choose evenly, not to hide, and every engine has its own: engines keep equally many comparisons of
each voter but not the same ones. Since the choice depends on what the rows say, a bounded table is for protecting
voters, not single comparisons or outcomes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

from rankdp.checks import one_of, whole
from rankdp.data.columns import check_names, listed_items, listed_names
from rankdp.data.counting import InProcess
from rankdp.data.counts import PairCounts
from rankdp.data.covariates import Covariate, VoteRows
from rankdp.data.engines import OnEngine, Opened, held_file
from rankdp.data.sources import Table
from rankdp.data.tables import check_item, check_items, folded, natural
from rankdp.data.vote_columns import (
    BothBad,
    Diagnostics,
    OnProblem,
    VoteColumns,
    VoteRules,
    is_blank,
    recognise_votes,
)
from rankdp.data.voter_loads import VoterLoads
from rankdp.errors import InputError, Setting, Unsupported


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparisons(VoteRules, Opened):
    """Votes between pairs of items, where they are and how to read them.

    Use `read`, `from_frame`, `from_table` or `of`; the constructor is for them.

    Parameters
    ----------
    items
        The public names of the items.
    columns
        Which columns hold what.
    both_bad
        Whether an outcome "both_bad" counts as a "tie" or its row is left out ("drop").
    on_problem
        Whether rows that break a rule stop the counting ("refuse") or are left out ("drop").
    per_voter
        The most comparisons kept of one voter; None for all.
    outcomes_required
        Whether a missing outcome is refused even if other problems are dropped.
    category
        The category whose rows are counted; None for all rows.
    engine
        What holds the votes and counts them.
    items_from_data
        Whether the list of items was taken from the votes, which makes public which items occur.
    """

    engine: InProcess | OnEngine
    items_from_data: bool
    _called = "votes"

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        items_from_data: bool = False,
        voter_column: str | None = None,
        weight_column: str | None = None,
        columns: Mapping[str, str] | None = None,
        both_bad: BothBad = "tie",
        on_problem: OnProblem = "refuse",
        table: str | None = None,
        engine: Any = "auto",
    ) -> Self:
        """Votes in CSV, JSON or Parquet files or in a table of a DuckDB file.

        Parameters
        ----------
        path
            A file, a pattern like ``votes-*.parquet``, or a ``.duckdb`` file.
        items
            The public list of items, or a file with one name per line (or a CSV file with a column ``item``).
        items_from_data
            True takes the items from the votes instead, which makes public which items occur.
        voter_column, weight_column
            The columns of the voter and of the weight, where their names are not the usual ones.
        columns
            Names to give to columns before they are recognised, such as ``{"left": "player A"}``.
        both_bad
            Whether an outcome "both_bad" counts as a "tie" or its row is left out ("drop").
        on_problem
            "refuse" stops at the first row with a self-comparison, an unknown or missing item, a missing outcome or
            (when bounding) a missing voter; "drop" leaves such rows out. Unknown outcomes and bad weights are always
            refused.
        table
            The table of a DuckDB file.
        engine
            Who counts: "auto" or "process" (this process), "duckdb", or an Ibis backend.
        """
        held = held_file(os.fspath(path), table, engine)
        return cls._on(held, items, items_from_data, voter_column, weight_column, columns, both_bad, on_problem)

    @classmethod
    def _on(
        cls,
        held: Table | OnEngine,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        items_from_data: bool = False,
        voter_column: str | None = None,
        weight_column: str | None = None,
        columns: Mapping[str, str] | None = None,
        both_bad: BothBad = "tie",
        on_problem: OnProblem = "refuse",
    ) -> Self:
        engine = held if isinstance(held, OnEngine) else InProcess(held)
        one_of("both_bad", both_bad, get_args(BothBad))
        one_of("on_problem", on_problem, get_args(OnProblem))
        found = recognise_votes(engine.kinds, engine.what, voter_column, weight_column, columns)
        if (items is None) == (not items_from_data):
            raise InputError(
                Setting("items"),
                " must list the public items, or ",
                Setting("items_from_data", True),
                " must say that the items that occur may be made public; got "
                + ("neither" if items is None else "both"),
            )
        names = _from_data(engine, found) if items is None else check_items(listed_items(items))
        if found.style.named:
            words = found.style.words
            if word := next((name for name in names if name.lower() in words), None):
                raise InputError(
                    f"{engine.what}: an item is called {word!r}, which as an outcome would be ambiguous; "
                    "rename it, or use the columns item_1, item_2, outcome"
                )
        return cls(
            items=names,
            columns=found,
            both_bad=both_bad,
            on_problem=on_problem,
            engine=engine,
            items_from_data=items_from_data,
        )

    @property
    def recognised(self) -> str:
        """What the columns were taken to mean, in a sentence or two; it says nothing about the rows."""
        columns = self.columns
        bad = "counts as a tie" if self.both_bad == "tie" else "is dropped"
        parts = [columns.style.said.format(*columns.told, both_bad=bad)]
        if columns.voter is not None:
            parts.append(f"{columns.voter!r} is the voter")
        if columns.weight is not None:
            parts.append(f"{columns.weight!r} says how many equal comparisons a row stands for")
        if columns.category is not None:
            parts.append(f"{columns.category!r} is the category")
        if columns.ignored:
            parts.append(f"ignored: {listed_names(columns.ignored)}")
        text = f"{self.engine.what}: {'; '.join(parts)}."
        if self.items_from_data:
            text += f" The list of {len(self.items)} items was taken from the votes, which makes it public."
        return text

    def bound(self, c: int) -> Self:
        """The same votes with at most `c` comparisons of each voter, for protecting voters (see the module).

        Parameters
        ----------
        c
            The most comparisons that are kept of one voter, a whole number of at least 1; of several bounds the
            smallest holds.
        """
        most = whole("c, the most comparisons of one voter,", c, 1)
        if self.columns.voter is None:
            raise InputError(
                f"{self.engine.what}: no column holds the voter, so that contributions cannot be bounded; name it by ",
                Setting("voter_column"),
            )
        return replace(self, per_voter=min(most, self.per_voter or most))

    def within(self, column: str, category: str) -> Self:
        """The votes of one category: rows of the others are left out, without being problems.

        Parameters
        ----------
        column
            The column that says each row's category; it must not say who met whom, who won, who voted or how often.
        category
            What it says in the rows that are kept.
        """
        self._check_category(column)
        ignored = tuple(name for name in self.columns.ignored if name != column)
        return replace(self, columns=replace(self.columns, category=column, ignored=ignored), category=category)

    def categories(self, column: str) -> set[str | None]:
        """Everything that a column of categories says, None for nothing. Computed from the secret votes.

        Parameters
        ----------
        column
            As for `within`.
        """
        self._check_category(column)
        return self.engine.names([column])

    def _check_category(self, column: str) -> None:
        check_names(list(self.engine.kinds), self.engine.what, by=column)
        columns = self.columns
        if column in (*columns.told, columns.voter, columns.weight):
            raise InputError(
                f"{self.engine.what}: ", Setting("by"), f" is {column!r}, which is used for something else"
            )
        if self.engine.kinds[column] in ("other", "nested"):
            raise InputError(f"{self.engine.what}: the column {column!r} must hold texts or numbers")

    def requiring_outcomes(self) -> Self:
        """The same votes, with a missing outcome refused whatever `on_problem` says."""
        return replace(self, outcomes_required=True)

    def count(self) -> PairCounts:
        """Half-wins of every pair that was compared."""
        return self.engine.count(self)[0]

    def loads(self, spread: bool = False) -> VoterLoads:
        """The votes grouped by how much their voters voted, to be weighed instead of left out; bound them first.

        Parameters
        ----------
        spread
            Whether a load says how a voter's comparisons are spread over the items, not only how many there are.
        """
        return self.engine.loads(self, spread)

    def rows(self, covariates: Sequence[Covariate]) -> VoteRows:
        """The comparisons one by one, with their covariates; votes in files and frames only.

        Parameters
        ----------
        covariates
            What is read beside the comparison.
        """
        return self._in_process.rows(self, covariates)

    @property
    def _in_process(self) -> InProcess:
        if not isinstance(self.engine, InProcess):
            raise Unsupported(f"{self.engine.what}: these votes must be in files or frames, not in tables of an engine")
        return self.engine

    def diagnostics(self) -> Diagnostics:
        """Rows used and dropped, by reason. Computed from the secret votes and NOT for publication."""
        return self.engine.count(self)[1]

    def __repr__(self) -> str:
        bounded = "" if self.per_voter is None else f", at most {self.per_voter} per voter"
        return f"Comparisons({self.engine.what}: {len(self.items)} items{bounded})"


def _from_data(engine: InProcess | OnEngine, columns: VoteColumns) -> tuple[str, ...]:
    found = engine.names([columns.left, columns.right])
    names = sorted((name for name in found if name is not None and not is_blank(name)), key=natural)
    for name in names:
        check_item(name, lambda: f"{engine.what}: an item")
    if not names:
        raise InputError(f"{engine.what}: there are no items in the votes")
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(folded(name), name)) != name:
            raise InputError(
                f"{engine.what}: {other!r} and {name!r} differ in capitals or spaces only, and would be two "
                "items; spell them alike, or list the items by ",
                Setting("items"),
            )
    return tuple(names)
