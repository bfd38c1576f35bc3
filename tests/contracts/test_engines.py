"""Every engine finds the same integers: Arrow, DuckDB in the process, a DuckDB relation, Polars and a local Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.data import queries
from rankdp.data.ballots import Ballots
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS, PairCounts
from rankdp.errors import InputError

# PySpark warns that it is not yet sure of the newest pandas
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ITEMS = ("tea", "coffee", "water", "9")
SPARK = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
HERE = ("arrow", "duckdb", "relation", "polars")
ENGINES = [*HERE, pytest.param("spark", marks=[*SPARK, pytest.mark.long])]


def on_engines(cases, few):
    """Every case on every engine; on Spark, which takes seconds for each, all but a few are long."""
    return [
        pytest.param(name, *case, marks=marks)
        for number, case in enumerate(cases)
        for name, marks in (
            *((name, []) for name in HERE),
            ("spark", SPARK if number < few else [*SPARK, pytest.mark.long]),
        )
    ]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """Puts an Arrow table onto the engine."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        return Held("spark", session.createDataFrame)
    if request.param == "duckdb":
        monkeypatch.setattr(queries, "FEW_ROWS", -1)
    made = {"relation": duckdb.connect().from_arrow, "polars": lambda table: polars.from_arrow(table).lazy()}
    return Held(request.param, made.get(request.param, lambda table: table))


@dataclass
class Held:
    """An engine by name."""

    name: str
    put: Callable[[Any], Any]

    def __call__(self, table):
        return self.put(table)

    @property
    def numbered(self):
        """Whether a refusal can say the row."""
        return self.name in ("arrow", "duckdb")


