"""The ledger: exact totals, what fits and what does not, units, parts, tampering, and what a refusal says."""

import json
import os
import random
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.errors import InputError, SystemProblem
from rankdp.privacy.bits import SecureBits, SeededBits
from rankdp.privacy.guarantee import ITEM_POSITION, WHOLE_RANKING, Guarantee
from rankdp.privacy.ledger import BudgetExceeded, Ledger, LedgerBroken, spending, verify_file
from rankdp.privacy.release import Provenance
from rankdp.privacy.store import Store

pytestmark = pytest.mark.slow

COMPARISON = "one comparison"
VOTER = "one voter with at most 3 comparisons"


def pure(epsilon, protects=COMPARISON, **more):
    return Guarantee(protects, Fraction(epsilon), local=False, **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def spent(ledger):
    return ledger.budgets[0].standing.epsilon


def test_a_tenth_ten_times_fits_a_budget_of_one(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    for _ in range(10):
        ledger.spend(pure("0.1"))
    assert spent(ledger) == 1
    with pytest.raises(BudgetExceeded, match=r"requested 1e-09; spent 1 .*remaining 0; short by 1e-09; nothing"):
        ledger.spend(pure(Fraction(1, 10**9)))
    assert len(ledger.history()) == 10


def test_a_refusal_says_every_number(path):
    ledger = Ledger.create(path, "poll", COMPARISON, "1")
    ledger.spend(pure("0.75"), "first")
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.spend(pure("0.3"))
    assert str(refusal.value) == (
        "'poll' (one comparison) has a budget of epsilon 1; requested 0.3; spent 0.75 (counted by basic); "
        "remaining 0.25; short by 0.05; an epsilon of 0.25 would still fit"
    )
    numbers = refusal.value
    assert (numbers.requested, numbers.spent, numbers.remaining) == (Fraction("0.3"), Fraction("0.75"), Fraction(1, 4))
    assert (numbers.short_by, numbers.fits) == (Fraction("0.05"), Fraction(1, 4))
    ledger.spend(pure(numbers.fits))
    assert spent(ledger) == 1


def test_a_block_commits_what_was_released(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with ledger.charge(pure("0.5"), what="board") as charge:
        assert ledger.history()[0].state == "reserved"
        assert spent(ledger) == Fraction(1, 2)
        charge.commit(Provenance.now("copeland", {"items": 3, "wide": float("inf")}, SecureBits()))
    (entry,) = ledger.history()
    assert (entry.state, entry.what, entry.release["mechanism"]) == ("committed", "board", "copeland")
    assert entry.release["parameters"] == {"items": 3, "wide": "inf"}
    with pytest.raises(InputError, match="must be committed or cancelled once"):
        charge.cancel("too late")
    ledger.verify()


def test_an_exception_leaves_the_charge_spent(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with pytest.raises(KeyError), ledger.charge(pure("0.5")):
        raise KeyError
    assert ledger.history()[0].state == "reserved"
    assert spent(ledger) == Fraction(1, 2)


def test_a_cancelled_charge_is_given_back_and_stays_on_record(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with ledger.charge(pure(1)) as charge:
        charge.cancel("the file is missing")
    assert (ledger.history()[0].state, ledger.history()[0].because) == ("cancelled", "the file is missing")
    assert spent(ledger) == 0
    with pytest.raises(InputError, match="because must say why"):
        ledger.charge(pure(1)).cancel(" ")
    ledger.verify()


def test_a_rehearsal_is_not_paid_for(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with (
        pytest.raises(InputError, match="must not be given with a rehearsal"),
        spending(ledger, pure(1), "board", SeededBits(1)),
    ):
        pass
    with ledger.charge(pure("0.1")) as charge, pytest.raises(InputError, match="a rehearsal carries no guarantee"):
        charge.commit(Provenance.now("copeland", {}, SeededBits(1)))
    with spending(None, pure(1), "board", SecureBits()) as charge:
        charge.commit(Provenance.now("copeland", {}, SecureBits()))
    with spending(ledger, pure("0.1"), "board", SecureBits()):
        pass
    assert [(entry.what, entry.state) for entry in ledger.history()] == [("", "committed"), ("board", "committed")]


FAILURES = [
    (KeyboardInterrupt(), "cancelled"),
    (OSError(28, "No space left on device"), "cancelled"),
    (SystemProblem("out.csv: the file could not be written"), "cancelled"),
    (InputError("the solver did not get there"), "reserved"),  # it might depend on the data
    (MemoryError(), "reserved"),
    (ZeroDivisionError(), "reserved"),
]


@pytest.mark.parametrize(("problem", "state"), FAILURES, ids=[type(problem).__name__ for problem, _ in FAILURES])
def test_a_failed_release_is_given_back_when_nothing_left_and_the_failure_is_not_about_the_data(path, problem, state):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with pytest.raises(type(problem)) as raised, spending(ledger, pure(1), "board", SecureBits()):
        raise problem
    (entry,) = ledger.history()
    assert entry.state == state
    assert (ledger.budgets[0].standing.epsilon == 0) == (state == "cancelled")
    fate = "was given back" if state == "cancelled" else "stays spent"
    assert raised.value.__notes__[-1:] == [f"epsilon 1 of data set 'poll' {fate} (entry 2)"]
    assert ledger.told() == raised.value.__notes__[-1]
    if state == "cancelled":
        assert entry.because is not None
        assert "nothing of it has left the process" in entry.because
    ledger.verify()


@pytest.mark.parametrize("way", ["leaves", "commit"])
def test_what_may_have_left_the_process_stays_spent(path, way):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with pytest.raises(KeyboardInterrupt) as raised, spending(ledger, pure("0.5"), "board", SecureBits()) as charge:  # noqa: PT012
        if way == "leaves":
            charge.leaves()
        else:
            charge.commit(Provenance.now("copeland", {}, SecureBits()))
        raise KeyboardInterrupt
    assert raised.value.__notes__ == ["epsilon 0.5 of data set 'poll' stays spent (entry 2)"]
    assert ledger.budgets[0].standing.epsilon == Fraction(1, 2)
    ledger.verify()


def test_a_charge_that_cannot_be_given_back_stays_spent_and_says_so(path, monkeypatch):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with pytest.raises(OSError, match="full") as raised, spending(ledger, pure(1), "board", SecureBits()):  # noqa: PT012
        monkeypatch.setattr(Store, "write", lambda *_, **__: (_ for _ in ()).throw(InputError("the disk is full")))
        raise OSError("full")
    assert raised.value.__notes__ == ["epsilon 1 of data set 'poll' stays spent (entry 2)"]


def test_an_interrupt_while_charging_says_that_nobody_knows(path, monkeypatch):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    monkeypatch.setattr(Ledger, "charge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as raised, spending(ledger, pure(1), "board", SecureBits()):
        pass
    assert "it is not known whether this was charged" in raised.value.__notes__[0]


def test_a_charge_by_hand_is_never_given_back_by_itself_and_says_what_it_cost(path):
    Ledger.create(path, "poll", COMPARISON, 1)
    ledger = Ledger.create(path, "poll", VOTER, 10)
    assert ledger.told() == "nothing was charged"
    with pytest.raises(KeyboardInterrupt) as raised, ledger.charge(pure("0.5"), convert=True):
        raise KeyboardInterrupt
    assert raised.value.__notes__ == ["epsilon 0.5 and epsilon 1.5 of data set 'poll' stays spent (entry 3)"]


def test_several_data_sets_and_units_in_one_file(path):
    Ledger.create(path, "poll", COMPARISON, 1)
    Ledger.create(path, "poll", VOTER, 2)
    Ledger.create(path, "other", COMPARISON, 1)
    with pytest.raises(InputError, match="has a budget for 'one comparison' already"):
        Ledger.create(path, "poll", COMPARISON, 5)
    with pytest.raises(InputError, match=r"must be one that has a budget here \('other', 'poll'\), got nothing"):
        Ledger.open(path)
    ledger = Ledger.open(path, "poll")
    with pytest.raises(InputError, match="must not pay for a release that protects 'one comparison', unless converted"):
        ledger.spend(pure("0.5"))
    assert [budget.standing.epsilon for budget in ledger.budgets] == [0, 0]  # all or none
    entry = ledger.spend(pure("0.5"), convert=True)
    assert [cost.epsilon for cost in entry.charged] == [Fraction(1, 2), Fraction(3, 2)]
    assert entry.converted[0] is None
    assert "3 comparisons of a voter, epsilon 3 x 0.5 = 1.5; how many comparisons" in entry.converted[1]
    with pytest.raises(BudgetExceeded, match=r"at most 3 comparisons. has a budget of epsilon 2"):
        ledger.spend(pure("0.25"), convert=True)
    assert [budget.standing.epsilon for budget in ledger.budgets] == [Fraction(1, 2), Fraction(3, 2)]
    assert spent(Ledger.open(path, "other")) == 0
    with pytest.raises(InputError, match="releases that a new budget would not include"):
        Ledger.create(path, "poll", "one comparison's outcome", 5)
    ledger.verify()


@pytest.mark.parametrize(
    ("budget", "release", "cost"),
    [
        (VOTER, pure(1), 3),
        (COMPARISON, pure(1, VOTER), 2),  # a replaced comparison may belong to another voter
        ("one comparison's outcome", pure(1, VOTER), 1),
        ("one comparison's outcome", pure(1), 1),
        (WHOLE_RANKING, Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=Fraction(5)), 5),
        (ITEM_POSITION, Guarantee(WHOLE_RANKING, Fraction(1)), 1),
        ("one ballot", pure(1, "one voter"), 2),  # one goes, another comes
    ],
)
def test_units_convert_on_request_only(path, budget, release, cost):
    ledger = Ledger.create(path, "poll", budget, 10)
    with pytest.raises(InputError, match="unless converted"):
        ledger.spend(release)
    assert ledger.spend(release, convert=True).charged[0].epsilon == cost
    with spending(ledger.using(convert=True), release, "again", SecureBits()):
        pass
    assert spent(ledger) == 2 * cost


@pytest.mark.parametrize("budget", ["one voter", VOTER, "one voter's ballot"])
def test_a_budget_for_voters_pays_for_any_bound(path, budget):
    ledger = Ledger.create(path, "poll", budget, 10)
    assert ledger.spend(pure(1, "one voter")).charged[0].epsilon == 1
    if budget == VOTER:
        ledger.spend(pure(1, "one voter with at most 5 comparisons"))
        assert spent(ledger) == 2


@pytest.mark.parametrize(
    ("budget", "release"),
    [
        (COMPARISON, pure(1, "one comparison's outcome")),
        (VOTER, pure(1, "one comparison's outcome")),
        (VOTER, pure(1, "one voter with at most 2 comparisons")),  # and not those with 3
        ("one voter", pure(1, VOTER)),
        (COMPARISON, pure(1, ITEM_POSITION)),
        (VOTER, pure(1, "one score")),
        ("one voter's ballot", pure(1, "one ballot")),  # which may state how many voted
    ],
)
def test_other_units_never_mix(path, budget, release):
    ledger = Ledger.create(path, "poll", budget, 10)
    with pytest.raises(InputError, match="no conversion is known"):
        ledger.spend(release, convert=True)
    assert spent(ledger) == 0


def test_a_group_pays_for_delta_too(path):
    import mpmath

    ledger = Ledger.create(path, "poll", VOTER, 10, "0.1", accounting="basic")
    entry = ledger.spend(pure(1, delta=Fraction(1, 10**6), rho=0.01), convert=True)
    exact = (mpmath.exp(3) - 1) / (mpmath.exp(1) - 1) / 10**6
    assert 0 <= float(entry.charged[0].delta) / exact - 1 < 1e-12
    with pytest.raises(InputError, match="delta must stay below 1 for 3 comparisons"):
        ledger.spend(pure(3, delta=Fraction(1, 100)), convert=True)


def test_a_comparison_that_changes_its_voter_is_two_changes(path):
    import mpmath

    ledger = Ledger.create(path, "poll", COMPARISON, 10, "0.1", accounting="basic")
    entry = ledger.spend(pure(1, VOTER, delta=Fraction(1, 10**6), rho=0.01), convert=True)
    assert 0 <= float(entry.charged[0].delta) / float((mpmath.exp(1) + 1) / 10**6) - 1 < 1e-12
    assert "2 voters, because a comparison may move from one to the other, epsilon 2 x 1 = 2" in entry.converted[0]


def test_a_partition_costs_its_most_expensive_part(path):
    ledger = Ledger.create(path, "poll", VOTER, 2)
    for part, epsilon in (("north", "0.5"), ("south", "1"), ("north", "0.25")):
        ledger.spend(pure(epsilon, VOTER), partition="region", part=part)
    assert spent(ledger) == 1
    ledger.spend(pure("0.5", VOTER))  # everybody
    ledger.spend(pure("0.25", VOTER), partition="age", part="old")  # somebody is southern and old
    assert spent(ledger) == Fraction(7, 4)
    with pytest.raises(BudgetExceeded, match=r"an epsilon of 0.25 would still fit") as refusal:
        ledger.spend(pure("0.3", VOTER), partition="region", part="south")
    assert refusal.value.fits == Fraction(1, 4)
    with pytest.raises(BudgetExceeded, match=r"an epsilon of 0.5 would still fit"):
        ledger.spend(pure("0.6", VOTER), partition="region", part="north")
    with pytest.raises(InputError, match="part 'north' belongs to the partition 'region' already"):
        ledger.spend(pure("0.1", VOTER), partition="age", part="north")
    with pytest.raises(InputError, match="partition and part need each other"):
        ledger.spend(pure("0.1", VOTER), part="north")
    with ledger.charge(pure("0.5", VOTER), partition="region", part="north") as charge:
        charge.cancel("nothing was read")
    ledger.verify()


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=5, max_denominator=1000),
    st.lists(
        st.tuples(
            st.fractions(min_value=Fraction(1, 900), max_value=3, max_denominator=997),
            st.sampled_from([None, "north", "south"]),
            st.booleans(),
        ),
        max_size=12,
    ),
)
@settings(max_examples=15)
def test_any_sequence_is_exact_and_never_exceeds(tmp_path_factory, total, requests):
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with closing(Ledger.create(path, "poll", VOTER, total)) as ledger:
        sums = {None: Fraction(0), "north": Fraction(0), "south": Fraction(0)}
        for epsilon, part, cancel in requests:
            after = sums | {part: sums[part] + epsilon}
            fits = after[None] + max(after["north"], after["south"]) <= total
            place = {} if part is None else {"partition": "region", "part": part}
            if not fits:
                with pytest.raises(BudgetExceeded) as refusal:
                    ledger.charge(pure(epsilon, VOTER), **place)
                assert refusal.value.fits < epsilon
                if refusal.value.fits:
                    ledger.charge(pure(refusal.value.fits, VOTER), **place).cancel("a trial")
                continue
            charge = ledger.charge(pure(epsilon, VOTER), **place)
            if cancel:
                charge.cancel("a trial")
            else:
                sums = after
            assert spent(ledger) == sums[None] + max(sums["north"], sums["south"]) <= total
        ledger.verify()


# -- tampering ---------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 10, "1e-5")
    for number in range(3):
        with ledger.charge(pure("0.5"), what=f"board {number}"):
            pass
    ledger.charge(pure("0.5"), what="unfinished")
    ledger.close()
    return path


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(statement, values)


def paths_in(data, before=()):
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, (dict, list)) and value:
            yield from paths_in(value, (*before, key))
        else:
            yield (*before, key)


def test_every_changed_field_is_found_and_its_entry_named(filled):
    with closing(sqlite3.connect(filled)) as connection:
        events = connection.execute("SELECT number, body FROM events").fetchall()
    assert [json.loads(body)["kind"] for _, body in events].count("reserve") == 4
    for number, body in events:
        for field in paths_in(json.loads(body)):
            data = json.loads(body)
            inner = data
            for key in field[:-1]:
                inner = inner[key]
            inner[field[-1]] = "tampered"
            changed = json.dumps(data, sort_keys=True, separators=(",", ":"))
            change(filled, "UPDATE events SET body = ? WHERE number = ?", changed, number)
            with closing(sqlite3.connect(filled)) as connection:
                assert connection.execute("SELECT body FROM events WHERE number = ?", (number,)).fetchone()[0] != body
            with pytest.raises(LedgerBroken, match=f"entry {number} is broken"):
                verify_file(filled)
            change(filled, "UPDATE events SET body = ? WHERE number = ?", body, number)
    Ledger.open(filled).verify()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE events SET hash = 'x' WHERE number = 4", "entry 4 is broken"),
        ("DELETE FROM events WHERE number = 4", "entry 4 is missing"),
        ("DELETE FROM events WHERE number >= 6", "entry 6 is broken: the head states 8 entries"),
        ("UPDATE head SET events = 6", "entry 7 is broken: the head states 6 entries"),
        ("UPDATE head SET hash = 'x'", "the head states 8 entries"),
        ("DELETE FROM head", "entry 1 is broken: the head states 0 entries"),
        ("UPDATE events SET number = 99 WHERE number = 8", "entry 8 is missing"),
        ("DELETE FROM unfinished", "the list of unfinished charges"),
        ("UPDATE accounts SET state = replace(state, '\"2\"', '\"1\"')", "the total of the budget of entry 1"),
    ],
)
def test_other_tampering_is_found(filled, statement, words):
    change(filled, statement)
    with pytest.raises(LedgerBroken, match=words):
        Ledger.open(filled).verify()


def test_a_deleted_budget_refuses_to_be_charged(filled):
    ledger = Ledger.open(filled)
    change(filled, "DELETE FROM accounts")
    with pytest.raises(LedgerBroken, match="the budget of 'poll' is gone"):
        ledger.spend(pure("0.1"))
    with pytest.raises(LedgerBroken, match="the total of the budget of entry 1"):
        ledger.verify()


def test_a_budget_that_cannot_be_read_is_a_sentence(filled):
    change(filled, "UPDATE accounts SET state = 'nothing'")
    with pytest.raises(LedgerBroken, match="the budget of entry 1 cannot be read"):
        Ledger.open(filled)


def test_a_noted_head_tells_an_older_copy(filled, tmp_path):
    copy = tmp_path / "copy.db"
    copy.write_bytes(filled.read_bytes())
    ledger = Ledger.open(filled)
    earlier = ledger.verify().head
    ledger.spend(pure("0.1"))
    head = ledger.verify(earlier).head
    Ledger.open(copy).verify(earlier)
    with pytest.raises(LedgerBroken, match="is not in this chain: it was rewritten, or is an older copy"):
        Ledger.open(copy).verify(head)


# -- files -------------------------------------------------------------------------------------------------------


def test_wrong_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no ledger here"):
        Ledger.open(tmp_path / "none.db")
    text = tmp_path / "text.db"
    text.write_text("not a database at all, but a text that is long enough to be read as one" * 20)
    for action in (lambda: Ledger.open(text), lambda: Ledger.create(text, "poll", COMPARISON, 1)):
        with pytest.raises(InputError, match="it is not a ledger"):
            action()
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
    for action in (lambda: Ledger.open(other), lambda: Ledger.create(other, "poll", COMPARISON, 1)):
        with pytest.raises(InputError, match="this is not a ledger"):
            action()
    with pytest.raises(InputError, match="cannot be opened"):
        Ledger.create(tmp_path / "no" / "where.db", "poll", COMPARISON, 1)


@pytest.mark.parametrize(
    ("change_", "words"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0"),
        ({"epsilon": "1e400"}, "epsilon must be at most 1,000,000,000 for a budget, got 1e400"),
        ({"delta": 1}, "delta must be at least 0 and below 1"),
        ({"dataset": " "}, "dataset must be a text"),
        ({"accounting": "best"}, "accounting must be one of"),
        ({"accounting": "renyi"}, "needs a budget with a delta above 0"),
    ],
)
def test_wrong_budgets_are_refused(path, change_, words):
    with pytest.raises(InputError, match=words):
        Ledger.create(**({"path": path, "dataset": "poll", "protect": COMPARISON, "epsilon": 1} | change_))
    assert not path.exists()


def test_a_file_that_was_replaced_or_removed_is_noticed(path, tmp_path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    Ledger.create(tmp_path / "new.db", "poll", COMPARISON, 5).close()
    (tmp_path / "new.db").rename(path)
    with pytest.raises(InputError, match="was removed or replaced while it was open; nothing counts as charged"):
        ledger.spend(pure("0.1"))
    path.unlink()
    with pytest.raises(InputError, match="was removed or replaced"):
        ledger.spend(pure("0.1"))
    ledger.close()
    with pytest.raises(InputError, match="it cannot be opened"):
        ledger.spend(pure("0.1"))


def test_a_lock_that_stays_is_one_sentence(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1, wait=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=r"kept it locked for 0.05 seconds\); nothing counts as charged"):
            ledger.spend(pure("0.1"))
    ledger.spend(pure("0.1"))


def test_threads_share_a_ledger(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 10)
    refused = []

    def work():
        for _ in range(15):
            try:
                ledger.spend(pure("0.2"))
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(ledger) == 10
    assert len(refused) == 10
    ledger.verify()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_does_not_share_a_connection(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    ledger.spend(pure("0.1"))
    child = os.fork()
    if child == 0:
        try:
            ledger.spend(pure("0.2"))
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    ledger.spend(pure("0.3"))
    assert spent(ledger) == Fraction(3, 5)
    ledger.verify()


def test_numbers_too_long_for_text_are_refused(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    with pytest.raises(InputError, match="below 4,000 digits"):
        ledger.spend(pure(Fraction(1, random.Random(0).getrandbits(20000))))
    ledger.spend(pure(1))


def test_a_charge_waits_for_the_disk(path):
    ledger = Ledger.create(path, "poll", COMPARISON, 1)
    seen = []

    def look(writing):
        seen.append([writing.rows(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")])

    ledger._store.write(look)
    ledger._store.write(look, durable=False)
    ledger._store.write(look)
    assert seen == [["wal", 2], ["wal", 1], ["wal", 2]]  # FULL, NORMAL for what may be lost, FULL
