"""Every engine counts alike and bounds by the same rules: in process, DuckDB and a local Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.data.ballots import Ballots
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError

# PySpark warns that it is not yet sure of the newest pandas
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ITEMS = ("tea", "coffee", "water", "9")
SPARK = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
ENGINES = ["process", "duckdb", pytest.param("spark", marks=SPARK)]


def on_engines(cases, few):
    """Every case on every engine; on Spark, which takes seconds for each, all but a few are long."""
    for number, case in enumerate(cases):
        for name in ("process", "duckdb", "spark"):
            marks = [] if name != "spark" else SPARK if number < few else [*SPARK, pytest.mark.long]
            yield pytest.param(name, *case, marks=marks)


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "spark":
        return request.getfixturevalue("spark")
    if request.param == "duckdb":
        pytest.importorskip("ibis", reason="Ibis is not installed")
    return request.param


def reference(rows, items):
    """Pair counts of (voter, winner, loser, tie, weight) rows by a plain loop."""
    counts = Counter()
    for _, winner, loser, tie, weight in rows:
        i, j = items.index(winner), items.index(loser)
        counts[i, j] += (1 if tie else 2) * weight
        counts[j, i] += (1 if tie else 0) * weight
    pairs = sorted({(min(pair), max(pair)) for pair, halves in counts.items() if halves})
    first, second = np.array(pairs, np.int32).reshape(-1, 2).T
    ahead, behind = ([counts[pair] for pair in part] for part in (pairs, [(j, i) for i, j in pairs]))
    return PairCounts(items, first, second, np.array(ahead, np.int64), np.array(behind, np.int64))


def check_bounded(bounded, rows, items, most, alone=None):
    """At most `most` comparisons of each voter, all of them the voter's own; the same as if voters were alone."""
    kept = bounded.count().dense()
    own = Counter()
    for voter, *_, weight in rows:
        own[voter] += weight
    assert kept.sum() == sum(min(most, total) for total in own.values())
    assert (kept <= reference(rows, items).dense()).all()
    if alone is not None:
        parts = (alone([row for row in rows if row[0] == voter]).bound(most).count().dense() for voter in own)
        assert np.array_equal(kept, sum(parts, np.zeros_like(kept)))
        assert np.array_equal(kept, alone(rows[::-1]).bound(most).count().dense())


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


@pytest.mark.parametrize(("engine", "style"), on_engines(zip(STYLES), few=2), indirect=["engine"])
def test_counts_and_bounds_in_every_style(engine, style):
    weighted = style in ("left", "outcome", "outcome text")
    rows = drawn(STYLES.index(style), ties=style != "winner, loser", weighted=weighted)

    def votes(rows):
        return Comparisons.from_frame(written(style, rows, weighted), items=ITEMS, engine=engine)

    want = reference(rows, ITEMS)
    assert votes(rows).count() == want
    assert votes(rows).count().half_wins.tolist() == want.half_wins.tolist()
    # engines take long for each voter, and alike in every style
    alone = engine == "process" or (engine == "duckdb" and style == STYLES[0])
    check_bounded(votes(rows).bound(4), rows, ITEMS, 4, votes if alone else None)


def test_all_kinds_of_problems_are_dropped_and_counted(engine):
    table = pa.table(
        {
            "user_id": ["a", "a", None, " NA ", "b", "b", "c", "c", "c"],
            "item_1": ["tea ", "tea", "tea", "tea", "tea", " tea", None, "NA", "tea"],
            "item_2": ["water", "milk", "water", "water", "tea", "coffee", "tea", "milk", "9"],
            "outcome": [1.0, 0.0, 1.0, 0.0, 1.0, None, 0.5, None, 0.5],
        }
    )
    votes = Comparisons.from_frame(table, items=ITEMS, on_problem="drop", engine=engine)
    facts = votes.diagnostics()
    assert facts.dropped == {"missing item": 2, "unknown item": 1, "missing outcome": 1, "self-comparison": 1}
    assert (facts.rows, facts.used) == (9, 4)
    good = [("", "tea", "water", False, 2), ("", "water", "tea", False, 1), ("", "tea", "9", True, 1)]
    assert votes.count() == reference(good, ITEMS)
    bounded = votes.bound(5)
    assert bounded.diagnostics().dropped["missing voter"] == 2
    assert bounded.count() == reference([("a", "tea", "water", False, 1), ("c", "tea", "9", True, 1)], ITEMS)


