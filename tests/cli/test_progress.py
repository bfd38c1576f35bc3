"""Progress: work tells how far it is, and a terminal shows it."""

import io
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import rankdp
from rankdp.audit import audit_samples
from rankdp.cli import terminal
from rankdp.data.comparisons import Comparisons
from rankdp.data.files import open_rankings
from rankdp.progress import heard_by, tell


@pytest.fixture
def told():
    heard = []
    with heard_by(lambda *words: heard.append(words)):
        yield heard


def rising(heard, doing):
    mine = [(done, total) for what, done, total in heard if what == doing]
    assert mine
    assert [done for done, _ in mine] == sorted(done for done, _ in mine)
    return mine[-1]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl"])
def test_files_tell_how_much_of_them_is_read(tmp_path, told, ending):
    path = tmp_path / f"votes.{ending}"
    table = "left,right,winner\n" + "a,b,left\n" * 300_000
    if ending == "jsonl":
        table = '{"left": "a", "right": "b", "winner": "left"}\n' * 100_000
    with pa.output_stream(str(path), compression="gzip" if ending.endswith("gz") else None) as file:
        file.write(table.encode())
    Comparisons.read(path, items=["a", "b"]).count()
    # bytes of a plain file; bytes once unpacked and objects read, where only the end tells how many there are
    expected = {"csv": (len(table), len(table)), "csv.gz": (len(table), None), "jsonl": (100_000, None)}
    assert rising(told, "reading") == expected[ending]


def test_parquet_tells_rows(tmp_path, told):
    pq.write_table(pa.table({"rank_1": ["a", "b"] * 5000, "rank_2": ["b", "a"] * 5000}), tmp_path / "poll.parquet")
    with open_rankings(tmp_path / "poll.parquet", batch_rows=1000) as reader:
        assert sum(map(len, reader)) == 10_000
    assert rising(told, "reading") == (10_000, 10_000)
    told.clear()
    pq.write_table(pa.table({"winner": ["a"] * 500, "loser": ["b"] * 500}), tmp_path / "votes.parquet")
    Comparisons.read(tmp_path / "votes.parquet", items=["a", "b"]).count()
    assert rising(told, "reading") == (500, 500)


def test_audits_tell_draws(told):
    rng = np.random.default_rng(0)
    audit_samples(lambda given, count: rng.normal(given, 1, count), [(0, 1)], draws=20_000, claimed_epsilon=5)
    assert rising(told, "drawing")[1] == 20_000


def test_the_bar_is_shown_after_a_while_and_removed(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    with terminal.Bar(Console(file=screen, force_terminal=True, width=100)).watching() as bar:
        deadline = time.monotonic() + 60
        while not terminal.Bar.shown and time.monotonic() < deadline:
            time.sleep(0.01)
        assert terminal.Bar.shown == [bar]
        tell("counting votes", 3, 4)
        bar._live.refresh()
        terminal.say("a word in between")
    assert terminal.Bar.shown == []
    assert "counting votes" in screen.getvalue()
    assert "75%" in screen.getvalue()
    assert "a word in between" in screen.getvalue()
    tell("nobody hears", 1)


def test_quick_work_shows_no_bar(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "PATIENCE", 60.0)  # a busy machine may need the usual one
    with terminal.Bar(Console(file=screen, force_terminal=True)).watching():
        tell("counting", 1, 2)
    assert screen.getvalue() == ""


def test_learning_tells_epochs(told):
    pytest.importorskip("sklearn")
    from rankdp.learn import LinearPairwiseRanker

    poll = rankdp.Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"], ["a", "b"]] * 5)
    LinearPairwiseRanker(early_stopping=False).fit(np.arange(20.0)[:, None], poll, mechanism="kendall", epsilon=2)
    rising(told, "training")
