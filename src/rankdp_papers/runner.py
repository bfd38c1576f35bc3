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
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from rankdp.data.atomic import make_directory, write_whole
from rankdp.errors import InputError, RankdpError
from rankdp_papers.experiment import Cell, Row, data_home
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import HOME, Size, Specification

Progress = Callable[[int, int], None]
"""progress(cells done, cells in total)."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class _Task(NamedTuple):
    paper: str
    experiment: str
    cell: Cell
    file: Path


def run(
    specifications: Sequence[Specification],
    size: Size,
    cache: Path,
    jobs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Iterator[Reproduced]:
    """Each specification's table once it and those before it are done, on ``jobs`` processes (all cores for None)."""
    make_directory(cache)
    reasons = [_missing(specification) for specification in specifications]
    tasks = [
        _Task(specification.paper, specification.experiment, cell, cache / f"{_key(specification, cell)}.json")
        for specification, reason in zip(specifications, reasons, strict=True)
        if not reason
        for cell in specification.cells(size)
    ]
    unfinished = sum(not task.file.exists() for task in tasks)
    with _workers(min(jobs or os.cpu_count() or 1, unfinished)) as mapped:
        finished = enumerate(mapped(_work, tasks), 1)
        for specification, missing in zip(specifications, reasons, strict=True):
            rows, seconds = [], 0.0
            for cell, (done, outcome) in zip([] if missing else specification.cells(size), finished, strict=False):
                progress(done, len(tasks))
                if isinstance(outcome, str):
                    missing = outcome
                    continue
                point = {name: cell[name] for name in getattr(specification, size).grid}
                rows += [{**point, **row} for row in outcome[0]]
                seconds += outcome[1]
            yield Reproduced(specification, size, [] if missing else rows, seconds, missing)


def expected_seconds(
    specifications: Sequence[Specification], size: Size, cache: Path, jobs: int | None = None
) -> float:
    """How long the unfinished cells will take, from what quick runs took on one core (``seconds.toml``).

    A full run is expected to take longer in proportion to its cells and repetitions.
    """
    measured = tomllib.loads((HOME / "seconds.toml").read_text(encoding="utf-8"))
    total = 0.0
    for one in specifications:
        cells = one.cells(size)
        unfinished = sum(not (cache / f"{_key(one, cell)}.json").exists() for cell in cells)
        quick = len(one.cells("quick")) * one.quick.repetitions
        share = unfinished * getattr(one, size).repetitions / quick
        total += 0.0 if _missing(one) else measured.get(one.name, 0.0) * share
    return total / (jobs or os.cpu_count() or 1)


def _missing(specification: Specification) -> str | None:
    """Why a specification cannot be run here, None if it can."""
    try:
        if specification.data:
            data_home(*specification.data)
    except InputError as reason:
        return str(reason)
    return None


def _key(specification: Specification, cell: Cell) -> str:
    """The hash of what the rows of a cell depend on."""
    code = [_source(HOME / specification.paper), _library(), specification.paper, specification.experiment]
    words = json.dumps([code, dict(cell.values), cell.repetitions, cell.seed], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def _library() -> str:
    """The hash of all that experiments may call: not the command line, nor what is made of their rows."""
    return _source(HOME.with_name("rankdp"), without="cli") + _source(HOME / "experiment.py")


@lru_cache
def _source(path: Path, without: str = "") -> str:
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    kept = (file.read_bytes() for file in files if not file.is_relative_to(path / (without or "*")))
    return hashlib.sha256(b"".join(kept)).hexdigest()


def _work(task: _Task) -> tuple[list[Row], float] | str:
    """The rows of a cell and the core-seconds they took, whenever that was; or why it refuses (an extra is missing)."""
    try:
        kept = json.loads(task.file.read_bytes())
        return kept["rows"], kept["seconds"]
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not whole
        pass
    experiment = _function(task.paper, task.experiment)
    start = time.process_time()
    try:
        rows = experiment(task.cell)
    except RankdpError as reason:
        return str(reason)
    for row in rows:
        if not (math.isfinite(row["value"]) and math.isfinite(row["error"])):
            raise ValueError(f"{task.paper}, {task.experiment} at {dict(task.cell.values)}: a row is not finite: {row}")
    seconds = time.process_time() - start
    write_whole(task.file, json.dumps({"rows": rows, "seconds": seconds}, allow_nan=False).encode())
    return rows, seconds


def _function(paper: str, name: str) -> Callable[[Cell], list[Row]]:
    module, _, function = name.rpartition(".")
    try:
        return cast(Callable[[Cell], list[Row]], getattr(import_module(f"rankdp_papers.{paper}.{module}"), function))
    except (ImportError, AttributeError):
        raise InputError(f"experiment must be module.function of rankdp_papers.{paper}, got {name!r}") from None


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A ``map`` on that many processes, each with one thread; cells run in parallel."""
    if jobs <= 1:
        yield map
        return
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _leave_quietly)
    try:
        yield pool.map
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
            child.join()
        os.environ.clear()
        os.environ.update(before)


def _leave_quietly() -> None:
    """In a child, an interrupt is the end, without words: the parent says them."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(1))
