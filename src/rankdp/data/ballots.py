"""Ballots: a frozen table of the distinct ranked ballots of an election, each with how often it was cast.

A ballot lists some or all candidates, best first, and may tie some where the format has ties: the braces of a PrefLib
file, equal ranks in a long table. Who is not listed stands behind everyone listed, all unlisted ones tied.

The counts are integers:

| | one ballot adds |
|---|---|
| ``first_k(k)`` | to each of its first k candidates a whole vote, ``SHARES`` units; tied ones share the places left |
| ``centred_borda()`` | to a candidate those below it minus those above it: m - 1, m - 3, …, 1 - m when complete |
| ``margins()`` | to a pair +1, -1, or 0 where the two are tied |

A truncated or tied ballot so adds the average of what its strict completions would add to Borda scores and margins.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rankdp.checks import whole
from rankdp.data.ballot_tables import Part, ballot_parts, distinct, refuse_repeated, whole_weights
from rankdp.data.columns import listed_items
from rankdp.data.engines import OnEngine, Opened, held_file
from rankdp.data.files import COUNTED
from rankdp.data.formats.dominion import counted_marks, is_dominion
from rankdp.data.formats.preflib import counted_orders
from rankdp.data.formats.texts import bare_suffix
from rankdp.data.rankings import Rankings
from rankdp.data.sources import Table, a_file
from rankdp.errors import InputError, Setting
from rankdp.types import Flags, Ints, Longs

SHARES = 720_720
"""The units of one vote. Every number up to 16 divides it, so that so many tied candidates share a vote exactly."""
MOST_BALLOTS = 10**12
"""So that counts in units fit 64-bit integers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ballots(Opened):
    """Distinct ballots with their numbers. Use `of`, `read`, `from_frame` or `from_orders`.

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
    """

    items: tuple[str, ...]
    orders: Ints
    tied: Flags
    weights: Longs
    items_from_data: bool = False
    notes: tuple[str, ...] = ()
    _called = "ballots"

    @classmethod
    def of(cls, source: Any, **options: Any) -> Self:
        """Ballots from whatever holds them.

        Parameters
        ----------
        source
            Ballots (returned as they are), Rankings, a path (`read`), lists of names (`from_orders`), a frame
            (`from_frame`), or an Ibis table, a Spark DataFrame or a connection (`from_table`).
        **options
            The options of the method that is called.
        """
        if isinstance(source, (list, tuple)):
            return cls.from_orders(source, **options)
        # a dataclass with slots is made twice, so that super() needs its name
        return super(Ballots, cls).of(cls.from_rankings(source) if isinstance(source, Rankings) else source, **options)

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> Self:
        """One ballot for each ranking.

        Parameters
        ----------
        rankings
            Complete or partial rankings, at most one of each voter. Their list of items is taken to be public.
        """
        if rankings.voters is not None:
            refuse_repeated(len(set(rankings.voters.tolist())), len(rankings), "rankings")
        return cls._counted([(rankings, np.ones(len(rankings), np.int64))])

    @classmethod
    def from_orders(cls, orders: Any, items: Iterable[Any] | None = None, weights: Iterable[Any] | None = None) -> Self:
        """Ballots from lists of candidates, best first.

        Parameters
        ----------
        orders
            A list of names for each ballot; lists may have different lengths.
        items
            The names of all candidates; without them, those that are listed.
        weights
            How often each ballot was cast, whole numbers; once if not given.
        """
        if not len(orders):
            raise InputError("there are no ballots; at least one is needed")
        rankings = Rankings.from_orders(orders, items)
        cast = [1] * len(rankings) if weights is None else list(weights)
        if len(cast) != len(rankings):
            raise InputError(f"weights must hold one number for each of the {len(rankings)} ballots, got {len(cast)}")
        ballots = cls._counted([(rankings, whole_weights(cast, "weights, row {}".format))])
        return replace(ballots, items_from_data=items is None)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        voter_column: str | None = None,
        weight_column: str | None = None,
        columns: Mapping[str, str] | None = None,
        table: str | None = None,
        engine: Any = "auto",
        contest: str | None = None,
    ) -> Self:
        """Ballots in a PrefLib (.soc, .soi, .toc, .toi) or BLT file, in CSV, JSON, Parquet or DuckDB files.

        Cast vote records ("1st Choice Mayor", "Mayor Choice 1 of 5"; Dominion's CSV and JSON exports, see
        `rankdp.data.formats.dominion`) are counted as most elections do: a place left blank or called undervote or
        skipped is passed over, a candidate who is ranked again counts once, and an overvote ends the ballot.

        Parameters
        ----------
        path
            A file, or for CSV and Parquet a pattern like ``ballots-*.csv``; the columns are those of rankings.
        items
            The public list of candidates, or a file with one name per line; then any other name is refused.
        voter_column, weight_column
            The columns of the voter (who has one ballot) and of the number of equal ballots that a row of a wide table
            stands for, where their names are not the usual ones.
        columns
            Names to give to columns before they are recognised, such as ``{"rank_1": "Q7"}``.
        table
            The table of a ``.duckdb`` file.
        engine
            Who puts equal ballots of a table together: "auto" or "process" (this process), "duckdb", or an Ibis
            backend.
        contest
            The contest of Dominion's records, where they hold several with ranks.
        """
        name = os.fspath(path)
        kind = bare_suffix(name).removeprefix(".")
        marked = table is None and is_dominion(name)
        if contest is not None and not marked:
            raise InputError(f"{name}: ", Setting("contest"), " is for cast vote records that hold several contests")
        if kind not in COUNTED and not marked:
            return cls._on(held_file(name, table, engine), items, voter_column, weight_column, columns)
        if voter_column or weight_column or columns:
            raise InputError(
                f"{name}: ",
                Setting("voter_column"),
                " and ",
                Setting("weight_column"),
                " are for tables, and a file of this kind has no such columns",
            )
        listed = None if items is None else listed_items(items)
        if marked:
            found = counted_marks(name, listed, contest)
        else:
            with a_file(name, "ballots"):
                found = counted_orders(name, kind, listed)
        rankings = Rankings._of(found.orders, found.known.items, None, None, None, found.tied)
        ballots = cls._counted([(rankings, found.counts)])
        return replace(ballots, notes=found.notes)

    @classmethod
    def _on(
        cls,
        held: Table | OnEngine,
        items: Iterable[Any] | str | os.PathLike[str] | None = None,
        voter_column: str | None = None,
        weight_column: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        listed = None if items is None else listed_items(items)
        known, parts, notes = ballot_parts(held, listed, voter_column, weight_column, columns)
        ballots = cls._counted(parts, sort_items=not known.declared)
        return replace(ballots, items_from_data=not known.declared, notes=notes)

    @classmethod
    def _counted(cls, parts: Sequence[Part], sort_items: bool = False) -> Self:
        """Put equal ballots together; the candidates of a tie are listed as in ``items``."""
        if not sum(len(weights) for _, weights in parts):
            raise InputError("there are no ballots; at least one is needed")
        table = Rankings.concatenate((rankings.without_voters() for rankings, _ in parts), sort_items=sort_items)
        items, weights = table.items, np.concatenate([weights for _, weights in parts])
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
        table, total = distinct(Rankings._of(orders, items, None, None, None, tied), weights)
        if not total.any():
            raise InputError("there are no ballots; at least one is needed")
        if sum(total.tolist()) > MOST_BALLOTS:
            raise InputError(f"an election holds at most {MOST_BALLOTS:,} ballots, got {sum(total.tolist()):,}")
        kept, cast = table.take(np.flatnonzero(total)), total[total > 0]
        cast.flags.writeable = False
        assert kept.tied is not None
        return cls(items, kept.orders, kept.tied, cast)

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
        """Of every ballot (rows) and candidate (columns) how many stand before it, and before it or beside it."""
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
        """An antisymmetric m x m table: ballots with the row's candidate before the column's, less the contrary."""
        ahead, _ = self.places()
        return np.stack([self.weights @ np.sign(ahead - ahead[:, [item]]) for item in range(len(self.items))])

    def __repr__(self) -> str:
        return f"Ballots({self.count:,} of {len(self.items)} candidates, {len(self.weights):,} distinct)"
