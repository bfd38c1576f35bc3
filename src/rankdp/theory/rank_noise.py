"""The law of rankings whose ranks carry independent Laplace noise of scale b: whole orders, and where items land.

``log_probabilities`` integrates item after item. ``position_matrix`` is M[a, b] = P(item a is the b-th, both from 0):

    M[a, b] = integral of f_a(x) P(b of the others lie below x) dx

How many of all items lie below x is Poisson-binomial: m steps, one for each item. One item a, below x with probability
p, is left out by reversing its step, all(k) = (1-p) others(k) + p others(k-1): upwards from the smallest count while
the first term is the larger one, and from there downwards from the largest. So nothing is lost to cancellation. That is
O(m) per node for each count that is likely at all. (Both ways an error at an end grows less than the numbers do: what
is left out there, below d, is at most sqrt(d) in the end.)

Nodes. Below rank 0 the integrand is a polynomial of degree m-1 in exp(x/b). Between two ranks it is entire: at x + z it
is at most exp(m |z|/b) times as large, and with t_i = exp(-|x-i|/b)/2 the sum of its sizes over b is at most f_a(x)
exp(|z|/b + 2 (exp(|z|/b) - 1) sum of t_i). Gauss quadrature with n nodes on a stretch that an ellipse of parameter r
surrounds errs by at most 64/15 r^(-2n) / (1 - r^-2) times the largest size there; n is the smallest that makes this
1e-13 for some r, by the first bound relative to each number (short rankings), by the second one absolute. Above the
middle, M[a, b] = M[m-1-a, m-1-b].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce

import numpy as np

from rankdp.jit import kernel
from rankdp.types import Floats, Ints

_INTEGRATED = 24  # Chebyshev nodes on a stretch no longer than the scale: full double precision
_ERROR = 1e-13
_RELATIVE_UP_TO = 50  # items
_SIDE_BY_SIDE = 80  # items: all nodes at once take less time than loading a compiler
# In short rankings and in long ones, counts less likely than d are left out, and an item farther from x than this many
# scales is on its own side of it. Leaving out an item of tail q there errs by at most d/q: q stays above sqrt(d).
_NEVER = 1e-300, 1e-30
_FAR = 344.0, 33.5


def log_probabilities(relative: Ints, scale: float, stretches: int) -> Floats:
    """log P(X_s[0] < X_s[1] < …) for each row s, with independent Laplace X_i around i.

    H_k(x) = P(the first k are in order and below x) obeys H_k' = f_k H_(k-1). All densities are
    exponentials outside [0, m-1], where the integrals are elementary; inside, between breakpoints, they
    are smooth and Chebyshev integration is exact to rounding.
    """
    rows, m = relative.shape
    node, integrate = _chebyshev_integration(_INTEGRATED)
    order = np.arange(m + 1)
    log_factorial = np.array([math.lgamma(k + 1) for k in order])
    below = np.concatenate([np.zeros((rows, 1)), np.cumsum(math.log(0.5) - relative / scale, axis=1)], axis=1)
    reached = np.exp(below - log_factorial)  # H_k(0)
    for start in np.arange((m - 1) * stretches) / stretches:
        x = start + (node + 1) / (2 * stretches)
        previous = np.ones((rows, _INTEGRATED))
        ahead = np.empty_like(reached)
        ahead[:, 0] = 1
        for k in range(1, m + 1):
            density = np.exp(-np.abs(x - relative[:, k - 1 : k]) / scale) / (2 * scale)
            previous = reached[:, k : k + 1] + (density * previous) @ integrate.T / (2 * stretches)
            ahead[:, k] = previous[:, -1]
        reached = ahead
    tail = np.cumsum((math.log(0.5) - (m - 1 - relative) / scale)[:, ::-1], axis=1)[:, ::-1]
    above = np.concatenate([tail, np.zeros((rows, 1))], axis=1) - log_factorial[::-1]
    with np.errstate(divide="ignore"):  # what is too unlikely for a float is as good as impossible
        return np.asarray(np.log(np.sum(reached * np.exp(above), axis=1)))


def position_matrix(items: int, scale: float, stretches: int) -> Floats:
    """The m x m matrix; the space between two ranks is cut into ``stretches`` parts."""
    if items <= _SIDE_BY_SIDE and stretches == 1:
        return top_block(items, scale, stretches, items)
    long = items > _RELATIVE_UP_TO
    x, weight = _quadrature(items, scale, stretches, (items - 1) / 2)
    below_middle = landed(x, weight, items, scale, _NEVER[long], _FAR[long])
    return np.asarray(below_middle + below_middle[::-1, ::-1])


def top_block(items: int, scale: float, stretches: int, k: int) -> Floats:
    """The corner of the first k positions, for few of them: only counts below k matter, at all nodes side by side.

    No item is divided out (``without_each``). Nodes and items farther away than ``_FAR`` scales are left out.
    """
    far = _FAR[k < items or items > _RELATIVE_UP_TO] * scale
    last = min(items - 1.0, k - 1 + far)
    x, weight = _quadrature(items, scale, stretches, last)
    if last == items - 1:  # above it everything is as below 0, upside down
        beyond = x < 0
        x, weight = np.append(x, last - x[beyond]), np.append(weight, weight[beyond])

    def below(i: int) -> Floats:
        tail = np.exp(-np.abs(x - i) / scale) / 2
        return np.where(x < i, tail, 1 - tail)

    after = map(below, range(k, min(items, math.ceil(last + far) + 1)))
    counts = reduce(one_more, after, np.eye(k, 1) * np.ones(len(x)))
    density = weight * np.exp(-np.abs(x - np.arange(k)[:, None]) / scale) / (2 * scale)
    others = without_each(np.array([below(i) for i in range(k)]), counts)
    return np.array([law @ here for law, here in zip(others, density, strict=True)])


def one_more(counts: Floats, chance: Floats) -> Floats:
    """The law of a count (by row; the largest ones left out) once another thing counts with this chance."""
    ahead = counts * (1 - chance)
    ahead[1:] += counts[:-1] * chance
    return np.asarray(ahead)


def without_each(chances: Floats, counts: Floats) -> Iterator[Floats]:
    """The law of the count of all things but one, for each of them in turn: half of them at a time, no division."""
    if len(chances) == 1:
        yield counts
        return
    half = len(chances) // 2
    yield from without_each(chances[:half], reduce(one_more, chances[half:], counts))
    yield from without_each(chances[half:], reduce(one_more, chances[:half], counts))


def _quadrature(items: int, scale: float, stretches: int, last: float) -> tuple[Floats, Floats]:
    """Nodes and weights from minus infinity to ``last``."""
    outer, outer_weight = np.polynomial.legendre.leggauss(items // 2 + 1)
    inner, inner_weight = np.polynomial.legendre.leggauss(_nodes(items, scale * stretches, scale))
    unit = (outer + 1) / 2  # exp(x/b)
    edges = np.minimum(np.arange(math.ceil(last * stretches) + 1) / stretches, last)
    half = np.diff(edges)[:, None] / 2
    x = np.concatenate([scale * np.log(unit), (edges[:-1, None] + half * (inner + 1)).ravel()])
    return x, np.concatenate([outer_weight / 2 * scale / unit, (half * inner_weight).ravel()])


def _nodes(items: int, stretch: float, scale: float) -> int:
    """How many the bound asks for on one stretch, of which the scale has ``stretch``."""
    r = np.geomspace(1.2, 500, 400)
    reach = (r + 1 / r) / (4 * stretch)
    if items > _RELATIVE_UP_TO:  # the sum of t_i is largest at the rank in the middle
        tails = np.exp(-np.abs(np.arange(items) - (items - 1) // 2) / scale).sum() / 2
        with np.errstate(over="ignore"):
            growth = reach + 2 * tails * np.expm1(reach)
    else:
        growth = items * (reach + 1 / (2 * stretch))  # and it may be as much smaller at the ends as in the middle
    return math.ceil(float(np.min((growth + np.log(64 / 15 / _ERROR / (1 - r**-2.0))) / (2 * np.log(r)))))


def _chebyshev_integration(count: int) -> tuple[Floats, Floats]:
    """Nodes on [-1, 1] (the last is 1) and the matrix that maps values there to integrals from -1 to each node."""
    from numpy.polynomial import chebyshev

    node = -np.cos(np.pi * np.arange(count) / (count - 1))
    coefficients = np.linalg.inv(chebyshev.chebvander(node, count - 1))
    integrals = chebyshev.chebint(coefficients, lbnd=-1, axis=0)
    return np.asarray(node), np.asarray(chebyshev.chebvander(node, count) @ integrals, dtype=np.float64)


@kernel(effort=lambda x, weight, items, *_: 0.25 * len(x) * items**2)  # half of what it is: compiling takes long
def landed(x: Floats, weight: Floats, items: int, scale: float, never: float, far: float) -> Floats:
    """The integral over these nodes."""
    found = np.zeros((items, items))
    counts, ahead, tails = np.zeros(items + 2), np.zeros(items + 2), np.empty(items)
    for node in range(len(x)):
        first = int(max(0.0, np.ceil(x[node] - far * scale)))
        last = int(min(items - 1.0, np.floor(x[node] + far * scale)))
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
