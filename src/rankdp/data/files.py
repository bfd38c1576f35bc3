"""Files of rankings: one way to open them, one way to write them, whatever the format.

Reading. The ending says the format (``_FORMATS``), the header the layout (`rankdp.data.columns`). In PrefLib and BLT
files orders are counted, and give one row for each voter that is counted. All but Parquet and Excel may be compressed.

A cell may spell *missing* as a blank, NA, N/A, NaN, nan, null, NULL, None or -, one way in one file; a name
that `items=` lists is an item all the same. Spaces around an item's name are not part of it. Without `items=`
the items are the names that occur, in natural order of their names (`Course 2` before `Course 10`): an order of
first appearance would publish the first voter's ranking. (A stream cannot know what comes later: it adds the
new items of each batch in natural order after those it has, so that an index never changes. PrefLib files and
Parquet files written here carry their own list.)

Writing goes to a temporary file in the target's directory, which takes the target's name only when everything
is on disk. An exception of any kind removes it and leaves an older file as it was.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from glob import has_magic
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from rankdp.checks import one_of, whole
from rankdp.data.adapters import counted_profile
from rankdp.data.atomic import NewFile, known_ending, writing
from rankdp.data.cells import Batch, Known
from rankdp.data.columns import refuse_nested
from rankdp.data.formats.csv import CsvSink
from rankdp.data.formats.parquet import ParquetSink
from rankdp.data.formats.preflib import PreflibSink, open_preflib, repeated
from rankdp.data.formats.texts import codec
from rankdp.data.frames import BATCH_ROWS, RankingsReader, Reading, arrow_batch, long_rankings, row_batches, to_arrow
from rankdp.data.orders import refuse_tie
from rankdp.data.rankings import FORMATS, Rankings
from rankdp.data.tables import Frame, Table, a_file, find_files, held, open_table, spread
from rankdp.errors import InputError, Setting

PREFLIB = ("soc", "soi", "toc", "toi")
COUNTED = (*PREFLIB, "blt")
_FORMATS = dict.fromkeys((".csv", ".tsv"), "csv") | dict.fromkeys((".parquet", ".pq"), "parquet")
_FORMATS |= {f".{kind}": kind for kind in COUNTED} | dict.fromkeys((".jsonl", ".ndjson", ".json"), "json")
_FORMATS |= {".xlsx": "excel"}
_READ_ONLY = ("json", "blt", "excel")


Sink = CsvSink | ParquetSink | PreflibSink
"""What a format does with batches: `write` one, `finish` the file when all is well, else `abandon` it."""


def format_of(path: str | PathLike[str], written: bool = False) -> str:
    """The format that a file's ending says, whatever compresses it; Parquet compresses by itself."""
    name = os.fspath(path)
    packed = codec(name)
    formats = [ending for ending, kind in _FORMATS.items() if not written or kind not in _READ_ONLY]
    kind = _FORMATS[known_ending(Path(name).with_suffix("") if packed else name, formats)]
    if packed and kind in ("parquet", "excel"):
        raise InputError(
            f"{name}: a file of this format compresses by itself; leave out the ending {Path(name).suffix}"
        )
    return kind


def open_rankings(
    source: Any,
    *,
    batch_rows: int = BATCH_ROWS,
    table: str | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    **reading: Any,
) -> RankingsReader:
    """Open rankings for reading in batches, each checked as it is read.

    Wide CSV and Parquet are streamed: the memory does not depend on the number of rows. A long table must be
    grouped by voter and is loaded whole; so are the distinct orders of a PrefLib file. Without a list of items, of the
    caller or in the file, `complete` of a batch speaks of the items met so far: a later batch may add some.

    Parameters
    ----------
    source
        A file whose ending says its format (see the module), or whatever else `open_table` opens: a pattern, a list of
        files, a frame.
    batch_rows
        The most rankings in a batch.
    table, sheet, encoding
        As in `open_table`.
    **reading
        The options of `Rankings.read`.
    """
    asked = Reading(**reading)
    whole("batch_rows", batch_rows, 1)
    if isinstance(source, (str, PathLike)) and table is None and (Path(source).exists() or not has_magic(str(source))):
        name = os.fspath(source)
        with a_file(name, "rankings"):
            if (kind := format_of(name)) in COUNTED:
                if sheet or encoding:
                    option = Setting("sheet" if sheet else "encoding")
                    raise InputError(f"{name}: ", option, " is for tables, not for this format")
                return open_preflib(name, kind, asked, batch_rows)
            return _open(find_files(name, sheet=sheet, encoding=encoding), asked, batch_rows)
    return _open(open_table(source, table, sheet=sheet, encoding=encoding), asked, batch_rows)


