"""The page of released scores, which no other command shows: each noisy score, and how far noise may have moved it."""

from __future__ import annotations

from typing import Any

from rankdp.planning.situation import HALF_WIDTH, Request
from rankdp.privacy.exact import positive
from rankdp.privacy.release import Release
from rankdp.report.document import Report
from rankdp.report.plots import intervals_figure
from rankdp.report.results import ResultRow, ResultTable
from rankdp_web.studio_draft import Draft

LEVEL = 0.95


def scores_report(release: Release[Any], draft: Draft) -> Report:
    """The report of noisy scores, the highest first."""
    width = draft.vector.accuracy(draft.option, HALF_WIDTH, float(positive(draft.epsilon)), Request(1, LEVEL))
    ordered = sorted(((str(name), score) for name, score in release.value.items()), key=lambda pair: -pair[1])
    records = [{"name": name, "score": score, "low": score - width, "high": score + width} for name, score in ordered]
    rows = [ResultRow(name=one["name"], estimate=one["score"], low=one["low"], high=one["high"]) for one in records]
    results = ResultTable(rows=rows, measure="noisy score", level=LEVEL, subject="name")
    return Report(
        title=draft.heading,
        records=records,
        facts=lambda: {"scores": records, "level": LEVEL},
        headline=f"{ordered[0][0]} has the highest of {len(ordered):,} noisy scores; noise moves a score by up to "
        f"±{width:.3g}.",
        results=results,
        sure=[f"An interval holds the true score in {LEVEL:.0%} of such releases."],
        figure=lambda: intervals_figure([(draft.heading, results)]),
        release=release,
    )
