"""The error of Algorithm 1 against the rates of Theorems 2.1 and 2.2, at epsilons that the theorems allow (below 1).

    Proposition 2.2, Theorem 2.1   E |theta~ - theta|_2^2 <~ 1/p + 1/(n p^2 eps^2)            ridge c0 sqrt(np)
    Proposition 2.3, Theorem 2.2   |theta~ - theta|_inf <~ sqrt(log n/(np)) + log n/(np eps)  ridge c0 sqrt(np log n)

Both are bounds up to a constant, so what a run can show is the error divided by the rate: it must not grow with n. The
noise has scale 8/eps (Proposition 2.1; Theorem 2.1 prints eps/16).

``separations``: the full ranking of n items needs the separation C (sqrt(log n/(np)) + log n/(np eps)) n - 1 times, and
average winning probabilities lie in [0, 1].
"""

from __future__ import annotations

import math

import numpy as np

from rankdp_papers.cai import algorithms, drawn_votes
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row


def over_the_rates(cell: Cell) -> list[Row]:
    """Both errors over their rates at one n, p, epsilon and c0."""
    items, p, epsilon, c0 = cell["items"], float(cell["p"]), float(cell["epsilon"]), float(cell["c0"])
    size, repeated = (items, drawn_votes.expected_comparisons(cell)), Repeated()
    rates = {
        "squared l2 over (2.5)": 1 / p + 1 / (items * p**2 * epsilon**2),
        "linf over (2.7)": math.sqrt(math.log(items) / (items * p)) + math.log(items) / (items * p * epsilon),
    }
    ridges = [algorithms.paper_ridge(*size, c0, logarithm=logarithm) for logarithm in (False, True)]
    mechanisms = [algorithms.paper(*size, epsilon, ridge) for ridge in ridges]
    for repetition in range(cell.repetitions):
        votes, streams = drawn_votes.poll(cell, repetition), (items, p, epsilon, c0, repetition)
        off = [
            algorithms.perturbed(one, votes.counts, cell.bits("noise", *streams)) - votes.truth for one in mechanisms
        ]
        errors = (float(off[0] @ off[0]), float(np.abs(off[1]).max()))
        measured = {name: error / rate for (name, rate), error in zip(rates.items(), errors, strict=True)}
        repeated.add(measured, method="bradley-terry + paper")
    return repeated.rows()


def separations(cell: Cell) -> list[Row]:
    """The sum of the n - 1 separations that a full ranking needs, C = 1, every pair compared once."""
    items, epsilon = cell["items"], float(cell["epsilon"])
    unit = math.sqrt(math.log(items) / items) + math.log(items) / (items * epsilon)
    return [exact_row("full ranking", "sum of separations", (items - 1) * unit)]
