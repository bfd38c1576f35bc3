"""Kemeny orders, proven optimal, against corankco's exact algorithm (PuLP with CBC); and ours alone beyond its reach.

Both get 50 complete rankings, uniform or from Mallows' model, and the costs are compared. corankco runs in a process of
its own that says how long the call alone took and that is ended after the cap; the two take turns. Its consensus could
hold ties, but a tie costs every voter 1 here, which no optimal consensus pays. Its class is named outright because the
one that chooses a solver fails where CPLEX is missing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Table, digits, times, verdict
from rankdp.rankers.kemeny import Kemeny, kemeny

_VOTERS, _CAP, _TURNS = 50, 60.0, 3
_RACES = {10: 1.0, 20: 1.0, 30: 10.0, 40: 1.0}  # items, and how many times faster ours has to be
_ALONE = (
    ("uniform", 24),
    ("uniform", 60),
    ("Mallows 0.9", 80),
    ("Mallows 0.97", 200),
    ("uniform", 200),
    ("Mallows 0.99", 1000),
)
_PEER = """
import json, sys, time
from corankco.algorithms.exact.exactalgorithmpulp import ExactAlgorithmPulp
from corankco.dataset import Dataset
from corankco.scoringscheme import ScoringScheme
dataset = Dataset.from_raw_list([[{item} for item in order] for order in json.load(sys.stdin)])
scheme = ScoringScheme.get_unifying_scoring_scheme_p(1.0)
start = time.perf_counter()
found = ExactAlgorithmPulp().compute_consensus_rankings(dataset, scheme, True)
print(json.dumps([time.perf_counter() - start, found.kemeny_score]))
"""


def rankings(kind: str, items: int) -> NDArray[np.int64]:
    """Orders of 50 voters: uniform, or by repeated insertion with the dispersion that the name ends with."""
    generator = np.random.default_rng(items)
    if kind == "uniform":
        return np.array([generator.permutation(items) for _ in range(_VOTERS)])
    dispersion, orders = float(kind.split()[1]), []
    for _ in range(_VOTERS):
        order: list[int] = []
        for item in range(items):
            chances = dispersion ** np.arange(item, -1, -1.0)
            order.insert(int(generator.choice(item + 1, p=chances / chances.sum())), item)
        orders.append(order)
    return np.array(orders)


def weights(orders: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many voters put i above j."""
    ranks = np.argsort(orders, axis=1)
    return np.array([(row[:, None] < row) for row in ranks]).sum(axis=0)


def table() -> Table:
    try:
        peer = f"corankco {version('corankco')}"
    except PackageNotFoundError:
        peer = "corankco (not installed)"
    header = ("problem", "rankdp", peer, "gap", "ratio", "target", "met")
    kemeny(weights(rankings("uniform", 21)))  # loads HiGHS
    lines = []
    if "not" not in peer:
        lines = [_race(kind, items, goal) for items, goal in _RACES.items() for kind in ("uniform", "Mallows 0.9")]
    return Table(header, lines + [_alone(*problem) for problem in _ALONE])


def _race(kind: str, items: int, target: float) -> tuple[str, ...]:
    orders = rankings(kind, items)
    ours, theirs = [], []
    for _ in range(_TURNS if items < 30 else 1):
        seconds, found = _ours(orders)
        ours.append(seconds)
        answer = _theirs(orders)
        theirs.append(_CAP if answer is None else answer[0])
        assert found.exact
        assert answer is None or abs(answer[1] - found.cost) < 0.5, f"{items} items: not the same cost"
        ours.append(_ours(orders)[0])
    ratio, capped = min(theirs) / min(ours), min(theirs) >= _CAP
    sign = "> " if capped else ""
    cells = (_time(min(ours)), sign + _time(min(theirs)), "0", sign + times(ratio), times(target))
    return (f"{kind}, {items} items", *cells, verdict(ratio >= target))


def _alone(kind: str, items: int) -> tuple[str, ...]:
    seconds, found = min((_ours(rankings(kind, items)) for _ in range(2)), key=lambda run: run[0])
    gap = "0" if found.exact else f"{100 * found.gap_share:.3f} %"
    return (f"{kind}, {items} items, {found.method}", _time(seconds), "", gap, "", "", "")


def _ours(orders: NDArray[np.int64]) -> tuple[float, Kemeny]:
    start = time.perf_counter()
    found = kemeny(weights(orders))
    return time.perf_counter() - start, found


def _theirs(orders: NDArray[np.int64]) -> Any:
    """Seconds and cost, or None after the cap; CBC is a process below the process, so the whole session is ended."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", _PEER], text=True, start_new_session=True, **pipes)
    try:
        said, _ = process.communicate(json.dumps(orders.tolist()), timeout=_CAP)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return json.loads(said.splitlines()[-1])


def _time(seconds: float) -> str:
    return f"{digits(seconds)} s" if seconds >= 1 else f"{digits(seconds * 1000)} ms"
