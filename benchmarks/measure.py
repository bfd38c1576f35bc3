"""Stopwatches: contenders run in turns, and the best turn of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

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
