"""Several audits of one thing, and their report.

The picture has a bar for everything that was shown about epsilon, and a line at what is claimed: a bar that crosses the
line is a violation.
"""

from __future__ import annotations

import math
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
from rankdp.report.document import Report, Table
from rankdp.report.plots import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KEPT, _BROKEN = "#0072B2", "#D55E00"


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
        """For readers: the verdicts, the picture and the events."""
        bars = self.bars()
        rows = [
            [
                event.event,
                *event.inputs,
                *(f"{hits:,} of {draws:,}" for hits, draws in zip(event.hits, event.draws, strict=True)),
                show(max(0.0, event.epsilon_low)),
            ]
            for audit in self.audits
            if isinstance(audit, StatisticalAudit)
            for event in audit.events
        ]
        heads = ["event", "input", "its neighbour", "draws of the input", "of its neighbour", "epsilon at least"]
        return Report(
            title="Audit: no violation found" if self.holds else "Audit: violation",
            records=[
                {"shown_by": shown_by, "epsilon_at_least": bound, "claimed_epsilon": self.claimed}
                for shown_by, bound in bars
            ],
            columns=["shown_by", "epsilon_at_least", "claimed_epsilon"],
            facts=self.to_dict,
            tables=[Table(heads, rows, texts=3)] if rows else [],
            words=[
                f"{self.subject}, claimed epsilon {show(self.claimed)}",
                *(audit.explain() for audit in self.audits if audit.holds),
            ],
            warnings=[audit.explain() for audit in self.audits if not audit.holds],
            footer=[
                "A lower bound that stays below the claim is no proof of the claim: it says that nothing was found."
            ],
            figure=drawing(lambda axes: _draw(self, axes), 8, 1.4 + 0.45 * len(bars)) if bars else None,
            failed=not self.holds,
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


def _draw(report: AuditReport, axes: Axes) -> None:
    """Bars against the claim."""
    words, values = zip(*report.bars()[::-1], strict=True)
    claimed, rows = float(report.claimed), range(len(words))
    longest = 1.15 * max(claimed, *(value for value in values if math.isfinite(value)), 0.0) or 1.0
    colours = [_BROKEN if value > claimed * (1 + 1e-12) else _KEPT for value in values]
    axes.barh(rows, [min(value, longest) for value in values], color=colours, height=0.6)
    axes.axvline(claimed, color="black", linewidth=1)
    axes.annotate(
        f"claimed: {show(claimed)}", (claimed, len(rows) - 0.55), xytext=(4, 0), textcoords="offset points", fontsize=8
    )
    axes.set_yticks(rows, [text if len(text) < 48 else f"{text[:46]} …" for text in words], fontsize=8)
    axes.set(xlabel="epsilon is at least", xlim=(0, longest))
