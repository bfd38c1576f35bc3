"""How long ``import rankdp`` takes in a fresh interpreter, and the first commands where nothing is compiled yet."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import Table, verdict
from rankdp import privatize_file

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


_FIRST_ROWS, _FIRST_TARGET, _FIRST_RUNS = 99_000, 3.0, 2
_FIRST_USES = {
    "privatize, 10 items": ("privatize", "poll.csv", "out.csv", "--force", "-e", "2"),
    "privatize, 30 items": ("privatize", "long.csv", "out.csv", "--force", "-e", "2"),
    "privatize, by kendall": ("privatize", "poll.csv", "out.csv", "--force", "-e", "2", "--mechanism", "kendall"),
    "rank, one comparison": ("rank", "votes.csv", "-e", "1", "--items-from-data", "--protect", "comparison"),
    "rank, one outcome": ("rank", "votes.csv", "-e", "1", "--items-from-data", "--protect", "outcome"),
    "rank, one voter": (
        *("rank", "votes.csv", "-e", "1", "--items-from-data"),
        *("--protect", "voter", "--max-per-voter", "3"),
    ),
    "elect, by kemeny": ("elect", "poll.csv", "-e", "1", "--rule", "kemeny"),
    "elect, by irv": ("elect", "poll.csv", "-e", "1", "--rule", "irv"),
    "aggregate": ("aggregate", "synthetic.csv"),
    "aggregate, 30 items": ("aggregate", "long-synthetic.csv"),
}


def _first_uses() -> list[tuple[str, ...]]:
    """Commands on files of so many rows: what an empty cache of compiled code costs, in processor time."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        _write_tables(Path(place))
        for name, words in _FIRST_USES.items():
            first, later = zip(*(_uses(Path(place), words) for _ in range(_FIRST_RUNS)), strict=True)
            more = min(first) - min(later)
            label = f"rankdp {name}, {_FIRST_ROWS:,} rows, first use (later)"
            goal = f"at most {_FIRST_TARGET:g} s more"
            rows.append((label, f"{min(first):.2f} s ({min(later):.2f} s)", goal, verdict(more < _FIRST_TARGET)))
    return rows


def _uses(place: Path, words: tuple[str, ...]) -> tuple[float, float]:
    """The processor time of the first use of an empty cache, and of the second."""
    with tempfile.TemporaryDirectory() as cache:
        return _use(place, words, cache), _use(place, words, cache)


def _use(place: Path, words: tuple[str, ...], cache: str) -> float:
    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    before = spent()
    subprocess.run(
        [sys.executable, "-m", "rankdp", *words],
        cwd=place,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
    )
    return spent() - before


def _write_tables(place: Path) -> None:
    rng = np.random.default_rng(0)
    for name, items in (("poll", 10), ("long", 30)):
        orders = rng.permuted(np.tile(np.arange(items), (_FIRST_ROWS, 1)), axis=1)
        head = ",".join(f"rank_{rank}" for rank in range(1, items + 1))
        np.savetxt(place / f"{name}.csv", orders, "%d", ",", header=head, comments="")
    pairs = rng.permuted(np.tile(np.arange(30), (_FIRST_ROWS, 1)), axis=1)[:, :2]
    votes = np.column_stack([pairs, np.arange(_FIRST_ROWS) // 5])
    np.savetxt(place / "votes.csv", votes, "%d", ",", header="winner,loser,voter", comments="")
    for name, target in (("poll", "synthetic"), ("long", "long-synthetic")):
        privatize_file(place / f"{name}.csv", place / f"{target}.csv", 2)


def _seconds(statement: str) -> float:
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(subprocess.check_output([sys.executable, "-c", code]))
