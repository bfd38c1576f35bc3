"""Exact discrete Laplace noise against OpenDP's vectorised sampler, which is exact too; one thread each."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
from numpy.typing import ArrayLike

from benchmarks.measure import race
from benchmarks.report import Table, rate, times, verdict
from rankdp import SecureBits
from rankdp.privacy.noise import discrete_laplace

_SCALES = (10, 1000)
_OURS, _THEIRS = 1_000_000, 20_000
_TARGET = 50


def table() -> Table:
    peer = f"OpenDP {version('opendp')}"
    rows = []
    for scale in _SCALES:
        ours, theirs = _ours(scale), _theirs(scale)
        best = race({"theirs": theirs, "ours": ours})
        ratio = (_OURS / best["ours"]) / (_THEIRS / best["theirs"])
        rows.append(
            (
                str(scale),
                rate(_OURS / best["ours"]),
                rate(_THEIRS / best["theirs"]),
                times(ratio),
                times(_TARGET),
                verdict(ratio >= _TARGET),
            )
        )
    return Table(("scale", "rankdp", peer, "ratio", "target", "met"), rows)


def _ours(scale: int) -> Callable[[], object]:
    bits = SecureBits()
    _check(discrete_laplace(scale, _OURS, bits), scale)
    return lambda: discrete_laplace(scale, _OURS, bits)


def _theirs(scale: int) -> Callable[[], object]:
    dp.enable_features("contrib")
    zeros = [0] * _THEIRS
    laplace = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=float(scale))
    _check(laplace(zeros), scale)
    return lambda: laplace(zeros)


def _check(draws: ArrayLike, scale: int) -> None:
    """The mean absolute value must be that of the law: 2r/(1-r^2) with r = exp(-1/scale)."""
    r = math.exp(-1 / scale)
    sizes = np.abs(np.asarray(draws, dtype=np.float64))
    error = abs(sizes.mean() - 2 * r / (1 - r * r))
    assert error < 6 * sizes.std() / math.sqrt(sizes.size), f"not the discrete Laplace law of scale {scale}"
