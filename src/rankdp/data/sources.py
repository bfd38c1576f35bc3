"""What a file format owes the reader: some facts about the file, and its rankings batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rankdp.data.cells import Known
from rankdp.data.columns import Columns
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError


@dataclass(slots=True)
class Source:
    """An open file of rankings."""

    format: str
    columns: Columns
    known: Known
    rows: int | None
    """How many rankings there are; None when only reading to the end could tell."""
    width: int
    batches: Iterator[Rankings]
    close: Callable[[], None]
    later: Iterator[Callable[[], Rankings]] | None = None
    """The same batches, each still to be gathered and checked by a call; None where nothing is gained by waiting."""


def system_problem(path: str, error: OSError, doing: str) -> InputError:
    """The operating system's refusal as one sentence with the path."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return InputError(f"{path}: the file could not be {doing} ({reason})")
