"""The command line speaks its own language: no refusal that it can print names a setting as Python spells it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import rankdp
from rankdp.cli import cli
from rankdp.cli.options import spellings
from rankdp.errors import InputError, RankdpError, Setting

pytestmark = pytest.mark.slow

REFUSALS = {"InputError", "Unsupported", "SystemProblem", "BudgetExceeded", "UsageError", "BadParameter"}


def commands(group: click.Group = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


SETTINGS = {name for _, command in commands() for name in spellings(command) if "_" in name}
PYTHON = re.compile(rf"\b({'|'.join(sorted(SETTINGS))})\b|\b\w+=(['\"]|True|False|None|\d)|\bNone\b")
ALONE = {("learn", "estimator.py"), ("theory", "score_laws.py")}
"""Where a refusal of a Python call says so on purpose: a seed that may be None, the low and high of a law."""


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in every refusal of a module, as they stand in its source; what is filled in is left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in REFUSALS:
            named = {
                id(inner)
                for call in ast.walk(node)
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Setting", "settings")
                for inner in ast.walk(call)
            }
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and id(inner) not in named:
                    yield inner.lineno, inner.value


def test_no_refusal_in_the_source_spells_a_setting_by_hand():
    root = Path(rankdp.__file__).parent
    found = [
        f"{path.relative_to(root)}:{line}: {text}"
        for path in sorted(root.rglob("*.py"))
        if path.parts[-2:] not in ALONE
        for line, text in sentences(path)
        if PYTHON.search(text)
    ]
    assert found == []
    assert sum(1 for path in root.rglob("*.py") for _ in sentences(path)) > 300


def test_the_words_of_python_are_recognised():
    for words in ("max_per_voter must be", "say items_from_data=True", 'on_problem="drop" leaves', "got None"):
        assert PYTHON.search(words)
    assert not PYTHON.search("--max-per-voter must be an integer, got 'no'")


def test_a_refusal_is_spelled_by_who_reads_it():
    refusal = InputError(Setting("max_per_voter"), " needs ", Setting("protect", "voter"), ", not ", Setting("own"))
    assert str(refusal) == "max_per_voter needs protect='voter', not own"
    refusal.options = spellings(cli.commands["rank"])
    assert str(refusal) == "--max-per-voter needs --protect voter, not own"
    assert Setting("items_from_data", True).spelled(refusal.options) == "--items-from-data"
    assert Setting("no_such_thing", 3).spelled(refusal.options) == "no such thing 3"


POLL = "voter,rank_1,rank_2,rank_3\nann,tea,water,milk\nbob,milk,tea,water\n"
VOTES = "voter,left,right,winner\nann,tea,milk,left\nbob,milk,water,right\n"
ASKED: dict[str, list[str]] = {
    "privatize": ["poll.csv", "out.csv", "-e", "1"],
    "rank": ["votes.csv", "-e", "1", "--protect", "comparison", "--items-from-data"],
    "scores": ["scores.csv", "noisy.csv", "-e", "1", "--bounds", "0", "1"],
    "aggregate": ["poll.csv", "--mechanism", "kendall", "-e", "1"],
    "learn": ["users.csv", "items.csv", "poll.csv", "-o", "model"],
    "plan ranking": ["--items", "4"],
    "plan comparisons": ["--items", "4", "--comparisons", "100", "--protect", "outcome"],
    "plan scores": ["--items", "4"],
    "plan voters": ["--items", "4", "-e", "1", "--votes-per-voter", "1:9,3:2"],
    "elect": ["poll.csv", "-e", "1", "--protect", "ballot"],
    "plan respondents": ["--items", "4", "-e", "1", "--half-width", "0.1"],
    "budget create": ["other.db", "--dataset", "poll", "--protect", "position", "-e", "1"],
    "budget spend": ["budget.db", "--protect", "comparison", "-e", "1", "by hand"],
    "budget show": ["budget.db"],
    "budget verify": ["budget.db"],
    "budget export": ["budget.db", "charges.csv"],
    "audit": ["kendall", "--items", "3", "-e", "1", "--exact"],
    "attack inference": ["--repetitions", "2"],
    "attack position": [],
    "attack signature": ["poll.csv"],
    "attack votes": ["--repetitions", "2"],
}
"""A call of each command that asks for nothing wrong; each option is then made wrong in turn."""


def refused(words: list[str]) -> str:
    try:
        cli.main(words, prog_name="rankdp", standalone_mode=False)
    except RankdpError as refusal:
        return str(refusal)
    except click.UsageError as usage:
        return usage.format_message()
    except click.exceptions.Exit:
        pass
    return ""


@pytest.mark.parametrize(("words", "command"), [pytest.param(*one, id=" ".join(one[0])) for one in commands()])
def test_every_option_with_a_wrong_value(words, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"poll.csv": POLL, "votes.csv": VOTES, "scores.csv": "item,score\na,0.5\nb,7\n"}
    for name, text in {**files, "users.csv": "voter,x\nann,1\n", "items.csv": "item,y\ntea,1\n"}.items():
        Path(name).write_text(text)
    rankdp.Ledger.create("budget.db", "poll", "one item's position in one ranking", 1)
    asked = ASKED.get(" ".join(words), ["--no-such-option"])  # a new command is entered above
    for option in command.params:
        if not isinstance(option, click.Option) or option.name == "bits":
            continue
        name = max(option.opts, key=len)
        for value in [()] if option.is_flag else [("banana",), ("-1",), ("nan",), ("",)]:
            said = refused([*words, *asked, name, *value * option.nargs])
            assert not PYTHON.search(said), said


@pytest.mark.parametrize(("words", "command"), [pytest.param(*one, id=" ".join(one[0])) for one in commands()])
def test_the_list_of_commands_shows_whole_sentences(words, command):
    siblings = max(len(name[-1]) for name, _ in commands() if name[:-1] == words[:-1])
    assert not command.get_short_help_str(72 - siblings).endswith("...")
