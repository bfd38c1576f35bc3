"""`python -m tests.fuzzing --seed 1 --files 100000`: damaged files for rankdp, and what came of it.

A worker process judges one file after the other and says so in a line before and after each. If it dies, stalls or
takes much memory, or if anything but a refusal is raised, the file is kept and reported, and a new worker goes on.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

PER_FILE_SECONDS = 60
MOST_MEMORY = 8 << 30  # of a worker's addresses; what asks for more is refused by the system
MOST_RESIDENT = 1 << 20  # of a worker's memory in use, in KiB
ROOT = Path(__file__).parents[2]


@dataclass
class Result:
    """How many files were accepted and refused, and what was found."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        files = sum(self.counts.values())
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.counts.items()))
        return f"{files:,} files in {self.seconds:.0f} s: {kinds or 'none'}; {len(self.findings)} findings"


def run(seed: int, first: int, files: int, seconds: float, keep: Path, plant: str = "") -> Result:
    """Judge `files` files of a seed from number `first` on, for at most so long; `plant` serves this tool's tests."""
    result, started = Result(), time.monotonic()
    end = first + files
    while first < end and time.monotonic() - started < seconds and len(result.findings) < 50:
        with tempfile.TemporaryDirectory() as directory:
            first = _watch(seed, first, end, started + seconds, Path(directory), keep, plant, result)
    result.seconds = time.monotonic() - started
    return result


def _watch(
    seed: int, first: int, end: int, deadline: float, directory: Path, keep: Path, plant: str, result: Result
) -> int:
    """Let one worker go on until it is done, dead or stalled; the number of the file to go on with."""
    command = [sys.executable, "-m", "tests.fuzzing", "--worker", str(directory), "--plant", plant]
    command += ["--seed", str(seed), "--first", str(first), "--files", str(end - first)]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1, cwd=ROOT) as worker,
    ):
        assert worker.stdout is not None
        number, why = first, ""
        lines = _Lines(worker.stdout.fileno())
        while True:
            line = lines.next(PER_FILE_SECONDS)
            if line is None:
                why = "hang"
                break
            if not line:
                why = "" if worker.wait() == 0 else "crash"
                break
            word, _, said = line.partition(" ")
            if word == "at":
                number = int(said)
                if time.monotonic() > deadline:
                    break
            elif word == "finding":
                result.counts["found"] += 1
                _keep(result, seed, number, said, keep)
            else:
                result.counts[word] += 1
        worker.kill()
        if why:
            errors.seek(0)
            last = " | ".join(errors.read().split("Extension modules:")[0].split("\n"))[-1500:]
            result.counts[why] += 1
            _keep(result, seed, number, f"{why} (exit code {worker.wait()}): {last}", keep)
            return number + 1
    return end if number == end - 1 or time.monotonic() <= deadline else number


class _Lines:
    """Lines from a pipe, with a limit to the waiting."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest = descriptor, b""

    def next(self, seconds: float) -> str | None:
        """The next line; the empty text at the end, None if there is none in time."""
        while b"\n" not in self._rest:
            if not select.select([self._descriptor], [], [], seconds)[0]:
                return None
            part = os.read(self._descriptor, 1 << 16)
            if not part:
                return ""
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")


def _keep(result: Result, seed: int, number: int, said: str, keep: Path) -> None:
    from .forging import case

    keep.mkdir(parents=True, exist_ok=True)
    forged = case(seed, number)
    path = keep / f"{forged.holds}-{seed}-{number}.{forged.ending}"
    path.write_bytes(forged.data)
    result.findings.append(f"{path}: {said}")


def work(seed: int, first: int, files: int, directory: Path, plant: str) -> None:
    """Judge files in this process."""
    from .forging import case
    from .judging import judge

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resident = 0
    for number in range(first, first + files):
        print("at", number, flush=True)
        try:
            _planted(plant, number)
            forged = case(seed, number)
            path = directory / f"case.{forged.ending}"
            path.write_bytes(forged.data)
            said = judge(forged, path)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            at = next((frame for frame in reversed(frames) if "rankdp" in frame.filename), frames[-1])
            text = " ".join(f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {error}".split())
            said = f"finding {text[:600]}"
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if resident and used > resident + MOST_RESIDENT:
            said = f"finding memory grew by {(used - resident) >> 10} MiB"
        resident = max(resident, used)
        print(said, flush=True)


def _planted(plant: str, number: int) -> None:
    """A mistake of our own, so that a test can see that it is found."""
    kind, _, where = plant.partition("@")
    if not kind or int(where) != number:
        return
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "hang":
        time.sleep(3600)
    raise ValueError("planted")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="which files: a seed and a number make a file (default 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first file (default 0)")
    parser.add_argument("--files", type=int, default=10_000, help="how many files (default 10000)")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit for all of them")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-findings"), help="directory for files that found something"
    )
    parser.add_argument("--worker", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--plant", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.seed, options.first, options.files, options.worker, options.plant)
        return 0
    result = run(options.seed, options.first, options.files, options.seconds, options.keep, options.plant)
    for finding in result.findings:
        print(finding)
    print(result)
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
