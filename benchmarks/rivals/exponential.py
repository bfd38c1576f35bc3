"""Kemeny's order by the exponential mechanism (Hay, Elagina and Miklau 2017): weight e^(-eps K/(2M)).

K is the sum of the Kendall distances to all ballots; replacing a ballot moves it by at most M = m(m-1)/2. Since the
weight of an order is a product over pairs, it is drawn exactly by the dynamic programme over the set of first items:
up to the constant n M/2, K is minus half the sum of y_ij over i before j.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.votes import Floats, Orders, Random, Votes


def exponential_kemeny(votes: Votes, epsilon: float, runs: int, random: Random) -> Orders:
    return draw(votes.margins, rate(votes.items, epsilon), runs, random)


def rate(items: int, epsilon: float) -> float:
    """Of the weight e^(-rate K)."""
    return epsilon / (items * (items - 1))


def draw(margins: Floats, rate: float, runs: int, random: Random) -> Orders:
    """Orders with the weight exp(rate/2 times the sum of y_ij over i before j)."""
    m = len(margins)
    gain = np.zeros((1 << m, m))  # for the item that is put behind the set
    total = np.full(1 << m, -np.inf)  # log of the weights of all orders of the set
    total[0] = 0
    for held in range(1, 1 << m):
        low = (held & -held).bit_length() - 1
        gain[held] = gain[held & (held - 1)] + rate / 2 * margins[low]
        inside = [item for item in range(m) if held >> item & 1]
        total[held] = np.logaddexp.reduce([total[held ^ 1 << item] + gain[held ^ 1 << item, item] for item in inside])
    orders = np.empty((runs, m), np.int64)
    for run in range(runs):
        held = (1 << m) - 1
        for place in reversed(range(m)):
            inside = [item for item in range(m) if held >> item & 1]
            logs = [total[held ^ 1 << item] + gain[held ^ 1 << item, item] - total[held] for item in inside]
            chosen = inside[int(np.argmax(np.cumsum(np.exp(logs)) >= random.random() * np.exp(logs).sum()))]
            orders[run, place] = chosen
            held ^= 1 << chosen
    return orders