def _open(source: Table, asked: Reading, batch_rows: int) -> RankingsReader:
    """The rankings of a table."""
    table = held(spread(source))
    columns = asked.recognise(list(table.kinds), table.what)
    refuse_nested(table.what, table.kinds, columns.used)
    if table.rows == 0:
        raise InputError(f"{table.what}: there are no rows")
    found = not columns.items and table.items_from_data
    known = Known.start(asked.items, columns.items or table.declared_items, found)
    coded, long = columns.ranks, columns.layout == "long"
    plain = [name for name in columns.used if name not in (coded[:1] if long else coded)]
    stream = _some(table.batches(columns.used, plain=plain, batch_rows=batch_rows), table.what)
    paths = () if isinstance(table, Frame) else tuple(table.paths)
    about = columns, known, table.what, table.where, asked.ties
    if not long:
        batches = row_batches(stream, *about)
        return RankingsReader(table.what, columns, known, table.rows, len(coded), batches, stream.close, paths=paths)
    rankings = long_rankings(stream, *about)
    width, notes = rankings.orders.shape[1], columns.notes(table.what)
    return RankingsReader(table.what, columns, known, len(rankings), width, iter([rankings]), notes=notes, paths=paths)


def _some(stream: Iterable[Batch], what: str) -> Generator[Batch, None, None]:
    """The batches, unless there is no row in them."""
    rows = 0
    for batch in stream:
        yield batch
        rows += batch[2].num_rows
    if not rows:
        raise InputError(f"{what}: there is a header but no row")


def read_rankings(source: Any, **reading: Any) -> Rankings:
    """A whole file as one table (see `Rankings.read`); what would not fit into the memory is refused before."""
    if (counted := counted_profile(source, reading.get("items"))) is not None:
        asked = Reading(**reading)
        if asked.ties == "refuse" and counted.tied.any():
            row, place = np.argwhere(counted.tied)[0].tolist()
            pair = [counted.known.items[item] for item in counted.orders[row, place - 1 : place + 1]]
            raise refuse_tie(f"ballot {row + 1}", pair, place)
        return Rankings.concatenate(repeated(counted, asked.ties, BATCH_ROWS))
    with open_rankings(source, **reading) as reader:
        needed = (reader.rows or 0) * reader.width * 4
        if hasattr(os, "sysconf") and needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
            raise InputError(
                f"{reader.path}: the file announces {reader.rows} rankings, which need {needed / 1e9:.0f} GB "
                "of memory; read it in batches with open_rankings"
            )
        return Rankings.concatenate(reader, sort_items=not reader.declared_items)


