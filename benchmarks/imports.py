"""How long ``import rankdp`` takes in a fresh interpreter, and the first commands where nothing is compiled yet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import Table, verdict

_RUNS = 7
_TARGET = 0.3
_STATEMENTS = {
    "import rankdp": _TARGET,
    "import numpy": None,
    "from rankdp import privatize_file": None,
}


def table() -> Table:
    best = dict.fromkeys(_STATEMENTS, float("inf"))
    for _ in range(_RUNS):
        for statement in _STATEMENTS:
            best[statement] = min(best[statement], _seconds(statement))
    rows = []
    for statement, target in _STATEMENTS.items():
        goal, word = (f"below {target:g} s", verdict(best[statement] < target)) if target else ("", "")
        rows.append((statement, f"{best[statement]:.3f} s", goal, word))
    return Table(("statement", "time", "target", "met"), [*rows, *_first_uses()])


_FIRST_ROWS, _FIRST_TARGET, _FIRST_RUNS = 99_000, 3.0, 3
_FIRST_USES = {
    "rankdp privatize, 10 items": ("privatize", "poll.csv", "out.csv", "-e", "2"),
    "rankdp privatize, by kendall": ("privatize", "poll.csv", "out.csv", "-e", "2", "--mechanism", "kendall"),
    "rankdp rank, one comparison": ("rank", "votes.csv", "-e", "1", "--items-from-data", "--protect", "comparison"),
    "rankdp rank, one outcome": ("rank", "votes.csv", "-e", "1", "--items-from-data", "--protect", "outcome"),
}


def _first_uses() -> list[tuple[str, ...]]:
    """Commands on files of so many rows, each with an empty cache of compiled code."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        _write_tables(Path(place))
        for name, words in _FIRST_USES.items():
            seconds = min(_first_use(Path(place), words) for _ in range(_FIRST_RUNS))
            goal = f"below {_FIRST_TARGET:g} s"
            label = f"{name}, {_FIRST_ROWS:,} rows, first use"
            rows.append((label, f"{seconds:.2f} s", goal, verdict(seconds < _FIRST_TARGET)))
    return rows


def _first_use(place: Path, words: tuple[str, ...]) -> float:
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "rankdp", *words],
            cwd=place,
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - start


def _write_tables(place: Path) -> None:
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(10), (_FIRST_ROWS, 1)), axis=1)
    head = ",".join(f"rank_{rank}" for rank in range(1, 11))
    np.savetxt(place / "poll.csv", orders, "%d", ",", header=head, comments="")
    pairs = rng.permuted(np.tile(np.arange(30), (_FIRST_ROWS, 1)), axis=1)[:, :2]
    np.savetxt(place / "votes.csv", pairs, "%d", ",", header="winner,loser", comments="")


def _seconds(statement: str) -> float:
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(subprocess.check_output([sys.executable, "-c", code]))
