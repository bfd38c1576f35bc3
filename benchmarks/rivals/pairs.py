"""Noise on every pair, then an order.

When a ballot is replaced each margin moves by at most 2, so all M = m(m-1)/2 of them by 2M in l1 and 4M in squared l2.
Laplace noise of scale 2M/eps, or Gaussian noise of variance 4M/(2 rho), makes the whole table private. Kemeny's order
of the noisy table follows for free. KwikSort (Hay, Elagina and Miklau 2017, "DP-KwikSort") reads the noisy table as
QuickSort with random pivots does. It never asks for a pair twice, so the same noise is enough. Alabi et al. 2022 stop
it after Q questions of order m log m, so that Q takes the place of M; up to 12 items 2 m ln m is no less than 0.9 M,
and both are the same here. Stopping near the mean number of questions (24 of 45 for ten items) errs less at small eps,
more at large eps, and was nowhere near the best.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.votes import Floats, Orders, Random, Votes, kemeny
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.protection import BallotProtection


def noisy_pairs(margins: Floats, epsilon: float, delta: float, runs: int, random: Random) -> Floats:
    """Antisymmetric tables: margins plus independent noise on each pair."""
    m = len(margins)
    pairs = m * (m - 1) // 2
    noise = np.zeros((runs, m, m))
    upper = np.triu_indices(m, 1)
    size = (runs, pairs)
    if delta:
        noise[:, *upper] = random.normal(scale=np.sqrt(4 * pairs / (2 * zcdp(m, epsilon, delta))), size=size)
    else:
        noise[:, *upper] = random.laplace(scale=2 * pairs / epsilon, size=size)
    return margins + noise - noise.transpose(0, 2, 1)


def zcdp(items: int, epsilon: float, delta: float) -> float:
    """The rho that (epsilon, delta) buys, by the conversion that our own mechanisms use."""
    rho = NoisyBorda(items, BallotProtection("ballot"), str(epsilon), str(delta)).rho
    assert rho is not None
    return float(rho)


def pairs_kemeny(votes: Votes, epsilon: float, runs: int, random: Random, delta: float = 0) -> Orders:
    return kemeny(noisy_pairs(votes.margins, epsilon, delta, runs, random))


def kwiksort(votes: Votes, epsilon: float, runs: int, random: Random, delta: float = 0) -> Orders:
    tables = noisy_pairs(votes.margins, epsilon, delta, runs, random)
    return np.array([sort(table, list(range(votes.items)), random) for table in tables])


def sort(table: Floats, items: list[int], random: Random) -> list[int]:
    """QuickSort by the signs of a table, with random pivots."""
    if len(items) < 2:
        return items
    pivot = items[int(random.integers(len(items)))]
    others = [item for item in items if item != pivot]
    before = [item for item in others if table[item, pivot] > 0]
    after = [item for item in others if table[item, pivot] <= 0]
    return [*sort(table, before, random), pivot, *sort(table, after, random)]
