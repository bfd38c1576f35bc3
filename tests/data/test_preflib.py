"""PrefLib files, checked against preflibtools in both directions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preflibtools.instances import OrdinalInstance

from rankdp.data import Rankings
from rankdp.data.files import open_rankings
from rankdp.errors import InputError

HEADER = "# TITLE: x\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 5\n# NUMBER UNIQUE ORDERS: 2\n"
NAMES = "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b, the second\n# ALTERNATIVE NAME 3: c: last\n"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@st.composite
def weak_orders(draw, tied: bool, complete: bool):
    m = draw(st.integers(1, 6))
    orders = {}
    for _ in range(draw(st.integers(1, 6))):
        order = draw(st.permutations(range(1, m + 1)))
        order = order if complete else order[: draw(st.integers(1, m))]
        groups: list[list[int]] = []
        for alternative in order:
            if tied and groups and draw(st.booleans()):
                groups[-1].append(alternative)
            else:
                groups.append([alternative])
        orders[tuple(map(tuple, groups))] = draw(st.integers(1, 5))
    return m, orders


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soc", "soi", "toc", "toi"])
@given(data=st.data())
@settings(max_examples=40)
def test_files_written_by_preflibtools(tmp_path, kind, data):
    m, orders = data.draw(weak_orders(kind[0] == "t", kind[2] == "c"))
    theirs = OrdinalInstance()
    theirs.alternatives_name = {k: f"Name {k}" for k in range(1, m + 1)}
    theirs.num_alternatives = m
    theirs.append_vote_map(orders)
    theirs.num_unique_orders = len(orders)
    theirs.data_type = kind
    path = tmp_path / f"theirs.{kind}"
    theirs.write(str(path))

    want = OrdinalInstance(str(path))
    expected = [tuple(f"Name {a}" for group in order for a in group) for order in want.full_profile()]
    ours = Rankings.read(path, ties="listed" if kind[0] == "t" else "refuse")
    assert list(ours) == expected
    assert ours.items == tuple(want.alternatives_name.values())
    assert len(ours) == want.num_voters
    if any(len(group) > 1 for order in orders for group in order):
        with pytest.raises(InputError, match="are tied at rank"):
            Rankings.read(path)


@pytest.mark.parametrize("kind", ["soc", "soi"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_files_read_by_preflibtools(tmp_path, kind, seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    rows = [[f"Name {i}" for i in rng.permutation(m)] for _ in range(int(rng.integers(1, 20)))]
    if kind == "soi":
        rows = [row[: int(rng.integers(1, m + 1))] for row in rows]
    rankings = Rankings.from_orders(rows, items=[f"Name {i}" for i in range(m)])
    path = tmp_path / f"ours.{kind}"
    rankings.write(path)
    theirs = OrdinalInstance(str(path))
    assert theirs.data_type == kind
    assert theirs.num_voters == len(rankings)
    assert theirs.num_unique_orders == len(set(rankings))
    assert tuple(theirs.alternatives_name.values()) == rankings.items
    names = theirs.alternatives_name
    assert sorted(tuple(names[a] for (a,) in order) for order in theirs.full_profile()) == sorted(rankings)


def test_multiplicities_and_batches(tmp_path):
    path = write(tmp_path / "v.soi", "\ufeff" + HEADER + NAMES + "4: 3, 1\n1: 2\n")
    with open_rankings(path, batch_rows=2) as reader:
        assert (reader.rows, reader.width) == (5, 2)
        assert reader.items == ("a", "b, the second", "c: last")
        assert reader.columns.voter is None
        batches = list(reader)
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert list(Rankings.concatenate(batches)) == [("c: last", "a")] * 4 + [("b, the second",)]
    ordered = Rankings.read(path, items=["c: last", "b, the second", "a"])
    assert ordered.orders[0].tolist() == [0, 2]


def test_ties(tmp_path):
    path = write(tmp_path / "v.toc", HEADER + NAMES + "4: 2,{3,1}\n1: {1,2,3}\n")
    assert next(iter(Rankings.read(path, ties="listed"))) == ("b, the second", "c: last", "a")
    drawn = {row for _ in range(30) for row in list(Rankings.read(path, ties="random"))[:4]}
    assert drawn == {("b, the second", "c: last", "a"), ("b, the second", "a", "c: last")}


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (
            "soc",
            "3\n1,a\n2,b\n3,c\n5,5,1\n5,1,2,3\n",
            ", line 1: there is no '# ALTERNATIVE NAME' line before the orders",
        ),
        ("soc", "# TITLE: x\n", ": there is no '# ALTERNATIVE NAME' line; this is not a PrefLib file"),
        ("soc", "", ": the file is empty"),
        ("soc", HEADER + NAMES, ": there is a header but no order"),
        (
            "soc",
            HEADER + NAMES + "4: 1,2,3\n2: 3,2,1\n",
            ": the header says NUMBER VOTERS: 5, but the file has 6",
        ),
        (
            "soc",
            HEADER + NAMES + "5: 1,2,3\n",
            ": the header says NUMBER UNIQUE ORDERS: 2, but the file has 1",
        ),
        (
            "soi",
            HEADER + NAMES[:24] + "4: 1\n1: 1\n",
            ": the header says NUMBER ALTERNATIVES: 3, but the file has 1",
        ),
        (
            "soc",
            HEADER + NAMES + "4: 1,2,3\n1: 3,2\n",
            ", line 9: a .soc file lists every alternative in every order",
        ),
        (
            "toc",
            HEADER + NAMES + "4: 1,2,3\n1: 3,{1,2}\n",
            ", line 9: 'a' and 'b, the second' are tied at rank 2; ties=",
        ),
        ("soi", HEADER + NAMES + "4: 1,2,3\n1: 3,7\n", ", line 9: 7 is not one of the 3 alternatives"),
        ("soi", HEADER + NAMES + "4: 1,2,3\n1: 3,3\n", ", line 9: 'c: last' is listed twice"),
        (
            "soi",
            HEADER + NAMES + "4: 1,2,3\n1: \n",
            ", line 9: an order must look like '3: 1,2,{4,5}', got '1:'",
        ),
        ("toi", HEADER + NAMES + "4: 1,2,3\n1: {}\n", ", line 9: no item is listed"),
        ("toi", HEADER + NAMES + "4: 1,2,3\n1: {1,2\n", ", line 9: an order must look like"),
        ("soi", HEADER + NAMES + "4: 1,2,3\nx: 1\n", ", line 9: an order must look like"),
        (
            "soi",
            "# NUMBER VOTERS: many\n" + NAMES,
            ", line 1: NUMBER VOTERS must be a whole number of at most 18 digits, got 'many'",
        ),
        (
            "soi",
            f"# NUMBER VOTERS: {'1' * 5000}\n{NAMES}",
            ", line 1: NUMBER VOTERS must be a whole number of at most 18",
        ),
        ("soi", f"# ALTERNATIVE NAME {'1' * 5000}: a\n", ", line 1: the number of an alternative must be a whole"),
        ("soi", NAMES + f"{'1' * 5000}: 1,2\n", ", line 4: an order must look like"),
        ("soi", NAMES + f"{10**13}: 1,2\n", ": a file holds at most 2147483647 voters, got 10000000000000"),
        ("soi", "# ALTERNATIVE NAME 4 d\n" + NAMES, ", line 1: ALTERNATIVE NAME must be followed by a colon, got"),
        ("soi", "# NUMBER VOTERS 11: 2\n" + NAMES, ", line 1: NUMBER VOTERS must be followed by a colon, got"),
        ("toi", NAMES + "1: {1 2},3\n", ", line 4: an order must look like"),
        ("soi", NAMES + "# ALTERNATIVE NAME 4: a\n", ", line 4: alternative 4 ('a') is named twice"),
        ("soi", "# ALTERNATIVE NAME 1: \n1: 1\n", ", line 1: the alternative's name is blank"),
        ("soi", NAMES.encode() + b"# \xff\n", ", line 4: the text is not valid UTF-8"),
    ],
)
def test_refused(tmp_path, kind, text, sentence):
    path = write(tmp_path / f"v.{kind}", text)
    with pytest.raises(InputError) as caught:
        Rankings.read(path)
    assert str(caught.value).startswith(str(path))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refused_options(tmp_path):
    path = write(tmp_path / "v.soi", HEADER + NAMES + "4: 1,2,3\n1: 3\n")
    with pytest.raises(InputError, match="'c: last' is not one of the 2 items given"):
        Rankings.read(path, items=["a", "b, the second"])
    with pytest.raises(InputError, match=r"a .* file has no columns"):
        Rankings.read(path, epsilon_column="eps")
