"""Ballots: a frozen table of the distinct ranked ballots of an election, each with how often it was cast.

A ballot lists some or all candidates, best first, and may tie some where the format has ties: the braces of a PrefLib
file, equal ranks in a long table. Who is not listed stands behind everyone listed, all unlisted ones tied. Every ballot
is cleaned by a stated rule (``rankdp.data.cleaning``); one that ranks nobody is still a ballot, and adds nothing.

The counts are integers:

| | one ballot adds |
|---|---|
| ``first_k(k)`` | to each of its first k candidates a whole vote, ``SHARES`` units; tied ones share the places left |
| ``centred_borda()`` | to a candidate those below it minus those above it: m - 1, m - 3, …, 1 - m when complete |
| ``margins()`` | to a pair +1, -1, or 0 where the two are tied |

A truncated or tied ballot so adds the average of what its strict completions would add to Borda scores and margins.

On an engine expressions do the counting: a wide table is grouped by its columns of ranks; a long one first by
voter, with a column of ranks for each candidate, and then by these. What comes back is one row per distinct ballot and
how often it was cast. The checks of names and repetitions are those of tables in process, on the distinct ballots.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from rankdp.checks import whole
from rankdp.data.adapters import counted_profile, to_pref_voting, to_votekit
from rankdp.data.cells import (
    SPACES,
    Coded,
    Known,
    Where,
    arrow_ids,
    as_frame,
    check_items,
    encode,
    in_a_sentence,
    understand,
)
from rankdp.data.cleaning import DROPPED, OVERVOTED, SKIPPED, USUAL, Cleaner, Cleaning
from rankdp.data.columns import Columns, check_names, first_known, listed_items, recognise
from rankdp.data.files import COUNTED
from rankdp.data.formats.common_data import counted_records, is_common_data
from rankdp.data.formats.dominion import counted_marks, is_dominion
from rankdp.data.formats.preflib import counted_orders
from rankdp.data.formats.scottish import counted_ward, is_scottish
from rankdp.data.formats.texts import bare_suffix
from rankdp.data.frames import later, long_rankings, rankings_of, refuse_nested
from rankdp.data.queries import asked
from rankdp.data.rankings import Rankings
from rankdp.data.tables import EngineTable, Frame, Held, Table, a_file, is_paths, open_table
from rankdp.data.vote_columns import MOST_WEIGHT, ROWS_NOT_PEOPLE, WEIGHT_NAMES, is_blank, weight_of
from rankdp.data.votes import amount_of
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.types import Flags, Ints, Longs

SHARES = 720_720
"""The units of one vote. Every number up to 16 divides it, so that so many tied candidates share a vote exactly."""
MOST_BALLOTS = 10**12
"""So that counts in units fit 64-bit integers."""

Part = tuple[Rankings, Longs]
"""Orders, with ties if there are any, and how often each was cast."""

_AMOUNT = "rd_ballots"


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
    """

    items: tuple[str, ...]
    orders: Ints
    tied: Flags
    weights: Longs
    items_from_data: bool = False
    notes: tuple[str, ...] = ()
    cleaning: Cleaning = USUAL

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
        if (found := counted_profile(source, options.get("items"))) is not None:
            if others := options.keys() - {"items", "cleaning"}:
                raise InputError(f"a profile has no columns: {', '.join(sorted(others))} cannot be given")
            rankings = Rankings._of(found.orders, found.known.items, None, None, None, found.tied)
            cleaner = Cleaner(options.pop("cleaning", None) or USUAL)
            return cls._counted([_cleaned(rankings, found.counts, cleaner)], cleaner, "profile")
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
            Complete or partial rankings, at most one of each voter. Whether their list of items was given or found
            goes with them.
        cleaning
            The rule by which they are cleaned; the usual one if not given.
        """
        if rankings.voters is not None:
            refuse_repeated(len(set(rankings.voters.tolist())), len(rankings), "rankings")
        cleaner = Cleaner(cleaning or USUAL)
        part = _cleaned(rankings, np.ones(len(rankings), np.int64), cleaner)
        return cls._counted([part], cleaner, "rankings")

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
            The names of all candidates; without them, those that are listed.
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
        part = _cleaned(rankings, whole_weights(cast, "weights, row {}".format), cleaner)
        return cls._counted([part], cleaner, "ballots")

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

        Cast vote records are tables too ("1st Choice Mayor", "Mayor Choice 1 of 5"), or Dominion's CSV and JSON exports
        (`rankdp.data.formats.dominion`), or in NIST's common data format (`rankdp.data.formats.common_data`).

        Parameters
        ----------
        source
            A file, for tables also a pattern like ``ballots-*.csv`` or a list of files, or a table as for `of`; the
            columns are those of rankings.
        items
            The public list of candidates, or a file with one name per line; then any other name is refused.
        voter_column, weight_column
            The columns of the voter (who has one ballot) and of the number of equal ballots that a row of a wide table
            stands for, where their names are not the usual ones.
        columns
            Names to give to columns before they are recognised, such as ``{"rank_1": "Q7"}``.
        layout
            "ranks" if every column but those of voter and weight is a candidate and holds their rank.
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
        asked = listed, voter_column, weight_column, columns, layout, cleaner
        if not isinstance(source, (str, os.PathLike)):
            return cls._on(open_table(source, **opening), *asked)
        name = os.fspath(source)
        kind = bare_suffix(name).removeprefix(".")
        opening = {option: value for option, value in opening.items() if value is not None}
        common = not opening and layout == "auto" and is_common_data(name)
        marked = common or (not opening and layout == "auto" and is_dominion(name))
        if contest is not None and not marked:
            raise InputError(f"{name}: ", Setting("contest"), " is for cast vote records that hold several contests")
        ward = not opening and layout == "auto" and not marked and is_scottish(name)
        if kind not in COUNTED and not marked and not ward:
            return cls._on(open_table(name, **opening), *asked)
        if opening:
            raise InputError(f"{name}: ", Setting(next(iter(opening))), " is for tables, not for this format")
        if voter_column or weight_column or columns:
            raise InputError(
                f"{name}: ",
                Setting("voter_column"),
                " and ",
                Setting("weight_column"),
                " are for tables, and a file of this kind has no such columns",
            )
        if marked or ward:
            records = counted_records if common else counted_marks
            found = records(name, contest) if marked else counted_ward(name)
        else:
            with a_file(name, "ballots"):
                found = counted_orders(name, kind, None, ballots=True)
        rankings = Rankings._of(found.orders, found.known.items, None, None, None, found.tied)
        if listed is not None:
            rankings = _listed(rankings, listed, cleaner, name)
        ballots = cls._counted([_cleaned(rankings, found.counts, cleaner)], cleaner, name)
        return replace(ballots, notes=(*found.notes, *ballots.notes))

    @classmethod
    def _on(
        cls,
        held: Table,
        listed: tuple[str, ...] | None,
        voter_column: str | None,
        weight_column: str | None,
        columns: Mapping[str, str] | None,
        layout: str,
        cleaner: Cleaner,
    ) -> Self:
        names = list(held.kinds)
        check_names(names, held.what, voter_column=voter_column, weight_column=weight_column)
        asked = dict(columns or {})
        usual = first_known(names, WEIGHT_NAMES, {voter_column, *asked.values()})
        weight = weight_column or asked.pop("weight", None) or usual
        meant = recognise(
            [name for name in names if name != weight], held.what, voter_column, columns=asked, layout=layout
        )
        refuse_nested(held.what, held.kinds, meant.used, "other")
        if meant.layout == "long" and weight is not None:
            raise Unsupported(
                f"{held.what}: the column {weight!r} would give ballots weights, which a table with a row per "
                "voter and candidate does not have: use a row per ballot"
            )
        most = 1 if names_people(meant.voter, voter_column) else MOST_WEIGHT
        found = not meant.items and held.items_from_data
        known = Known.start(listed, meant.items or held.declared_items, found)
        if listed is not None and meant.layout == "ranked":
            known = _with_words(listed, meant.items, cleaner)
        with in_a_sentence(held.what):
            if isinstance(held, EngineTable):
                parts, known = _engine_parts(held, meant, weight, most, known, cleaner)
            elif meant.layout == "long":
                part, known = _long_part(held, meant, known, cleaner)
                parts = [part]
            else:
                parts = list(_row_parts(held, meant, weight, most, known, cleaner))
        ballots = cls._counted(parts, cleaner, held.what, sort_items=not known.declared)
        return replace(ballots, items_from_data=known.from_data)

    @classmethod
    def _counted(cls, parts: Sequence[Part], cleaner: Cleaner, what: str, sort_items: bool = False) -> Self:
        """Put equal ballots together; the candidates of a tie are listed as in ``items``."""
        if not sum(len(weights) for _, weights in parts):
            raise InputError("there are no ballots; at least one is needed")
        table = Rankings.concatenate((rankings.without_voters() for rankings, _ in parts), sort_items=sort_items)
        cleaner.rule.check_excluded([*table.items, *cleaner.excluded])
        table = _without(table, [name for name in table.items if cleaner.meaning(name) != name])
        items, found = table.items, table.items_from_data
        weights = np.concatenate([weights for _, weights in parts])
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
        return cls(items, kept.orders, kept.tied, cast, found, tuple(cleaner.notes(what, items)), cleaner.rule)

    def to_frame(self, kind: str | None = None) -> Any:
        """The distinct ballots as a frame: rank_1, rank_2, … and count; tied candidates of a ballot have one rank.

        Parameters
        ----------
        kind
            "pandas", "polars" or "arrow"; the first of them that is installed, if not given.
        """
        import pyarrow as pa

        if self.tied.any():
            ranks = Rankings._of(self.orders, self.items, None, None, None, self.tied).ranks()
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


def whole_weights(cells: Sequence[Any], where: Any) -> Longs:
    """Whole weights, or a sentence; ``where`` tells a row, counted from 1."""
    weights = [weight_of(cell, MOST_WEIGHT) for cell in cells]
    if -1 in weights:
        row = weights.index(-1)
        raise InputError(
            f"{where(row + 1)}: a weight must be a whole number from 0 to {MOST_WEIGHT:,}, got {cells[row]!r}"
        )
    return np.array(weights, np.int64)


def refuse_repeated(voters: int, rows: int, what: str) -> None:
    """Refuse voters with several ballots."""
    if voters < rows:
        raise InputError(
            f"{what}: {rows:,} ballots come from {voters:,} voters, and an election counts one ballot of each voter; "
            "if every row is another person's, leave out the column of voters"
        )


def names_people(voter: str | None, asked: str | None) -> bool:
    """Whether a column names voters, each with one ballot, and not rows (``id``), which may stand for many."""
    return voter is not None and (voter == asked or first_known([voter], ROWS_NOT_PEOPLE, set()) is None)


def _several(at: str, weight: float) -> InputError:
    return InputError(
        f"{at}: the voter has {weight:,.0f} ballots, and an election counts one ballot of each voter; if the rows are "
        "not people, leave out the column of voters"
    )


def _row_parts(
    table: Held, columns: Columns, weight: str | None, most: int, known: Known, cleaner: Cleaner
) -> Iterator[Part]:
    """The distinct ballots of each batch of a table with a row per ballot; a row stands for at most ``most``."""
    import pyarrow as pa

    voters = []
    for file, start, batch in table.batches([*columns.used, *([] if weight is None else [weight])]):
        where = partial(later, table.where, file, start)
        cast = _cast(batch, weight, most, where)
        if columns.voter is not None:
            voters.append(arrow_ids(batch.column(columns.voter), where))
        if columns.layout == "wide":
            yield distinct(*_wide_part(batch, columns, cast, known, where, cleaner))
        else:
            rankings = rankings_of(batch, columns, known, where, "keep").without_voters()
            yield distinct(*_cleaned(rankings, cast, cleaner))
    if voters:
        ids = pa.chunked_array(voters)
        refuse_repeated(len(ids.unique()), len(ids), table.what)


def _wide_part(batch: Any, columns: Columns, cast: Longs, known: Known, where: Where, cleaner: Cleaner) -> Part:
    """The ballots of a batch with a column per rank, cleaned."""
    cells = [encode(batch.column(name)) for name in columns.ranks]
    said = [[_meaning(value, known, cleaner) for value in one.values] for one in cells]
    plain = [
        Coded(one.codes, [None if isinstance(value, Code) else value for value in column], 0)
        for one, column in zip(cells, said, strict=True)
    ]
    _refuse_pile(cells, said, known, where, cleaner)
    names = understand(plain, known, where)
    codes = np.full((batch.num_rows, len(cells)), SKIPPED, np.int32)
    for place, (one, column, meant) in enumerate(zip(cells, said, names, strict=True)):
        table = [
            value.code if isinstance(value, Code) else known.position(name)
            for value, name in zip(column, meant, strict=True)
        ]
        codes[:, place] = np.array([*table, SKIPPED], np.int32)[one.codes]
    orders, _ = cleaner.clean(codes, None, cast)
    return Rankings._of(orders, known.items, None, None), cast


@dataclass(frozen=True, slots=True)
class Code:
    """A cell that names no candidate."""

    code: int


def _meaning(value: Any, known: Known, cleaner: Cleaner) -> Any:
    """The cell with a word for nobody as a ``Code`` and a write-in under the name it counts for."""
    if not isinstance(value, str):
        return value
    text = value.strip(SPACES)
    if is_blank(text, known.items if known.closed else ()):
        return Code(SKIPPED)
    meant = cleaner.meaning(text)
    return Code(meant) if isinstance(meant, int) else meant


def _refuse_pile(
    cells: Sequence[Coded], said: Sequence[Sequence[Any]], known: Known, where: Where, cleaner: Cleaner
) -> None:
    """Refuse a write-in that is to count for a candidate who is not on the public list."""
    if not known.closed or cleaner.pile in known:
        return
    rows = [
        (int(one.first_rows()[code]), one.values[code])
        for one, column in zip(cells, said, strict=True)
        for code, value in enumerate(column)
        if value == cleaner.pile
    ]
    if rows := sorted(row for row in rows if row[0] >= 0):
        raise InputError(
            f"{where(rows[0][0])}: {rows[0][1].strip()!r} is a write-in, and ",
            Setting("items"),
            f" has no {cleaner.pile!r} to count it for: add that name, or set ",
            Setting("write_ins"),
            " to drop",
        )


def _with_words(listed: Sequence[str], names: Iterable[str], cleaner: Cleaner) -> Known:
    """The public list, and the names beside it that are words for nobody or write-ins: cleaning removes them."""
    more = [name for name in dict.fromkeys(names) if name not in listed and cleaner.meaning(name) != name]
    return Known.start([*listed, *more])


def _cleaned(rankings: Rankings, cast: Longs, cleaner: Cleaner) -> Part:
    """Ballots that list items by index, cleaned; items that are no candidates stay in the list, on no ballot."""
    meant = [cleaner.meaning(name) for name in rankings.items]
    items = list(dict.fromkeys([*rankings.items, *(name for name in meant if isinstance(name, str))]))
    if cleaner.listed and (strange := [name for name in items if name not in (*cleaner.listed, *rankings.items)]):
        raise InputError(
            Setting("items"),
            f" has no {strange[0]!r} to count write-ins for: add that name, or set ",
            Setting("write_ins"),
            " to drop",
        )
    place = {name: number for number, name in enumerate(items)}
    table = [place[name] if isinstance(name, str) else DROPPED if name is None else name for name in meant]
    codes = np.array([*table, DROPPED, OVERVOTED, SKIPPED], np.int32)[
        rankings.orders
    ]  # codes below 0 stay what they are
    orders, tied = cleaner.clean(codes, rankings.tied, cast)
    return Rankings._of(orders, tuple(items), None, None, None, tied, rankings.items_from_data), cast


def _listed(rankings: Rankings, listed: tuple[str, ...], cleaner: Cleaner, what: str) -> Rankings:
    """The same orders over the public list, with the words that cleaning removes behind it."""
    for name in rankings.items:
        if name not in listed and cleaner.meaning(name) == name:
            raise InputError(f"{what}: {name!r} is not one of the {len(listed)} items given")
    known = _with_words(listed, rankings.items, cleaner)
    table = [known.position(name) for name in rankings.items]
    orders = np.array([*table, DROPPED, OVERVOTED, SKIPPED], np.int32)[rankings.orders]
    return Rankings._of(orders, known.items, None, None, None, rankings.tied)


def _without(table: Rankings, gone: Sequence[str]) -> Rankings:
    """The table without items that no order lists."""
    if not gone:
        return table
    items = tuple(name for name in table.items if name not in gone)
    moved = np.array([*(items.index(name) if name in items else -1 for name in table.items), -1], np.int32)
    return Rankings._of(moved[table.orders], items, None, None, None, table.tied, table.items_from_data)


def distinct(rankings: Rankings, weights: Longs) -> Part:
    """Every different ballot once, with the sum of its weights."""
    tied = 0 if rankings.tied is None else rankings.tied
    codes, inverse = np.unique(2 * rankings.orders + tied, axis=0, return_inverse=True)
    total = np.zeros(len(codes), np.int64)
    np.add.at(total, inverse.ravel(), weights)
    return Rankings._of(codes >> 1, rankings.items, None, None, None, (codes & 1 == 1) & (codes >= 0)), total


def _cast(batch: Any, weight: str | None, most: int, where: Where) -> Longs:
    """How often each row of a batch was cast, at most ``most`` times."""
    if weight is None:
        return np.ones(batch.num_rows, np.int64)
    cells = encode(batch.column(weight))
    meaning = [*cells.values, None]
    weights = whole_weights([meaning[code] for code in cells.codes], lambda row: where(row - 1))
    if (weights > most).any():
        row = int((weights > most).argmax())
        raise _several(where(row), weights[row])
    return weights


def _engine_parts(
    held: EngineTable, columns: Columns, weight: str | None, most: int, known: Known, cleaner: Cleaner
) -> tuple[list[Part], Known]:
    """The distinct ballots of a table on an engine."""
    if columns.ratings:
        raise Unsupported(
            f"{held.what}: ratings are read from files and frames, not on an engine; use a column of ranks"
        )
    if columns.layout != "long":
        alike, columns = _rows_alike(held, columns, weight, most), replace(columns, voter=None)
    else:
        alike, columns, known = _voters_alike(held, columns, known, cleaner)
    if not len(alike):
        raise InputError(f"{held.what}: there are no ballots; at least one is needed")
    frame = Frame(alike)
    frame.what = f"{held.what}, distinct ballots"
    return list(_row_parts(frame, columns, _AMOUNT, MOST_WEIGHT, known, cleaner)), known


def _long_part(table: Held, columns: Columns, known: Known, cleaner: Cleaner) -> tuple[Part, Known]:
    """A table with a row per voter and candidate; equal ranks of a voter are ties."""
    if not (stream := list(table.batches(columns.used))):
        raise InputError(f"{table.what}: there are no ballots; at least one is needed")
    if known.closed:
        cells = (encode(batch.column(columns.ranks[0])) for _, _, batch in stream)
        texts = (value.strip(SPACES) for one in cells for value in one.values if isinstance(value, str))
        known = _with_words(known.items, texts, cleaner)
    rankings = long_rankings(stream, columns, known, table.what, table.where, "keep")
    return _cleaned(rankings, np.ones(len(rankings), np.int64), cleaner), known


def _rows_alike(held: EngineTable, columns: Columns, weight: str | None, most: int) -> Any:
    """Of a wide table every distinct row of ranks, and how often it was cast."""
    import narwhals as nw

    used = [name for name in (*columns.ranks, columns.voter, weight) if name is not None]
    with asked(held, used) as ballots:
        rows = ballots.frame.with_columns(amount_of(weight, MOST_WEIGHT).alias(_AMOUNT))
        facts = {"rows": nw.len(), "least": nw.col(_AMOUNT).min(), "most": nw.col(_AMOUNT).max()}
        if columns.voter is not None:
            facts["voters"] = nw.col(columns.voter).n_unique()
        (found,) = ballots.run(rows.select(**facts)).to_pylist()
        refuse_repeated(int(found.get("voters", found["rows"])), int(found["rows"]), held.what)
        if found["rows"] and found["least"] < 0:
            raise InputError(f"{held.what}: a weight must be a whole number from 0 to {MOST_WEIGHT:,}, and some is not")
        if found["rows"] and found["most"] > most:
            raise _several(held.what, found["most"])
        total = nw.col(_AMOUNT).sum().cast(nw.Int64).alias(_AMOUNT)
        return ballots.run(rows.select(*columns.ranks, _AMOUNT).group_by(*columns.ranks).agg(total))


def _voters_alike(held: EngineTable, columns: Columns, known: Known, cleaner: Cleaner) -> tuple[Any, Columns, Known]:
    """Of a long table every distinct way to rank, a column of ranks for each item, and how many voters have it."""
    import narwhals as nw

    item, rank = columns.ranks
    voter = str(columns.voter)
    blank = nw.col(voter).is_null() | (nw.col(voter) == "") | nw.col(item).is_null()
    with asked(held, [voter, item, rank]) as ballots:
        rows = ballots.frame
        twice = rows.group_by(voter, item).agg(rd_many=nw.len()).filter(nw.col("rd_many") > 1)
        if ballots.run(rows.filter(blank).head(1)).num_rows:
            raise InputError(f"{held.what}: a row has no voter or no item")
        if found := ballots.run(twice.head(1)).to_pylist():
            raise InputError(f"{held.what}: voter {found[0][voter]!r} lists {found[0][item]!r} more than once")
        names = sorted(str(name) for name in ballots.distinct(item))
        if known.closed:
            known = _with_words(known.items, (name.strip(SPACES) for name in names), cleaner)
        (items,) = understand([Coded(np.arange(len(names), dtype=np.int32), names, 0)], known, lambda _: held.what)
        if None in items:
            raise InputError(f"{held.what}: a row has no voter or no item")
        places = [f"rd_rank{number}" for number in range(len(names))]
        ranks = [nw.when(nw.col(item) == name).then(nw.col(rank)) for name in names]
        spread = rows.with_columns(**dict(zip(places, ranks, strict=True)))
        folded = spread.group_by(voter).agg(*(nw.col(place).max() for place in places))
        alike = ballots.run(folded.group_by(*places).agg(nw.len().alias(_AMOUNT)))
    return alike, Columns("ranked", None, tuple(places), None, (), items=tuple(map(str, items))), known
