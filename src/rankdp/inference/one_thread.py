"""Linear algebra on one thread: with the matrices of a leaderboard, threads of BLAS mostly wait for each other.

On a busy machine with two cores, 25 items take ten times as long on two threads as on one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import scipy.linalg  # noqa: F401  # loads the BLAS that is limited, as NumPy does
from threadpoolctl import ThreadpoolController

_P = ParamSpec("_P")
_R = TypeVar("_R")
_LOADED = ThreadpoolController()


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, with BLAS on one thread while it runs.

    Parameters
    ----------
    function
        Any function.
    """

    @wraps(function)
    def limited(*given: _P.args, **named: _P.kwargs) -> _R:
        with _LOADED.limit(limits=1, user_api="blas"):
            return function(*given, **named)

    return limited
