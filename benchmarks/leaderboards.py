"""``rankdp rank`` end to end, from a Parquet file of votes to a written leaderboard, and how it grows with the rows.

1,000 items, a voter for every 100 rows, in no order, each protected with at most 20 comparisons. The command runs in a
process of its own: its seconds include starting it, and its peak memory is its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import peak_memory
from benchmarks.report import Table, digits, times, verdict

ROWS = (1_000_000, 10_000_000)
_ITEMS = 1_000
_ROWS_A_VOTER = 100
_MOST_PER_VOTER = 20
_BATCH = 1_000_000
_METHODS = ("wins", "bradley-terry")
_TURNS = 3  # one, where it takes minutes
_TARGET_ROWS, _MOST_SECONDS, _MOST_MEMORY = 100_000_000, 120, 4e9


def table(rows: int = 0) -> Table:
    """The two sizes of every run, and ``rows`` if there are more."""
    sizes = [*ROWS, *([rows] if rows > ROWS[-1] else [])]
    lines, before = [], dict.fromkeys(_METHODS, 0.0)
    with tempfile.TemporaryDirectory() as directory:
        votes, items = Path(directory) / "votes.parquet", Path(directory) / "items.txt"
        items.write_text("\n".join(_names()), "utf-8")
        for size in sizes:
            _write_votes(votes, size)
            if size == sizes[0]:  # compiles what is compiled on first use
                for method in _METHODS:
                    _rank_elsewhere(votes, items, method)
            for method in _METHODS:
                runs = [_rank_elsewhere(votes, items, method) for _ in range(_TURNS if size <= ROWS[-1] else 1)]
                seconds, memory = min(run[0] for run in runs), max(run[1] for run in runs)
                growth = times(seconds / before[method]) if before[method] else ""
                before[method] = seconds
                goal, met = "", ""
                if size >= _TARGET_ROWS:
                    goal = f"below {_MOST_SECONDS} s, {_MOST_MEMORY / 1e9:g} GB"
                    met = verdict(seconds < _MOST_SECONDS and memory < _MOST_MEMORY)
                row = (f"{size:,}", f"{size // _ROWS_A_VOTER:,}", f"{votes.stat().st_size / 1e6:,.0f} MB", method)
                lines.append((*row, f"{digits(seconds)} s", growth, f"{memory / 1e6:,.0f} MB", goal, met))
    header = ("rows", "voters", "file", "method", "time", "over the row count before", "peak memory", "target", "met")
    return Table(header, lines)


def _names() -> list[str]:
    return [f"Model {item + 1}" for item in range(_ITEMS)]


def _write_votes(path: Path, rows: int) -> None:
    """Columns voter, left, right, winner: strengths over two units, one vote in ten a tie, the same every time."""
    random = np.random.default_rng(0)
    strength = np.linspace(1, -1, _ITEMS)
    names, words = pa.array(_names()), pa.array(["left", "right", "tie"])
    text = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("voter", pa.int64()), ("left", text), ("right", text), ("winner", text)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, _BATCH):
            count = min(_BATCH, rows - start)
            left = random.integers(0, _ITEMS, count, dtype=np.int32)
            right = (left + random.integers(1, _ITEMS, count, dtype=np.int32)) % _ITEMS
            chance = 1 / (1 + np.exp(strength[right] - strength[left]))
            lost = (random.random(count) > chance).astype(np.int32)
            outcome = np.where(random.random(count) < 0.1, np.int32(2), lost)
            coded = zip((left, right, outcome), (names, names, words), strict=True)
            columns = [pa.DictionaryArray.from_arrays(codes, values) for codes, values in coded]
            voters = pa.array(random.integers(0, max(1, rows // _ROWS_A_VOTER), count))
            writer.write_batch(pa.RecordBatch.from_arrays([voters, *columns], schema=schema))


def _rank_elsewhere(votes: Path, items: Path, method: str) -> tuple[float, float]:
    """The seconds and the peak memory of one command."""
    board = str(votes.with_name("board.csv"))
    options = [
        "--force",
        "--epsilon",
        "1",
        "--protect",
        "voter",
        "--max-per-voter",
        str(_MOST_PER_VOTER),
        "--method",
        method,
    ]
    command = [sys.executable, "-m", "benchmarks.leaderboards", "rank", str(votes), "--items", str(items)]
    start = time.perf_counter()
    said = subprocess.run([*command, *options, "--output", board], check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, float(said.split()[-1])


def _rank_here(arguments: list[str]) -> float:
    from rankdp.cli import cli

    cli(arguments, standalone_mode=False)
    return peak_memory()


if __name__ == "__main__":
    print(_rank_here(sys.argv[1:]))
