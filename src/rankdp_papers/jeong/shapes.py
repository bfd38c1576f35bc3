"""Which p is best for generalised normal noise, and how to decode it (Jeong, Remark 4.14, Appendix L).

Appendix L minimises (1/eps)^(1/p)/h(p), by the approximation (91) or exactly, (92). All of (35) also has ``E|N - N'|``,
which falls with p. And below p = 1 sorting is no longer the best decoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, ScoreNoise, Staircase
from rankdp.theory.recovery import decoder_gap, first_order
from rankdp.theory.tradeoffs import generalized_normal_tradeoff, laplace_tradeoff, p_best, p_exact, p_hat
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.jeong.exchange import errors
from rankdp_papers.jeong.situations import LAWS, exact_row

CHOICES: dict[str, Callable[[float], float]] = {
    "p-hat (91)": p_hat,
    "p of (92)": p_exact,
    "best p": p_best,
    "p = 1/2": lambda epsilon: 0.5,
}
_NOISES: dict[str, ScoreNoise] = {
    "generalized-normal + p = 0.3": GeneralizedNormal(0.3),
    "generalized-normal + p = 0.5": GeneralizedNormal(0.5),
    "generalized-normal + p = 1.5": GeneralizedNormal(1.5),
    "laplace": Laplace(),
    "gaussian": Gaussian(),
    "staircase": Staircase(2.0),
}


def best_power(cell: Cell) -> list[Row]:
    """Each choice of p at one epsilon: the p, the first-order error over Laplace's and over the best p's, and P_e."""
    epsilon = cell["epsilon"]
    laplace = laplace_tradeoff(epsilon, 1.0)
    least = generalized_normal_tradeoff(epsilon, p_best(epsilon), 1.0)
    rows = []
    for method, choose in CHOICES.items():
        p = choose(epsilon)
        first = generalized_normal_tradeoff(epsilon, p, 1.0)
        rows.append(exact_row(method, "p", p))
        rows.append(exact_row(method, "first-order error over Laplace's", first / laplace))
        rows.append(exact_row(method, "first-order error over the least", first / least))
        error = errors(cell["items"], GeneralizedNormal(p), math.inf, epsilon)[1]
        rows.append(exact_row(method, "error probability", error))
    return rows


def decoders(cell: Cell) -> list[Row]:
    """Sorting against the most likely order given the noisy scores, both with the same draws of scores and noise.

    Sigma makes the first-order error ``load``. For each draw both err with a known probability, which is averaged.
    """
    noise, items = _NOISES[cell["noise"]], cell["items"]
    law = LAWS["uniform"]
    sigma = cell["load"] / first_order(items, noise, law)
    gap = decoder_gap(items, noise, sigma, law, cell.repetitions, cell.generator(cell["noise"], items))
    return [
        {"method": method, "measure": measure, "value": found.value, "error": found.error}
        for method, measure, found in (
            ("sorting", "error probability", gap.sort),
            ("best decoder", "error probability", gap.best),
            ("sorting", "lost by sorting", gap.gap),
            ("sorting", "another order is likelier", gap.differ),
        )
    ]
