"""Arrow tables in and out: the one road between Rankings and every file format and data frame.

A table of item names is carried as dictionary columns (codes and a list of names), so that nothing here makes
a Python text per cell. The list of items travels in the table's metadata, which keeps its order and the items
that nobody lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.cells import MISSING, Known, encode, orders_from, understand
from rankdp.data.checks import LARGE, FloatArray, IntArray, Where, check_epsilons, check_orders, row_number
from rankdp.data.columns import Columns, recognise
from rankdp.data.rankings import Rankings, Ties
from rankdp.data.ranks import check_ties, orders_from_long
from rankdp.errors import InputError

ITEMS_KEY = b"rankdp.items"
BATCH_ROWS = 131_072


def declared_items(schema: Any) -> list[str] | None:
    """The list of items that a table of ours carries in its metadata."""
    text = (schema.metadata or {}).get(ITEMS_KEY)
    if text is None:
        return None
    try:
        names = json.loads(text)
    except ValueError:
        return None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def frame_batches(
    frame: Any, items: Iterable[Any] | None, ties: Ties, voter_column: str | None, epsilon_column: str | None
) -> tuple[Known, Iterator[Rankings]]:
    """Rankings, batch by batch, from anything that speaks the Arrow C stream protocol."""
    import pyarrow as pa

    check_ties(ties)
    if not isinstance(frame, pa.Table):
        if not hasattr(frame, "__arrow_c_stream__"):
            raise InputError(
                f"frame must be an Arrow-compatible table (pandas, Polars, DuckDB, PyArrow), got {type(frame).__name__}"
            )
        frame = pa.table(frame)
    columns = recognise(frame.column_names, "frame", voter_column, epsilon_column)
    if not len(frame):
        raise InputError("frame: there are no rows")
    known = Known.start(items, declared_items(frame.schema))
    if columns.layout == "long":
        return known, iter([long_rankings(frame, columns, known, ties, row_number)])
    return known, wide_batches(frame.select(columns.used).to_batches(BATCH_ROWS), columns, known)


def wide_batches(batches: Iterable[Any], columns: Columns, known: Known) -> Iterator[Rankings]:
    """Rankings from Arrow record batches of a wide table."""
    start = 0
    for batch in batches:
        if batch.num_rows:
            yield wide_rankings(batch, columns, known, partial(_later_row, start))
            start += batch.num_rows


def _later_row(start: int, row: int) -> str:
    return row_number(start + row)


def wide_rankings(batch: Any, columns: Columns, known: Known, where: Where) -> Rankings:
    """One batch of a wide table, checked."""
    return later_rankings(batch, columns, known, where)()


def later_rankings(batch: Any, columns: Columns, known: Known, where: Where) -> Callable[[], Rankings]:
    """The same with its names read now and its rows gathered and checked by the call that follows, in any thread."""
    gather = orders_from([batch.column(name) for name in columns.ranks], known, where)
    items = known.items

    def finish() -> Rankings:
        voters = None if columns.voter is None else voter_ids(batch.column(columns.voter), where)
        epsilons = None if columns.epsilon is None else epsilon_values(batch.column(columns.epsilon), where)
        return Rankings._of(gather(), items, voters, epsilons)

    return finish


def voter_ids(column: Any, where: Where) -> Any:
    """The id column as it came, with no blank in it."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"{where(row)}: the voter id is blank")
    return column


