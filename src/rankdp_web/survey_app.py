"""The server of surveys: a page to answer on, a place to send answers to, and the results.

    GET  /s/ID             the page; an invitation's token follows the # of its link and is not sent with it
    POST /s/ID/invitation  {"token": …}; whether an answer with it would count: fresh, before, unknown or closed
    POST /s/ID/answers     {"token": …, "ranking": […]}; 201 stored, 200 stored before, 4xx with a sentence
    GET  /                 the surveys that their organisers list
    GET  /s/ID/results     in whole batches; also .csv, .json and .png; with ?key= where a key is needed
    GET  /s/ID/embed       the results for frames of the sites that the organiser names

Nothing about a request is written down: no log, no address, no time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import importlib.util
import json
from collections.abc import AsyncIterator
from functools import partial
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

from rankdp.errors import InputError, SystemProblem, Unsupported
from rankdp_web.answer_writer import AnswerWriter, Busy
from rankdp_web.pages import HEADERS, Guarded, body, language_of, serving, show, static_files
from rankdp_web.survey_database import Survey, SurveyDatabase, token_hash
from rankdp_web.survey_limits import TICKETS_PER_MINUTE, Pulse, TicketLimit
from rankdp_web.survey_organiser import Organiser
from rankdp_web.survey_page import respondent_values
from rankdp_web.survey_results import LiveResults
from rankdp_web.surveys import good_ticket, new_ticket, read_answer, read_token

MOST_BYTES = 2048
"""Of a submission: a hundred items take four hundred."""
SAVED = ("CSV", "JSON", *(("PNG",) if importlib.util.find_spec("matplotlib") else ()))
"""The files that results can be saved as; pictures need the extra plots."""
_KINDS = {"csv": "text/csv", "json": "application/json", "png": "image/png"}
_DUE_SECONDS = 60  # between two looks at the last days of surveys

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


def survey_app(
    database: SurveyDatabase,
    *,
    organiser_key: str = "",
    address: str = "",
    tickets_per_minute: int = TICKETS_PER_MINUTE,
) -> Starlette:
    """The application for a database of surveys.

    Parameters
    ----------
    database
        Where they are kept; it is closed when the application ends.
    organiser_key
        What opens the organiser's pages; without one there are none.
    address
        Where respondents reach the server, for links; empty for the address that the organiser uses.
    tickets_per_minute
        How many pages of open surveys a network address gets a minute.
    """
    surveys = _Surveys(database)
    limit, pulse = TicketLimit(tickets_per_minute), Pulse()
    organiser = Organiser(database, organiser_key, address, limit, pulse) if organiser_key else None

    async def close_due() -> None:
        while True:
            with contextlib.suppress(SystemProblem):  # a database that is away for a while
                for survey in await run_in_threadpool(database.surveys):
                    if survey.open and survey.due:
                        await run_in_threadpool(database.finish, survey.id)
            await asyncio.sleep(_DUE_SECONDS)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        surveys.writer = AnswerWriter(database)
        closing = asyncio.create_task(close_due())
        try:
            yield
        finally:
            closing.cancel()
            await run_in_threadpool(surveys.writer.stop)
            database.close()

    async def page(request: Request) -> Response:
        survey, secret = await surveys.find(request)
        if not survey.open or survey.due:
            return show(request, "message.html", 410, words="closed", survey=survey)
        if not survey.invited and not limit.take(request.client.host if request.client else ""):
            pulse.beat(survey.id, "refusal")
            refused = show(request, "message.html", 429, words="limited_page", survey=survey)
            refused.headers["Retry-After"] = "60"
            return refused
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
        outcome = await surveys.writer.store(survey, token, ranking)
        if outcome == "stored":
            pulse.beat(survey.id, "answer")
        return _said(*_OUTCOMES[outcome])

    async def results(request: Request, ending: str = "") -> Response:
        survey, _ = await surveys.find(request)
        key = request.query_params.get("key", "")
        secret = survey.results_key and not (organiser and organiser.knows(request))
        if secret and not hmac.compare_digest(token_hash(key).hex(), survey.results_key):
            return show(request, "message.html", 403, words="needs_key", survey=survey)
        if ending in ("", "part"):
            return await results_page(request, survey, key=key, part=bool(ending))
        try:
            content = await run_in_threadpool(results_file, survey, ending, language_of(request))
        except Unsupported:
            raise HTTPException(404) from None
        if content is None:
            return PlainTextResponse("There are too few answers yet.\n", 404)
        name = f'attachment; filename="survey-{survey.id}.{ending}"'
        headers = {"Content-Disposition": name, "Cache-Control": "no-store"}
        return Response(content, media_type=_KINDS[ending], headers=headers)

    async def results_page(
        request: Request, survey: Survey, *, key: str = "", part: bool = False, embedded: bool = False
    ) -> Response:
        count, made = await run_in_threadpool(surveys.results.of, survey)
        language = language_of(request)
        tag = f'"{count}{"" if survey.open else "-closed"}-{language}"'
        if part and request.headers.get("if-none-match") == tag:
            return Response(status_code=304)
        values: dict[str, Any] = {
            "survey": survey,
            "count": count,
            "shown": await run_in_threadpool(made.page, language) if made else None,
            "key": key,
            "saved": () if embedded else SAVED,
            "embedded": embedded,
        }
        shown = show(request, "results_part.html" if part else "results.html", **values)
        shown.headers["ETag"] = tag
        return shown

    def results_file(survey: Survey, ending: str, language: str) -> str | bytes | None:
        if ending == "png":
            return surveys.results.picture(survey, language)
        _, made = surveys.results.of(survey)
        return {"csv": made.report.csv, "json": made.report.json}[ending]() if made else None

    async def embed(request: Request, part: bool = False) -> Response:
        """The results for the frames of other sites, where the organiser allows it."""
        survey, _ = await surveys.find(request)
        if not survey.frames or survey.results_key:
            raise HTTPException(404)
        page = await results_page(request, survey, part=part, embedded=True)
        sites = " ".join(survey.frames)
        policy = HEADERS["Content-Security-Policy"].replace("frame-ancestors 'none'", f"frame-ancestors {sites}")
        page.headers["Content-Security-Policy"] = policy
        return page

    async def start(request: Request) -> Response:
        listed = [each for each in await run_in_threadpool(database.surveys) if each.open and each.listed]
        return show(request, "start.html", listed=sorted(listed, key=lambda each: each.title))

    async def missing(request: Request, _: Exception) -> Response:
        return show(request, "message.html", 404, words="no_survey", survey=None)

    app = Starlette(
        routes=[
            Route("/", start),
            Route("/s/{survey}", page),
            Route("/s/{survey}/invitation", invitation, methods=["POST"]),
            Route("/s/{survey}/answers", answers, methods=["POST"]),
            Route("/s/{survey}/pictures/{name}", picture),
            Route("/s/{survey}/results", results),
            *(Route(f"/s/{{survey}}/results.{ending}", partial(results, ending=ending)) for ending in _KINDS),
            Route("/s/{survey}/results/part", partial(results, ending="part")),
            Route("/s/{survey}/embed", embed),
            Route("/s/{survey}/embed/part", partial(embed, part=True)),
            *(organiser.routes() if organiser else []),
            static_files(),
        ],
        middleware=[Middleware(Guarded), Middleware(GZipMiddleware, minimum_size=2000, compresslevel=5)],
        exception_handlers={
            404: missing,
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
    database: SurveyDatabase,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    certificate: tuple[str, str] | None = None,
    trusted_proxy: str = "",
    **pages: Any,
) -> uvicorn.Config:
    """How surveys are served.

    Parameters
    ----------
    database
        Where they are kept.
    host, port
        Where to listen.
    certificate
        The files of a certificate and its key, for https.
    trusted_proxy
        The addresses of proxies whose word about visitors' addresses and https counts, separated by commas.
    **pages
        As in ``survey_app``.
    """
    config = serving(survey_app(database, **pages), host, port)
    if certificate:
        config.ssl_certfile, config.ssl_keyfile = certificate
    if trusted_proxy:
        config.proxy_headers, config.forwarded_allow_ips = True, trusted_proxy
    return config
