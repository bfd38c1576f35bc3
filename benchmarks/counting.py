"""Counting a Parquet file of votes (`winner, loser, voter`, 1,000 items) against Arrow, DuckDB and Polars.

The peers count what the file says. Ours also checks every row (known items, nobody against themselves). Both give the
same numbers, which is tested in every turn. Each contender runs in a process of its own, so that its peak memory is its
own. The last row keeps at most 20 comparisons of each voter, for a hundredth as many voters as rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.measure import peak_memory, timed
from benchmarks.report import Table, digits, times, verdict
from rankdp.data.comparisons import Comparisons

ROWS = 10_000_000
_ITEMS = 1_000
_NAMES = [f"item {item:04d}" for item in range(_ITEMS)]
_PER_VOTER = 20
_GROUP = 1 << 20
_BATCH = 1 << 19
_TURNS = 3
_MOST_SECONDS = 10  # for bounding 10^7 rows
_MOST_MEMORY = {"pairs": 1.5e9, "bounded": 4e9}
_PEERS = {"pairs": ("Arrow", "DuckDB", "Polars"), "bounded": ()}
_ENGINES = ("DuckDB", "Polars")


def table(rows: int = ROWS) -> Table:
    header = (
        "what",
        "items are",
        "rankdp",
        "Arrow",
        "DuckDB",
        "Polars",
        "over the faster engine",
        "peak memory",
        "target",
        "met",
    )
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        for kind in ("numbers", "texts"):
            path = Path(directory) / f"{kind}.parquet"
            _write_votes(path, rows, kind)
            lines.append(_line("pairs", kind, path, rows))
            if kind == "texts":
                lines.append(_line("bounded", kind, path, rows))
            path.unlink()
    return Table(header, lines)


def _line(job: str, kind: str, path: Path, rows: int) -> tuple[str, ...]:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in ("rankdp", *_PEERS[job])}
    for _ in range(_TURNS if rows <= ROWS and job == "pairs" else 1):
        for name, results in runs.items():
            command = [sys.executable, "-m", "benchmarks.counting", name, job, kind, str(path)]
            results.append(json.loads(subprocess.check_output(command)))
    if len({result["check"] for results in runs.values() for result in results}) != 1:
        raise SystemExit(f"the contenders do not agree on {job}")
    best = {name: min(result["seconds"] for result in results) for name, results in runs.items()}
    memory = max(result["memory"] for result in runs["rankdp"])
    fastest = min((best[name] for name in _PEERS[job] if name in _ENGINES), default=None)
    most, seconds = _MOST_MEMORY[job], _MOST_SECONDS * rows / ROWS if fastest is None else fastest
    target = f"{f'{seconds:g} s' if fastest is None else '1 x'}, below {most / 1e9:g} GB"
    met = memory < most and best["rankdp"] <= seconds
    said = {"pairs": "pairs", "bounded": f"pairs, {_PER_VOTER} per voter"}[job]
    return (
        f"{said} of {rows:.0e} rows".replace("e+0", "e"),
        kind,
        *(f"{digits(best[name])} s" if name in best else "" for name in ("rankdp", "Arrow", "DuckDB", "Polars")),
        "" if fastest is None else times(best["rankdp"] / fastest),
        f"{memory / 1e6:.0f} MB",
        target,
        verdict(met),
    )


def _write_votes(path: Path, rows: int, kind: str) -> None:
    generator = np.random.default_rng(0)
    item = pa.int32() if kind == "numbers" else pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("winner", item), ("loser", item), ("voter", pa.int64())])
    names = pa.array(_NAMES)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, _GROUP):
            size = min(_GROUP, rows - start)
            winner = generator.integers(0, _ITEMS, size, np.int32)
            loser = (winner + generator.integers(1, _ITEMS, size, np.int32)) % _ITEMS
            columns = [pa.array(winner), pa.array(loser)]
            if kind == "texts":
                columns = [pa.DictionaryArray.from_arrays(column, names) for column in columns]
            columns.append(pa.array(generator.integers(0, max(1, rows // 100), size)))
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _rankdp(job: str, kind: str, path: str) -> NDArray[np.int64]:
    votes = Comparisons.read(path, items=_NAMES if kind == "texts" else range(_ITEMS))
    votes = votes.bound(_PER_VOTER) if job == "bounded" else votes
    counts = votes.count()
    table = np.zeros((_ITEMS, _ITEMS), np.int64)
    table[counts.first, counts.second] = counts.half_wins_first // (2 * votes.steps)
    table[counts.second, counts.first] = counts.half_wins_second // (2 * votes.steps)
    return table.ravel()


def _arrow(job: str, kind: str, path: str) -> NDArray[np.int64]:
    columns = ["winner", "loser"]
    file = pq.ParquetFile(path, read_dictionary=columns if kind == "texts" else None)
    number = {name: place for place, name in enumerate(_NAMES)}
    cells = _ITEMS ** len(columns)
    total = np.zeros(cells, np.int64)
    for batch in file.iter_batches(_BATCH, columns=columns):
        items = []
        for column in batch.columns:
            if kind == "texts":  # every row group has a dictionary of its own
                meaning = np.array([number[name] for name in column.dictionary.to_pylist()], np.int32)
                items.append(meaning[column.indices.to_numpy()])
            else:
                items.append(column.to_numpy())
        total += np.bincount(items[0] * _ITEMS + items[1], minlength=cells)
    return total


def _place(result: Any, kind: str) -> NDArray[np.int64]:
    """A result with columns winner, loser and n as the table that the others make."""
    number = {name: place for place, name in enumerate(_NAMES if kind == "texts" else range(_ITEMS))}
    keys = [np.array([number[name] for name in result[column].to_pylist()]) for column in result.column_names[:-1]]
    total = np.zeros(_ITEMS ** len(keys), np.int64)
    total[keys[0] * _ITEMS + keys[1]] = result["n"].to_numpy()
    return total


def _duckdb(job: str, kind: str, path: str) -> Any:
    import duckdb

    with duckdb.connect() as connection:
        query = "select winner, loser, count(*) as n from read_parquet($path) group by winner, loser"
        return connection.sql(query, params={"path": path}).to_arrow_table()


def _polars(job: str, kind: str, path: str) -> Any:
    import polars as pl

    return pl.scan_parquet(path).group_by("winner", "loser").agg(n=pl.len()).collect(engine="streaming").to_arrow()


_CONTENDERS: dict[str, Callable[[str, str, str], Any]] = {
    "rankdp": _rankdp,
    "Arrow": _arrow,
    "DuckDB": _duckdb,
    "Polars": _polars,
}


def _run(name: str, job: str, kind: str, path: str) -> dict[str, float]:
    """One contender's best of two runs after a small one (of one run, if it is long), and a number to compare."""
    count = _CONTENDERS[name]
    with tempfile.TemporaryDirectory() as directory:
        small = Path(directory) / "small.parquet"
        _write_votes(small, 2 * _GROUP, kind)
        count(job, kind, str(small))
    result: list[Any] = []
    first = timed(lambda: result.append(count(job, kind, path)))
    seconds, memory = first["seconds"], peak_memory()
    if seconds < 5:
        seconds = min(seconds, *(timed(lambda: count(job, kind, path))["seconds"] for _ in range(2)))
    total = result[0] if isinstance(result[0], np.ndarray) else _place(result[0], kind)
    weights = np.arange(1, len(total) + 1, dtype=np.int64)
    return {"seconds": seconds, "memory": memory, "check": float(np.dot(total % 1_000_003, weights) % 1_000_003)}


if __name__ == "__main__":
    print(json.dumps(_run(*sys.argv[1:])))
