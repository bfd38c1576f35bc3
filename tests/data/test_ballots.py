"""Ballots: what files say, and the integers counted from them, against definitions written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, permutations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp.data import queries
from rankdp.data.ballots import SHARES, Ballots
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported

TOI = """# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
# ALTERNATIVE NAME 4: d
3: 1,{2,3}
2: {4,1}
1: {1,4}
1: 2,1,4,3
"""


def completions(groups: list[list[int]], m: int):
    """Every strict order that agrees with a ballot's groups, the unlisted being the last of them."""
    rest = [item for item in range(m) if item not in chain(*groups)]
    orders = [()]
    for group in [*groups, rest]:
        orders = [order + added for order in orders for added in permutations(group)]
    return orders


@st.composite
def elections(draw):
    m = draw(st.integers(2, 5))
    cast = []
    for _ in range(draw(st.integers(1, 5))):
        order = draw(st.permutations(range(m)))[: draw(st.integers(1, m))]
        groups: list[list[int]] = []
        for item in order:
            if groups and draw(st.booleans()):
                groups[-1].append(item)
            else:
                groups.append([item])
        cast.append((draw(st.integers(1, 4)), groups))
    return m, cast


def as_toi(m: int, cast, path) -> Ballots:
    lines = [f"# ALTERNATIVE NAME {item + 1}: c{item}" for item in range(m)]
    for count, groups in cast:
        shown = ["{" + ",".join(str(item + 1) for item in group) + "}" for group in groups]
        lines.append(f"{count}: {','.join(shown)}")
    path.write_text("\n".join(lines))
    return Ballots.read(path)


@pytest.mark.slow
@given(election=elections(), k=st.integers(1, 5))
def test_counts_are_averages_over_completions(tmp_path_factory, election, k):
    m, cast = election
    ballots = as_toi(m, cast, tmp_path_factory.mktemp("toi") / "x.toi")
    borda, margins, votes = [0] * m, np.zeros((m, m), object), [Fraction(0)] * m
    k = min(k, m)
    for count, groups in cast:
        orders, listed = completions(groups, m), set(chain(*groups))
        for order in orders:
            for place, item in enumerate(order):
                borda[item] += Fraction(count * (m - 1 - 2 * place), len(orders))
                votes[item] += Fraction(count, len(orders)) if place < k and item in listed else 0
                for other in order[place + 1 :]:
                    margins[item, other] += Fraction(count, len(orders))
                    margins[other, item] -= Fraction(count, len(orders))
    assert ballots.count == sum(count for count, _ in cast)
    assert ballots.centred_borda().tolist() == borda
    assert ballots.margins().tolist() == margins.tolist()
    assert [Fraction(units, SHARES) for units in ballots.first_k(k).tolist()] == votes
    assert ballots.margins().sum(axis=1).tolist() == borda


def test_a_preflib_file_keeps_its_ties_and_puts_equal_ballots_together(tmp_path):
    path = tmp_path / "x.toi"
    path.write_text(TOI)
    ballots = Ballots.read(path)
    assert (ballots.items, ballots.count, ballots.items_from_data) == (("a", "b", "c", "d"), 7, False)
    assert sorted(zip(ballots.orders.tolist(), ballots.tied.tolist(), ballots.weights.tolist(), strict=True)) == [
        ([0, 1, 2, -1], [False, False, True, False], 3),
        ([0, 3, -1, -1], [False, True, False, False], 3),
        ([1, 0, 3, 2], [False] * 4, 1),
    ]
    assert ballots.first_preferences().tolist() == [int(4.5 * SHARES), SHARES, 0, int(1.5 * SHARES)]


