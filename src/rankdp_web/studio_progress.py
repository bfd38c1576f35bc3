"""How far the work is that a page waits for: rows, rows a second, about how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rankdp.progress import heard_by


class Progress:
    """What the library tells about the work that goes on just now; empty where nothing does."""

    def __init__(self) -> None:
        self._doing: list[tuple[str, float]] = []
        self._told: tuple[str, float, float | None] | None = None
        self._pass, self._began = 1, 0.0  # of a file that is read several times, and when that pass began

    @contextmanager
    def of(self, doing: str) -> Iterator[None]:
        """Listen until the end of the block.

        Parameters
        ----------
        doing
            What is done, for the page.
        """
        self._doing.append((doing, time.monotonic()))
        self._told, self._pass, self._began = None, 1, time.monotonic()
        try:
            with heard_by(self._hear):
                yield
        finally:
            self._doing.pop()

    def _hear(self, doing: str, done: float, total: float | None) -> None:
        if self._told and done < self._told[1] / 2:  # threads may tell a little out of order
            self._pass, self._began = self._pass + 1, time.monotonic()
        self._told = (doing, done, total)

    def words(self) -> str:
        """One sentence, empty where nothing goes on."""
        if not self._doing:
            return ""
        doing, began = self._doing[-1]
        seconds = time.monotonic() - began
        told = self._told
        if told is None or not told[1] or seconds <= 0:
            return f"{doing}: {seconds:.0f} s."
        _, done, total = told
        seconds = max(time.monotonic() - self._began, 1e-3)
        doing += f", pass {self._pass}" * (self._pass > 1)
        if total is None:
            return f"{doing}: {done:,.0f} done, {done / seconds:,.0f} a second."
        left = max(0.0, (total - done) * seconds / done)
        return f"{doing}: {done / total:.0%}, about {left:.0f} s more."
