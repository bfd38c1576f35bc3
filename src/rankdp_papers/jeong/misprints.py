"""Constants and a step of a proof that are not as printed, and what everyday epsilons buy (Jeong)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankdp.planning.score_plans import ScoreVector
from rankdp.planning.situation import EXACT, PAIRS, TOP, Request, needed_epsilon
from rankdp.theory.decoders import Simulated, error_probability
from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, noise, rdp_inverse
from rankdp.theory.quadrature import log_trapezoid
from rankdp.theory.recovery import first_order, order_constants, taylor_coefficients
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.sorting_error import LAWS, integrated_error

EVERYDAY = 5.0  # an epsilon that people publish with


def constants(cell: Cell) -> list[Row]:
    """h(p) and K of Proposition 4.11 for each p; the constant of Corollary 3.7, and which noise it means."""
    rows = []
    for p in cell["powers"]:
        readings = {
            "superscripts restored": (GeneralizedNormal(p).scale, 1 / p),
            "as printed": (printed_scale(p), p - 1),
        }
        for method, (scale, argument) in readings.items():
            rows.append({"p": p, **exact_row(method, "h(p) is a positive number", float(scale is not None))})
            if scale is not None:
                mass, variance = _moments(p, scale, argument)
                rows.append({"p": p, **exact_row(method, "variance of the noise", variance)})
                rows.append({"p": p, **exact_row(method, "total probability", mass)})
    gaps = np.maximum(np.diff(cell.generator("pair").standard_normal((cell.repetitions, 3)), axis=1), 0)
    simulated = Simulated.of(gaps[:, 0] * gaps[:, 1])
    pairs = [
        exact_row("as printed", "E[V1+ V2+]", 0.108998),
        exact_row("closed form", "E[V1+ V2+]", (math.sqrt(3) / 2 - math.pi / 6) / math.pi),
        exact_row("integrated", "E[V1+ V2+]", order_constants(Gaussian()).pair),
        exact_row("simulated", "E[V1+ V2+]", *simulated),
    ]
    return rows + [{"p": 2.0, **row} for row in [*pairs, *_readings(cell["items"], cell["sigma"])]]


def printed_scale(p: float) -> float | None:
    """h(p) with its superscripts lost: sqrt(Gamma(p - 1)/Gamma(3p - 1)); None where that is no positive number."""
    try:
        ratio = math.gamma(p - 1) / math.gamma(3 * p - 1)
    except ValueError:  # a pole
        return None
    return math.sqrt(ratio) if ratio > 0 else None


def _moments(p: float, scale: float, argument: float) -> tuple[float, float]:
    """Integral and second moment of K exp(-abs(x/h)^p), K = p/(2 h Gamma(argument)), with x = e^z on either side."""
    top = p / (2 * scale * math.gamma(argument))

    def moment(power: int) -> float:
        log = log_trapezoid(lambda z: (power + 1) * z - np.exp(np.minimum(p * (z - math.log(scale)), 700.0)), -80, 80)
        return 2 * top * math.exp(log)

    return moment(0), moment(2)


def _readings(n: int, sigma: float) -> list[Row]:
    """P_e over c1 sigma + c2 sigma^2 of X + sigma N, for N of variance one and N ~ N(0, sigma^2 I) as Cor. 3.7 says."""
    law = LAWS["uniform"]
    first, second = taylor_coefficients(n, Gaussian(), law, 2)
    claimed = first * sigma + second * sigma**2
    return [
        exact_row(method, "P_e over Corollary 3.7", integrated_error(n, Gaussian(), deviation, law) / claimed)
        for method, deviation in (("N of variance one", sigma), ("N of variance sigma^2", sigma**2))
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
    rows.append(exact_row("laplace + first order", "error times epsilon", by_first_order))
    rows.append(exact_row("laplace + first order", "epsilon needed", by_first_order / (1 - cell["probability"])))
    return rows


def _simulated(cell: Cell, option: str, epsilon: float, detail: Mapping[str, Any]) -> Row:
    """The error at the planned epsilon, by simulation: the plan's own numbers are integrals."""
    shape = {"staircase": {"epsilon": epsilon}, "generalized-normal": {"p": detail.get("p", 1.0)}}.get(option, {})
    random = cell.generator("planned", cell["items"], option)
    planned, sigma = noise(option, **shape), detail["standard_deviation"]
    simulated = error_probability(cell["items"], planned, sigma, LAWS["uniform"], cell.repetitions, random)
    return exact_row(option, "error at that epsilon, simulated", *simulated)
