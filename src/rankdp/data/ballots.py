"""Ballots: a frozen table of the distinct ranked ballots of an election, each with how often it was cast.

A ballot lists some or all candidates, best first, and may tie some where the format has ties: the braces of a PrefLib
file, equal ranks in a long table. Unlisted candidates come after all listed ones, tied. Every ballot is
cleaned by a stated rule (``rankdp.data.cleaning``); one that ranks nobody is still a ballot, and adds nothing.

The counts are integers:

| | one ballot adds |
|---|---|
| ``first_k(k)`` | to each of its first k candidates a whole vote, ``SHARES`` units; tied ones share the places left |
| ``centred_borda()`` | to a candidate those below it minus those above it: m - 1, m - 3, …, 1 - m when complete |
| ``margins()`` | to a pair +1, -1, or 0 where the two are tied |

So a truncated or tied ballot adds the average of what its strict completions would add to Borda scores and margins.

``ballot_tables`` reads them from tables, ``ballot_files`` from files in formats made for ballots.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from rankdp.checks import whole
from rankdp.data.adapters import counted_profile, to_pref_voting, to_votekit
from rankdp.data.ballot_files import ballot_format, counted_ballots, only_records
from rankdp.data.ballot_parts import Part, cleaned, distinct, listed_over, refuse_repeated, whole_weights, without
from rankdp.data.ballot_tables import table_ballots
from rankdp.data.cells import as_frame, check_items, id_text
from rankdp.data.cleaning import USUAL, Cleaner, Cleaning
from rankdp.data.frames import Reading
from rankdp.data.rankings import Rankings
from rankdp.data.tables import is_paths, listed_items, open_table, spread
from rankdp.errors import InputError, Setting
from rankdp.types import Flags, Ints, Longs

SHARES = 720_720
"""The units of one vote. Every number up to 16 divides it, so that up to 16 tied candidates share a vote exactly."""
MOST_BALLOTS = 10**12
"""So that counts in units fit 64-bit integers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ballots:
    """Distinct ballots with their numbers. Use `of`, `read` or `from_orders`.

    Parameters
    ----------
    items
        The names of the candidates.
    orders
        A row per distinct ballot and a column per place: candidates' indices (int32), best first, -1 after the last.
    tied
        For each place whether it is tied with the place before it.
    weights
        How often each ballot was cast (int64).
    items_from_data
        Whether the list of candidates was taken from the ballots, which makes public who is listed at all.
    notes
        What was skipped or cleaned on the way, for the eyes of whoever holds the ballots.
    cleaning
        The rule by which they were cleaned.
    title
        What the file says about which election it holds: its ward or contest.
    """

    items: tuple[str, ...]
    orders: Ints
    tied: Flags
    weights: Longs
    items_from_data: bool = False
    notes: tuple[str, ...] = ()
    cleaning: Cleaning = USUAL
    title: str = ""

    @classmethod
    def of(cls, source: Any, **options: Any) -> Self:
        """Ballots from whatever holds them.

        Parameters
        ----------
        source
            Ballots (returned as they are), Rankings, lists of names (`from_orders`), a path, a frame (pandas, Polars,
            PyArrow or anything with an Arrow stream), or what stays on its engine: a DuckDB relation or connection, a
            Spark DataFrame, a lazy frame that Narwhals knows. Or a profile of another library: VoteKit, pref_voting,
            PrefLib-Tools.
        **options
            The options of the method that is called: `read` if not `from_orders`.
        """
        if isinstance(source, (list, tuple)) and not is_paths(source):
            return cls.from_orders(source, **options)
        if (found := counted_profile(source, options.get("items"), ballots=True)) is not None:
            if others := options.keys() - {"items", "cleaning"}:
                raise InputError(f"a profile has no columns: {', '.join(sorted(others))} cannot be given")
            known = found.known
            rankings = Rankings._of(found.orders, known.items, tied=found.tied, items_from_data=known.from_data)
            cleaner = Cleaner(options.pop("cleaning", None) or USUAL)
            return cls._counted(cleaned(rankings, found.counts, cleaner), cleaner, "profile")
        if not isinstance(source, (cls, Rankings)):
            return cls.read(source, **options)
        cleaning = options.pop("cleaning", None) if isinstance(source, Rankings) else None
        if options:
            raise InputError(f"these ballots are open already: {', '.join(options)} cannot be given again")
        return cls.from_rankings(source, cleaning) if isinstance(source, Rankings) else source

    @classmethod
    def from_rankings(cls, rankings: Rankings, cleaning: Cleaning | None = None) -> Self:
        """One ballot for each ranking.

        Parameters
        ----------
        rankings
            Complete or partial rankings, at most one of each voter. The ballots remember whether the list of
            items was given or found.
        cleaning
            The rule by which they are cleaned; the usual one if not given.
        """
        if rankings.voters is not None:
            refuse_repeated(len(set(map(id_text, rankings.voters.tolist()))), len(rankings), "rankings")
        cleaner = Cleaner(cleaning or USUAL)
        return cls._counted(cleaned(rankings, np.ones(len(rankings), np.int64), cleaner), cleaner, "rankings")

    @classmethod
    def from_orders(
        cls,
        orders: Any,
        items: Iterable[Any] | None = None,
        weights: Iterable[Any] | None = None,
        cleaning: Cleaning | None = None,
    ) -> Self:
        """Ballots from lists of candidates, best first.

        Parameters
        ----------
        orders
            A list of names for each ballot; lists may have different lengths.
        items
            The names of all candidates; if not given, the names that are listed.
        weights
            How often each ballot was cast, whole numbers; once if not given.
        cleaning
            The rule by which they are cleaned; the usual one if not given.
        """
        if not len(orders):
            raise InputError("there are no ballots; at least one is needed")
        rankings = Rankings.from_orders(orders, items)
        cleaner = Cleaner(cleaning or USUAL, () if items is None else rankings.items)
        cast = [1] * len(rankings) if weights is None else list(weights)
        if len(cast) != len(rankings):
            raise InputError(f"weights must hold one number for each of the {len(rankings)} ballots, got {len(cast)}")
        return cls._counted(cleaned(rankings, whole_weights(cast), cleaner), cleaner, "ballots")

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        voter_column: str | None = None,
        weight_column: str | None = None,
        columns: Mapping[str, str] | None = None,
        layout: Literal["auto", "ranks"] = "auto",
        contest: str | None = None,
        cleaning: Cleaning | None = None,
        **opening: Any,
    ) -> Self:
        """Ballots in a PrefLib (.soc, .soi, .toc, .toi) or BLT file, in CSV, JSON, Parquet or DuckDB files, or a table.

        Cast vote records are tables too ("1st Choice Mayor", "Mayor Choice 1 of 5"), or in a format made for them
        (`rankdp.data.ballot_files`): Dominion's, Hart's, Clear Ballot's, or NIST's common data format.

        Parameters
        ----------
        source
            A file, for tables also a pattern like ``ballots-*.csv`` or a list of files, or a table as for `of`; the
            columns are as for rankings.
        items
            The public list of candidates, or a file with one name per line; then any other name is refused.
        voter_column, weight_column
            The columns of the voter (who has one ballot) and of the number of equal ballots that a row of a wide table
            stands for, where their names are not the usual ones.
        columns
            Names to give to columns before they are recognised, such as ``{"rank_1": "Q7"}``.
        layout
            "ranks" if every column except voter and weight is a candidate and holds their rank.
        contest
            The contest of cast vote records, where they hold several with ranks.
        cleaning
            The rule by which ballots are cleaned; the usual one if not given.
        **opening
            ``table``, ``sheet`` and ``encoding``, as in `rankdp.data.tables.open_table`.
        """
        listed = None if items is None else check_items(listed_items(items))
        cleaner = Cleaner(cleaning or USUAL, listed or ())
        if listed is not None:
            cleaner.rule.check_list(listed)
        name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
        held = None if name is None else ballot_format(name)
        if name is None or held is None:
            if contest is not None:
                raise only_records(name or "this table")
            table = spread(open_table(source, **opening))
            asked = Reading(listed, voter_column=voter_column, columns=columns, layout=layout)
            part, known, notes = table_ballots(table, asked, weight_column, cleaner)
            ballots = cls._counted(part, cleaner, table.what, sort_items=not known.declared)
            return replace(ballots, items_from_data=known.from_data, notes=(*notes, *ballots.notes))
        encoding = opening.pop("encoding", None)
        tabular = {**opening, "voter_column": voter_column, "weight_column": weight_column, "columns": columns}
        for option, value in {**tabular, "layout": None if layout == "auto" else layout}.items():
            if value is not None:
                raise InputError(f"{name}: ", Setting(option), " is for tables, not for a file of this kind")
        found = counted_ballots(name, held, contest, encoding)
        known = found.known
        rankings = Rankings._of(found.orders, known.items, tied=found.tied, items_from_data=known.from_data)
        if listed is not None:
            rankings = listed_over(rankings, listed, cleaner, name)
        ballots = cls._counted(cleaned(rankings, found.counts, cleaner), cleaner, name)
        return replace(ballots, notes=(*found.notes, *ballots.notes), title=found.title)

    @classmethod
    def _counted(cls, part: Part, cleaner: Cleaner, what: str, sort_items: bool = False) -> Self:
        """Put equal ballots together; the candidates of a tie are listed as in ``items``."""
        rankings, weights = part
        if not len(weights):
            raise InputError("there are no ballots; at least one is needed")
        table = Rankings.concatenate([rankings], sort_items=sort_items)
        cleaner.rule.check_excluded([*table.items, *cleaner.excluded])
        table = without(table, [name for name in table.items if cleaner.meaning(name) != name])
        items, found = table.items, table.items_from_data
        if (m := len(items)) < 2:
            raise InputError(f"an election needs at least 2 candidates, got {m}")
        # a column for each candidate: no row lists more
        orders = np.pad(table.orders, ((0, 0), (0, m)), constant_values=-1)[:, :m]
        tied = np.zeros(orders.shape, np.bool_)
        if table.tied is not None:
            tied = np.pad(table.tied, ((0, 0), (0, m)))[:, :m]
        if tied.any():
            groups = np.where(orders >= 0, np.cumsum(~tied, axis=1), len(items) + 1)
            orders = np.take_along_axis(orders, np.lexsort((orders, groups)), axis=1)
        table, total = distinct(Rankings._of(orders, items, tied=tied), weights)
        if not total.any():
            raise InputError("there are no ballots; at least one is needed")
        if sum(total.tolist()) > MOST_BALLOTS:
            raise InputError(f"an election holds at most {MOST_BALLOTS:,} ballots, got {sum(total.tolist()):,}")
        kept, cast = table.take(np.flatnonzero(total)), total[total > 0]
        cast.flags.writeable = False
        assert kept.tied is not None
        return cls(items, kept.orders, kept.tied, cast, found, tuple(cleaner.notes(what, items)), cleaner.rule)

    def to_frame(self, kind: str | None = None) -> Any:
        """The distinct ballots as a frame: rank_1, rank_2, … and count; tied candidates of a ballot have one rank.

        Parameters
        ----------
        kind
            "pandas", "polars" or "arrow"; the first of them that is installed, if not given.
        """
        if self.tied.any():
            ranks = Rankings._of(self.orders, self.items, tied=self.tied).ranks()
            columns = {
                f"rank of {item}": pa.array(ranks[:, at], mask=ranks[:, at] == 0) for at, item in enumerate(self.items)
            }
        else:
            names = np.array([*self.items, None], dtype=object)
            columns = {f"rank_{place + 1}": pa.array(names[self.orders[:, place]]) for place in range(len(self.items))}
        return as_frame(pa.table({**columns, "count": self.weights}), kind)

    def to_votekit(self) -> Any:
        """A VoteKit ``RankProfile``; VoteKit must be installed."""
        return to_votekit(self.items, self.orders, self.tied, self.weights)

    def to_pref_voting(self) -> Any:
        """A pref_voting ``Profile``, or ``ProfileWithTies`` if there are ties or partial ballots."""
        return to_pref_voting(self.items, self.orders, self.tied, self.weights)

    @property
    def count(self) -> int:
        """How many ballots there are."""
        return int(self.weights.sum())

    @property
    def lengths(self) -> Longs:
        """How many candidates each distinct ballot lists."""
        listed: Longs = (self.orders >= 0).sum(axis=1, dtype=np.int64)
        return listed

    def places(self) -> tuple[Ints, Ints]:
        """For every ballot (rows) and candidate (columns) how many are ahead of it, and how many are ahead or tied."""
        k, m = self.orders.shape
        row, place = np.nonzero(self.orders >= 0)
        opening = np.maximum.accumulate(np.where(self.tied, 0, np.arange(m, dtype=np.int32)), axis=1)[row, place]
        group = row * m + opening
        ahead = np.repeat(self.lengths.astype(np.int32)[:, None], m, axis=1)
        reached = np.full((k, m), m, np.int32)
        listed = row, self.orders[row, place]
        ahead[listed] = opening
        reached[listed] = opening + np.bincount(group, minlength=k * m)[group]
        return ahead, reached

    def first_k(self, k: int) -> Longs:
        """Votes, in units of 1/SHARES, when every ballot votes for the first k candidates that it lists.

        Tied candidates share the places left, rounded down to whole units, so that no ballot adds more than k votes.

        Parameters
        ----------
        k
            How many, from 1 to the number of candidates.
        """
        k = whole("k", k, 1, len(self.items))
        ahead, reached = self.places()
        room = np.clip(k - ahead.astype(np.int64), 0, reached - ahead)
        units = np.where(ahead < self.lengths[:, None], room * SHARES // (reached - ahead), 0)
        votes: Longs = self.weights @ units
        return votes

    def first_preferences(self) -> Longs:
        """``first_k(1)``: one vote for the candidate in the first place."""
        return self.first_k(1)

    def centred_borda(self) -> Longs:
        """Each candidate's sum over ballots of (candidates below it) - (candidates above it); all sum to 0."""
        ahead, reached = self.places()
        scores: Longs = self.weights @ (len(self.items) - ahead.astype(np.int64) - reached)
        return scores

    def margins(self) -> Longs:
        """An antisymmetric m x m table: ballots with the row's candidate before the column's, minus the reverse."""
        ahead, _ = self.places()
        return np.stack([self.weights @ np.sign(ahead - ahead[:, [item]]) for item in range(len(self.items))])

    def __repr__(self) -> str:
        return f"Ballots({self.count:,} of {len(self.items)} candidates, {len(self.weights):,} distinct)"
