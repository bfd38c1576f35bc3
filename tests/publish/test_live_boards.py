"""Live boards: one budget for all, voters bounded over all updates, nothing lost or counted twice whatever happens."""

import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from live_streams import ITEMS, OTHERS, SAID, batches_with, frame, nodes_of, worst_loss

import rankdp
from rankdp import cli
from rankdp.errors import BudgetExceeded, InputError, Unsupported
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.ledger import Ledger
from rankdp.publish.live import LiveBoard, rank_live

UNIT = "one voter with at most 2 comparisons"


def test_all_that_a_voter_says_in_all_updates_costs_at_most_epsilon(tmp_path):
    assert worst_loss(tmp_path) == 1


def test_a_voter_counted_anew_in_every_update_would_cost_more(tmp_path):
    assert worst_loss(tmp_path, forget=True) > 1


def test_other_voters_are_counted_as_if_the_voter_were_not_there(tmp_path):
    base = nodes_of(tmp_path / "live.db", batches_with(SAID[0]))[1]
    for said in SAID[1:]:
        change = np.array(nodes_of(tmp_path / "live.db", batches_with(said))[1]) - base
        assert np.abs(change[:, 0]).sum() <= 2


def test_boards_come_from_released_numbers_and_may_be_had_again(tmp_path):
    live = LiveBoard.create(tmp_path / "live.db", ITEMS, 4, max_per_voter=2)
    with pytest.raises(InputError, match="no votes have been counted yet"):
        live.board()
    assert [live.add(batch) for batch in OTHERS] == [1, 2, 3]
    release, again = live.board(top=1), LiveBoard.open(tmp_path / "live.db").board(top=1)
    assert release.value.rows() == again.value.rows()
    assert release.guarantee.epsilon == 4
    assert release.guarantee.protects == UNIT
    assert release.provenance.parameters["board"] == 3
    assert any("all boards of this series" in words for words in release.value.warnings)
    assert live.board(scale="elo").value.score_name == "elo"
    live.close()


def test_many_votes_are_ranked_rightly_and_late_items_take_their_place(tmp_path):
    random_ = np.random.default_rng(0)
    names, strength = list("abcdef"), np.array([2, 1, 0.4, -0.4, -1, 3])
    live = LiveBoard.create(tmp_path / "live.db", names[:5], 8, max_per_voter=5, boards=200, bits=SeededBits(1))
    for week in range(8):
        there = 5 if week < 3 else 6
        first = random_.integers(there, size=3000)
        second = (first + random_.integers(1, there, size=3000)) % there
        won = random_.random(3000) < 1 / (1 + np.exp(strength[second] - strength[first]))
        winners, losers = np.where(won, first, second), np.where(won, second, first)
        rows = zip(random_.integers(4000, size=3000), winners, losers, strict=True)
        live.add(frame([(voter, names[w], names[x]) for voter, w, x in rows]), items=names[:there])
    board = live.board().value
    assert board.items == ("f", "a", "b", "c", "d", "e")
    truth = dict(zip(names, strength - strength.mean(), strict=True))
    assert board.scores == pytest.approx([truth[item] for item in board.items], abs=0.35)
    live.close()


def test_votes_that_were_counted_are_refused_in_every_form_of_the_same_file(tmp_path):
    live = LiveBoard.create(tmp_path / "live.db", ITEMS, 1, max_per_voter=2)
    votes = tmp_path / "week.csv"
    votes.write_text("voter,winner,loser\nx,a,b\n")
    shutil.copy(votes, tmp_path / "copy.csv")
    live.add(votes)
    before = live._store.read(lambda writing: writing.state())
    for again in (votes, tmp_path / "copy.csv", tmp_path / "*.csv"):
        with pytest.raises(InputError, match=r"counted already, for board 1|given twice"):
            live.add(str(again))
    live.add(OTHERS[0])
    with pytest.raises(InputError, match="counted already, for board 2"):
        live.add(OTHERS[0])
    assert live._store.read(lambda writing: writing.state()).number == before.number + 1
    live.close()


