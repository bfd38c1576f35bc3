"""The entry-wise score attack and the lower bounds that follow from it, in numbers (Cai, Section 2.2).

The attack on item k is A^(k) = (M_k - theta_k) sum over j of (Y_kj - F_kj), for the logistic link. Summed over k it is
the attack of Section 2.2.1, which needs Y_kj - F_kj for both i = k and j = k; the printed case j = k has Y_ik - F_ik
instead, the opposite sign.

For an eps-DP M, (2.12) bounds E A^(k) by 4 n p eps E|M_k - theta_k| + 2/n (delta = 0, kappa_1 = 1); an M that follows
the truth has about 1 (Stein's identity: the derivative of E M_k by theta_k). Both together bound the error from below:

    E|M_k - theta_k| >= (E A^(k) - 2/n)/(4 n p eps),    E norm(M - theta)^2 >= (E A)^2/(128 n p^2 eps^2),

the second from (2.9). Theta has the prior of Propositions 2.5 and 2.7, density (15/16)(1 - t^2)^2 on (-1, 1).
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.rankers.links import LOGISTIC
from rankdp.types import Floats
from rankdp_papers.cai import algorithms, drawn_votes
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row


def entrywise(cell: Cell) -> list[Row]:
    """The mean attack, the bounds (2.12) and (2.9) on it, and the errors with their bounds from the attack."""
    items, p, epsilon = cell["items"], float(cell["p"]), float(cell["epsilon"])
    size = (items, drawn_votes.expected_comparisons(cell))
    mechanisms = {
        "bradley-terry + paper": algorithms.paper(*size, epsilon, algorithms.paper_ridge(*size, cell["c0"])),
        "bradley-terry + tight": algorithms.tight(*size, epsilon),
    }
    repeated = Repeated()
    for repetition in range(cell.repetitions):
        streams = (items, p, epsilon, repetition)
        random = cell.generator("votes", *streams)
        votes = drawn_votes.vote(2 * random.beta(3, 3, items) - 1, p, 1, random)
        released = {
            name: algorithms.perturbed(mechanism, votes.counts, cell.bits(name, *streams))
            for name, mechanism in mechanisms.items()
        }
        released[drawn_votes.NOT_PRIVATE] = algorithms.from_wins(votes.counts, votes.counts.half_wins)
        first, second = _surprises(votes)
        for method, scores in released.items():
            off = scores - votes.truth
            measured = {
                "attack": float(off @ (first + second)) / items,
                "attack, as printed": float(off @ (first - second)) / items,
                "absolute error": float(np.abs(off).mean()),
                "squared error": float(off @ off),
            }
            repeated.add(measured, method=method)
    rows = repeated.rows()
    for method in released:
        found = {row["measure"]: row for row in rows if row["method"] == method}
        attack, error, square = (found[name]["value"] for name in ("attack", "absolute error", "squared error"))
        off, reach = found["attack"]["error"] / abs(attack), 4 * items * p * epsilon
        derived = {
            "attack over (2.12)": attack / (reach * error + 2 / items),
            "attack over (2.9)": attack / (8 * math.sqrt(2 * items * square) * p * epsilon),
            "error over its bound": error * reach / max(attack - 2 / items, 1e-9),
        }
        rows += [exact_row(method, measure, value, off * value) for measure, value in derived.items()]
    return rows


def _surprises(votes: drawn_votes.Poll) -> tuple[Floats, Floats]:
    """For each item the sum of Y - F, its own wins counting, over the pairs where it comes first and second."""
    counts, items = votes.counts, len(votes.truth)
    expected = counts.comparisons * LOGISTIC.cdf(votes.truth[counts.first] - votes.truth[counts.second])
    surprise = counts.half_wins_first / 2 - expected
    sides = [np.bincount(item, sign * surprise, items) for item, sign in ((counts.first, 1), (counts.second, -1))]
    return np.asarray(sides[0], dtype=float), np.asarray(sides[1], dtype=float)
