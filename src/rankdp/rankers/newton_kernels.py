"""Compiled loops of Newton's method, over pairs sorted by their first item.

`starts[i]` to `starts[i + 1]` are the pairs whose first item is i, `second` their other items. Indices are unsigned,
which spares a test for negative ones in every access and halves the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdp.jit import kernel
from rankdp.types import Floats, Ints, Longs

WIDE = 700.0
"""Up to here exp(theta) neither overflows nor loses digits, and a share is one division: x_i / (x_i + x_j)."""


@kernel(effort=1.5)
def expected_wins(starts: Longs, second: Ints, comparisons: Floats, theta: Floats, weights: Floats) -> tuple[Any, Any]:
    """Expected wins and the diagonal of their derivative; each pair's weight n p (1-p) into ``weights``."""
    wide = np.abs(theta).max() > WIDE
    x = np.exp(theta) if not wide else theta
    won_by, bend = np.zeros(len(theta)), np.zeros(len(theta))
    for i in range(len(theta)):
        mine, wins, diagonal = x[i], 0.0, 0.0
        mine_at = slice(starts[i], starts[i + 1])
        others, met_of, weight_of = second[mine_at], comparisons[mine_at], weights[mine_at]
        for k in range(len(others)):
            j = np.uint32(others[k])
            if wide:
                share = 1.0 / (1.0 + np.exp(mine - x[j]))
                won = met_of[k] / (1.0 + np.exp(x[j] - mine))
            else:
                inverse = 1.0 / (mine + x[j])
                share = x[j] * inverse
                won = met_of[k] * (mine * inverse)
            weight = won * share
            weight_of[k] = weight
            wins += won
            diagonal += weight
            won_by[j] += met_of[k] * share
            bend[j] += weight
        won_by[i] += wins
        bend[i] += diagonal
    return won_by, bend


@kernel
def _add_laplacian_times(starts: Longs, second: Ints, weights: Floats, vector: Floats, out: Floats) -> None:
    """out += L vector, L the graph's Laplacian with these weights: the Hessian without the ridge."""
    for i in range(len(vector)):
        mine, total = vector[i], 0.0
        others, weight_of = second[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
        for k in range(len(others)):
            j = np.uint32(others[k])
            flow = weight_of[k] * (mine - vector[j])
            total += flow
            out[j] -= flow
        out[i] += total


@kernel
def _add(sums: Floats, rests: Floats, i: Any, value: float) -> None:
    """sums[i] + rests[i] += value without loss (Knuth's two-sum)."""
    old = sums[i]
    new = old + value
    back = new - old
    rests[i] += (old - (new - back)) + (value - back)
    sums[i] = new


@kernel(effort=4)
def careful_wins(starts: Longs, second: Ints, comparisons: Floats, theta: Floats) -> tuple[Any, Any, Any]:
    """Expected wins as the sum of two vectors, summed with compensation, and the comparisons of each item."""
    wide = np.abs(theta).max() > WIDE
    x = np.exp(theta) if not wide else theta
    sums, rests, played = np.zeros(len(theta)), np.zeros(len(theta)), np.zeros(len(theta))
    for first in range(len(theta)):
        i = np.uint32(first)
        others, met_of = second[starts[i] : starts[i + 1]], comparisons[starts[i] : starts[i + 1]]
        for k in range(len(others)):
            j = np.uint32(others[k])
            if wide:
                won, lost = 1.0 / (1.0 + np.exp(x[j] - x[i])), 1.0 / (1.0 + np.exp(x[i] - x[j]))
            else:
                total = x[i] + x[j]
                won, lost = x[i] / total, x[j] / total
            _add(sums, rests, i, met_of[k] * won)
            _add(sums, rests, j, met_of[k] * lost)
            played[i] += met_of[k]
            played[j] += met_of[k]
    return sums, rests, played


@kernel(effort=20)
def conjugate_gradients(
    starts: Longs,
    second: Ints,
    weights: Floats,
    diagonal: Floats,
    ridge: float,
    right: Floats,
    target: float,
    most: int,
) -> tuple[Any, Any]:
    """x with (L + ridge) x = right up to a residual of l2 norm ``target``, and the steps taken: ``most`` if it failed.

    Preconditioned by the diagonal (which includes the ridge).
    """
    x, residual = np.zeros(len(right)), right.copy()
    ready = residual / diagonal
    direction, product = ready, (residual * ready).sum()  # a plain sum: BLAS would start threads for long vectors
    for step in range(most):
        if np.sqrt((residual * residual).sum()) <= target:
            return x, step
        image = ridge * direction
        _add_laplacian_times(starts, second, weights, direction, image)
        bend = (direction * image).sum()
        if not bend > 0.0:
            break
        x += product / bend * direction
        residual -= product / bend * image
        ready = residual / diagonal
        before, product = product, (residual * ready).sum()
        direction = ready + product / before * direction
    return x, most
