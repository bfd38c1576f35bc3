"""Every Arrow-compatible frame is a table of rankings."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankdp.data import Rankings
from rankdp.errors import InputError

WIDE = {"user_id": [7, 8, 9], "rank_1": ["b", "a", "c"], "rank_2": ["a", "b", None], "age": [30, 40, 50]}
WANT = [("b", "a"), ("a", "b"), ("c",)]


FRAMES = {
    "pandas": lambda: pd.DataFrame(WIDE),
    "pandas category": lambda: pd.DataFrame(WIDE).astype({"rank_1": "category", "rank_2": "category"}),
    "pandas object": lambda: pd.DataFrame(WIDE).astype({"rank_1": object, "rank_2": object}),
    "pandas index": lambda: pd.DataFrame(WIDE).set_index("age"),
    "polars": lambda: pl.DataFrame(WIDE),
    "polars categorical": lambda: pl.DataFrame(WIDE).with_columns(pl.col("^rank.*$").cast(pl.Categorical)),
    "polars enum": lambda: pl.DataFrame(WIDE).with_columns(pl.col("^rank.*$").cast(pl.Enum([*"cbaz"]))),
    "pyarrow": lambda: pa.table(WIDE),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(WIDE),
    "pyarrow chunks": lambda: pa.concat_tables([pa.table(WIDE).slice(0, 1), pa.table(WIDE).slice(1)]),
}


def check_wide(frame):
    rankings = Rankings.from_frame(frame)
    assert list(rankings) == WANT
    assert rankings.items == ("a", "b", "c")
    assert rankings.voters.tolist() == [7, 8, 9]


@pytest.mark.parametrize("name", FRAMES)
def test_wide(name):
    check_wide(FRAMES[name]())


def test_wide_in_duckdb():
    with duckdb.connect() as connection:
        check_wide(connection.from_arrow(pa.table(WIDE)))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_long_and_numbers(make):
    long = make({"voter": ["x", "y", "x"], "item": ["a", "b", "b"], "rank": [2, 1, 1], "eps": [1.5, 2.5, 1.5]})
    rankings = Rankings.from_frame(long, epsilon_column="eps")
    assert list(rankings) == [("b", "a"), ("b",)]
    assert rankings.voters.tolist() == ["x", "y"]
    assert rankings.epsilons.tolist() == [1.5, 2.5]
    numbers = Rankings.from_frame(make({"rank_1": [3, 1], "rank_2": [1, None]}))
    assert list(numbers) == [("3", "1"), ("1",)]


def test_into_other_libraries():
    rankings = Rankings.from_frame(pa.table(WIDE))
    assert pl.DataFrame(rankings)["rank_1"].to_list() == WIDE["rank_1"]
    assert pa.table(rankings).column("voter").to_pylist() == WIDE["user_id"]
    assert rankings.to_arrow().to_pandas()["rank_2"].tolist()[:2] == ["a", "b"]


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ([[1, 2]], "frame must be an Arrow-compatible table"),
        (pa.table({"x": [1]}), "frame: rankings need the columns voter"),
        (pa.table({"rank_1": pa.array([], pa.string())}), "frame: there are no rows"),
        (pa.table({"rank_1": ["a", "b"], "rank_2": ["b", "b"]}), "row 2: 'b' is listed twice"),
        (pa.table({"voter": [1, None], "rank_1": ["a", "b"]}), "row 2: the voter id is blank"),
        (
            pa.table({"rank_1": ["a", "NA", None]}),
            "frame, row 3: missing is spelled as a blank here and 'NA' at frame, row 2",
        ),
        (pa.table({"rank_1": pa.nulls(2)}), "row 1: no item is listed"),
    ],
)
def test_refused(frame, sentence):
    with pytest.raises(InputError) as caught:
        Rankings.from_frame(frame)
    assert sentence in str(caught.value)
