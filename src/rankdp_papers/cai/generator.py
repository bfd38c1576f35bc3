"""Section 4.1's generator as it is printed, and as it must be read: which overlap can the best ranking reach?

Printed, e^theta_i is uniform on (0.2, 0.7) for i < k and 1 for i >= k: n - k + 1 items share the highest score, so that
"the" top k = n/4 is any k of them. Let it be the k with the smallest numbers. A ranking that does not look at the
numbers, the truth itself with ties by lot included, finds k/(n - k + 1) of them on average, about a third. Ours: the k
best have e^theta = 1.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from rankdp_papers.cai import algorithms, drawn_votes
from rankdp_papers.cai.algorithms import FloatArray
from rankdp_papers.experiment import Cell, Row

TRUTH = "the truth, ties by lot"


def overlap(cell: Cell) -> list[Row]:
    """The overlap that the truth, the likelihood and the wins reach at one n, without any privacy."""
    items, top = cell["items"], cell["items"] // 4
    printed = cell["generator"] == "printed"
    found: drawn_votes.Measured = defaultdict(lambda: defaultdict(list))
    for repetition in range(cell.repetitions):
        generator = cell.generator("poll", items, repetition)
        truth = as_printed(items, generator) if printed else drawn_votes.strengths(items, generator)
        votes = drawn_votes.vote(truth, cell["p"], top, generator)
        found[drawn_votes.NOT_PRIVATE]["overlap"].append(
            votes.overlap(algorithms.from_wins(votes.counts, votes.counts.half_wins))
        )
        found[drawn_votes.WINS_NOT_PRIVATE]["overlap"].append(votes.overlap(votes.counts.half_wins))
    best = top / (items - top + 1) if printed else 1.0
    return [
        *drawn_votes.mean_rows(found),
        {"method": TRUTH, "measure": "overlap", "value": best, "error": 0.0},
    ]


def as_printed(items: int, generator: np.random.Generator) -> FloatArray:
    """Centred scores with those of the n - k + 1 items that tie in front."""
    low = items // 4 - 1
    return algorithms.centred(np.log(np.concatenate([np.ones(items - low), generator.uniform(0.2, 0.7, low)])))
