"""Ballots from tables, wide or long, in process or on an engine: checked rows, equal ones counted once.

On an engine one Ibis expression does the counting: a wide table is grouped by its columns of ranks; a long one first by
voter, with a column of ranks for each candidate, and then by these. What comes back is one row per distinct ballot and
how often it was cast. The checks of names and repetitions are those of tables in process, on the distinct ballots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rankdp.data.columns import Columns, check_names, first_known, recognise
from rankdp.data.engines import OnEngine, cell_text, weight_cells
from rankdp.data.frames import later, long_rankings, rankings_of, refuse_nested
from rankdp.data.orders import ReadTies
from rankdp.data.rankings import Rankings
from rankdp.data.sources import Frame, Table
from rankdp.data.tables import Coded, Known, Where, arrow_ids, encode, in_a_sentence, text_of, understand
from rankdp.data.vote_columns import MOST_WEIGHT, ROWS_NOT_PEOPLE, WEIGHT_NAMES, is_blank, weight_of
from rankdp.errors import InputError, Unsupported
from rankdp.types import Longs

Part = tuple[Rankings, Longs]
"""Orders, with ties if there are any, and how often each was cast."""

UNDERVOTES = ("undervote", "skipped", "skipped ranking", "blank", "no vote")
OVERVOTES = ("overvote", "over vote", "overvoted")
_LOOSE = (
    "cast vote records: blank places and undervotes are passed over, a candidate ranked again counts once, an overvote "
    "ends the ballot"
)
_AMOUNT, _VOTER = "rd_ballots", "rd_voter"


def ballot_parts(
    held: Table | OnEngine,
    items: Iterable[Any] | None,
    voter_column: str | None,
    weight_column: str | None,
    renaming: Mapping[str, str] | None = None,
) -> tuple[Known, list[Part], tuple[str, ...]]:
    """The candidates of a table, its ballots in parts, and notes; the other words are those of ``Ballots.read``."""
    names = list(held.kinds)
    check_names(names, held.what, voter_column=voter_column, weight_column=weight_column)
    asked = dict(renaming or {})
    usual = first_known(names, WEIGHT_NAMES, {voter_column, *asked.values()})
    weight = weight_column or asked.pop("weight", None) or usual
    columns = recognise([name for name in names if name != weight], held.what, voter_column, columns=asked)
    refuse_nested(held.what, held.kinds, columns.used, "other")
    if columns.layout == "long" and weight is not None:
        raise Unsupported(
            f"{held.what}: the column {weight!r} would give ballots weights, which a table with a row per "
            "voter and candidate does not have: use a row per ballot"
        )
    most = 1 if names_people(columns.voter, voter_column) else MOST_WEIGHT
    known = Known.start(items, columns.items or getattr(held, "declared_items", None))
    notes = (f"{held.what}: {_LOOSE}",) if columns.loose else ()
    with in_a_sentence(held.what):
        if isinstance(held, OnEngine):
            return known, _engine_parts(held, columns, weight, most, known), notes
        if columns.layout == "long":
            return known, [_long_part(held, columns, known)], notes
        return known, list(_wide_parts(held, columns, weight, most, known)), notes


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


def _wide_parts(table: Table, columns: Columns, weight: str | None, most: int, known: Known) -> Iterator[Part]:
    """The distinct ballots of each batch of a table with a row per ballot; a row stands for at most ``most``."""
    import pyarrow as pa

    voters = []
    read = _loose_rankings if columns.loose else rankings_of
    for file, start, batch in table.streams([*columns.used, *([] if weight is None else [weight])])[0]:
        where = partial(later, table.where, file, start)
        rankings = read(batch, columns, known, where, "keep")
        if rankings._voters is not None:
            voters.append(rankings._voters)
        # a ballot that ranks nobody was not cast
        cast = (rankings.orders[:, 0] >= 0) * _cast(batch, weight, most, where)
        yield distinct(rankings, cast)
    if voters:
        ids = pa.chunked_array(voters)
        refuse_repeated(len(ids.unique()), len(ids), table.what)


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


def _loose_rankings(batch: Any, columns: Columns, known: Known, where: Where, _: ReadTies) -> Rankings:
    """Cast vote records: blanks are passed over, an overvote ends the ballot, who is ranked again counts once."""
    cells = [encode(batch.column(name)) for name in columns.ranks]
    texts = [[text_of(value) for value in one.values] for one in cells]
    over = [[str(text).lower() in OVERVOTES for text in column] for column in texts]
    nobody = (*UNDERVOTES, *OVERVOTES)
    plain = [
        Coded(one.codes, [None if is_blank(text) or str(text).lower() in nobody else text for text in column], 0)
        for one, column in zip(cells, texts, strict=True)
    ]
    names = understand(plain, known, where)
    orders = np.full((batch.num_rows, len(cells)), -1, np.int32)
    ended = np.zeros(batch.num_rows, np.bool_)
    for place, (one, meant, ends) in enumerate(zip(cells, names, over, strict=True)):
        ended |= np.array([*ends, False])[one.codes]
        item = np.array([*(known.position(name) for name in meant), -1], np.int32)[one.codes]
        again = (orders[:, :place] == item[:, None]).any(axis=1)
        orders[:, place] = np.where(ended | again, -1, item)
    orders = np.take_along_axis(orders, np.argsort(orders < 0, axis=1, kind="stable"), axis=1)
    voters = None if columns.voter is None else arrow_ids(batch.column(columns.voter), where)
    return Rankings._of(orders, known.items, voters, None)


def _engine_parts(held: OnEngine, columns: Columns, weight: str | None, most: int, known: Known) -> list[Part]:
    """The distinct ballots of a table on an engine."""
    if columns.layout != "long":
        alike, columns = _rows_alike(held, columns, weight, most), replace(columns, voter=None)
    else:
        alike, columns = _voters_alike(held, columns, known)
    if not len(alike):
        raise InputError(f"{held.what}: there are no ballots; at least one is needed")
    frame = Frame(alike)
    frame.what = f"{held.what}, distinct ballots"
    return list(_wide_parts(frame, columns, _AMOUNT, MOST_WEIGHT, known))


def _long_part(table: Table, columns: Columns, known: Known) -> Part:
    """A table with a row per voter and candidate; equal ranks of a voter are ties."""
    if not (stream := list(table.streams(columns.used)[0])):
        raise InputError(f"{table.what}: there are no ballots; at least one is needed")
    rankings = long_rankings(stream, columns, known, table.what, table.where, "keep")
    return rankings, np.ones(len(rankings), np.int64)


def _rows_alike(held: OnEngine, columns: Columns, weight: str | None, most: int) -> Any:
    """Of a wide table every distinct row of ranks, and how often it was cast."""
    table = held.table
    cells = {name: cell_text(table[name]) for name in columns.ranks}
    voter = {} if columns.voter is None else {_VOTER: cell_text(table[columns.voter])}
    rows = table.select(**cells, **voter, **{_AMOUNT: weight_cells(table, weight, MOST_WEIGHT).cast("float64")})
    facts = {"rows": rows.count(), "least": rows[_AMOUNT].min(), "most": rows[_AMOUNT].max()}
    if voter:
        facts["voters"] = rows[_VOTER].nunique()
    (found,) = held.run(rows.aggregate(**facts)).to_pylist()
    refuse_repeated(int(found.get("voters", found["rows"])), int(found["rows"]), held.what)
    if found["rows"] and found["least"] < 0:
        raise InputError(f"{held.what}: a weight must be a whole number from 0 to {MOST_WEIGHT:,}, and some is not")
    if found["rows"] and found["most"] > most:
        raise _several(held.what, found["most"])
    return held.run(rows.group_by(columns.ranks).aggregate(**{_AMOUNT: rows[_AMOUNT].sum().cast("int64")}))


def _voters_alike(held: OnEngine, columns: Columns, known: Known) -> tuple[Any, Columns]:
    """Of a long table every distinct way to rank, a column of ranks for each item, and how many voters have it."""
    import ibis

    item, rank = (cell_text(held.table[name]) for name in columns.ranks)
    rows = held.table.select(voter=cell_text(held.table[columns.voter]), item=item, rank=rank)
    blank = rows.voter.isnull() | (rows.voter == "") | rows.item.isnull()
    twice = rows.group_by("voter", "item").aggregate(many=rows.count())
    if held.run(rows.filter(blank).limit(1)).num_rows:
        raise InputError(f"{held.what}: a row has no voter or no item")
    if found := held.run(twice.filter(twice.many > 1).limit(1)).to_pylist():
        raise InputError(f"{held.what}: voter {found[0]['voter']!r} lists {found[0]['item']!r} more than once")
    names = sorted(held.run(rows.select("item").distinct())["item"].to_pylist())
    (items,) = understand([Coded(np.arange(len(names), dtype=np.int32), names, 0)], known, lambda _: held.what)
    if None in items:
        raise InputError(f"{held.what}: a row has no voter or no item")
    each = {
        f"rank_{number}": ibis.ifelse(rows.item == name, rows.rank, None).max() for number, name in enumerate(names)
    }
    folded = rows.group_by("voter").aggregate(**each)
    distinct = held.run(folded.group_by(list(each)).aggregate(**{_AMOUNT: folded.count()}))
    return distinct, Columns("ranked", None, tuple(each), None, (), items=tuple(map(str, items)))
