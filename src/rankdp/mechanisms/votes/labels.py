"""Randomised response on the label of a preference: which of two answers was preferred.

Law: the label is kept with probability e^eps / (1 + e^eps) and swapped with probability f = 1 / (1 + e^eps).

Proof of eps: for either output the two inputs have probabilities 1 - f and f, whose ratio is exactly e^eps. Rows are
drawn independently, so k labels of one person at eps each cost k eps together (composition); for a person with at most
k rows, eps/k each gives eps. No eps-DP mechanism for one bit keeps it more often.

Debiasing: for a loss l of the score difference d = score(chosen) - score(rejected),

    ((1 - f) l(d) - f l(-d)) / (1 - 2f)

has the mean l of the true order over the swaps (Chowdhury, Kini and Natarajan 2024, "Provably robust DPO").
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import Real, exp_bounds, positive
from rankdp.privacy.guarantee import OUTCOME, Guarantee
from rankdp.types import Flags


class SwappedLabels:
    """Randomised response with epsilon for one label.

    Parameters
    ----------
    epsilon
        The privacy of one label.
    """

    name = "randomized-response"

    def __init__(self, epsilon: Real) -> None:
        self.epsilon: Fraction = positive(epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for one label."""
        return Guarantee(OUTCOME, self.epsilon)

    @property
    def flip_probability(self) -> float:
        """f = 1 / (1 + e^eps)."""
        return math.exp(-float(self.epsilon)) / (1 + math.exp(-float(self.epsilon)))

    def exact_law(self, bits: int) -> Weights:
        """Integer bounds of the weights of "kept" and "swapped", 1 and e^-eps; ``swapped`` draws from them."""
        low, high = exp_bounds(self.epsilon, bits)
        return Weights([1 << bits, low], [1 << bits, high])

    @cached_property
    def _table(self) -> CutTable:
        return CutTable(self.exact_law)

    def swapped(self, count: int, bits: Bits) -> Flags:
        """Which of ``count`` labels are swapped."""
        return np.asarray(self._table.sample(count, bits) == 1)
