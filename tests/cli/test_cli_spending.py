"""Commands that spend: what cannot be written costs nothing, and every failure says what is spent now."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from rankdp import cli
from rankdp.data import atomic
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.scores.grid import ScoreMechanism
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.privacy.ledger import Ledger

UNITS = {
    "rank": "one comparison's outcome",
    "scores": "one score",
    "privatize": "one item's position in one ranking",
}
METHODS = {"privatize": "sample_with_offsets"}
DRAWN_BY = {"rank": NoisyWins, "scores": ScoreMechanism, "privatize": Kendall}
verbs = pytest.mark.parametrize("verb", UNITS)


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text("winner,loser\n" + "tea,milk\ntea,rum\nmilk,rum\n" * 10)
    (tmp_path / "scores.csv").write_text("name,score\nann,4.5\nbob,2\n")
    (tmp_path / "poll.csv").write_text("voter,rank_1,rank_2\nann,tea,milk\nbob,milk,tea\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atomic, "KEPT", [])
    terminated = signal.getsignal(signal.SIGTERM)
    yield tmp_path
    signal.signal(signal.SIGTERM, terminated)


@pytest.fixture
def run(monkeypatch, capsys):
    """The command as it is run, with a ledger of epsilon 2 for the verb: its exit code and its last words."""

    def run(verb: str, out: str, *more: str) -> tuple[int, str]:
        if not Path("ledger.db").exists():
            Ledger.create("ledger.db", "poll", UNITS[verb], 2).close()
        arguments = {
            "rank": ["votes.csv", "--protect", "outcome", "--method", "wins", "--items-from-data", "-o", out],
            "scores": ["scores.csv", out, "--bounds", "1", "6"],
            "privatize": ["poll.csv", out, "--mechanism", "kendall"],
        }[verb]
        monkeypatch.setattr(sys, "argv", ["rankdp", verb, *arguments, "-e", "1", "--ledger", "ledger.db", *more])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return int(str(left.value.code)), capsys.readouterr().err.strip().splitlines()[-1]

    return run


def spent() -> list[tuple[str, object]]:
    return [(entry.state, entry.because) for entry in Ledger.open("ledger.db").history()]


def leftovers() -> list[str]:
    return [path.name for path in Path().iterdir() if path.suffix == ".tmp"]


@verbs
@pytest.mark.parametrize("out", ["missing/out.csv", "scores.csv/out.csv", "directory.csv", "poll", "pipe.csv"])
def test_what_cannot_be_written_is_not_charged(verb, out, run):
    Path("directory.csv").mkdir()
    os.mkfifo("pipe.csv")
    code, words = run(verb, out)
    assert (code, spent(), leftovers()) == (1, [], [])
    assert out in words
    assert words.endswith("; nothing was charged")


@verbs
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_not_charged(verb, run):
    Path("closed").mkdir(mode=0o500)
    code, words = run(verb, "closed/out.csv")
    assert (code, spent()) == (1, [])
    assert "Permission denied" in words


def test_a_picture_without_matplotlib_is_not_charged(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, words = run("rank", "board.png")
    assert (code, spent()) == (1, [])
    assert "matplotlib" in words


@verbs
def test_a_refusal_by_the_budget_says_that_nothing_was_charged(verb, run):
    code, words = run(verb, "out.csv", "-e", "3")
    assert (code, spent(), leftovers()) == (1, [], [])
    assert words.endswith("; nothing was charged")


@verbs
def test_an_interrupt_while_drawing_is_given_back(verb, run, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(DRAWN_BY[verb], METHODS.get(verb, "sample"), stopped)
    code, words = run(verb, "out.csv")
    assert code == 1
    assert words == "rankdp: interrupted; nothing was written; epsilon 1 of data set 'poll' was given back (entry 2)"
    assert spent() == [("cancelled", "nothing of it has left the process: KeyboardInterrupt")]
    assert leftovers() == []
    assert Ledger.open("ledger.db").budgets[0].remaining == 2


@verbs
def test_a_failure_that_may_depend_on_the_data_stays_spent(verb, run, monkeypatch):
    def refused(*_, **__):
        raise InputError("no answer for these data")

    monkeypatch.setattr(DRAWN_BY[verb], METHODS.get(verb, "sample"), refused)
    assert run(verb, "out.csv") == (
        1,
        "rankdp: no answer for these data; epsilon 1 of data set 'poll' stays spent (entry 2)",
    )
    assert spent() == [("reserved", None)]


@verbs
@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_has_begun_to_leave_stays_spent(verb, problem, run, monkeypatch):
    def stopped(*_, **__):
        raise problem

    monkeypatch.setattr(atomic.NewFile, "keep", stopped)
    code, words = run(verb, "out.csv")
    assert code == 1
    assert words.endswith("; epsilon 1 of data set 'poll' stays spent (entry 2)")
    assert ("interrupted; nothing was written" in words) == (problem is KeyboardInterrupt)
    assert spent() == [("reserved", None)]
    assert not Path("out.csv").exists()


@verbs
def test_a_release_is_committed(verb, run):
    code, words = run(verb, "out.csv")
    assert code == 0, words
    assert spent() == [("committed", None)]
    assert atomic.read_sidecar("out.csv") is not None


def test_an_interrupt_after_a_file_was_written_names_it(run, monkeypatch):
    kept = atomic.NewFile.keep

    def stopped(self):
        kept(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic.NewFile, "keep", stopped)
    assert run("scores", "out.csv")[1] == (
        "rankdp: interrupted; written: out.csv; epsilon 1 of data set 'poll' stays spent (entry 2)"
    )


def test_answers_that_were_not_drawn_are_given_back_and_kept_ones_stay_spent(run, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Kendall, METHODS["privatize"], stopped)
        assert run("privatize", "out.csv", "--answers", "answers.db")[1] == (
            "rankdp: interrupted; nothing was written; epsilon 1 of data set 'poll' was given back (entry 2)"
        )
    with monkeypatch.context() as interrupted:
        interrupted.setattr(atomic.NewFile, "keep", stopped)
        code, words = run("privatize", "out.csv", "--answers", "answers.db")
    assert code == 1
    assert words == "rankdp: interrupted; nothing was written; epsilon 1 of data set 'poll' stays spent (entry 4)"
    assert run("privatize", "out.csv", "--answers", "answers.db")[0] == 0
    assert [state for state, _ in spent()] == ["cancelled", "committed"]