class RankingsWriter:
    """A file of rankings being written; a context manager, so that no half-written file is left behind."""

    def __init__(self, file: NewFile, sink: Sink, width: int, tiers: bool, layout: Mapping[str, Any]) -> None:
        self.path = file.path
        self._file, self._sink, self._width, self._tiers, self._layout = file, sink, width, tiers, layout
        self._rows, self._items, self._found = 0, tuple[str, ...](), False
        self._traits: tuple[bool, ...] | None = None
        self._ended = False

    def write(self, rankings: Rankings) -> None:
        """Append rankings, in this order."""
        width = rankings.orders.shape[1]
        if width > self._width:
            raise InputError(f"{self.path}: the file has {self._width} rank columns, got rankings of width {width}")
        if (rankings.tied is not None) > self._tiers:
            raise InputError(f"{self.path}: the rankings have ties, and the file was opened for rankings without")
        parts = (rankings._voters, rankings.epsilons, rankings.offsets, rankings.tied)
        traits = tuple(part is not None for part in parts)
        if self._traits not in (None, traits):
            raise InputError(f"{self.path}: every batch must have voters, epsilons, offsets and ties, or none must")
        self._traits = traits
        with writing(self.path):
            for start in range(0, len(rankings), BATCH_ROWS):
                some = rankings[start : start + BATCH_ROWS]
                if isinstance(self._sink, PreflibSink):
                    self._sink.write(some)
                else:
                    self._sink.write(arrow_batch(some, self._width, first=self._rows + 1, **self._layout))
                self._rows += len(some)
        self._items = rankings.items
        self._found |= rankings.items_from_data

    def promise(self, facts: Mapping[str, Any]) -> None:
        """Say what the file's sidecar is to state (``Release.to_dict``); without it there is none."""
        self._file.promise(facts)

    def keep(self) -> None:
        """Put the file in place; leaving the block without an error does it too."""
        if self._ended:
            return
        try:
            if self._traits is None:
                raise InputError(f"{self.path}: no rankings were written")
            with writing(self.path):
                self._sink.finish(self._items, self._found)
            self._file.keep()
            self._ended = True
        finally:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.keep()
        else:
            self._drop()

    def _drop(self) -> None:
        """Remove what was written, unless it was kept."""
        if self._ended:
            return
        self._ended = True
        try:
            with suppress(Exception):  # the error that led here is the one to tell
                self._sink.abandon()
        finally:
            self._file.drop()


def open_writer(
    path: str | PathLike[str],
    like: RankingsReader | Rankings,
    *,
    layout: Literal["wide", "long"] = "wide",
    tiers: bool = False,
) -> RankingsWriter:
    """Open a file of rankings for writing in batches; nothing is in its place before the end.

    Parameters
    ----------
    path
        The file; its ending says the format: CSV, Parquet, or PrefLib `.soc` (complete) and `.soi`, where equal orders
        are counted and voters' ids and epsilons have no place.
    like
        What the batches look like: their width, and the names of the columns. A reader must not read this file.
    layout
        "wide", a row per ranking, or for CSV also "long", a row per listed item.
    tiers
        Whether the batches are tier lists, with ties: a row per listed item, or PrefLib `.toc` and `.toi`.
    """
    name = os.fspath(path)
    kind = format_of(name, written=True)
    one_of("layout", layout, ("wide", "long"))
    if layout == "long" and kind != "csv" and not tiers:
        raise InputError(f"{name}: only CSV files are written in the long layout")
    if kind in ("toc", "toi") and not tiers:
        raise InputError(f"{name}: there are no ties to write; use the ending .soc (complete) or .soi (partial)")
    if codec(name) and kind != "csv":
        raise InputError(f"{name}: of the files that are written only .csv may be compressed")
    if kind in ("soc", "soi") and tiers:
        raise InputError(f"{name}: a tier list has ties; use the ending .toc (complete) or .toi (partial)")
    if isinstance(like, RankingsReader):
        width, voter, epsilon = like.width, like.columns.voter, like.columns.epsilon
    else:
        width, voter, epsilon = like.orders.shape[1], None, None
    file = NewFile(name, source=like.paths if isinstance(like, RankingsReader) else ())
    columns = {"long": tiers or layout == "long", "voter": voter or "voter", "epsilon": epsilon or "epsilon"}
    try:
        sink: Sink
        if kind == "csv":
            sink = CsvSink(str(file.temporary), codec(file.target.name))
        elif kind == "parquet":
            sink = ParquetSink(str(file.temporary))
        else:
            sink = PreflibSink(str(file.temporary), file.target.name, kind)
    except BaseException:
        file.drop()
        raise
    return RankingsWriter(file, sink, width, tiers, columns)


def write_rankings(rankings: Rankings, path: str | PathLike[str], layout: Literal["wide", "long"] = "wide") -> None:
    """Write a whole table (see `Rankings.write`)."""
    with open_writer(path, like=rankings, layout=layout, tiers=rankings.tied is not None) as writer:
        writer.write(rankings)


FORMATS.update(to_arrow=to_arrow, read=read_rankings, write=write_rankings)
