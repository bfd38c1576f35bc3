"""Live boards: one charge, raw rows against what is charged, voters over all boards, kills, restores, refusals."""

import itertools
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import rankdp
from rankdp.data.counts import STEPS
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.ledger import Ledger
from rankdp.publish import live as live_module
from rankdp.publish.live import LiveBoard, _updates

ITEMS = ["a", "b", "c"]
WEEKS = [
    [("ann", "a", "b", "left"), ("ann", "a", "c", "left"), ("bob", "b", "c", "tie")],
    [("ann", "b", "a", "left"), ("cy", "a", "b", "right"), ("cy", "a", "c", "left"), ("cy", "b", "c", "left")],
    [("bob", "a", "b", "left"), ("ann", "c", "a", "right")],
]


def week(path, rows):
    path.write_text("voter,left,right,winner\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


def ledger_at(path, protect="comparison", epsilon=1):
    return Ledger.create(path, "votes", protect, epsilon)


def silent(monkeypatch):
    monkeypatch.setattr(NoisyCounts, "sample", lambda self, counts, bits: counts)


def nodes_of(live):
    return [np.array(body["node"]) for body in live._store.read(_updates)]


def released_nodes(directory, weeks, protect, bound=None):
    """The nodes of a whole series from raw files, with the noise taken away by the caller."""
    live = LiveBoard.create(
        directory / "live.db", ITEMS, 1, protect=protect, boards=3, max_per_voter=bound, ledger=None, bits=SeededBits(1)
    )
    for number, rows in enumerate(weeks):
        live.add(week(directory / f"{number}.csv", rows), f"week {number}")
    live.close()
    return live, np.array(nodes_of(live))


def apart(tmp_path, monkeypatch, weeks, protect, bound=None):
    """How far the nodes of two series are apart in l1, and how far they may be: what eps pays for, levels and all."""
    silent(monkeypatch)
    found = []
    for place, held in enumerate((WEEKS, weeks)):
        (directory := tmp_path / f"{protect}{place}").mkdir()
        live, nodes = released_nodes(directory, held, protect, bound)
        found.append(nodes)
    counts = live.counts.counts
    assert counts.scale == counts.l1 * live.counts.protection.steps * live.counts.levels
    return np.abs(found[0] - found[1]).sum(), int(counts.scale)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "row"), [(0, 0), (1, 3), (2, 1)])
def test_one_raw_row_replaced(tmp_path, monkeypatch, number, row):
    weeks = [list(rows) for rows in WEEKS]
    weeks[number][row] = ("dee", "c", "b", "left")
    moved, charged = apart(tmp_path, monkeypatch, weeks, "comparison")
    assert 0 < moved <= charged


def test_one_raw_outcome_changed(tmp_path, monkeypatch):
    weeks = [list(rows) for rows in WEEKS]
    weeks[0][0] = ("ann", "a", "b", "right")
    moved, charged = apart(tmp_path, monkeypatch, weeks, "outcome")
    assert 0 < moved <= charged


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 2, 10])
def test_all_raw_rows_of_a_voter_changed_in_all_weeks(tmp_path, monkeypatch, bound):
    """Also with far more rows than the bound, in every week; one voter's rows do not touch another's weights."""
    flood = [("ann", first, second, "left") for first, second in itertools.permutations("abc", 2)] * 5
    weeks = [[row for row in rows if row[0] != "ann"] + flood for rows in WEEKS]
    moved, charged = apart(tmp_path, monkeypatch, weeks, "voter", bound)
    assert 0 < moved <= charged


def test_a_bound_for_each_week_would_be_noticed(tmp_path, monkeypatch):
    """The mutant: voters get their bound anew with every board."""
    monkeypatch.setattr("rankdp.privacy.store.Writing.found", lambda *_: [])
    flood = [("ann", "c", "b", "left")] * 5
    weeks = [[row for row in rows if row[0] != "ann"] + flood for rows in WEEKS]
    moved, charged = apart(tmp_path, monkeypatch, weeks, "voter", 1)
    assert moved > charged


