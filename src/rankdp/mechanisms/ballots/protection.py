"""What a release from ballots protects, and how far one ballot moves each count.

Elections are neighbours when

- *ballot*: one ballot is replaced by another; how many there are is public;
- *voter*: one ballot is added or removed; how many there are is secret.

A ballot adds a vector x to a count, as in ``data.ballots``; let X be the set of all such vectors. Neighbours differ by
some x in X (voter) or by x - y with x and y in X (ballot). The table is for "voter"; for "ballot" a norm is at most
twice as large, and its square four times, unless something smaller is stated. m candidates:

=============================  ===================================  ======================
count                          l1                                   squared l2
=============================  ===================================  ======================
votes for the first k          k; ballot: min(2k, m)                the same
a round of a runoff, in votes  1; ballot: 2                         the same
centred Borda                  not used                             m (m^2 - 1)/3
margins' cyclic part, times m  sum over g of (m - g) abs(m - 2g)    m^2 (m - 1)(m - 2)/6
=============================  ===================================  ======================

Votes: entries in [0, 1] with sum at most k, so a difference has m entries of at most 1, and the square of each is at
most its absolute value. Rounds: a ballot's worth in a round is at most 1, as with k = 1 (``ballots.rounds``). Borda:
the sum of (m + 1 - 2j)^2 over the places j; a ballot and its reverse are twice as far apart. Cyclic part
(``ballots.margins``): m - 2g for a pair g places apart, of which there are m - g.

To Borda scores and margins, truncated and tied ballots add averages of what complete ballots add. These lie in the
convex hull, where a norm is largest at a corner, so the same bounds hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankdp.checks import one_of
from rankdp.privacy.guarantee import unit_of


@dataclass(frozen=True, slots=True)
class BallotProtection:
    """A unit of protection of ballots, and every sensitivity for it, in the integers of ``data.ballots``.

    Parameters
    ----------
    unit
        "ballot" or "voter".
    """

    unit: str

    def __post_init__(self) -> None:
        one_of("protect", self.unit, ("ballot", "voter"))

    @property
    def count_public(self) -> bool:
        """Whether all neighbours have the same number of ballots."""
        return self.unit == "ballot"

    @property
    def protects(self) -> str:
        """In words, for the guarantee."""
        return unit_of(self.unit)

    @property
    def moved(self) -> int:
        """How many ballots one change affects: one is added or removed (1), or one is replaced (2)."""
        return 2 if self.unit == "ballot" else 1

    def votes(self, k: int, m: int) -> int:
        """The sensitivity of votes for the first k of m candidates, in whole votes: in l1 and in squared l2."""
        return min(self.moved * k, m)

    def borda_l2_squared(self, m: int) -> int:
        """The squared l2 sensitivity of centred Borda scores."""
        return self.moved**2 * (m * (m * m - 1) // 3)

    def cyclic_l1(self, m: int) -> int:
        """The l1 sensitivity of the cyclic part of margins, times m."""
        return self.moved * sum((m - gap) * abs(m - 2 * gap) for gap in range(1, m))

    def cyclic_l2_squared(self, m: int) -> int:
        """The squared l2 sensitivity of the cyclic part of margins, times m."""
        return self.moved**2 * (m * m * (m - 1) * (m - 2) // 6)
