"""What became of one specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankdp_papers.experiment import Row
from rankdp_papers.specification import Specification
from rankdp_papers.verdicts import Verdict


@dataclass(frozen=True)
class Reproduced:
    """One figure, table or erratum: its rows, its pictures by kind, its verdicts; or why it is missing."""

    specification: Specification
    rows: Sequence[Row]
    seconds: float
    missing: str | None
    verdicts: Sequence[Verdict]
    pictures: Mapping[str, bytes]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the table."""
        one = self.specification
        claims = [
            {
                "text": verdict.claim.text,
                "by": verdict.claim.by,
                "where": verdict.claim.where,
                "verdict": verdict.answer,
                "what": verdict.what,
                "number": verdict.number,
                "standard_error": verdict.error,
                "mean": verdict.mean,
                "at": verdict.place,
            }
            for verdict in self.verdicts
        ]
        head = {"name": one.name, "title": one.title, "source": one.source}
        return {**head, "core_seconds": self.seconds, "missing": self.missing, "claims": claims}

    def summary(self) -> str:
        """One line: what became of the claims."""
        if self.missing:
            return f"{self.specification.name}: left out, {self.missing}"
        counts = Counter(verdict.answer for verdict in self.verdicts)
        said = ", ".join(f"{answer} {count}" for answer, count in counts.items())
        return f"{self.specification.name}: {said} ({self.seconds:.0f} core-seconds)"
