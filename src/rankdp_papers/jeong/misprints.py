"""Constants and a step of a proof that are not as printed, and what everyday epsilons buy (Jeong)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankdp.planning.score_plans import ScoreVector
from rankdp.planning.situation import EXACT, PAIRS, TOP, Request, needed_epsilon
from rankdp.theory.noises import Gaussian, Laplace, noise, rdp_inverse
from rankdp.theory.recovery import first_order, order_constants, taylor_coefficients
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.decoders import Simulated, error_probability
from rankdp_papers.jeong.sorting_error import LAWS, error_of_sorting

EVERYDAY = 5.0  # an epsilon that people publish with


def constants(cell: Cell) -> list[Row]:
    """The constant of Corollary 3.7, and which noise it means.

    P_e of X + sigma N over c1 sigma + c2 sigma^2, for N of variance one and for N ~ N(0, sigma^2 I), as it says.
    """
    n, sigma, law = cell["items"], cell["sigma"], LAWS["uniform"]
    gaps = np.maximum(np.diff(cell.generator("pair").standard_normal((cell.repetitions, 3)), axis=1), 0)
    first, second = taylor_coefficients(n, Gaussian(), law, 2)
    claimed = first * sigma + second * sigma**2
    meant, printed = (error_of_sorting(n, Gaussian(), one, law).value / claimed for one in (sigma, sigma**2))
    return [
        exact_row("closed form", "E[V1+ V2+]", (math.sqrt(3) / 2 - math.pi / 6) / math.pi),
        exact_row("integrated", "E[V1+ V2+]", order_constants(Gaussian()).pair),
        exact_row("simulated", "E[V1+ V2+]", *Simulated.of(gaps[:, 0] * gaps[:, 1])),
        exact_row("N of variance one", "P_e over Corollary 3.7", meant),
        exact_row("N of variance sigma^2", "P_e over Corollary 3.7", printed),
    ]


def bound_75(cell: Cell) -> list[Row]:
    """What (28) and (27) exceed l/(sigma b) by; Appendix I says that the first is never positive and rises with alpha.

    And the smallest sigma over the upper bound of (30), which follows from the second: D_alpha never exceeds D_inf.
    """
    alpha, ratio = cell["alpha"], cell["ratio"]
    offset = math.log(alpha / (2 * alpha - 1)) / (alpha - 1)
    true = Laplace().renyi(alpha, ratio / math.sqrt(2))  # l/(sigma b), b = 1/sqrt(2)
    return [
        exact_row("upper bound in (28)", "excess", offset + math.exp(-(2 * alpha - 1) * ratio) / alpha),
        exact_row("epsilon itself, (27)", "excess", true - ratio),
        exact_row("epsilon itself, (27)", "sigma over (30)", rdp_inverse(Laplace(), alpha, true, 1.0) * true / 2**0.5),
    ]


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
