"""The first-order trade-off between privacy and the error probability (Jeong, Section 4), and the best p.

P_e = ``E|V|``/2 C_X sigma to the first order, with sigma the smallest that the privacy allows, (25). C_X is the sum of
the spacings' densities at 0, n(n-1) ``||f||^2`` for i.i.d. scores; ``span`` is l, the range that one score may move in.
A value above 1 says that the error is certain for practical purposes, not that it is that large.

Remark 4.14 reads (35) as "the smaller p, the better". That holds only for the rate as eps grows: below eps = 4.595
the best p is 1, and a smaller one is worse (p = 1/2 has 6.5 times the error of Laplace noise at eps = 1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, ScoreNoise, rdp_inverse
from rankdp.theory.noises.contract import check_number


def tradeoff(noise: ScoreNoise, epsilon: float, constant: float, span: float = 1.0, alpha: float = math.inf) -> float:
    """(25): ``E|V| C_X / 2`` times the smallest sigma that is (alpha, epsilon)-RDP; alpha = inf is pure DP."""
    return noise.mean_difference * constant / 2 * rdp_inverse(noise, alpha, epsilon, span)


def laplace_tradeoff(epsilon: float, constant: float, span: float = 1.0, alpha: float = math.inf) -> float:
    """(29): 3 C_X/(4 sqrt(2)) RDP^-1; 3 l C_X/(4 eps) at alpha = inf."""
    return tradeoff(Laplace(), epsilon, constant, span, alpha)


def laplace_bounds(epsilon: float, constant: float, span: float = 1.0, alpha: float = math.inf) -> tuple[float, float]:
    """By (29) and the bounds (30): 3 l C_X/4 over eps + log((2 alpha-1)/alpha)/(alpha-1), and over eps.

    The upper one is true (D_alpha never exceeds D_inf), though not for the reason in Appendix I: there (28)'s excess
    over ``l/(sigma b)`` is said to rise with alpha to its limit 0, but it is positive, 0.095 at alpha = 2 and l = 0.
    """
    more = 0.0 if alpha == math.inf else (1.0 if alpha == 1 else math.log((2 * alpha - 1) / alpha) / (alpha - 1))
    return 3 * span * constant / 4 / (epsilon + more), 3 * span * constant / 4 / epsilon


def gaussian_tradeoff(epsilon: float, constant: float, span: float = 1.0, alpha: float = 2.0) -> float:
    """(32): l C_X sqrt(alpha/(2 pi eps)); infinite at alpha = inf."""
    return tradeoff(Gaussian(), epsilon, constant, span, alpha)


def generalized_normal_tradeoff(epsilon: float, p: float, constant: float, span: float = 1.0) -> float:
    """(35): ``E|N - N'| l C_X / (2 h(p)) (1/eps)^(1/p)``, p <= 1, pure DP."""
    return tradeoff(GeneralizedNormal(p), epsilon, constant, span)


def p_hat(epsilon: float) -> float:
    """(91): min(3 sqrt(3)/eps, 1), from the approximation (90) of the digamma function."""
    return min(3 * math.sqrt(3) / _epsilon(epsilon), 1.0)


def p_exact(epsilon: float) -> float:
    """(92): the p where 3 psi(3/p) - psi(1/p) = 2 log eps, or 1: the minimiser of (1/eps)^(1/p)/h(p)."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    epsilon = _epsilon(epsilon)

    def slope(x: float) -> float:
        return float(3 * digamma(3 * x) - digamma(x) - 2 * math.log(epsilon))

    return 1.0 if slope(1.0) >= 0 else 1 / float(brentq(slope, 1.0, 2 + epsilon))


def p_best(epsilon: float) -> float:
    """The minimiser of all of (35) over p in [0.02, 1]: ``E|N - N'|`` falls with p too, so it is below (92)."""
    from scipy.optimize import minimize_scalar

    epsilon = _epsilon(epsilon)

    def cost(x: float) -> float:  # x = 1/p
        return math.log(generalized_normal_tradeoff(epsilon, 1 / x, 1.0))

    found = minimize_scalar(cost, bounds=(1.0, 50.0), method="bounded", options={"xatol": 1e-9})
    return 1.0 if cost(1.0) <= float(found.fun) + 1e-12 else 1 / float(found.x)


class BestPower(NamedTuple):
    """For one epsilon: the three choices of p, and the first-order error of each over that of Laplace noise."""

    epsilon: float
    p_hat: float
    p_exact: float
    p_best: float
    ratio_hat: float
    ratio_exact: float
    ratio_best: float


def power_table(epsilons: list[float]) -> list[BestPower]:
    """The paper's p-hat, its exact equation and the true minimiser of (35) side by side, with what each buys."""
    rows = []
    for epsilon in epsilons:
        powers = [max(0.02, choice(epsilon)) for choice in (p_hat, p_exact, p_best)]
        laplace = laplace_tradeoff(epsilon, 1.0)
        ratios = [generalized_normal_tradeoff(epsilon, p, 1.0) / laplace for p in powers]
        rows.append(BestPower(epsilon, *powers, *ratios))
    return rows


def _epsilon(epsilon: float) -> float:
    return check_number(epsilon, "epsilon", "a finite number above 0", 0.0)
