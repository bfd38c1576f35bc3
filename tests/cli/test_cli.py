"""The command line as a person meets it: what it prints where, and how it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support import command

from rankdp.cli import cli
from rankdp.cli.options import MECHANISM_OR_AUTO
from rankdp.mechanisms.registry import MECHANISMS

pytestmark = pytest.mark.slow

POLL = "voter,rank_1,rank_2,rank_3\nann,tea,coffee,water\nbob,water,tea,coffee\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "poll.csv").write_text(POLL)
    return tmp_path


def test_privatize_says_what_it_did_on_stderr(directory: Path) -> None:
    run = command("privatize", "poll.csv", "out.csv", "--epsilon", "2", cwd=directory)
    assert (run.returncode, run.stdout) == (0, "")
    assert "2 rankings" in run.stderr
    assert "keeps" in run.stderr
    assert "Protects one item's position in one ranking" in run.stderr


def test_json_goes_to_stdout(directory: Path) -> None:
    run = command(
        "privatize", "poll.csv", "out.csv", "--epsilon", "2", "--mechanism", "kendall", "--json", cwd=directory
    )
    summary = json.loads(run.stdout)
    assert (run.returncode, run.stderr) == (0, "")
    assert summary["rows"] == 2
    assert summary["guarantee"]["epsilon"] == "2"
    assert summary["mechanism"] == "kendall"


def test_a_rehearsal_is_loud(directory: Path) -> None:
    run = command("privatize", "poll.csv", "out.csv", "-e", "2", "--rehearse", "1", cwd=directory)
    assert "NOT PRIVATE" in run.stderr
    assert json.loads((directory / "out.csv.release.json").read_text())["guarantee"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["poll.csv", "out.csv", "-e", "nan"], "rankdp: --epsilon must be a finite number above 0, got nan\n"),
        (["poll.csv", "out.csv", "-e", "-1"], "rankdp: --epsilon must be a finite number above 0, got -1\n"),
        (["none.csv", "out.csv", "-e", "1"], "rankdp: none.csv: there is no such file\n"),
        (["poll.csv", "poll.csv", "-e", "1"], "rankdp: poll.csv: this is the file being read; write to another one\n"),
        (["poll.csv", "out.xls", "-e", "1"], None),
        (["poll.csv", "nowhere/out.csv", "-e", "1"], None),
        (["poll.csv", "out.csv", "--epsilon-column", "mine"], None),
        (["poll.csv", "out.csv", "-e", "1", "--items", "none.txt"], None),
        (["poll.csv", "out.csv", "-e", "1", "--mechanism", "optimal", "--items", "seven.txt"], None),
    ],
)
def test_refusals_are_one_sentence_and_exit_1(directory: Path, arguments: list[str], sentence: str | None) -> None:
    (directory / "seven.txt").write_text("tea\ncoffee\nmilk\n")
    before = sorted(path.name for path in directory.iterdir())
    run = command("privatize", *arguments, cwd=directory)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("rankdp: ")
    assert run.stderr.count("\n") == 1
    assert sentence in (None, run.stderr)
    assert sorted(path.name for path in directory.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["privatize"],
        ["privatize", "poll.csv", "out.csv"],
        ["fly"],
        ["privatize", "a", "b", "-e", "1", "--mechanism", "x"],
    ],
)
def test_wrong_usage_exits_2(directory: Path, arguments: list[str]) -> None:
    run = command(*arguments, cwd=directory)
    assert run.returncode == 2
    assert "Usage: rankdp" in run.stderr


def test_help_and_version(directory: Path) -> None:
    assert "Publish rankings" in command("--help", cwd=directory).stdout
    assert command("--version", cwd=directory).stdout.startswith("rankdp, version ")


def test_every_option_has_help() -> None:
    def silent(command: click.Command, name: str) -> list[str]:
        if isinstance(command, click.Group):
            return [line for part, below in command.commands.items() for line in silent(below, f"{name} {part}")]
        options = (option for option in command.params if isinstance(option, click.Option))
        return [f"{name} {option.opts[0]}" for option in options if not option.help]

    assert silent(cli, "rankdp") == []


def test_the_choices_are_the_registry() -> None:
    assert MECHANISM_OR_AUTO.choices == ("auto", *MECHANISMS)


def test_demo(directory: Path) -> None:
    started = [sys.executable, "-m", "rankdp", "demo"]
    run = subprocess.run(started, cwd=directory, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "library" in run.stdout
    assert "epsilon 4" in run.stdout
    assert "Promise at epsilon 2: one item's position" in " ".join(run.stdout.split())
    assert (directory / "rankdp-demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_command_does_not_load_pandas(directory: Path) -> None:
    pytest.importorskip("pandas")
    script = (
        "import sys; from rankdp.cli import main\n"
        "try: main()\n"
        "finally: import pyarrow; print('pandas' in sys.modules, pyarrow.array([1]).to_pandas().sum())"
    )
    started = [sys.executable, "-c", script, "privatize", "poll.csv", "quick.csv", "--epsilon", "1"]
    run = subprocess.run(started, cwd=directory, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "1"]


def test_the_demo_gets_better_with_epsilon_and_needs_no_matplotlib(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = CliRunner().invoke(cli, ["demo", "--json"])
    assert run.exit_code == 0, run.output
    assert "No picture: plots need matplotlib: pip install 'rankdp[plots]'" in run.stderr
    shown = json.loads(run.stdout)
    assert set(shown["synthetic"]) == {"1", "2", "4", "8"}
    assert len(shown["true_mean_ranks"]) == 8
    errors, kept = ([one[key] for one in shown["synthetic"].values()] for key in ("typical_error", "pairs_in_order"))
    assert errors == sorted(errors, reverse=True)
    assert kept == sorted(kept)
    assert CliRunner().invoke(cli, ["demo", "--plot", "x.png"]).exit_code == 1
    assert not list(directory.glob("*.png"))


def test_a_closed_pipe_is_no_traceback(directory: Path) -> None:
    script = f"{sys.executable} -m rankdp plan ranking --items 3 --epsilon 1 --json | true"
    run = subprocess.run(["bash", "-c", script], cwd=directory, capture_output=True, text=True, check=False)
    assert "Traceback" not in run.stderr


def test_tiers_are_given_by_their_sizes(directory: Path) -> None:
    run = command("privatize", "poll.csv", "out.csv", "--epsilon", "2", "--tiers", "1,2", cwd=directory)
    assert run.returncode == 0
    stated = json.loads((directory / "out.csv.release.json").read_text())
    assert stated["parameters"]["choices"][0]["mechanism"] == "tiers-1-2"
    run = command("privatize", "poll.csv", "again.csv", "--epsilon", "2", "--tiers", "1,3", cwd=directory)
    assert run.returncode == 1
    assert "tiers must be at least two whole numbers above 0 that add up to 3, got [1, 3]" in run.stderr
    run = command("privatize", "poll.csv", "again.csv", "--epsilon", "2", "--tiers", "1;2", cwd=directory)
    assert run.returncode == 2
    assert "must be whole numbers separated by commas, got '1;2'" in run.stderr
