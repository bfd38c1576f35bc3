"""One thread writes the answers of all visitors: answers that wait while a transaction runs share the next one.

So the disk is asked once for many answers, and each visitor gets a receipt when their own answer is on it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import dataclass

from rankdp_web.survey_database import Survey, SurveyDatabase

_MOST_WAITING = 5000
_MOST_AT_ONCE = 200


class Busy(Exception):
    """More answers are waiting than can be stored in reasonable time."""


@dataclass(slots=True)
class _Arrival:
    survey: Survey
    token: str
    answer: bytes
    receipt: asyncio.Future[str]


class AnswerWriter:
    """Stores answers in the order of their arrival; ``stop`` stores what waits and ends the thread."""

    def __init__(self, database: SurveyDatabase) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[_Arrival | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
        self._thread.start()

    async def store(self, survey: Survey, token: str, answer: bytes) -> str:
        """What became of an answer (``SurveyDatabase.store``), once that is on disk."""
        if self._waiting.qsize() >= _MOST_WAITING:
            raise Busy
        receipt: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.put(_Arrival(survey, token, answer, receipt))
        return await receipt

    def stop(self) -> None:
        """Store what waits, then end."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            stopping = False
            while len(batch) < _MOST_AT_ONCE and not self._waiting.empty():
                following = self._waiting.get()
                if following is None:
                    stopping = True
                    break
                batch.append(following)
            for survey in {arrival.survey for arrival in batch}:
                self._store(survey, [arrival for arrival in batch if arrival.survey == survey])
            if stopping:
                return

    def _store(self, survey: Survey, arrivals: list[_Arrival]) -> None:
        try:
            outcomes = self._database.store(survey, [(arrival.token, arrival.answer) for arrival in arrivals])
        except Exception as problem:
            for arrival in arrivals:
                _tell(arrival.receipt, problem)
        else:
            for arrival, outcome in zip(arrivals, outcomes, strict=True):
                _tell(arrival.receipt, outcome)


def _tell(receipt: asyncio.Future[str], result: str | Exception) -> None:
    """Finish a future of another thread's event loop, unless its visitor has gone."""

    def finish() -> None:
        if not receipt.done():
            if isinstance(result, str):
                receipt.set_result(result)
            else:
                receipt.set_exception(result)

    receipt.get_loop().call_soon_threadsafe(finish)
