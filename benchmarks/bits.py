"""What a 64-bit word of secure randomness costs one thread."""

from __future__ import annotations

import os
import time

import numpy as np

from benchmarks.measure import race
from benchmarks.report import Table, digits, verdict
from rankdp import SecureBits

_WORDS = 1 << 16
_TARGET = 1.5  # "about 1 ns"


def table() -> Table:
    secure, plain = SecureBits(), np.random.default_rng(0)
    contenders = {
        "rankdp SecureBits (AES-256-CTR)": lambda: secure.words(_WORDS),
        "os.urandom": lambda: np.frombuffer(os.urandom(8 * _WORDS), dtype=np.uint64),
        "NumPy PCG64 (not secure)": lambda: plain.integers(0, 1 << 64, _WORDS, dtype=np.uint64),
    }
    costs = {name: 1e9 * seconds / _WORDS for name, seconds in race(contenders, 9, time.thread_time).items()}
    rows = []
    for name, cost in costs.items():
        ours = name.startswith("rankdp")
        goal, word = (f"at most {_TARGET}", verdict(cost <= _TARGET)) if ours else ("", "")
        rows.append((name, digits(cost), goal, word))
    return Table(("source", "ns per word", "target", "met"), rows)