LEFT = {"left": ["tea", "tea"], "right": ["water", "coffee"], "winner": ["left", "tie"]}


REFUSED = [
    ({"winner": ["left", "centre"]}, {}, "'winner' must be left, right, tie, draw or the name of one of the two"),
    ({"weight": [1, -1]}, {"on_problem": "drop"}, "'weight' must be a whole number from 0 to 1,000,000,000, got -1"),
    ({"right": ["water", "milk"]}, {}, "'milk' is not one of the 4 items given"),
    ({"voter": ["x", ""]}, {"bound": 1}, "'voter' is blank"),
    ({"winner": ["left", "centre"]}, {"on_problem": "drop"}, "got 'centre'"),
    ({"winner": ["left", "water"]}, {"on_problem": "drop"}, "got 'water'"),
    ({"weight": [1.0, 0.5]}, {"on_problem": "drop"}, "got 0.5"),
    ({"weight": [1.0, None]}, {"on_problem": "drop"}, "got None"),
    ({"weight": [1.0, float("inf")]}, {"on_problem": "drop"}, "got inf"),
    ({"weight": ["1", "1e3"]}, {}, "got '1e3'"),
    ({"right": ["water", "tea"]}, {}, "'tea' is compared with itself"),
    ({"right": ["water", None]}, {}, "'right' is blank"),
    ({"winner": ["left", ""]}, {}, "'winner' is blank"),
]


@pytest.mark.parametrize(("engine", "change", "options", "sentence"), on_engines(REFUSED, few=4), indirect=["engine"])
def test_refused(engine, change, options, sentence):
    options = dict(options)
    most = options.pop("bound", None)
    votes = Comparisons.from_frame(pa.table(LEFT | change), items=ITEMS, engine=engine, **options)
    votes = votes if most is None else votes.bound(most)
    with pytest.raises(InputError) as caught:
        votes.count()
    assert sentence in str(caught.value)
    if engine == "process":
        assert str(caught.value).startswith("frame, row 2: ")


def test_both_bad(engine):
    arena = pa.table(
        {
            "model_a": ["tea", "tea", "tea", "tea", "tea"],
            "model_b": ["water"] * 5,
            "winner": ["model_a", "both_bad", "tie (bothbad)", "BothBad", "tie"],
        }
    )
    votes = Comparisons.from_frame(arena, items=ITEMS, engine=engine)
    assert "both_bad counts as a tie" in votes.recognised
    assert votes.count().half_wins.tolist() == [6, 0, 4, 0]
    votes = Comparisons.from_frame(arena, items=ITEMS, engine=engine, both_bad="drop")
    assert "both_bad is dropped" in votes.recognised
    assert votes.count().half_wins.tolist() == [3, 0, 1, 0]
    assert votes.diagnostics().dropped == {"both bad": 3}


def test_numbers_as_items_and_voters(engine):
    table = pa.table(
        {"judge": [7.0, 8.0, 7.0], "winner": [9, 10, 9], "loser": [10.0, 9.0, 10.0], "count": ["2", "1.0", " 3 "]}
    )
    votes = Comparisons.from_frame(table, items=["9", 10], engine=engine)
    assert votes.count().half_wins.tolist() == [10, 2]
    assert votes.bound(2).count().half_wins.tolist() == [4, 2]


def test_numbers_that_are_none(engine):
    nan, far = float("nan"), float("inf")
    table = pa.table(
        {"judge": [7.0, nan, 8.0, 8.5, 7.0], "winner": [9.0, 9, far, 9, nan], "loser": [10, 10, 10, 10, 10]}
    )
    votes = Comparisons.from_frame(table, items=[9, 10], engine=engine, on_problem="drop")
    assert votes.count().half_wins.tolist() == [6, 0]
    assert votes.diagnostics().dropped == {"missing item": 1, "unknown item": 1}
    assert votes.bound(1).count().half_wins.tolist() == [4, 0]