def test_refusals_change_nothing(tmp_path):
    path = tmp_path / "live.db"
    for words, options in (
        ("protecting voters needs", {}),
        ("protect must be one of voter, comparison", {"protect": "outcome"}),
        ("steps must be an integer", {"max_per_voter": 2, "boards": 0}),
    ):
        with pytest.raises(InputError, match=words):
            LiveBoard.create(path, ITEMS, 1, **options)
        assert not path.exists()
    live = LiveBoard.create(path, ITEMS, 1, max_per_voter=2, boards=2)
    with pytest.raises(InputError, match="this file exists"):
        LiveBoard.create(path, ITEMS, 1, max_per_voter=2)
    for items, words in ((["b", "a", "c"], "in another order"), (["a", "b"], "without 'c'")):
        with pytest.raises(InputError, match=words):
            live.add(frame([("x", "a", "b")]), items=items)
    with pytest.raises(InputError, match="is not one of the 3 items"):
        live.add(frame([("x", "a", "z")]))
    table = rankdp.Comparisons.from_frame(OTHERS[0], items=ITEMS, engine="duckdb")
    with pytest.raises(Unsupported, match="must be in files or frames"):
        live.add(table)
    assert live._store.read(lambda writing: writing.state()).number == 1
    assert [live.add(batch) for batch in OTHERS[:2]] == [1, 2]
    with pytest.raises(InputError, match="all 2 boards of this live board have been published"):
        live.add(OTHERS[2])
    live.close()
    (tmp_path / "live.db.key").write_bytes(os.urandom(32))
    with pytest.raises(InputError, match="the key is not the one that this live board was kept with"):
        LiveBoard.open(path)


def test_the_state_holds_no_id_no_vote_and_no_true_number(tmp_path):
    path = tmp_path / "live.db"
    live = LiveBoard.create(path, ITEMS, 1, max_per_voter=50, boards=1000)
    assert live.totals.block > 1
    live.add(frame([("somebody@example.org", "a", "b")] * 40))
    live.add(frame([("somebody@example.org", "a", "c")] * 30))
    content = path.read_bytes() + (
        path.with_name("live.db-wal").read_bytes() if path.with_name("live.db-wal").exists() else b""
    )
    assert b"somebody" not in content
    assert path.stat().st_mode & 0o077 == 0
    with sqlite3.connect(path) as inside:
        ((sums,),) = inside.execute("SELECT sums FROM open_block")
        assert inside.execute("SELECT counted FROM voters").fetchall() == [(50,)]
    sums = np.frombuffer(sums, dtype="<i8")
    scale = float(live.totals.scale("differences"))
    assert np.abs(sums[1::2] - [50, -40, -10]).max() > 3  # the noise that it began with: less has a chance of 1e-6
    assert np.abs(sums).max() < 60 * scale
    live.close()


def test_old_open_blocks_are_wiped_from_the_file(tmp_path):
    path, seen = tmp_path / "live.db", []
    live = LiveBoard.create(path, ITEMS, 1, max_per_voter=2, boards=1000)
    for batch in OTHERS:
        live.add(batch)
        content = path.read_bytes()
        log = path.with_name("live.db-wal")
        content += log.read_bytes() if log.exists() else b""
        assert not any(old in content for old in seen)
        with sqlite3.connect(path) as inside:
            seen.append(inside.execute("SELECT sums FROM open_block").fetchone()[0])
        assert seen[-1] in content
    live.close()


def test_a_ledger_is_charged_once_and_knows_an_old_copy(tmp_path):
    path = tmp_path / "live.db"
    ledger = Ledger.create(tmp_path / "ledger.db", "arena", UNIT, 1)
    live = LiveBoard.create(path, ITEMS, 1, max_per_voter=2, boards=52, ledger=ledger)
    live.add(OTHERS[0])
    live._store.settle()
    shutil.copy(path, tmp_path / "old.db")
    live.add(OTHERS[1])
    live.board()
    assert [entry.state for entry in ledger.history()] == ["committed"]
    assert ledger.budgets[0].standing.epsilon == 1
    ledger.verify()
    with pytest.raises(InputError, match="must be given the ledger that paid for it"):
        LiveBoard.open(path)
    with pytest.raises(BudgetExceeded, match="nothing of this kind fits any more"):
        LiveBoard.create(tmp_path / "second.db", ITEMS, 1, max_per_voter=2, ledger=ledger)
    assert not (tmp_path / "second.db").exists()
    live.close()
    shutil.copy(tmp_path / "old.db", path)
    with pytest.raises(InputError, match="this live board is an older copy than the one that"):
        LiveBoard.open(path, ledger=ledger)
    ledger.close()


def test_a_rehearsal_is_one_for_good_and_repeats(tmp_path):
    boards = []
    for name in ("one.db", "two.db"):
        live = LiveBoard.create(tmp_path / name, ITEMS, 1, max_per_voter=2, boards=200, bits=SeededBits(4))
        for batch in OTHERS:
            live.add(batch)
        boards.append(live.board())
        live.close()
    assert boards[0].value.rows() == boards[1].value.rows()
    assert boards[0].guarantee is None
    with pytest.raises(InputError, match="a rehearsal from its beginning or never"):
        rank_live(tmp_path / "one.db", bits=SeededBits(5))


