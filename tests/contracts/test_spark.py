"""Spark DataFrames in every verb: drawn once, by the law, with bits of their own in every task, never collected."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import rankdp
from rankdp.data.rankings import Rankings
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import ITEM_POSITION
from rankdp.privacy.release import Release

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
]

ROWS = 6000


@pytest.fixture
def session(spark):
    return spark


def alike(session, rows=ROWS, tasks=4):
    """A table in which everybody says the same, in several partitions."""
    cells = ["id as voter", *(f"'{item}' as rank_{place}" for place, item in enumerate(("c", "a", "b"), 1))]
    return session.range(rows, numPartitions=tasks).selectExpr(*cells)


def orders(frame):
    return [tuple(row[1:4]) for row in sorted(map(tuple, frame.toArrow().to_pandas().to_numpy()))]


@pytest.fixture
def collected(monkeypatch):
    """The numbers of rows that came to the driver."""
    from pyspark.sql.classic.dataframe import DataFrame

    seen = []

    def watched(name):
        real = getattr(DataFrame, name)

        def watching(self, *arguments, **options):
            found = real(self, *arguments, **options)
            seen.append(found.num_rows if name == "toArrow" else len(found))
            return found

        monkeypatch.setattr(DataFrame, name, watching)

    for name in ("collect", "toArrow", "toPandas"):
        watched(name)
    return seen


def test_a_spark_table_is_drawn_once_and_by_the_law(session, tmp_path, collected):
    target = str(tmp_path / "synthetic")
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 2)
    release = rankdp.privatize(alike(session), 1, mechanism="kendall", ledger=ledger, target=target)
    assert ledger.budgets[0].remaining == 1
    with pytest.raises(rankdp.BudgetExceeded):
        rankdp.privatize(alike(session, 8, 1), 3, ledger=ledger, target=target + "2")
    assert not (tmp_path / "synthetic2").exists()
    assert max(collected) <= 5, "the table came to the driver"
    assert release.guarantee.epsilon == 1
    assert json.loads((tmp_path / "synthetic.release.json").read_text()) == json.loads(json.dumps(release.to_dict()))

    drawn = orders(release.value)
    assert drawn == orders(release.value), "two actions must read one draw"
    assert drawn == orders(session.read.parquet(target))
    table = np.array(list(permutations(range(3))), np.int32)
    chances = np.exp(mechanism("kendall", 3, 1).log_prob(table, np.array([2, 0, 1])))
    counted = Counter(drawn)
    expected = ROWS * chances
    observed = np.array([counted["abc"[i], "abc"[j], "abc"[k]] for i, j, k in table])
    assert ((observed - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-9, 5)
    quarters = [tuple(drawn[first : first + ROWS // 4]) for first in range(0, ROWS, ROWS // 4)]
    assert len(set(quarters)) == 4, "tasks with the same rows must draw from bits of their own"

    there = rankdp.aggregate(release)
    here = rankdp.aggregate(Rankings.of(release.value), "kendall", 1)
    assert there.items == here.items
    assert there.release.guarantee == release.guarantee
    np.testing.assert_allclose(there.mean_ranks.values, here.mean_ranks.values)
    np.testing.assert_allclose(there.win_rates.values, here.win_rates.values)
    np.testing.assert_allclose(there.win_rates.standard_errors, here.win_rates.standard_errors)


def test_rank_and_elect_take_a_spark_table_as_it_is(session, collected):
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    votes = pa.table({"winner": ["a", "a", "b"] * 30, "loser": ["b", "c", "c"] * 30})
    frame = session.createDataFrame(votes.to_pandas())
    options = {"items": ["a", "b", "c"], "epsilon": 1, "protect": "comparison"}
    there = rankdp.rank(frame, bits=SeededBits(1), **options)
    here = rankdp.rank(votes, bits=SeededBits(1), **options)
    assert there.value.scores.tolist() == here.value.scores.tolist()
    ballots = pa.table({"rank_1": ["a", "a", "b"] * 30, "rank_2": ["b", "c", "c"] * 30})
    frame = session.createDataFrame(ballots.to_pandas())
    there, here = (
        rankdp.elect(table, 1, rule="borda", items=["a", "b", "c"], bits=SeededBits(2)) for table in (frame, ballots)
    )
    assert there.value.rows() == here.value.rows()
    assert max(collected) <= 9, "the table came to the driver"
    assert session.conf.get("spark.sql.session.timeZone") == "Europe/Paris", "the session's settings are the user's"
    session.conf.set("spark.sql.session.timeZone", before)


def partial_lists(session, rows=4000):
    """Lists of two to four items, in several partitions, of which no two know the same items."""
    places = ["case id % 4 when 0 then 'd' else 'a' end", "'b'", "case when id % 4 > 1 then 'c' end"]
    cells = [f"{cell} as rank_{place}" for place, cell in enumerate(places, 1)]
    return session.range(rows, numPartitions=3).selectExpr("concat('v', id) as voter", *cells, "'x' as city")


@pytest.mark.long
@pytest.mark.parametrize("name", ["offset-tiers", "auto"])
def test_partial_rankings_and_offsets(session, tmp_path, name):
    release = rankdp.privatize(
        partial_lists(session), 1, mechanism=name, listed_items_public=True, target=tmp_path / "out"
    )
    assert release.guarantee.listed_items_public
    assert release.provenance.parameters["columns_left_out"] == ["city"]
    assert release.value.count() == 4000
    there = rankdp.aggregate(release)
    offset = "offset" if "offset" in release.value.columns else None
    table = Rankings.from_frame(release.value, offset_column=offset)
    assert sorted(table.voters) == sorted(f"v{row}" for row in range(4000))
    here = rankdp.aggregate(Release(table, release.guarantee, release.provenance))
    assert there.items == here.items == ("a", "b", "c", "d")
    assert there.pair_voters.tolist() == here.pair_voters.tolist()
    np.testing.assert_allclose(there.win_rates.values, here.win_rates.values)
    np.testing.assert_allclose(there.win_shares.values, here.win_shares.values)


@pytest.mark.long
def test_a_row_per_voter_and_item(session, tmp_path, collected):
    """Rows of a voter in several partitions, and lists of different lengths; never brought to the driver."""
    lists = partial_lists(session, 2000)
    parts = [
        lists.selectExpr("voter", f"rank_{n} as item", f"{n} as rank").where(f"rank_{n} is not null") for n in (2, 3, 1)
    ]
    table = parts[0].union(parts[1]).union(parts[2]).repartition(5)
    release = rankdp.privatize(table, 1, mechanism="kendall", listed_items_public=True, target=tmp_path / "out")
    assert release.value.columns == ["voter", "rank_1", "rank_2", "rank_3", "rank_4"]
    assert max(collected) <= 40, "the table came to the driver"
    drawn = {row["voter"]: {row[f"rank_{n}"] for n in range(1, 5)} - {None} for row in release.value.collect()}
    true = {row["voter"]: {row[f"rank_{n}"] for n in range(1, 4)} - {None} for row in lists.collect()}
    assert drawn == true
    there = rankdp.aggregate(release)
    assert there.items == ("a", "b", "c", "d")


@pytest.mark.long
def test_a_table_that_changes_is_not_handed_out(session, tmp_path):
    def other_rows_each_time(batches):
        for batch in batches:
            yield batch.slice(0, 100 + int.from_bytes(os.urandom(3)) % (batch.num_rows - 100))

    source = alike(session, 200_000, 1)
    source = source.mapInArrow(other_rows_each_time, source.schema)
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 2)
    with pytest.raises(rankdp.InputError, match="it changed while it was read"):
        rankdp.privatize(source, 1, ledger=ledger, target=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert ledger.budgets[0].remaining == 1, "what was drawn is paid for"


REFUSED = [
    (lambda frame: frame, {}, "target must name a new directory"),
    (lambda frame: frame, {"target": "old"}, "target must be new"),
    (lambda frame: frame, {"target": "out", "bits": SeededBits(1)}, "rehearsals are not made on Spark"),
    (lambda frame: frame, {"target": "out", "epsilon": None}, "epsilon must be one number"),
    (lambda frame: frame.union(frame), {"target": "out"}, "has 2 rows"),
    (lambda frame: frame.limit(0), {"target": "out"}, "there are no rows"),
    (
        lambda frame: (one := frame.selectExpr("voter", "rank_1 as item", "1 as rank")).union(one),
        {"target": "out"},
        "'c' is listed twice by one voter",
    ),
    (lambda frame: frame.withColumn("rank_2", frame.rank_1), {"target": "out"}, "'c' is listed twice"),
    (
        lambda frame: frame.union(frame.selectExpr("voter + 100", "upper(rank_1)", "rank_2", "rank_3")),
        {"target": "out"},
        "differ in capitals or spaces only",
    ),
    (
        lambda frame: frame.union(frame.selectExpr("voter + 100", "'d'", "rank_2", "rank_3")),
        {"target": "out"},
        "listed_items_public=True",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("change", "options", "words"), REFUSED)
def test_refused_before_the_charge(session, tmp_path, change, options, words):
    options = {"epsilon": 1} | options
    if "target" in options:
        options["target"] = tmp_path / options["target"]
    (tmp_path / "old").mkdir()
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 2)
    with pytest.raises(rankdp.RankdpError, match=words):
        rankdp.privatize(change(alike(session, 20, 2)), ledger=ledger, **options)
    assert ledger.budgets[0].remaining == 2
    assert not (tmp_path / "out").exists()


CONNECT = """
import json, pathlib, sys
from itertools import permutations
import numpy as np, pyarrow as pa
from pyspark.sql import SparkSession
import rankdp
from rankdp.mechanisms.registry import mechanism
from rankdp.data.ballots import Ballots
from rankdp.data.comparisons import Comparisons

session = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
random, items = np.random.default_rng(0), ["i0", "i1", "i2", "i3"]
left = random.integers(0, 4, 300)
right = (left + random.integers(1, 4, 300)) % 4
votes = pa.table({
    "voter": [f" v{v}" for v in random.integers(0, 30, 300)],
    "left": [items[i] for i in left],
    "right": [items[i] for i in right],
    "winner": random.choice(["left", "right", "tie"], 300).tolist(),
    "weight": random.integers(0, 4, 300),
})
here, there = (Comparisons.of(source, items=items) for source in (votes, session.createDataFrame(votes)))
assert there.count() == here.count()
assert there.bound(5).count() == here.bound(5).count()
assert there.load_counts().tolist() == here.load_counts().tolist()
poll = pa.table({"rank_1": ["a", "b", "a"], "rank_2": ["b", "a", None], "count": [3, 1, 2]})
assert (Ballots.of(session.createDataFrame(poll)).margins() == Ballots.of(poll).margins()).all()

items = ["tea", "milk", "juice"]
rows = pa.table({"voter": range(4000), **{f"rank_{place}": [item] * 4000 for place, item in enumerate(items, 1)}})
frame, target = session.createDataFrame(rows).repartition(3), sys.argv[1]
release = rankdp.privatize(frame, 1, mechanism="kendall", target=target)
seen = [tuple(row[1:]) for row in release.value.collect()]
assert len(seen) == 4000 and seen == [tuple(row[1:]) for row in release.value.collect()], "drawn again"
law = mechanism("kendall", 3, 1)
outputs = list(permutations(range(3)))
expected = dict(zip(outputs, 4000 * np.exp(law.log_prob(np.array(outputs), np.arange(3)))))
distance = sum((seen.count(tuple(items[i] for i in o)) - e) ** 2 / e for o, e in expected.items())
assert distance < 25.7, distance  # chi-squared with 5 degrees of freedom, 1 in 10,000
assert json.load(open(target + ".release.json"))["guarantee"] == release.to_dict()["guarantee"]
combined = rankdp.aggregate(release).order()
assert combined == tuple(items), combined
for again in (target, sys.argv[1] + "2"):
    try:
        rankdp.privatize(frame if again == target else frame.union(frame), 1, target=again)
        raise SystemExit("not refused")
    except rankdp.InputError as refusal:
        print(refusal)
assert not pathlib.Path(sys.argv[1] + "2").exists()
print("the same integers")
session.stop()
"""


@pytest.mark.long
def test_spark_connect_counts_the_same_integers_and_draws_once(tmp_path):
    """A server of its own, in a process of its own: a session of this process would be taken instead."""
    pytest.importorskip("grpc", reason="what Spark Connect needs is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none here")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    run = subprocess.run(
        [sys.executable, "-c", CONNECT, str(tmp_path / "synthetic")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "the same integers" in run.stdout, run.stderr[-2000:]
