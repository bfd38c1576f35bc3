"""How likely noise leaves the whole order of n scores as it was, for scores drawn from a law and any size of noise.

The points (X_i, Y_i), Y_i = X_i + sigma N_i, are i.i.d. in the plane, and the order survives if they rise together. Let
C_k(x, t) be the chance that k of them rise, all with X < x and Y < t. A sweep over x finds all C_k at once:

    dC_k(x, t)/dx = integral over t' < t of C_(k-1)(x, t') m(x, t') dt',    P = n! C_n(inf, inf),

with m the density of a point. Where t is far below x nothing changes any more, and where it is far above C_k does not
depend on t, so that only a window of t around x is kept, as wide as the noise. Cells have their exact masses (from the
noise's excess function, however sharp it is), C_k is linear inside them and a step in x is Heun's; the error is of the
second order in their width; it is extrapolated away, and estimated, from grids of N, 2N, 4N, … cells. C_k is kept times
n^k e^(-n F(x)), which no float underflows at, and only for the k that F(x) makes likely.

Little noise needs no grid: with m the expected number of adjacent flips and c_k, alpha_k those of ``recovery``,

    log P = -m + (alpha_2 - c1^2/2) sigma^2 - (c3 - alpha_1''/2 + c1 c2 + c1^3/3) sigma^3 + …,

terms that fall like n sigma.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankdp.checks import positive, whole
from rankdp.theory.noises.score_noise import ScoreNoise, check_independent
from rankdp.theory.recovery import adjacent_flips, expansion
from rankdp.theory.score_laws import ScoreLaw
from rankdp.types import Floats

_LOST = 1e-5  # the chance that any point leaves its window
_BLOCK = 64  # rows whose masses are computed at once


class OrderProbability(NamedTuple):
    """The chance that the whole order is right, about how far off it is at most, and how it was found."""

    value: float
    error: float
    method: str


def order_probability_iid(
    n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, tolerance: float = 1e-4, most_cells: int = 1 << 15
) -> OrderProbability:
    """P(the whole order is right) = 1 - P_e, for any sigma.

    Parameters
    ----------
    n
        How many scores.
    noise
        Of variance one, with independent coordinates.
    sigma
        Its standard deviation.
    law
        Of each score.
    tolerance
        The error to stay below, where the cells suffice.
    most_cells
        The finest grid; where it does not suffice, the expansion is taken if it is less far off.
    """
    whole("n", n, 2)
    positive("sigma", sigma)
    flips = adjacent_flips(n, noise, sigma, law)
    if n == 2:
        return OrderProbability(1 - flips, 1e-9, "one pair")
    if flips > 2 * math.log(1 / tolerance) + 10:  # every other pair alone is in order less often than this
        return OrderProbability(0.0, math.exp(-flips / 2), "bound by every other pair")
    expanded = _expanded(flips, *expansion(n, noise, sigma, law))
    if expanded.error < tolerance / 4:
        return expanded
    check_independent(noise)
    table = _law_table(law, n)
    scores, noisy = _Mesh(*table), _Mesh(*_noisy_table(*table, noise, sigma, n))
    cells = max(128.0, 8 * math.sqrt(n), scores.length / (sigma * float(noise.quantile(0.75))) / 4)
    if cells > most_cells:
        return expanded
    meshes, first = (scores, noisy), 1 << math.ceil(math.log2(cells))
    integrated = _refined(n, noise, sigma, law, meshes, first, most_cells, tolerance)
    return expanded if tolerance <= integrated.error > expanded.error else integrated


def _expanded(flips: float, second: float, third: float) -> OrderProbability:
    """By the expansion; off by about as much as the next term, were all terms in one ratio."""
    if math.isfinite(third) and abs(third) < abs(second) < flips:
        value = math.exp(min(0.0, -flips + second + third))
        ratio = max(abs(third / second), abs(second) / flips) if second else 0.0
        return OrderProbability(value, value * abs(third) * ratio, "expansion to the third order")
    if not (math.isfinite(second) and abs(second) < flips):
        return OrderProbability(math.exp(-flips), math.exp(-flips / 2), "expansion to the first order")
    value = math.exp(min(0.0, -flips + second))
    return OrderProbability(value, value * math.expm1(abs(second)), "expansion to the second order")


def _refined(
    n: int,
    noise: ScoreNoise,
    sigma: float,
    law: ScoreLaw,
    meshes: tuple[_Mesh, _Mesh],
    cells: int,
    most_cells: int,
    tolerance: float,
) -> OrderProbability:
    """Grids of twice as many cells, extrapolated as Romberg did, until the last step is small."""
    logs = [_sweep(n, noise, sigma, law, *meshes, cells // part) for part in (4, 2, 1)]
    while True:
        first, second = (fine + (fine - coarse) / 3 for coarse, fine in pairwise(logs))
        step = (second - first) / 15
        value = math.exp(min(second + step, 0.0))
        error = value * math.expm1(min(4 * abs(step), 700))
        if error < tolerance or 2 * cells > most_cells:
            return OrderProbability(value, error, f"integrated on {cells} cells")
        cells *= 2
        logs = [*logs[1:], _sweep(n, noise, sigma, law, *meshes, cells)]


class _Mesh:
    """Edges of cells as dense as the power 2/3 of a density: the errors of all cells are then alike.

    Made from places x and the distribution function there.
    """

    def __init__(self, x: Floats, u: Floats) -> None:
        steps, masses = np.diff(x), np.diff(u)
        self._x = x
        self._level = np.concatenate([[0.0], np.cumsum(np.cbrt(masses**2 * steps))])
        self.length = float(self._level[-1] / np.cbrt(np.max(masses / steps) ** 2))
        """As many cells of this length at the mode make the mesh."""

    def edges(self, cells: int) -> Floats:
        return np.interp(np.linspace(0, self._level[-1], cells + 1), self._level, self._x)


def _law_table(law: ScoreLaw, n: int) -> tuple[Floats, Floats]:
    tail = np.geomspace(_LOST / n, 1 / 256, 48)
    u = np.concatenate([tail, np.linspace(0, 1, 257)[2:-2], 1 - tail[::-1]])
    x = law.quantile(u)
    low, high = law.support
    x = np.concatenate([[low] if math.isfinite(low) else [], x, [high] if math.isfinite(high) else []])
    x = np.unique(x)
    return x, law.cdf(x)


def _noisy_table(x: Floats, u: Floats, noise: ScoreNoise, sigma: float, n: int) -> tuple[Floats, Floats]:
    """Places of noisy scores, and how many scores are below them."""
    share = np.concatenate([np.geomspace(_LOST / n, 0.02, 12), np.linspace(0.04, 0.5, 12)])
    offsets = sigma * noise.quantile(np.concatenate([share, 1 - share[-2::-1]]))
    t = np.unique(np.concatenate([(x[::8, None] + offsets).ravel(), x, [x[0] + offsets[0], x[-1] + offsets[-1]]]))
    t = t[np.unique(np.linspace(0, len(t) - 1, 800).astype(int))]
    below = np.zeros_like(t)
    for block in np.array_split(np.arange(len(x) - 1), 8):
        edges = np.arange(block[0], block[-1] + 2)
        below += -_beyond(x[edges], u[edges], t, noise, sigma).sum(axis=0)
    return t, np.maximum.accumulate(below + u[-1])


def _beyond(x: Floats, u: Floats, t: Floats, noise: ScoreNoise, sigma: float) -> Floats:
    """[i, j]: P(the score is in the cell from x_i, the noisy score above t_j)."""
    excess = noise.quick_excess((t - x[:, None]) / sigma)
    return np.asarray((np.diff(u) / np.diff(x) * sigma)[:, None] * np.diff(excess, axis=0))


def _sweep(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, scores: _Mesh, noisy: _Mesh, cells: int) -> float:
    """log of n! C_n(inf, inf), on this many cells in both directions."""
    x, t = scores.edges(cells), noisy.edges(cells)
    u = law.cdf(x)
    reach = sigma * float(noise.quantile(1 - _LOST / n))
    low = np.maximum(np.searchsorted(t, x[:-1] - reach, side="right") - 1, 0)
    high = np.minimum(np.searchsorted(t, x[1:] + reach), cells)
    likely = 6 * np.sqrt(n * u * (1 - u)) + 6
    least = np.maximum(np.floor(n * u - likely)[:-1].astype(int), 1)
    most = np.minimum(np.ceil(n * u + likely)[1:].astype(int), n)
    held = np.zeros((n + 1, cells + 1))
    held[0] = math.exp(-n * u[0])
    reached = 0
    for first in range(0, cells, _BLOCK):
        rows = slice(first, min(first + _BLOCK, cells))
        start, stop = low[rows][0], high[rows][-1]
        corners = slice(rows.start, rows.stop + 1)
        masses = -np.diff(_beyond(x[corners], u[corners], t[start : stop + 1], noise, sigma))
        for i in range(rows.start, rows.stop):
            lo, hi, k, most_k = low[i], high[i], least[i], most[i]
            if hi > reached:
                held[:, reached + 1 : hi + 1] = held[:, reached, None]
                reached = hi
            mass = masses[i - first, lo - start : hi - start]
            mass = mass * (n * (u[i + 1] - u[i]) / (2 * mass.sum()))  # what left the window is put back
            before = held[k - 1 : most_k, lo : hi + 1]
            once = np.cumsum((before[:, 1:] + before[:, :-1]) * mass, axis=1)
            twice = once[:-1] / 2  # two of the points in this row
            twice[:, 1:] += once[:-1, :-1] / 2
            np.cumsum(twice * mass, axis=1, out=twice)
            held[k : most_k + 1, lo + 1 : hi + 1] += once
            held[k + 1 : most_k + 1, lo + 1 : hi + 1] += twice
            held[k - 1 : most_k + 1, lo : hi + 1] *= math.exp(-n * (u[i + 1] - u[i]))
    normal = n * (u[-1] - math.log((u[-1] - u[0]) * n)) + math.lgamma(n + 1)
    return float(np.log(max(held[n, reached], 1e-300)) + normal)