def test_voters_have_what_is_left_over_all_boards(tmp_path, monkeypatch):
    silent(monkeypatch)
    live, nodes = released_nodes(tmp_path, WEEKS, "voter", 2)
    assert live.counts.levels == 1
    assert nodes.sum(axis=1).tolist() == [2 * 3 * STEPS, 2 * 3 * (2 * STEPS // 3), 2 * STEPS]  # ann's are gone
    used = dict(live._store.read(lambda writing: writing.rows("SELECT voter, used FROM voters")))
    names = live._key.hashes(b"voter", ["ann", "bob", "cy"])
    assert [used[name] for name in names] == [2 * STEPS, 2 * STEPS, 3 * (2 * STEPS // 3)]


@pytest.mark.parametrize("late", [{"ann": 1, "bob": 1}, {"ann": 2, "bob": 2}, {"ann": 3}])
def test_a_table_that_changes_while_it_is_counted_is_refused(tmp_path, monkeypatch, late):
    """A voter with more votes than the state would note could use more than the bound over all boards."""
    live = LiveBoard.create(
        tmp_path / "live.db", ITEMS, 1, protect="voter", boards=3, max_per_voter=3, ledger=None, bits=SeededBits(1)
    )
    votes = live_module.Comparisons.read(week(tmp_path / "votes.csv", WEEKS[0]), items=ITEMS)
    assert votes.count_within({"ann": (1, STEPS), "bob": (1, 5)}).half_wins.sum() == 2 * 5  # ann has two by now
    monkeypatch.setattr(type(votes), "voter_loads", lambda self: late)
    with pytest.raises(InputError, match="the votes changed while they were counted"):
        live.add(votes, "one")
    assert live._store.read(lambda writing: writing.rows("SELECT * FROM voters")) == []


def test_a_series_is_charged_once_and_its_boards_say_so(tmp_path):
    ledger = ledger_at(tmp_path / "budget.db")
    live = LiveBoard.create(tmp_path / "live.db", ITEMS, 1, protect="comparison", boards=52, ledger=ledger)
    for number, rows in enumerate(WEEKS):
        assert live.add(week(tmp_path / f"{number}.csv", rows * 30), f"week {number}") == number + 1
        release = live.board(top=1)
    assert release.guarantee.epsilon == 1
    assert release.provenance.parameters["board"] == 3
    assert any("all boards" in words for words in release.value.warnings)
    assert len(ledger.history()) == 1
    assert (live.board().value.scores == live.board().value.scores).all()
    with pytest.raises(rankdp.BudgetExceeded):
        LiveBoard.create(tmp_path / "two.db", ITEMS, 1, protect="comparison", boards=52, ledger=ledger)
    for name in ("live.db", "live.db.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(("protect", "bound"), [("outcome", None), ("comparison", None), ("voter", 20)])
def test_the_order_is_found(tmp_path, protect, bound):
    """Enough votes: a beats b beats c, whatever is released."""
    live = LiveBoard.create(
        tmp_path / "live.db", ITEMS, 4, protect=protect, boards=4, max_per_voter=bound, ledger=None, bits=SeededBits(3)
    )
    rows = [(f"v{i}", *pair, "left") for i in range(300) for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    rows += [(f"v{i}", *pair, "right") for i in range(100) for pair in (("a", "b"), ("b", "c"))]
    for number in range(4):
        live.add(week(tmp_path / "week.csv", rows), f"week {number}")
    release = live.board()
    assert release.guarantee is None  # a rehearsal
    assert release.value.items == ("a", "b", "c")


def test_a_restored_state_is_refused(tmp_path):
    ledger, path = ledger_at(tmp_path / "budget.db"), tmp_path / "live.db"
    live = LiveBoard.create(path, ITEMS, 1, protect="comparison", boards=5, ledger=ledger)
    live.add(week(tmp_path / "1.csv", WEEKS[0]), "one")
    live.board()
    live.close()
    shutil.copy(path, tmp_path / "copy.db")
    live = LiveBoard.open(path, ledger=ledger)
    live.add(week(tmp_path / "2.csv", WEEKS[1]), "two")
    live.board()
    live.close()
    shutil.copy(tmp_path / "copy.db", path)
    with pytest.raises(InputError, match="is an older copy than the one that"):
        LiveBoard.open(path, ledger=ledger)


@pytest.mark.parametrize("ahead", [1, 2])
def test_of_two_copies_that_publish_at_once_one_is_refused(tmp_path, monkeypatch, ahead):
    """Also the one that has counted more batches."""
    ledger, paths = ledger_at(tmp_path / "budget.db"), [tmp_path / "one.db", tmp_path / "two.db"]
    LiveBoard.create(paths[0], ITEMS, 1, protect="comparison", boards=5, ledger=ledger).close()
    for ending in ("", ".key"):
        shutil.copy(f"{paths[0]}{ending}", f"{paths[1]}{ending}")
    one, two = (LiveBoard.open(path, ledger=ledger) for path in paths)
    for live in (one, two):
        live.add(week(tmp_path / "1.csv", WEEKS[0]), "one")
    for number in range(1, ahead):
        two.add(week(tmp_path / "2.csv", WEEKS[number]), f"another {number}")

    def other_first(*copy):
        monkeypatch.undo()
        one.board()  # after the check of the other copy, before its note
        live_module.note_state(*copy)

    monkeypatch.setattr(live_module, "note_state", other_first)
    with pytest.raises(InputError, match="is an older copy than the one that"):
        two.board()


def test_another_ledger_or_none_is_refused(tmp_path):
    live = LiveBoard.create(
        tmp_path / "live.db", ITEMS, 1, protect="comparison", boards=5, ledger=ledger_at(tmp_path / "budget.db")
    )
    live.close()
    with pytest.raises(InputError, match="must be given the ledger that paid for it"):
        LiveBoard.open(tmp_path / "live.db")
    with pytest.raises(InputError, match="must be given the ledger that paid for it"):
        LiveBoard.open(tmp_path / "live.db", ledger=ledger_at(tmp_path / "other.db"))


_KILLED = """
import os, signal, sys
from rankdp.privacy.ledger import Ledger
from rankdp.privacy import store
from rankdp.publish.live import LiveBoard
live = LiveBoard.open(sys.argv[1], ledger=Ledger.open(sys.argv[2]))
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[4] == "before":
    store.Writing.append = die
live.add(sys.argv[3], "week")
die()
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_leaves_all_of_a_batch_or_nothing(tmp_path, moment):
    ledger, path = ledger_at(tmp_path / "budget.db", "voter"), tmp_path / "live.db"
    LiveBoard.create(path, ITEMS, 1, protect="voter", max_per_voter=2, boards=5, ledger=ledger).close()
    votes = week(tmp_path / "week.csv", WEEKS[0])
    ended = subprocess.run([sys.executable, "-c", _KILLED, path, ledger.path, votes, moment], check=False)
    assert ended.returncode == -signal.SIGKILL
    live = LiveBoard.open(path, ledger=ledger)
    voters = live._store.read(lambda writing: writing.rows("SELECT count(*) FROM voters"))[0][0]
    assert (len(nodes_of(live)), voters) == ((0, 0) if moment == "before" else (1, 2))
    if moment == "after":
        with pytest.raises(InputError, match="batch 'week' was counted already, for board 1"):
            live.add(votes, "week")
    else:
        assert live.add(votes, "week") == 1
    assert live.board().guarantee.epsilon == 1


def test_refusals(tmp_path):
    made = {"protect": "comparison", "boards": 1}
    with pytest.raises(InputError, match="ledger must be given"):
        LiveBoard.create(tmp_path / "live.db", ITEMS, 1, ledger=None, **made)
    with pytest.raises(InputError, match="boards must be an integer from 1 to"):
        LiveBoard.create(
            tmp_path / "live.db", ITEMS, 1, protect="comparison", boards=0, ledger=None, bits=SeededBits(1)
        )
    assert not list(tmp_path.iterdir())
    live = LiveBoard.create(tmp_path / "live.db", ITEMS, 1, ledger=None, bits=SeededBits(1), **made)
    with pytest.raises(InputError, match="no votes have been counted yet"):
        live.board()
    bad = week(tmp_path / "bad.csv", [("ann", "a", "z", "left")])
    with pytest.raises(InputError, match="z"):
        live.add(bad, "bad")
    assert nodes_of(live) == []
    live.add(week(tmp_path / "1.csv", WEEKS[0]), "one")
    with pytest.raises(InputError, match="all 1 boards"):
        live.add(week(tmp_path / "2.csv", WEEKS[1]), "two")
    with pytest.raises(InputError, match="the file exists already"):
        LiveBoard.create(tmp_path / "live.db", ITEMS, 1, ledger=None, bits=SeededBits(1), **made)
    with pytest.raises(InputError, match="batch must be a name, got ''"):
        live.add(tmp_path / "1.csv", "")
    assert live.counts.epsilon == Fraction(1)


def test_a_refused_charge_leaves_no_file(tmp_path):
    poor = ledger_at(tmp_path / "poor.db", epsilon=Fraction(1, 2))
    state = tmp_path / "live.db"
    with pytest.raises(rankdp.BudgetExceeded):
        LiveBoard.create(state, ITEMS, 1, protect="comparison", boards=3, ledger=poor)
    assert not list(tmp_path.glob("live.db*"))
    LiveBoard.create(state, ITEMS, Fraction(1, 2), protect="comparison", boards=3, ledger=poor).close()


def test_a_state_that_the_disk_does_not_take_is_not_paid_for(tmp_path, monkeypatch):
    def full(*_):
        problem = sqlite3.OperationalError("database or disk is full")
        problem.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise problem

    ledger = ledger_at(tmp_path / "budget.db")
    monkeypatch.setattr(live_module.LiveStates, "_prepare", full)
    with pytest.raises(InputError, match=r"the live board could not be made \(the disk is full\)") as refused:
        LiveBoard.create(tmp_path / "live.db", ITEMS, 1, protect="comparison", boards=3, ledger=ledger)
    assert "was given back" in refused.value.__notes__[0]
    assert ledger.budgets[0].standing.epsilon == 0
