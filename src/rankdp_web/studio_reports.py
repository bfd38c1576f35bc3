"""The page of released scores, which no other command shows: each noisy score, and how far noise may have moved it."""

from __future__ import annotations

from typing import Any

from rankdp.planning.situation import HALF_WIDTH, Request
from rankdp.privacy.exact import positive
from rankdp.privacy.release import Release
from rankdp.report.document import Report, Table
from rankdp.report.plots import Intervals
from rankdp_web.studio_work import Work

LEVEL = 0.95


def scores_report(release: Release[Any], work: Work) -> Report:
    """The report of noisy scores, the highest first."""
    width = work.vector.accuracy(work.option, HALF_WIDTH, float(positive(work.epsilon)), Request(1, LEVEL))
    ordered = sorted(((str(name), score) for name, score in release.value.items()), key=lambda pair: -pair[1])
    names, scores = [name for name, _ in ordered], [score for _, score in ordered]
    records = [{"name": name, "score": score, "low": score - width, "high": score + width} for name, score in ordered]
    plot = Intervals(names, scores, [one["low"] for one in records], [one["high"] for one in records], "noisy score")
    rows = [
        [str(place), one["name"], f"{one['score']:.3g}", f"{one['low']:.3g} … {one['high']:.3g}"]
        for place, one in enumerate(records, 1)
    ]
    return Report(
        title=work.heading,
        records=records,
        facts=lambda: {"scores": records, "level": LEVEL},
        tables=[Table(["place", "name", "noisy score", f"{LEVEL:.0%} interval"], rows, texts=2)],
        words=[
            f"An interval holds the true score in {LEVEL:.0%} of such releases: noise moves a score by up to "
            f"±{width:.3g}."
        ],
        figure=lambda: plot.figure(work.heading),
        drawing=plot.svg(),
        release=release,
    )
