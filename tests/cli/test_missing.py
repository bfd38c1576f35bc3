"""A first call: everything that is missing is said at once, nothing is replaced, nothing goes uncounted unsaid."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rankdp.cli import cli


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text("left,right,winner\ntea,milk,left\nmilk,tea,left\n")
    Path("poll.csv").write_text("rank_1,rank_2\ntea,milk\nmilk,tea\n")


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


RANK = ("rank", "votes.csv", "-e", "1", "--protect", "comparison", "--items", "tea,milk")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("rank", "votes.csv"), "Missing: --epsilon NUMBER; --protect comparison, outcome or voter; --items FILE or"),
        (("rank", "votes.csv", "-e", "1", "--items-from-data"), "Missing: --protect comparison, outcome or voter."),
        (("elect", "poll.csv"), "Missing: --epsilon NUMBER (or --without-noise); --rule plurality, borda"),
        (("privatize", "poll.csv", "out.csv"), "Missing: --epsilon NUMBER or --epsilon-column NAME."),
    ],
)
def test_all_that_is_missing_is_said_at_once_with_a_line_to_copy(words, missing):
    refused = run(*words)
    assert refused.exit_code == 2
    assert missing in refused.output
    example = refused.output.partition("Example: rankdp ")[2].split()
    assert run(*example).exit_code == 0


def test_a_file_is_replaced_only_by_force():
    assert "wrote board.csv" in run(*RANK, "-o", "board.csv").output
    before = Path("board.csv").read_bytes()
    refused = run(*RANK, "-o", "board.csv")
    assert str(refused.exception) == "board.csv exists already: choose another name, or replace it with --force"
    assert Path("board.csv").read_bytes() == before
    assert "wrote board.csv" in run(*RANK, "-o", "board.csv", "--force").output


def test_a_release_without_a_ledger_says_so_once():
    note = "no --ledger: no budget counts this release"
    assert run(*RANK).output.count(note) == 1
    assert note not in run(*RANK, "--rehearse", "1").output
    made = run("budget", "create", "budget.db", "--dataset", "votes", "--protect", "comparison", "--epsilon", "2")
    assert made.exit_code == 0
    assert note not in run(*RANK, "--ledger", "budget.db").output


@pytest.mark.parametrize("command", ["rank", "elect", "privatize"])
def test_help_lists_options_by_section_with_two_examples(command):
    text = run(command, "--help").output
    places = [text.index(f"\n{section}:\n") for section in ("Data", "Privacy", "Method", "Output")]
    assert places == sorted(places)
    assert text.count(f"  rankdp {command} ") >= 2
