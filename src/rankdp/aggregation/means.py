"""A number from many rows: the weighted mean, its standard error, its bias, and what of it is noise.

With w(u) the weight of voter u's group and h(u) what their row says,

    mean = sum of w(u) h(u) / sum of w(u),    se^2 = sum of w(u)^2 (h(u) - mean)^2 / (sum of w(u))^2 · n/(n-1),

n = (sum of w)^2 / sum of w^2 being the effective number of voters. Few voters may agree by chance, so with fewer than
30 the standard error is at least what the public law says of voters who order the items at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankdp.aggregation.respondents import quantile
from rankdp.types import Floats

_FEW = 30  # voters
_FAINT = 0.5  # of the squared spread of true values: an expected squared error above it is called noise


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Numbers with standard errors, beside what counting the synthetic rankings would say."""

    values: Floats
    standard_errors: Floats
    naive: Floats
    bias: Floats
    """The largest bias that each number can have, whatever the voters prefer; 0 up to rounding if unbiased."""
    unbiased: bool
    """Whether the noise is undone completely; else as far as the number of voters is worth."""
    error: float
    """The root mean squared error that the noise and its undoing are expected to leave."""
    spread: float
    """How far true values are expected to lie from their middle, as a root mean square."""
    limits: tuple[float, float]
    """What values are possible at all; an unbiased one may leave them."""

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of normal intervals, made longer by the bias and cut off at what is possible.

        Parameters
        ----------
        level
            The confidence of each interval.
        """
        reach = quantile(level) * self.standard_errors + self.bias
        low, high = np.clip(self.values - reach, *self.limits), np.clip(self.values + reach, *self.limits)
        return low, high

    @property
    def faint(self) -> bool:
        """Whether more than half of the differences in these numbers is expected to be noise."""
        return self.error > math.sqrt(_FAINT) * self.spread


class Part(NamedTuple):
    """One group: its length and, cell by cell, its weight, its voters, the sum of h and the sum of its squares."""

    length: int
    weight: Floats
    voters: Floats
    sums: Floats
    squares: Floats
    expected: Floats
    """The mean square of h, less its middle, for voters who order the items at random."""


def weighted(parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """The weighted mean of h, less its middle, and the standard error, cell by cell; NaN without a voter."""
    whole = np.zeros(parts[0].sums.shape)
    mean, total, squared, spread, public = (whole.copy() for _ in range(5))
    present = {part.length: whole.copy() for part in parts}
    weighed = {part.length: whole.copy() for part in parts}
    for part in parts:
        present[part.length] += part.voters
        weighed[part.length] += part.weight * part.voters
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = [
            np.where(part.voters > 0, part.weight * present[part.length] / weighed[part.length], 0.0) for part in parts
        ]
        for weight, part in zip(weights, parts, strict=True):
            mean += weight * part.sums
            total += weight * part.voters
            squared += weight**2 * part.voters
            public += weight**2 * part.voters * part.expected
        mean /= total
        for weight, part in zip(weights, parts, strict=True):
            spread += weight**2 * (part.squares - 2 * mean * part.sums + part.voters * mean**2)
        error = np.nan_to_num(np.maximum(spread, 0) / (total**2 - squared), nan=0.0, posinf=0.0)
        error = np.sqrt(np.where(total**2 < _FEW * squared, np.maximum(error, public / total**2), error))
    return mean, np.where(total > 0, error, np.nan)
