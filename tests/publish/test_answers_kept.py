"""Asked again, a voter gives the same answer; charged once. And `--ledger` on every command that spends."""

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.privacy.guarantee import ITEM_POSITION, ONE_SCORE

pytestmark = pytest.mark.slow

ITEMS = ("a", "b", "c", "d")


def poll(seed, items=ITEMS, voters=40):
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(4), (voters, 1)), axis=1)
    listed = [[ITEMS[i] for i in row] for row in orders]
    return rankdp.Rankings.from_orders(listed, items, voters=[f"v{row}" for row in range(voters)])


@pytest.fixture
def store(tmp_path):
    return rankdp.AnswerStore(tmp_path / "answers.db")


@pytest.fixture
def ledger(tmp_path):
    return rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 3)


def named(release):
    return [[release.value.items[i] for i in row] for row in release.value.orders]


def test_the_same_question_has_the_same_answer_and_costs_once(store, ledger):
    first = rankdp.privatize(poll(1), 1, answers=store, ledger=ledger)
    again = rankdp.privatize(poll(2), 1, answers=store, ledger=ledger)  # minds have changed: the answers stay
    turned = rankdp.privatize(poll(1, items=ITEMS[::-1]), 1, answers=store, ledger=ledger)
    assert named(first) == named(again) == named(turned)
    assert [entry.guarantee.epsilon for entry in ledger.history()] == [1]
    assert first.guarantee.epsilon == 1


def test_ids_that_a_frame_holds_as_floats_are_the_same_voters(store, ledger):
    rows = {f"rank_{place + 1}": [item] * 40 for place, item in enumerate(ITEMS)}
    tables = [pa.table({"voter": pa.array(range(40), kind), **rows}) for kind in (pa.int64(), pa.float64())]
    first, again = (rankdp.privatize(table, 1, answers=store, ledger=ledger) for table in tables)
    assert named(first) == named(again)  # another draw would be a second release for one charge
    assert len(ledger.history()) == 1


def test_ids_of_several_kinds_are_one_voter():
    twice = rankdp.Rankings.from_orders([["a", "b"], ["b", "a"]], voters=[7, 7.0])
    with pytest.raises(InputError, match="voter '7' has 2 rows"):
        rankdp.privatize(twice, 1)
    with pytest.raises(InputError, match="2 ballots come from 1 voter,"):
        rankdp.elect(twice, 1, rule="borda")


@pytest.mark.parametrize("mechanism", ["auto", "kendall", "tiers"])
def test_whole_rankings_are_kept_and_charged(store, tmp_path, mechanism):
    ledger = rankdp.Ledger.create(tmp_path / "whole.db", "poll", "ranking", 3)
    asked = {"protect": "ranking", "mechanism": mechanism, "answers": store, "ledger": ledger}
    first, again = (rankdp.privatize(poll(minds), 1, **asked) for minds in (1, 2))
    assert named(first) == named(again)
    assert [(entry.guarantee.protects, entry.guarantee.epsilon) for entry in ledger.history()] == [
        ("one whole ranking", 1)
    ]
    if mechanism == "kendall":  # the same name at another epsilon of a position
        with pytest.raises(InputError, match="is stored with kendall at epsilon 1/2, got kendall at epsilon 1"):
            rankdp.privatize(poll(1), 1, mechanism="kendall", answers=store)


def test_a_new_wave_costs(store, ledger):
    first = rankdp.privatize(poll(1), 1, answers=store, ledger=ledger)
    new = rankdp.privatize(poll(1), 1, answers=store, wave="second", ledger=ledger)
    assert named(first) != named(new)
    rankdp.privatize(poll(1), "0.5", answers=store, wave="third", ledger=ledger)
    assert sum(entry.guarantee.epsilon for entry in ledger.history()) == rankdp.privacy.exact.rational("2.5")
    with pytest.raises(rankdp.BudgetExceeded, match=r"remaining 0\.5"):
        rankdp.privatize(poll(1), 1, answers=store, wave="fourth", ledger=ledger)


def test_unpaid_answers_leave_less_for_a_plain_release(store, ledger):
    unpaid = rankdp.privatize(poll(1), 2, answers=store)
    assert named(rankdp.privatize(poll(1), 2, answers=store, ledger=ledger)) == named(unpaid)
    with pytest.raises(rankdp.BudgetExceeded):
        rankdp.privatize(poll(1), 2, ledger=ledger)
    rankdp.privatize(poll(1), 1, ledger=ledger)
    assert ledger.budgets[0].remaining == 0


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"epsilon": "0.5"}, "optimal at epsilon 1/2"),
        ({"mechanism": "kendall"}, "kendall at epsilon 1"),
        ({"purpose": "order"}, "optimal at epsilon 1"),
    ],
)
def test_asked_otherwise_in_the_same_wave_is_refused(store, ledger, other, told):
    rankdp.privatize(poll(1), 1, answers=store, ledger=ledger)
    best = [rankdp.candidates(4, 1, purpose=purpose)[0].name for purpose in ("aggregate", "order")]
    assert best == ["ulam", "optimal"]
    for voters in (40, 60):
        with pytest.raises(
            InputError, match=f"stored with ulam at epsilon 1, got .*{told}.*with wave, which is drawn"
        ) as no:
            rankdp.privatize(poll(1, voters=voters), **{"epsilon": 1} | other, answers=store, ledger=ledger)
        assert "\n" not in str(no.value)
    assert len(ledger.history()) == 1


