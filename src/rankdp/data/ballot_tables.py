"""Ballots from tables, wide or long, in process or on an engine: checked rows, equal ones counted once.

On an engine one Ibis expression does the counting: a wide table is grouped by its columns of ranks; a long one first by
voter, with a column for each candidate, and then by these. What comes back is one row per distinct ballot and how often
it was cast. The checks of names and repetitions are those of tables in process, on the distinct ballots.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdp.data.columns import Columns, check_names, first_known, recognise
from rankdp.data.frames import long_entries, wide_batches
from rankdp.data.orders import orders_from_long
from rankdp.data.tables import Known, encode, in_a_sentence
from rankdp.data.vote_columns import MOST_WEIGHT, WEIGHT_NAMES, weight_of
from rankdp.errors import InputError, Unsupported
from rankdp.types import Flags, Ints, Longs

if TYPE_CHECKING:
    from rankdp.data.engines import OnEngine
    from rankdp.data.vote_files import Table

Part = tuple[Ints, Flags | None, Longs]
"""Orders, which of their places are tied with the one before, and how often each was cast."""

_AMOUNT, _VOTER = "rd_ballots", "rd_voter"


def ballot_parts(
    held: Table | OnEngine, items: Iterable[Any] | None, voter_column: str | None, weight_column: str | None
) -> tuple[Known, list[Part]]:
    """The candidates of a table and its ballots in parts; the other words are those of ``Ballots.read``."""
    from rankdp.data.vote_files import CsvFiles, Frame, ParquetFiles

    names = list(held.kinds)
    check_names(names, held.what, voter_column=voter_column, weight_column=weight_column)
    weight = weight_column or first_known(names, WEIGHT_NAMES, {voter_column})
    columns = recognise([name for name in names if name != weight], held.what, voter_column)
    if columns.layout == "long" and weight is not None:
        raise Unsupported(
            f"{held.what}: the column {weight!r} would give ballots weights, which a table with a row per "
            "voter and candidate does not have: use a row per ballot"
        )
    known = Known.start(items, getattr(held, "declared_items", None))
    with in_a_sentence(held.what):
        if not isinstance(held, (ParquetFiles, CsvFiles, Frame)):
            return known, _engine_parts(held, columns, weight, known)
        if columns.layout == "long":
            return known, [_long_part(held, columns, known)]
        return known, list(_wide_parts(held, columns, weight, known))


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


def _wide_parts(table: Table, columns: Columns, weight: str | None, known: Known) -> Iterator[Part]:
    """The distinct ballots of each batch."""
    import pyarrow as pa

    voters = []
    used = [*columns.used, *([] if weight is None else [weight])]
    for file, start, batch in table.streams(used, 1)[0]:
        where = partial(_at, table, file, start)
        for rankings in wide_batches([batch], columns, known, table.what, where):
            weights = np.ones(len(rankings), np.int64)
            if weight is not None:
                cells = encode(batch.column(weight))
                meaning = [*cells.values, None]
                weights = whole_weights([meaning[code] for code in cells.codes], lambda row: where(row - 1))  # noqa: B023
            if rankings._voters is not None:
                voters.append(rankings._voters)
            distinct, inverse = np.unique(rankings.orders, axis=0, return_inverse=True)
            total = np.zeros(len(distinct), np.int64)
            np.add.at(total, inverse.ravel(), weights)
            yield distinct, None, total
    if voters:
        ids = pa.chunked_array(voters)
        refuse_repeated(len(ids.unique()), len(ids), table.what)


def _at(table: Table, file: int, start: int, row: int) -> str:
    return table.where(file, start + row)


def _long_part(table: Table, columns: Columns, known: Known) -> Part:
    """A table with a row per voter and candidate; equal ranks of a voter are ties."""
    import pyarrow as pa

    batches = list(table.streams(columns.used, 1)[0])
    if not sum(batch.num_rows for _, _, batch in batches):
        raise InputError(f"{table.what}: there are no ballots; at least one is needed")
    starts = np.cumsum([0, *(batch.num_rows for _, _, batch in batches)]).tolist()

    def where(row: int) -> str:
        number = bisect(starts, row) - 1
        file, start, _ = batches[number]
        return table.where(file, start + row - starts[number])

    rows = pa.Table.from_batches([batch for _, _, batch in batches])
    entries = long_entries(rows, columns, known, where)
    orders = orders_from_long(entries.voters, entries.items, entries.ranks, known.items, "listed", entries.where)
    sorting = np.lexsort((entries.ranks, entries.voters))
    voters, ranks = entries.voters[sorting], entries.ranks[sorting]
    tied = np.zeros(orders.shape, np.bool_)
    # the rows of `orders` are those of the sorted entries, each filled from the left
    tied[orders >= 0] = np.concatenate([[False], (voters[1:] == voters[:-1]) & (ranks[1:] == ranks[:-1])])
    return orders, tied, np.ones(len(orders), np.int64)


def _engine_parts(held: OnEngine, columns: Columns, weight: str | None, known: Known) -> list[Part]:
    """The distinct ballots of a table on an engine."""
    from rankdp.data.vote_files import Frame

    distinct = _rows_alike(held, columns, weight) if columns.layout == "wide" else _voters_alike(held, columns)
    if not len(distinct):
        raise InputError(f"{held.what}: there are no ballots; at least one is needed")
    if columns.layout == "wide":
        frame = Frame(distinct)
        frame.what = f"{held.what}, distinct ballots"
        return list(_wide_parts(frame, replace(columns, voter=None), _AMOUNT, known))
    frame = Frame(_unfolded(distinct, columns))
    frame.what = f"{held.what}, distinct ballots"
    orders, tied, _ = _long_part(frame, columns, known)
    return [(orders, tied, distinct[_AMOUNT].to_numpy().astype(np.int64))]


def _rows_alike(held: OnEngine, columns: Columns, weight: str | None) -> Any:
    """Of a wide table every distinct row of ranks, and how often it was cast."""
    from rankdp.data.engines import cell_text, weight_cells

    table = held.table
    cells = {name: cell_text(table[name]) for name in columns.ranks}
    voter = {} if columns.voter is None else {_VOTER: cell_text(table[columns.voter])}
    rows = table.select(**cells, **voter, **{_AMOUNT: weight_cells(table, weight, MOST_WEIGHT).cast("float64")})
    facts = {"rows": rows.count(), "least": rows[_AMOUNT].min()}
    if voter:
        facts["voters"] = rows[_VOTER].nunique()
    (found,) = held.run(rows.aggregate(**facts)).to_pylist()
    refuse_repeated(int(found.get("voters", found["rows"])), int(found["rows"]), held.what)
    if found["rows"] and found["least"] < 0:
        raise InputError(f"{held.what}: a weight must be a whole number from 0 to {MOST_WEIGHT:,}, and some is not")
    return held.run(rows.group_by(columns.ranks).aggregate(**{_AMOUNT: rows[_AMOUNT].sum().cast("int64")}))


def _voters_alike(held: OnEngine, columns: Columns) -> Any:
    """Of a long table every distinct way to rank, a column for each item (0, 1, …), and how many voters have it."""
    import ibis

    from rankdp.data.engines import cell_text

    item, rank = (cell_text(held.table[name]) for name in columns.ranks)
    rows = held.table.select(voter=cell_text(held.table[columns.voter]), item=item, rank=rank)
    blank = rows.voter.isnull() | (rows.voter == "") | rows.item.isnull()
    twice = rows.group_by("voter", "item").aggregate(many=rows.count())
    if held.run(rows.filter(blank).limit(1)).num_rows:
        raise InputError(f"{held.what}: a row has no voter or no item")
    if found := held.run(twice.filter(twice.many > 1).limit(1)).to_pylist():
        raise InputError(f"{held.what}: voter {found[0]['voter']!r} lists {found[0]['item']!r} more than once")
    names = sorted(held.run(rows.select("item").distinct())["item"].to_pylist())
    each = {
        f"rank_{number}": ibis.ifelse(rows.item == name, rows.rank, None).max() for number, name in enumerate(names)
    }
    folded = rows.group_by("voter").aggregate(**each)
    distinct = held.run(folded.group_by(list(each)).aggregate(**{_AMOUNT: folded.count()}))
    return distinct.rename_columns([*names, _AMOUNT])


def _unfolded(distinct: Any, columns: Columns) -> Any:
    """The distinct ways to rank as a long table again, in which every one of them is a voter."""
    import pyarrow as pa

    ranks = distinct.drop_columns([_AMOUNT])
    entries = [
        (number, name, rank)
        for number, row in enumerate(ranks.to_pylist())
        for name, rank in row.items()
        if rank is not None
    ]
    names = [str(columns.voter), *columns.ranks]
    return pa.table([pa.array(cells) for cells in zip(*entries, strict=True)], names)