def reference(rows, items, most=None):
    """Pair counts of (voter, winner, loser, tie, weight) rows by a plain loop, in steps where voters are weighed."""
    counts, loads = Counter(), Counter()
    for voter, *_, weight in rows:
        loads[voter] += weight
    for voter, winner, loser, tie, weight in rows:
        i, j = items.index(winner), items.index(loser)
        steps = 1 if most is None else min(STEPS, most * STEPS // max(loads[voter], 1))
        counts[i, j] += (1 if tie else 2) * weight * steps
        counts[j, i] += (1 if tie else 0) * weight * steps
    pairs = sorted({(min(pair), max(pair)) for pair, halves in counts.items() if halves})
    first, second = np.array(pairs, np.int32).reshape(-1, 2).T
    ahead, behind = ([counts[pair] for pair in part] for part in (pairs, [(j, i) for i, j in pairs]))
    counted = np.array(ahead, np.int64), np.array(behind, np.int64)
    return PairCounts(items, first, second, *counted, 1 if most is None else STEPS)


def check(votes, rows, items, most):
    """Counts, weighed counts and loads are those of plain loops."""
    assert votes.count() == reference(rows, items)
    assert votes.bound(most).count() == reference(rows, items, most)
    loads = Counter()
    for voter, *_, weight in rows:
        loads[voter] += weight
    cells = Counter(min(load.bit_length() - 1, 10) for load in loads.values() if load)
    assert votes.load_counts().tolist() == [cells[cell] for cell in range(11)]


def written(style, rows, weighted):
    """The rows as a table in one of the styles (without ties in `winner, loser`)."""
    table = {"voter": [voter for voter, *_ in rows]}
    # the winner stands on the left in every other row
    sides = [(row[1], row[2]) if at % 2 else (row[2], row[1]) for at, row in enumerate(rows)]
    if style == "winner, loser":
        table |= {"winner": [row[1] for row in rows], "loser": [row[2] for row in rows]}
    else:
        names = {"left": ("left", "right"), "name": ("left", "right"), "arena": ("model_a", "model_b")}
        one, two = names.get(style, ("item_1", "item_2"))
        table |= {one: [side[0] for side in sides], two: [side[1] for side in sides]}
        words = {"outcome": (1.0, 0.0, 0.5), "outcome text": ("1", "0.0", ".5")}.get(style, (one, two, "tie"))
        said = [
            words[2] if tie else winner if style == "name" else words[0] if left == winner else words[1]
            for (_, winner, _, tie, _), (left, _) in zip(rows, sides, strict=True)
        ]
        table["outcome" if style.startswith("outcome") else "winner"] = said
    if weighted:
        table["weight"] = [row[4] for row in rows]
    return pa.table(table)


STYLES = ["left", "outcome text", "winner, loser", "name", "arena", "outcome"]


def drawn(seed, rows=120, ties=True, weighted=True, voters=7):
    generator = np.random.default_rng(seed)
    out = []
    for _ in range(rows):
        winner, loser = generator.choice(len(ITEMS), 2, replace=False)
        weight = int(generator.choice([0, 1, 1, 2, 5])) if weighted else 1
        tie = bool(ties and generator.random() < 0.3)
        out.append((f"v{generator.integers(voters)}", ITEMS[winner], ITEMS[loser], tie, weight))
    return out


@pytest.mark.parametrize(("engine", "style"), on_engines(zip(STYLES), few=1), indirect=["engine"])
def test_counts_and_bounds_in_every_style(engine, style):
    weighted = style in ("left", "outcome", "outcome text")
    rows = drawn(STYLES.index(style), ties=style != "winner, loser", weighted=weighted)

    votes = Comparisons.of(engine(written(style, rows, weighted)), items=ITEMS)
    check(votes, rows, ITEMS, 4)
    for most, counts in votes.count_for([1, 2, 64]).items():
        assert counts == reference(rows, ITEMS, most)


def test_all_kinds_of_problems_are_dropped_and_counted(engine):
    table = pa.table(
        {
            "user_id": ["a", "a", None, " NA ", "b", "b", "c", "c", "c"],
            "item_1": ["tea ", "tea", "tea", "tea", "tea", " tea", None, "NA", "tea"],
            "item_2": ["water", "milk", "water", "water", "tea", "coffee", "tea", "milk", "9"],
            "outcome": [1.0, 0.0, 1.0, 0.0, 1.0, None, 0.5, None, 0.5],
        }
    )
    votes = Comparisons.of(engine(table), items=ITEMS, on_problem="drop")
    facts = votes.diagnostics()
    assert facts.dropped == {"missing item": 2, "unknown item": 1, "missing outcome": 1, "self-comparison": 1}
    assert (facts.rows, facts.used) == (9, 4)
    good = [("", "tea", "water", False, 2), ("", "water", "tea", False, 1), ("", "tea", "9", True, 1)]
    assert votes.count() == reference(good, ITEMS)
    bounded = votes.bound(5)
    assert bounded.diagnostics().dropped["missing voter"] == 2
    assert bounded.count() == reference([("a", "tea", "water", False, 1), ("c", "tea", "9", True, 1)], ITEMS, 5)


LEFT = {"left": ["tea", "tea"], "right": ["water", "coffee"], "winner": ["left", "tie"]}


REFUSED = [
    ({"winner": ["left", "centre"]}, {}, "'winner' must be left, right, tie, draw or the name of one of the two"),
    ({"weight": [1, -1]}, {"on_problem": "drop"}, "'weight' must be a whole number from 0 to 1,000,000,000, got '-1'"),
    ({"right": ["water", "milk"]}, {}, "'milk' is not one of the 4 items given"),
    ({"voter": ["x", ""]}, {"bound": 1}, "'voter' is blank"),
    ({"winner": ["left", "centre"]}, {"on_problem": "drop"}, "got 'centre'"),
    ({"winner": ["left", "water"]}, {"on_problem": "drop"}, "got 'water'"),
    ({"weight": [1.0, 0.5]}, {"on_problem": "drop"}, "got '0.5'"),
    ({"weight": [1.0, None]}, {"on_problem": "drop"}, "got None"),
    ({"weight": [1.0, float("inf")]}, {"on_problem": "drop"}, "got '"),
    ({"weight": ["1", "1e3"]}, {}, "got '1e3'"),
    ({"right": ["water", "tea"]}, {}, "'tea' is compared with itself"),
    ({"right": ["water", None]}, {}, "'right' is blank"),
    ({"winner": ["left", ""]}, {}, "'winner' is blank"),
]


@pytest.mark.parametrize(("engine", "change", "options", "sentence"), on_engines(REFUSED, few=1), indirect=["engine"])
def test_refused(engine, change, options, sentence):
    options = dict(options)
    most = options.pop("bound", None)
    votes = Comparisons.of(engine(pa.table(LEFT | change)), items=ITEMS, **options)
    votes = votes if most is None else votes.bound(most)
    with pytest.raises(InputError) as caught:
        votes.count()
    assert sentence in str(caught.value)
    if engine.numbered:
        assert str(caught.value).startswith("frame, row 2: ")


def test_both_bad(engine):
    arena = pa.table(
        {
            "model_a": ["tea", "tea", "tea", "tea", "tea"],
            "model_b": ["water"] * 5,
            "winner": ["model_a", "both_bad", "tie (bothbad)", "BothBad", "tie"],
        }
    )
    votes = Comparisons.of(engine(arena), items=ITEMS)
    assert "both_bad counts as a tie" in votes.recognised
    assert votes.count().half_wins.tolist() == [6, 0, 4, 0]
    votes = Comparisons.of(engine(arena), items=ITEMS, both_bad="drop")
    assert "both_bad is dropped" in votes.recognised
    assert votes.count().half_wins.tolist() == [3, 0, 1, 0]
    assert votes.diagnostics().dropped == {"both bad": 3}


def test_numbers_as_items_and_voters(engine):
    table = pa.table(
        {"judge": [7.0, 8.0, 7.0], "winner": [9, 10, 9], "loser": [10.0, 9.0, 10.0], "count": ["2", "1.0", " 3 "]}
    )
    votes = Comparisons.of(engine(table), items=["9", 10])
    assert votes.count().half_wins.tolist() == [10, 2]
    assert votes.bound(2).count().half_wins.tolist() == [2 * 5 * (2 * STEPS // 5), 2 * STEPS]


def test_numbers_that_are_none(engine):
    nan, far = float("nan"), float("inf")
    table = pa.table(
        {"judge": [7.0, nan, 8.0, 8.5, 7.0], "winner": [9.0, 9, far, 9, nan], "loser": [10, 10, 10, 10, 10]}
    )
    votes = Comparisons.of(engine(table), items=[9, 10], on_problem="drop")
    assert votes.count().half_wins.tolist() == [6, 0]
    assert votes.diagnostics().dropped == {"missing item": 1, "unknown item": 1}
    assert votes.bound(1).count().half_wins.tolist() == [4 * STEPS, 0]


def test_spaces_around_a_voters_id_make_no_other_voter(engine):
    table = pa.table({"voter": ["ann", " ann", "ann\t", "bob"], "winner": ["tea"] * 4, "loser": ["water"] * 4})
    votes = Comparisons.of(engine(table), items=ITEMS)
    assert votes.bound(1).count().half_wins.tolist() == [2 * 3 * (STEPS // 3) + 2 * STEPS, 0, 0, 0]


@pytest.mark.parametrize("few", [-1, 1 << 16])
def test_rows_are_compared_with_the_rows_announced(few, tmp_path, monkeypatch):
    """A footer may be wrong by one bit, and a reader may stop early: nothing is counted."""
    monkeypatch.setattr(queries, "FEW_ROWS", few)
    path = tmp_path / "votes.parquet"
    pq.write_table(written("left", drawn(1), weighted=False), path)
    votes = Comparisons.read(path, items=ITEMS)
    votes.table.rows = 500
    for asked in (votes, votes.bound(1)):
        with pytest.raises(InputError, match=r"the table is damaged \(it announces 500 rows and delivers 120\)"):
            asked.count()


def test_items_from_data(engine):
    table = pa.table({"winner": ["b 10", "b 9", None], "loser": [" b 9", "a", "NA"]})
    votes = Comparisons.of(engine(table), items_from_data=True, on_problem="drop")
    assert votes.items == ("a", "b 9", "b 10")
    assert votes.items_from_data


@pytest.mark.parametrize("few", [-1, 1 << 16])
def test_files(few, tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "FEW_ROWS", few)
    rows = drawn(5, rows=300)
    table = written("left", rows, weighted=True)
    for part in range(3):
        pq.write_table(table.slice(100 * part, 100), tmp_path / f"votes-{part}.parquet", row_group_size=30)
        pa.csv.write_csv(table.slice(100 * part, 100), tmp_path / f"votes-{part}.csv")
    for pattern in ("votes-*.parquet", "votes-*.csv"):
        check(Comparisons.read(tmp_path / pattern, items=ITEMS), rows, ITEMS, 3)
    check(Comparisons.read(tmp_path / "votes-0.csv", items=ITEMS), rows[:100], ITEMS, 3)
    with pytest.raises(InputError, match=r"votes-1\.csv, line 2: .* is not one of the 1 items given"):
        Comparisons.read(tmp_path / "votes-[1].csv", items=ITEMS[:1]).count()


def test_tables_of_duckdb(tmp_path):
    rows = drawn(6)
    table = written("arena", rows, weighted=True)
    path = tmp_path / "votes.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("arrow_votes", table)
        connection.sql("create table votes as select *, uuid() as one from arrow_votes")
        check(Comparisons.of(connection, table="votes", items=ITEMS), rows, ITEMS, 2)
        odd = Comparisons.of(connection, table="votes", items=["it's", *ITEMS], voter_column="one")
        assert odd.load_counts().sum() == sum(row[4] > 0 for row in rows)
    check(Comparisons.read(path, table="votes", items=ITEMS), rows, ITEMS, 2)
    with pytest.raises(InputError, match="there is no table called 'other'"):
        Comparisons.read(path, table="other", items=ITEMS)
    with pytest.raises(InputError, match="table must name the table that holds the rows, one of votes"):
        Comparisons.read(path, items=ITEMS)


votes_of_people = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "é|x", "7", "a very long name of a voter, longer than one block of the hash"]),
        st.sampled_from([(one, two) for one in ITEMS for two in ITEMS if one != two]),
        st.booleans(),
        st.integers(0, 3),
    ).map(lambda row: (row[0], *row[1], row[2], row[3])),
    max_size=40,
)


@pytest.mark.parametrize(("name", "examples"), [("arrow", 20), ("relation", 5)])
def test_counting_equals_a_plain_loop(name, examples):
    put = duckdb.connect().from_arrow if name == "relation" else lambda table: table

    @settings(max_examples=examples)
    @given(rows=votes_of_people, most=st.integers(1, 6), style=st.sampled_from(["left", "name", "arena", "outcome"]))
    def on_any(rows, most, style):
        check(Comparisons.of(put(written(style, rows, weighted=True)), items=ITEMS), rows, ITEMS, most)

    on_any()


REAL = ["cems", "immigration", "llmfao_votes"]


@pytest.mark.parametrize(("engine", "name"), on_engines(zip(REAL), few=0), indirect=["engine"])
def test_real_tables(data_directory, engine, name):
    path = data_directory / name / "comparisons.csv"
    if not path.exists():
        pytest.skip(f"{name} is not here")
    options = {"items": data_directory / name / "items.csv", "on_problem": "drop"}
    texts = dict.fromkeys(pa.csv.open_csv(path).schema.names, pa.string())
    there = Comparisons.of(
        engine(pa.csv.read_csv(path, convert_options=pa.csv.ConvertOptions(column_types=texts))), **options
    )
    here = Comparisons.read(path, **options)
    assert there.diagnostics() == here.diagnostics()
    assert there.count() == here.count()
    assert there.bound(7).count() == here.bound(7).count()


WIDE = pa.table({"rank_1": ["tea", "9", " tea", "tea"], "rank_2": ["9", "tea", "9", None], "count": [3, 0, 2, 1]})
LONG = pa.table(
    {
        "voter": ["v", "v", "w", "w", "x", "x", "y"],
        "candidate": ["tea", "milk", "tea", "milk", "milk", "tea", "tea"],
        "rank": [1, 2, 1, 2, 1, 1, 1],
    }
)


@pytest.mark.parametrize(("engine", "table"), on_engines([(WIDE,), (LONG,)], few=1), indirect=["engine"])
def test_ballots_are_the_same_on_every_engine(engine, table):
    here, there = Ballots.of(table), Ballots.of(engine(table))
    assert there.items == here.items
    for one, other in zip(
        (here.orders, here.tied, here.weights), (there.orders, there.tied, there.weights), strict=True
    ):
        assert np.array_equal(one, other)
    assert here.count == (6 if table is WIDE else 4)
    assert np.array_equal(here.margins(), there.margins())


def test_ballots_in_duckdb(tmp_path):
    path = tmp_path / "votes.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("wide", WIDE)
        connection.execute("create table ballots as select * from wide")
    here = Ballots.of(WIDE)
    readings = [Ballots.read(path, table="ballots")]
    with duckdb.connect(str(path)) as connection:
        readings.append(Ballots.of(connection, table="ballots"))
        for there in readings:
            assert np.array_equal(there.centred_borda(), here.centred_borda())
            assert np.array_equal(there.orders, here.orders)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rank_1": ["a"], "rank_2": ["b"], "count": [1.5]}, "a weight must be a whole number"),
        ({"voter": ["v", "v"], "rank_1": ["a", "b"]}, "2 ballots come from 1 voter,"),
        ({"voter": ["v", "w"], "rank_1": ["a", "b"], "count": [1, 3]}, "the voter has 3 ballots"),
        ({"voter": ["v", "v"], "item": ["a", "a"], "rank": [1, 2]}, "voter 'v' lists 'a' more than once"),
        ({"voter": ["v", None], "item": ["a", "b"], "rank": [1, 2]}, "the voter id is blank"),
        ({"rank_1": pa.array([], pa.string())}, "there are no ballots"),
    ],
)
def test_bad_ballots_on_an_engine_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        Ballots.of(duckdb.connect().from_arrow(pa.table(table)))
