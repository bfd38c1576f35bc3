"""Comparisons: a table of votes, described and not yet counted.

Each row says which of two items a voter preferred, or that they tied. The table stays where it is (a file, a frame,
a table of an engine) until it is counted, by DuckDB in this process or by the engine that holds it, into exact integers
(half-wins: 2 for a win, 1 to each side for a tie). `vote_columns` lists the ways to write such a table; `recognised`
says what was understood.

The list of items is public and comes from the caller. `items_from_data=True` takes it from the votes, which
publishes which items occur.

**Bounding is weighing.** `bound(c)` gives each comparison of a voter with k > c comparisons the weight c/k, so that a
voter counts for at most c, whatever the voter says. `votes` has the rule and its proof; a bounded count is in steps of
1/`STEPS`. A weight depends on how many rows a voter has, so a bounded table is for protecting voters, not single
comparisons or outcomes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

import numpy as np
import pyarrow as pa

from rankdp.checks import one_of, whole
from rankdp.data.cells import alike, check_item, check_items, natural
from rankdp.data.columns import check_names, listed_names, refuse_nested
from rankdp.data.counts import STEPS, PairCounts
from rankdp.data.covariates import Covariate, VoteRows
from rankdp.data.tables import Table, listed_items, open_table
from rankdp.data.vote_columns import BothBad, Diagnostics, OnProblem, VoteColumns, VoteRules, is_blank, recognise_votes
from rankdp.data.votes import count, load_counts, texts_in, vote_rows, voter_loads
from rankdp.errors import InputError, Setting
from rankdp.types import Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparisons(VoteRules):
    """Votes between pairs of items, where they are and how to read them.

    Use `read` or `of`; the constructor is for them.

    Parameters
    ----------
    items
        The public names of the items.
    columns
        Which columns hold what.
    both_bad, on_problem
        As in `read`.
    per_voter
        The most comparisons that one voter counts for; None for all of them, unweighed.
    outcomes_required
        Whether a missing outcome is refused even if other problems are dropped.
    category
        The category whose rows are counted; None for all rows.
    table
        What holds the votes.
    items_from_data
        Whether the list of items was taken from the votes, which makes public which items occur.
    """

    items_from_data: bool

    @classmethod
    def of(cls, source: Any, **options: Any) -> Self:
        """Open whatever holds the votes.

        Parameters
        ----------
        source
            Comparisons (returned as they are), a path, a frame (pandas, Polars, PyArrow or anything with an Arrow
            stream), or what stays on its engine: a DuckDB relation or connection, a Spark DataFrame, a lazy frame that
            Narwhals knows.
        **options
            The options of `read`.
        """
        if not isinstance(source, cls):
            return cls.read(source, **options)
        if options:
            raise InputError(f"these votes are open already: {', '.join(options)} cannot be given again")
        return source

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        items_from_data: bool = False,
        voter_column: str | None = None,
        weight_column: str | None = None,
        columns: Mapping[str, str] | None = None,
        both_bad: BothBad = "tie",
        on_problem: OnProblem = "refuse",
        **opening: Any,
    ) -> Self:
        """Votes in CSV, JSON or Parquet files, in a table of a DuckDB file, or in any other table.

        Parameters
        ----------
        source
            A file, a pattern like ``votes-*.parquet``, a list of files, a ``.duckdb`` file, or a table as for `of`.
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
            "refuse" stops at rows with a self-comparison, an unknown or missing item, a missing outcome or (where
            voters are protected) a missing voter, and names the first of each kind; "drop" leaves such rows out.
            Unknown outcomes and bad weights are always refused.
        **opening
            ``table``, ``sheet`` and ``encoding``, as in `rankdp.data.tables.open_table`.
        """
        held = open_table(source, **opening)
        one_of("both_bad", both_bad, get_args(BothBad))
        one_of("on_problem", on_problem, get_args(OnProblem))
        found = recognise_votes(held.kinds, held.what, voter_column, weight_column, columns)
        if (items is None) == (not items_from_data):
            raise InputError(
                Setting("items"),
                " must list the public items, or ",
                Setting("items_from_data", True),
                " must say that the items that occur may be made public; got "
                + ("neither" if items is None else "both"),
            )
        names = _from_data(held, found) if items is None else check_items(listed_items(items))
        if found.style.named:
            words = found.style.words
            if word := next((name for name in names if name.lower() in words), None):
                raise InputError(
                    f"{held.what}: an item is called {word!r}, which as an outcome would be ambiguous; "
                    "rename it, or use the columns item_1, item_2, outcome"
                )
        return cls(
            items=names,
            columns=found,
            both_bad=both_bad,
            on_problem=on_problem,
            table=held,
            items_from_data=items_from_data,
        )

    @classmethod
    def from_pairs(cls, left: Any, right: Any, winner: Any = None, **options: Any) -> Self:
        """Votes in two or three lists or arrays, as other libraries of comparisons take them.

        Parameters
        ----------
        left, right
            The items of each comparison, as names or numbers.
        winner
            Who won: "left", "right", "tie" or the winner's name; if not given, the left item won every time.
        **options
            The options of `read`; ``voter`` and ``weight`` may be lists too, one entry per comparison.
        """
        columns = {"winner": left, "loser": right} if winner is None else {"left": left, "right": right}
        columns |= {} if winner is None else {"winner": winner}
        columns |= {name: options.pop(name) for name in ("voter", "weight") if options.get(name) is not None}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InputError(f"the lists of comparisons must have equal lengths, got {said}")
        return cls.read(pa.table({name: pa.array(list(values)) for name, values in columns.items()}), **options)

    @classmethod
    def from_wins(cls, wins: Any, items: Iterable[Any] | None = None) -> Self:
        """Votes in a square matrix of wins, a tie being half a win of each side.

        Parameters
        ----------
        wins
            Row i, column j holds how often i beat j.
        items
            The names of the items; by default "0", "1", ….
        """
        counts = PairCounts.from_dense(wins, items)
        ahead, behind = counts.half_wins_first, counts.half_wins_second
        ties = np.where(ahead % 2, 1, 0)
        if (ahead % 2 != behind % 2).any():
            raise InputError("wins must be whole numbers, or halves on both sides of a pair for a tie")
        names = np.array(counts.items, dtype=object)
        left, right = names[counts.first], names[counts.second]
        said = {"left": ahead // 2, "right": behind // 2, "tie": ties}
        rows = [(left, right, np.full(len(left), word), times) for word, times in said.items()]
        columns = (np.concatenate(part) for part in zip(*rows, strict=True))
        table = dict(zip(("left", "right", "winner", "weight"), map(pa.array, columns), strict=True))
        return cls.read(pa.table(table), items=counts.items)

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
        return f"{self.table.what}: {'; '.join(parts)}."

    def bound(self, c: int) -> Self:
        """The same votes with each voter counting for at most `c` comparisons, for protecting voters (see the module).

        Parameters
        ----------
        c
            The most comparisons that one voter counts for, a whole number of at least 1; of several bounds the smallest
            holds.
        """
        most = whole("c, the most comparisons of one voter,", c, 1)
        if self.columns.voter is None:
            raise InputError(
                f"{self.table.what}: no column holds the voter, so that contributions cannot be bounded; name it by ",
                Setting("voter_column"),
            )
        return replace(self, per_voter=min(most, self.per_voter or most))

    @property
    def steps(self) -> int:
        """The steps in which a comparison is counted: 1, or `STEPS` where voters are weighed."""
        return 1 if self.per_voter is None else STEPS

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
        return texts_in(self.table, [column])

    def _check_category(self, column: str) -> None:
        check_names(list(self.table.kinds), self.table.what, by=column)
        columns = self.columns
        if column in (*columns.told, columns.voter, columns.weight):
            raise InputError(f"{self.table.what}: ", Setting("by"), f" is {column!r}, which is used for something else")
        refuse_nested(self.table.what, self.table.kinds, [column], "other")

    def requiring_outcomes(self) -> Self:
        """The same votes, with a missing outcome refused whatever `on_problem` says."""
        return replace(self, outcomes_required=True)

    def count(self) -> PairCounts:
        """Half-wins of every pair that was compared, times `steps`."""
        return count(self, [self.per_voter])[0][0]

    def count_for(self, bounds: Sequence[int]) -> dict[int, PairCounts]:
        """What `bound(c).count()` gives for each of several bounds c, counted in one go.

        Parameters
        ----------
        bounds
            The bounds.
        """
        return dict(zip(bounds, count(self.bound(max(bounds)), bounds)[0], strict=True))

    def voter_loads(self) -> dict[str, int]:
        """How many comparisons each voter has; secret."""
        return voter_loads(self.bound(1))

    def count_within(self, allowance: Mapping[str, tuple[int, int]]) -> PairCounts:
        """Half-wins in steps, where ``allowance`` states how much of each voter counts.

        Parameters
        ----------
        allowance
            By voter, how many comparisons they have and how many steps each of them counts. Voters who have more of
            them by now, because the table has grown, count for nothing, and so do voters who are not named.
        """
        return count(self.bound(1), [1], allowance)[0][0]

    def load_counts(self) -> Longs:
        """How many voters have 1 comparison, 2 to 3, 4 to 7, …, 1,024 or more. Computed from the secret votes."""
        return load_counts(self.bound(1))

    def rows(self, covariates: Sequence[Covariate]) -> VoteRows:
        """The comparisons one by one, with their covariates.

        Parameters
        ----------
        covariates
            What is read with each comparison.
        """
        return vote_rows(self, covariates)

    def diagnostics(self) -> Diagnostics:
        """Rows used and dropped, by reason. Computed from the secret votes and NOT for publication."""
        return count(self, [self.per_voter])[1]

    def __repr__(self) -> str:
        bounded = "" if self.per_voter is None else f", at most {self.per_voter} per voter"
        return f"Comparisons({self.table.what}: {len(self.items)} items{bounded})"


def _from_data(table: Table, columns: VoteColumns) -> tuple[str, ...]:
    found = texts_in(table, [columns.left, columns.right])
    listed = sorted((name for name in found if name is not None and not is_blank(name)), key=natural)
    for name in listed:
        check_item(name, lambda: f"{table.what}: an item")
    if not listed:
        raise InputError(f"{table.what}: there are no items in the votes")
    if two := alike(listed):
        raise InputError(
            f"{table.what}: {two[0]!r} and {two[1]!r} differ in capitals or spaces only, and would be two items; "
            "spell them alike, or list the items by ",
            Setting("items"),
        )
    return tuple(listed)
