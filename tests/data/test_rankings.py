"""Rankings: what is accepted, what it becomes, and the sentence for everything that is refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp.data import Rankings
from rankdp.data.orders import first_broken
from rankdp.errors import InputError


def refusal(call, *args, **kwargs) -> str:
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_orders_of_names_and_orders_of_indices_are_the_same_rankings():
    by_name = Rankings.from_orders([["b", "a", "c"], ["c"]])
    by_index = Rankings.from_orders(np.array([[1, 0, 2], [2, -1, -1]]), items=["a", "b", "c"])
    assert by_name == by_index
    assert by_name.items == ("a", "b", "c")
    assert by_name.orders.dtype == np.int32
    assert by_name.orders.tolist() == [[1, 0, 2], [2, -1, -1]]
    assert by_name.ranks().tolist() == [[2, 1, 3], [0, 0, 1]]
    assert by_name.lengths.tolist() == [3, 1]
    assert not by_name.complete
    assert len(by_name) == 2
    assert list(by_name) == [("b", "a", "c"), ("c",)]
    assert Rankings.from_orders([["b", "a", "c"], ["c", None, None]]) == by_name


def test_names_are_put_in_an_order_that_no_voter_chose():
    assert Rankings.from_orders([["Course 10", "Course 2"]]).items == ("Course 2", "Course 10")
    assert Rankings.from_orders([["Course 10", "Course 2"]], items=["Course 10", "Course 2"]).items[0] == "Course 10"


def test_ranks_and_orders_are_inverse():
    ranks = [[2, 1, 3], [3, 2, 1], [0, 1, 2]]
    rankings = Rankings.from_ranks(ranks, items=["a", "b", "c"])
    assert rankings.ranks().tolist() == ranks
    assert list(rankings) == [("b", "a", "c"), ("c", "b", "a"), ("b", "c")]
    assert Rankings.from_ranks([[2.0, 1.0, float("nan")]]).ranks().tolist() == [[2, 1, 0]]
    assert Rankings.from_ranks([[2, 1, None]]).ranks().tolist() == [[2, 1, 0]]


@pytest.mark.slow
@given(st.lists(st.permutations(range(5)).flatmap(lambda p: st.integers(1, 5).map(lambda k: p[:k])), min_size=1))
def test_from_ranks_undoes_ranks(rows):
    rankings = Rankings.from_orders([[f"i{x}" for x in row] for row in rows], items=[f"i{x}" for x in range(5)])
    again = Rankings.from_ranks(rankings.ranks(), items=rankings.items)
    assert list(again) == list(rankings)


def test_it_is_frozen():
    given_orders = np.array([[0, 1]], dtype=np.int32)
    rankings = Rankings.from_orders(given_orders, items=["a", "b"], voters=[7], epsilons=[1.0])
    for array in (rankings.orders, rankings.epsilons, rankings.voters):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        rankings.items = ("x",)
    given_orders[0] = [1, 0]
    assert rankings.orders.tolist() == [[0, 1]]
    with pytest.raises(TypeError, match="from_orders, from_ranks"):
        Rankings(given_orders, ["a", "b"])
    with pytest.raises(TypeError):
        hash(rankings)


def test_copies_and_pickles_are_equal_and_frozen():
    rankings = Rankings.from_orders([["a", "b"], ["b"]], voters=["x", "y"], epsilons=[0.5, 2])
    for other in (pickle.loads(pickle.dumps(rankings)), copy.deepcopy(rankings), copy.copy(rankings)):
        assert other == rankings
        assert not other.orders.flags.writeable
    assert rankings != Rankings.from_orders([["a", "b"], ["b"]], voters=["x", "z"], epsilons=[0.5, 2])
    assert rankings != Rankings.from_orders([["a", "b"], ["b"]])
    assert rankings != "something else"


def test_new_orders_keep_everything_else():
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"]], voters=[1, 2], epsilons=[1, 2])
    swapped = rankings.with_orders(rankings.orders[:, ::-1])
    assert list(swapped) == [("b", "a"), ("a", "b")]
    assert swapped.voters.tolist() == [1, 2]
    assert swapped.epsilons.tolist() == [1, 2]
    assert "listed twice" in refusal(rankings.with_orders, np.zeros((2, 2), int))
    assert "2 rankings, got 1" in refusal(rankings.with_orders, np.array([[0, 1]]))


def test_slices_and_repr():
    rankings = Rankings.from_orders([["a", "b"], ["b"], ["a"]], voters=[1, 2, 3])
    assert rankings[1:].voters.tolist() == [2, 3]
    assert repr(rankings) == "Rankings(3 of 2 items: a, b, 1 to 2 listed, voter ids)"
    assert "at least one row" in refusal(lambda: rankings[5:])
    with pytest.raises(TypeError, match="slices"):
        rankings[0]


@pytest.mark.parametrize(
    ("orders", "items", "sentence"),
    [
        ([["a", "b"], ["a", "a"]], None, "row 2: 'a' is listed twice; a ranking lists each item once"),
        ([["a", "x"]], ["a", "b"], "row 1: 'x' is not one of the 2 items given"),
        (
            [[0, 1], [-1, 1]],
            ["a", "b"],
            "row 2: position 1 is blank but position 2 is 'b'; only the end of a ranking",
        ),
        (
            [[0, 1], [0, 2]],
            ["a", "b"],
            "row 2: position 2 holds the index 2; an index lies in 0..1, or is -1",
        ),
        ([[0, -2]], ["a", "b"], "row 1: position 2 holds the index -2"),
        ([[0, 1], [-1, -1]], ["a", "b"], "row 2: no item is listed; a ranking lists at least one"),
        (
            [[0, 1], [0]],
            ["a", "b"],
            "row 2: the row has 1 indices and the first row 2; pad rows of indices with -1",
        ),
        ([[1, 2], [2, 1]], None, "no row lists the index 0 (indices are counted from 0 to 2)"),
        ([[2**31 - 1, 0]], None, "no row lists the index 1 "),
        ([], None, "orders must have at least one row and one column"),
        ([["a"], []], None, "row 2: no item is listed"),
        ([[0.0, 1.0]], None, "orders must be whole numbers (item indices counted from 0), got dtype float64"),
        (np.array([0, 1]), None, "orders must be a table with one row per ranking, got 1 dimension(s)"),
        ([[2**40, 0]], ["a"], "orders holds an index beyond 32 bits"),
        (["ab"], None, "row 1: a ranking must be a list of items, got 'ab'"),
        ([["a", None, "b"]], None, "row 1: rows of names hold names only, got None"),
        ([["a", 1]], None, "row 1: rows of names hold names only, got 1"),
        ([["a", " "]], None, "is blank; an item needs a name"),
        ([["a", "b\nc"]], None, "no line break"),
        ([[0]], [], "items must name at least one item"),
        ([[0, 1]], ["a", "a"], "items must be different, got 'a' twice"),
        ([[0, 1]], ["a", ""], "items[1] is blank; an item needs a name"),
        (
            [[0, 1]],
            ["a", " b"],
            "items[1] is ' b'; an item's name has no space at its ends and no line break",
        ),
        ([[0, 1]], "ab", "items must be a list of names, got the single text 'ab'"),
        ([[0, 1]], ["a", 1.5], "an item must be a text or a whole number, got 1.5"),
        ([[0, 1]], ["a", "\ud800"], "not valid Unicode"),
    ],
)
def test_refused_orders(orders, items, sentence):
    assert sentence in refusal(Rankings.from_orders, orders, items)


@pytest.mark.parametrize(
    ("ranks", "sentence"),
    [
        ([[1, 1]], "row 1: 'a' and 'b' are tied at rank 1; ties='listed' keeps"),
        ([[1, 2], [1, 3]], "row 2: rank 2 is missing but 'b' has rank 3"),
        ([[2, 3]], "row 1: rank 1 is missing but 'a' has rank 2"),
        ([[1, -2]], "row 1: a rank must be 1 or more (0 if not listed), got -2"),
        ([[1, 1.5]], "row 1: a rank must be a whole number, got 1.5"),
        ([[1, float("inf")]], "row 1: a rank must be a whole number, got inf"),
        ([[1, 2, 3]], "ranks must have one column for each of the 2 items, got 3 columns"),
        ([["x", "y"]], "ranks must be whole numbers, got dtype"),
        ([[1, None], [1]], "ranks must be"),
        ([], "ranks must be a table"),
        ([[0, 0]], "row 1: no item is listed"),
    ],
)
def test_refused_ranks(ranks, sentence):
    assert sentence in refusal(Rankings.from_ranks, ranks, items=["a", "b"])


def test_ties_are_broken_as_the_caller_says():
    items = ["a", "b", "c", "d"]
    for ranks in ([[2, 1, 2, 4]], [[2, 1, 2, 3]]):
        assert list(Rankings.from_ranks(ranks, items, ties="listed")) == [("b", "a", "c", "d")]
    drawn = Rankings.from_ranks([[1, 1, 1, 4]] * 600, items, ties="random")
    assert {row[3] for row in drawn} == {"d"}
    # each of the six orders has mean 100 and standard deviation 9.1; ten deviations never happen
    counts = np.unique(drawn.orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert counts.min() > 9
    assert "rank 2 is missing" in refusal(Rankings.from_ranks, [[1, 1, 1, 5]], items, ties="listed")
    assert "ties must be one of refuse, listed, random, got 'first'" in refusal(
        Rankings.from_ranks, [[1, 2]], ties="first"
    )


@pytest.mark.parametrize(
    ("epsilons", "sentence"),
    [
        ([1.0, 0.0], "row 2: epsilon must be a finite number above 0, got 0.0"),
        ([float("nan"), 1], "row 1: epsilon must be a finite number above 0, got nan"),
        ([1, float("inf")], "row 2: epsilon must be a finite number above 0, got inf"),
        ([-1, 1], "row 1: epsilon must be a finite number above 0, got -1.0"),
        ([1.0], "epsilons must hold one number for each of the 2 rows, got shape (1,)"),
        (["x", "y"], "epsilons must be numbers, one for each row"),
    ],
)
def test_refused_epsilons(epsilons, sentence):
    assert sentence in refusal(Rankings.from_orders, [["a", "b"], ["b"]], epsilons=epsilons)


def test_refused_voters():
    orders = [["a", "b"], ["b"]]
    assert "voters must hold one id for each of the 2 rows, got 1" in refusal(Rankings.from_orders, orders, voters=[1])
    assert "row 2: the voter id is blank" in refusal(Rankings.from_orders, orders, voters=["x", None])
    assert Rankings.from_orders(orders, voters=["x", 2**70]).voters.tolist() == ["x", 2**70]


@pytest.mark.parametrize("blank", ["", " ", "\t\u00a0", None, float("nan"), b" "])
def test_ids_lose_the_spaces_around_them_as_items_do_and_none_is_blank(tmp_path, blank):
    orders, columns = [["a", "b"], ["b", "a"]], {"rank_1": ["a", "b"], "rank_2": ["b", "a"]}
    ids = [" x ", "\u00a0y\t"]
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]
    texts = [pa.array(ids).cast(kind) for kind in kinds]
    for voters in (ids, np.array(ids), *texts):
        assert Rankings.from_orders(orders, voters=voters).voters.tolist() == ["x", "y"]
        assert Rankings.from_ranks([[1, 2], [2, 1]], voters=voters).voters.tolist() == ["x", "y"]
    for voters in texts:
        assert Rankings.from_frame(pa.table({"voter": voters, **columns})).voters.tolist() == ["x", "y"]
        pq.write_table(pa.table({"voter": voters, **columns}), tmp_path / "v.parquet")
        assert Rankings.read(tmp_path / "v.parquet").voters.tolist() == ["x", "y"]
    long = pa.table({"voter": [" x", "x ", "y"], "item": ["a", "b", "b"], "rank": [1, 2, 1]})
    assert Rankings.from_frame(long).voters.tolist() == ["x", "y"]
    (tmp_path / "v.csv").write_text("voter,rank_1\n x ,a\n\u00a0y\t,b\n")
    assert Rankings.read(tmp_path / "v.csv").voters.tolist() == ["x", "y"]
    if not isinstance(blank, bytes):
        first = 1.0 if isinstance(blank, float) else "x"
        assert "row 2: the voter id is blank" in refusal(Rankings.from_orders, orders, voters=[first, blank])
    array = pa.array([1.0, blank] if isinstance(blank, float) else [b"x" if isinstance(blank, bytes) else "x", blank])
    assert "row 2: the voter id is blank" in refusal(Rankings.from_orders, orders, voters=array)
    assert "row 2: the voter id is blank" in refusal(Rankings.from_frame, pa.table({"voter": array, **columns}))
    pq.write_table(pa.table({"voter": array, **columns}), tmp_path / "b.parquet")
    assert refusal(Rankings.read, tmp_path / "b.parquet").endswith(", row 2: the voter id is blank")
    if isinstance(blank, str):
        (tmp_path / "b.csv").write_text(f"voter,rank_1\nx,a\n{blank},b\n")
        assert refusal(Rankings.read, tmp_path / "b.csv").endswith(", line 3: the voter id is blank")


def test_ids_that_are_no_text():
    bad = pa.array([b"x", b"\xff"])
    assert "row 2: b'\\xff' is not valid UTF-8 text" in refusal(Rankings.from_orders, [["a"], ["a"]], voters=bad)
    assert Rankings.from_orders([["a"], ["a"]], voters=[(1, 2), (3, 4)]).voters.tolist() == [(1, 2), (3, 4)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 70))
def test_the_first_broken_row_is_found(seed, items):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, items + 2))
    rows = int(rng.integers(1, 6))
    orders = np.full((rows, width), -1, np.int32)
    for row in orders:
        length = int(rng.integers(1, min(width, items) + 1))
        row[:length] = rng.permutation(items)[:length]
    for _ in range(int(rng.integers(0, 3))):
        orders[rng.integers(rows), rng.integers(width)] = rng.integers(-2, items + 1)

    def broken(row):
        listed = [item for item in row if item != -1]
        distinct = len(set(listed)) == len(listed) > 0 and all(0 <= item < items for item in listed)
        return not distinct or row[: len(listed)] != listed

    expected = next((number for number, row in enumerate(orders.tolist()) if broken(row)), -1)
    assert first_broken(orders, items) == expected


@pytest.mark.parametrize("items", [10, 100])
def test_a_large_table_names_its_broken_row(items):
    orders = np.tile(np.arange(items, dtype=np.int32), (20_000, 1))
    assert Rankings.from_orders(orders).complete
    orders[12_344, 5] = orders[12_344, 2]
    assert refusal(Rankings.from_orders, orders).startswith("row 12345: '2' is listed twice")


def test_small_use_imports_nothing_heavy():
    script = (
        "import sys, rankdp.data.rankings\n"
        "from rankdp.data import Rankings\n"
        "Rankings.from_orders([['a', 'b']]).ranks()\n"
        "Rankings.from_ranks([[1, 2]])\n"
        "heavy = {'numba', 'pyarrow', 'pandas', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
