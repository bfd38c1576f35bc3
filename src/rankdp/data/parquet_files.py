"""Parquet: dictionary pages in, dictionary pages out, and no text per cell on the way.

Rank columns of the common kind are read by `parquet_reading`, everything else by Arrow. Tables without a blank, whose
ids (if any) are numbers, are written by `parquet_pages`; all others by Arrow. Arrow's settings were chosen by measuring
ten rank columns and an integer id, per row: writing took 80 ns and 13 bytes without compression, 96 ns and 9 bytes with
snappy, 120 ns and 5 bytes with zstd; null markers added 20 to 50 ns, statistics another 50. So: snappy, no statistics,
and columns marked as required while no cell is blank. Reading runs in the caller's thread, which leaves the other cores
to the work between the files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.cells import Known, understand
from rankdp.data.checks import Where
from rankdp.data.columns import Columns, recognise
from rankdp.data.frames import (
    BATCH_ROWS,
    ITEMS_KEY,
    arrow_voters,
    declared_items,
    epsilon_values,
    later_rankings,
    long_rankings,
    record_batch,
    voter_ids,
    wide_rankings,
    wide_schema,
)
from rankdp.data.parquet_pages import PageWriter, supports
from rankdp.data.parquet_reading import Group, GroupReader
from rankdp.data.rankings import Rankings, Ties
from rankdp.data.sources import Source
from rankdp.errors import InputError, system_problem


def open_parquet(
    path: str,
    items: Iterable[Any] | None,
    ties: Ties,
    voter_column: str | None,
    epsilon_column: str | None,
    batch_rows: int,
) -> Source:
    """Open a Parquet file with wide or long columns; a wide file is streamed, a long one loaded at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        plain = pq.ParquetFile(path)
        names = plain.schema_arrow.names
    except (pa.ArrowException, UnicodeDecodeError):
        raise InputError(f"{path}: this is not a whole Parquet file (damaged or cut short?)") from None
    except OSError as error:
        raise system_problem(path, error, "read") from None
    columns = recognise(names, path, voter_column, epsilon_column)
    metadata = plain.metadata
    if not metadata.num_rows:
        raise InputError(f"{path}: there are no rows")
    # the footer's own texts: the Arrow schema kept beside them hides those that were added at the end
    known = Known.start(items, declared_items(metadata))
    if columns.layout == "long":
        table = _sheltered(path, lambda: plain.read(columns.used))
        rankings = long_rankings(table, columns, known, ties, partial(_row, path))
        plain.close()
        width = rankings.orders.shape[1]
        return Source("parquet", columns, known, len(rankings), width, iter([rankings]), lambda: None)
    plain.close()
    coded = pq.ParquetFile(path, read_dictionary=list(columns.ranks), pre_buffer=False)
    later = _batches(path, coded, columns, known, batch_rows)
    whole = (finish() for finish in later)
    return Source("parquet", columns, known, metadata.num_rows, len(columns.ranks), whole, coded.close, later)


def _row(path: str, row: int) -> str:
    return f"{path}, row {row + 1}"


def _later_row(path: str, start: int, row: int) -> str:
    return _row(path, start + row)


def _sheltered(path: str, read: Any) -> Any:
    import pyarrow as pa

    try:
        return read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: the file is damaged ({str(error).splitlines()[0]})") from None


def _batches(path: str, file: Any, columns: Columns, known: Known, batch_rows: int) -> Iterator[Callable[[], Rankings]]:
    """Batches of row groups read page by page, and from the first one that cannot be, batches by Arrow."""
    reader = GroupReader(path, file, columns.ranks)
    start, number, groups = 0, 0, file.num_row_groups
    for number in range(groups):
        if (group := reader.read(number)) is None:
            break
        others = [name for name in (columns.voter, columns.epsilon) if name is not None]
        table = _sheltered(path, partial(file.read_row_group, number, others, use_threads=False))
        for first in range(0, group.rows, batch_rows):
            part = group.part(first, batch_rows)
            again = partial(_read_again, path, columns, number, first, part.rows)
            yield _later(part, table.slice(first, part.rows), columns, known, partial(_later_row, path, start), again)
            start += part.rows
    else:
        return
    left = list(range(number, groups))
    stream = file.iter_batches(batch_size=batch_rows, row_groups=left, columns=columns.used, use_threads=False)
    while (batch := _sheltered(path, lambda: next(stream, None))) is not None:
        if batch.num_rows:
            _check_codes(path, batch, columns)
            yield later_rankings(batch, columns, known, partial(_later_row, path, start))
            start += batch.num_rows


