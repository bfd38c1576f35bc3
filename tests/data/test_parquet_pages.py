"""Pages of our own making: every reader sees the table that was written, and odd tables go another way."""

from __future__ import annotations

import json
import string

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankdp.data import Rankings, parquet_pages
from rankdp.data.files import open_rankings, open_writer
from rankdp.errors import InputError

LARGE = 131_072 + 5
READERS = {
    "pyarrow": lambda path: pq.read_table(path).to_pydict(),
    "pyarrow with dictionaries": lambda path: pq.read_table(path, read_dictionary=["rank_1"]).to_pydict(),
    "pyarrow in batches": lambda path: in_batches(path).to_pydict(),
    "pandas": lambda path: pd.read_parquet(path).to_dict("list"),
    "polars": lambda path: pl.read_parquet(path).to_dict(as_series=False),
    "duckdb": lambda path: duckdb.read_parquet(str(path)).to_arrow_table().to_pydict(),
}


def in_batches(path: object) -> pa.Table:
    """The table in batches that cut across pages and row groups."""
    file = pq.ParquetFile(path, read_dictionary=[name for name in pq.read_schema(path).names if "rank" in name])
    return pa.Table.from_batches(file.iter_batches(batch_size=7001 if file.metadata.num_rows > 1000 else 3))