def test_spaces_around_a_voters_id_make_no_other_voter(engine):
    table = pa.table({"voter": ["ann", " ann", "ann\t", "bob"], "winner": ["tea"] * 4, "loser": ["water"] * 4})
    votes = Comparisons.from_frame(table, items=ITEMS, engine=engine)
    assert votes.bound(1).count().half_wins.tolist() == [4, 0, 0, 0]


def test_rows_are_compared_with_the_rows_announced(engine, tmp_path, monkeypatch):
    """A footer may be wrong by one bit, and a reader may stop early: nothing is counted."""
    path = tmp_path / "votes.parquet"
    pq.write_table(written("left", drawn(1), weighted=False), path)
    votes = Comparisons.read(path, items=ITEMS, engine=engine)
    table = getattr(votes.engine, "_table", votes.engine)
    monkeypatch.setattr(table, "rows" if engine == "process" else "_announced", 500)
    for asked in (votes, votes.bound(1)):
        with pytest.raises(InputError, match=r"the table is damaged \(it announces 500 rows and delivers 120\)"):
            asked.count()


def test_items_from_data(engine):
    table = pa.table({"winner": ["b 10", "b 9", None], "loser": [" b 9", "a", "NA"]})
    votes = Comparisons.from_frame(table, items_from_data=True, on_problem="drop", engine=engine)
    assert votes.items == ("a", "b 9", "b 10")
    assert "makes it public" in votes.recognised


def test_files(engine, tmp_path):
    rows = drawn(5, rows=300)
    table = written("left", rows, weighted=True)
    for part in range(3):
        pq.write_table(table.slice(100 * part, 100), tmp_path / f"votes-{part}.parquet")
        pa.csv.write_csv(table.slice(100 * part, 100), tmp_path / f"votes-{part}.csv")
    for pattern in ("votes-*.parquet", "votes-*.csv"):
        votes = Comparisons.read(tmp_path / pattern, items=ITEMS, engine=engine)
        assert votes.count() == reference(rows, ITEMS)
        check_bounded(votes.bound(3), rows, ITEMS, 3)
    rows = rows[:100]
    assert Comparisons.read(tmp_path / "votes-0.csv", items=ITEMS, engine=engine).count() == reference(rows, ITEMS)


def test_tables_of_an_engine(engine, tmp_path):
    rows = drawn(6)
    table = written("arena", rows, weighted=True)
    if engine == "process":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as connection:
            votes = Comparisons.from_frame(connection.from_arrow(table), items=ITEMS)
            check_bounded(votes.bound(2), rows, ITEMS, 2)
    elif engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        path = tmp_path / "votes.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.register("arrow_votes", table)
            connection.sql("create table votes as select * from arrow_votes")
            votes = Comparisons.from_table(connection, "votes", items=ITEMS)
            check_bounded(votes.bound(2), rows, ITEMS, 2)
        check_bounded(Comparisons.read(path, table="votes", items=ITEMS).bound(2), rows, ITEMS, 2)
        with pytest.raises(InputError, match="there is no table called 'other'"):
            Comparisons.read(path, table="other", items=ITEMS)
    else:
        made = engine.create_view("votes", engine.table(engine.create_table("votes_table", table).get_name()))
        check_bounded(Comparisons.from_table(made, items=ITEMS).bound(2), rows, ITEMS, 2)
        assert Comparisons.of(made.filter(made.model_a != "x"), items=ITEMS).count() == reference(rows, ITEMS)


votes_of_people = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "é|x", "7", "a very long name of a voter, longer than one block of the hash"]),
        st.sampled_from([(one, two) for one in ITEMS for two in ITEMS if one != two]),
        st.booleans(),
        st.integers(0, 3),
    ).map(lambda row: (row[0], *row[1], row[2], row[3])),
    max_size=40,
)


def counting_equals_a_plain_loop(examples, name):
    @settings(deadline=None, max_examples=examples)
    @given(rows=votes_of_people, most=st.integers(1, 6), style=st.sampled_from(["left", "name", "arena", "outcome"]))
    def check(rows, most, style):
        def votes(rows):
            return Comparisons.from_frame(written(style, rows, weighted=True), items=ITEMS, engine=name)

        assert votes(rows).count() == reference(rows, ITEMS)
        check_bounded(votes(rows).bound(most), rows, ITEMS, most, votes if name == "process" else None)

    check()


