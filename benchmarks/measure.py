"""Stopwatches and the memory mark: contenders run in turns, and the best turn of each counts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_LEAST_SECONDS = 0.05  # a turn repeats a quick contender until this much has passed


def race(
    contenders: Mapping[str, Callable[[], object]],
    turns: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds per call of each contender, in its best turn. Each is called once before the clock starts.

    ``clock=time.thread_time`` counts the processor time of a contender that uses one thread, which other
    programs on the machine disturb less.
    """
    for call in contenders.values():
        call()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(turns):
        for name, call in contenders.items():
            best[name] = min(best[name], _turn(call, clock))
    return best


def _turn(call: Callable[[], object], clock: Callable[[], float]) -> float:
    calls, start = 0, clock()
    while True:
        call()
        calls += 1
        passed = clock() - start
        if passed >= _LEAST_SECONDS:
            return passed / calls


def timed(call: Callable[[], object]) -> dict[str, float]:
    """Wall and processor seconds of one call."""
    start, processor = time.perf_counter(), time.process_time()
    call()
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - processor}


def peak_memory() -> float:
    """In bytes. Linux lets ``ru_maxrss`` start at the parent's, so there the mark of this process alone is read."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
        return 1024.0 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
