"""Permanent answers: asked again, a voter gives the stored one; every ledger pays for what it hears of."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from rankdp.errors import InputError
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.answers import AnswerStore, Question, _Answers
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.guarantee import ITEM_POSITION
from rankdp.privacy.ledger import BudgetExceeded, Ledger
from rankdp.privacy.voter_files import note_state

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
    return AnswerStore(tmp_path / "answers.db"), ledger, {"ledger": ledger, "guarantee": KENDALL.guarantee}


def spent(ledger):
    return ledger.budgets[0].standing.epsilon


def test_asking_again_returns_the_stored_answer_and_costs_nothing(setting, tmp_path):
    store, ledger, pays = setting
    question, asked = Question(1, "kendall", ITEMS), []
    first = store.answers(question, range(100), drawing(ORDERS, asked), **pays)
    assert len({tuple(order) for order in first.tolist()}) > 10
    changed = ORDERS[:, ::-1].copy()  # the truth has moved, the answers have not
    again = AnswerStore(tmp_path / "answers.db").answers(question, range(100), drawing(changed, asked), **pays)
    assert (again == first).all()
    assert asked == [100]
    assert spent(ledger) == 1
    more = store.answers(question, range(50, 150), drawing(ORDERS, asked), **pays)  # new voters, the same question
    assert (more[:50] == first[50:]).all()
    assert asked == [100, 50]
    assert spent(ledger) == 1
    assert store.known(question, [0, 149, 150]).tolist() == [True, True, False]


def test_another_wave_or_other_items_cost(setting):
    store, ledger, pays = setting
    asked = []
    store.answers(Question(1, "kendall", ITEMS), range(5), drawing(ORDERS, asked), **pays)
    store.answers(Question(1, "kendall", ITEMS, wave="2027"), range(5), drawing(ORDERS, asked), **pays)
    assert spent(ledger) == 2
    for other in (Question(1, "kendall", ITEMS, wave="2028"), Question(1, "kendall", ITEMS[:4])):
        with pytest.raises(BudgetExceeded):
            store.answers(other, range(5), drawing(ORDERS, asked), **pays)
    assert asked == [5, 5]  # nothing was drawn for what did not fit
    assert Question("1.0", "kendall", ITEMS).text == Question(1, "kendall", ITEMS).text


@pytest.mark.parametrize("voters", [range(5), range(3, 9), range(50, 60)])
def test_another_mechanism_or_epsilon_in_the_same_wave_is_refused(setting, voters):
    store, ledger, pays = setting
    first = store.answers(Question(1, "kendall", ITEMS, "may"), range(5), drawing(ORDERS, []), **pays)
    for other, told in (
        (Question(1, "ulam", ITEMS, "may"), "got ulam at epsilon 1:"),
        (Question("0.5", "kendall", ITEMS, "may"), "got kendall at epsilon 1/2:"),
        (Question(1, "kendall", ITEMS[::-1], "may"), "got kendall at epsilon 1 and the items in another order:"),
    ):
        with pytest.raises(InputError, match=f"wave 'may' of these items is stored with kendall at epsilon 1, {told}"):
            store.answers(other, voters, drawing(ORDERS, []))
    assert spent(ledger) == 1
    assert (store.answers(Question(1, "kendall", ITEMS, "may"), range(5), None, **pays) == first).all()


def test_answers_that_nobody_or_another_ledger_paid_for_are_charged(setting, tmp_path):
    store, ledger, pays = setting
    question = Question(1, "kendall", ITEMS)
    first = store.answers(question, range(5), drawing(ORDERS, []))
    assert (store.answers(question, range(5), None, **pays) == first).all()
    assert spent(ledger) == 1
    other = Ledger.create(tmp_path / "other.db", "poll", ITEM_POSITION, 2)
    same_file = Ledger.create(tmp_path / "ledger.db", "second poll", ITEM_POSITION, 2)
    for payer in (other, same_file):
        for voters in (range(3), range(5), range(2, 8)):  # once for all voters, those who join as well
            store.answers(question, voters, drawing(ORDERS, []), payer, KENDALL.guarantee)
        assert spent(payer) == 1
        payer.spend(KENDALL.guarantee)
        with pytest.raises(BudgetExceeded):
            payer.spend(KENDALL.guarantee)
    for each in (ledger, other, same_file):
        each.verify()


def test_a_part_of_the_voters_does_not_pay_for_another(setting):
    store, ledger, pays = setting
    question = Question(1, "kendall", ITEMS)
    for part, voters in (("north", range(5)), ("south", range(5, 10)), ("north", range(5))):
        regional = ledger.using(partition="region", part=part)
        store.answers(question, voters, drawing(ORDERS, []), regional, KENDALL.guarantee)
    assert [entry.part for entry in ledger.history()] == ["north", "south"]
    assert spent(ledger) == 1
    store.answers(question, range(10), drawing(ORDERS, []), **pays)
    assert spent(ledger) == 2


def test_a_budget_that_is_used_up_gets_no_stored_answer(setting):
    store, ledger, pays = setting
    ledger.spend(mechanism("kendall", 5, 2).guarantee)
    store.answers(Question(1, "kendall", ITEMS), range(5), drawing(ORDERS, []))
    with pytest.raises(BudgetExceeded):
        store.answers(Question(1, "kendall", ITEMS), range(5), None, **pays)


def backup(path):
    """A copy of a file of ours as it is on disk now."""
    copy = path.with_suffix(".backup")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def restore(path):
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    shutil.copy(path.with_suffix(".backup"), path)


def older(unpaid, setting, tmp_path):
    """Voters 5 to 9 have joined and were released under the ledger; then the file of answers is restored."""
    store, _, pays = setting
    question = Question(1, "kendall", ITEMS)
    store.answers(question, range(5), drawing(ORDERS, []), **pays)
    backup(tmp_path / "answers.db")
    if unpaid:  # drawn without the ledger's knowledge, released under it afterwards
        store.answers(question, range(5, 10), drawing(ORDERS, []))
    store.answers(question, range(5, 10), drawing(ORDERS, []), **pays)
    store.close()
    restore(tmp_path / "answers.db")
    return question


@pytest.mark.parametrize("unpaid", [False, True])
def test_an_older_copy_of_the_answers_is_refused(setting, tmp_path, unpaid):
    _, ledger, pays = setting
    question = older(unpaid, setting, tmp_path)
    restored = AnswerStore(tmp_path / "answers.db")
    for voters in (range(5, 10), range(5)):
        with pytest.raises(InputError, match=r"answers\.db: this file of answers is an older copy than the one that"):
            restored.answers(question, voters, drawing(ORDERS, []), **pays)
    # now it is as long as the ledger knows it, with as many voters drawn, and then longer
    for voters in (range(5, 10), range(10, 20)):
        restored.answers(question, voters, drawing(ORDERS, []))
        with pytest.raises(InputError, match="this file of answers is an older copy"):
            restored.answers(question, range(5), drawing(ORDERS, []), **pays)
    assert spent(ledger) == 1
    fresh = AnswerStore(tmp_path / "fresh.db")
    fresh.answers(question, range(5), drawing(ORDERS, []), **pays)
    assert spent(ledger) == 2


@pytest.mark.parametrize("calls", [1, 2])
def test_of_two_copies_that_answer_at_once_one_is_refused(setting, tmp_path, monkeypatch, calls):
    """Else each would show the same voters answers of its own, for one charge."""
    store, _, pays = setting
    question = Question(1, "kendall", ITEMS)
    store.answers(question, range(5), drawing(ORDERS, []), **pays)
    store.close()
    for ending in ("", ".key"):
        shutil.copy(tmp_path / f"answers.db{ending}", tmp_path / f"copy.db{ending}")
    copy = AnswerStore(tmp_path / "copy.db")
    for call in range(1, calls):
        copy.answers(question, range(20 * call, 20 * call + 5), drawing(ORDERS, []))

    def other_first(*args):
        monkeypatch.undo()
        store.answers(question, range(5, 10), drawing(ORDERS, []), **pays)  # after the copy's check, before its note
        note_state(*args)

    monkeypatch.setattr("rankdp.privacy.answers.note_state", other_first)
    with pytest.raises(InputError, match=r"copy\.db: this file of answers is an older copy than the one that"):
        copy.answers(question, range(5, 10), drawing(ORDERS, []), **pays)


def test_an_older_copy_of_the_ledger_is_refused(setting, tmp_path):
    store, ledger, pays = setting
    question = Question(1, "kendall", ITEMS)
    backup(tmp_path / "ledger.db")
    store.answers(question, range(5), drawing(ORDERS, []), **pays)
    ledger.close()
    restore(tmp_path / "ledger.db")
    restored = Ledger.open(tmp_path / "ledger.db")
    restored.spend(KENDALL.guarantee)
    for voters in (range(5), range(9)):
        with pytest.raises(InputError, match=r"ledger\.db: this ledger is an older copy than the one that paid"):
            store.answers(question, voters, drawing(ORDERS, []), restored, KENDALL.guarantee)
    assert spent(restored) == 1


def test_a_file_of_answers_without_events_is_charged_and_gets_them(setting, tmp_path):
    store, ledger, pays = setting
    question = Question(1, "kendall", ITEMS)
    first = store.answers(question, range(5), drawing(ORDERS, []), **pays)
    store.close()
    with closing(sqlite3.connect(tmp_path / "answers.db")) as file:  # as it was before files knew each other
        file.executescript("DROP TABLE events; DROP TABLE head")
    old = AnswerStore(tmp_path / "answers.db")
    assert (old.answers(question, range(5), None, **pays) == first).all()
    assert spent(ledger) == 2
    old.answers(question, range(9), drawing(ORDERS, []), **pays)
    assert spent(ledger) == 2


def test_a_crash_between_the_answers_and_the_note_locks_nobody_out(setting, monkeypatch):
    store, ledger, pays = setting
    question = Question(1, "kendall", ITEMS)
    with monkeypatch.context() as broken:
        broken.setattr("rankdp.privacy.answers.note_state", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.answers(question, range(5), drawing(ORDERS, []), **pays)
    store.answers(question, range(5), None, **pays)
    assert spent(ledger) == 1
    ledger.verify()


def test_a_ledger_is_charged_for_the_epsilon_of_the_question(setting):
    store, ledger, _ = setting
    for guarantee in (None, mechanism("kendall", 5, "0.5").guarantee):
        with pytest.raises(InputError, match="guarantee must state at least the question's epsilon"):
            store.answers(Question(1, "kendall", ITEMS), range(5), drawing(ORDERS, []), ledger, guarantee)
    assert not ledger.history()


def test_a_voter_twice_in_a_call_is_refused(setting):
    store, ledger, pays = setting
    with pytest.raises(InputError, match="voters must name each voter once"):
        store.answers(Question(1, "kendall", ITEMS), ["ann", "bob", " ann "], drawing(ORDERS, []), **pays)
    assert not ledger.history()


def test_spaces_are_not_part_of_an_id(setting):
    store, _, _ = setting
    question = Question(1, "kendall", ITEMS)
    first = store.answers(question, ["ann", 7], drawing(ORDERS, []))
    assert (store.answers(question, [" ann", "7 "], None) == first).all()


@pytest.mark.parametrize("same", [7.0, np.float32(7), np.int16(7), Decimal("7.00"), "7", "7.0", " 7. "])
def test_a_number_is_one_id_in_a_column_of_any_kind(setting, same):
    store, _, pays = setting
    question = Question(1, "kendall", ITEMS)
    first = store.answers(question, [7, 0.5], drawing(ORDERS, []), **pays)
    assert (store.answers(question, [same, "0.5"], None, **pays) == first).all()  # no second draw for one charge
    with pytest.raises(InputError, match="each voter once"):
        store.answers(question, [7, same], None)


def test_a_draw_that_fails_stores_nothing_and_leaves_the_charge(setting):
    store, ledger, pays = setting
    question = Question(1, "kendall", ITEMS)

    def fail(rows):
        raise KeyError

    with pytest.raises(KeyError):
        store.answers(question, range(5), fail, **pays)
    with pytest.raises(InputError, match="draw must return one order for each of the 5 rows"):
        store.answers(question, range(5), lambda rows: ORDERS[:3], **pays)
    assert not store.known(question, range(5)).any()
    assert spent(ledger) == 2  # spent: noise may have been drawn
    with pytest.raises(BudgetExceeded):
        store.answers(question, range(5), drawing(ORDERS, []), **pays)


def test_the_key_is_private_and_needed(tmp_path):
    store = AnswerStore(tmp_path / "answers.db")
    key = tmp_path / "answers.db.key"
    assert len(key.read_bytes()) == 32
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    store.answers(Question(1, "kendall", ITEMS), ["ann of kent"], drawing(ORDERS, []))
    store.close()
    assert b"ann of kent" not in (tmp_path / "answers.db").read_bytes()
    key.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="the key could not be read"):
        AnswerStore(tmp_path / "answers.db")
    again = AnswerStore(tmp_path / "answers.db", tmp_path / "elsewhere")
    assert again.known(Question(1, "kendall", ITEMS), ["ann of kent", "bob"]).tolist() == [True, False]
    key.write_bytes(b"k" * 32)
    wrong = AnswerStore(tmp_path / "answers.db")
    for call in (wrong.known, lambda question, voters: wrong.answers(question, voters, drawing(ORDERS, []))):
        with pytest.raises(InputError, match=r"answers\.db: the key is not the one that this file of ans"):
            call(Question(1, "kendall", ITEMS), ["ann"])
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


def test_a_file_that_another_process_makes_meanwhile_is_no_other_kind(tmp_path):
    path = tmp_path / "answers.db"
    path.touch()
    with closing(sqlite3.connect(path)) as connection:

        def execute(query):
            found = connection.execute(query).fetchone()
            _Answers(path, 1.0, create=True)  # another process, between two looks
            return SimpleNamespace(fetchone=lambda: found)

        _Answers._check_kind(
            SimpleNamespace(application=_Answers.application, path=path, what=_Answers.what),
            SimpleNamespace(execute=execute),
            empty=True,
        )


def test_a_hundred_thousand_voters(tmp_path):
    store, orders = AnswerStore(tmp_path / "answers.db"), np.tile(np.arange(5, dtype=np.int32), (100_000, 1))
    question, asked = Question(Fraction(1, 2), "kendall", ITEMS), []
    first = store.answers(question, range(100_000), drawing(orders, asked))
    assert (store.answers(question, range(100_000), drawing(orders, asked)) == first).all()
    assert asked == [100_000]
