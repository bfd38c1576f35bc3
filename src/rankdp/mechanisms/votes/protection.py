"""What a release from comparisons protects: one comparison, one outcome, or one voter.

Data sets are neighbours when

- *comparison*: one comparison is replaced by another, of any two items with any outcome (Cai, Section 2);
- *outcome*: one comparison's outcome is changed; who was compared with whom is public;
- *voter*: all comparisons of one voter are replaced by any others, or by none. Their weights add up to at most c
  (``data.votes``), so counts move as if c comparisons were removed and c added.

A table may hold rows that are not counted (``drops``): a self-comparison, an unknown item, a missing outcome that the
caller chose to leave out. Then a comparison may also be replaced by such a row, or such a row by a comparison. At most
one comparison is removed and at most one added, as before, but the number of comparisons differs between neighbours: it
is secret, and only a noisy count of sensitivity 1 is used. If outcomes are protected, whether a row is left out may
depend on its items (the design is public) but must not depend on its outcome.

``noisy_counts`` has the resulting sensitivities.
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
    """A unit of protection. Between neighbours ``moved`` comparisons can be removed, and as many added.

    For voters that is the bound c on the sum of their weights.
    """

    unit: str
    moved: int = 1
    drops: bool = False
    """Whether rows of the table may be left out, so that neighbours may have different numbers of comparisons."""
    steps: int = 1
    """How many steps a comparison counts, if votes have weights (``data.votes``)."""

    @classmethod
    def of(cls, protect: str, max_per_voter: int | None) -> Protection:
        """The unit called ``protect``; for voters with the number of comparisons of each that count fully."""
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
                ", the number of comparisons of each voter that count fully",
            )
        return cls(protect, whole("max_per_voter", max_per_voter, 1), steps=STEPS)

    def check(self, counts: PairCounts) -> None:
        """Refuse counts in steps other than the noise's, which would then be too small or too large.

        Parameters
        ----------
        counts
            The counts that noise is added to.
        """
        if counts.steps != self.steps:
            raise InputError(
                f"counts must have {self.steps:,} steps for each comparison, as the noise does, got {counts.steps:,}: "
                "use Protection.of, and votes.bound(c) for voters"
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