def test_the_drawn_answers_are_about_the_voters(store):
    true = poll(3, voters=500)
    release = rankdp.privatize(true, 30, answers=store)
    assert np.mean(release.value.orders == true.orders) > 0.95


@pytest.mark.parametrize("wrong", ["no voters", "own epsilons", "partial", "rehearsal"])
def test_what_is_not_the_same_question_is_refused(store, wrong):
    table, options = poll(1), {"epsilon": 1, "listed_items_public": True}
    if wrong == "no voters":
        table = rankdp.Rankings.from_orders(table.orders, ITEMS)
    elif wrong == "own epsilons":
        options["epsilon"] = [1.0] * len(table)
    elif wrong == "partial":
        table = rankdp.Rankings.from_orders([["a", "b"], ["c", "d", "a"]], ITEMS, voters=["x", "y"])
    else:
        options["bits"] = rankdp.SeededBits(1)
    with pytest.raises(InputError, match="stored answers need voters' ids, one epsilon for all, complete rankings"):
        rankdp.privatize(table, answers=store, **options)


def test_files_and_the_command_line(tmp_path):
    run, budget = CliRunner(), tmp_path / "budget.db"

    def call(*arguments):
        told = run.invoke(cli, [str(one) for one in arguments])
        assert told.exception is None, (told.output, told.exception)
        return told.output

    call("budget", "create", budget, "--dataset", "poll", "--protect", "position", "-e", "3")
    poll(1).write(tmp_path / "poll.csv")
    for target in ("one.csv", "two.csv"):
        call(
            "privatize",
            tmp_path / "poll.csv",
            tmp_path / target,
            "-e",
            1,
            "--ledger",
            budget,
            "--answers",
            tmp_path / "a",
        )
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    assert json.loads((tmp_path / "two.csv.release.json").read_text())["parameters"]["answers"] == "kept"
    call("privatize", tmp_path / "poll.csv", tmp_path / "three.csv", "-e", 1, "--ledger", budget)
    shown = json.loads(call("budget", "show", budget, "--json"))
    assert len(shown["entries"]) == 2
    over = run.invoke(
        cli, ["privatize", *map(str, (tmp_path / "poll.csv", tmp_path / "x.csv", "-e", 2, "--ledger", budget))]
    )
    assert isinstance(over.exception, rankdp.BudgetExceeded)
    assert not (tmp_path / "x.csv").exists()
    assert call("budget", "verify", budget).strip()


def test_repeated_voters_on_the_command_line(tmp_path):
    source, target, budget = tmp_path / "poll.csv", tmp_path / "out.csv", tmp_path / "budget.db"
    source.write_text("voter,rank_1,rank_2\nann,tea,milk\nbob,milk,tea\n ann,tea,milk\n")
    ledger = rankdp.Ledger.create(budget, "poll", ITEM_POSITION, 3)
    command = ["privatize", str(source), str(target), "-e", "1", "--ledger", str(budget)]
    refused = CliRunner().invoke(cli, command)
    assert "voter 'ann' has 2 rows (1, 3, counted from 1)" in str(refused.exception)
    assert not ledger.history()
    told = CliRunner().invoke(cli, [*command, "--repeated-voters"])
    assert told.exception is None
    assert "up to 2 rows" in told.output
    assert [entry.guarantee.epsilon for entry in ledger.history()] == [2]
    assert json.loads((tmp_path / "out.csv.release.json").read_text())["guarantee"]["epsilon"] == "2"


def test_scores_and_votes_charge_too(tmp_path):
    run, budget = CliRunner(), tmp_path / "budget.db"
    rankdp.Ledger.create(budget, "grades", ONE_SCORE, 1)
    rankdp.Ledger.create(budget, "votes", "one comparison's outcome", 1)
    (tmp_path / "grades.csv").write_text("name,score\nann,4\nbob,2\n")
    (tmp_path / "votes.csv").write_text("winner,loser\na,b\nb,c\na,c\n")
    commands = {
        "grades": ["scores", tmp_path / "grades.csv", tmp_path / "out.csv", "--bounds", 1, 6, "--force"],
        "votes": ["rank", tmp_path / "votes.csv", "--protect", "outcome", "--items-from-data"],
    }
    for dataset, command in commands.items():
        arguments = [str(one) for one in [*command, "-e", "0.6", "--ledger", budget, "--dataset", dataset]]
        assert run.invoke(cli, arguments).exception is None
        assert isinstance(run.invoke(cli, arguments).exception, rankdp.BudgetExceeded)
