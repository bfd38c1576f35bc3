"""How far apart items must be to be told apart (Cai), up to constants the paper leaves open.

With n items, each pair compared with probability p, and eps-DP for one comparison; ``opponents`` below is n p, the mean
number of comparisons of an item. All take a ``constant`` of 1 by default: read them as rates, and compare settings
rather than single values.
"""

from __future__ import annotations

import math


def squared_error(items: int, probability: float, epsilon: float, constant: float = 1.0) -> float:
    """Theorem 2.1: E|theta - theta*|^2 is of the order 1/p + 1/(n p^2 eps^2)."""
    return constant * (1 / probability + 1 / (items * probability**2 * epsilon**2))


def largest_error(items: int, probability: float, epsilon: float, constant: float = 1.0) -> float:
    """Theorem 2.2: the largest error of a score is of the order sqrt(log n/(np)) + log n/(np eps)."""
    opponents = items * probability
    return constant * (math.sqrt(math.log(items) / opponents) + math.log(items) / (opponents * epsilon))


def separation(items: int, probability: float, epsilon: float, constant: float = 1.0) -> float:
    """(2.8) and (3.1): the gap between neighbours in the ranking that lets them be told apart; the same rate."""
    return largest_error(items, probability, epsilon, constant)


def privacy_share(items: int, probability: float, epsilon: float) -> float:
    """Which part of the separation is the price of privacy: near 0 it is free, near 1 it is all."""
    opponents = items * probability
    privacy = math.log(items) / (opponents * epsilon)
    return privacy / (privacy + math.sqrt(math.log(items) / opponents))
