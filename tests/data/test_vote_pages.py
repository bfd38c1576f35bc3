"""Votes read page by page are those that Arrow reads, whoever wrote the file and whatever is wrong in it."""

from __future__ import annotations

import random
from itertools import product

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdp.data import counting, counting_kernels, vote_tables
from rankdp.data.comparisons import Comparisons
from rankdp.data.vote_pages import PageFile
from rankdp.errors import InputError

pytestmark = pytest.mark.slow

ROWS, ITEMS = 5000, 20
NAMES = [f"item {item}" for item in range(ITEMS)]
KINDS = {
    "texts": pa.string(),
    "large texts": pa.large_string(),
    "coded texts": pa.dictionary(pa.int8(), pa.string()),
    "int32": pa.int32(),
    "int64": pa.int64(),
}
WRITERS = {
    "default": {},
    "uncompressed": {"compression": "none"},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "brotli": {"compression": "brotli"},
    "version 2": {"data_page_version": "2.0"},
    "version 2, uncompressed": {"data_page_version": "2.0", "compression": "none"},
    "small pages": {"data_page_size": 100, "write_batch_size": 64},
    "version 2, small pages": {"data_page_size": 100, "write_batch_size": 64, "data_page_version": "2.0"},
    "checksums, no statistics": {"write_page_checksum": True, "write_statistics": False},
    "old format": {"version": "1.0"},
}
LEFT_TO_ARROW = {
    "lz4": {"compression": "lz4"},
    "plain": {"use_dictionary": False},
    "full dictionary": {"dictionary_pagesize_limit": 40, "data_page_size": 100, "write_batch_size": 64},
}


def votes(kind="texts", rows=ROWS, items=ITEMS, nullable=True, runs=1):
    """A table of votes, in which every vote comes `runs` times in a row."""
    generator = np.random.default_rng(3)
    winner = generator.integers(0, items, rows)
    loser = (winner + generator.integers(1, items, rows)) % items
    columns = [np.repeat(column, runs)[:rows] for column in (winner, loser)]
    if "int" not in kind:
        columns = [[f"item {item}" for item in column] for column in columns]
    fields = [pa.field(name, KINDS[kind], nullable) for name in ("winner", "loser")]
    return pa.table(
        [pa.array(column).cast(field.type) for column, field in zip(columns, fields, strict=True)],
        schema=pa.schema(fields),
    )


@pytest.fixture
def both(monkeypatch):
    """What the pages and what Arrow make of a file, counts or complaint, and how many rows came from the pages."""
    monkeypatch.setattr(vote_tables, "BATCH_ROWS", 700)
    paged_rows = []
    batches = PageFile.batches

    def counted(self, *options):
        for batch in batches(self, *options):
            paged_rows.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(PageFile, "batches", counted)

    def read(path, items=None, on_problem="refuse", **more):
        results = []
        for least in (0, 1 << 62):
            monkeypatch.setattr(vote_tables, "PAGED_ROWS", least)
            try:
                read = Comparisons.read(path, items=items, items_from_data=items is None, on_problem=on_problem, **more)
                counts = read.count()
                results.append((counts.items, counts.halves.tolist(), read.half_wins().tolist(), read.diagnostics()))
            except InputError as error:
                results.append(str(error))
        rows = sum(paged_rows)
        paged_rows.clear()
        return *results, rows

    return read


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("writer", WRITERS | LEFT_TO_ARROW)
def test_what_arrow_writes(tmp_path, both, writer, kind, nullable):
    path = tmp_path / "votes.parquet"
    pq.write_table(votes(kind, nullable=nullable), path, row_group_size=1999, **(WRITERS | LEFT_TO_ARROW)[writer])
    pages, arrow, rows = both(path)
    assert pages == arrow
    assert sum(pages[2]) == 2 * ROWS
    alone = writer in WRITERS or (writer, kind) == ("full dictionary", "coded texts")  # which knows no limit
    assert rows == (4 * ROWS if alone else 0)


@pytest.mark.parametrize(("items", "runs"), [*product([2, 3, 17, 300], [1, 5, 9, 700]), (70_000, 1)])
def test_codes_of_every_width(tmp_path, both, items, runs):
    path = tmp_path / "votes.parquet"
    pq.write_table(votes("int32", max(ROWS, 2 * items), items, runs=runs), path, dictionary_pagesize_limit=1 << 22)
    pages, arrow, rows = both(path)
    assert pages == arrow
    assert rows >= 4 * ROWS


@pytest.mark.parametrize("kind", ["texts", "int64"])
def test_one_value_takes_no_bits(tmp_path, both, kind):
    path = tmp_path / "votes.parquet"
    table = votes(kind, rows=1000).set_column(0, "winner", pa.array([7 if "int" in kind else "seven"] * 1000))
    pq.write_table(table, path)
    items = [*range(ITEMS)] if "int" in kind else [*NAMES, "seven"]
    pages, arrow, _ = both(path, items, "drop")
    assert pages == arrow


