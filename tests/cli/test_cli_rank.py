"""``rankdp rank`` as a person meets it: what it prints where, what it writes, what it refuses and how it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rankdp import cli
from rankdp.errors import RankdpError

VOTES = "winner,loser,voter\n" + "".join(
    f"{one},{other},v{k // 2}\n"
    for k, (one, other) in enumerate([("tea", "milk"), ("tea", "rum"), ("milk", "rum")] * 30)
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "items.txt").write_text("tea\nmilk\nrum\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rankdp(*arguments: str):
    """The command in this process, with the refusals that ``main`` turns into exit code 1."""
    return CliRunner().invoke(cli.cli, ["rank", *arguments])


def process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rankdp", "rank", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


COMMON = ("votes.csv", "-e", "2", "--items", "items.txt")


@pytest.mark.slow
def test_the_board_on_stdout_and_words_on_stderr(directory: Path) -> None:
    run = process(*COMMON, "--protect", "outcome", "--top", "1", "--title", "Drinks", cwd=directory)
    assert run.returncode == 0, run.stderr
    for word in ("Drinks", "tea", "milk", "rum", "score", "rank", "95% interval", "in the top 1"):
        assert word in run.stdout
    assert "Protects" not in run.stdout
    assert "'winner' won against 'loser'" in run.stderr
    assert "Protects one comparison's outcome" in run.stderr


@pytest.mark.slow
def test_a_refusal_is_one_sentence_and_exit_1(directory: Path) -> None:
    run = process("votes.csv", "-e", "nan", "--protect", "outcome", "--items-from-data", cwd=directory)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.splitlines()[-1] == "rankdp: --epsilon must be a finite number above 0, got nan"
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("method", ["bradley-terry", "wins"])
@pytest.mark.parametrize("protect", ["comparison", "outcome", "voter"])
def test_json(directory: Path, method: str, protect: str) -> None:
    extra = ["--max-per-voter", "2"] if protect == "voter" else []
    run = rankdp(*COMMON, "--protect", protect, "--method", method, "--json", *extra)
    assert run.exit_code == 0, run.output
    said = json.loads(run.stdout)
    assert sorted(row["item"] for row in said["leaderboard"]) == ["milk", "rum", "tea"]
    assert said["guarantee"]["epsilon"] == "2"
    assert (said["mechanism"], said["parameters"]["protect"]) == (method, protect)


def test_several_outputs(directory: Path) -> None:
    names = ["board.csv", "board.json", "board.html", "board.png"]
    run = rankdp(*COMMON, "--protect", "comparison", *[word for name in names for word in ("-o", name)])
    assert run.exit_code == 0, run.output
    assert all((directory / name).stat().st_size for name in [*names, "board.csv.release.json"])
    board = json.loads((directory / "board.json").read_text())["leaderboard"]
    assert [line.split(",")[0] for line in (directory / "board.csv").read_text().splitlines()[1:]] == [
        row["item"] for row in board
    ]  # one release, written several ways
    assert "Protects one comparison" in (directory / "board.html").read_text()


def test_patterns(directory: Path) -> None:
    head, *rows = VOTES.splitlines(keepends=True)
    (directory / "part-1.csv").write_text(head + "".join(rows[:40]))
    (directory / "part-2.csv").write_text(head + "".join(rows[40:]))
    whole, parts = (
        json.loads(rankdp(name, *COMMON[1:], "--protect", "outcome", "--rehearse", "1", "--json").stdout)
        for name in ("votes.csv", "part-*.csv")
    )
    assert whole["leaderboard"] == parts["leaderboard"]


def test_items_from_data_says_that_the_list_becomes_public(directory: Path) -> None:
    run = rankdp("votes.csv", "-e", "2", "--protect", "comparison", "--items-from-data")
    assert run.exit_code == 0
    assert run.stderr.count("The list of items was taken from the votes: which items occur is not protected.") == 1


def test_a_rehearsal_repeats_and_is_loud(directory: Path) -> None:
    runs = [rankdp(*COMMON, "--protect", "comparison", "--rehearse", "5") for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert "REHEARSAL, NOT PRIVATE" in runs[0].stderr


def test_elo_and_level(directory: Path) -> None:
    run = rankdp(*COMMON, "--protect", "outcome", "--scale", "elo", "--level", "0.9")
    assert "elo" in run.stdout
    assert "90% interval" in run.stdout


def test_names_are_shown_as_they_are_and_warnings_are_notes(directory: Path) -> None:
    (directory / "items.txt").write_text("tea\nmilk\nrum\n[/red] soda\n")
    run = rankdp(*COMMON, "--protect", "outcome")
    assert run.exit_code == 0, run.output
    line = next(line for line in run.stdout.splitlines() if "[/red] soda" in line)
    assert "1–4" in line
    assert "note: Never compared: [/red] soda." in run.stderr
    assert "nan" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--protect", "outcome", "-e", "0"], "--epsilon must be a finite number above 0, got 0"),
        (
            ["--protect", "voter", "--max-per-voter", "0"],
            "--max-per-voter must be an integer of at least 1, got 0",
        ),
        (
            ["--protect", "comparison", "--covariates", "position"],
            "--covariates are public, so they need --protect outcome, got --protect comparison",
        ),
        (["--protect", "outcome", "--top", "9"], "--top must be an integer from 1 to 3, got 9"),
        (["--protect", "outcome", "--level", "2"], "--level must be a number above 0 and below 1, got 2.0"),
        (["--protect", "outcome", "-o", "board.xls"], "board.xls: the ending must be one of"),
        (["--protect", "outcome", "-o", "nowhere/board.csv"], "nowhere/board.csv"),
        (["--protect", "outcome", "--items-from-data"], "--items must list the public items"),
        (["--protect", "outcome", "--voter-column", "who"], "votes.csv: --voter-column is 'who', but the columns are"),
    ],
)
def test_refusals(directory: Path, arguments: list[str], sentence: str) -> None:
    before = sorted(path.name for path in directory.iterdir())
    run = rankdp(*COMMON, *arguments)
    assert isinstance(run.exception, RankdpError), run.exception
    assert str(run.exception).startswith(sentence)
    assert "\n" not in str(run.exception)
    assert run.stdout == ""
    assert sorted(path.name for path in directory.iterdir()) == before


def test_files_that_are_not_there(directory: Path) -> None:
    for arguments in (["none.csv", *COMMON[1:]], ["none-*.csv", *COMMON[1:]], [*COMMON[:-1], "none.txt"]):
        run = rankdp(*arguments, "--protect", "outcome")
        assert isinstance(run.exception, RankdpError), run.exception
        assert "none" in str(run.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["votes.csv"],
        ["votes.csv", "-e", "1"],
        ["votes.csv", "--protect", "outcome"],
        ["votes.csv", "-e", "1", "--protect", "nobody"],
        ["votes.csv", "-e", "1", "--protect", "outcome", "--method", "kemeny"],
        ["votes.csv", "-e", "1", "--protect", "outcome", "--top", "some"],
    ],
)
def test_wrong_usage_exits_2(directory: Path, arguments: list[str]) -> None:
    run = rankdp(*arguments)
    assert run.exit_code == 2
    assert "Usage: " in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protect", "words"),
    [
        ("comparison", "up to k times this epsilon"),
        ("outcome", "Who was compared with whom, and how often, is NOT protected"),
        ("voter", "A person who votes under several names is protected less"),
    ],
)
def test_every_board_says_what_is_not_protected(directory: Path, protect: str, words: str) -> None:
    bounded = ["--max-per-voter", "2"] if protect == "voter" else []
    board = ("votes.csv", "-e", "12", "--items", "items.txt", "--method", "wins", "--protect", protect, *bounded)
    shown = rankdp(*board, "-o", "board.html", "-o", "board.json", "-o", "board.csv")
    assert shown.exit_code == 0, shown.output
    told = json.loads(rankdp(*board, "--json").stdout)["guarantee"]
    page = (directory / "board.html").read_text()
    facts = json.loads((directory / "board.json").read_text())["guarantee"]
    beside = json.loads((directory / "board.csv.release.json").read_text())["guarantee"]
    for sentence in (words, "An epsilon of 10 or more offers almost no protection."):
        assert sentence in page
        assert sentence in shown.stderr
        for guarantee in (told, facts, beside):
            assert sentence in " ".join(guarantee["limits"])
            assert sentence in guarantee["explanation"]
