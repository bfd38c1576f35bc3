"""``rankdp elect`` as a person meets it: what it prints and writes, what it refuses, what it charges."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rankdp import cli
from rankdp.cli.terminal import print_table
from rankdp.data.ballots import Ballots
from rankdp.errors import RankdpError
from rankdp.privacy.ledger import Ledger
from rankdp.publish.ballot_rules import RULES

BALLOTS = "rank_1,rank_2,rank_3,count\n" + "ann,bob,cleo,40\nbob,cleo,ann,30\ncleo,,,20\n<b>dan</b>,ann,,5\n"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ballots.csv").write_text(BALLOTS)
    (tmp_path / "candidates.txt").write_text("ann\nbob\ncleo\n<b>dan</b>\neve\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def elect(*arguments: str):
    return CliRunner().invoke(cli.cli, ["elect", *arguments])


COMMON = ("ballots.csv", "-e", "5", "--items", "candidates.txt", "--rehearse", "1")


@pytest.mark.slow
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "condorcet"])
def test_every_rule_prints_a_table_and_says_how_sure_it_is(rule: str) -> None:
    done = elect(*COMMON, "--rule", rule, "--title", "Board of the club")
    assert done.exit_code == 0, done.output
    for word in ("Board of the club", "ann", "eve", "elected", "95% interval", "rank", "from 95 ballots"):
        assert word in " ".join(done.stdout.split())
    said = " ".join((done.stdout + done.stderr).split())
    assert "that the exact count elects the same candidate is" in said or "too close to say how likely" in said
    assert "REHEARSAL" in done.stderr


def test_condorcet_says_who_or_that_there_is_nobody(directory: Path) -> None:
    told = " ".join(elect(*COMMON[:2], "200", *COMMON[3:], "--rule", "condorcet").stdout.split())
    assert "There is no Condorcet winner from 95 ballots: no candidate beats every other" in told
    assert "The probability that the exact count says the same is" in told
    (directory / "ballots.csv").write_text(BALLOTS.replace("bob,cleo,ann", "ann,cleo,bob"))
    done = elect(*COMMON[:2], "200", *COMMON[3:], "--rule", "condorcet")
    assert "ann is the Condorcet winner from 95 ballots" in " ".join(done.stdout.split())
    told = json.loads(elect(*COMMON[:2], "200", *COMMON[3:], "--rule", "condorcet", "--json").stdout)
    assert told["winners"] == ["ann"]
    assert told["condorcet_winner"] == "ann"


def test_the_help_names_every_rule() -> None:
    for command in (["elect"], ["plan", "election"]):
        words = " ".join(CliRunner().invoke(cli.cli, [*command, "--help"]).stdout.split())
        assert all(rule in words for rule in RULES)


def test_the_transcript_of_a_transferable_vote() -> None:
    done = elect(*COMMON, "--rule", "stv", "--seats", "2", "--json")
    told = json.loads(done.stdout)
    assert told["quota"] == 32  # of 95 ballots and 2 seats
    assert told["rounds"][0]["elected"]
    assert set(told["rounds"][0]["tallies"]) == {"ann", "bob", "cleo", "<b>dan</b>", "eve"}
    assert 0 <= told["rounds"][0]["transfer_values"][told["winners"][0]] < 1
    assert told["rehearsal"]["seed"] == 1
    assert len(told["winners"]) == 2


@pytest.mark.slow
def test_every_format_from_one_run(directory: Path) -> None:
    names = [f"result.{ending}" for ending in ("csv", "json", "html", "png")]
    done = elect(
        "ballots.csv", "-e", "5", "--items", "candidates.txt", "--rule", "irv", *(f"-o{name}" for name in names)
    )
    assert done.exit_code == 0, done.output
    with (directory / "result.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["candidate", "votes", "low", "high", "rank", "rank_low", "rank_high", "winner"]
    assert len(rows) == 5
    told = json.loads((directory / "result.json").read_text())
    assert told["guarantee"]["protects"] == "one ballot"
    assert told["parameters"]["rule"] == "irv"
    page = (directory / "result.html").read_text()
    assert "&lt;b&gt;dan&lt;/b&gt;" in page
    assert "<b>dan" not in page
    assert "What is promised" in page
    assert "Round by round" in page
    assert "://" not in page
    assert (directory / "result.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((directory / "result.csv.release.json").read_text())["guarantee"]["epsilon"] == "5"


def test_names_alone(directory: Path) -> None:
    done = elect("ballots.csv", "-e", "50", "--rule", "plurality", "--announce", "winners", "-o", "names.html")
    assert done.exit_code == 0, done.output
    assert "Only the names were released" in " ".join(done.stdout.split())
    assert "votes, with" not in (directory / "names.html").read_text()
    ledger = Ledger.create(directory / "budget.db", "poll", protect="one ballot", epsilon=100)
    charged = ("--announce", "winners", "--ledger", "budget.db")
    refused = elect("ballots.csv", "-e", "50", "--rule", "borda", *charged, "-o", "names.png")
    assert "names alone have no picture" in str(refused.exception)
    assert not ledger.history()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ballots.csv", "-e", "1", "--rule", "auto"), "--rule auto was removed, because"),
        (("ballots.csv", "-e", "1", "--rule", "pairs"), "--rule pairs was removed: name the rule"),
        (("ballots.csv", "-e", "1", "--rule", "range"), "--rule 'range' is unknown: choose plurality"),
        (("ballots.csv", "-e", "1", "--rule", "irv", "--first", "2"), "--first needs --rule plurality, got irv"),
        (("ballots.csv", "-e", "nan", "--rule", "irv"), "epsilon must be a finite number above 0, got nan"),
        (("none.csv", "-e", "1", "--rule", "borda"), "none.csv: there is no such file"),
        (
            ("ballots.csv", "-e", "1", "--seats", "4", "--rule", "borda"),
            "--seats must be an integer from 1 to 3, got 4",
        ),
        (("ballots.csv", "-e", "1", "--items", "few.txt", "--rule", "borda"), "'cleo' is not one of the 2 items"),
        (("half.csv", "-e", "1", "--rule", "borda"), "a weight must be a whole number"),
        (("empty.csv", "-e", "1", "--rule", "borda"), "there are no ballots"),
        (("one.csv", "-e", "1", "--rule", "borda"), "at least 2 candidates, got 1"),
    ],
)
def test_bad_input_gets_one_sentence_and_costs_nothing(directory: Path, arguments, words: str) -> None:
    (directory / "few.txt").write_text("ann\nbob\n")
    (directory / "twice.csv").write_text("rank_1,rank_2\nann,ann\n")
    (directory / "half.csv").write_text("rank_1,rank_2,count\nann,bob,1.5\n")
    (directory / "empty.csv").write_text("rank_1,rank_2\n")
    (directory / "one.csv").write_text("rank_1\nann\n")
    ledger = Ledger.create(directory / "budget.db", "poll", protect="one ballot", epsilon=10)
    done = elect(*arguments, "--ledger", "budget.db", "-o", "result.json")
    assert isinstance(done.exception, RankdpError)
    assert words in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (directory / "result.json").exists()
    assert not ledger.history()


def test_synthetic_ballots_are_written_with_their_promise(directory: Path) -> None:
    Ledger.create(directory / "budget.db", "poll", protect="one ballot", epsilon=10)
    done = elect("ballots.csv", "-e", "5", "--ledger", "budget.db", "--synthetic", "table.soi")
    assert done.exit_code == 0, done.output
    assert Ballots.read("table.soi").count == pytest.approx(95, abs=15)
    assert json.loads((directory / "table.soi.release.json").read_text())["mechanism"] == "synthetic ballots"
    assert "synthetic ballots" in done.stderr
    assert "The list of candidates was taken from the ballots" in done.stderr
    assert [entry.what for entry in Ledger.open(directory / "budget.db").history()] == ["synthetic ballots"]


@pytest.mark.parametrize("more", [("--rule", "irv"), ("-o", "result.html"), ("--json",), ("--seats", "2")])
def test_a_synthetic_table_takes_the_place_of_a_result(more) -> None:
    done = elect("ballots.csv", "-e", "5", "--synthetic", "table.csv", *more)
    assert done.exit_code == 2
    assert "--synthetic writes ballots instead of a result" in done.stderr


@pytest.mark.parametrize(("name", "words"), [("table.soc", ".soi"), ("ballots.csv", "the file being read")])
def test_a_synthetic_table_that_cannot_be_written_costs_nothing(directory: Path, name: str, words: str) -> None:
    ledger = Ledger.create(directory / "budget.db", "poll", protect="one ballot", epsilon=10)
    done = elect("ballots.csv", "-e", "5", "--ledger", "budget.db", "--synthetic", name)
    assert words in str(done.exception)
    assert not ledger.history()
    assert (directory / "ballots.csv").read_text() == BALLOTS


@pytest.mark.parametrize("width", [80, 110])
def test_a_wide_table_is_printed_in_parts_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Each part has the names, and only the rows that say something in it; no cell is cut."""
    monkeypatch.setenv("COLUMNS", str(width))
    heads = ["candidate", *map(str, range(1, 21))]
    rows = [[f"candidate {n}", *(f"{12345 - n:,}" if column <= n else "" for column in range(20))] for n in range(20)]
    print_table("Rounds", heads, rows)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= width
    assert "…" not in said
    parts = {80: ["1 to 7", "8 to 14", "15 to 20"], 110: ["1 to 10", "11 to 20"]}[width]
    assert [line for line in said.splitlines() if line.startswith("Rounds")] == [f"Rounds ({one})" for one in parts]
    assert said.count("candidate 5 ") == 1
    assert said.count("candidate 19") == len(parts)
    assert said.count("12,326") == 20
    monkeypatch.setenv("COLUMNS", "110")
    print_table("Left", [*heads[:11], "last"], [[*row[:11], "1"] for row in rows])
    assert "Left (last)\n" in capsys.readouterr().out
    words = ["candidate", *(f"column {head}" for head in heads[1:])]
    print_table("Words", words, rows)
    assert "Words (part 1 of 3)\n" in capsys.readouterr().out
    print_table("Small", heads[:4], [row[:4] for row in rows])
    assert "Small\n" in capsys.readouterr().out
