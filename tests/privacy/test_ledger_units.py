"""One vocabulary for what is protected: in Python, on the command line and in ledger files."""

import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.privacy.guarantee import UNITS, unit_of
from rankdp.privacy.ledger import Ledger

WORDS = "comparison, outcome, voter, ballot, position, ranking, score"
VOTES = [("x", "y", "left"), ("y", "z", "left")]


def created(path, *words):
    return CliRunner().invoke(cli, ["budget", "create", str(path), "--dataset", "poll", "-e", "3", *words])


@pytest.mark.parametrize(("word", "bound"), [*((word, None) for word in UNITS), ("voter", 7)])
def test_a_word_is_the_same_unit_in_python_and_on_the_command_line(tmp_path, word, bound):
    ledger = Ledger.create(tmp_path / "python.db", "poll", word, 3, max_per_voter=bound)
    more = [] if bound is None else ["--max-per-voter", str(bound)]
    assert created(tmp_path / "command.db", "--protect", word, *more).exit_code == 0
    same = Ledger.create(tmp_path / "words.db", "poll", ledger.budgets[0].protects, 3)
    for made in (ledger, Ledger.open(tmp_path / "command.db"), same):
        assert [budget.protects for budget in made.budgets] == [unit_of(word, bound)]


def test_a_release_is_charged_to_a_ledger_created_with_its_word(tmp_path):
    import pyarrow as pa

    left, right, winner = zip(*VOTES, strict=True)
    votes = pa.table({"voter": ["a", "b"], "left": left, "right": right, "winner": winner})
    releases = {
        ("comparison", None): lambda ledger: rankdp.rank(
            votes, 1, protect="comparison", items=["x", "y", "z"], ledger=ledger
        ),
        ("voter", 2): lambda ledger: rankdp.rank(
            votes, 1, protect="voter", max_per_voter=2, items=["x", "y", "z"], ledger=ledger
        ),
        ("ballot", None): lambda ledger: rankdp.elect(
            [["a", "b"]], 1, protect="ballot", items=["a", "b"], rule="borda", ledger=ledger
        ),
        ("voter", None): lambda ledger: rankdp.elect(
            [["a", "b"]], 1, protect="voter", items=["a", "b"], rule="borda", ledger=ledger
        ),
        ("position", None): lambda ledger: rankdp.privatize(
            rankdp.Rankings.from_orders([["a", "b"]], ["a", "b"]), 1, ledger=ledger
        ),
    }
    for number, ((word, bound), release) in enumerate(releases.items()):
        ledger = Ledger.create(tmp_path / f"{number}.db", "poll", word, 3, max_per_voter=bound)
        release(ledger)
        assert ledger.budgets[0].standing.epsilon == 1


@pytest.mark.parametrize("word", ["positions", "one positon", "", "one voter with at most 0 comparisons", None, 3])
def test_an_unknown_unit_is_refused_with_the_list(tmp_path, word):
    with pytest.raises(InputError, match=f"protect must be one of {WORDS}, or the text of a guarantee"):
        Ledger.create(tmp_path / "ledger.db", "poll", word, 1)
    assert not (tmp_path / "ledger.db").exists()


def test_the_command_line_refuses_it_too(tmp_path):
    refused = created(tmp_path / "ledger.db", "--protect", "person")
    assert refused.exit_code == 1
    assert f"--protect must be one of {WORDS}" in str(refused.exception)
    refused = created(tmp_path / "ledger.db", "--protect", "ballot", "--max-per-voter", "3")
    assert refused.exit_code == 1
    assert "--max-per-voter needs --protect voter, got --protect ballot" in str(refused.exception)
    assert not (tmp_path / "ledger.db").exists()


def test_a_file_with_another_unit_still_opens(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("rankdp.privacy.ledger.charges.unit_of", lambda protect, _: protect)
        Ledger.create(tmp_path / "old.db", "poll", "one patient", 2).close()
    ledger = Ledger.open(tmp_path / "old.db")
    assert [budget.protects for budget in ledger.budgets] == ["one patient"]
    guarantee = rankdp.Guarantee("one patient", ledger.budgets[0].terms.epsilon / 2)
    assert ledger.spend(guarantee).charged[0].epsilon == 1
    ledger.verify()
