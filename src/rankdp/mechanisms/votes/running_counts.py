"""Counts that are published again and again while votes arrive, for one budget: noise on a tree.

Step t brings whole numbers x_t, the half-wins of items or of ordered pairs among the new votes. After it the total
x_1 + ... + x_t is wanted. One *node* is released at each step: with a base r and r^v the largest power that divides t,

    w_t = x_s + ... + x_t + noise,        s = t - r^v + 1,

and the total is the sum of w_t, w_(t - r^v), ... down to 0: as many nodes as the sum of the digits of t in base r. Base
2 is the binary mechanism (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011); a base above the number of
steps sums independent noise of all steps.

Law: every node has the noise of ``noisy_counts`` at the share 1/h of the budget, h the number of digits of the last
step.

Proof. A node has a level v, from 0 to h - 1, and nodes of one level hold disjoint steps. Two streams are neighbours
when k comparisons are removed and k added, anywhere in the stream. At one level the l1 norms of removed and added
comparisons add up to at most the sensitivity S for one table, because S is a sum over single comparisons (half-wins: 2
for each of 2k). If a_i are removed from node i and b_i added, they move its squared l2 norm by at most 4 a_i^2 +
4 b_i^2, which adds up to at most 8 k^2 over the nodes, as for one table. So the nodes of one level together cost as
much as one release of the counts, eps/h or rho/h, and h levels cost eps or rho. The votes may be chosen after seeing
earlier nodes: given those, the noise of a node is fresh, so the log-ratios of the conditional laws add up along every
path, to at most the same sum.

The base minimises the mean variance of a total over all steps, h^2 (Laplace) or h (Gaussian) times the digit sum:
public numbers. For 52 steps that is base 8 (two levels) for Laplace noise and base 4 (three) for Gaussian noise; the
binary mechanism has 3.9 and 1.3 times their variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyTable, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.types import Longs

MOST_STEPS = 1000
"""A total of this many tables with 2^53 half-wins each fits 64 bits."""


@dataclass(frozen=True, slots=True)
class RunningCounts:
    """The mechanism for the totals of a stream; all of it is public.

    Parameters
    ----------
    protection
        What is protected; for voters the bound is for all steps together.
    epsilon, delta
        For the whole stream.
    steps
        The largest number of steps of the stream.
    base
        r.
    """

    protection: Protection
    epsilon: Fraction
    delta: Fraction
    steps: int
    base: int

    @classmethod
    def of(cls, protection: Protection, epsilon: Real, delta: Fraction, steps: int) -> RunningCounts:
        """With the base of smallest mean variance. Parameters as for the class."""
        most = whole("boards", steps, 1, MOST_STEPS)
        made = (cls(protection, positive(epsilon), delta, most, base) for base in range(2, most + 2))
        return min(made, key=lambda one: one.mean_variance)

    @property
    def levels(self) -> int:
        """h: the number of levels, and of nodes that can contain a step."""
        return len(self._digits(self.steps))

    @property
    def counts(self) -> NoisyCounts:
        """The noise of a node: on wins if the design is public, else on the table of ordered pairs."""
        kind = NoisyWins if self.protection.design_public else NoisyTable
        return kind(self.protection, self.epsilon, self.delta, Fraction(1, self.levels))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for all nodes together."""
        whole_budget = self.counts.rho
        rho = None if whole_budget is None else float(np.nextafter(float(whole_budget), np.inf))
        return Guarantee(self.protection.protects, self.epsilon, self.delta, local=False, rho=rho)

    @property
    def mean_variance(self) -> float:
        """The variance of a total, averaged over all steps, relative to one release with all of the budget."""
        sums = sum(sum(self._digits(step)) for step in range(1, self.steps + 1))
        return float(self.levels ** (1 if self.delta else 2) * sums / self.steps)

    def level(self, step: int) -> int:
        """v: the node of a step holds the last r^v steps."""
        return next(place for place, digit in enumerate(self._digits(step)) if digit)

    def nodes(self, step: int) -> list[int]:
        """The steps whose nodes add up to the total after ``step``."""
        found = []
        while step:
            found.append(step)
            step -= self.base ** self.level(step)
        return found

    def step(self, number: int, added: Longs, open_sums: Longs, bits: Bits) -> tuple[Longs, Longs]:
        """The node of a step, and the secret sums that stay open after it.

        Parameters
        ----------
        number
            The number of the step, from 1 on.
        added
            x_t.
        open_sums
            One row per level: the sum of the steps since the last one that r^level divides; zeros at first.
        bits
            Where the noise comes from.
        """
        open_sums = open_sums + added
        level = self.level(number)
        node = self.counts.sample(open_sums[level].copy(), bits)
        open_sums[: level + 1] = 0
        return node, open_sums

    def _digits(self, step: int) -> list[int]:
        """The digits of a number in the base, the last one first."""
        digits = []
        while step:
            step, digit = divmod(step, self.base)
            digits.append(digit)
        return digits
