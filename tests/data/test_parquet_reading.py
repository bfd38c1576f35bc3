"""Pages read without Arrow: the same rankings as with it, whoever wrote them, and Arrow's way with all that is odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdp.data import Rankings, parquet_reading
from rankdp.data.files import open_rankings
from rankdp.errors import InputError

pytestmark = pytest.mark.slow

KINDS = ["dictionary", "string", "large_string", "int8", "int16", "int32", "int64"]


def orders(rows: int, items: int, width: int = 4, seed: int = 0) -> np.ndarray:
    """Rankings of some of the items, with long runs of equal rows in between."""
    rng = np.random.default_rng(seed)
    drawn = np.array([rng.permutation(items)[:width] for _ in range(rows)])
    if rows > 300:
        drawn[100:200] = drawn[100]
    return drawn


def table(drawn: np.ndarray, kind: str = "dictionary", nullable: bool = True) -> pa.Table:
    """A wide table: an id, and items that are numbers or texts."""
    arrays = [pa.array(np.arange(len(drawn)))]
    for column in drawn.T:
        if kind.startswith("int"):
            arrays.append(pa.array(column, kind))
        elif kind == "dictionary":
            names = pa.array([f"item {item}" for item in range(drawn.max() + 1)])
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(column, pa.int32()), names))
        else:
            arrays.append(pa.array([f"item {item}" for item in column], getattr(pa, kind)()))
    names = ["voter", *(f"rank_{rank + 1}" for rank in range(drawn.shape[1]))]
    fields = [pa.field(name, array.type, nullable=nullable) for name, array in zip(names, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@contextmanager
def native(read: Callable[..., Any] | None = None) -> Iterator[list[bool]]:
    """Read small groups too, by `read` if it is given; lists for each group that was tried whether it was read."""
    reads: list[bool] = []
    real = read or parquet_reading.GroupReader.read

    def spy(reader: Any, number: int) -> Any:
        group = real(reader, number)
        reads.append(group is not None)
        return group

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_reading, "LARGE", 0)
        patch.setattr(parquet_reading.GroupReader, "read", spy)
        yield reads


def outcome(path: Path, batch_rows: int = 1000, **options: Any) -> Rankings | str:
    """What the file holds, or the sentence that refuses it."""
    try:
        with open_rankings(path, batch_rows=batch_rows, **options) as reader:
            return Rankings.concatenate(reader, sort_items=not reader.declared_items)
    except InputError as error:
        return str(error)


def both(path: Path, **options: Any) -> tuple[Rankings | str, Rankings | str, list[bool]]:
    """What is read page by page, what is read by Arrow, and which groups were read page by page."""
    with native() as reads:
        ours = outcome(path, **options)
    with native(lambda *_: None):
        return ours, outcome(path, **options), reads


def same(path: Path, groups: int | None = 1, **options: Any) -> Rankings:
    """Both ways agree, and so many groups (None for all of the file's) were read page by page."""
    ours, arrows, reads = both(path, **options)
    assert isinstance(arrows, Rankings), arrows
    assert ours == arrows
    assert sum(reads) == (pq.read_metadata(path).num_row_groups if groups is None else groups)
    return ours


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli"])
def test_files_by_pyarrow(tmp_path, kind, compression):
    path = tmp_path / "v.parquet"
    drawn = orders(1500, 10)
    for version, nullable in (("1.0", True), ("2.0", True), ("1.0", False), ("2.0", False)):
        whole = table(drawn, kind, nullable)
        options = {"data_page_version": version, "compression": compression, "version": "2.6"}
        pq.write_table(whole, path, data_page_size=500, write_batch_size=64, **options)
        assert len(same(path)) == 1500
        pq.write_table(whole, path, row_group_size=400, **options)
        rankings = same(path, None)
        assert np.array_equal(np.array(rankings.items)[rankings.orders], np.array(list(rankings)))
        number = str if kind.startswith("int") else "item {}".format
        assert next(iter(rankings)) == tuple(map(number, drawn[0]))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_plain_numbers(tmp_path, kind, compression):
    for version in ("1.0", "2.0"):
        for nullable in (True, False):
            options = {"use_dictionary": False, "compression": compression, "data_page_version": version}
            pq.write_table(
                table(orders(700, 12), kind, nullable), tmp_path / "v.parquet", data_page_size=300, **options
            )
            same(tmp_path / "v.parquet")


@pytest.mark.parametrize("items", [1, 2, 3, 16, 17, 255, 256, 257, 1000])
@pytest.mark.parametrize("kind", ["dictionary", "int16"])
def test_every_width_of_an_index(tmp_path, items, kind):
    for rows in (1, 7, 8, 9, 511, 512, 513, 2100):
        pq.write_table(table(orders(rows, items, min(items, 5), rows), kind), tmp_path / "v.parquet")
        same(tmp_path / "v.parquet")


@pytest.mark.parametrize("batch_rows", [1, 7, 512, 999, 5000])
def test_batches_of_any_size(tmp_path, batch_rows):
    rows = 40 if batch_rows == 1 else 2000
    pq.write_table(table(orders(rows, 9)), tmp_path / "v.parquet", data_page_size=200, row_group_size=1100)
    same(tmp_path / "v.parquet", None, batch_rows=batch_rows)


def test_files_by_ourselves(tmp_path):
    for items in (1, 2, 10, 300):
        rankings = Rankings.from_orders(
            orders(900, items, min(items, 6)), [f"i{i}" for i in range(items)], range(900), np.arange(1, 901) / 7
        )
        rankings.write(tmp_path / "v.parquet")
        assert same(tmp_path / "v.parquet", epsilon_column="epsilon") == rankings


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("kind", ["string", "int32", "int64"])
def test_files_by_duckdb(tmp_path, compression, kind):
    votes = table(orders(3000, 10), kind)  # noqa: F841 - DuckDB finds it by its name
    for version in ("V1", "V2"):
        options = f"FORMAT parquet, COMPRESSION {compression}, PARQUET_VERSION {version}"
        duckdb.sql(f"COPY votes TO '{tmp_path}/v.parquet' ({options})")
        same(tmp_path / "v.parquet")


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd"])
@pytest.mark.parametrize("kind", ["string", "int32", "int64"])
def test_files_by_polars(tmp_path, compression, kind):
    pl.from_arrow(table(orders(3000, 10), kind)).write_parquet(tmp_path / "v.parquet", compression=compression)
    ours, arrows, _ = both(tmp_path / "v.parquet")
    assert isinstance(ours, Rankings)
    assert ours == arrows


def test_small_groups_are_left_to_arrow(tmp_path):
    pq.write_table(table(orders(100, 9)), tmp_path / "v.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_reading, "_group", None)
        assert len(Rankings.read(tmp_path / "v.parquet")) == 100
    with native() as reads:
        Rankings.read(tmp_path / "v.parquet")
    assert reads == [True]


def with_column(name: str, array: pa.Array) -> pa.Table:
    whole = table(orders(400, 9), "int64")
    place = whole.column_names.index(name)
    return whole.set_column(place, name, array.cast(array.type))


NULLS = pa.array([100 + row if row % 50 else None for row in range(400)])
ODD = {
    "nulls": (with_column("rank_4", NULLS), {}),
    "null in the last row": (with_column("rank_4", pa.array([100] * 399 + [None])), {}),
    "nothing but nulls": (with_column("rank_4", pa.nulls(400, pa.int64())), {}),
    "delta": (with_column("rank_4", NULLS), {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}),
    "byte streams": (table(orders(400, 9), "int32"), {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}),
    "plain text": (table(orders(400, 9), "string"), {"use_dictionary": False}),
    "a dictionary given up": (
        table(orders(400, 90), "string"),
        {"dictionary_pagesize_limit": 50, "write_batch_size": 9},
    ),
    "lz4": (table(orders(400, 9)), {"compression": "lz4"}),
    "unsigned": (with_column("rank_4", pa.array([100] * 400, pa.uint32())), {}),
    "decimals": (with_column("rank_4", pa.array([100.0] * 400)), {}),
    "large numbers": (with_column("rank_4", pa.array([10**12] * 400)), {"use_dictionary": False}),
    "negative numbers": (with_column("rank_4", pa.array([-5] * 400)), {"use_dictionary": False}),
}


@pytest.mark.parametrize("case", ODD)
def test_what_is_odd_is_left_to_arrow(tmp_path, case):
    whole, options = ODD[case]
    pq.write_table(whole, tmp_path / "v.parquet", **options)
    same(tmp_path / "v.parquet", 0)


def test_arrow_goes_on_where_pages_are_odd(tmp_path):
    parts = [table(orders(400, 9, seed=seed), "int64") for seed in range(4)]
    parts[2] = with_column("rank_4", NULLS)
    with pq.ParquetWriter(tmp_path / "v.parquet", parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    assert len(same(tmp_path / "v.parquet", 2)) == 1600


BROKEN = {
    "repeated": lambda drawn: drawn.__setitem__((1234, 3), drawn[1234, 0]),
    "repeated in the last row": lambda drawn: drawn.__setitem__((-1, 0), drawn[-1, 1]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", BROKEN)
def test_broken_rows_are_told_as_by_arrow(tmp_path, kind, case):
    drawn = orders(3000, 9)
    BROKEN[case](drawn)
    pq.write_table(table(drawn, kind), tmp_path / "v.parquet", row_group_size=2000)
    ours, arrows, reads = both(tmp_path / "v.parquet")
    assert "is listed twice" in str(arrows)
    assert ours == arrows
    assert all(reads)


def test_texts_that_mean_missing_and_texts_that_are_none(tmp_path):
    cells = [["a", "b", "c"], ["b", "NA", "NA"], ["c", " a ", "NA"]] * 30
    for rows in (cells, [*cells, ["a", "-", "-"]], [*cells, ["NA", "a", "b"]], [*cells, ["a", "x\ny", "b"]]):
        columns = {f"rank_{rank + 1}": pa.array(column) for rank, column in enumerate(zip(*rows, strict=True))}
        pq.write_table(pa.table(columns), tmp_path / "v.parquet")
        ours, arrows, reads = both(tmp_path / "v.parquet", batch_rows=20)
        assert ours == arrows
        assert reads == [True]
    columns["rank_1"] = pa.array([b"\xff"] * len(columns["rank_1"])).view(pa.string())
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    ours, arrows, _ = both(tmp_path / "v.parquet")
    assert "is not valid UTF-8 text" in str(arrows)
    assert ours == arrows


def test_items_given_by_the_caller(tmp_path):
    pq.write_table(table(orders(500, 6)), tmp_path / "v.parquet")
    names = [f"item {item}" for item in range(7)]
    assert same(tmp_path / "v.parquet", items=names[::-1]).items == tuple(names[::-1])
    ours, arrows, _ = both(tmp_path / "v.parquet", items=names[:5])
    assert "'item 5' is not one of the 5 items given" in str(arrows)
    assert ours == arrows


def test_a_code_outside_its_dictionary(tmp_path):
    path = tmp_path / "v.parquet"
    for rows in (60, 60_000):
        pq.write_table(table(orders(rows, 5)), path, compression="none", write_statistics=False)
        data, end = path.read_bytes(), -pq.read_metadata(path).serialized_size - 8
        path.write_bytes(data[: end - 3] + bytes([255] * 3) + data[end:])  # the last codes, of three bits each
        assert both(path)[:2] == (f"{path}: the file is damaged (a code lies outside its dictionary)",) * 2


def test_a_damaged_name_of_a_column(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(table(orders(60, 5)), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"rank_1", b"rank\xff1"))
    assert outcome(path) == f"{path}: this is not a whole Parquet file (damaged or cut short?)"


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A copy with one byte changed, some overwritten, removed or put in."""
    copy, at = bytearray(data), int(rng.integers(4, len(data)))
    kind = rng.integers(5)
    if kind <= 1:
        copy[at] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        copy[at] = int(rng.choice([0, 1, 127, 128, 255]))
    elif kind == 3:
        copy[at : at + 4] = rng.bytes(4)
    else:
        end = at + int(rng.integers(1, 9))
        copy[at:end] = rng.bytes(end - at)[: int(rng.integers(0, 9))]
    return bytes(copy)


FUZZED = [
    ("dictionary", {"compression": "none"}),
    ("dictionary", {"compression": "snappy", "data_page_version": "2.0"}),
    ("int32", {"compression": "none", "use_dictionary": False}),
    ("int64", {"compression": "zstd", "data_page_size": 40, "write_batch_size": 16}),
]


def fuzz(path: Path, kind: str, options: dict[str, Any], seed: int, times: int) -> None:
    rng = np.random.default_rng(seed)
    pq.write_table(table(orders(60, 5, 3), kind).drop(["voter"]), path, **options)
    data = path.read_bytes()
    pages = len(data) - pq.read_metadata(path).serialized_size - 8
    agreed = 0
    for _ in range(times):
        path.write_bytes(damaged(data[:pages], rng) + data[pages:])
        ours, arrows, _ = both(path)
        assert ours == arrows or isinstance(ours, str)
        agreed += isinstance(ours, Rankings)
    assert 0 < agreed < times


@pytest.mark.parametrize(("kind", "options"), FUZZED)
def test_damaged_pages(tmp_path, kind, options):
    fuzz(tmp_path / "v.parquet", kind, options, 1, 80)


@pytest.mark.parametrize(("kind", "options"), FUZZED)
@pytest.mark.parametrize("seed", [2, 3])
def test_damaged_pages_at_length(tmp_path, kind, options, seed):
    fuzz(tmp_path / "v.parquet", kind, options, seed, 1500)
