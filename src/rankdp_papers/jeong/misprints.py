"""Constants and a step of a proof that are not as printed (Jeong)."""

from __future__ import annotations

import math

import numpy as np

from rankdp.theory.noises import Gaussian, Laplace, rdp_inverse
from rankdp.theory.recovery import order_constants, taylor_coefficients
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.decoders import Simulated
from rankdp_papers.jeong.sorting_error import LAWS, error_of_sorting


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
