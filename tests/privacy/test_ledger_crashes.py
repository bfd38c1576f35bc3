"""Never a release without its charge: kills, lost power, full disks, read-only files, and sixteen processes at once.

A worker's "release" is a line in a file, on disk, written between reserve and commit. Whatever happens, the ledger must
have at least as many charges as there are lines.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from contextlib import closing
from fractions import Fraction

import pytest

from rankdp.errors import InputError
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import BudgetExceeded, Ledger

pytestmark = pytest.mark.slow

UNIT = "one comparison"
WORKER = """
import os, sys
from fractions import Fraction
from rankdp.errors import RankdpError
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import BudgetExceeded, Ledger
path, releases, times, epsilon = sys.argv[1:5]
guarantee = Guarantee("one comparison", Fraction(epsilon), local=False)
released = os.open(releases, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
ledger = Ledger.open(path)
print("ready", flush=True)
done = refused = 0
for _ in range(int(times)):
    try:
        with ledger.charge(guarantee, what="release"):
            os.write(released, b"x")
        done += 1
    except BudgetExceeded:
        refused += 1
print(done, refused, flush=True)
"""


def worker(path, releases, times, epsilon="1"):
    command = [sys.executable, "-c", WORKER, str(path), str(releases), str(times), epsilon]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def new(path, epsilon):
    Ledger.create(path, "poll", UNIT, epsilon).close()
    return path


def spent(path):
    with closing(Ledger.open(path)) as ledger:
        ledger.verify()
        return ledger.budgets[0].standing.epsilon


def one(epsilon=1):
    return Guarantee(UNIT, Fraction(epsilon), local=False)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
@pytest.mark.parametrize("kills", [8, pytest.param(40, marks=pytest.mark.long)])
def test_kill_at_any_point(tmp_path, request, kills):
    generator = random.Random(zlib.crc32(request.node.name.encode()))
    path, releases = new(tmp_path / "ledger.db", 10**6), tmp_path / "releases"
    before = 0
    for _ in range(kills):
        process = worker(path, releases, 10**6)
        assert process.stdout.readline() == "ready\n"
        made = releases.stat().st_size
        time.sleep(generator.uniform(0, 0.15))
        while releases.stat().st_size < made + 2:  # on a slow disk
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
        process.communicate()
        made, charged = releases.stat().st_size, spent(path)
        assert made <= charged <= made + kills  # at most one reservation a kill is spent without a release
        assert charged >= before
        before = charged
    assert before > kills
    with closing(Ledger.open(path)) as ledger:
        states = [entry.state for entry in ledger.history()]
        assert states.count("reserved") <= kills
        ledger.spend(one())  # and it goes on


@pytest.mark.parametrize("copies", [5, pytest.param(25, marks=pytest.mark.long)])
def test_lost_power_at_any_point(tmp_path, request, copies):
    """The file and its log as they are at a random moment, opened elsewhere: what was acknowledged before is there.

    The main file is copied first: what it lacks is in the log that is copied after it. A checkpoint between the two
    would mix times that no disk ever held together, so there are none while copies are taken.
    """
    generator = random.Random(zlib.crc32(request.node.name.encode()))
    path = new(tmp_path / "ledger.db", 10**6)
    ledger, acknowledged, stop = Ledger.open(path), [0], threading.Event()
    ledger._store._connected().execute("PRAGMA wal_autocheckpoint = 0")

    def work():
        while not stop.is_set():
            with ledger.charge(one()):
                acknowledged[0] += 1  # the release

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for number in range(copies):
            time.sleep(generator.uniform(0, 0.05))
            released = acknowledged[0]
            copy = tmp_path / f"copy{number}.db"
            shutil.copy(path, copy)
            log = bytearray((tmp_path / "ledger.db-wal").read_bytes())
            if number % 2:  # and the tail of the log may be torn
                log += os.urandom(generator.randrange(5000))
            (tmp_path / f"copy{number}.db-wal").write_bytes(log)
            assert spent(copy) >= released
    finally:
        stop.set()
        thread.join()
    assert spent(path) == acknowledged[0]


def test_a_log_cut_anywhere_is_an_earlier_state_and_a_good_chain(tmp_path, request):
    """What a disk that lied about its fsync would leave: fewer charges, which only a noted head can tell."""
    generator = random.Random(zlib.crc32(request.node.name.encode()))
    path = new(tmp_path / "ledger.db", 1000)
    ledger = Ledger.open(path)
    for _ in range(20):
        ledger.spend(one())
    head = ledger.verify().head
    log = (tmp_path / "ledger.db-wal").read_bytes()
    for number in range(40):
        copy = tmp_path / f"copy{number}.db"
        shutil.copy(path, copy)
        (tmp_path / f"copy{number}.db-wal").write_bytes(log[: generator.randrange(len(log))])
        charged = spent(copy)
        assert 0 <= charged <= 20
        if charged < 20:
            with closing(Ledger.open(copy)) as old, pytest.raises(InputError, match="an older copy"):
                old.verify(head)


@pytest.mark.skipif(sys.platform == "win32", reason="no file size limits here")
def test_a_full_disk_is_a_sentence_and_no_release(tmp_path):
    path, releases = new(tmp_path / "ledger.db", 10**6), tmp_path / "releases"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
    command = [sys.executable, "-c", limit + WORKER, str(path), str(releases), "10000", "1"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "the ledger could not be written (the disk does not take it" in last
    assert last.endswith("nothing counts as charged, so nothing is released")
    made = releases.stat().st_size
    assert 0 < made <= spent(path) <= made + 1
    with closing(Ledger.open(path)) as ledger:
        ledger.spend(one())  # with room again, it goes on


def test_a_commit_that_cannot_be_written_warns_and_stays_spent(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", UNIT, 5, wait=0.01)
    import sqlite3

    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        with pytest.warns(UserWarning, match="entry 2 stays reserved, which counts as spent"), ledger.charge(one()):
            other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert [entry.state for entry in ledger.history()] == ["reserved"]
    assert spent(ledger.path) == 1


def test_a_read_only_file_is_a_sentence_and_can_be_shown(tmp_path, monkeypatch):
    """Root may write anything, so that the file is opened as the system would open it for anybody else."""
    path = new(tmp_path / "ledger.db", 5)
    monkeypatch.setattr("rankdp.privacy.store.os.access", lambda *_: False)
    ledger = Ledger.open(path)
    with pytest.raises(InputError, match=r"could not be written \(the file or its directory is read-only\); nothing"):
        ledger.charge(one())
    assert ledger.verify().entries == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anything")
def test_a_really_read_only_file_is_a_sentence(tmp_path):
    path = new(tmp_path / "ledger.db", 5)
    path.chmod(0o400)
    with pytest.raises(InputError, match="read-only"):
        Ledger.open(path).charge(one())


@pytest.mark.parametrize(
    ("processes", "times"),
    [(4, 25), pytest.param(16, 1000, marks=pytest.mark.long, id="sixteen-thousand")],
)
def test_processes_share_a_budget(tmp_path, processes, times):
    """None exceeds it, none is lost, none sees a lock: the budget is for three quarters of what is asked."""
    total = Fraction(processes * times * 3, 4 * 10)
    path, releases = new(tmp_path / "ledger.db", total), tmp_path / "releases"
    running = [worker(path, releases, times, "1/10") for _ in range(processes)]
    done = refused = 0
    for process in running:
        output, errors = process.communicate(timeout=220)
        assert (process.returncode, errors) == (0, "")
        made, denied = map(int, output.split()[1:])
        done, refused = done + made, refused + denied
    assert done + refused == processes * times
    assert spent(path) == total == Fraction(done, 10)
    assert releases.stat().st_size == done
    with closing(Ledger.open(path)) as ledger, pytest.raises(BudgetExceeded):
        ledger.charge(one("1/10"))


def test_two_processes_may_create_the_same_file(tmp_path):
    path = tmp_path / "ledger.db"
    code = (
        "import sys; from rankdp.privacy.ledger import Ledger; "
        "Ledger.create(sys.argv[1], sys.argv[2], 'one comparison', 1)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), f"poll {name}"]) for name in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    with closing(Ledger.open(path, "poll 2")) as ledger:
        assert ledger.verify().entries == 4