def table(rows: int, items: int, width: int | None = None, voters: object = None, epsilons: object = None) -> Rankings:
    """Rankings of `width` of the items, with the first and the last item among them."""
    width = min(items, 4) if width is None else width
    orders = (np.arange(rows)[:, None] * 7 + np.arange(width) * max(1, items // width)) % items
    orders[0] = [*range(width - 1), items - 1] if rows else []
    return Rankings.from_orders(orders, [f"item {i}" for i in range(items)], voters, epsilons)


def content(rankings: Rankings) -> dict[str, list[object]]:
    """What a reader must see: lists of plain values by column name."""
    names = np.array(rankings.items, object)
    columns = {} if rankings.voters is None else {"voter": rankings.voters.tolist()}
    columns |= {f"rank_{rank + 1}": names[column].tolist() for rank, column in enumerate(rankings.orders.T)}
    return columns if rankings.epsilons is None else columns | {"epsilon": rankings.epsilons.tolist()}


def ours(path: object) -> bool:
    """Whether the file was written page by page and not by Arrow."""
    return pq.read_metadata(path).created_by.startswith("rankdp version ")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("items", [1, 2, 3, 10, 16, 17, 300])
def test_every_reader_sees_what_was_written(tmp_path, reader, items):
    path = tmp_path / "v.parquet"
    for rows in (1, 8, 21):
        rankings = table(rows, items, voters=range(rows), epsilons=np.arange(1, rows + 1) / 3)
        rankings.write(path)
        assert ours(path)
        assert READERS[reader](path) == content(rankings)
        assert Rankings.read(path, epsilon_column="epsilon") == rankings


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_sees_a_large_table(tmp_path, reader):
    path = tmp_path / "v.parquet"
    rankings = table(LARGE, 10, 3, pa.array(np.arange(LARGE)))
    rankings.write(path)
    assert READERS[reader](path) == content(rankings)


@pytest.mark.parametrize("items", [*range(1, 18), 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300])
def test_every_bit_width_and_number_of_rows(tmp_path, items):
    path = tmp_path / "v.parquet"
    for rows in range(1, 21):
        rankings = table(rows, items)
        rankings.write(path)
        assert ours(path)
        assert pq.read_table(path).to_pydict() == content(rankings)
    rankings = table(LARGE, items)
    rankings.write(path)
    assert Rankings.read(path) == rankings


@pytest.mark.parametrize("bits", range(1, 33))
def test_both_ways_to_pack_agree_with_the_definition(bits, monkeypatch):
    rng = np.random.default_rng(bits)
    for rows in (1, 7, 8, 9, 40, 67):
        values = rng.integers(0, 2 ** min(bits, 31), (rows, 3), dtype=np.int32)
        values[-1] = 2 ** min(bits, 31) - 1
        small = parquet_pages.pack(values, bits)
        monkeypatch.setattr(parquet_pages, "LARGE", 0)
        large = parquet_pages.pack(values, bits)
        monkeypatch.undo()
        assert small.shape == (3, -(-rows // 8) * bits)
        assert np.array_equal(small, large)
        for packed, column in zip(small, values.T, strict=True):
            number = int.from_bytes(packed.tobytes(), "little")
            assert [number >> bits * row & 2**bits - 1 for row in range(rows)] == column.tolist()
            assert number >> bits * rows == 0


@pytest.mark.parametrize("limit", [0, 10**9])
def test_a_blank_is_not_packed(limit, monkeypatch):
    monkeypatch.setattr(parquet_pages, "LARGE", limit)
    orders = np.array([[0, 1], [1, -1], [1, 0]], np.int32)
    assert parquet_pages.pack(orders, 1) is None
    assert parquet_pages.pack(orders[::2], 1).tolist() == [[0b10], [0b01]]


def test_the_footer_tells_the_truth(tmp_path):
    path = tmp_path / "v.parquet"
    rankings = table(1000, 10, voters=range(1000), epsilons=[1.0] * 1000)
    rankings.write(path)
    file = pq.ParquetFile(path)
    footer, group = file.metadata, file.metadata.row_group(0)
    assert (footer.num_rows, footer.num_row_groups, footer.num_columns, group.num_rows) == (1000, 1, 6, 1000)
    assert footer.serialized_size + 12 + group.total_byte_size == path.stat().st_size
    end = 4
    for number in range(6):
        chunk = group.column(number)
        items = chunk.path_in_schema.startswith("rank_")
        assert (chunk.num_values, chunk.compression) == (1000, "UNCOMPRESSED")
        assert chunk.physical_type == ("BYTE_ARRAY" if items else "INT64" if number == 0 else "DOUBLE")
        assert set(chunk.encodings) == ({"PLAIN", "RLE_DICTIONARY"} if items else {"PLAIN"})
        assert chunk.has_dictionary_page == items
        assert (chunk.dictionary_page_offset or chunk.data_page_offset) == end
        assert chunk.total_compressed_size == chunk.total_uncompressed_size
        end += chunk.total_compressed_size
        column = file.schema.column(number)
        assert column.logical_type.type == ("STRING" if items else "NONE")
        assert (column.converted_type, column.max_definition_level) == ("UTF8" if items else "NONE", 0)
    schema = file.schema_arrow
    assert schema.field("rank_1").type == pa.dictionary(pa.int32(), pa.string())
    assert not schema.field("rank_1").nullable
    assert json.loads(schema.metadata[b"rankdp.items"]) == list(rankings.items)
    assert {**footer.metadata}.keys() == {b"rankdp.items", b"ARROW:schema"}


def test_the_schema_is_the_one_that_arrow_would_write(tmp_path):
    rankings = table(5, 3, voters=range(5), epsilons=[1.0] * 5)
    rankings.write(tmp_path / "ours.parquet")
    again = pq.read_table(tmp_path / "ours.parquet")
    pq.write_table(again, tmp_path / "arrow.parquet")
    assert pq.read_schema(tmp_path / "arrow.parquet") == again.schema
    one, other = (pq.ParquetFile(tmp_path / f"{name}.parquet").schema for name in ("ours", "arrow"))
    assert one.equals(other)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("reader", READERS)
def test_ids_of_every_kind_of_number(tmp_path, kind, reader):
    path = tmp_path / "v.parquet"
    ends = np.finfo(kind) if kind.startswith("float") else np.iinfo(kind)
    ids = np.array([ends.min, 0, 1, ends.max], kind)
    whole = Rankings.from_orders([["a", "b"], ["b", "a"]] * 2, voters=pa.array(ids))
    for rankings in (whole, whole[1:3]):
        rankings.write(path)
        assert ours(path)
        assert READERS[reader](path) == content(rankings)
        assert pq.read_schema(path).field("voter").type == pa.from_numpy_dtype(kind)


@pytest.mark.parametrize(
    "voters",
    [["x", "y"], pa.array(["x", "y"]).dictionary_encode(), pa.array([1, 2], pa.int16()), pa.array([1, 2], pa.date32())],
)
def test_other_ids_are_left_to_arrow(tmp_path, voters):
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"]], voters=voters)
    rankings.write(tmp_path / "v.parquet")
    assert not ours(tmp_path / "v.parquet")
    assert list(Rankings.read(tmp_path / "v.parquet")) == list(rankings)


def test_partial_rankings_are_left_to_arrow(tmp_path):
    rankings = Rankings.from_orders([["a", "b"], ["b"]])
    rankings.write(tmp_path / "v.parquet")
    assert not ours(tmp_path / "v.parquet")
    assert list(Rankings.read(tmp_path / "v.parquet")) == list(rankings)


@pytest.mark.parametrize("group_bytes", [1, 2000, 1 << 23])
@pytest.mark.parametrize("reader", READERS)
def test_row_groups_whose_items_grow(tmp_path, monkeypatch, reader, group_bytes):
    monkeypatch.setattr(parquet_pages, "_GROUP_BYTES", group_bytes)
    batches = [table(100, items, 2, range(items, items + 100)) for items in (2, 2, 3, 17, 300, 300)]
    path = tmp_path / "v.parquet"
    with open_writer(path, like=batches[0]) as writer:
        for batch in batches:
            writer.write(batch)
    expected = {name: [cell for batch in batches for cell in content(batch)[name]] for name in content(batches[0])}
    assert READERS[reader](path) == expected
    assert Rankings.read(path) == Rankings.concatenate(batches)
    groups = pq.read_metadata(path).num_row_groups
    assert groups == 6 if group_bytes == 1 else groups == 1 if group_bytes > 2000 else 1 < groups < 6


@pytest.mark.parametrize("rows", [[["b", "a"]], [["b", "a"], ["b"]]])
def test_the_list_of_items_is_kept(tmp_path, rows):
    rankings = Rankings.from_orders(rows, ["b", "never", "a"])
    rankings.write(tmp_path / "v.parquet")
    assert Rankings.read(tmp_path / "v.parquet") == rankings
    if ours(tmp_path / "v.parquet"):
        assert Rankings.from_frame(pq.read_table(tmp_path / "v.parquet")) == rankings


def test_batches_that_do_not_share_a_list_of_items(tmp_path):
    path = tmp_path / "v.parquet"
    batches = [Rankings.from_orders([pair]) for pair in (["a", "b"], ["c", "d"], ["b", "a"])]
    with open_writer(path, like=batches[0]) as writer:
        for batch in batches:
            writer.write(batch)
    assert pq.read_metadata(path).num_row_groups == 3
    assert pq.read_table(path).to_pydict() == {"rank_1": ["a", "c", "b"], "rank_2": ["b", "d", "a"]}


def test_a_blank_or_another_kind_of_id_in_a_large_table(tmp_path):
    full = table(60_000, 2, voters=range(60_000))
    orders = full.orders.copy()
    orders[59_999, 1] = -1
    partial = Rankings.from_orders(orders, full.items, range(60_000))
    path = tmp_path / "v.parquet"
    with open_writer(path, like=full) as writer:
        for batch in (full, full, partial, full):
            writer.write(batch)
    assert not ours(path)
    assert Rankings.read(path) == Rankings.concatenate([full, full, partial, full])
    with pytest.raises(pa.ArrowException), open_writer(path, like=full) as writer:  # noqa: PT012 - the second one
        writer.write(full)
        writer.write(Rankings.from_orders(full.orders, full.items, ["x"] * 60_000))
    assert [entry.name for entry in tmp_path.iterdir()] == ["v.parquet"]


def test_every_second_row(tmp_path):
    rankings = table(LARGE, 10, 10, pa.array(np.arange(LARGE)))
    Rankings.concatenate([rankings[::2]]).write(tmp_path / "v.parquet")
    assert np.array_equal(Rankings.read(tmp_path / "v.parquet").orders, rankings.orders[::2])


@pytest.mark.parametrize("rows", [3, 60_000])
def test_a_file_cut_short_is_refused(tmp_path, rows):
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    table(rows, 10, voters=range(rows)).write(whole)
    data = whole.read_bytes()
    for size in (1, 4, 12, len(data) // 3, len(data) - 200, len(data) - 1):
        cut.write_bytes(data[:size])
        with pytest.raises(InputError) as caught:
            Rankings.read(cut)
        assert str(caught.value) == f"{cut}: this is not a whole Parquet file (damaged or cut short?)"


def test_an_accident_after_some_row_groups_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "_GROUP_BYTES", 1)
    rankings = table(1000, 5)
    with pytest.raises(KeyboardInterrupt), open_writer(tmp_path / "v.parquet", like=rankings) as writer:  # noqa: PT012
        writer.write(rankings)
        writer.write(rankings)
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_memory_is_given_back_with_each_row_group(tmp_path):
    rankings = table(LARGE, 10, 10, pa.array(np.arange(LARGE)))
    with open_writer(tmp_path / "v.parquet", like=rankings) as writer:
        for _ in range(8):
            writer.write(rankings)
            assert writer._sink._writer._bytes < 1 << 23
    with open_rankings(tmp_path / "v.parquet") as reader:
        assert sum(map(len, reader)) == 8 * LARGE
    assert pq.read_metadata(tmp_path / "v.parquet").num_row_groups == 2


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (150, "ac02"),
        (b"ab", "026162"),
        ([1, 2], "250204"),
        ([1] * 15, "f50f" + "02" * 15),
        ({1: 1, 4: parquet_pages.Long(1), 10: {1: {}}}, "150236026c1c000000"),
        ({1: None, 3: b""}, "380000"),
    ],
)
def test_thrift(value, encoded):
    assert parquet_pages.thrift(value).hex() == encoded


@given(st.integers(0, 2**32 - 1), st.integers(1, 66))
@settings(deadline=None)
def test_gathering_vouches_for_complete_rows_only(seed, width):
    from rankdp.data import order_kernels as kernels

    rng = np.random.default_rng(seed)
    expected = rng.random((5, width)).argsort(axis=1).astype(np.int32)
    if rng.random() < 0.7:
        expected[rng.integers(5), rng.integers(width)] = rng.integers(-1, width + 64)
    # every column has its own order of codes; the entry before its start is the blank's
    codes_of = [rng.permutation(width + 64).astype(np.int32) for _ in range(width)]
    meaning = np.concatenate([[-1, *np.argsort(codes)] for codes in codes_of]).astype(np.int32)
    starts = 1 + np.arange(width) * (width + 65)
    codes = np.array([np.append(codes_of[j], -1)[expected[:, j]] for j in range(width)], np.int32)
    orders = np.empty_like(expected)
    complete = kernels.gather(codes, meaning, starts, orders)
    assert np.array_equal(orders, expected)
    assert complete == (width <= 64 and all(sorted(row) == list(range(width)) for row in expected.tolist()))


names = st.text(st.sampled_from(string.ascii_letters + " é漢🍣-'\"\\"), min_size=1, max_size=6).map(str.strip)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip(tmp_path, data):
    items = data.draw(st.lists(names.filter(lambda name: name not in ("", "-")), min_size=1, max_size=20, unique=True))
    rows = data.draw(st.lists(st.permutations(items), min_size=1, max_size=30))
    each = {"min_size": len(rows), "max_size": len(rows)}
    voters = data.draw(st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), **each))
    epsilons = data.draw(st.none() | st.lists(st.floats(1e-9, 1e9), **each))
    rankings = Rankings.from_orders(rows, items, voters, epsilons)
    path = tmp_path / "v.parquet"
    rankings.write(path)
    assert ours(path)
    assert Rankings.read(path, epsilon_column=None if epsilons is None else "epsilon") == rankings
    for read in READERS.values():
        assert read(path) == content(rankings)
