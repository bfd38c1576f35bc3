"""Privacy against error (Jeong, Section 4): Table 1, the trade-offs (29), (32) and (35), and the best p.

Scores are uniform on (0, 1), so l = 1 and C_X = n(n-1). Each noise has the smallest sigma that its epsilon allows,
(24). The paper's curves are the first order (25), P_e = ``E|V|``/2 C_X sigma, a straight line in logarithms that knows
no upper end; the error itself, by ``sorting_error.error_of_sorting``, is a probability.

Remark 4.14 reads (35) as "the smaller p, the better", which is right about the rate as eps grows. At a fixed eps there
is a best p; below eps = 4.595 it is 1. Appendix L minimises (1/eps)^(1/p)/h(p), by the approximation (91) or exactly,
(92). All of (35) also has ``E|N - N'|``, which falls with p.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, ScoreNoise, Staircase, rdp_inverse
from rankdp.theory.recovery import first_order
from rankdp_papers.experiment import Cell, Row, exact_row, exact_rows
from rankdp_papers.jeong.decoders import Simulated
from rankdp_papers.jeong.sorting_error import LAWS, error_of_sorting, noise_of

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
        if min(first, error.value) < _SMALLEST:
            continue
        regime = "low noise" if first <= LOW_NOISE else "everyday"
        for method, value in ((noise.name, error), (f"{noise.name} + first order", (first, 0.0))):
            row = exact_row(method, "error probability", *value)
            rows.append({"epsilon": float(epsilon), "exponent": exponent, "regime": regime, **row})
    measured = {
        "Table 1": exponent,
        "measured on the first order, low noise": _slope(rows, f"{noise.name} + first order", "low noise"),
        "measured on P_e, low noise": _slope(rows, noise.name, "low noise"),
        "measured on P_e, epsilon up to 10": _slope(rows, noise.name, "everyday", 10.0),
    }
    fixed = {"epsilon": 0.0, "exponent": exponent, "regime": "exponent"}
    return rows + [{**fixed, **exact_row(noise.name, measure, value)} for measure, value in measured.items()]


def _slope(rows: list[Row], method: str, regime: str, most: float = math.inf) -> float:
    """Of log P_e on log epsilon, least squares."""
    chosen = [row for row in rows if row["method"] == method and row["regime"] == regime and row["epsilon"] <= most]
    logs = np.log([(row["epsilon"], row["value"]) for row in chosen])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def errors(items: int, noise: ScoreNoise, alpha: float, epsilon: float) -> tuple[float, Simulated]:
    """The first-order error (25) and the error itself at this (alpha, epsilon)."""
    sigma = rdp_inverse(noise, alpha, epsilon, 1.0)
    return first_order(items, noise, _SCORES) * sigma, error_of_sorting(items, noise, sigma, _SCORES)


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
    curves = {"laplace": error, **{method: Simulated(value, 0.0) for method, value in paper.items()}}
    if alpha == math.inf and epsilon <= cell["staircase_up_to"]:
        curves["staircase"] = errors(items, Staircase(epsilon), alpha, epsilon)[1]
    rows = [exact_row(method, "error probability", *one) for method, one in curves.items() if one.value > _SMALLEST]
    return rows + [exact_row(method, "over the upper bound", value / high) for method, value in paper.items()]


def gaussian(cell: Cell) -> list[Row]:
    """(32), the error itself, and the same for Laplace noise at the same (alpha, epsilon)."""
    rows = []
    for noise in (Gaussian(), Laplace()):
        first, error = errors(cell["items"], noise, cell["alpha"], cell["epsilon"])
        rows.append(exact_row(noise.name, "error probability", *error))
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
        found = [exact_row(method, "first order", first), exact_row(method, "the error itself", *error)]
        rows += [{"p": 0.0, **row} for row in found if row["value"] > cell["smallest"]]
        if error.value > _SMALLEST:
            ratio = first / error.value
            row = exact_row(method, "first order over the error itself", ratio, ratio * error.error / error.value)
            rows.append({"p": 0.0, **row})
    for p in (1.0, *cell["powers"]):
        first = tradeoff(GeneralizedNormal(p), epsilon, items * (items - 1))
        rows.append({"p": p, **exact_row("generalized-normal", "(35) by p", first)})
    return rows


def best_power(cell: Cell) -> list[Row]:
    """Each choice of p at one epsilon: the p, the first-order error over the best p's, and P_e."""
    epsilon = cell["epsilon"]
    least = tradeoff(GeneralizedNormal(p_best(epsilon)), epsilon)
    rows = []
    for method, choose in CHOICES.items():
        p = choose(epsilon)
        first = tradeoff(GeneralizedNormal(p), epsilon)
        rows += exact_rows({method: {"p": p, "first-order error over the least": first / least}})
        error = errors(cell["items"], GeneralizedNormal(p), math.inf, epsilon)[1]
        rows.append(exact_row(method, "error probability", *error))
    return rows


def tradeoff(noise: ScoreNoise, epsilon: float, constant: float = 1.0, span: float = 1.0) -> float:
    """(25) for pure DP: ``E|V| C_X / 2`` times the smallest sigma."""
    return noise.mean_difference * constant / 2 * rdp_inverse(noise, math.inf, epsilon, span)


def laplace_bounds(epsilon: float, constant: float, span: float = 1.0, alpha: float = math.inf) -> tuple[float, float]:
    """By (29) and the bounds (30): 3 l C_X/4 over eps + log((2 alpha-1)/alpha)/(alpha-1), and over eps.

    The upper one is true (D_alpha never exceeds D_inf), though not for the reason in Appendix I: there (28)'s excess
    over ``l/(sigma b)`` is claimed to rise with alpha to its limit 0, but it is positive, 0.095 at alpha = 2 and l = 0.
    """
    more = 0.0 if alpha == math.inf else (1.0 if alpha == 1 else math.log((2 * alpha - 1) / alpha) / (alpha - 1))
    return 3 * span * constant / 4 / (epsilon + more), 3 * span * constant / 4 / epsilon


def p_hat(epsilon: float) -> float:
    """(91): min(3 sqrt(3)/eps, 1), from the approximation (90) of the digamma function."""
    return min(3 * math.sqrt(3) / epsilon, 1.0)


def p_exact(epsilon: float) -> float:
    """(92): the p where 3 psi(3/p) - psi(1/p) = 2 log eps, or 1: the minimiser of (1/eps)^(1/p)/h(p)."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    def slope(x: float) -> float:
        return float(3 * digamma(3 * x) - digamma(x) - 2 * math.log(epsilon))

    return 1.0 if slope(1.0) >= 0 else 1 / float(brentq(slope, 1.0, 2 + epsilon))


def p_best(epsilon: float) -> float:
    """The minimiser of all of (35) over p in [0.02, 1]: ``E|N - N'|`` falls with p too, so it is below (92)."""
    from scipy.optimize import minimize_scalar

    def cost(x: float) -> float:  # x = 1/p
        return math.log(tradeoff(GeneralizedNormal(1 / x), epsilon))

    found = minimize_scalar(cost, bounds=(1.0, 50.0), method="bounded", options={"xatol": 1e-9})
    return 1.0 if cost(1.0) <= float(found.fun) + 1e-12 else 1 / float(found.x)


CHOICES: dict[str, Callable[[float], float]] = {
    "p-hat (91)": p_hat,
    "p of (92)": p_exact,
    "best p": p_best,
}