def test_what_others_write(tmp_path, both):
    path = tmp_path / "votes.parquet"
    for kind in ("texts", "int32"):
        ballots = votes(kind)
        for codec in ("uncompressed", "snappy", "zstd"):
            for version in ("V1", "V2"):
                options = f"(format parquet, codec {codec}, parquet_version {version}, row_group_size 2048)"
                duckdb.sql(f"copy (from ballots) to '{path}' {options}")
                pages, arrow, rows = both(path)
                assert pages == arrow
                assert rows > 3 * ROWS or (version == "V2" and kind == "int32")
            pl.from_arrow(ballots).write_parquet(path, compression=codec, row_group_size=2048)
            pages, arrow, rows = both(path)
            assert pages == arrow
            assert rows > 0
        assert sum(pages[2]) == 2 * ROWS


@pytest.mark.parametrize("wrong", [None, "nobody", "", " item 1 "])
@pytest.mark.parametrize("on_problem", ["refuse", "drop"])
def test_problems(tmp_path, both, wrong, on_problem):
    """Arrow goes on where a null is; every other problem is found in the pages, in the same row."""
    path = tmp_path / "votes.parquet"
    texts = votes()["loser"].to_pylist()
    texts[3456] = wrong
    pq.write_table(votes().set_column(1, "loser", pa.array(texts)), path, data_page_size=100, write_batch_size=64)
    pages, arrow, rows = both(path, NAMES, on_problem)
    assert pages == arrow
    assert wrong == " item 1 " or on_problem == "drop" or "row 3457: " in pages
    assert 2800 <= rows < 4 * ROWS or wrong is not None


def test_columns_of_other_kinds(tmp_path, both):
    """An outcome, a weight and a voter are read alike, or by Arrow together with the rest."""
    generator, path = np.random.default_rng(4), tmp_path / "votes.parquet"
    table = votes().rename_columns(["left", "right"])
    for name, column in {
        "winner": generator.choice(["left", "right", "tie"], ROWS),
        "weight": generator.integers(0, 4, ROWS),
        "voter": generator.integers(0, 50, ROWS),
    }.items():
        table = table.append_column(name, pa.array(column))
    pq.write_table(table, path)
    pages, arrow, rows = both(path, NAMES)
    assert pages == arrow
    assert rows == 3 * ROWS
    bounded = Comparisons.read(path, items=NAMES).bound(5)
    expected = Comparisons.from_frame(table, items=NAMES).bound(5)
    assert bounded.count().halves.tolist() == expected.count().halves.tolist()
    pq.write_table(table.set_column(3, "weight", pa.array(generator.random(ROWS) // 0.5)), path)
    pages, arrow, rows = both(path, NAMES)
    assert pages == arrow
    assert rows == 0


def test_the_rest_of_a_row_group_is_left_to_arrow(tmp_path, both, monkeypatch):
    """Two threads, several row groups, and in each of them a page with a null."""
    monkeypatch.setattr(counting, "_PARALLEL_ROWS", 1)
    path, texts = tmp_path / "votes.parquet", votes()["winner"].to_pylist()
    texts[900::1000] = [None] * 5
    table = votes().set_column(0, "winner", pa.array(texts))
    pq.write_table(table, path, row_group_size=1000, data_page_size=100, write_batch_size=64)
    pages, arrow, rows = both(path, NAMES, "drop")
    assert pages == arrow
    assert pages[3].dropped == {"missing item": 5}
    assert rows == 3 * 5 * 700


@pytest.mark.parametrize("writer", ["default", "zstd", "uncompressed", "version 2, small pages"])
@pytest.mark.parametrize("kind", ["texts", "int32"])
def test_damage_is_told_or_harmless(tmp_path, both, kind, writer):
    """Whatever bytes are changed: counts or one sentence, nearly always those that Arrow's way comes to."""
    path, chance = tmp_path / "votes.parquet", random.Random(f"{kind} {writer}")
    pq.write_table(votes(kind, 1500), path, row_group_size=1000, **WRITERS[writer])
    whole, alike = path.read_bytes(), 0
    pages_end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 5])):
            place = chance.randrange(4, pages_end if chance.random() < 0.7 else len(whole) - 8)
            damaged[place] = chance.choice([chance.randrange(256), damaged[place] ^ 1 << chance.randrange(8), 0, 255])
        path.write_bytes(damaged)
        pages, arrow, _ = both(path, NAMES if kind == "texts" else range(ITEMS), "drop")
        alike += pages == arrow
    assert alike >= 38


def test_a_file_cut_short_while_it_is_read(tmp_path, both):
    path = tmp_path / "votes.parquet"
    pq.write_table(votes(), path)
    opened = pq.ParquetFile(path)
    path.write_bytes(path.read_bytes()[:1000])
    assert list(PageFile(str(path), opened).batches(0, ["winner", "loser"], ROWS)) == []


@pytest.mark.parametrize("winners", [[3] * 999, [*range(7)] * 40, [1], []])
def test_winners_are_counted(winners):
    wins, nothing = np.zeros(7, np.int64), np.zeros(9, np.int64)
    left = np.array(winners, np.int32)
    counting_kernels.tally_wins(
        left, (left + 1) % 7, np.empty(0, np.int8), np.empty(0, np.int64), 7, wins, nothing, nothing.copy()
    )
    assert (wins == 2 * np.bincount(left, minlength=7)).all()
    assert not nothing.any()
