"""Partial and approximate recovery, the future work of Section 5: what sorting recovers when the whole order is lost.

Scores are uniform on (0, 1), noise is pure epsilon-DP for one score, and the order is read by sorting. Measured by
simulation: the chance that the best k come out as an ordered list (partial recovery), the chance that at most h places
of the ranking are wrong (Hamming distance at most h), and the share of places that are right.
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.theory.noises import Laplace, ScoreNoise, Staircase, rdp_inverse
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.decoders import Simulated

_PER_BLOCK = 20_000


def recovery(cell: Cell) -> list[Row]:
    """All measures at one epsilon for Laplace and staircase noise."""
    items, best, most, epsilon = cell["items"], cell["best"], cell["most_wrong"], float(cell["epsilon"])
    noises: dict[str, ScoreNoise] = {"laplace": Laplace(), "staircase": Staircase(epsilon)}
    rows = []
    for name, noise in noises.items():
        random, sigma = cell.generator(name, epsilon), rdp_inverse(noise, math.inf, epsilon, 1.0)
        found = []
        for start in range(0, cell.repetitions, _PER_BLOCK):
            shape = (min(_PER_BLOCK, cell.repetitions - start), items)
            scores = np.sort(random.uniform(size=shape), axis=1)[:, ::-1]  # the best first
            right = np.argsort(-(scores + sigma * noise.sample(shape, random)), axis=1) == np.arange(items)
            wrong = items - right.sum(axis=1)
            found.append((wrong == 0, right[:, :best].all(axis=1), wrong <= most, 1 - wrong / items))
        measures = ("exact order", f"the best {best} in order", f"at most {most} places wrong", "share of places right")
        for measure, values in zip(measures, zip(*found, strict=True), strict=True):
            rows.append(exact_row(name, measure, *Simulated.of(np.concatenate(values))))
    return rows
