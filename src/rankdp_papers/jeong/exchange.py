"""Privacy against error (Jeong, Section 4): Table 1 and the trade-offs (29), (32) and (35), beside the true error.

Scores are uniform on (0, 1), so l = 1 and C_X = n(n-1). Each noise has the smallest sigma that its epsilon allows,
(24). The paper's curves are the first order (25), a straight line in logarithms that knows no upper end; the error
itself, by ``recovery.order_probability_iid``, is a probability.
"""

from __future__ import annotations

import math

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, ScoreNoise, Staircase, rdp_inverse
from rankdp.theory.recovery import first_order
from rankdp.theory.tradeoffs import laplace_bounds, p_best, p_hat
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.jeong.situations import LAWS, exact_row, integrated_error, noise_of

LOW_NOISE = 0.05  # first-order errors up to it count as the low-noise regime
_SMALLEST = 1e-8  # errors below it drown in rounding and are left out
_SCORES = LAWS["uniform"]


def exponents(cell: Cell) -> list[Row]:
    """Table 1: the error of one noise against its own epsilons, with the exponent that the table has for it.

    (alpha, epsilon)-RDP for Gaussian and Laplace noise, epsilon-DP for the generalised normal.
    """
    noise, items = noise_of(cell), cell["items"]
    exponent = {"gaussian": -0.5, "laplace": -1.0, "generalized-normal": -1 / cell["p"]}[noise.name]
    alpha = math.inf if noise.name == "generalized-normal" else cell["alpha"]
    rows = []
    for epsilon in cell["epsilons"][noise.name]:
        first, error = errors(items, noise, alpha, epsilon)
        if min(first, error) < _SMALLEST:
            continue
        regime = "low noise" if first <= LOW_NOISE else "everyday"
        for method, value in ((noise.name, error), (f"{noise.name} + first order", first)):
            row = exact_row(method, "error probability", value)
            rows.append({"epsilon": float(epsilon), "exponent": exponent, "regime": regime, **row})
    return rows


def errors(items: int, noise: ScoreNoise, alpha: float, epsilon: float) -> tuple[float, float]:
    """The first-order error (25) and the error itself at this (alpha, epsilon)."""
    sigma = rdp_inverse(noise, alpha, epsilon, 1.0)
    return first_order(items, noise, _SCORES) * sigma, integrated_error(items, noise, sigma, _SCORES)


def laplace(cell: Cell) -> list[Row]:
    """(29) with its bounds (30), the error itself, and at alpha = inf that of staircase noise."""
    items, alpha, epsilon = cell["items"], cell["alpha"], cell["epsilon"]
    first, error = errors(items, Laplace(), alpha, epsilon)
    low, high = laplace_bounds(epsilon, items * (items - 1), 1.0, alpha)
    paper = {
        "laplace + first order (29)": first,
        "laplace + lower bound (30)": low,
        "laplace + upper bound (30)": high,
    }
    curves = {"laplace": error, **paper}
    if alpha == math.inf and epsilon <= cell["staircase_up_to"]:
        curves["staircase"] = errors(items, Staircase(epsilon), alpha, epsilon)[1]
    rows = [exact_row(method, "error probability", value) for method, value in curves.items() if value > _SMALLEST]
    rows += [exact_row(method, "over the upper bound", value / high) for method, value in paper.items()]
    rows.append(exact_row("laplace + first order (29)", "error times epsilon", first * epsilon))
    return rows


def gaussian(cell: Cell) -> list[Row]:
    """(32), the error itself, and the same for Laplace noise at the same (alpha, epsilon)."""
    rows = []
    for noise in (Gaussian(), Laplace()):
        first, error = errors(cell["items"], noise, cell["alpha"], cell["epsilon"])
        rows.append(exact_row(noise.name, "error probability", error))
        rows.append(exact_row(f"{noise.name} + first order", "error probability", first))
    return rows


def generalized_normal(cell: Cell) -> list[Row]:
    """(35) for several p, for the paper's p-hat (91) and for the best p, and staircase noise; then the error itself.

    "(35) by p" repeats the first order with p as a number, p = 1 being Laplace noise; the column is 0 elsewhere.
    """
    items, epsilon = cell["items"], cell["epsilon"]
    shapes: dict[str, ScoreNoise] = {f"p = {p:g}": GeneralizedNormal(p) for p in cell["powers"]}
    shapes |= {"p-hat (91)": GeneralizedNormal(p_hat(epsilon)), "best p": GeneralizedNormal(p_best(epsilon))}
    noises: dict[str, ScoreNoise] = {"laplace": Laplace(), "staircase": Staircase(epsilon)}
    noises |= {f"generalized-normal + {name}": noise for name, noise in shapes.items()}
    rows = []
    for method, noise in noises.items():
        first, error = errors(items, noise, math.inf, epsilon)
        for measure, value in (("first order", first), ("the error itself", error)):
            if value > cell["smallest"]:
                rows.append({"p": 0.0, **exact_row(method, measure, value)})
        if error > _SMALLEST:
            rows.append({"p": 0.0, **exact_row(method, "first order over the error itself", first / error)})
    for p in (1.0, *cell["powers"]):
        first, _ = errors(items, GeneralizedNormal(p), math.inf, epsilon)
        rows.append({"p": p, **exact_row("generalized-normal", "(35) by p", first)})
    return rows
