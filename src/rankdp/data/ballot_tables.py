"""Ballots in tables: a row per ballot, or a row per voter and candidate, in memory or on an engine.

On an engine expressions do the counting: a wide table is grouped by its columns of ranks; a long one first by
voter, with a column of ranks for each candidate, and then by these. What comes back is one row per distinct ballot and
how often it was cast. The checks of names and repetitions are those of tables in process, on the distinct ballots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rankdp.data.ballot_parts import Part, cleaned, distinct, refuse_repeated, whole_weights, with_words
from rankdp.data.cells import SPACES, Coded, Known, Where, arrow_ids, encode, in_a_sentence, understand
from rankdp.data.cleaning import SKIPPED, Cleaner
from rankdp.data.columns import Columns, check_names, first_known, recognise
from rankdp.data.frames import later, long_rankings, rankings_of, refuse_nested
from rankdp.data.queries import asked
from rankdp.data.rankings import Rankings
from rankdp.data.tables import EngineTable, Frame, Held, Table
from rankdp.data.vote_columns import MOST_WEIGHT, ROWS_NOT_PEOPLE, WEIGHT_NAMES, is_blank
from rankdp.data.votes import amount_of
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.types import Longs

_AMOUNT = "rd_ballots"


@dataclass(frozen=True, slots=True)
class BallotColumns:
    """Which columns of a table hold ballots, as the caller says; parameters as in ``Ballots.read``."""

    voter_column: str | None = None
    weight_column: str | None = None
    columns: Mapping[str, str] | None = None
    layout: str = "auto"


def table_parts(
    held: Table, listed: tuple[str, ...] | None, said: BallotColumns, cleaner: Cleaner
) -> tuple[list[Part], Known]:
    """The ballots of a table in parts, and what is known of the candidates.

    Parameters
    ----------
    held
        The table.
    listed
        The public list of candidates, if there is one.
    said
        Which columns hold what.
    cleaner
        The rule by which ballots are cleaned.
    """
    names = list(held.kinds)
    check_names(names, held.what, voter_column=said.voter_column, weight_column=said.weight_column)
    columns = dict(said.columns or {})
    usual = first_known(names, WEIGHT_NAMES, {said.voter_column, *columns.values()})
    weight = said.weight_column or columns.pop("weight", None) or usual
    meant = recognise(
        [name for name in names if name != weight], held.what, said.voter_column, columns=columns, layout=said.layout
    )
    refuse_nested(held.what, held.kinds, meant.used, "other")
    if meant.layout == "long" and weight is not None:
        raise Unsupported(
            f"{held.what}: the column {weight!r} would give ballots weights, which a table with a row per "
            "voter and candidate does not have: use a row per ballot"
        )
    most = 1 if _names_people(meant.voter, said.voter_column) else MOST_WEIGHT
    found = not meant.items and held.items_from_data
    known = Known.start(listed, meant.items or held.declared_items, found)
    if listed is not None and meant.layout == "ranked":
        known = with_words(listed, meant.items, cleaner)
    with in_a_sentence(held.what):
        if isinstance(held, EngineTable):
            return _engine_parts(held, meant, weight, most, known, cleaner)
        if meant.layout == "long":
            part, known = _long_part(held, meant, known, cleaner)
            return [part], known
        return list(_row_parts(held, meant, weight, most, known, cleaner)), known


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
            yield distinct(*cleaned(rankings, cast, cleaner))
    if voters:
        ids = pa.chunked_array(voters)
        refuse_repeated(len(ids.unique()), len(ids), table.what)


def _wide_part(batch: Any, columns: Columns, cast: Longs, known: Known, where: Where, cleaner: Cleaner) -> Part:
    """The ballots of a batch with a column per rank, cleaned."""
    cells = [encode(batch.column(name)) for name in columns.ranks]
    said = [[_meaning(value, known, cleaner) for value in one.values] for one in cells]
    plain = [
        Coded(one.codes, [None if isinstance(value, _Code) else value for value in column], 0)
        for one, column in zip(cells, said, strict=True)
    ]
    _refuse_pile(cells, said, known, where, cleaner)
    names = understand(plain, known, where)
    codes = np.full((batch.num_rows, len(cells)), SKIPPED, np.int32)
    for place, (one, column, meant) in enumerate(zip(cells, said, names, strict=True)):
        table = [
            value.code if isinstance(value, _Code) else known.position(name)
            for value, name in zip(column, meant, strict=True)
        ]
        codes[:, place] = np.array([*table, SKIPPED], np.int32)[one.codes]
    orders, _ = cleaner.clean(codes, None, cast)
    return Rankings._of(orders, known.items, None, None), cast


@dataclass(frozen=True, slots=True)
class _Code:
    """A cell that names no candidate."""

    code: int


def _meaning(value: Any, known: Known, cleaner: Cleaner) -> Any:
    """The cell with a word for nobody as a ``_Code`` and a write-in under the name it counts for."""
    if not isinstance(value, str):
        return value
    text = value.strip(SPACES)
    if is_blank(text, known.items if known.closed else ()):
        return _Code(SKIPPED)
    meant = cleaner.meaning(text)
    return _Code(meant) if isinstance(meant, int) else meant


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


def _names_people(voter: str | None, asked: str | None) -> bool:
    """Whether a column names voters, each with one ballot, and not rows (``id``), which may stand for many."""
    return voter is not None and (voter == asked or first_known([voter], ROWS_NOT_PEOPLE, set()) is None)


def _several(at: str, weight: float) -> InputError:
    return InputError(
        f"{at}: the voter has {weight:,.0f} ballots, and an election counts one ballot of each voter; if the rows are "
        "not people, leave out the column of voters"
    )


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


def _long_part(table: Held, columns: Columns, known: Known, cleaner: Cleaner) -> tuple[Part, Known]:
    """A table with a row per voter and candidate; equal ranks of a voter are ties."""
    if not (stream := list(table.batches(columns.used))):
        raise InputError(f"{table.what}: there are no ballots; at least one is needed")
    if known.closed:
        cells = (encode(batch.column(columns.ranks[0])) for _, _, batch in stream)
        texts = (value.strip(SPACES) for one in cells for value in one.values if isinstance(value, str))
        known = with_words(known.items, texts, cleaner)
    rankings = long_rankings(stream, columns, known, table.what, table.where, "keep")
    return cleaned(rankings, np.ones(len(rankings), np.int64), cleaner), known


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
            known = with_words(known.items, (name.strip(SPACES) for name in names), cleaner)
        (items,) = understand([Coded(np.arange(len(names), dtype=np.int32), names, 0)], known, lambda _: held.what)
        if None in items:
            raise InputError(f"{held.what}: a row has no voter or no item")
        places = [f"rd_rank{number}" for number in range(len(names))]
        ranks = [nw.when(nw.col(item) == name).then(nw.col(rank)) for name in names]
        spread = rows.with_columns(**dict(zip(places, ranks, strict=True)))
        folded = spread.group_by(voter).agg(*(nw.col(place).max() for place in places))
        alike = ballots.run(folded.group_by(*places).agg(nw.len().alias(_AMOUNT)))
    return alike, Columns("ranked", None, tuple(places), None, (), items=tuple(map(str, items))), known
