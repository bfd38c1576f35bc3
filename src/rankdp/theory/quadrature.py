"""Deterministic integrals of functions with cusps, spikes and heavy tails, tables of smooth ones, and a bisection.

After a change of variable that makes the integrand vanish smoothly at both ends, the plain trapezoidal rule
converges faster than any power of the step (Takahasi and Mori, 1974). Integrals against a law with a known
distribution function are Stieltjes sums over cells instead, so that a spike inside a cell does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from rankdp.types import Floats


@lru_cache(maxsize=32)
def unit_rule(step: float = 1 / 24) -> tuple[Floats, Floats, Floats]:
    """Tanh-sinh nodes x in (0, 1), their complements 1 - x to full relative accuracy, and weights."""
    s = np.arange(-round(4.9 / step), round(4.9 / step) + 1) * step
    lift = math.pi * np.sinh(s)
    x, rest = 1 / (1 + np.exp(-lift)), 1 / (1 + np.exp(lift))
    weights = step * math.pi * np.cosh(s) * x * rest
    for part in (x, rest, weights):
        part.flags.writeable = False
    return x, rest, weights


def log_trapezoid(log_integrand: Callable[[Floats], Floats], low: float, high: float) -> float:
    """log of the integral of exp(log_integrand) over the line, for a single bump that is negligible beyond the ends.

    The window is narrowed, four times, to where the integrand is above e^-50 of its largest value.
    """
    for _ in range(4):
        z = np.linspace(low, high, 2001)
        log = log_integrand(z)
        top = float(np.max(log))
        if top == -math.inf:
            return -math.inf
        inside = np.flatnonzero(log >= top - 50)
        low, high = float(z[max(inside[0] - 1, 0)]), float(z[min(inside[-1] + 1, len(z) - 1)])
    z = np.linspace(low, high, 8001)
    return float(scipy.special.logsumexp(log_integrand(z))) + math.log(float(z[1] - z[0]))


def stieltjes(values: Floats, masses: Floats) -> float:
    """The sum over cells of (left + right value)/2 times the cell's mass, extrapolated from cells and pairs of cells.

    ``values`` are given at the edges (an odd number of them, on the last axis), ``masses`` in the cells between.
    """
    fine = float(np.sum((values[..., 1:] + values[..., :-1]) * masses) / 2)
    pairs = masses[..., ::2] + masses[..., 1::2]
    coarse = float(np.sum((values[..., 2::2] + values[..., :-2:2]) * pairs) / 2)
    return (4 * fine - coarse) / 3


def halved(edges: Floats) -> Floats:
    """The edges and the middles between them, in order."""
    return np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))


def spread(edges: Floats, weight: Floats, cells: int) -> Floats:
    """``cells`` + 1 edges between the first and the last of ``edges``, equally spaced in the increasing ``weight``.

    Part of the weight is the position of the edges in their list, so that no cell of the old list is skipped.
    """
    steps = np.maximum(np.diff(weight), 0)
    total = float(np.sum(steps)) or 1.0
    level = np.concatenate([[0.0], np.cumsum(steps / total + 0.2 / len(steps))])
    return np.asarray(np.interp(np.linspace(0, level[-1], cells + 1), level, edges))


def boundary(fits: Callable[[Floats], Any], low: Floats, high: Floats, steps: int = 62) -> Floats:
    """The largest number between ``low`` and ``high`` that fits, if those below it do: elementwise, by bisection."""
    for _ in range(steps):
        middle = (low + high) / 2
        fitting = fits(middle)
        low, high = np.where(fitting, middle, low), np.where(fitting, high, middle)
    return low


def log_table(function: Callable[[Floats], Floats], low: float, high: float, step: float) -> Callable[[Floats], Floats]:
    """A smooth positive function from a table of its logarithm: constant below ``low``, 0 above ``high``.

    In equal cells, the polynomials through the 8 edges around each. Plain NumPy: loading a library of splines takes
    longer than a plan.
    """
    cells = max(40, math.ceil((high - low) / step))
    width = (high - low) / cells
    values = np.log(np.maximum(function(low + width * np.arange(-3.0, cells + 4)), 1e-300))
    powers = np.arange(-3.0, 5.0)[:, None] ** np.arange(7, -1, -1)
    windows = np.lib.stride_tricks.sliding_window_view(values, len(powers))
    coefficients = np.linalg.solve(powers, windows.T)  # highest power first, a column for each cell

    def tabulated(z: Floats) -> Floats:
        place = (np.clip(z, low, high) - low) / width
        cell = np.minimum(place.astype(np.intp), cells - 1)
        place = place - cell
        total = coefficients[0].take(cell)
        for coefficient in coefficients[1:]:
            total = total * place + coefficient.take(cell)
        return np.where(z > high, 0.0, np.exp(total))

    return tabulated


def excess_table(
    excess: Callable[[Floats], Floats], low: float, high: float, step: float
) -> Callable[[Floats], Floats]:
    """The excess of a symmetric noise from a table in log(abs(x)) between ``low`` and ``high``, 0 beyond."""
    table = log_table(lambda z: excess(np.exp(z)), low, high, step)

    def quick(x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(table(np.log(np.abs(x))) + np.maximum(-x, 0))

    return quick
