"""Totals that are published again and again while votes arrive, all of it paid for once.

Step t brings whole numbers x_t: how many comparisons came, and for every item its wins less losses and its degree (how
many comparisons it had) among them. After it the totals x_1 + ... + x_t are wanted. One *node* is released a step,

    w_t = x_s + ... + x_t + noise,    s = t, or the first step of a block of m steps that t completes,

and every total follows from nodes by adding: the complete blocks, and the steps since. Without blocks the noise of t
steps adds up, its deviation grows like sqrt(t), and the horizon may be unlimited. With blocks of about sqrt(2T) steps a
total of up to T steps has at most about sqrt(2T) nodes, at half of epsilon each; that pays from about 120 steps on.
(Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011. Trees of more levels pay from tens of thousands on.)

Law: independent discrete Laplace noise. Two streams are neighbours when up to k comparisons, wherever they stand in the
stream, are taken out and up to k others put in anywhere. Each of these 2k changes one x_s: by 1 in the count, 2 in l1
in the differences and 2 in the degrees. It is in at most h nodes, h = 1 without and 2 with blocks. So with shares q
of epsilon that add up to 1, noise of the scales

    2k h / (q eps) for counts, 4k h / (q eps) for degrees and for differences

makes the whole sequence of nodes eps-differentially private, whatever its length. (Nothing is had for free here: in
*one* table a comparison that comes and one that goes leave the count as it is, but not when they are in two steps.)

Proof for data that arrive adaptively. Let an adversary choose each x_t, in both streams, after seeing w_1 ... w_(t-1).
Given those, the noise of w_t is fresh, so the ratio of the two conditional probabilities is at most exp of the sum over
coordinates of |change of the node|/scale. The ratios multiply, and on every path the exponents add up to at most eps by
the count above, because the bound on one voter's comparisons holds on every path.

**What is kept between steps.** An open block is a sum that must be kept until it is complete. It *starts* with noise of
its scale and gets fresh noise once more when it is released (pan-privacy, Dwork et al. 2010). So what is at rest after
step t is nodes and one noisy sum, and again each comparison is in at most h of them. Whoever takes a copy of it once,
and sees all nodes before and after, sees of each comparison either the noisy sum that it was in (the block's node is
that sum plus numbers drawn independently of it) or a fresh node: the same exponents, the same eps. The price is twice
the variance on blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.checks import whole
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import discrete_laplace
from rankdp.types import Floats, Longs

SHARES = {"count": Fraction(1, 25), "degrees": Fraction(1, 5), "differences": Fraction(19, 25)}
"""q: what of epsilon each kind of number gets."""
_PER_COMPARISON = {"count": 1, "degrees": 2, "differences": 2}
MOST_STEPS = 10**6
_LARGEST_SCALE = 1 << 48  # so that a million nodes of practical probability add up in 64 bits


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """How the totals of a stream are released; all of it is public.

    Parameters
    ----------
    protection
        What is protected; ``moved`` is k.
    epsilon
        For the whole stream.
    steps
        How many steps the stream has at most, None for any number.
    block
        m, 1 for no blocks.
    """

    protection: Protection
    epsilon: Fraction
    steps: int | None
    block: int = 1

    @classmethod
    def of(cls, protection: Protection, epsilon: Real, steps: int | None) -> RunningTotals:
        """The blocks of the least mean deviation over all steps: a choice by public numbers."""
        exact = positive(epsilon)
        if cls(protection, exact, steps, 2).scale("count") > _LARGEST_SCALE:
            raise InputError("epsilon is too small for numbers of 64 bits, got ", str(epsilon))
        if steps is None:
            return cls(protection, exact, None)
        near = math.isqrt(2 * whole("steps", steps, 1, MOST_STEPS))
        choices = (cls(protection, exact, steps, block) for block in (1, *range(max(near - 2, 2), near + 3)))
        return min(choices, key=cls.mean_deviation)

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP of all nodes together."""
        return Guarantee(self.protection.protects, self.epsilon, local=False)

    @property
    def levels(self) -> int:
        """h: in how many nodes a comparison can be."""
        return 1 if self.block == 1 else 2

    def scale(self, kind: str) -> Fraction:
        """Of the noise on a node's "count", "degrees" or "differences"."""
        return 2 * self.protection.moved * _PER_COMPARISON[kind] * self.levels / (SHARES[kind] * self.epsilon)

    def closes(self, step: int) -> bool:
        """Whether the node of a step (the first is 1) is that of a whole block."""
        return self.block > 1 and step % self.block == 0

    def nodes(self, step: int) -> list[int]:
        """The steps whose nodes add up to the total after ``step``."""
        last = step - step % self.block if self.block > 1 else 0
        return [*range(self.block, last + 1, self.block), *range(last + 1, step + 1)] if last else [*range(1, step + 1)]

    def draws(self, step: int, since: int = 1) -> int:
        """How many draws of noise are in the total after ``step``, for an item that is there from step ``since`` on."""
        return sum(2 if self.closes(node) else 1 for node in self.nodes(step) if node >= since)

    def mean_deviation(self) -> float:
        """The standard deviation of the noise on a total difference, its mean over all steps of a limited stream."""
        assert self.steps is not None
        steps = np.arange(1, self.steps + 1)
        draws = steps if self.block == 1 else steps % self.block + 2 * (steps // self.block)
        return float(np.sqrt(draws).mean()) * laplace_deviation(self.scale("differences"))

    def noise(self, items: int, bits: Bits) -> Longs:
        """One draw for a node: of the count, then of the difference and the degree of each item in turn."""
        count = discrete_laplace(self.scale("count"), 1, bits)
        return np.concatenate([count, self.noise_of_items(items, bits)])

    def noise_of_items(self, items: int, bits: Bits) -> Longs:
        """The same for items alone, such as join while a block is open."""
        kinds = ("differences", "degrees")
        return np.column_stack([discrete_laplace(self.scale(kind), items, bits) for kind in kinds]).ravel()

    def step(self, number: int, added: Longs, open_block: Longs, bits: Bits) -> tuple[Longs, Longs]:
        """The node of a step, and the sum of the open block after it (empty without blocks).

        Parameters
        ----------
        number
            Of the step, from 1 on.
        added
            x_t, as `counted` arranges it.
        open_block
            The noisy sum of the open block, which began with `noise`, for all items of ``added``.
        bits
            Where the noise comes from.
        """
        items = len(added) // 2
        if self.block > 1:
            open_block = open_block + added
        if not self.closes(number):
            return added + self.noise(items, bits), open_block
        return open_block + self.noise(items, bits), self.noise(items, bits)


def counted(counts: PairCounts) -> Longs:
    """x_t: the number of comparisons, then the difference and the degree of each item in turn."""
    won, lost = counts.records()
    return np.concatenate([[counts.halves.sum() // 2], np.column_stack([won - lost, won + lost]).ravel() // 2])


def simulated_sums(scale: Fraction, draws: Longs, columns: int, random: np.random.Generator) -> Floats:
    """Sums of so many draws of Laplace noise, one row for each entry of ``draws``, for intervals.

    A sum of k Laplace variables is the difference of two gamma variables of shape k.
    """
    shape, size = np.maximum(draws, 1e-9)[:, None], (len(draws), columns)
    return np.asarray(float(scale) * (random.gamma(shape, size=size) - random.gamma(shape, size=size)))


def laplace_deviation(scale: Fraction) -> float:
    """The standard deviation of discrete Laplace noise: sqrt(2r)/(1 - r) with r = exp(-1/scale)."""
    r = math.exp(-1 / scale)
    return math.sqrt(2 * r) / (1 - r)
