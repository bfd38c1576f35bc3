"""How long a plan takes on the command line, from a fresh process to the printed answer; nothing is compiled."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Table, verdict

_TURNS = 3
_TARGET = 2.0
_COMPARED = "comparisons --comparisons 100000 --protect"
_SETTINGS = {
    "ranking": [f"ranking --items {items}" for items in (3, 6, 10, 50, 200, 10_000)],
    "scores": [
        *(f"scores --items {items}" for items in (3, 20, 1000, 10_000)),
        *(f"scores --items 20 --law {law}" for law in ("normal", "exponential", "beta")),
    ],
    "comparisons": [
        f"{_COMPARED} {unit} --items {items}"
        for unit in ("outcome", "comparison", "voter --max-per-voter 10")
        for items in (3, 50, 1000)
    ],
}
_QUESTIONS = ("--epsilon 1", "--pairs 0.9", "--exact 0.9", "--overlap 0.9", "--half-width 0.1")
_RESPONDENTS = [f"respondents --epsilon 1 --half-width 0.03 --items {items}" for items in (3, 6, 10, 50, 1000)]


def table() -> Table:
    kinds = {
        f"{situation} {question}": [f"{setting} {question}" for setting in settings]
        for (situation, settings), question in itertools.product(_SETTINGS.items(), _QUESTIONS)
        if (situation, question) != ("ranking", "--half-width 0.1")
    }
    kinds["respondents"] = _RESPONDENTS
    kinds["with a picture"] = [
        f"{settings[1]} {question} --output plan.png"
        for settings, question in itertools.product(_SETTINGS.values(), ("--pairs 0.9", "--exact 0.9", "--overlap 0.9"))
    ]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for kind, commands in kinds.items():
            slowest, command = max((min(_seconds(one, scratch) for _ in range(_TURNS)), one) for one in commands)
            words = command.removesuffix(kind.partition(" ")[2]).strip()
            rows.append((kind, words, f"{slowest:.2f} s", f"below {_TARGET:g} s", verdict(slowest < _TARGET)))
    return Table(("plan", "the slowest", "time", "target", "met"), rows)


def _seconds(command: str, directory: str) -> float:
    program = Path(sys.executable).with_name("rankdp")
    start = time.perf_counter()
    subprocess.run([program, "plan", *command.split()], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