def _later(
    part: Group, others: Any, columns: Columns, known: Known, where: Where, again: Callable[[], Any]
) -> Callable[[], Rankings]:
    """`frames.later_rankings` of packed rows; those that break a rule are read again by Arrow, which says which one."""
    meanings = understand(part.coded(known), known, where)
    tables = [np.array([known.position(name) for name in names], dtype=np.int32) for names in meanings]
    items = known.items

    def finish() -> Rankings:
        orders = part.orders(tables, len(items))
        if orders is None:
            return wide_rankings(again(), columns, replace(known, names=list(items)), where)
        voters = None if columns.voter is None else voter_ids(_one_array(others.column(columns.voter)), where)
        epsilons = None if columns.epsilon is None else epsilon_values(others.column(columns.epsilon), where)
        return Rankings._of(orders, items, voters, epsilons)

    return finish


def _one_array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _read_again(path: str, columns: Columns, group: int, first: int, rows: int) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, read_dictionary=list(columns.ranks)) as file:
        table = _sheltered(path, partial(file.read_row_group, group, columns.used, use_threads=False))
    _check_codes(path, table, columns)
    return table.slice(first, rows).combine_chunks()


def _check_codes(path: str, table: Any, columns: Columns) -> None:
    """Refuse codes outside their dictionary, which Arrow hands on as they are in the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.select(columns.ranks).columns:
        for part in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            if pa.types.is_dictionary(part.type):
                ends = pc.min_max(part.indices)
                if ends["min"].is_valid and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < len(part.dictionary):
                    raise InputError(f"{path}: the file is damaged (a code lies outside its dictionary)")


class ParquetSink:
    """Writes wide batches as row groups.

    Columns start as required, which is far cheaper; should a blank turn up later, what is written so far is copied
    once into a file whose columns may be null.
    """

    def __init__(self, temporary: str, width: int, voter: str, epsilon: str) -> None:
        self._temporary, self._width, self._voter, self._epsilon = temporary, width, voter, epsilon
        self._writer: Any = None
        self._full = True
        self._items: tuple[str, ...] = ()

    def write(self, rankings: Rankings) -> None:
        """Append one batch."""
        ids = arrow_voters(rankings)
        if self._writer is None:
            self._start(rankings, ids)
        self._items = rankings.items
        if self._paged:
            if self._append_pages(rankings, ids):
                return
            self._allow_blanks()
        elif self._full and not self._no_blank(rankings):
            self._allow_blanks()
        self._writer.write_batch(record_batch(rankings, self._writer.schema, self._width))

    def _no_blank(self, rankings: Rankings) -> bool:
        return rankings.orders.shape[1] == self._width and bool((rankings.orders[:, -1] >= 0).all())

    def _start(self, rankings: Rankings, ids: Any) -> None:
        self._full = self._no_blank(rankings)
        voter = None if ids is None else (self._voter, ids.type)
        epsilon = None if rankings.epsilons is None else self._epsilon
        schema = wide_schema(self._width, rankings.items, voter, epsilon, self._full).remove_metadata()
        numeric = ids is None or (supports(ids.type) and not ids.null_count)
        if self._full and numeric and sys.byteorder == "little":
            self._writer = PageWriter(self._temporary, schema)
        else:
            self._writer = self._open(schema)

    def _append_pages(self, rankings: Rankings, ids: Any) -> bool:
        """Write the batch as pages; False, with nothing written, if a cell is blank or the ids are of another kind."""
        import pyarrow as pa

        same = ids is None or (ids.type == self._writer.schema.field(0).type and not ids.null_count)
        if not same or rankings.orders.shape[1] != self._width:
            return False
        front = [] if ids is None else [ids]
        back = [] if rankings.epsilons is None else [pa.array(rankings.epsilons)]
        return bool(self._writer.write(rankings.orders, rankings.items, front, back))

    @property
    def _paged(self) -> bool:
        return isinstance(self._writer, PageWriter)

    def _open(self, schema: Any) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        coded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        return pq.ParquetWriter(
            self._temporary, schema, compression="snappy", use_dictionary=coded, write_statistics=False
        )

    def _allow_blanks(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._paged:
            self._writer.finish({})
        else:
            self._writer.close()
        strict = self._writer.schema
        self._full = False
        with pa.OSFile(self._temporary) as written:
            # the name is free for the new file while the old one is open: nobody else ever sees it
            Path(self._temporary).unlink()
            self._writer = self._open(pa.schema([field.with_nullable(True) for field in strict]))
            file = pq.ParquetFile(written, read_dictionary=[f"rank_{rank + 1}" for rank in range(self._width)])
            for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
                self._writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=self._writer.schema))

    def finish(self) -> None:
        """Add the list of items, which may have grown since the first batch, and close the file."""
        names = {ITEMS_KEY.decode(): json.dumps(self._items, ensure_ascii=False)}
        if self._paged:
            self._writer.finish(names)
        else:
            self._writer.add_key_value_metadata(names)
            self._writer.close()

    def abandon(self) -> None:
        """Let go of the file."""
        if self._writer is not None:
            self._writer.close()