def test_comparisons_may_be_protected_without_voters(tmp_path):
    live = LiveBoard.create(tmp_path / "live.db", ITEMS, 4, protect="comparison", boards=4)
    live.add(OTHERS[0].drop_columns(["voter"]))
    assert live.board().guarantee.protects == "one comparison"
    assert live.totals.scale("differences") == 4 / (Fraction(19, 25) * 4)
    live.close()


WORKER = """
import sys
from pathlib import Path
from rankdp.errors import InputError
from rankdp.publish.live import LiveBoard
state, weeks = sys.argv[1:3]
live = LiveBoard.open(state)
print("ready", flush=True)
for week in sorted(Path(weeks).glob("*.csv")):
    try:
        live.add(str(week))
        live.board()
    except InputError as problem:
        assert "counted already" in str(problem), problem
print("done", flush=True)
"""


def test_killed_at_any_moment_no_vote_is_lost_or_counted_twice(tmp_path):
    weeks, chance = tmp_path / "weeks", random.Random(7)
    weeks.mkdir()
    for week in range(12):
        rows = [f"w{week}v{voter},{'a,b' if voter % 3 else 'b,c'}" for voter in range(20)]
        (weeks / f"{week:02}.csv").write_text("voter,winner,loser\n" + "\n".join(rows) + "\nsame,a,c\n")
    LiveBoard.create(tmp_path / "live.db", ITEMS, 1, max_per_voter=3, boards=200).close()
    deadline, output = time.monotonic() + 60, ""
    for attempt in itertools.count():
        command = [sys.executable, "-c", WORKER, str(tmp_path / "live.db"), str(weeks)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as worker:
            assert worker.stdout.readline() == "ready\n", worker.stderr.read()
            if attempt < 5 and time.monotonic() < deadline:
                time.sleep(chance.uniform(0, 0.15))
                worker.send_signal(signal.SIGKILL)
            output, problem = worker.communicate(timeout=60)
        if worker.returncode == 0:
            break
        assert worker.returncode == -signal.SIGKILL, problem
    assert output == "done\n"
    live = LiveBoard.open(tmp_path / "live.db")
    with sqlite3.connect(tmp_path / "live.db") as inside:
        counts = [number for (number,) in inside.execute("SELECT counted FROM voters ORDER BY counted")]
        steps = [step for (step,) in inside.execute("SELECT step FROM batches ORDER BY step")]
    assert counts == [1] * 240 + [3]
    assert steps == list(range(1, 13))
    assert live.board().provenance.parameters["board"] == 12
    live.close()


def test_the_command_begins_goes_on_publishes_again_and_refuses(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(cli.cli, ["rank", *map(str, arguments)])

    state, items = tmp_path / "live.db", tmp_path / "items.txt"
    items.write_text("a\nb\nc\n")
    for week in (1, 2):
        (tmp_path / f"{week}.csv").write_text(f"voter,winner,loser\nx{week},a,b\ny{week},b,c\n")
    begin = ["--items", items, "--epsilon", "2", "--protect", "voter", "--max-per-voter", "2", "--boards", "52"]
    assert run("--live", state, tmp_path / "1.csv").exit_code == 1
    first = run("--live", state, tmp_path / "1.csv", *begin, "-o", tmp_path / "board.csv")
    assert first.exit_code == 0, first.output
    sidecar = json.loads((tmp_path / "board.csv.release.json").read_text())
    assert sidecar["parameters"]["board"] == 1
    assert sidecar["guarantee"]["epsilon"] == "2"
    second = run("--live", state, tmp_path / "2.csv", "--json")
    third = run("--live", state, "--json")
    assert json.loads(second.stdout)["leaderboard"] == json.loads(third.stdout)["leaderboard"]
    again = run("--live", state, tmp_path / "2.csv")
    assert again.exit_code == 1
    assert "counted already, for board 2" in str(again.exception)
    assert "epsilon of this live board is 2 for good" in str(run("--live", state, "--epsilon", "3").exception)
    for wrong in (["--method", "copeland"], ["--delta", "0.1"], ["--items-from-data"], ["--protect", "outcome"]):
        assert run("--live", state, *wrong).exit_code == 2
    assert run(tmp_path / "1.csv", "--boards", "3", "--epsilon", "1", "--protect", "outcome").exit_code == 2
    assert run().exit_code == 2
