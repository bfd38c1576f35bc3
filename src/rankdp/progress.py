"""What long work says about itself while it goes on: what it does, how much is done, of how much.

Nobody listens by default. The command line does, on a terminal. What is told are sizes of files and of work that was
asked for, for whoever runs it; nothing of it enters a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, float, float | None], None]

_listeners: list[Listener] = []


def tell(doing: str, done: float, total: float | None = None) -> None:
    """Say how far the work is; the total is None where only the end tells."""
    for listener in _listeners:
        listener(doing, done, total)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Report it to the listener, from whatever thread it is told."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
