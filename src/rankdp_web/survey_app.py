"""The server of surveys: a page to answer on, a place to send answers to, and the results.

    GET  /s/ID             the page; an invitation's token stands behind the # of its link and is not sent with it
    POST /s/ID/invitation  {"token": …}; whether an answer with it would count: fresh, before, unknown or closed
    POST /s/ID/answers     {"token": …, "ranking": […]}; 201 stored, 200 stored before, 4xx with a sentence
    GET  /s/ID/results     in whole batches; also .csv, .json and .html; with ?key= where a key is needed

Nothing about a request is written down: no log, no address, no time.
"""

from __future__ import annotations

import contextlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rankdp.errors import InputError, SystemProblem
from rankdp_web.answer_writer import AnswerWriter, Busy
from rankdp_web.pages import Guarded, body, serving, show, static_files
from rankdp_web.survey_database import Survey, SurveyDatabase, token_hash
from rankdp_web.survey_page import respondent_values
from rankdp_web.survey_results import LiveResults
from rankdp_web.surveys import good_ticket, new_ticket, read_answer, read_token

MOST_BYTES = 2048
"""Of a submission: a hundred items take four hundred."""

_OUTCOMES = {
    "stored": (201, "stored", "Your answer is stored."),
    "before": (200, "before", "An answer with this link is stored already; this one changes nothing."),
    "unknown": (403, "unknown", "This invitation is not known."),
    "closed": (410, "closed", "This survey is closed."),
}


class _Surveys:
    """What the pages need."""

    def __init__(self, database: SurveyDatabase) -> None:
        self.database = database
        self.results = LiveResults(database)
        self.writer: AnswerWriter | None = None
        self._known: dict[str, tuple[Survey, bytes]] = {}

    async def find(self, request: Request) -> tuple[Survey, bytes]:
        """The survey of this address as it is now."""
        found = await run_in_threadpool(self.database.find, request.path_params["survey"])
        if found is None:
            raise HTTPException(404)
        self._known[found[0].id] = found
        return found

    async def find_quickly(self, request: Request) -> tuple[Survey, bytes]:
        """The same, but that it may have been closed or deleted meanwhile, which the database notices."""
        return self._known.get(request.path_params["survey"]) or await self.find(request)


