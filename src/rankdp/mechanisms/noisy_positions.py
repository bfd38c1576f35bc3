"""Where items land when Laplace noise is added to their ranks: M[a, b] = P(item a is the b-th, both from 0).

    M[a, b] = integral of f_a(x) P(b of the others lie below x) dx

How many of all items lie below x is Poisson-binomial: m steps, one for each item. One item a, below x with probability
p, is left out by undoing its step, all(k) = (1-p) others(k) + p others(k-1): upwards from the smallest count as long as
the first term is the larger one, and from there downwards from the largest. So nothing is lost to cancellation. That is
O(m) a node for each count that is likely at all. (Both ways an error at an end grows less than the numbers do: what is
left out there, below d, is at most about sqrt(d) where they meet.)

Nodes. Below rank 0 the integrand is a polynomial of degree m-1 in exp(x/b). Between two ranks it is entire: at x + z it
is at most exp(m |z|/b) times as large, and with t_i = exp(-|x-i|/b)/2 the sum of its sizes over b is at most f_a(x)
exp(|z|/b + 2 (exp(|z|/b) - 1) sum of t_i). Gauss quadrature with n nodes on a stretch that an ellipse of parameter r
surrounds errs by at most 64/15 r^(-2n) / (1 - r^-2) times the largest size there; n is the smallest that makes this
1e-13 for some r, by the first bound relative to each number (short rankings), by the second one absolute. Above the
middle, M[a, b] = M[m-1-a, m-1-b].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

Floats = NDArray[np.float64]

_ERROR = 1e-13
_RELATIVE_UP_TO = 50  # items
_NEVER = 1e-300, _ERROR**2  # counts less likely than this are left out, in short rankings and in long ones
_FAR = 700.0, 50.0  # scales: an item farther from x is on its own side of it


def position_matrix(items: int, scale: float, stretches: int) -> Floats:
    """The m x m matrix; the space between two ranks is cut into ``stretches`` parts."""
    long = items > _RELATIVE_UP_TO
    outer, outer_weight = np.polynomial.legendre.leggauss(items // 2 + 1)
    inner, inner_weight = np.polynomial.legendre.leggauss(_nodes(items, scale * stretches, scale, long))
    unit = (outer + 1) / 2  # exp(x/b)
    edges = np.minimum(np.arange(((items - 1) * stretches + 1) // 2 + 1) / stretches, (items - 1) / 2)
    half = np.diff(edges)[:, None] / 2
    x = np.concatenate([scale * np.log(unit), (edges[:-1, None] + half * (inner + 1)).ravel()])
    weight = np.concatenate([outer_weight / 2 * scale / unit, (half * inner_weight).ravel()])
    below_middle = _landed(x, weight, items, scale, _NEVER[long], _FAR[long])
    return np.asarray(below_middle + below_middle[::-1, ::-1])


def _nodes(items: int, stretch: float, scale: float, long: bool) -> int:
    """How many the bound asks for on one stretch, of which the scale has ``stretch``."""
    r = np.geomspace(1.2, 500, 400)
    reach = (r + 1 / r) / (4 * stretch)
    if long:  # the sum of t_i is largest at the rank in the middle
        tails = np.exp(-np.abs(np.arange(items) - (items - 1) // 2) / scale).sum() / 2
        with np.errstate(over="ignore"):
            growth = reach + 2 * tails * np.expm1(reach)
    else:
        growth = items * (reach + 1 / (2 * stretch))  # and it may be as much smaller at the ends as in the middle
    return math.ceil(float(np.min((growth + np.log(64 / 15 / _ERROR / (1 - r**-2.0))) / (2 * np.log(r)))))


@kernel
def _landed(x: Floats, weight: Floats, items: int, scale: float, never: float, far: float) -> Floats:
    """The integral over these nodes."""
    found = np.zeros((items, items))
    counts, ahead, tails = np.zeros(items + 2), np.zeros(items + 2), np.empty(items)
    for node in range(len(x)):
        first = int(max(0.0, np.floor(x[node] - far * scale)))
        last = int(min(items - 1.0, np.ceil(x[node] + far * scale)))
        low = high = first
        counts[low] = 1.0
        for i in range(first, last + 1):
            tails[i] = 0.5 * math.exp(-abs(x[node] - i) / scale)
            p, q = (tails[i], 1.0 - tails[i]) if i > x[node] else (1.0 - tails[i], tails[i])
            _step(counts, ahead, low, high, p, q)
            high += 1
            while ahead[low] < never:
                low += 1
            while ahead[high] < never:
                high -= 1
            counts, ahead = ahead, counts
        for a in range(first, last + 1):
            p, q = (tails[a], 1.0 - tails[a]) if a > x[node] else (1.0 - tails[a], tails[a])
            _leave_out(counts, low, high, p, q, weight[node] * tails[a] / scale, found[a])
    return found


@kernel
def _step(counts: Floats, ahead: Floats, low: int, high: int, p: float, q: float) -> None:
    """One more item: the counts from low to high become ``ahead``, from low to high + 1."""
    ahead[low], ahead[high + 1] = counts[low] * q, counts[high] * p
    here, before, new = counts[low + 1 : high + 1], counts[low:high], ahead[low + 1 : high + 1]
    for k in range(len(new)):
        new[k] = here[k] * q + before[k] * p


@kernel
def _leave_out(counts: Floats, low: int, high: int, p: float, q: float, share: float, found: Floats) -> None:
    """Add ``share`` times the law of the counts from low to high without an item, which lies below with p = 1 - q."""
    weight, ratio, part, k = share / q, p / q, 0.0, low
    while k <= high and k < len(found):
        before = ratio * part
        part = weight * counts[k] - before
        if part < before:
            break
        found[k] += part
        k += 1
    stop, weight, ratio, part = k, share / p, q / p, 0.0
    for k in range(high, stop, -1):
        part = weight * counts[k] - ratio * part
        found[k - 1] += part
