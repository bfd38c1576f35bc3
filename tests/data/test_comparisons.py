"""Votes are recognised, refused, bounded evenly and stably, and the public tables have their published numbers."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.data import queries, tables
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.errors import InputError

VOTES = {"voter": ["x", "y", "x"], "left": ["a", "b", "c"], "right": ["b", "a", "a"], "winner": ["left", "tie", "a"]}
ITEMS = ["a", "b", "c"]
HALF_WINS = [5, 1, 0]


FRAMES = {
    "pandas": lambda: pd.DataFrame(VOTES),
    "pandas category": lambda: pd.DataFrame(VOTES).astype("category"),
    "pandas object": lambda: pd.DataFrame(VOTES).astype(object),
    "polars": lambda: pl.DataFrame(VOTES),
    "polars categorical": lambda: pl.DataFrame(VOTES).with_columns(pl.all().cast(pl.Categorical)),
    "pyarrow": lambda: pa.table(VOTES),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(VOTES),
    "pyarrow chunks": lambda: pa.concat_tables([pa.table(VOTES).slice(0, 1), pa.table(VOTES).slice(1)]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name):
    votes = Comparisons.of(FRAMES[name](), items=ITEMS)
    assert votes.count().half_wins.tolist() == HALF_WINS
    assert votes.bound(1).count().halves.sum() == 4 * STEPS


def test_what_was_recognised_is_said():
    votes = Comparisons.of(pa.table(VOTES | {"age": [1, 2, 3], "count": [1, 1, 1]}), items=ITEMS)
    assert votes.recognised == (
        "frame: 'winner' says left, right or tie, or names the winner; 'voter' is the voter; "
        "'count' says how many equal comparisons a row stands for; ignored: age."
    )
    assert repr(votes.bound(2)) == "Comparisons(frame: 3 items, at most 2 per voter)"
    columns = Comparisons.of(
        pa.table({"Item 1": ["a"], "ITEM_2": ["b"], "Outcome": [1], "id": [4]}), items=ITEMS
    ).columns
    assert (columns.left, columns.right, columns.outcome, columns.voter) == ("Item 1", "ITEM_2", "Outcome", None)
    named = Comparisons.of(pa.table(VOTES | {"who": ["x", "y", "z"]}), items=ITEMS, voter_column="who")
    assert named.columns.voter == "who"


@pytest.mark.parametrize(
    ("table", "options", "sentence"),
    [
        ({"x": [1]}, {}, "frame: comparisons need the columns left, right, winner; model_a, model_b, winner; item_1"),
        (VOTES, {"voter_column": "who"}, "frame: voter_column is 'who', but the columns are voter, left"),
        (VOTES, {"items": None}, "items must list the public items, or items_from_data=True must say"),
        (VOTES, {"items_from_data": True}, "may be made public; got both"),
        (VOTES, {"items": ["a", "tie"]}, "an item is called 'tie', which as an outcome would be ambiguous"),
        (VOTES, {"items": ["a", "a"]}, "items must be different, got 'a' twice"),
        (VOTES, {"on_problem": "ignore"}, "on_problem must be one of refuse, drop, got 'ignore'"),
        (VOTES, {"both_bad": "keep"}, "both_bad must be one of tie, drop, got 'keep'"),
        (
            VOTES,
            {"table": "votes"},
            "table names a table of a connection or a .duckdb file; got 'votes'",
        ),
        (VOTES | {"left": [[1], [2], [3]]}, {}, "frame: the column 'left' must hold texts or numbers"),
    ],
)
def test_refused(table, options, sentence):
    with pytest.raises(InputError) as caught:
        Comparisons.of(pa.table(table), **({"items": ITEMS} | options))
    assert sentence in str(caught.value)


def test_more_refusals(tmp_path):
    votes = Comparisons.of(pa.table(VOTES), items=ITEMS)
    for c in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="must be an integer of at least 1, got"):
            votes.bound(c)
    with pytest.raises(InputError, match="no column holds the voter"):
        Comparisons.of(pa.table(VOTES).drop("voter"), items=ITEMS).bound(2)
    with pytest.raises(InputError, match="there is no such file"):
        Comparisons.read(tmp_path / "none.csv", items=ITEMS)
    with pytest.raises(InputError, match="frame must be an Arrow-compatible table"):
        Comparisons.of([1], items=ITEMS)
    with pytest.raises(InputError, match="these votes are open already"):
        Comparisons.of(votes, items=ITEMS)
    assert votes.bound(3).bound(5).per_voter == 3
    heavy = Comparisons.of(pa.table(VOTES | {"weight": [1, 1, 2_000_000]}), items=ITEMS)
    assert heavy.count().half_wins.tolist() == [3 + 4_000_000, 1, 0]
    assert heavy.bound(1).count().half_wins.tolist() == [STEPS + 2_000_001 * (STEPS // 2_000_001), STEPS, 0]


def test_lines_and_rows_of_mistakes(tmp_path):
    (tmp_path / "votes.csv").write_text('voter,winner,loser\n1,a,b\n\n2,"b",b\n')
    with pytest.raises(InputError, match=r"votes.csv, line 4: 'b' is compared with itself"):
        Comparisons.read(tmp_path / "votes.csv", items=ITEMS).count()
    # in DuckDB too the first bad row is the one told
    table = pa.table({"winner": ["a"] * 10, "loser": [*"bbbbbb", "a", "b", "b", "z"]})
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "FEW_ROWS", 1)
        with pytest.raises(InputError, match=r"votes\.parquet, row 7: 'a' is compared with itself"):
            Comparisons.read(tmp_path / "votes.parquet", items=ITEMS).count()


def test_item_files(tmp_path):
    (tmp_path / "items.txt").write_text("a\nb\n\nc\n", "utf-8")
    (tmp_path / "items.csv").write_text("item,more\na,1\nb,2\nc,3\n", "utf-8")
    for name in ("items.txt", "items.csv"):
        assert Comparisons.of(pa.table(VOTES), items=tmp_path / name).items == ("a", "b", "c")
    with pytest.raises(InputError, match="there is no such file"):
        Comparisons.of(pa.table(VOTES), items=tmp_path / "none.txt")


def random_votes(seed, rows, items, voters):
    generator = np.random.default_rng(seed)
    left = generator.integers(0, items, rows)
    right = (left + generator.integers(1, items, rows)) % items
    outcome = generator.choice([1.0, 0.0, 0.5], rows)
    voter = generator.integers(0, voters, rows)
    return pa.table({"voter": voter, "item_1": left, "item_2": right, "outcome": outcome})


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("most", [None, 3])
def test_batches_and_engines_change_nothing(monkeypatch, tmp_path, weighted, most):
    table = random_votes(1, 5000, 50, 40)
    if weighted:
        table = table.append_column("weight", pa.array(np.arange(5000) % 4))
    path = tmp_path / "votes.parquet"
    pq.write_table(table, path, row_group_size=700)

    def counts():
        votes = Comparisons.read(path, items=range(50))
        return (votes if most is None else votes.bound(most)).count()

    want = counts()
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 128)
    assert counts() == want
    monkeypatch.setattr(queries, "FEW_ROWS", 1000)
    assert counts() == want


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64()])
def test_numbers_as_items_count_like_their_texts(kind):
    lowest = -100 if kind == pa.int8() else 0
    rows = np.random.default_rng(3).integers(lowest, lowest + 200, (8000, 2)) // 9 * 9
    items = list(range(lowest, lowest + 190))
    pairs = [pa.array(column, mask=column % 7 == 1).cast(kind, safe=False) for column in rows.T]

    def counts(columns):
        frame = pa.table(dict(zip(["winner", "loser"], columns, strict=True)))
        votes = Comparisons.of(frame, items=items, on_problem="drop")
        return votes.count(), votes.diagnostics()

    assert counts(pairs) == counts([column.cast(pa.string()) for column in pairs])
    missing = pa.array([None] * 8000, kind)
    assert counts([missing, pairs[1]])[1].dropped == {"missing item": 8000}


def test_many_voters_of_every_kind():
    table = random_votes(2, 30_000, 5, 12_000)
    numbers = Comparisons.of(table, items=range(5)).bound(2).count()
    voter = table["voter"]
    texts = voter.cast(pa.string())
    for other in (texts, voter.cast(pa.float64()), voter.cast(pa.uint64()), texts.dictionary_encode()):
        frame = table.set_column(0, "voter", other)
        assert Comparisons.of(frame, items=range(5)).bound(2).count() == numbers


def counted(rows, most):
    table = pa.table(
        {
            "voter": pa.array([row[0] for row in rows], pa.string()),
            "left": pa.array([row[1][0] for row in rows], pa.string()),
            "right": pa.array([row[1][1] for row in rows], pa.string()),
            "winner": pa.array([row[2] for row in rows], pa.string()),
            "weight": pa.array([row[3] for row in rows], pa.int64()),
        }
    )
    return 2 * STEPS * Comparisons.of(table, items=ITEMS).bound(most).count().dense()


pairs = st.sampled_from([(one, two) for one in ITEMS for two in ITEMS if one != two])
ballots = st.lists(
    st.tuples(st.sampled_from("xyz"), pairs, st.sampled_from(["left", "right", "tie"]), st.integers(0, 2)), max_size=25
)


@pytest.mark.slow
@settings(max_examples=20)
@given(rows=ballots, most=st.integers(1, 5), data=st.data())
def test_what_a_voter_weighs_depends_on_nobody_else(rows, most, data):
    alone = {voter: counted([row for row in rows if row[0] == voter], most) for voter in {row[0] for row in rows}}
    together = counted(rows, most)
    # the whole is the sum of voters counted alone, in any order of rows: adding or removing one changes its part only
    assert np.array_equal(together, sum(alone.values(), np.zeros((3, 3))))
    assert np.array_equal(together, counted(data.draw(st.permutations(rows)), most))
    for voter, part in alone.items():
        own = sum(row[3] for row in rows if row[0] == voter)
        assert part.sum() == 2 * own * min(STEPS, most * STEPS // max(own, 1)) <= 2 * most * STEPS


def real(directory, name, **options):
    path = directory / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return Comparisons.read(path, **options)


def test_a_load_stays_with_its_rows_however_a_table_is_cut():
    voters = (1000 * np.random.default_rng(31).random(60_000) ** 3).astype(np.int64)
    load = np.bincount(voters)[voters]
    heavy, steps = load > np.median(load), np.minimum(STEPS, 8 * STEPS // load)
    expected = [2 * steps[heavy].sum(), 2 * steps[~heavy].sum()]
    names = np.array(["b", "a"])[heavy.astype(int)]
    table = pa.table({"voter": voters, "winner": names, "loser": np.full(len(voters), "c")})
    for rows in (60_000, 20_000, 5000) * 6:
        pieces = pa.concat_tables([table.slice(first, rows) for first in range(0, len(table), rows)])
        counts = Comparisons.of(pieces, items=["a", "b", "c"]).bound(8).count()
        assert counts.half_wins_first.tolist() == expected


def test_llmfao(data_directory):
    options = {"items": data_directory / "llmfao_votes/items.csv"}
    votes = real(data_directory, "llmfao_votes/comparisons.csv", **options)
    counts = votes.count()
    assert (len(counts.items), counts.halves.sum() / 2) == (59, 8931)
    assert "'user_id' is the voter" in votes.recognised
    frame = pd.read_csv(data_directory / "llmfao_votes/comparisons.csv")
    left = frame.groupby("item_1")["outcome"].sum()
    right = (1 - frame["outcome"]).groupby(frame["item_2"]).sum()
    wins = left.add(right, fill_value=0).reindex(list(votes.items)).fillna(0)
    assert (votes.count().half_wins == (2 * wins).to_numpy()).all()
    loads = frame["user_id"].value_counts().to_numpy()
    weighed = loads * np.minimum(STEPS, 20 * STEPS // loads)
    assert votes.bound(20).count().halves.sum() / 2 == weighed.sum()
    assert votes.load_counts().sum() == len(loads)
    assert (votes.bound(343).count().half_wins == STEPS * counts.half_wins).all()


@pytest.mark.slow
def test_arena(data_directory):
    votes = real(data_directory, "arena140k_votes/votes.csv", items_from_data=True, on_problem="drop")
    assert len(votes.items) == 53
    assert votes.columns.voter is None
    facts = votes.diagnostics()
    assert (facts.rows, facts.used, facts.dropped) == (135_634, 135_624, {"self-comparison": 10})
    assert "not for publication" in str(facts)
    without = real(
        data_directory, "arena140k_votes/votes.csv", items=votes.items, on_problem="drop", both_bad="drop"
    ).diagnostics()
    assert without.dropped["self-comparison"] == 10
    assert 15_744 <= without.dropped["both bad"] <= 15_754
    with pytest.raises(InputError, match="is compared with itself"):
        real(data_directory, "arena140k_votes/votes.csv", items=votes.items).count()


@pytest.mark.parametrize(("name", "rows", "missing", "ties"), [("cems", 4545, 91, 487), ("immigration", 588, 85, 124)])
def test_surveys(data_directory, name, rows, missing, ties):
    options = {"items": data_directory / name / "items.csv", "on_problem": "drop"}
    votes = real(data_directory, f"{name}/comparisons.csv", **options)
    facts = votes.diagnostics()
    assert (facts.rows, facts.dropped) == (rows, {"missing outcome": missing})
    assert votes.count().halves.sum() == 2 * (rows - missing)
    frame = pd.read_csv(data_directory / name / "comparisons.csv")
    assert (frame["outcome"] == 0.5).sum() == ties


def test_an_engine_that_ignores_capitals_is_refused():
    """It would count a vote once for every listed item that it takes for the same one."""
    connection = duckdb.connect()
    connection.execute('CREATE TABLE v (voter VARCHAR, "left" VARCHAR COLLATE NOCASE, "right" VARCHAR, winner VARCHAR)')
    connection.execute("INSERT INTO v VALUES ('x', 'a', 'b', 'left')")
    with pytest.raises(InputError, match="DuckDB, v: the collation of the column 'left' takes different texts for the"):
        Comparisons.read(connection, table="v", items=["a", "A", "b"])
    connection.execute('ALTER TABLE v ALTER "left" TYPE VARCHAR COLLATE C')
    assert Comparisons.read(connection, table="v", items=["a", "A", "b"]).count().half_wins_first.tolist() == [2]
    connection.execute("PRAGMA default_collation = 'nocase'")
    with pytest.raises(InputError, match="collation"):
        Comparisons.read(connection, table="v", items=["a", "A", "b"])