WIDE = pd.DataFrame({"rank_1": ["b", "a", "b"], "rank_2": ["a", None, "a"], "count": [2, 3, 4]})
LONG = pd.DataFrame({"voter": [1, 1, 2, 3, 3], "item": ["b", "a", "a", "a", "b"], "rank": [1, 2, 1, 1, 1]})


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "pattern"])
def test_tables_with_weights_and_ties(tmp_path, kind):
    def through(frame: pd.DataFrame, name: str) -> Ballots:
        if kind == "frame":
            return Ballots.of(frame)
        if kind == "pattern":
            for part in range(2):
                frame[frame.index % 2 == part if name == "wide" else frame.voter % 2 == part].to_csv(
                    tmp_path / f"{name}-{part}.csv", index=False
                )
            return Ballots.of(tmp_path / f"{name}-*.csv")
        path = tmp_path / f"{name}.{kind}"
        getattr(frame, f"to_{kind}")(path, index=False)
        return Ballots.of(path)

    wide = through(WIDE, "wide")
    assert (wide.items, wide.count, wide.items_from_data) == (("a", "b"), 9, True)
    assert wide.margins().tolist() == [[0, -3], [3, 0]]
    long = through(LONG, "long")
    assert (long.count, long.margins().tolist()) == (3, [[0, 0], [0, 0]])
    assert long.first_preferences().tolist() == [SHARES * 3 // 2, SHARES * 3 // 2]


def test_a_tier_list_keeps_its_ties(tmp_path):
    path = tmp_path / "x.toi"
    path.write_text(TOI)
    tiers, ballots = Ballots.of(Rankings.read(path, ties="keep")), Ballots.of(path)
    assert ballots.tied.any()
    assert np.array_equal(tiers.tied, ballots.tied)
    assert np.array_equal(tiers.margins(), ballots.margins())


def test_rankings_and_lists_are_ballots_too(tmp_path):
    orders = [["b", "a"], ["b", "a"], ["c"]]
    rankings = Rankings.from_orders(orders, voters=["x", "y", "z"])
    rankings.write(tmp_path / "r.parquet")
    for ballots in (Ballots.of(rankings), Ballots.of(orders), Ballots.of(tmp_path / "r.parquet")):
        assert (ballots.items, ballots.count) == (("a", "b", "c"), 3)
        assert ballots.centred_borda().tolist() == [-1, 3, -2]
    assert Ballots.of(orders).items_from_data
    assert not Ballots.of(orders, items=["a", "b", "c", "d"]).items_from_data
    Rankings.from_orders(orders, items=["a", "b", "c"]).write(tmp_path / "given.parquet")
    assert not Ballots.of(tmp_path / "given.parquet").items_from_data  # the file carries a list that was given
    assert Ballots.of(orders, weights=[1, 0, 5]).count == 6
    with pytest.raises(InputError, match="3 ballots come from 2 voters"):  # ids are compared as texts
        Ballots.of(Rankings.from_orders(orders, voters=[1, "1", 2]))
    with pytest.raises(InputError, match="open already: items"):
        Ballots.of(rankings, items=["a"])


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ([["a"]], {}, "an election needs at least 2 candidates, got 1"),
        ([], {}, "there are no ballots; at least one is needed"),
        ([["a", "b"]], {"weights": [0]}, "there are no ballots; at least one is needed"),
        ([["a", "x"]], {"items": ["a", "b"]}, "row 1: 'x' is not one of the 2 items given"),
        ([["a", "b", "a"]], {}, "row 1: 'a' is listed twice; a ranking lists each item once"),
        ([["a", "b"]], {"weights": [1.5]}, "row 1: a weight must be a whole number from 0 to 1,000,000,000, got 1.5"),
        ([["a", "b"]], {"weights": [1, 2]}, "one number for each of the 1 ballots, got 2"),
        ([["a", "b"]] * 1001, {"weights": [10**9] * 1001}, "at most 1,000,000,000,000 ballots"),
        (WIDE.assign(count=["1", "x", "1"]), {}, "frame, row 2: a weight must be a whole number .*, got 'x'"),
        (WIDE.assign(voter=[1, 2, 1], count=1), {}, "3 ballots come from 2 voters, and an election counts one ballot"),
        (
            WIDE.assign(voter=[1, 2, 3], count=[1, 5, 1]),
            {},
            "frame, row 2: the voter has 5 ballots, and an election counts",
        ),
        (WIDE.assign(id=[1, 2, 3], count=[1, 5, 1]), {"voter_column": "id"}, "row 2: the voter has 5 ballots"),
        (LONG[:0], {}, "no ballots"),
        (WIDE, {"weight_column": "w"}, "weight_column is 'w', but the columns are"),
    ],
)
def test_bad_ballots_get_one_sentence(source, options, words):
    with pytest.raises(InputError, match=words):
        Ballots.of(source, **options)


@pytest.mark.parametrize("few", [1 << 16, -1])
@pytest.mark.parametrize(("voters", "items"), [(40, 3), (5, 70)])
def test_many_candidates_of_a_long_table(voters, items, few, monkeypatch):
    monkeypatch.setattr(queries, "FEW_ROWS", few)
    random = np.random.default_rng(items)
    ranks = np.array([np.unique(random.integers(0, 6, items), return_inverse=True)[1] + 1 for _ in range(voters)])
    who, what = (axis.ravel() for axis in np.indices(ranks.shape))
    mixed = random.permutation(ranks.size)
    cells = {"voter": who, "item": what, "rank": ranks.ravel()}
    found = Ballots.of(pa.table({name: values[mixed] for name, values in cells.items()}))
    margins = np.sign(ranks[:, None, :] - ranks[:, :, None]).sum(axis=0)
    assert found.items == tuple(map(str, range(items)))
    assert np.array_equal(found.margins(), margins)


def test_rows_that_are_numbered_may_stand_for_many_ballots():
    numbered = WIDE.assign(id=[1, 2, 3], count=[1, 5, 1])
    assert Ballots.of(numbered).count == 7
    assert Ballots.of(WIDE.assign(voter=[1, 2, 3], count=[1, 0, 1])).count == 2


def test_what_a_format_does_not_have_is_refused(tmp_path):
    with pytest.raises(Unsupported, match="the column 'weight' would give ballots weights"):
        Ballots.of(LONG.assign(weight=2))
    path = tmp_path / "x.toi"
    path.write_text(TOI)
    with pytest.raises(InputError, match="weight_column is for tables, not for a file of this kind"):
        Ballots.of(path, weight_column="n")
    with pytest.raises(InputError, match="'d' is not one of the 3 items"):
        Ballots.of(path, items=["a", "b", "c"])
    with pytest.raises(InputError, match=r"(?i)no such file"):
        Ballots.of(tmp_path / "none.toi")
    with pytest.raises(InputError, match=r"(?i)no such file"):
        Ballots.of(tmp_path / "none.csv")


def test_dublin_north(data_directory):
    ballots = Ballots.read(data_directory / "preflib_irish2002" / "dublin_north_2002.csv")
    assert (ballots.count, len(ballots.items)) == (43942, 12)
    first = dict(zip(ballots.items, (ballots.first_preferences() // SHARES).tolist(), strict=True))
    assert (first["Trevor Sargent G.P."], sum(first.values())) == (7294, 43942)
