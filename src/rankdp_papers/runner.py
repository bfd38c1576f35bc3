"""Runs the cells of specifications on all cores, and keeps what is done.

A finished cell is a file named by the hash of all it depends on: the experiment, the source of its paper's modules and
of the library they call, and the cell's values, repetitions and seed. Whatever interrupts a run, the next one goes on
from there; changing a claim or a picture runs nothing again. Experiments are seeded, so a table depends on its
specification alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import rankdp
from rankdp.data.atomic import make_directory, write_whole
from rankdp.errors import InputError, RankdpError
from rankdp_papers.experiment import Cell, Row, data_home
from rankdp_papers.specification import HOME, Size, Specification

Progress = Callable[[int, int, str], None]
"""progress(cells done, cells in all, the specification of the last one)."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """The table of one specification and the core-seconds it took (whenever that was), or why there is none."""

    specification: Specification
    rows: Sequence[Row]
    seconds: float
    missing: str | None = None


@dataclass(frozen=True)
class _Task:
    """One cell of one specification; ``key`` names its file."""

    owner: int
    place: int
    paper: str
    experiment: str
    cell: Cell
    key: str


def run(
    specifications: Sequence[Specification],
    size: Size,
    cache: Path,
    jobs: int | None = None,
    progress: Progress = lambda done, total, name: None,
) -> Iterator[Result]:
    """The result of each specification as soon as its last cell is done, on ``jobs`` processes (all cores for None)."""
    make_directory(cache)
    missing = {place: reason for place, one in enumerate(specifications) if (reason := _missing(one))}
    tasks = [
        task for place, one in enumerate(specifications) if place not in missing for task in _tasks(place, one, size)
    ]
    left = {place: sum(task.owner == place for task in tasks) for place in range(len(specifications))}
    parts: dict[int, dict[int, tuple[list[Row], float]]] = {place: {} for place in left}
    for place, reason in missing.items():
        yield Result(specifications[place], [], 0.0, reason)
    for done, (task, found) in enumerate(_finished(tasks, cache, jobs or os.cpu_count() or 1), 1):
        one = specifications[task.owner]
        progress(done, len(tasks), one.name)
        if isinstance(found, str):
            missing.setdefault(task.owner, found)
        else:
            parts[task.owner][task.place] = found
        left[task.owner] -= 1
        if not left[task.owner]:
            yield _result(one, size, parts.pop(task.owner), missing.get(task.owner))


def _result(one: Specification, size: Size, parts: dict[int, tuple[list[Row], float]], missing: str | None) -> Result:
    seconds = sum(part[1] for part in parts.values())
    if missing:
        return Result(one, [], seconds, missing)
    grid = getattr(one, size).grid
    cells = one.cells(size)
    rows = [
        {**{name: cells[place][name] for name in grid}, **row} for place in sorted(parts) for row in parts[place][0]
    ]
    return Result(one, rows, seconds)


def _missing(one: Specification) -> str | None:
    """Why a specification cannot be run here, None if it can."""
    try:
        if one.data:
            data_home(*one.data)
    except InputError as reason:
        return str(reason)
    return None


def _tasks(owner: int, one: Specification, size: Size) -> list[_Task]:
    made = _made_of(one)
    return [
        _Task(owner, place, one.paper, one.experiment, cell, _key(made, cell))
        for place, cell in enumerate(one.cells(size))
    ]


def _made_of(one: Specification) -> str:
    """What the numbers of a cell depend on beside the cell: the code that makes them."""
    sources = b"".join(path.read_bytes() for path in sorted((HOME / one.paper).glob("*.py")))
    return f"{_library()} {one.paper} {one.experiment} {hashlib.sha256(sources).hexdigest()}"


@lru_cache(maxsize=1)
def _library() -> str:
    """The hash of all modules that experiments may call: neither the command line nor what is made of their rows."""
    found = hashlib.sha256((HOME / "experiment.py").read_bytes())
    library = Path(rankdp.__path__[0])
    for path in sorted(library.rglob("*.py")):
        if not path.is_relative_to(library / "cli"):
            found.update(path.read_bytes())
    return found.hexdigest()


def _key(made: str, cell: Cell) -> str:
    words = json.dumps([made, dict(cell.values), cell.repetitions, cell.seed], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def _finished(tasks: Sequence[_Task], cache: Path, jobs: int) -> Iterator[tuple[_Task, Any]]:
    """Each task with its rows and seconds, or with the reason why it has none: kept ones first."""
    open_tasks = []
    for task in tasks:
        kept = _kept(cache / f"{task.key}.json")
        if kept is None:
            open_tasks.append(task)
        else:
            yield task, kept
    for task, found in _computed(open_tasks, min(jobs, len(open_tasks))):
        if not isinstance(found, str):
            content = {"rows": found[0], "seconds": found[1]}
            write_whole(cache / f"{task.key}.json", json.dumps(content, allow_nan=False).encode())
        yield task, found


def _kept(path: Path) -> tuple[list[Row], float] | None:
    try:
        plain = json.loads(path.read_bytes())
        return plain["rows"], plain["seconds"]
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not whole
        return None


def _computed(tasks: Sequence[_Task], jobs: int) -> Iterator[tuple[_Task, Any]]:
    if jobs <= 1:
        yield from ((task, _work(task)) for task in tasks)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _leave_quietly)
        try:
            waiting: dict[Future[Any], _Task] = {pool.submit(_work, task): task for task in tasks}
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
                child.join()


def _work(task: _Task) -> tuple[list[Row], float] | str:
    """Run one cell; a refusal (an extra is not installed, say) is the reason why there is no table."""
    experiment = _function(task.paper, task.experiment)
    start = time.process_time()
    try:
        rows = experiment(task.cell)
    except RankdpError as reason:
        return str(reason)
    for row in rows:
        if not (math.isfinite(row["value"]) and math.isfinite(row["error"])):
            raise ValueError(f"{task.paper}, {task.experiment} at {dict(task.cell.values)}: a row is not finite: {row}")
    return rows, time.process_time() - start


def _function(paper: str, name: str) -> Callable[[Cell], list[Row]]:
    module, _, function = name.rpartition(".")
    try:
        return cast(Callable[[Cell], list[Row]], getattr(import_module(f"rankdp_papers.{paper}.{module}"), function))
    except (ImportError, AttributeError):
        raise InputError(f"experiment must be module.function of rankdp_papers.{paper}, got {name!r}") from None


def _leave_quietly() -> None:
    """In a child, an interrupt is the end, without words: the parent says them."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(1))


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Children inherit one thread a process: the cells are what runs side by side."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
