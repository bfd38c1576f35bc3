"""Counting privatized rankings on Spark: every task counts its own rows as ``Tallies``, and the driver adds them up.

What comes to the driver is one table of items and positions for every task and group, and for win rates one of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rankdp.aggregation.origin import Origin
from rankdp.aggregation.tallies import Kind, Tallies, Tally
from rankdp.data.cells import Known, natural
from rankdp.data.rankings import Rankings
from rankdp.data.spark import SparkRankings
from rankdp.types import Floats, Ints


class SparkTallies(Tallies):
    """All groups of the rankings in a Spark DataFrame; ``origin`` says what made them."""

    def __init__(self, origin: Origin, rankings: SparkRankings) -> None:
        self._rankings = rankings
        parts = rankings.each_task(partial(_counted, origin))
        names = sorted({name for part in parts for name in part.items}, key=natural)
        groups: dict[Kind, Tally] = {}
        for part in parts:
            # items that the task did not meet find one of the rows of zeros that `reorder` adds
            order = [part._places.get(name, len(part.items)) for name in names]
            for kind, tally in part._groups.items():
                tally.reorder(order)
                if kind in groups:
                    groups[kind].voters += tally.voters
                    groups[kind].landed += tally.landed
                else:
                    groups[kind] = tally
        self._origins, self._tied = [origin], False
        self.single = sum(part.single for part in parts)
        self._settle(groups, names)

    def pair_sums(self, scores: Sequence[Floats], levels: Ints) -> list[Floats]:
        """As in ``Tallies``, summed by the tasks."""
        there = Tallies.__new__(Tallies)
        vars(there).update({name: value for name, value in vars(self).items() if name != "_rankings"})
        parts = self._rankings.each_task(partial(_paired, there, scores, levels), self.items)
        return [np.sum(cells, axis=0) for cells in zip(*parts, strict=True)]


def _counted(origin: Origin, batches: Iterator[Rankings], known: Known) -> Tallies:
    counted = Tallies([origin], lambda: ((batch, None) for batch in batches))
    del counted._batches
    return counted


def _paired(
    there: Tallies, scores: Sequence[Floats], levels: Ints, batches: Iterator[Rankings], known: Known
) -> list[Floats]:
    there._batches = lambda: ((batch, None) for batch in batches)
    return there.pair_sums(scores, levels)
