"""The results of a survey: the aggregate of the answers that may be shown, made on request.

``rankdp_web.survey_database.leaving`` decides which answers may be shown, and says why not all of them.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rankdp.aggregation.aggregate_report import aggregate_report, answers_needed
from rankdp.aggregation.estimates import aggregate
from rankdp.data.rankings import Rankings
from rankdp.mechanisms.shuffled import epsilon_outside
from rankdp.privacy.exact import positive
from rankdp.privacy.release import Release
from rankdp.report.document import Report
from rankdp.report.plots import intervals_figure, picture
from rankdp.report.results import ResultRow, ResultTable, listed
from rankdp_web.pages import sentence
from rankdp_web.survey_database import Survey, SurveyDatabase
from rankdp_web.surveys import collected, mechanism_of, promised

LEVEL = 0.95
_SECONDS = 2.0  # for which the number of answers is believed
_NAMED = 4  # names in a headline
_DELTA = 1e-6  # with which the answers of a closed survey hide each other
_HIDDEN = 2  # times less than the epsilon that is promised: from there on, hiding is worth a sentence
_PATIENCE = 10  # results are made again after ten times as long as they took


@dataclass(frozen=True, slots=True)
class SurveyResults:
    """The results of a survey.

    Parameters
    ----------
    survey
        What was asked.
    count
        How many answers they are made of.
    report
        For files and the terminal, in English.
    needed
        About how many answers would tell the first two items apart; None where they are told apart, or never will be.
    bias
        The largest bias that is left in an average place, 0 where there is none.
    outside
        The epsilon of a whole answer for people who see only the results of a closed survey; None where that is more
        than half of what is promised anyway. With earlier results to subtract, only the answers of a batch hide each
        other.
    """

    survey: Survey
    count: int
    report: Report
    needed: int | None
    bias: float
    outside: float | None

    def page(self, language: str) -> dict[str, Any]:
        """What the template ``results_part.html`` shows: the same in a language.

        Parameters
        ----------
        language
            One of ``rankdp_web.pages.all_texts``.
        """
        text = partial(sentence, language)
        table = self._table(text)
        headline = self._headline(table.rows, text)
        sure = [
            text("sure_1"),
            *([text("sure_top")] if self.survey.rank_top else []),
            text("sure_3"),
            text("sure_2", more=f"{3 * self.count:,}"),
        ]
        if self.bias:
            sure.append(text("sure_4", bias=f"{self.bias:.2g}"))
        promise = [self._promise(text)]
        if self.outside is not None:
            hidden = {"count": f"{self.count:,}", "outside": f"{self.outside:.3f}", "delta": f"{_DELTA:f}"}
            promise.append(text("promised_outside", **hidden))
        return {
            "headline": headline,
            "needed": text("needs", answers=f"{self.needed:,}") if self.needed else "",
            "table": table.html(headline),
            "folded": {
                text("how_sure"): sure,
                text("what_promised"): promise,
                text("how_computed"): [
                    text("computed_1", count=f"{self.count:,}", mechanism=self.survey.mechanism),
                ],
            },
        }

    def picture(self, language: str) -> bytes:
        """The same as a PNG file.

        Parameters
        ----------
        language
            One of ``rankdp_web.pages.all_texts``.
        """
        text = partial(sentence, language)
        table = self._table(text)
        headline = self._headline(table.rows, text)
        labelled = dataclasses.replace(table, measure=f"{table.measure}, {table.span}")
        words = [headline, *([text("batches")] if self.survey.open else []), self._promise(text)]
        return picture(intervals_figure([(self.survey.title, labelled)]), "png", words, headline)

    def _table(self, text: Callable[..., str]) -> ResultTable:
        """The items in a language. Debiasing can leave the possible places by a little, which nobody could read."""
        table, last = self.report.results, len(self.survey.items)
        assert table is not None
        ends = np.clip([[row.estimate, row.low, row.high] for row in table.rows], 1, last).tolist()
        rows = [
            dataclasses.replace(row, cells=(), estimate=estimate, low=low, high=high)
            for row, (estimate, low, high) in zip(table.rows, ends, strict=True)
        ]
        return dataclasses.replace(
            table,
            rows=rows,
            heads=(),
            subject=text("item"),
            measure=text("average_place"),
            span=text("interval"),
            rank=text("rank"),
            to=text("to"),
            decimal=text("decimal"),
        )

    def _promise(self, text: Callable[..., str]) -> str:
        return text(f"promised_{self.survey.protect}", **promised(self.survey))

    def _headline(self, rows: Sequence[ResultRow], text: Callable[..., str]) -> str:
        """Who leads, by the ranges of ranks in the table below."""
        first = [row.name for row in rows if row.ranks is not None and row.ranks[0] == 1]
        if len(first) == 1:
            return text("lead_one", first=first[0])
        if len(first) == len(rows):
            return text("lead_none", all=str(len(rows)))
        if len(first) <= _NAMED:
            return text("lead_tied", names=listed(first, text("and")))
        return text("lead_many", first=rows[0].name, count=str(len(first)), all=str(len(rows)))


def survey_results(survey: Survey, release: Release[Rankings]) -> SurveyResults:
    """The results that these answers give."""
    count, result = len(release.value), aggregate(release)
    board = result.board("borda", LEVEL)
    report = aggregate_report(result, level=LEVEL, title=survey.title, board=board)
    records = [{**record, "answers": count} for record in report.records]
    facts = report.facts
    report = dataclasses.replace(
        report,
        records=records,
        facts=lambda: {**facts(), "survey": survey.id, "answers": count, "items": records},
        words=[sentence("en", "batches")] if survey.open else [],
        sure=[*report.sure, sentence("en", "sure_2", more=f"{3 * count:,}")],
    )
    bias = 0.0 if board.estimate.unbiased else float(np.nanmax(board.estimate.bias))
    return SurveyResults(survey, count, report, answers_needed(result, board), bias, _outside(survey, count))


def _outside(survey: Survey, count: int) -> float | None:
    if survey.open:
        return None
    found = epsilon_outside(mechanism_of(survey), count, _DELTA)
    return found if _HIDDEN * found <= positive(survey.epsilon) else None


@dataclass(slots=True)
class _Made:
    survey: Survey
    count: int
    results: SurveyResults | None
    believed_until: float
    pictures: dict[str, bytes] = field(default_factory=dict)


class LiveResults:
    """The newest results of every survey that is being looked at."""

    def __init__(self, database: SurveyDatabase) -> None:
        self._database = database
        self._made: dict[str, _Made] = {}
        self._making = threading.Lock()

    def of(self, survey: Survey) -> tuple[int, SurveyResults | None]:
        """How many answers could be shown a moment ago, and their results; None while there are too few."""
        with self._making:
            made = self._current(survey)
            return made.count, made.results

    def picture(self, survey: Survey, language: str) -> bytes | None:
        """The results as a PNG file, drawn once for everybody."""
        with self._making:
            made = self._current(survey)
            if made.results is None:
                return None
            if language not in made.pictures:
                made.pictures[language] = made.results.picture(language)
            return made.pictures[language]

    def _current(self, survey: Survey) -> _Made:
        made = self._made.get(survey.id)
        if made is None or time.monotonic() >= made.believed_until:
            made = self._made[survey.id] = self._look(survey, made)
        return made

    def _look(self, survey: Survey, before: _Made | None) -> _Made:
        count = self._database.count(survey.id, shown=True)
        if before is not None and (count, survey) == (before.count, before.survey):
            return dataclasses.replace(before, believed_until=time.monotonic() + _SECONDS)
        began = time.monotonic()
        results = None
        if count:
            results = survey_results(survey, collected(self._database, survey))
            count = results.count
        took = time.monotonic() - began
        return _Made(survey, count, results, began + took + max(_SECONDS, _PATIENCE * took))
