"""A number from many rows: the weighted mean, its standard error, its bias, and how much of it is noise.

With w(u) the weight of voter u's group and h(u) what their row says,

    mean = sum of w(u) h(u) / sum of w(u),    se^2 = sum of w(u)^2 (h(u) - mean)^2 / (sum of w(u))^2 · n/(n-1),

n = (sum of w)^2 / sum of w^2 being the effective number of voters. Few voters may agree by chance, so with fewer than
30 the standard error is at least what the public law says of voters who order the items at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankdp.checks import share
from rankdp.inference.draws import reach
from rankdp.theory.debiasing import Debiasing
from rankdp.types import Flags, Floats, Ints, Longs

_FEW = 30  # voters
_TOLD_APART = 8  # different numbers of voters; more of them count as the nearest power of 2


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Numbers with standard errors, next to what counting the synthetic rankings would say."""

    values: Floats
    standard_errors: Floats
    naive: Floats
    bias: Floats
    """The largest bias that each number can have, whatever the voters prefer; 0 up to rounding if unbiased."""
    unbiased: bool
    """Whether the numbers are debiased completely."""
    error: float
    """The root mean squared error expected after debiasing."""
    spread: float
    """How far true values are expected to lie from their middle, as a root mean square."""
    limits: tuple[float, float]
    """What values are possible at all; an unbiased one may leave them."""

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The ends of the intervals of normal draws, each made longer by the bias and cut off at what is possible.

        Parameters
        ----------
        level
            The confidence of each interval.
        """
        around = reach(share("level", level)) * self.standard_errors + self.bias
        low, high = np.clip(self.values - around, *self.limits), np.clip(self.values + around, *self.limits)
        return low, high


class Part(NamedTuple):
    """One group of voters: what their rows say, and its sums by cell (an item, a pair, an item and a position)."""

    length: int
    total: int
    """Its voters."""
    group: int
    """Its number in the choices."""
    choices: Sequence[Debiasing]
    """What its rows say, by level of evidence."""
    times: float
    """What h is multiplied by."""
    voters: Floats
    sums: Floats
    """For h, minus its middle."""
    squares: Floats

    def by_level(self, levels: Ints) -> tuple[Floats, Floats]:
        """By cell: the weight, and the mean square of h for voters who order the items at random."""
        weights = np.array([choice.weights[self.group] for choice in self.choices])
        squares = np.array([self.times**2 * float((choice.scores[self.group] ** 2).mean()) for choice in self.choices])
        return weights[levels], squares[levels]


def evidence(voters: Longs) -> tuple[list[float], Ints]:
    """The numbers of voters that are told apart, the levels of evidence; and which of them each cell has."""
    seen = np.unique(voters[voters > 0])
    if len(seen) <= _TOLD_APART:
        return seen.astype(float).tolist(), np.searchsorted(seen, voters).clip(0, len(seen) - 1).astype(np.int32)
    powers = np.rint(np.log2(np.maximum(voters, 1))).astype(np.int32)
    return [2.0**power for power in range(int(powers.max()) + 1)], powers


def estimate(
    parts: Sequence[Part], naive: Floats, levels: Ints, middle: float, limits: tuple[float, float]
) -> Estimate:
    """The weighted means over all groups, with their errors, biases, and what is expected of them."""
    values, errors, known = weighted(parts, levels)
    cells = np.bincount(np.broadcast_to(levels, known.shape)[known], minlength=len(parts[0].choices))
    total, squares = sum(part.total for part in parts), np.zeros(2)
    for part in parts:
        both = np.array([[choice.error, choice.spread] for choice in part.choices])
        squares += part.total / total * part.times**2 * (cells @ both**2) / cells.sum()
    worst = np.max([[abs(part.times) * choice.bias for choice in part.choices] for part in parts], axis=0)
    unbiased = all(part.choices[level].unbiased for part in parts for level in np.flatnonzero(cells).tolist())
    values = middle + values if unbiased else np.clip(middle + values, *limits)
    bias = np.broadcast_to(worst[levels], values.shape).copy()
    if values.shape[1] == 1:
        values, errors, naive, bias = values[:, 0], errors[:, 0], naive[:, 0], bias[:, 0]
    error, spread = np.sqrt(squares).tolist()
    return Estimate(values, errors, naive, bias, unbiased, error, spread, limits)


def weighted(parts: Sequence[Part], levels: Ints) -> tuple[Floats, Floats, Flags]:
    """By cell: the weighted mean of h, minus its middle, the standard error, and whether there is a voter."""
    whole = np.zeros(parts[0].sums.shape)
    mean, total, squared, spread, public = (whole.copy() for _ in range(5))
    told = [part.by_level(levels) for part in parts]
    present = {part.length: whole.copy() for part in parts}
    weighed = {part.length: whole.copy() for part in parts}
    for part, (weight, _) in zip(parts, told, strict=True):
        present[part.length] += part.voters
        weighed[part.length] += weight * part.voters
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = [
            np.where(part.voters > 0, weight * present[part.length] / weighed[part.length], 0.0)
            for part, (weight, _) in zip(parts, told, strict=True)
        ]
        for weight, part, (_, expected) in zip(weights, parts, told, strict=True):
            mean += weight * part.sums
            total += weight * part.voters
            squared += weight**2 * part.voters
            public += weight**2 * part.voters * expected
        mean /= total
        for weight, part in zip(weights, parts, strict=True):
            spread += weight**2 * (part.squares - 2 * mean * part.sums + part.voters * mean**2)
        error = np.nan_to_num(np.maximum(spread, 0) / (total**2 - squared), nan=0.0, posinf=0.0)
        error = np.sqrt(np.where(total**2 < _FEW * squared, np.maximum(error, public / total**2), error))
    return mean, np.where(total > 0, error, np.nan), total > 0