def numbers(column: Any, what: str, where: Where) -> FloatArray:
    """A column of numbers as float64, NaN where blank; text is read exactly as Python reads it."""
    import pyarrow as pa

    column = _decoded(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    try:
        values = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.array([_number(cell, what, where, row) for row, cell in enumerate(column.to_pylist())])
    return np.array(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy())


def _number(cell: Any, what: str, where: Where, row: int) -> float:
    if cell is None or (isinstance(cell, str) and cell.strip() in MISSING):
        return float("nan")
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise InputError(f"{where(row)}: {what} must be a number, got {cell!r}") from None


def epsilon_values(column: Any, where: Where) -> FloatArray:
    """Each voter's epsilon: finite and above 0 in every row."""
    values = numbers(column, "epsilon", where)
    blank = np.flatnonzero(np.isnan(values))
    if blank.size and column[int(blank[0])].as_py() in (None, *MISSING):
        raise InputError(f"{where(int(blank[0]))}: epsilon is blank; every voter needs one")
    return check_epsilons(values, len(values), where)


def long_rankings(table: Any, columns: Columns, known: Known, ties: Ties, where: Where) -> Rankings:
    """A long table (one row per voter and listed item), grouped: voters in order of first appearance."""
    import pyarrow as pa

    item_column, rank_column = columns.ranks
    voters = encode(_decoded(voter_ids(table.column(columns.voter), where)))
    ranks = numbers(table.column(rank_column), "rank", where)
    wrong = np.flatnonzero((ranks != np.floor(ranks)) & ~np.isnan(ranks) | np.isinf(ranks) | (ranks < 1))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(f"{where(row)}: a rank must be a whole number from 1 on, got {float(ranks[row]):g}")
    item_cells = encode(table.column(item_column))
    names = understand([item_cells], known, where)[0]
    meaning = np.array([*(known.position(name) for name in names), -1], dtype=np.int64)
    items = meaning[item_cells.codes]
    if (items < 0).any():
        raise InputError(f"{where(int((items < 0).argmax()))}: the item is blank")
    listed = np.flatnonzero(~np.isnan(ranks))
    _refuse_silent(voters.codes, listed, voters.values, where)
    orders = orders_from_long(
        voters.codes[listed].astype(np.int64),
        items[listed],
        ranks[listed].astype(np.int64),
        known.names,
        ties,
        lambda entry: where(int(listed[entry])),
    )
    check_orders(orders, known.names)
    ids = pa.array(voters.values, type=_decoded(table.column(columns.voter)).type)
    epsilons = None
    if columns.epsilon is not None:
        epsilons = _one_each(epsilon_values(table.column(columns.epsilon), where), voters.codes, where)
    return Rankings._of(orders, known.items, ids, epsilons)


def _refuse_silent(codes: IntArray, listed: NDArray[np.intp], voters: Sequence[Any], where: Where) -> None:
    silent = np.flatnonzero(np.bincount(codes[listed], minlength=len(voters)) == 0)
    if silent.size:
        row = int((codes == silent[0]).argmax())
        raise InputError(f"{where(row)}: voter {voters[int(silent[0])]!r} has no rank at all")


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _one_each(values: FloatArray, codes: IntArray, where: Where) -> FloatArray:
    """A voter's epsilon, which must be the same in all of the voter's rows."""
    first = np.unique(codes, return_index=True)[1]
    differing = np.flatnonzero(values != values[first][codes])
    if differing.size:
        row = int(differing[0])
        raise InputError(f"{where(row)}: the voter has the epsilons {values[first][codes[row]]} and {values[row]}")
    return values[first]


def arrow_voters(rankings: Rankings) -> Any:
    """The voters' ids as an Arrow array (text when they are of several kinds), or None."""
    import pyarrow as pa

    voters = rankings._voters
    if not isinstance(voters, np.ndarray):
        return voters.combine_chunks() if isinstance(voters, pa.ChunkedArray) else voters
    try:
        return pa.array(voters)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([str(voter) for voter in voters])


def wide_schema(
    width: int, items: Sequence[str], voter: tuple[str, Any] | None, epsilon: str | None, full: bool = False
) -> Any:
    """The schema of a wide table; `full` promises that no cell is blank, which spares the null markers."""
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    fields = [] if voter is None else [pa.field(voter[0], voter[1], nullable=not full)]
    fields += [pa.field(f"rank_{rank + 1}", kind, nullable=not full) for rank in range(width)]
    if epsilon is not None:
        fields.append(pa.field(epsilon, pa.float64(), nullable=not full))
    return pa.schema(fields, metadata={ITEMS_KEY: json.dumps(list(items), ensure_ascii=False).encode()})


def item_columns(rankings: Rankings, width: int, values: Any) -> list[Any]:
    """The orders as `width` Arrow dictionary columns over `values`, null where nothing is listed."""
    import pyarrow as pa

    orders = rankings.orders
    columns = np.empty(orders.shape[::-1], np.int32)
    if orders.size >= LARGE:
        from rankdp.data import order_kernels as kernels

        kernels.transpose(orders, columns)
    else:
        columns[:] = orders.T
    full = bool((orders[:, -1] >= 0).all())
    arrays = []
    for rank in range(width):
        if rank < len(columns):
            codes = pa.array(columns[rank], mask=None if full else columns[rank] < 0)
        else:
            codes = pa.nulls(len(rankings), pa.int32())
        arrays.append(pa.DictionaryArray.from_arrays(codes, values, safe=False))
    return arrays


def record_batch(rankings: Rankings, schema: Any = None, width: int | None = None) -> Any:
    """One wide Arrow record batch, by a given schema with `width` rank columns or by the one that fits."""
    import pyarrow as pa

    ids = arrow_voters(rankings)
    width = width or rankings.orders.shape[1]
    if schema is None:
        epsilon = "epsilon" if rankings.epsilons is not None else None
        schema = wide_schema(width, rankings.items, None if ids is None else ("voter", ids.type), epsilon)
    arrays = [] if ids is None else [ids]
    arrays += item_columns(rankings, width, pa.array(rankings.items, pa.string()))
    if rankings.epsilons is not None:
        arrays.append(pa.array(rankings.epsilons))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
