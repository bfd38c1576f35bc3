"""The error of sorting against sigma, simulated and expanded (Jeong, Sections 3.2 and 3.3; Figures 2 and 3).

Scores X drawn from a law are released as X + sigma N and sorted; P_e is the chance that the order is wrong. By Theorem
3.6 it is c1 sigma + c2 sigma^2 + c3 sigma^3 + ... The first order is (19), the second Corollary 3.7 (which the paper
has for normal noise); the third is ours, and so is the integral that needs no small sigma.
"""

from __future__ import annotations

import numpy as np

from rankdp.theory.noises import Gaussian, ScoreNoise
from rankdp.theory.recovery import error_probability, taylor_coefficients
from rankdp.theory.score_laws import ScoreLaw, Uniform
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.jeong.situations import LAWS, exact_row, integrated_error, noise_of

_ORDERS = ("first order", "second order", "third order")


def against_sigma(cell: Cell) -> list[Row]:
    """Figure 2: one noise at one sigma, on uniform scores of a given width."""
    law = Uniform(0.0, cell["width"])
    random = cell.generator(cell["noise"], cell["sigma"])
    return compare(cell["items"], noise_of(cell), cell["sigma"], law, 2, cell.repetitions, random)


def near_zero(cell: Cell) -> list[Row]:
    """Figure 3: normal noise at all sigmas of one panel."""
    items, law, span = cell["items"], cell["law"], cell["range"]
    found = []
    for sigma in cell["sigmas"][span][str(items)]:
        random = cell.generator(items, law, span, sigma)
        rows = compare(items, Gaussian(), sigma, LAWS[law], 3, cell.repetitions, random)
        found += [{"sigma": float(sigma), "panel": f"n = {items}, {span}", **row} for row in rows]
    return found


def compare(
    n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, orders: int, draws: int, random: np.random.Generator
) -> list[Row]:
    """P_e by simulation and by each formula, and how far each formula is from the simulation.

    "minus simulated" is the difference, "distance" its absolute value, "over simulated" the ratio.
    """
    simulated = error_probability(n, noise, sigma, law, draws, random)
    rows = [{**exact_row("simulated", "error probability", simulated.value), "error": simulated.error}]
    for method, value in _formulas(n, noise, sigma, law, orders).items():
        off = value - simulated.value
        rows.append(exact_row(method, "error probability", value))
        rows.append({**exact_row(method, "minus simulated", off), "error": simulated.error})
        rows.append({**exact_row(method, "distance", abs(off)), "error": simulated.error})
        if simulated.value > 0:
            ratio = value / simulated.value
            rows.append(
                {**exact_row(method, "over simulated", ratio), "error": abs(ratio) * simulated.error / simulated.value}
            )
    return rows


def _formulas(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, orders: int) -> dict[str, float]:
    terms = [c * sigma**power for power, c in enumerate(taylor_coefficients(n, noise, law, orders), 1)]
    sums = np.cumsum(terms).tolist()
    return {**dict(zip(_ORDERS, sums, strict=False)), "integrated": integrated_error(n, noise, sigma, law)}
