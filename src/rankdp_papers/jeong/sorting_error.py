"""The error of sorting against sigma: simulated, expanded and integrated (Jeong, Sections 3.2 and 3.3; Figures 2, 3).

Scores X drawn from a law are released as X + sigma N and sorted; P_e is the chance that the order is wrong. By Theorem
3.6 it is c1 sigma + c2 sigma^2 + c3 sigma^3 + ... The first order is (19), the second Corollary 3.7 (which the paper
has for normal noise); the third is ours, and so is the integral that needs no small sigma. Below p = 1 sorting is no
longer the best decoder (``decoders``).
"""

from __future__ import annotations

import numpy as np

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, ScoreNoise, Staircase, noise
from rankdp.theory.recovery import first_order, taylor_coefficients
from rankdp.theory.score_laws import Exponential, ScoreLaw, Uniform
from rankdp.theory.whole_order import order_probability_iid
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.decoders import Simulated, error_probability, order_posterior, sort_decoder

LAWS: dict[str, ScoreLaw] = {"uniform": Uniform(0.0, 1.0), "exponential": Exponential(1.0)}
_PARAMETERS = {"generalized-normal": {"p": "p"}, "staircase": {"epsilon": "staircase_epsilon"}}
NOISES: dict[str, ScoreNoise] = {
    "generalized-normal + p = 0.3": GeneralizedNormal(0.3),
    "generalized-normal + p = 0.5": GeneralizedNormal(0.5),
    "generalized-normal + p = 1.5": GeneralizedNormal(1.5),
    "laplace": Laplace(),
    "gaussian": Gaussian(),
    "staircase": Staircase(2.0),
}
_ORDERS = ("first order", "second order", "third order")
_TOLERANCE, _MOST_CELLS, _DRAWS = 1e-4, 1 << 11, 1_000_000


def noise_of(cell: Cell) -> ScoreNoise:
    """The noise that the cell names; its shape is a setting: ``p``, or the ``staircase_epsilon``."""
    name = cell["noise"]
    return noise(name, **{argument: cell[setting] for argument, setting in _PARAMETERS.get(name, {}).items()})


def error_of_sorting(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> Simulated:
    """P_e of (3) for any sigma, by ``whole_order.order_probability_iid`` to 1e-4 (and then without an error).

    Where that would take more than a few seconds, for noise with a sharp peak and a long tail, a million draws.
    """
    whole = order_probability_iid(n, noise, sigma, law, most_cells=_MOST_CELLS)
    if whole.error <= _TOLERANCE:
        return Simulated(1 - whole.value, 0.0)
    return error_probability(n, noise, sigma, law, _DRAWS, np.random.default_rng(n))


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
    rows = [exact_row("simulated", "error probability", *simulated)]
    formulas = _formulas(n, noise, sigma, law, orders)
    whole = order_probability_iid(n, noise, sigma, law)
    for method, value in {**formulas, "integrated": 1 - whole.value}.items():
        off = value - simulated.value
        rows.append(exact_row(method, "error probability", value))
        rows.append(exact_row(method, "minus simulated", off, simulated.error))
        rows.append(exact_row(method, "distance", abs(off), simulated.error))
        if simulated.value > 0:
            ratio = value / simulated.value
            error = abs(ratio) * simulated.error / simulated.value
            rows.append(exact_row(method, "over simulated", ratio, error))
    found = {"simulated": f"{draws} draws", "integrated": whole.method}
    return [{**row, "by": found.get(row["method"], "Theorem 3.6")} for row in rows]


def _formulas(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, orders: int) -> dict[str, float]:
    terms = [c * sigma**power for power, c in enumerate(taylor_coefficients(n, noise, law, orders), 1)]
    sums = np.cumsum(terms).tolist()
    return dict(zip(_ORDERS, sums, strict=False))


def decoders(cell: Cell) -> list[Row]:
    """Sorting against the most likely order given the noisy scores, both with the same draws of scores and noise.

    Sigma makes the first-order error ``load``. For each draw both err with probability 1 - P(their order given y),
    which is averaged: the difference is never negative, and far less noisy than a count of errors.
    """
    shape, items, law = NOISES[cell["noise"]], cell["items"], LAWS["uniform"]
    sigma = cell["load"] / first_order(items, shape, law)
    random, wrong = cell.generator(cell["noise"], items), np.empty((cell.repetitions, 2))
    for draw in range(cell.repetitions):
        y = law.sample(items, random) + sigma * shape.sample(items, random)
        orders, chances = order_posterior(y, shape, sigma, law)
        wrong[draw] = 1 - chances[(orders == sort_decoder(y)).all(axis=1)][0], 1 - chances.max()
    sort, best = wrong.T
    return [
        exact_row("sorting", "error probability", *Simulated.of(sort)),
        exact_row("best decoder", "error probability", *Simulated.of(best)),
        exact_row("sorting", "lost by sorting", *Simulated.of(sort - best)),
    ]
