"""Exact K-norm noise on the permutohedron: the best additive pure-DP noise for Borda scores, in integers only.

*The set.* On one ballot an item scores the items below it minus the items above it. The scores of one ballot are a sum
over pairs i < j of s_ij (e_i - e_j) with s_ij in {-1, 0, 1}, so they lie in the permutohedron K, the sum over i < j of
[-1, 1](e_i - e_j), and on the lattice A of integer vectors of sum 0. Ties and truncated ballots stay inside K.

*The law.* With the fixed direction v = (1, …, 1, -(m-1)) let

    Z_t = {x in A : x + h v in the interior of t K for every small h > 0},        tau(x) = the least t with x in Z_t.

Draw t with weight t^(m-1) e^(-rate t) (``cube_noise``), then x uniformly from Z_t, then a random sign (it removes the
bias of Z_t, whose boundary is half open). Z_t has m^(m-2) (2t)^(m-1) points (below), so P(x) is proportional to the sum
over t >= tau(x) of e^(-rate t), hence to e^(-rate tau(x)), before the sign.

*Proof of eps.* If x is in Z_t and d in s K, then x + d + h v lies in the open set int(t K) + s K, which is inside
(t + s) K: x + d is in Z_(t+s). So tau(x + d) <= tau(x) + s, and with rate = eps/s the ratio P(x)/P(x + d) is at most
e^eps. The sign is a mixture of two such mechanisms. Scores on a grid of step 1/g are multiplied by g, and s is g times
as large. (K-norm mechanism: Hardt and Talwar 2010; for votes: Joseph and Yu 2023.)

*Uniform points of Z_t.* Give the edge (i, j) of the complete graph the height 2^(i m + j). Among all ways to write a
point of t K the cheapest one is unique in a generic point and cuts t K into parallelepipeds, one for every spanning
tree T (a regular tiling of a zonotope): with potentials p that solve p_i - p_j = height(i, j) on T, a pair outside of T
has its coefficient at the upper end if height(i, j) < p_i - p_j, else at the lower; the pairs of T have any. No two
sides can be equal: around a cycle heights add up with signs +-1, and a signed sum of different powers of two has the
sign of the largest. So only the highest edge of the cycle is looked at, and no large number is computed.

A tree is a basis of A of determinant 1, so a tile that is open on one side in each direction has (2t)^(m-1) points. Z_t
takes the tile's points with x + h v inside: the coefficient of e_i - e_j is from {0..2t-1} if the flow of v over this
edge, the sum of v over the items on i's side, is positive, else from {1..2t}. It is never 0: the side without the last
item has a sum of at least 1. Tiles are then disjoint, there are m^(m-2) (Cayley), and a uniform tree is a uniform
Pruefer code.

*Variance.* A facet divides the items into k and m - k. In the cone over it the mean of norm(x)^2 is d/(d+2) times that
on the facet, d = m - 1. A facet is a product of two smaller permutohedra at the squared distance k (m-k) m. This gives
``size``. Sums of norm(x)^2 over Z_t are t^d times a polynomial of t^2 (reciprocity), so discreteness adds a constant:
the mean of norm(b)^2 minus d/6, b half the sum of e_child - e_parent over the edges of a random tree.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.jit import kernel
from rankdp.privacy.bits import Bits
from rankdp.privacy.cube_noise import draw_below, draw_dilations, mean_squared_dilation
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.noise import uniform_below
from rankdp.types import Longs

MOST_ITEMS = 500
_LARGEST = 1 << 52  # of m^2 / rate: every score is then a whole number that a double holds exactly


class PermutohedronNoise:
    """Integer vectors of sum 0 with P(x) proportional to e^(-rate tau(x)) + e^(-rate tau(-x)).

    Parameters
    ----------
    items
        m, from 2 to 500.
    rate
        Epsilon over s, where neighbours' scores differ by a point of s K.
    """

    def __init__(self, items: int, rate: Real) -> None:
        self.items, self.rate = whole("items", items, 2, MOST_ITEMS), positive(rate, "rate")
        if self.items**2 / self.rate > _LARGEST:
            raise InputError(f"epsilon is too small for {items} items: noise at the rate {rate!s} does not fit 52 bits")

    def sample(self, count: int, bits: Bits) -> Longs:
        """``count`` independent draws, one per row."""
        m = self.items
        dilations = draw_dilations(m - 1, self.rate, count, bits)
        codes = uniform_below(m, count * (m - 2), bits).reshape(count, m - 2)
        inside = draw_below(np.repeat(2 * dilations, m - 1), bits).reshape(count, m - 1)
        drawn = tile_points(dilations, codes, inside)
        return np.where((bits.words(count) & np.uint64(1)).astype(np.bool_)[:, None], drawn, -drawn)

    @property
    def variance(self) -> float:
        """The mean of norm(x)^2 over m - 1: the variance of an item's noise if it were the same in all directions.

        The variance of a difference of two items is twice this on average over the pairs.
        """
        m, dilation = self.items, mean_squared_dilation(self.items - 1, self.rate)
        repeats, spread = (m - 2) / m, (m - 2) * (m - 1) / m**2  # of an item in a code
        shift = ((m - 1) * (spread + (1 - repeats) ** 2) + spread + (1 + repeats) ** 2) / 4
        return (size(m) * dilation + shift) / (m - 1) - 1 / 6


def dilation_of(points: Longs) -> Longs:
    """tau(x) for each row x: the least t with x in Z_t.

    In t K the sum over any k items is at most t k (m - k); here strictly less if the last item is not among them,
    because the direction v then leads outwards.

    Parameters
    ----------
    points
        Integers of sum 0 along the last axis.
    """
    m = points.shape[-1]
    sizes = np.arange(1, m)
    bounds = sizes * (m - sizes)
    without_last = np.cumsum(-np.sort(-points[..., :-1]), axis=-1)
    with_last = np.concatenate([points[..., -1:], without_last[..., :-1] + points[..., -1:]], axis=-1)
    return np.asarray(np.maximum(without_last // bounds + 1, -(-with_last // bounds)).max(axis=-1))


@lru_cache(maxsize=8)
def size(items: int) -> float:
    """The mean of norm(x)^2 for a uniform point x of K (see the module)."""
    means, factorials = np.zeros(items + 1), np.cumsum(np.log(np.maximum(np.arange(items + 1.0), 1)))
    trees = (np.arange(items + 1) - 1) * np.log(np.maximum(np.arange(items + 1.0), 1)) - factorials
    for m in range(2, items + 1):
        k = np.arange(1, m)
        shares = np.exp(trees[k] + trees[m - k] - trees[m]) * m / (2 * (m - 1))  # of the cones; they add up to 1
        means[m] = (shares * (k * (m - k) * m + means[k] + means[m - k])).sum() * (m - 1) / (m + 1)
    return float(means[items])


@kernel(effort=lambda dilations, codes, inside: 1.5 * inside.size * inside.shape[1] / 2 + 4 * inside.size)
def tile_points(dilations: Longs, codes: Longs, inside: Longs) -> Longs:
    """One point of Z_t per row, from t, the Pruefer code of a tree, and a number from 0..2t-1 for every edge of it.

    A tree is rooted at the last item; its edges are in the order in which the code's leaves are cut.
    """
    count, m = len(dilations), inside.shape[1] + 1
    points = np.empty((count, m), np.int64)
    for row in range(count):
        degrees = np.ones(m, np.int64)
        for item in codes[row]:
            degrees[item] += 1
        leaves, parents = np.empty(m - 1, np.int64), np.empty(m - 1, np.int64)
        lowest = 0
        while degrees[lowest] != 1:
            lowest += 1
        leaf = lowest
        for step in range(m - 1):
            parent = codes[row, step] if step < m - 2 else m - 1
            leaves[step], parents[step] = leaf, parent
            degrees[parent] -= 1
            if degrees[parent] == 1 and parent < lowest:
                leaf = parent
            else:
                lowest += 1
                while lowest < m and degrees[lowest] != 1:
                    lowest += 1
                leaf = lowest
        # highest[a, b]: 1 + the height's exponent of the highest edge between a and b, negative if passed from j to i
        highest = np.zeros((m, m), np.int64)
        reached = np.empty(m, np.int64)
        reached[0] = m - 1
        point, width = points[row], 2 * dilations[row]
        for item in range(m):
            point[item] = -dilations[row] * (m - 1 - 2 * item)
        for step in range(m - 2, -1, -1):
            child, parent = leaves[step], parents[step]
            if child < parent:
                edge = child * m + parent + 1
                point[child] += inside[row, step]
                point[parent] -= inside[row, step]
            else:
                edge = -(parent * m + child + 1)
                point[parent] += inside[row, step] + 1
                point[child] -= inside[row, step] + 1
            for other in reached[: m - 1 - step]:
                beyond = highest[parent, other]
                top = beyond if abs(beyond) > abs(edge) else edge
                highest[child, other], highest[other, child] = top, -top
                first, second = min(child, other), max(child, other)
                if highest[first, second] > first * m + second + 1:
                    point[first] += width
                    point[second] -= width
            reached[m - 1 - step] = child
    return points
