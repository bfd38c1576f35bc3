"""How long ``import rankdp`` takes in a fresh interpreter, and how long until the first call could be made."""

from __future__ import annotations

import subprocess
import sys

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
    return Table(("statement", "time", "target", "met"), rows)


def _seconds(statement: str) -> float:
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(subprocess.check_output([sys.executable, "-c", code]))
