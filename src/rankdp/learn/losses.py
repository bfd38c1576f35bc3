"""Surrogate losses v(d) of a score difference d = f(preferred) - f(other), as in Xu, Section 5.1, and their sums.

    logistic      v(d) = log(1 + e^-d)          convex
    exponential   v(d) = e^-d                   convex
    psi           v(d) = min(1, (1 - d)+)       not convex; bounded, the closest to counting mistakes

A pair with a label y, the share of users (or the unbiased estimate of 0 or 1) for "the first is preferred", costs

    y v(d) + (1 - y) v(-d).

For the logistic loss this is log(1 + e^-d) + (1 - y) d: linear in y, so that its curvature does not depend on y, and it
stays *convex for every real y*, also for debiased labels far outside [0, 1]. For the other two, where y leaves [0, 1]
one of the two terms has a negative weight and the sum need not be convex; the exponential one need not even be bounded
from below.

A share of pairs in order is the same sum with v(d) = 1{d > 0}: unbiased where the labels are; ties are errors.
The sums over pairs are weighted by user, and no pair is ever written down.
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.errors import Unsupported
from rankdp.jit import kernel
from rankdp.learn.labels import Labels
from rankdp.types import Floats, Ints, Longs

LOSSES = ("logistic", "exponential", "psi")
STEEPEST = 30.0
"""Beyond d = -30 the exponential loss goes on as a straight line, so that no step overflows."""

_IN_ORDER = len(LOSSES)
_SPREAD = 300.0  # scores this close together have exponentials that are numbers


def score_pass(scores: Floats, labels: Labels, loss: str) -> tuple[float, Floats]:
    """The sum of the loss over the pairs of these users, and its derivative by every score."""
    gradient = np.zeros_like(scores)
    users = scores, labels.orders, labels.groups, labels.lengths, labels.weights
    if loss == "logistic":
        return _logistic_pass(*users, labels.wins, gradient), gradient
    if labels.tables is None:
        raise Unsupported(f"the {loss} loss needs labels of pairs, which are out of reach here: use logistic")
    return _labelled_pass(LOSSES.index(loss), *users, labels.tables, gradient), gradient


def score_accuracy(scores: Floats, labels: Labels) -> float:
    """The share of pairs in order by the labels; NaN where labels of pairs are out of reach."""
    if labels.tables is None:
        return float("nan")
    users = scores, labels.orders, labels.groups, labels.lengths, labels.weights
    return _labelled_pass(_IN_ORDER, *users, labels.tables, np.zeros_like(scores)) / labels.total


@kernel
def _curve(loss: int, d: float) -> tuple[float, float]:
    """v(d) and its derivative."""
    if loss == 1:
        power = math.exp(-max(d, -STEEPEST))
        return power * (1.0 + max(0.0, -d - STEEPEST)), -power
    if loss == 2:
        return min(1.0, max(0.0, 1.0 - d)), -1.0 if 0.0 < d < 1.0 else 0.0
    return 1.0 if d > 0.0 else 0.0, 0.0


@kernel(effort=lambda loss, scores, orders, *_: 4 * orders.size * orders.shape[1] / 2)
def _labelled_pass(
    loss: int,
    scores: Floats,
    orders: Ints,
    groups: Ints,
    lengths: Longs,
    weights: Floats,
    tables: Floats,
    gradient: Floats,
) -> float:
    """sum of y v(d) + (1 - y) v(-d) over pairs."""
    total = 0.0
    for u in range(len(scores)):
        labels, weight = tables[groups[u]], weights[groups[u]]
        for b1 in range(lengths[groups[u]] - 1):
            first = orders[u, b1]
            for b2 in range(b1 + 1, lengths[groups[u]]):
                second, y = orders[u, b2], labels[b1, b2]
                gap = scores[u, first] - scores[u, second]
                ahead, rise = _curve(loss, gap)
                behind, fall = _curve(loss, -gap)
                total += weight * (y * ahead + (1.0 - y) * behind)
                slope = weight * (y * rise - (1.0 - y) * fall)
                gradient[u, first] += slope
                gradient[u, second] -= slope
    return total


@kernel(effort=lambda scores, orders, *_: 2.5 * orders.size * orders.shape[1] / 2)
def _logistic_pass(
    scores: Floats, orders: Ints, groups: Ints, lengths: Longs, weights: Floats, wins: Floats, gradient: Floats
) -> float:
    """sum of log(e^f1 + e^f2) over pairs, less sum of w(b) f_b: the logistic loss (see `rankdp.learn.labels`).

    For scores that are near each other an exponential per item and a division per pair are enough, and logarithms
    only of products, as long as these stay numbers.
    """
    f, e, g = np.empty(orders.shape[1]), np.empty(orders.shape[1]), np.empty(orders.shape[1])
    total = 0.0
    for u in range(len(scores)):
        length, weight, own = lengths[groups[u]], weights[groups[u]], wins[groups[u]]
        high, low = -np.inf, np.inf
        for b in range(length):
            f[b] = scores[u, orders[u, b]]
            high, low = max(high, f[b]), min(low, f[b])
        loss, product = 0.0, 1.0
        for b in range(length):
            f[b] -= high
            e[b] = math.exp(f[b])
            g[b] = -own[b]
            loss -= own[b] * f[b]
        for b1 in range(length - 1):
            shares = 0.0
            for b2 in range(b1 + 1, length):
                if high - low < _SPREAD:
                    both = e[b1] + e[b2]
                    share = 1.0 / both
                    shares += share
                    g[b2] += e[b2] * share
                    product *= both
                    if not 1e-150 < product < 1e150:
                        loss += math.log(product)
                        product = 1.0
                else:
                    gap = f[b1] - f[b2]
                    loss += max(f[b1], f[b2]) + math.log1p(math.exp(-abs(gap)))
                    share = (1.0 + math.tanh(gap / 2)) / 2
                    g[b1] += share
                    g[b2] += 1.0 - share
            g[b1] += e[b1] * shares
        for b in range(length):
            gradient[u, orders[u, b]] = weight * g[b]
        total += weight * (loss + math.log(product))
    return total
