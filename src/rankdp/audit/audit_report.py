"""One report of several audits: in words, as data, as a picture and as a page.

The picture has a bar for everything that was shown about epsilon, and a line at what is claimed: a bar that crosses the
line is a violation.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from rankdp.audit.enumeration import ExactAudit, audit_exact, claim_of
from rankdp.audit.independence import IndependenceAudit, audit_independence
from rankdp.audit.laws import MOST_ITEMS
from rankdp.audit.rationals import show
from rankdp.audit.statistical import StatisticalAudit, audit_samples, ranking_neighbours, ranking_sampler
from rankdp.data.atomic import known_ending, write_whole
from rankdp.errors import InputError
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real
from rankdp.report import page as pages
from rankdp.report.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Audit: TypeAlias = ExactAudit | StatisticalAudit | IndependenceAudit

_FORMATS = (".png", ".html", ".json")
_KEPT, _BROKEN = "#0072B2", "#D55E00"


@dataclass(frozen=True)
class AuditReport:
    """Audits of one thing, and whether it passed all of them."""

    subject: str
    claimed: Fraction
    audits: tuple[Audit, ...]

    @property
    def holds(self) -> bool:
        """Whether no audit found a violation."""
        return all(one.holds for one in self.audits)

    def explain(self) -> str:
        """A paragraph for each audit."""
        return "\n".join(one.explain() for one in self.audits)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "subject": self.subject,
            "claimed_epsilon": str(self.claimed),
            "holds": self.holds,
            "audits": [one.to_dict() for one in self.audits],
        }

    def bars(self) -> list[tuple[str, float]]:
        """What was shown about epsilon: the words and the number."""
        found: list[tuple[str, float]] = []
        for one in self.audits:
            if isinstance(one, ExactAudit) and one.delta_low is None:
                found.append(("exact", float(one.epsilon_low)))
            elif isinstance(one, StatisticalAudit):
                found += [(event.event, max(0.0, event.epsilon_low)) for event in one.events]
        return found


def audit_mechanism(
    mechanism: Any,
    *,
    exact: bool | None = None,
    draws: int = 100_000,
    claimed_epsilon: Real | None = None,
    confidence: float = 0.99,
    bits: Bits | None = None,
) -> AuditReport:
    """Everything there is for a ranking mechanism: exact where it is short enough, statistical, independence.

    ``exact`` asks for the exact audit (True: or a refusal; None: where it can be had), ``draws`` is for the statistical
    one and may be 0 to leave both that and the check of independence out.
    """
    items = getattr(mechanism, "items", None)
    if not isinstance(items, int):
        raise InputError(f"mechanism must be one for rankings, with items and sample, got {mechanism!r}")
    claimed = claim_of(mechanism, claimed_epsilon)
    audits: list[Audit] = []
    if exact or (exact is None and items <= MOST_ITEMS):
        audits.append(audit_exact(mechanism, claimed_epsilon=claimed, bits=bits))
    if draws:
        sampler, pairs = ranking_sampler(mechanism, bits), ranking_neighbours(range(items))
        audits.append(
            audit_samples(
                sampler, pairs, draws=draws, claimed_epsilon=claimed, confidence=confidence, name=repr(mechanism)
            )
        )
        audits.append(audit_independence(sampler, *pairs[0], name=repr(mechanism)))
    if not audits:
        raise InputError(f"draws must be above 0 where there is no exact audit, got {draws}")
    return AuditReport(repr(mechanism), claimed, tuple(audits))


def mutant_table(rows: Sequence[tuple[str, dict[str, bool]]]) -> str:
    """Markdown: for each mutant which check caught it; the checks are the columns, in the order of the first row."""
    checks = list(dict.fromkeys(check for _, caught in rows for check in caught))
    lines = [f"| mutant | {' | '.join(checks)} |", f"|---|{'---|' * len(checks)}"]
    for name, caught in rows:
        cells = ({True: "caught", False: "–", None: ""}[caught.get(check)] for check in checks)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def check_ending(path: str | PathLike[str]) -> str:
    """The ending of a report's file."""
    return known_ending(path, _FORMATS)


def write_audit(report: AuditReport, path: str | PathLike[str]) -> None:
    """Write the report in the format that the ending says."""
    ending = check_ending(path)
    if ending == ".png":
        write_whole(path, picture(report, "png"))
    elif ending == ".html":
        write_whole(path, to_html(report).encode())
    else:
        write_whole(path, (json.dumps(report.to_dict(), indent=2) + "\n").encode())


def to_html(report: AuditReport) -> str:
    """One page with the verdicts, the picture and the events."""
    sections = [pages.paragraph(one.explain(), "" if one.holds else "warning") for one in report.audits]
    if report.bars():
        drawing = picture(report, "svg").decode()
        sections.append(drawing[drawing.index("<svg") :])
    events = [event for one in report.audits if isinstance(one, StatisticalAudit) for event in one.events]
    if events:
        rows = [
            [
                event.event,
                *event.inputs,
                *(f"{hits:,} of {draws:,}" for hits, draws in zip(event.hits, event.draws, strict=True)),
                show(max(0.0, event.epsilon_low)),
            ]
            for event in events
        ]
        heads = ["event", "input", "its neighbour", "draws of the input", "of its neighbour", "epsilon at least"]
        sections.append(pages.table(heads, rows, texts=3))
    verdict = "no violation found" if report.holds else "violation"
    return pages.page(
        f"Audit: {verdict}",
        pages.paragraph(f"{report.subject}, claimed epsilon {show(report.claimed)}"),
        *sections,
        footer=["A lower bound that stays below the claim is no proof of the claim: it says that nothing was found."],
    )


def draw(report: AuditReport, axes: Axes) -> None:
    """Bars against the claim."""
    bars = report.bars()[::-1]
    claimed = float(report.claimed)
    finite = [value for _, value in bars if math.isfinite(value)]
    longest = 1.15 * max([claimed, *finite]) or 1.0
    lengths = [min(value, longest) for _, value in bars]
    colours = [_BROKEN if value > claimed * (1 + 1e-12) else _KEPT for _, value in bars]
    axes.barh(range(len(bars)), lengths, color=colours, height=0.6)
    axes.axvline(claimed, color="black", linewidth=1)
    axes.annotate("claimed", (claimed, len(bars) - 0.55), xytext=(4, 0), textcoords="offset points", fontsize=8)
    axes.set_yticks(
        range(len(bars)), [words if len(words) < 48 else f"{words[:46]} …" for words, _ in bars], fontsize=8
    )
    axes.set(xlabel="epsilon is at least", xlim=(0, longest))


def picture(report: AuditReport, kind: str) -> bytes:
    """The bars as PNG or SVG."""
    figure, (axes,) = new_figure(1, width=8, height=1.4 + 0.45 * max(1, len(report.bars())))
    draw(report, axes)
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=150)
    return out.getvalue()
