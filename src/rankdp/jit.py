"""How rankdp compiles its kernels: on their first call, cached on disk, without holding the GIL, with a notice.

Numba itself is imported by the first call of a kernel, so that modules with kernels are as quick to import as others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` on its first call and keep the machine code beside the source (or in the user's cache)."""
    return cast(Kernel, _Kernel(function))


class _Kernel:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """Numba's dispatcher. The kernels that the function calls must be dispatchers too when it is compiled."""
        import numba

        _give_notice()
        names = self._function.__globals__
        for name in self._function.__code__.co_names:
            if isinstance(called := names.get(name), _Kernel):
                names[name] = called.compiled
        return numba.njit(cache=True, nogil=True, error_model="numpy")(self._function)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


_noticed: list[object] = []


def _give_notice() -> None:
    """Let Numba tell a person at a terminal, once, why the first call takes seconds."""
    if _noticed:
        return
    from numba.core import event

    class Notice(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said and sys.stderr.isatty():
                self.said = True
                print("rankdp: compiling kernels for this machine (first use only, some seconds)…", file=sys.stderr)

        def on_end(self, event: Any) -> None: ...

    _noticed.append(Notice())
    event.register("numba:compile", _noticed[0])  # type: ignore[no-untyped-call]
