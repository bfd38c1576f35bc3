"""Progress of long work: what is being done, how much of it is done, and the total.

Nobody listens by default; the command line does, on a terminal. Progress may reveal the sizes of files, so it is for
the person who runs the work; it never enters a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, float, float | None], None]

_listeners: list[Listener] = []


def tell(doing: str, done: float, total: float | None = None) -> None:
    """Report how far the work is; the total is None if it is not known."""
    for listener in _listeners:
        listener(doing, done, total)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Report progress to the listener, from any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