def survey_app(database: SurveyDatabase) -> Starlette:
    """The application for a database of surveys.

    Parameters
    ----------
    database
        Where they are kept; it is closed when the application ends.
    """
    surveys = _Surveys(database)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        surveys.writer = AnswerWriter(database)
        try:
            yield
        finally:
            await run_in_threadpool(surveys.writer.stop)
            database.close()

    async def page(request: Request) -> Response:
        survey, secret = await surveys.find(request)
        if not survey.open or survey.due:
            return show(request, "message.html", 410, words="closed", survey=survey)
        ticket = None if survey.invited else new_ticket(secret)
        return show(request, "survey.html", **await run_in_threadpool(respondent_values, survey, ticket))

    async def invitation(request: Request) -> Response:
        survey, _ = await surveys.find_quickly(request)
        token = read_token(await _json(request))
        outcome = await run_in_threadpool(database.invitation, survey, token)
        return _said(*({"fresh": (200, "fresh", "This invitation is good for one answer.")} | _OUTCOMES)[outcome])

    async def picture(request: Request) -> Response:
        name = request.path_params["name"]
        content = await run_in_threadpool(database.picture, request.path_params["survey"], name)
        if content is None:
            raise HTTPException(404)
        kept = {"Cache-Control": "public, max-age=86400, immutable"}  # its name is its hash
        return Response(content, media_type=f"image/{name.rpartition('.')[2]}", headers=kept)

    async def answers(request: Request) -> Response:
        survey, secret = await surveys.find_quickly(request)
        token, ranking = read_answer(survey, await _json(request))
        if not survey.invited and not good_ticket(secret, token):
            return _said(*_OUTCOMES["unknown"])
        assert surveys.writer is not None
        return _said(*_OUTCOMES[await surveys.writer.store(survey, token, ranking)])

    async def results(request: Request) -> Response:
        survey, _ = await surveys.find(request)
        key = request.query_params.get("key", "")
        if survey.results_key and not hmac.compare_digest(token_hash(key).hex(), survey.results_key):
            return show(request, "message.html", 403, words="needs_key", survey=survey)
        count, report = await run_in_threadpool(surveys.results.of, survey)
        ending = request.path_params.get("ending", "")
        if ending in ("", "part"):
            tag = f'"{count}{"" if survey.open else "-closed"}"'
            if ending and request.headers.get("if-none-match") == tag:
                return Response(status_code=304)
            template = "results_part.html" if ending else "results.html"
            shown = show(request, template, survey=survey, count=count, report=report, key=key)
            shown.headers["ETag"] = tag
            return shown
        if report is None:
            return PlainTextResponse("There are too few answers yet.\n", 404)
        texts = {"csv": report.csv, "json": report.json, "html": report.html}
        kinds = {"csv": "text/csv", "json": "application/json", "html": "text/html"}
        name = f'attachment; filename="survey-{survey.id}.{ending}"'
        headers = {"Content-Disposition": name, "Cache-Control": "no-store"}
        return Response(texts[ending](), media_type=kinds[ending], headers=headers)

    async def start(request: Request, _: Exception | None = None) -> Response:
        return show(request, "message.html", 404, words="no_survey", survey=None)

    app = Starlette(
        routes=[
            Route("/", start),
            Route("/s/{survey}", page),
            Route("/s/{survey}/invitation", invitation, methods=["POST"]),
            Route("/s/{survey}/answers", answers, methods=["POST"]),
            Route("/s/{survey}/pictures/{name}", picture),
            Route("/s/{survey}/results", results),
            *(Route(f"/s/{{survey}}/results.{ending}", _ending(results, ending)) for ending in ("csv", "json", "html")),
            Route("/s/{survey}/results/part", _ending(results, "part")),
            static_files(),
        ],
        middleware=[Middleware(Guarded), Middleware(GZipMiddleware, minimum_size=2000, compresslevel=5)],
        exception_handlers={
            404: start,
            _Malformed: _malformed,
            InputError: _malformed,
            Busy: _busy,
            SystemProblem: _busy,
            ClientDisconnect: _gone,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirection would name this machine
    return app


def _ending(view: Any, ending: str) -> Any:
    async def with_ending(request: Request) -> Response:
        request.path_params["ending"] = ending
        response: Response = await view(request)
        return response

    return with_ending


class _Malformed(Exception):
    """What was sent is no JSON for us: a status and a sentence."""


async def _json(request: Request) -> Any:
    """What a request brings along."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _Malformed(415, "an answer must be application/json")
    content = await body(request, MOST_BYTES)
    if content is None:
        raise _Malformed(413, f"an answer must have at most {MOST_BYTES} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise _Malformed(422, "an answer must be JSON") from None


async def _malformed(_: Request, refusal: Exception) -> Response:
    status, words = refusal.args if isinstance(refusal, _Malformed) else (422, str(refusal))
    return _said(status, "malformed", f"{words[0].upper()}{words[1:]}.")


def _said(status: int, outcome: str, words: str) -> Response:
    return JSONResponse({"outcome": outcome, "words": words}, status, {"Cache-Control": "no-store"})


async def _busy(_: Request, __: Exception) -> Response:
    response = _said(503, "busy", "The server is busy; please send the same answer again in a minute.")
    response.headers["Retry-After"] = "60"
    return response


async def _gone(_: Request, __: Exception) -> Response:
    return Response(status_code=400)


def server_config(
    database: SurveyDatabase, host: str = "127.0.0.1", port: int = 0, *, access_log: bool = False
) -> uvicorn.Config:
    """How surveys are served.

    Parameters
    ----------
    database
        Where they are kept.
    host, port
        Where to listen.
    access_log
        Whether every request is logged with its address and time, which links answers to people.
    """
    return serving(survey_app(database), host, port, access_log)
