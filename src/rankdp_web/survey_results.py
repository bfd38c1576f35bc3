"""The results of a survey: the aggregate of the answers that may be shown, made on request.

Which answers may be shown, and why not all of them, is said in ``rankdp_web.survey_database.leaving``.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from dataclasses import dataclass

from rankdp.aggregation.aggregate_report import aggregate_report
from rankdp.aggregation.estimates import aggregate
from rankdp.data.rankings import Rankings
from rankdp.privacy.release import Release
from rankdp.report.document import Report
from rankdp_web.survey_database import BATCH, Survey, SurveyDatabase
from rankdp_web.surveys import collected

LEVEL = 0.95
OPEN = (
    f"The survey is open: results change by {BATCH} answers or more at once and leave out {BATCH} to "
    f"{2 * BATCH - 1} answers, so that no difference between two of them gives a single answer away."
)
_SECONDS = 2.0  # for which the number of answers is believed
_PATIENCE = 10  # results are made again after so many times as long as they took


def results_report(survey: Survey, release: Release[Rankings]) -> Report:
    """The report of an aggregate, with the range of ranks that an item may have."""
    count = len(release.value)
    report = aggregate_report(aggregate(release), level=LEVEL, title=survey.title)
    records = [{**record, "answers": count} for record in report.records]
    facts = report.facts
    return dataclasses.replace(
        report,
        records=records,
        facts=lambda: {**facts(), "survey": survey.id, "answers": count, "items": records},
        words=[OPEN] if survey.open else [],
        sure=[*report.sure, f"{3 * count:,} more answers would make the intervals half as long."],
    )


@dataclass(slots=True)
class _Made:
    survey: Survey
    count: int
    report: Report | None
    believed_until: float


class LiveResults:
    """The newest report of every survey that is being looked at."""

    def __init__(self, database: SurveyDatabase) -> None:
        self._database = database
        self._made: dict[str, _Made] = {}
        self._making = threading.Lock()

    def of(self, survey: Survey) -> tuple[int, Report | None]:
        """How many answers could be shown a moment ago, and their report; None while there are too few."""
        with self._making:
            made = self._made.get(survey.id)
            if made is None or time.monotonic() >= made.believed_until:
                made = self._made[survey.id] = self._look(survey, made)
            return made.count, made.report

    def _look(self, survey: Survey, before: _Made | None) -> _Made:
        count = self._database.count(survey.id, shown=True)
        if before is not None and (count, survey) == (before.count, before.survey):
            return dataclasses.replace(before, believed_until=time.monotonic() + _SECONDS)
        began = time.monotonic()
        report = None
        if count:
            release = collected(self._database, survey)
            report, count = results_report(survey, release), len(release.value)
        took = time.monotonic() - began
        return _Made(survey, count, report, began + took + max(_SECONDS, _PATIENCE * took))
