"""What a release from comparisons protects: one comparison, one outcome, or one voter.

Data sets are neighbours when

- *comparison*: one comparison is replaced by another, of any two items with any outcome (Cai, Section 2);
- *outcome*: one comparison's outcome is changed; who was compared with whom is public;
- *voter*: all comparisons of one voter are replaced by any others (none included). They have weights that add up to at
  most c (``data.votes``), so what is counted moves as if c comparisons left and c came.

A table may hold rows that are not counted (``drops``): a self-comparison, an unknown item, a missing outcome that the
caller chose to leave out. Then a comparison may also be replaced by such a row, or such a row by a comparison. At most
one comparison leaves and at most one comes, as before, but their number is no longer the same for all neighbours: it is
secret, and only a noisy count of sensitivity 1 is used. Where outcomes are protected, whether a row is left out may
depend on its items (the design is public) and must not depend on its outcome.
How far that moves what is counted, ``noisy_counts`` says.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankdp.checks import one_of, whole
from rankdp.data.counts import STEPS, PairCounts
from rankdp.errors import InputError, Setting
from rankdp.privacy.guarantee import unit_of

PROTECT = ("comparison", "outcome", "voter")


@dataclass(frozen=True, slots=True)
class Protection:
    """A unit of protection. ``moved`` is how many comparisons can leave, and how many can come, between neighbours.

    For voters that is the sum of their weights, c.
    """

    unit: str
    moved: int = 1
    drops: bool = False
    """Whether rows of the table may be left out of the count, so that neighbours may count different numbers."""
    steps: int = 1
    """In how many steps a comparison is counted, where votes have weights (``data.votes``)."""

    @classmethod
    def of(cls, protect: str, max_per_voter: int | None) -> Protection:
        """The unit called ``protect``; voters need the number of comparisons that count fully of each."""
        one_of("protect", protect, PROTECT)
        if protect != "voter":
            if max_per_voter is not None:
                raise InputError(
                    Setting("max_per_voter"),
                    " needs ",
                    Setting("protect", "voter"),
                    ", got ",
                    Setting("protect", protect),
                )
            return cls(protect)
        if max_per_voter is None:
            raise InputError(
                "protecting voters needs ",
                Setting("max_per_voter"),
                ", the number of comparisons that count fully of each voter",
            )
        return cls(protect, whole("max_per_voter", max_per_voter, 1), steps=STEPS)

    def check(self, counts: PairCounts) -> None:
        """Refuse counts in other steps than those that the noise is for, which would be too small or too large.

        Parameters
        ----------
        counts
            What noise is to be added to.
        """
        if counts.steps != self.steps:
            raise InputError(
                f"the noise is for comparisons that count {self.steps:,} each, and these counts hold {counts.steps:,} "
                "for each: use Protection.of, and votes.bound(c) for voters"
            )

    @property
    def design_public(self) -> bool:
        """Whether who was compared with whom is public."""
        return self.unit == "outcome"

    @property
    def count_public(self) -> bool:
        """Whether all neighbours have the same number of comparisons."""
        return self.unit == "outcome" or (self.unit == "comparison" and not self.drops)

    @property
    def protects(self) -> str:
        """In words, for the guarantee."""
        return unit_of(self.unit)
