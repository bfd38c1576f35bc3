"""Loss and gradient over all pairs of each user, without ever writing the pairs down.

Row u of ``scores`` holds f_ui for all items; the pairs are those of the items that the user lists. ``gradient`` takes
the derivative by every score. Each returns the weighted sum over pairs.
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.jit import kernel
from rankdp.types import Floats, Ints, Longs

_SPREAD = 300.0  # scores this close together have exponentials that are numbers
_LARGEST = 690.0  # a product with a logarithm this far from 0 is still a number
_STEEPEST = 30.0  # the same as in losses.py


@kernel
def _sums_of_two(f: Floats, e: Floats, g: Floats, length: int, spread: float) -> float:
    """sum over pairs of log(e^f1 + e^f2), and its derivative added to g; f is at most 0 and at least -spread.

    An exponential per item, a division per pair, and logarithms only of products, as long as these stay numbers.
    """
    for b in range(length):
        e[b] = math.exp(f[b])
    room = int(_LARGEST / (spread + 1.0))
    total, product, left = 0.0, 1.0, room
    for b1 in range(length - 1):
        e1, shares = e[b1], 0.0
        for b2 in range(b1 + 1, length):
            both = e1 + e[b2]
            share = 1.0 / both
            shares += share
            g[b2] += e[b2] * share
            product *= both
            left -= 1
            if left == 0:
                total += math.log(product)
                product, left = 1.0, room
        g[b1] += e1 * shares
    return total + math.log(product)


@kernel
def logistic_pass(
    scores: Floats,
    orders: Ints,
    groups: Ints,
    lengths: Longs,
    weights: Floats,
    wins: Floats,
    gradient: Floats,
) -> float:
    """sum of log(e^f1 + e^f2) over pairs, less sum of w(b) f_b."""
    rows, items = scores.shape
    width = orders.shape[1]
    f, e, g = np.empty(width), np.empty(width), np.empty(width)
    total = 0.0
    for u in range(rows):
        for i in range(items):
            gradient[u, i] = 0.0
        group = groups[u]
        length, weight = lengths[group], weights[group]
        high, low = -np.inf, np.inf
        for b in range(length):
            f[b] = scores[u, orders[u, b]]
            high, low = max(high, f[b]), min(low, f[b])
        loss = 0.0
        for b in range(length):
            f[b] -= high
            loss -= wins[group, b] * f[b]
            g[b] = -wins[group, b]
        if high - low < _SPREAD:
            loss += _sums_of_two(f, e, g, length, high - low)
        else:
            for b1 in range(length - 1):
                for b2 in range(b1 + 1, length):
                    gap = f[b1] - f[b2]
                    small = math.exp(-abs(gap))
                    loss += max(f[b1], f[b2]) + math.log1p(small)
                    first = 1.0 / (1.0 + small) if gap >= 0 else small / (1.0 + small)
                    g[b1] += first
                    g[b2] += 1.0 - first
        for b in range(length):
            gradient[u, orders[u, b]] = weight * g[b]
        total += weight * loss
    return total


@kernel
def labelled_pass(
    code: int,
    scores: Floats,
    orders: Ints,
    groups: Ints,
    lengths: Longs,
    weights: Floats,
    tables: Floats,
    gradient: Floats,
) -> float:
    """sum of y v(d) + (1 - y) v(-d) for the exponential (code 1) and the psi-loss (code 2)."""
    rows, items = scores.shape
    total = 0.0
    for u in range(rows):
        for i in range(items):
            gradient[u, i] = 0.0
        group = groups[u]
        length, weight = lengths[group], weights[group]
        for b1 in range(length - 1):
            first = orders[u, b1]
            for b2 in range(b1 + 1, length):
                second = orders[u, b2]
                gap, label = scores[u, first] - scores[u, second], tables[group, b1, b2]
                if code == 1:
                    ahead, behind = math.exp(-max(gap, -_STEEPEST)), math.exp(-max(-gap, -_STEEPEST))
                    slope = (1.0 - label) * behind - label * ahead
                    over_ahead, over_behind = 1.0 + max(0.0, -gap - _STEEPEST), 1.0 + max(0.0, gap - _STEEPEST)
                    loss = label * ahead * over_ahead + (1.0 - label) * behind * over_behind
                else:
                    loss = label * min(1.0, max(0.0, 1.0 - gap)) + (1.0 - label) * min(1.0, max(0.0, 1.0 + gap))
                    slope = 0.0
                    if 0.0 < gap < 1.0:
                        slope = -label
                    elif -1.0 < gap < 0.0:
                        slope = 1.0 - label
                total += weight * loss
                gradient[u, first] += weight * slope
                gradient[u, second] -= weight * slope
    return total


@kernel
def accuracy_pass(scores: Floats, orders: Ints, groups: Ints, lengths: Longs, weights: Floats, tables: Floats) -> float:
    """sum of y 1{d > 0} + (1 - y) 1{d < 0}: unbiased for the pairs in their true order; ties are errors."""
    total = 0.0
    for u in range(len(scores)):
        group = groups[u]
        length, right = lengths[group], 0.0
        for b1 in range(length - 1):
            for b2 in range(b1 + 1, length):
                gap = scores[u, orders[u, b1]] - scores[u, orders[u, b2]]
                if gap > 0:
                    right += tables[group, b1, b2]
                elif gap < 0:
                    right += 1.0 - tables[group, b1, b2]
        total += weights[group] * right
    return total
