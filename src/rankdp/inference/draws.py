"""Draws of the true values, given what was released: every statement about them is counted here.

The estimate is the mean of the draws, the interval their quantiles; ranks and probabilities are counted in the same
draws. So no two statements contradict each other. Draws come from a public seed: whoever has the release can make them
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from rankdp.types import Floats, Longs

COUNT = 2000
"""Draws, in pairs that lie opposite each other around their centre."""


def generator() -> np.random.Generator:
    """The public source of randomness for draws."""
    return np.random.default_rng(20_230_728)


def opposite(noise: Floats) -> Floats:
    """The rows of ``noise`` and their opposites, so that they add up to nothing."""
    return np.concatenate([noise, -noise])


def reach(level: float) -> float:
    """How many deviations the interval of many normal draws reaches to each side: what plans expect of an interval.

    Parameters
    ----------
    level
        The probability that the interval holds the truth, between 0 and 1.
    """
    return NormalDist().inv_cdf(_ends(level)[1])


@dataclass(frozen=True)
class Draws:
    """Draws of the true values of some items.

    Parameters
    ----------
    values
        One row per draw, one column per item.
    """

    values: Floats

    @property
    def estimate(self) -> Floats:
        """The mean of each item."""
        return np.asarray(self.values.mean(axis=0))

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The ends of each item's interval, which holds the estimate at every level.

        Parameters
        ----------
        level
            The probability that the interval holds the truth.
        """
        low, high = np.quantile(self.values, _ends(level), axis=0)
        return np.minimum(low, self.estimate), np.maximum(high, self.estimate)

    @cached_property
    def ranks(self) -> Longs:
        """The rank of each item in each draw, 1 for the highest; equals are ordered by lot."""
        lots = generator().random(self.values.shape)
        order = np.lexsort((lots, -self.values))
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1)[None, :], axis=1)
        return ranks

    @property
    def places(self) -> Longs:
        """The rank of each item by its estimate."""
        places = np.empty(self.values.shape[1], np.int64)
        places[np.argsort(-self.estimate, kind="stable")] = np.arange(1, len(places) + 1)
        return places

    def rank_range(self, level: float) -> tuple[Longs, Longs]:
        """The best and the worst rank that each item may have; its place lies between them.

        Parameters
        ----------
        level
            The probability that the range holds the true rank.
        """
        low, high = np.quantile(self.ranks, _ends(level), axis=0, method="nearest").astype(np.int64)
        return np.minimum(low, self.places), np.maximum(high, self.places)

    def top(self, k: int) -> Floats:
        """The probability that each item is among the ``k`` best."""
        return np.asarray((self.ranks <= k).mean(axis=0))

    @property
    def best(self) -> Floats:
        """The probability that each item is the best."""
        return self.top(1)

    def beats(self, first: int, second: int) -> float:
        """The probability that the item ``first`` is above the item ``second``."""
        return float((self.ranks[:, first] < self.ranks[:, second]).mean())

    def contenders(self, level: float) -> Longs:
        """The items at the top that cannot be told apart, best first: their ranges of ranks begin at 1.

        Parameters
        ----------
        level
            As in ``rank_range``.
        """
        found = np.flatnonzero(self.rank_range(level)[0] == 1)
        return np.asarray(found[np.argsort(self.places[found])])


def _ends(level: float) -> list[float]:
    tail = (1 - level) / 2
    return [tail, 1 - tail]
