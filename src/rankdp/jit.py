"""How rankdp runs its kernels: interpreted while there is little to do, then compiled by Numba.

Compiling takes a second or two the first time, and loading Numba half a second every time. So every kernel that Python
calls states its ``effort``: about how many microseconds Python needs per entry of its arrays (or, as a function of the
arguments, for all of them). It is interpreted until that adds up to ``PATIENCE``, then compiled: the same source, and
on integers the same result. Machine code is cached on disk and runs without the GIL.

Numba is optional. Where it is missing (it does not exist for WebAssembly, for example) kernels stay interpreted. One
warning says so, and how long the call that caused it takes.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import warnings
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast, overload

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

Effort = float | Callable[..., float]

PATIENCE = 250_000
"""Microseconds for which a kernel is interpreted before it is compiled."""


@overload
def kernel(function: Kernel) -> Kernel: ...
@overload
def kernel(*, effort: Effort) -> Callable[[Kernel], Kernel]: ...
def kernel(function: Kernel | None = None, *, effort: Effort = math.inf) -> Any:
    """Make ``function`` a kernel; without an ``effort`` only other kernels may call it."""
    return partial(_Kernel, effort=effort) if function is None else _Kernel(function, effort)


class _Kernel:
    known: dict[Any, _Kernel] = {}  # noqa: RUF012 - by its code; all kernels share it

    def __init__(self, function: Callable[..., Any], effort: Effort) -> None:
        self._function, self._effort, self._spent = cast(FunctionType, function), effort, 0.0
        self.known[self._function.__code__] = self
        update_wrapper(self, function)

    def _called(self) -> dict[str, _Kernel]:
        """The kernels that the function calls, by their names in its module, where compiled ones are dispatchers."""
        names = self._function.__globals__
        found = {}
        for name in self._function.__code__.co_names:
            used = names.get(name)
            source = getattr(used, "py_func", None)
            inner = used if isinstance(used, _Kernel) else source and self.known.get(source.__code__)
            if inner:
                found[name] = inner
        return found

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function as Python runs it, calling plain functions."""
        names = {**self._function.__globals__, **{name: inner.plain for name, inner in self._called().items()}}
        return FunctionType(self._function.__code__, names, self._function.__name__, self._function.__defaults__)

    @cached_property
    def compiled(self) -> Any:
        """Numba's dispatcher. The kernels that the function calls must be dispatchers too when it is compiled."""
        import numba

        _give_notice()
        for name, inner in self._called().items():
            self._function.__globals__[name] = inner.compiled
        return numba.njit(cache=True, nogil=True, error_model="numpy")(self._function)

    def __call__(self, *arguments: Any) -> Any:
        if "compiled" in self.__dict__:
            return self.compiled(*arguments)
        if callable(self._effort):
            effort = self._effort(*arguments)
        else:
            effort = self._effort * sum(getattr(argument, "size", 1) for argument in arguments)
        self._spent += effort
        if self._spent > PATIENCE:
            if has_numba():
                return self.compiled(*arguments)
            _warn_once(effort)
        import numpy as np

        with np.errstate(all="ignore"):  # unsigned integers wrap round, as they do when compiled
            return self.plain(*arguments)


@cache
def has_numba() -> bool:
    """Whether kernels can be compiled."""
    try:
        return importlib.util.find_spec("numba") is not None
    except ValueError:  # blocked on purpose: sys.modules["numba"] is None
        return False


def _warn_once(effort: float) -> None:
    """Warn that a call of about ``effort`` microseconds runs without Numba."""
    if _warned:
        return
    _warned.append(True)
    seconds = effort / 1e6
    lasts = f"; this step takes about {seconds:,.0f} s" if 2 <= seconds < math.inf else ""
    message = f"Numba is not installed, so rankdp computes in plain Python, about a hundred times slower{lasts}"
    warnings.warn(message, stacklevel=4)


_warned: list[bool] = []
_noticed: list[object] = []


def _give_notice() -> None:
    """Tell a person at a terminal, once, why the first call takes seconds."""
    if _noticed:
        return
    from numba.core import event

    class Notice(event.Listener):
        printed = False

        def on_start(self, event: Any) -> None:
            if not self.printed and sys.stderr.isatty():
                self.printed = True
                print("rankdp: compiling kernels for this machine (first use only, some seconds)…", file=sys.stderr)

        def on_end(self, event: Any) -> None: ...

    _noticed.append(Notice())
    event.register("numba:compile", _noticed[0])  # type: ignore[no-untyped-call]
