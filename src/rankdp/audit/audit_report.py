"""Several audits of one thing, and their report.

A dot stands for everything that was shown about epsilon, a line for what is claimed: a dot beyond the line is a
violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from rankdp.audit.enumeration import MOST_ITEMS, audit_exact, claim_of
from rankdp.audit.findings import Audit, ExactAudit, StatisticalAudit, show
from rankdp.audit.independence import audit_independence
from rankdp.audit.statistical import audit_samples, ranking_neighbours, ranking_sampler
from rankdp.errors import InputError
from rankdp.mechanisms.registry import Protect
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.report.document import Report
from rankdp.report.plots import intervals_figure
from rankdp.report.results import ResultRow, ResultTable

if TYPE_CHECKING:
    pass

_EVENT = ("input", "its neighbour", "draws of the input", "of its neighbour")


@dataclass(frozen=True)
class AuditReport:
    """Audits of one thing, and whether it passed all of them.

    Parameters
    ----------
    subject
        What was audited, in words.
    claimed
        The claimed epsilon.
    audits
        The audits that were made.
    """

    subject: str
    claimed: Fraction
    audits: tuple[Audit, ...]

    @property
    def holds(self) -> bool:
        """Whether no audit found a violation."""
        return all(audit.holds for audit in self.audits)

    def explain(self) -> str:
        """A paragraph for each audit."""
        return "\n".join(audit.explain() for audit in self.audits)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "subject": self.subject,
            "claimed_epsilon": str(self.claimed),
            "holds": self.holds,
            "audits": [audit.to_dict() for audit in self.audits],
        }

    def report(self) -> Report:
        """For readers: the verdict, a dot for everything that was shown about epsilon, and the line of the claim."""
        bars, results = self.bars(), self._results()
        said = "no test found more than its claim of" if self.holds else "breaks its claim of"
        return Report(
            title="Audit: no violation found" if self.holds else "Audit: violation",
            records=[
                {"shown_by": shown_by, "epsilon_at_least": bound, "claimed_epsilon": self.claimed}
                for shown_by, bound in bars
            ],
            columns=["shown_by", "epsilon_at_least", "claimed_epsilon"],
            facts=self.to_dict,
            headline=f"{self.subject}: {said} epsilon {show(self.claimed)}.",
            results=results if results.rows else None,
            words=[audit.explain() for audit in self.audits if audit.holds],
            warnings=[audit.explain() for audit in self.audits if not audit.holds],
            sure=["A lower bound that stays below the claim is no proof of the claim: it says that nothing was found."],
            figure=(lambda: intervals_figure([(self.subject, results)])) if bars else None,
            failed=not self.holds,
        )

    def _results(self) -> ResultTable:
        rows = []
        for audit in self.audits:
            if isinstance(audit, ExactAudit) and audit.delta_low is None:
                rows.append(ResultRow(name="exact", estimate=float(audit.epsilon_low), cells=[""] * len(_EVENT)))
            elif isinstance(audit, StatisticalAudit):
                for event in audit.events:
                    hits = [f"{hit:,} of {drawn:,}" for hit, drawn in zip(event.hits, event.draws, strict=True)]
                    bound = max(0.0, event.epsilon_low)
                    rows.append(ResultRow(name=event.event, estimate=bound, cells=[*event.inputs, *hits]))
        return ResultTable(
            rows=rows, measure="epsilon at least", subject="event", heads=_EVENT, line=float(self.claimed)
        )

    def bars(self) -> list[tuple[str, float]]:
        """What was shown about epsilon: the words and the number."""
        bars: list[tuple[str, float]] = []
        for audit in self.audits:
            if isinstance(audit, ExactAudit) and audit.delta_low is None:
                bars.append(("exact", float(audit.epsilon_low)))
            elif isinstance(audit, StatisticalAudit):
                bars += [(event.event, max(0.0, event.epsilon_low)) for event in audit.events]
        return bars


def audit_mechanism(
    mechanism: Any,
    *,
    exact: bool | None = None,
    draws: int = 100_000,
    claimed_epsilon: Real | None = None,
    protect: Protect = "position",
    confidence: float = 0.99,
    bits: Bits | None = None,
) -> AuditReport:
    """Everything there is for a ranking mechanism: exact where it is short enough, statistical, independence.

    Parameters
    ----------
    mechanism
        What is audited.
    exact
        True for the exact audit or a refusal, False for no exact audit, None for one where it is available.
    draws
        Total draws for the statistical audit; 0 skips it and the check of independence.
    claimed_epsilon
        The epsilon to test; the mechanism's own if not given.
    protect
        As in ``audit_exact``.
    confidence
        As in ``audit_samples``.
    bits
        Where randomness comes from; seeded bits make the audit repeatable.
    """
    items = getattr(mechanism, "items", None)
    if not isinstance(items, int):
        raise InputError(f"mechanism must be one for rankings, with items and sample, got {mechanism!r}")
    claimed = claim_of(mechanism, claimed_epsilon, protect)
    audits: list[Audit] = []
    if exact or (exact is None and items <= MOST_ITEMS):
        audits.append(audit_exact(mechanism, claimed_epsilon=claimed, protect=protect, bits=bits))
    if draws:
        sampler, pairs = ranking_sampler(mechanism, bits), ranking_neighbours(range(items), protect)
        claim: dict[str, Any] = {"claimed_epsilon": claimed, "confidence": confidence}
        audits.append(audit_samples(sampler, pairs, draws=draws, name=repr(mechanism), **claim))
        audits.append(audit_independence(sampler, *pairs[0], name=repr(mechanism)))
    if not audits:
        raise InputError(f"draws must be above 0 where there is no exact audit, got {draws}")
    return AuditReport(repr(mechanism), claimed, tuple(audits))


def write_audit(report: AuditReport, path: str | PathLike[str]) -> None:
    """Write the report in the format that the ending says.

    Parameters
    ----------
    report
        What ``audit_mechanism`` returned.
    path
        A file that ends with .csv, .json, .html, .png, .svg or .pdf.
    """
    report.report().write(path)
