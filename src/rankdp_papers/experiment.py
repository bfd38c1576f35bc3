"""What an experiment gets and gives: a point of a grid with its seed, and rows of numbers with standard errors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.errors import InputError
from rankdp.privacy.bits import SeededBits

Row = dict[str, Any]
"""Column -> value. "value" and "error" (its standard error, 0 where it is exact) are numbers; the rest says of what."""


@dataclass(frozen=True)
class Cell:
    """One point of a grid: ``cell["epsilon"]``. All randomness comes from ``seed`` through named streams."""

    values: Mapping[str, Any]
    repetitions: int = 1
    seed: int = 0

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def stream(self, *names: Any) -> int:
        """A seed that depends on the experiment's seed and these names alone: equal names, equal draws."""
        words = json.dumps([self.seed, *names], default=str).encode()
        return int.from_bytes(hashlib.sha256(words).digest()[:8], "big") >> 1

    def generator(self, *names: Any) -> np.random.Generator:
        """A NumPy generator on that stream."""
        return np.random.default_rng(self.stream(*names))

    def bits(self, *names: Any) -> SeededBits:
        """Seeded bits for a rehearsal on that stream."""
        return SeededBits(self.stream(*names))


def mean_row(values: Sequence[float], **columns: Any) -> Row:
    """The mean of independent repetitions and its standard error."""
    found = np.asarray(values, dtype=float)
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")
    return {**columns, "value": float(found.mean()), "error": error}


def data_home(*needed: str) -> Path:
    """The directory of public data sets that RANKDP_DATA names, once it is seen to hold those that are ``needed``."""
    named = os.environ.get("RANKDP_DATA")
    if not named:
        raise InputError(f"RANKDP_DATA must name the directory that holds {', '.join(needed)}; it is not set")
    for name in needed:
        if not (Path(named) / name).is_dir():
            raise InputError(f"RANKDP_DATA must name a directory that holds {name}/, got {named}")
    return Path(named)
