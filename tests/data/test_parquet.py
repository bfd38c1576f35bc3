"""Parquet: every reader sees what was written, every writer's file is read, and a lie about rows is refused."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdp.data import Rankings
from rankdp.data.files import open_rankings, open_writer
from rankdp.data.formats import parquet
from rankdp.errors import InputError

READERS = {
    "pyarrow": lambda path: pq.read_table(path).to_pydict(),
    "pandas": lambda path: pd.read_parquet(path).to_dict("list"),
    "polars": lambda path: pl.read_parquet(path).to_dict(as_series=False),
    "duckdb": lambda path: duckdb.read_parquet(str(path)).to_arrow_table().to_pydict(),
}
KINDS = ["dictionary", "string", "large_string", "int8", "int16", "int32", "int64"]


def orders(rows: int, items: int, width: int = 4) -> np.ndarray:
    rng = np.random.default_rng(rows)
    return np.array([rng.permutation(items)[:width] for _ in range(rows)], np.int32)


def rankings(rows: int, items: int, width: int = 4, **options: object) -> Rankings:
    return Rankings.from_orders(orders(rows, items, width), [f"item {i}" for i in range(items)], **options)


def content(table: Rankings) -> dict[str, list[object]]:
    """What a reader must see: lists of plain values by column name."""
    names = np.array(table.items, object)
    columns = {} if table.voters is None else {"voter": table.voters.tolist()}
    columns |= {f"rank_{rank + 1}": names[column].tolist() for rank, column in enumerate(table.orders.T)}
    return columns if table.epsilons is None else columns | {"epsilon": table.epsilons.tolist()}


def wide(drawn: np.ndarray, kind: str) -> pa.Table:
    """A wide table with an id, and items that are numbers or texts."""
    columns = {"voter": pa.array(np.arange(len(drawn)))}
    for rank, column in enumerate(drawn.T, 1):
        if kind.startswith("int"):
            columns[f"rank_{rank}"] = pa.array(column, kind)
        else:
            texts = pa.array([f"item {item}" for item in column])
            columns[f"rank_{rank}"] = texts.dictionary_encode() if kind == "dictionary" else texts.cast(kind)
    return pa.table(columns)


def refused(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        Rankings.read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("items", [1, 2, 10, 300])
def test_every_reader_sees_what_was_written(tmp_path, reader, items):
    path = tmp_path / "v.parquet"
    for rows in (1, 21, 40_000):
        table = rankings(rows, items, min(items, 4), voters=range(rows), epsilons=np.arange(1, rows + 1) / 3)
        table.write(path)
        assert READERS[reader](path) == content(table)
        assert Rankings.read(path, epsilon_column="epsilon") == table


@pytest.mark.parametrize("reader", READERS)
def test_lists_of_items_that_grow(tmp_path, reader):
    batches = [rankings(100, items, 2, voters=range(items, items + 100)) for items in (2, 2, 3, 17, 300, 300)]
    path = tmp_path / "v.parquet"
    with open_writer(path, like=batches[0]) as writer:
        for batch in batches:
            writer.write(batch)
    expected = {name: [cell for batch in batches for cell in content(batch)[name]] for name in content(batches[0])}
    assert READERS[reader](path) == expected
    assert Rankings.read(path) == Rankings.concatenate(batches)


def test_batches_that_do_not_share_a_list_of_items(tmp_path):
    path = tmp_path / "v.parquet"
    batches = [Rankings.from_orders([pair]) for pair in (["a", "b"], ["c", "d"], ["b", "a"])]
    with open_writer(path, like=batches[0]) as writer:
        for batch in batches:
            writer.write(batch)
    assert pq.read_table(path).to_pydict() == {"rank_1": ["a", "c", "b"], "rank_2": ["b", "d", "a"]}


@pytest.mark.parametrize("rows", [[["b", "a"]], [["b", "a"], ["b"]]])
def test_the_list_of_items_is_kept(tmp_path, rows):
    table = Rankings.from_orders(rows, ["b", "never", "a"])
    table.write(tmp_path / "v.parquet")
    assert Rankings.read(tmp_path / "v.parquet") == table
    assert json.loads(pq.read_metadata(tmp_path / "v.parquet").metadata[b"rankdp.items"]) == ["b", "never", "a"]


def test_a_large_table_is_written_in_large_row_groups(tmp_path):
    table = rankings(40_000, 10, 3)
    with open_writer(tmp_path / "v.parquet", like=table) as writer:
        for _ in range(8):
            writer.write(table)
    assert pq.read_metadata(tmp_path / "v.parquet").num_row_groups == 1
    with open_rankings(tmp_path / "v.parquet", batch_rows=30_000) as reader:
        assert np.array_equal(np.concatenate([batch.orders for batch in reader]), np.tile(table.orders, (8, 1)))


def test_blanks_may_come_in_any_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 150)
    full, path = rankings(100, 5, 3, voters=range(100), epsilons=np.arange(1, 101) / 7), tmp_path / "v.parquet"
    short = rankings(100, 5, 2, voters=range(100), epsilons=np.arange(1, 101) / 7)
    for batches in ([full] * 5, [full, full, short, full, full], [short, full, full], [full] * 4 + [short]):
        with open_writer(path, like=full) as writer:
            for batch in batches:
                writer.write(batch)
        assert Rankings.read(path, epsilon_column="epsilon") == Rankings.concatenate(batches)
        assert [entry.name for entry in tmp_path.iterdir()] == ["v.parquet"]


@pytest.mark.parametrize(
    "ids",
    [
        *(pa.array([0, 1, 2, 3], kind) for kind in (pa.int16(), pa.int64(), pa.uint64(), pa.float32(), pa.date32())),
        pa.array(["w", "x", "y", "z"]),
        pa.array(["w", "x", "y", "z"]).dictionary_encode(),
    ],
)
def test_ids_of_every_kind(tmp_path, ids):
    whole = Rankings.from_orders([["a", "b"], ["b"]] * 2, voters=ids)
    for table in (whole, whole[1:3]):
        table.write(tmp_path / "v.parquet")
        assert Rankings.read(tmp_path / "v.parquet") == table


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_files_by_pyarrow(tmp_path, kind, compression):
    path, drawn = tmp_path / "v.parquet", orders(1500, 10)
    for version in ("1.0", "2.0"):
        options = {"data_page_version": version, "compression": compression}
        pq.write_table(wide(drawn, kind), path, data_page_size=500, row_group_size=400, **options)
        table = Rankings.read(path)
        number = str if kind.startswith("int") else "item {}".format
        assert list(table) == [tuple(map(number, row)) for row in drawn.tolist()]
        assert table.voters.tolist() == list(range(1500))


@pytest.mark.parametrize("kind", ["string", "int32"])
@pytest.mark.parametrize("writer", ["duckdb", "polars"])
def test_files_by_others(tmp_path, kind, writer):
    table = wide(orders(3000, 10), kind)
    if writer == "duckdb":
        duckdb.from_arrow(table).write_parquet(str(tmp_path / "v.parquet"))
    else:
        pl.from_arrow(table).write_parquet(tmp_path / "v.parquet")
    assert Rankings.read(tmp_path / "v.parquet") == Rankings.from_frame(table)


@pytest.mark.parametrize("batch_rows", [1, 7, 512, 5000])
def test_batches_of_any_size_keep_the_order_of_rows(tmp_path, batch_rows):
    drawn = orders(40 if batch_rows == 1 else 2000, 9)
    pq.write_table(wide(drawn, "dictionary"), tmp_path / "v.parquet", data_page_size=200, row_group_size=1100)
    with open_rankings(tmp_path / "v.parquet", batch_rows=batch_rows) as reader:
        batches = list(reader)
    assert max(map(len, batches)) <= batch_rows
    assert Rankings.concatenate(batches, sort_items=True) == Rankings.from_frame(wide(drawn, "dictionary"))


@pytest.mark.parametrize("rows", [3, 60_000])
def test_a_file_cut_short_is_refused(tmp_path, rows):
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    rankings(rows, 10, voters=range(rows)).write(whole)
    data = whole.read_bytes()
    for size in (1, 4, 12, len(data) // 3, len(data) - 200, len(data) - 1):
        cut.write_bytes(data[:size])
        assert refused(cut) == "this is not a whole Parquet file (damaged or cut short?)"


@pytest.mark.parametrize("rows", [60, 60_000])
def test_a_code_outside_its_dictionary(tmp_path, rows):
    path = tmp_path / "v.parquet"
    pq.write_table(wide(orders(rows, 5), "dictionary"), path, compression="none", write_statistics=False)
    data, end = path.read_bytes(), -pq.read_metadata(path).serialized_size - 8
    path.write_bytes(data[: end - 3] + bytes([255] * 3) + data[end:])  # the last codes, of three bits each
    assert refused(path).startswith("the file is damaged (")


def test_a_damaged_name_of_a_column(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(wide(orders(60, 5), "dictionary"), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"rank_1", b"rank\xff1"))
    assert refused(path) == "this is not a whole Parquet file (damaged or cut short?)"


# where a file of three columns announces its rows; the places between are statistics
FILE, COLUMNS, GROUP = 0, (1, 3, 5), 7


def lying(path: Path, rows: int, announced: dict[int, int]) -> None:
    """Announce other numbers than `rows` in the footer: of the file (FILE), of columns (COLUMNS), of the row group."""
    data = path.read_bytes()
    start = len(data) - pq.read_metadata(path).serialized_size - 8
    parts = data[start:-8].split(varint(rows))
    assert len(parts) == GROUP + 2
    told = [varint(announced.get(place, rows)) for place in range(len(parts) - 1)]
    footer = parts[0] + b"".join(number + part for number, part in zip(told, parts[1:], strict=True))
    path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def varint(number: int) -> bytes:
    """How a Parquet footer writes a positive number."""
    number *= 2
    groups = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes(group | 128 for group in groups[:-1]) + bytes(groups[-1:])


@pytest.mark.parametrize(
    ("announced", "sentence"),
    [
        ({FILE: 1000}, "the file is damaged (it announces 1000 rows, and 500 in its row groups)"),
        ({FILE: 0, GROUP: 0}, "there are no rows"),
        ({FILE: 10**15, GROUP: 10**15}, "the file announces 1000000000000000 rankings, which need 8000000 GB"),
        ({FILE: 499, GROUP: 499}, "the file is damaged (row group 1 announces 499 rows and 500 values"),
        (
            dict.fromkeys((FILE, *COLUMNS, GROUP), 501),
            "the file is damaged (row group 1 announces 501 rows and holds 500)",
        ),
        ({COLUMNS[0]: 400}, "the file is damaged ("),
    ],
)
def test_rows_that_the_footer_lies_about(tmp_path, announced, sentence):
    path = tmp_path / "v.parquet"
    # a page a hundred rows, so that a column that ends early ends between two of them
    options = {"write_batch_size": 100, "data_page_size": 1, "compression": "none"}
    pq.write_table(wide(orders(500, 5, 2), "int64"), path, **options)
    lying(path, 500, announced)
    assert refused(path).startswith(sentence)


def test_long_tables_are_checked_too(tmp_path):
    path = tmp_path / "v.parquet"
    table = pa.table({"voter": np.arange(500) // 2, "item": ["tea", "milk"] * 250, "rank": [2, 1] * 250})
    pq.write_table(table, path)
    assert list(Rankings.read(path)) == [("milk", "tea")] * 250
    lying(path, 500, {FILE: 10**12, GROUP: 10**12})
    assert refused(path).startswith("the file is damaged (row group 1 announces 1000000000000 rows and 500 values")


def test_columns_that_are_no_cells(tmp_path):
    path = tmp_path / "v.parquet"
    for strange in (pa.array([[1], [2]]), pa.array([{"x": 1}, {"x": 2}]), pa.array([1.5, float("inf")])):
        pq.write_table(pa.table({"rank_1": strange}), path)
        assert "must hold texts or numbers" in refused(path) or "got 1.5" in refused(path)
        pq.write_table(pa.table({"voter": strange, "item": ["a", "b"], "rank": [1, 1]}), path)
        if not pa.types.is_floating(strange.type):
            assert refused(path)
