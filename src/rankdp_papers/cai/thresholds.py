"""At which separation the top k is found (Cai, Theorem 3.1, Corollaries 2.1 and 3.1), and where nobody can (3.2).

The unit of separation is sqrt(log n/(n p)) + log n/(n p eps); C is how many units lie between the average winning
probabilities tau of ranks k - m and k + m + 1 (nonparametric), or between theta_(k) and theta_(k+1) (parametric).

*Nonparametric*: items above beat items below with probability 1/2 + d, the 2m around the k-th place are half way
between, and within each group everyone beats the next half of a circle with probability 0.9: no order of the items and
no scores explain it, yet all tau of a group are equal. *Parametric*: two levels of theta.

The limit for any eps-DP algorithm on some table with this separation, exact recovery. Take the table without circles.
Exchange the roles of item k and of one of the L = n - k items below. Couple the votes under both tables: they differ in
at most D = 1 + Bin(2(n-2), p d) outcomes. Group privacy gives P(out = S_l) >= e^(-eps t) (success - P(D > t)) under the
first table, and these L events exclude each other, so success <= e^(eps t)/L + P(D > t) for every t.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats
from rankdp_papers.cai import algorithms
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row

_CIRCLE = 0.4  # by how much the next half of a circle is beaten more often than 1/2


def recovery(cell: Cell) -> list[Row]:
    """How often the top k is missed by more than the tolerance, for each C; and the least that privacy allows."""
    items, p, epsilon, case = cell["items"], float(cell["p"]), float(cell["epsilon"]), cell["case"]
    parametric, tolerance, top = case == "parametric", items // 32 * (case == "within a tolerance"), items // 4
    unit = math.sqrt(math.log(items) / (items * p)) + math.log(items) / (items * p * epsilon)
    size, wins = (items, round(p * math.comb(items, 2))), NoisyWins(algorithms.COMPARISON, epsilon)
    scores, rows = algorithms.paper(*size, epsilon, algorithms.paper_ridge(*size, cell["c0"])), []
    for separation in cell["separations"][case]:
        gap, repeated = separation * unit, Repeated()
        if gap > 0.5 and not parametric:
            break
        chances = two_levels(items, top, gap) if parametric else circles(items, top, tolerance, gap)
        for repetition in range(cell.repetitions):
            place = (*size, epsilon, case, separation, repetition)
            random = cell.generator("votes", *place)
            counts, lots = _votes(chances, p, random), random.permutation(items)
            released: dict[str, Any] = {"copeland": wins.sample(counts.half_wins, cell.bits("wins", *place))}
            if parametric:
                noisy = algorithms.perturbed(scores, counts, cell.bits("scores", *place))
                released["bradley-terry + paper"] = noisy
            for method, values in released.items():
                wrong = int(np.sum(algorithms.best_first(values, lots)[:top] >= top))  # d_H is twice that
                repeated.add({"missed": wrong > tolerance}, method=method)
        found = repeated.rows()
        if case == "exact":
            found.append(exact_row("any private algorithm", "missed", least_failure(items, top, p, epsilon, gap)))
        rows += [{"C": float(separation), "line": f"{row['method']} + n = {items}", **row} for row in found]
    return rows


def circles(items: int, top: int, tolerance: int, gap: float) -> Floats:
    """The nonparametric table of winning probabilities: rho_ij for items in the order of their tau."""
    group = np.repeat([2, 1, 0], [top - tolerance, 2 * tolerance, items - top - tolerance])
    chances = 0.5 + gap / 2 * (group[:, None] - group)
    for level in range(3):
        members = np.flatnonzero(group == level)
        ahead = (np.arange(len(members)) - np.arange(len(members))[:, None]) % max(1, len(members))
        circle = np.where((ahead > 0) & (2 * ahead < len(members)), _CIRCLE, 0.0)
        chances[np.ix_(members, members)] += circle - circle.T
    return np.asarray(chances)


def two_levels(items: int, top: int, gap: float) -> Floats:
    """The Bradley-Terry model with theta ``gap`` higher for the ``top`` items."""
    theta = np.repeat([gap, 0.0], [top, items - top])
    return np.asarray(LOGISTIC.cdf(theta[:, None] - theta))


def least_failure(items: int, top: int, p: float, epsilon: float, gap: float) -> float:
    """What every eps-DP algorithm fails by on one of the tables, by the argument of the module."""
    from scipy.stats import binom

    distance = np.arange(2 * items)
    success = np.exp(np.minimum(epsilon * distance, 700)) / (items - top)
    return max(0.0, 1 - float(np.min(success + binom.sf(distance - 1, 2 * (items - 2), p * gap))))


def _votes(chances: Floats, p: float, random: np.random.Generator) -> PairCounts:
    left, right = np.triu_indices(len(chances), 1)
    met, luck = random.random((2, len(left)))
    here = met < p
    won = luck[here] < chances[left[here], right[here]]
    return PairCounts.from_pairs(left[here], right[here], 2 * won.astype(np.int64), items=len(chances))
