"""Confidence bounds of an epsilon from counts.

Clopper and Pearson (1934): from h hits in n draws, the probability p of an event is at least the alpha-quantile of
Beta(h, n - h + 1) and at most the (1 - alpha)-quantile of Beta(h + 1, n - h), each with confidence 1 - alpha, for every
p and n alike. (eps, delta)-DP says p_1 <= e^eps p_2 + delta for every event. So with p_1 bounded below and p_2 bounded
above, each at half of alpha,

    eps >= log((p_1_low - delta) / p_2_high)    with confidence 1 - alpha,

provided that the event was chosen without looking at these draws.

Equation (8) of Xu is the plain estimate: the largest absolute log-ratio of frequencies over all outputs. It chooses the
output by the draws that it then counts, so it errs upwards; it comes without a confidence.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def lower_bound(hits: int, draws: int, alpha: float) -> float:
    """The probability of the event is at least this, with confidence 1 - alpha."""
    from scipy.stats import beta

    return float(beta.ppf(alpha, hits, draws - hits + 1)) if hits else 0.0


def upper_bound(hits: int, draws: int, alpha: float) -> float:
    """The probability of the event is at most this, with confidence 1 - alpha."""
    from scipy.stats import beta

    return float(beta.isf(alpha, hits + 1, draws - hits)) if hits < draws else 1.0


def epsilon_bound(
    hits: tuple[int, int], draws: tuple[int, int], alpha: float, delta: float = 0.0
) -> tuple[float, float, float]:
    """What counts of one event prove: (p_1 at least, p_2 at most, epsilon at least); -inf where nothing is shown.

    Parameters
    ----------
    hits
        How often the event happened for either input.
    draws
        Of how many draws.
    alpha
        One less the confidence.
    delta
        With what probability the claim may fail.
    """
    low, high = lower_bound(hits[0], draws[0], alpha / 2), upper_bound(hits[1], draws[1], alpha / 2)
    return low, high, math.log((low - delta) / high) if low > delta else -math.inf


def equation_8(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The largest absolute log-ratio of the frequencies of an output, over the outputs that both inputs have shown.

    Parameters
    ----------
    first
        How often each output came for one input.
    second
        The same for the other input.
    """
    both = (first > 0) & (second > 0)
    if not both.any():
        return math.nan
    shift = math.log(second.sum() / first.sum())
    return float(np.abs(np.log(first[both] / second[both]) + shift).max())
