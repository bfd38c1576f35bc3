"""End to end: ``privatize_file`` from Parquet to Parquet against the kernel alone on rankings in memory.

The file is privatized by a process of its own, so that its peak memory is that of privatizing and nothing
else; the kernel draws for as many rankings (at most 5 million, scaled), all cores, in this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankdp
from benchmarks.measure import peak_memory, timed
from benchmarks.report import Table, rate, times, verdict

ROWS = 5_000_000
_ITEMS = 10
_EPSILON = 1
_BATCH = 250_000
_TURNS = 5
_KERNELS_A_TURN = 3  # it is quick, and its best must not be a matter of luck
_TARGET = 5e6
_MOST_MEMORY = 2e9


def table(rows: int = ROWS) -> Table:
    in_memory = min(rows, ROWS)
    kendall = rankdp.mechanism("kendall", items=_ITEMS, epsilon=_EPSILON)
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "poll.parquet"
        _write_poll(source, rows)
        orders = np.concatenate(list(_orders(in_memory)))
        runs, kernels = [], []
        for _ in range(_TURNS if rows <= ROWS else 1):
            runs.append(_privatize_elsewhere(source))
            kernels += [timed(lambda: kendall.sample(orders)) for _ in range(_KERNELS_A_TURN)]
        size = source.stat().st_size
    seconds, processor = (min(run[key] for run in runs) / rows for key in ("seconds", "processor"))
    kernel_seconds, kernel_processor = (
        min(run[key] for run in kernels) / in_memory for key in ("seconds", "processor")
    )
    memory = max(run["memory"] for run in runs)
    return Table(
        ("what", "measured", "target", "met"),
        [
            ("rankings in the file", f"{rows:,}", "", ""),
            ("size of the file", f"{size / 1e6:.0f} MB", "", ""),
            ("Parquet to Parquet", rate(1 / seconds), f"at least {rate(_TARGET)}", verdict(1 / seconds >= _TARGET)),
            ("kernel alone", rate(1 / kernel_seconds), "", ""),
            ("ratio", times(kernel_seconds / seconds), "", ""),
            ("processor time per ranking", f"{1e9 * processor:.0f} ns", "", ""),
            ("the same, kernel alone", f"{1e9 * kernel_processor:.0f} ns", "", ""),
            ("peak memory", f"{memory / 1e6:.0f} MB", "below 2 GB", verdict(memory < _MOST_MEMORY)),
        ],
    )


def _orders(rows: int) -> Iterator[np.ndarray]:
    """A poll around one common order, the same every time."""
    opinion = rankdp.mechanism("kendall", items=_ITEMS, epsilon=4)
    bits = rankdp.SeededBits(0)
    for start in range(0, rows, _BATCH):
        yield opinion.sample(np.tile(np.arange(_ITEMS, dtype=np.int32), (min(_BATCH, rows - start), 1)), bits)


def _write_poll(path: Path, rows: int) -> None:
    """A wide table: voter, rank_1, …, rank_10, with the items as dictionary-coded text."""
    names = pa.array([f"Course {item + 1}" for item in range(_ITEMS)])
    text = pa.dictionary(pa.int32(), pa.string())
    ranks = [f"rank_{rank + 1}" for rank in range(_ITEMS)]
    schema = pa.schema([("voter", pa.int64()), *((rank, text) for rank in ranks)])
    with pq.ParquetWriter(path, schema) as writer:
        start = 0
        for orders in _orders(rows):
            columns = [pa.DictionaryArray.from_arrays(column, names) for column in np.ascontiguousarray(orders.T)]
            voters = pa.array(np.arange(start, start + len(orders)))
            writer.write_batch(pa.RecordBatch.from_arrays([voters, *columns], schema=schema))
            start += len(orders)


def _privatize_elsewhere(source: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.files", str(source), str(source.with_name("private.parquet"))]
    return json.loads(subprocess.check_output(command))


def _privatize_here(source: str, target: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:  # loads the compiled kernels before the clock starts
        small = Path(directory) / "small.parquet"
        _write_poll(small, _BATCH)
        rankdp.privatize_file(small, small.with_name("private.parquet"), _EPSILON, mechanism="kendall")
    run = timed(lambda: rankdp.privatize_file(source, target, _EPSILON, mechanism="kendall"))
    return {**run, "memory": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(_privatize_here(*sys.argv[1:])))