def test_counting_equals_a_plain_loop():
    counting_equals_a_plain_loop(40, "process")


@pytest.mark.slow
def test_counting_by_duckdb_equals_a_plain_loop():
    pytest.importorskip("ibis", reason="Ibis is not installed")
    counting_equals_a_plain_loop(12, "duckdb")


REAL = ["cems", "immigration", "llmfao_votes"]


@pytest.mark.parametrize(("engine", "name"), on_engines(zip(REAL), few=1), indirect=["engine"])
def test_real_tables(data_directory, engine, name):
    path = data_directory / name / "comparisons.csv"
    if not path.exists():
        pytest.skip(f"{name} is not here")
    options = {"items": data_directory / name / "items.csv", "on_problem": "drop"}
    here, there = Comparisons.read(path, **options), Comparisons.read(path, **options, engine=engine)
    assert there.diagnostics() == here.diagnostics()
    assert there.count() == here.count()
    assert there.bound(7).count().halves.sum() == here.bound(7).count().halves.sum()


WIDE = pa.table({"rank_1": ["tea", "9", " tea", "tea"], "rank_2": ["9", "tea", "9", None], "count": [3, 0, 2, 1]})
LONG = pa.table(
    {
        "voter": ["v", "v", "w", "w", "x", "x", "y"],
        "candidate": ["tea", "milk", "tea", "milk", "milk", "tea", "tea"],
        "rank": [1, 2, 1, 2, 1, 1, 1],
    }
)


@pytest.mark.parametrize(("engine", "table"), list(on_engines([(WIDE,), (LONG,)], few=2)), indirect=["engine"])
def test_ballots_are_the_same_on_every_engine(engine, table):
    here, there = Ballots.from_frame(table), Ballots.from_frame(table, engine=engine)
    assert there.items == here.items
    for one, other in zip(
        (here.orders, here.tied, here.weights), (there.orders, there.tied, there.weights), strict=True
    ):
        assert np.array_equal(one, other)
    assert here.count == (6 if table is WIDE else 4)
    assert np.array_equal(here.margins(), there.margins())


def test_ballots_in_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis", reason="Ibis is not installed")
    path = tmp_path / "votes.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("wide", WIDE)
        connection.execute("create table ballots as select * from wide")
    pq.write_table(WIDE, tmp_path / "votes.parquet")
    pa.csv.write_csv(WIDE, tmp_path / "votes.csv")
    here = Ballots.from_frame(WIDE)
    readings = [
        Ballots.read(path, table="ballots"),
        Ballots.read(tmp_path / "votes.parquet", engine="duckdb"),
        Ballots.read(tmp_path / "votes.csv", engine="duckdb"),
    ]
    with duckdb.connect(str(path)) as connection:
        readings.append(Ballots.of(connection, table="ballots"))
        for there in readings:
            assert np.array_equal(there.centred_borda(), here.centred_borda())
            assert np.array_equal(there.orders, here.orders)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rank_1": ["a"], "rank_2": ["a"]}, "'a'"),
        ({"rank_1": ["a"], "rank_2": ["b"], "count": [1.5]}, "a weight must be a whole number"),
        ({"voter": ["v", "v"], "rank_1": ["a", "b"]}, "2 ballots come from 1 voters"),
        ({"voter": ["v", "w"], "rank_1": ["a", "b"], "count": [1, 3]}, "the voter has 3 ballots"),
        ({"voter": ["v", "v"], "item": ["a", "a"], "rank": [1, 2]}, "voter 'v' lists 'a' more than once"),
        ({"voter": ["v", None], "item": ["a", "b"], "rank": [1, 2]}, "no voter or no item"),
        ({"rank_1": pa.array([], pa.string())}, "there are no ballots"),
    ],
)
def test_bad_ballots_on_an_engine_are_refused(table, words):
    pytest.importorskip("ibis", reason="Ibis is not installed")
    with pytest.raises(InputError, match=words):
        Ballots.from_frame(pa.table(table), engine="duckdb")
