"""Permanent answers: asked again, a voter gives the stored ranking, and the ledger is charged once a question."""

import os
import stat
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from rankdp.errors import InputError
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.answers import AnswerStore, Question
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.guarantee import ITEM_POSITION
from rankdp.privacy.ledger import BudgetExceeded, Ledger

pytestmark = pytest.mark.slow

ITEMS = ("a", "b", "c", "d", "e")
KENDALL = mechanism("kendall", 5, 1)
ORDERS = np.tile(np.arange(5, dtype=np.int32), (200, 1))


def drawing(orders, asked):
    def draw(rows):
        asked.append(len(rows))
        return KENDALL.sample(orders[rows], SecureBits())

    return draw


@pytest.fixture
def setting(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", ITEM_POSITION, 2)
    return AnswerStore(tmp_path / "answers.db"), ledger, (lambda: ledger.spend(KENDALL.guarantee))


def test_asking_again_returns_the_stored_answer_and_costs_nothing(setting, tmp_path):
    store, ledger, charge = setting
    question, asked = Question(1, "kendall", ITEMS), []
    first = store.answers(question, range(100), drawing(ORDERS, asked), charge)
    assert len({tuple(order) for order in first.tolist()}) > 10
    changed = ORDERS[:, ::-1].copy()  # the truth has moved, the answers have not
    again = AnswerStore(tmp_path / "answers.db").answers(question, range(100), drawing(changed, asked), charge)
    assert (again == first).all()
    assert asked == [100]
    assert ledger.budgets[0].standing.epsilon == 1
    more = store.answers(question, range(50, 150), drawing(ORDERS, asked), charge)  # new voters, the same question
    assert (more[:50] == first[50:]).all()
    assert asked == [100, 50]
    assert ledger.budgets[0].standing.epsilon == 1
    assert store.known(question, [0, 149, 150]).tolist() == [True, True, False]


def test_another_question_costs(setting):
    store, ledger, charge = setting
    asked = []
    store.answers(Question(1, "kendall", ITEMS), range(5), drawing(ORDERS, asked), charge)
    store.answers(Question(1, "kendall", ITEMS, wave="2027"), range(5), drawing(ORDERS, asked), charge)
    assert ledger.budgets[0].standing.epsilon == 2
    for other in (Question(1, "ulam", ITEMS), Question("0.5", "kendall", ITEMS), Question(1, "kendall", ITEMS[:4])):
        with pytest.raises(BudgetExceeded):
            store.answers(other, range(5), drawing(ORDERS, asked), charge)
    assert asked == [5, 5]  # nothing was drawn for what did not fit
    assert Question("1.0", "kendall", ITEMS).text == Question(1, "kendall", ITEMS).text


def test_a_voter_twice_in_a_table_has_one_answer(setting):
    store, _, charge = setting
    asked = []
    answers = store.answers(Question(1, "kendall", ITEMS), ["ann", "bob", "ann"], drawing(ORDERS, asked), charge)
    assert (answers[0] == answers[2]).all()
    assert asked == [2]


def test_a_draw_that_fails_stores_nothing_and_leaves_the_charge(setting):
    store, ledger, charge = setting
    question = Question(1, "kendall", ITEMS)

    def fail(rows):
        raise KeyError

    with pytest.raises(KeyError):
        store.answers(question, range(5), fail, charge)
    with pytest.raises(InputError, match="draw must return one order for each of the 5 rows"):
        store.answers(question, range(5), lambda rows: ORDERS[:3], charge)
    assert not store.known(question, range(5)).any()
    assert ledger.budgets[0].standing.epsilon == 2  # spent: noise may have been drawn
    with pytest.raises(BudgetExceeded):
        store.answers(question, range(5), drawing(ORDERS, []), charge)


def test_the_key_is_private_and_needed(tmp_path):
    store = AnswerStore(tmp_path / "answers.db")
    key = tmp_path / "answers.db.key"
    assert len(key.read_bytes()) == 32
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    store.answers(Question(1, "kendall", ITEMS), ["ann"], drawing(ORDERS, []))
    store.close()
    assert b"ann" not in (tmp_path / "answers.db").read_bytes()
    key.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="the key of the answers could not be read"):
        AnswerStore(tmp_path / "answers.db")
    again = AnswerStore(tmp_path / "answers.db", tmp_path / "elsewhere")
    assert again.known(Question(1, "kendall", ITEMS), ["ann", "bob"]).tolist() == [True, False]
    key.write_bytes(b"short")
    with pytest.raises(InputError, match="a key must have at least 32 bytes, got 5"):
        AnswerStore(tmp_path / "answers.db")
    with pytest.raises(InputError, match="at least one voter"):
        again.answers(Question(1, "kendall", ITEMS), [], drawing(ORDERS, []))


def test_partial_answers_are_padded(tmp_path):
    store = AnswerStore(tmp_path / "answers.db")
    question = Question(1, "kendall", ITEMS)
    store.answers(question, ["ann"], lambda rows: ORDERS[:1, :3])
    assert store.answers(question, ["ann", "bob"], lambda rows: ORDERS[:1]).tolist() == [
        [0, 1, 2, -1, -1],
        [0, 1, 2, 3, 4],
    ]


def test_processes_agree_on_one_answer(tmp_path):
    code = """
import sys, numpy as np
from rankdp.privacy.answers import AnswerStore, Question
from rankdp.mechanisms.registry import mechanism
kendall = mechanism("kendall", 5, 1)
store = AnswerStore(sys.argv[1])
orders = np.tile(np.arange(5, dtype=np.int32), (300, 1))
question = Question(1, "kendall", tuple("abcde"))
first = store.answers(question, range(300), lambda rows: kendall.sample(orders[rows]))
print(first.tolist(), store.answers(question, range(300), None).tolist() == first.tolist())
"""
    path = str(tmp_path / "answers.db")
    running = [subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) for _ in range(4)]
    assert len({process.communicate()[0] for process in running}) == 1
    assert [process.returncode for process in running] == [0] * 4


def test_a_hundred_thousand_voters(tmp_path):
    store, orders = AnswerStore(tmp_path / "answers.db"), np.tile(np.arange(5, dtype=np.int32), (100_000, 1))
    question, asked = Question(Fraction(1, 2), "kendall", ITEMS), []
    first = store.answers(question, range(100_000), drawing(orders, asked))
    assert (store.answers(question, range(100_000), drawing(orders, asked)) == first).all()
    assert asked == [100_000]
