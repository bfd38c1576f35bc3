"""The verbs on Spark: a standalone cluster of two workers on this machine, started and stopped by the benchmark.

All verbs run at a tenth of the rows and at all of them, each time with a new cluster and a new driver (JVM of 512 MB).
Two sizes show whether a driver grows with the rows; their difference is what rows cost, without what starting takes.
Seconds are those of the clock; core-seconds are those of the cluster's processes, JVM and Python.

``python -m benchmarks.spark --rows 10000000`` writes about 1 GB per 10^7 rows into a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import peak_memory
from benchmarks.report import Table, digits

ROWS = 1_000_000
_ITEMS = [f"i{number}" for number in range(10)]
_VOTES_EACH = 20


# -- the cluster -----------------------------------------------------------------------------------------------------


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers of one core each, reachable from this machine only: its address and process ids."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, started = f"spark://127.0.0.1:{port}", list[subprocess.Popen[bytes]]()

    def start(name: str, *arguments: str) -> None:
        log = stack.enter_context((folder / f"{name}.log").open("wb"))
        command = [str(home / "bin" / "spark-class"), *arguments]
        started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    with ExitStack() as stack:
        try:
            here = ("--host", "127.0.0.1", "--webui-port", "0")
            start("master", "org.apache.spark.deploy.master.Master", *here, "--port", str(port))
            for number in (1, 2):
                size = ("--cores", "1", "--memory", "2g", "--work-dir", str(folder / f"work{number}"))
                start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *here, *size, address)
            yield address, [process.pid for process in started]
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def _core_seconds(roots: list[int]) -> float:
    """Of these processes and of all that they started."""
    parents, spent = dict[int, int](), dict[int, float]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(fields[1])
            spent[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found = set(roots)
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(spent.get(process, 0.0) for process in found)


# -- what a driver does ----------------------------------------------------------------------------------------------


def _make(session: Any, folder: Path, rows: int) -> None:
    """Votes of 20 a voter between ten items, and rankings of all ten."""
    numbers = session.range(rows, numPartitions=max(4, rows // 500_000))
    left, step = "pmod(hash(id), 10)", "1 + pmod(hash(id, 1), 9)"
    votes = [f"concat('v', id % {max(1, rows // _VOTES_EACH)}) AS voter", f"concat('i', {left}) AS left"]
    votes += [f"concat('i', ({left} + {step}) % 10) AS right", "if(hash(id, 2) % 3 = 0, 'right', 'left') AS winner"]
    numbers.selectExpr(*votes).write.parquet(str(folder / f"votes{rows}"))
    listed = ", ".join(f"'{item}'" for item in _ITEMS)
    drawn = numbers.selectExpr("id AS voter", f"shuffle(array({listed}), 1) AS ranking")
    places = [f"ranking[{place}] AS rank_{place + 1}" for place in range(len(_ITEMS))]
    drawn.selectExpr("voter", *places).write.parquet(str(folder / f"poll{rows}"))


def _rank(session: Any, folder: Path, rows: int, **protection: Any) -> Callable[[], Any]:
    import rankdp

    votes = session.read.parquet(str(folder / f"votes{rows}"))
    return lambda: rankdp.rank(votes, 1, items=_ITEMS, **protection)


def _elect(session: Any, folder: Path, rows: int) -> Callable[[], Any]:
    import rankdp

    ballots = session.read.parquet(str(folder / f"poll{rows}")).select("rank_1", "rank_2", "rank_3")
    return lambda: rankdp.elect(ballots, 1, rule="borda", items=_ITEMS)


def _privatize(session: Any, folder: Path, rows: int) -> Callable[[], Any]:
    import rankdp

    poll = session.read.parquet(str(folder / f"poll{rows}"))
    return lambda: rankdp.privatize(poll, 1, target=str(folder / f"synthetic{rows}"))


def _aggregate(session: Any, folder: Path, rows: int) -> Callable[[], Any]:
    import rankdp

    synthetic = session.read.parquet(str(folder / f"synthetic{rows}"))
    return lambda: rankdp.aggregate(synthetic, "auto", 1).mean_ranks


VERBS: dict[str, Callable[..., Callable[[], Any]]] = {
    "rank, comparisons protected": lambda *where: _rank(*where, protect="comparison"),
    "rank, voters protected, 5 each": lambda *where: _rank(*where, protect="voter", max_per_voter=5),
    "elect, best three of ten": _elect,
    "privatize": _privatize,
    "aggregate": _aggregate,
}


def _drive(address: str, rows: int, folder: Path, roots: list[int]) -> dict[str, Any]:
    """Every verb once, by this process as the driver: seconds and core-seconds of each, and the driver's peaks."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(address).appName(f"{rows} rows")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "spilled"),
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session, found = builder.getOrCreate(), dict[str, Any]()
    try:
        _make(session, folder, rows)
        for verb, prepared in VERBS.items():
            work, start, before = prepared(session, folder, rows), time.perf_counter(), _core_seconds(roots)
            work()
            found[verb] = time.perf_counter() - start, _core_seconds(roots) - before
        machine = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/status").read_text()
        found["jvm"] = 1024.0 * int(machine.partition("VmHWM:")[2].split()[0])
        found["python"] = peak_memory()
        return found
    finally:
        session.stop()


# -- the table -------------------------------------------------------------------------------------------------------


def table(rows: int = ROWS) -> Table:
    """By verb: the clock at both sizes, what a further million rows cost, and 10^10 of them; last the driver's memory.

    Parameters
    ----------
    rows
        Of the larger size; the other one has a tenth.
    """
    found = []
    for size in (rows // 10, rows):
        with TemporaryDirectory(prefix="rankdp-spark-") as directory, cluster(Path(directory)) as (address, roots):
            asked = [address, str(size), directory, ",".join(map(str, roots))]
            command = [sys.executable, "-m", "benchmarks.spark", "--drive", *asked]
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found.append(dict(json.loads(done.stdout.splitlines()[-1])))
    small, large = found
    cells = []
    for verb in VERBS:
        cores = max(large[verb][1] - small[verb][1], 0) / (rows - rows // 10)
        clock = (f"{held[verb][0]:.1f} s" for held in found)
        cells.append((verb, *clock, f"{digits(cores * 1e6)} s", f"{digits(cores * 1e10 / 3600)} h"))
    for part, words in (("python", "the driver's Python, peak"), ("jvm", "the driver's JVM, peak")):
        cells.append((words, *(f"{held[part] / 1e6:.0f} MB" for held in found), "", ""))
    head = ("", f"{rows // 10:,} rows", f"{rows:,} rows", "cores, a further 10^6 rows", "cores, 10^10 rows")
    return Table(head, cells)


def main() -> None:
    """The table, or one driver's part of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the larger size (default: %(default)s)")
    parser.add_argument("--drive", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        address, rows, folder, roots = options.drive
        print(json.dumps(_drive(address, int(rows), Path(folder), [*map(int, roots.split(","))])))
        return
    if options.rows < 10_000:
        parser.error(f"--rows must be at least 10,000, got {options.rows}")
    print(table(options.rows))


if __name__ == "__main__":
    main()
