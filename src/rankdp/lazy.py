"""Modules and names that are loaded when they are first used.

The names of a package are listed once, in the stub next to its ``__init__.py``. Type checkers and editors read the
stub; ``attach`` reads the same lines, ``from module import name as name``.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_LISTED = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package; its own subpackages are in the second only."""
    stub = pkgutil.get_data(package, "__init__.pyi") or b""
    homes = {name: home for home, name in _LISTED.findall(stub.decode())}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        present = vars(sys.modules[package]).items()
        return sorted({*homes, *(name for name, value in present if name[:2] == "__" or isinstance(value, ModuleType))})

    return load, names, [name for name, home in homes.items() if home != package]


class LazyModule:
    """A module of another library, imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
