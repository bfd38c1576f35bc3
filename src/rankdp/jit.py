"""How rankdp compiles its kernels: once, on first use, cached on disk, without holding the GIL, and with a notice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` on its first call and keep the machine code beside the source (or in the user's cache)."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Kernel, compiled)


class _Notice(event.Listener):
    """Tells a person at a terminal, once, why the first call takes seconds."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if not self.said and sys.stderr.isatty():
            self.said = True
            print("rankdp: compiling kernels for this machine (first use only, some seconds)…", file=sys.stderr)

    def on_end(self, event: Any) -> None: ...


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
