"""Durable spends a second from one process, beside what the disk allows; many processes at once; permanent answers.

A spend is a charge on disk (one fsync) and its commit. The disk's own rate is that of appending a page and waiting for
fsync, and both take turns, for a shared disk changes from minute to minute: where a target is missed, look at what the
disk allowed in the same minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.report import Table, digits, rate, verdict
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.answers import AnswerStore, Question
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger

_UNIT = "one comparison"
_TARGET, _SPENDS, _TURNS = 200.0, 300, 5
_PROCESSES, _EACH = 16, 200
_WORKER = """
import sys
from fractions import Fraction
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    with ledger.charge(Guarantee("one comparison", Fraction(1, 10), local=False), "release"):
        pass
"""


def table() -> Table:
    with tempfile.TemporaryDirectory() as directory:
        rows = [*_alone(Path(directory)), _together(Path(directory)), *_answers(Path(directory))]
    return Table(("what", "rate", "target", "met"), rows)


def _alone(directory: Path) -> list[tuple[str, ...]]:
    ledger = Ledger.create(directory / "alone.db", "poll", _UNIT, 10**6)
    guarantee = Guarantee(_UNIT, Fraction(1, 10), local=False)
    disk, ours = [], []
    for _ in range(_TURNS):
        disk.append(_fsyncs(directory / "pages"))
        start = time.perf_counter()
        for _ in range(_SPENDS):
            with ledger.charge(guarantee, "release"):
                pass
        ours.append(_SPENDS / (time.perf_counter() - start))
    return [
        ("page and fsync, the disk's own", rate(max(disk)), "", ""),
        ("durable spends, one process", rate(max(ours)), rate(_TARGET), verdict(max(ours) >= _TARGET)),
    ]


def _fsyncs(path: Path) -> float:
    with path.open("ab") as file:
        start = time.perf_counter()
        for _ in range(_SPENDS):
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        return _SPENDS / (time.perf_counter() - start)


def _together(directory: Path) -> tuple[str, ...]:
    path = directory / "together.db"
    Ledger.create(path, "poll", _UNIT, 10**6).close()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(path), str(_EACH)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(_PROCESSES)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    start = time.perf_counter()
    for process in running:
        process.communicate(b"\n")
    seconds = time.perf_counter() - start
    exact = Ledger.open(path).budgets[0].standing.epsilon == Fraction(_PROCESSES * _EACH, 10)
    return f"durable spends, {_PROCESSES} processes", rate(_PROCESSES * _EACH / seconds), "none lost", verdict(exact)


def _answers(directory: Path) -> list[tuple[str, ...]]:
    voters, kendall = 100_000, mechanism("kendall", 10, 1)
    orders = np.tile(np.arange(10, dtype=np.int32), (voters, 1))
    kendall.sample(orders[:10])
    store, question = AnswerStore(directory / "answers.db"), Question(1, "kendall", tuple("abcdefghij"))
    found = []
    for what in ("answers drawn and stored", "answers found again"):
        start = time.perf_counter()
        store.answers(question, range(voters), lambda rows: kendall.sample(orders[rows]))
        seconds = time.perf_counter() - start
        found.append((f"{what}, 10^5 voters ({digits(seconds)} s)", rate(voters / seconds), "", ""))
    return found
