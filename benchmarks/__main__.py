"""Runs the tables named on the command line, all by default, and prints each when it is done."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks import (
    accuracy,
    aggregating,
    counting,
    covariates,
    coverage,
    elections,
    files,
    imports,
    kemeny,
    kendall,
    leaderboards,
    learning,
    live,
    preferences,
    report,
    scottish,
    solver,
    surveys,
    whole,
)
from benchmarks.rivals import tables as rivals


def main() -> None:
    tables = {
        "imports": imports.table,
        "kendall": kendall.table,
        "files": files.table,
        "counting": counting.table,
        "solver": solver.table,
        "kemeny": kemeny.table,
        "learning": learning.table,
        "accuracy": accuracy.table,
        "aggregate": aggregating.table,
        "leaderboards": leaderboards.table,
        "elections": elections.table,
        "scottish": scottish.table,
        "covariates": covariates.table,
        "coverage": coverage.table,
        "surveys": surveys.table,
        "whole": whole.table,
        "preferences": preferences.table,
        "rivals": rivals.table,
        "live": live.table,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ours and the peers, as ratios.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(tables)}; all by default")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the results into this document")
    parser.add_argument("--rows", type=int, default=files.ROWS, help="of the largest file (default: %(default)s)")
    parser.add_argument("--boards", type=int, default=coverage.BOARDS, help="per cell of coverage")
    options = parser.parse_args()
    if unknown := set(options.tables) - set(tables):
        parser.error(f"there is no table {', '.join(sorted(unknown))}; there are {', '.join(tables)}")
    if options.rows < 1:
        parser.error(f"--rows must be at least 1, got {options.rows}")
    if options.write and not options.write.is_file():
        parser.error(f"--write puts the results into a document that exists, and {options.write} does not")
    tables["files"] = partial(files.table, options.rows)
    tables["counting"] = partial(counting.table, max(options.rows, counting.ROWS))
    tables["leaderboards"] = partial(leaderboards.table, options.rows)
    tables["coverage"] = partial(coverage.table, options.boards)

    results, met, missed = {"machine": report.machine()}, 0, 0
    print(results["machine"], flush=True)
    for name in options.tables or tables:
        if sys.stderr.isatty():
            print(f"{name} …", end="\r", file=sys.stderr, flush=True)
        start = time.perf_counter()
        table = tables[name]()
        results[name] = str(table)
        met, missed = met + table.count("ok"), missed + table.count("missed")
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)\n\n{table}", flush=True)
    print(f"\n{met} of {met + missed} targets met")
    if options.write:
        report.write(options.write, results)


if __name__ == "__main__":
    main()
