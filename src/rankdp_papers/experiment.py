"""What an experiment gets and gives: a point of a grid with its seed, and rows of numbers with standard errors."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError
from rankdp.privacy.bits import SeededBits

Row = dict[str, Any]
"""Column -> value. "value" and "error" (its standard error, 0 where it is exact) are numbers, "by" may say how they
were found; the rest says of what."""
NUMBERS = ("value", "error", "by")
"""The columns that do not say of what."""


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


def mean_row(values: ArrayLike, **columns: Any) -> Row:
    """The mean of independent repetitions and its standard error; of True and False, their share."""
    sample = np.asarray(values)
    mean = float(sample.mean())
    if sample.dtype == bool:
        error = share_error(mean, len(sample))
    else:
        error = float(sample.std(ddof=1) / math.sqrt(len(sample))) if len(sample) > 1 else math.nan
    return {**columns, "value": mean, "error": error}


def share_error(share: float, count: int) -> float:
    """The standard error of a share, never 0: two more of each kind are counted (Agresti and Coull 1998)."""
    wider = (share * count + 2) / (count + 4)
    return math.sqrt(wider * (1 - wider) / (count + 4))


def exact_row(method: str, measure: str, value: float, error: float = 0.0) -> Row:
    """A number that was not simulated, or one with the error of what it was computed from."""
    return {"method": method, "measure": measure, "value": float(value), "error": error}


def exact_rows(table: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """Numbers that were not simulated, by method and measure."""
    return [exact_row(method, measure, value) for method, line in table.items() for measure, value in line.items()]


class Repeated:
    """What repetitions measured, by method and measure and perhaps more columns."""

    def __init__(self) -> None:
        self._values: dict[tuple[tuple[str, str], ...], list[float]] = defaultdict(list)

    def add(self, measured: Mapping[str, float], **columns: str) -> None:
        """One repetition's numbers by measure, of these columns."""
        for measure, value in measured.items():
            self._values[*columns.items(), ("measure", measure)].append(value)

    def rows(self) -> list[Row]:
        """The mean of each and its standard error."""
        return [mean_row(values, **dict(columns)) for columns, values in self._values.items()]


def data_home(*needed: str) -> Path:
    """The directory of public data sets that RANKDP_DATA names, after a check that it holds all that are ``needed``."""
    named = os.environ.get("RANKDP_DATA")
    if not named:
        raise InputError(f"RANKDP_DATA must name the directory that holds {', '.join(needed)}; it is not set")
    for name in needed:
        if not (Path(named) / name).is_dir():
            raise InputError(f"RANKDP_DATA must name a directory that holds {name}/, got {named}")
    return Path(named)
