"""What a file format owes the reader: some facts about the file, and its rankings batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rankdp.data.cells import Known
from rankdp.data.columns import Columns
from rankdp.data.rankings import Rankings


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
