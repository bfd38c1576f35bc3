"""Checks of arguments, each with a refusal in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from rankdp.errors import InputError, Setting


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, of Python or NumPy; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an integer from ``least`` to ``most``."""
    if not is_whole(value) or int(value) < least or (most is not None and int(value) > most):
        allowed = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InputError(Setting(name), f" must be an integer {allowed}, got {_shown(value)}")
    return int(value)


def number(name: str, value: Any, least: float = -math.inf, below: float = math.inf) -> float:
    """``value`` as a finite number of at least ``least`` and below ``below``."""
    if not _is_finite(value) or not least <= float(value) < below:
        allowed = f" of at least {least:g}" if least > -math.inf else ""
        limit = f" and below {below:g}" if below < math.inf else ""
        raise InputError(Setting(name), f" must be a finite number{allowed}{limit}, got {_shown(value)}")
    return float(value)


def positive(name: str, value: Any) -> float:
    """``value`` as a finite number above 0."""
    if not _is_finite(value) or not float(value) > 0:
        raise InputError(Setting(name), f" must be a finite number above 0, got {_shown(value)}")
    return float(value)


def share(name: str, value: Any) -> float:
    """``value`` as a number above 0 and below 1."""
    if not _is_finite(value) or not 0 < float(value) < 1:
        raise InputError(Setting(name), f" must be a number above 0 and below 1, got {_shown(value)}")
    return float(value)


def one_of(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not among the choices."""
    known = tuple(choices)
    if value not in known:
        raise InputError(Setting(name), f" must be one of {', '.join(known)}, got {_shown(value)}")


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)
