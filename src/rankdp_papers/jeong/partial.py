"""Partial and approximate recovery, the future work of Section 5: what sorting recovers when the whole order is lost.

Scores are uniform on (0, 1), noise is pure epsilon-DP for one score, and the order is read by sorting. Measured by
simulation: the chance that the best k come out as an ordered list (partial recovery), the chance that at most h places
of the ranking are wrong (Hamming distance at most h), and the share of places that are right. ``everyday`` asks which
epsilon the whole order needs, and what epsilon 5 gives instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankdp.planning.score_plans import ScoreVector
from rankdp.planning.situation import EXACT, PAIRS, TOP, Request, needed_epsilon
from rankdp.theory.noises import Laplace, ScoreNoise, Staircase, noise, rdp_inverse
from rankdp.theory.recovery import first_order
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.decoders import Simulated, error_probability
from rankdp_papers.jeong.sorting_error import LAWS

EVERYDAY = 5.0  # an epsilon that people publish with
_PER_BLOCK = 20_000


def recovery(cell: Cell) -> list[Row]:
    """All measures at one epsilon for Laplace and staircase noise."""
    items, best, most, epsilon = cell["items"], cell["best"], cell["most_wrong"], float(cell["epsilon"])
    noises: dict[str, ScoreNoise] = {"laplace": Laplace(), "staircase": Staircase(epsilon)}
    rows = []
    for name, one in noises.items():
        random, sigma = cell.generator(name, epsilon), rdp_inverse(one, math.inf, epsilon, 1.0)
        found = []
        for start in range(0, cell.repetitions, _PER_BLOCK):
            shape = (min(_PER_BLOCK, cell.repetitions - start), items)
            scores = np.sort(random.uniform(size=shape), axis=1)[:, ::-1]  # the best first
            right = np.argsort(-(scores + sigma * one.sample(shape, random)), axis=1) == np.arange(items)
            wrong = items - right.sum(axis=1)
            found.append((wrong == 0, right[:, :best].all(axis=1), wrong <= most, 1 - wrong / items))
        measures = ("exact order", f"the best {best} in order", f"at most {most} places wrong", "share of places right")
        for measure, values in zip(measures, zip(*found, strict=True), strict=True):
            rows.append(exact_row(name, measure, *Simulated.of(np.concatenate(values))))
    return rows


def everyday(cell: Cell) -> list[Row]:
    """The epsilon that the exact order asks for, and what an everyday one does give, noise by noise."""
    items, asked = cell["items"], Request(max(1, cell["items"] // 4))
    situation = ScoreVector(items)
    rows = []
    for option in situation.options:
        needed = needed_epsilon(situation, option, EXACT, cell["probability"], asked)
        rows.append(exact_row(option, "epsilon needed", needed))
        rows.append(_simulated(cell, option, needed, situation.detail(option, needed)))
        for measure, name in ((EXACT, "exact order"), (PAIRS, "pairs in order"), (TOP, "top quarter kept")):
            value = situation.accuracy(option, measure, EVERYDAY, asked)
            rows.append(exact_row(option, f"{name} at epsilon 5", value))
    by_first_order = first_order(items, Laplace(), LAWS["uniform"]) * rdp_inverse(Laplace(), math.inf, 1.0, 1.0)
    rows.append(exact_row("laplace + first order", "epsilon needed", by_first_order / (1 - cell["probability"])))
    return rows


def _simulated(cell: Cell, option: str, epsilon: float, detail: Mapping[str, Any]) -> Row:
    """The error at the planned epsilon, by simulation: the plan's own numbers are integrals."""
    shape = {"staircase": {"epsilon": epsilon}, "generalized-normal": {"p": detail.get("p", 1.0)}}.get(option, {})
    random = cell.generator("planned", cell["items"], option)
    planned, sigma = noise(option, **shape), detail["standard_deviation"]
    simulated = error_probability(cell["items"], planned, sigma, LAWS["uniform"], cell.repetitions, random)
    return exact_row(option, "error at that epsilon, simulated", *simulated)
