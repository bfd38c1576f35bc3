"""How the private part of Algorithm 1's error falls with n, p and epsilon (Theorem 2.2).

The private part is what noise alone does: the distance between Algorithm 1 and the same penalised fit without noise, on
the same votes. Theorem 2.2 has log(n)/(n p eps) for its largest entry, so by (n p eps)^(-1), up to the logarithm; the
root mean square of the entries has no logarithm.
"""

from __future__ import annotations

import math

import numpy as np

from rankdp_papers.cai import algorithms, drawn_votes
from rankdp_papers.experiment import Cell, Repeated, Row


def private_part(cell: Cell) -> list[Row]:
    """The private part at one n, p and epsilon: root mean square, largest entry, and the latter over log n."""
    size = (cell["items"], drawn_votes.expected_comparisons(cell))
    mechanism = algorithms.paper(*size, cell["epsilon"], algorithms.paper_ridge(*size, cell["c0"]))
    repeated = Repeated()
    for repetition in range(cell.repetitions):
        counts = drawn_votes.poll(cell, repetition).counts
        streams = (cell["items"], cell["p"], cell["epsilon"], repetition)
        noisy = algorithms.perturbed(mechanism, counts, cell.bits("noise", *streams))
        off = noisy - algorithms.penalized(counts, float(mechanism.ridge))
        largest = float(np.abs(off).max())
        root = float(np.sqrt(np.mean(off**2)))
        measured = {
            "root mean square": root,
            "largest entry": largest,
            "largest entry over log n": largest / math.log(cell["items"]),
        }
        repeated.add(measured, method="bradley-terry + paper")
    return repeated.rows()
