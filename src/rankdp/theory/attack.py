"""What an attacker learns from N synthetic rankings of one secret ranking (Xu, Section 4).

If more than half of the N releases reverse the two best items, the maximum-likelihood ranking reverses them
too, so the probability of that event bounds the attacker's error from below. Each release reverses them with
probability 1/(1 + q), q = exp(eps/(m-1)).
"""

from __future__ import annotations

import math


def reversal_tail(releases: int, items: int, epsilon: float, *, ties: bool = False) -> float:
    """P(more than half of the releases reverse the two best items): the exact binomial tail behind Theorem 2.

    ``ties=True`` adds the event that exactly half do. The paper's proof bounds the *strict* tail by the one
    with ties, the wrong way round for even N: at N = 2 and tiny eps that claims 3/4 where 1/4 is true. Read
    the theorem with the strict tail.
    """
    from scipy.stats import binom

    odds = math.exp(-epsilon / (items - 1))
    reverse = odds / (1 + odds)
    least = (releases + 1) // 2 if ties else releases // 2 + 1
    return float(binom.sf(least - 1, releases, reverse))


def theorem_2_bound(releases: int, items: int, epsilon: float, constant: float = 1.0) -> float:
    """Theorem 2: C0 (q+1)/(q-1) sqrt(2/(pi N)) exp(-N (q-1)^2), q = exp(eps/(m-1)); the paper does not give C0."""
    x = epsilon / (items - 1)
    if x > 100:  # far below the smallest float
        return 0.0
    return constant / math.tanh(x / 2) * math.sqrt(2 / (math.pi * releases)) * math.exp(-releases * math.expm1(x) ** 2)


def adaptive_epsilon(releases: int, items: int) -> float:
    """eps = (m-1)/sqrt(N): the rate at which N releases keep the attacker's error away from zero."""
    return (items - 1) / math.sqrt(releases)
