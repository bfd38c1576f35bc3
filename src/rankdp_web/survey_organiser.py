"""The organiser's pages: make a survey and look at it before it opens, share it, watch it, close, export, delete it.

    /organiser?key=…            the link that ``rankdp survey serve`` prints; the key then stays in a cookie
    /organiser                  all surveys
    /organiser/new              the form; /organiser/plan says what an epsilon means
    /organiser/preview/ID       a draft, with the page that respondents would get; drafts are in memory alone
    /organiser/surveys/ID       link and QR code, answers so far, invitations, close, export, delete

The key is 256 random bits, new with every start. The pages are for https, or for this machine itself.
"""

from __future__ import annotations

import hmac
import io
import ipaddress
import secrets
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import segno
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from rankdp.errors import InputError
from rankdp.privacy.guarantee import WEAK_EPSILON
from rankdp_web.browser_tables import MOST_ITEMS
from rankdp_web.pages import WITH_FORMS, all_texts, body, language_of, sentence, show
from rankdp_web.survey_database import Survey, SurveyDatabase, today
from rankdp_web.survey_limits import Pulse, TicketLimit
from rankdp_web.survey_page import respondent_values
from rankdp_web.survey_plan import meaning
from rankdp_web.surveys import (
    LONGEST_NOTICE,
    closing_day,
    export_survey,
    frame_site,
    invite,
    new_survey,
    page_text,
    picture_file,
)

_COOKIE = "rankdp-organiser"
_MOST_BYTES = 30 << 20  # a form with a hundred pictures
_MOST_DRAFTS = 50
_EXAMPLE = {"epsilon": "2", "answers": "400"}


@dataclass(slots=True)
class _Draft:
    survey: Survey
    pictures: dict[str, bytes]
    form: Mapping[str, str]
    results_key: str


class Organiser:
    """The pages of whoever has the key.

    Parameters
    ----------
    database
        Where surveys are kept.
    key
        What opens these pages.
    address
        Where respondents reach the server; empty for the address that the organiser uses.
    limit, pulse
        What bounds tickets, and what counts answers lately.
    """

    def __init__(self, database: SurveyDatabase, key: str, address: str, limit: TicketLimit, pulse: Pulse) -> None:
        self._database, self._key, self._address = database, key, address.rstrip("/")
        self._limit, self._pulse = limit, pulse
        self._drafts: OrderedDict[str, _Draft] = OrderedDict()

    # -- who may come in -----------------------------------------------------------------------------------------

    def knows(self, request: Request) -> bool:
        """Whether a request comes from the organiser."""
        return hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), self._key.encode())

    def routes(self) -> list[Route]:
        """The addresses below ``/organiser``."""
        views = {
            "": (self._list, None),
            "/new": (self._form, self._drafted),
            "/plan": (self._plan, None),
            "/preview/{draft}": (self._preview, self._opened),
            "/drafts/{draft}": (self._draft_page, None),
            "/drafts/{draft}/pictures/{name}": (self._draft_picture, None),
            "/surveys/{survey}": (self._survey, None),
            "/surveys/{survey}/qr.svg": (self._code, None),
            "/surveys/{survey}/export.zip": (self._export, None),
            "/surveys/{survey}/invitations.csv": (None, self._invitations),
            "/surveys/{survey}/close": (None, self._close),
            "/surveys/{survey}/delete": (None, self._delete),
        }
        return [
            Route(f"/organiser{path}", self._guarded(view), methods=[method])
            for path, pair in views.items()
            for method, view in zip(("GET", "POST"), pair, strict=True)
            if view is not None
        ]

    def _guarded(self, view: Any) -> Any:
        async def endpoint(request: Request) -> Response:
            if not self._encrypted(request):
                return show(request, "message.html", 403, words="organiser_https", survey=None)
            if (given := request.query_params.get("key")) is not None and request.url.path.endswith("/organiser"):
                if not hmac.compare_digest(given.encode(), self._key.encode()):
                    return show(request, "message.html", 403, words="organiser_key", survey=None)
                entered = RedirectResponse("organiser", 303)
                secure = request.url.scheme == "https"
                entered.set_cookie(_COOKIE, self._key, httponly=True, samesite="strict", secure=secure)
                return entered
            if not self.knows(request):
                return show(request, "message.html", 403, words="organiser_key", survey=None)
            if request.method == "POST" and request.headers.get("sec-fetch-site") != "same-origin":
                return show(request, "message.html", 403, words="organiser_origin", survey=None)
            response: Response = await view(request)
            for name, value in WITH_FORMS.items():
                response.headers.setdefault(name, value)
            response.headers["Cache-Control"] = "no-store"
            return response

        return endpoint

    @staticmethod
    def _encrypted(request: Request) -> bool:
        """Whether the key cannot be read on the way: https, or a visitor on this machine."""
        return request.url.scheme == "https" or _is_here(request.client.host if request.client else "")

    # -- making a survey -----------------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        surveys = await run_in_threadpool(self._database.surveys)
        rows = [(survey, await run_in_threadpool(self._database.count, survey.id)) for survey in surveys]
        rows.sort(key=lambda row: (not row[0].open, row[0].day, row[0].title), reverse=False)
        untrusted = "x-forwarded-for" in request.headers and request.url.scheme != "https"
        return show(request, "organiser.html", rows=rows, untrusted=untrusted)

    async def _form(self, request: Request, form: Mapping[str, str] | None = None, problem: str = "") -> Response:
        draft = self._drafts.get(request.query_params.get("draft", ""))
        given = form or (draft.form if draft else _EXAMPLE)
        values: dict[str, Any] = {"form": given, "problem": problem, "today": today(), "limit": self._limit.per_minute}
        return show(request, "organiser_new.html", 422 if problem else 200, **values)

    async def _drafted(self, request: Request) -> Response:
        form, pictures = await _parts(request)
        words = all_texts()[language_of(request)]
        if problem := _problem(form, pictures, words):
            return await self._form(request, form, problem)
        key = secrets.token_urlsafe(16) if "private_results" in form else ""
        try:
            asked = await run_in_threadpool(_asked, form, pictures, key)
        except InputError as refusal:
            return await self._form(request, form, f"{str(refusal)[0].upper()}{str(refusal)[1:]}.")
        draft = asked[0].id
        self._drafts[draft] = _Draft(*asked, form, key)
        while len(self._drafts) > _MOST_DRAFTS:
            self._drafts.popitem(last=False)
        return RedirectResponse(f"preview/{draft}", 303)

    async def _plan(self, request: Request) -> Response:
        """What an epsilon means: two sentences from public numbers."""
        asked, language = request.query_params, language_of(request)
        try:
            items, answers, top = int(asked["items"]), int(asked["answers"]), int(asked.get("top") or 0)
            known = await run_in_threadpool(meaning, items, asked["epsilon"], answers, top=top)
        except (InputError, ValueError, KeyError):
            return JSONResponse({"promise": "", "accuracy": sentence(language, "plan_unknown")})
        return JSONResponse(
            {
                "promise": sentence(language, "plan_promise", **known),
                "accuracy": sentence(language, "plan_accuracy" if known["right"] else "plan_never", **known),
            }
        )

    def _of(self, request: Request) -> _Draft:
        try:
            return self._drafts[request.path_params["draft"]]
        except KeyError:
            raise HTTPException(404) from None

    async def _preview(self, request: Request) -> Response:
        page = show(request, "organiser_preview.html", survey=self._of(request).survey)
        page.headers["Content-Security-Policy"] = f"{WITH_FORMS['Content-Security-Policy']}; frame-src 'self'"
        return page

    async def _draft_page(self, request: Request) -> Response:
        values = await run_in_threadpool(lambda: respondent_values(self._of(request).survey, None, preview=True))
        page = show(request, "survey.html", **values)
        policy = WITH_FORMS["Content-Security-Policy"]
        page.headers["Content-Security-Policy"] = policy.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
        return page

    async def _draft_picture(self, request: Request) -> Response:
        name = request.path_params["name"]
        content = self._of(request).pictures.get(name)
        if content is None:
            raise HTTPException(404)
        return Response(content, media_type=f"image/{name.rpartition('.')[2]}")

    async def _opened(self, request: Request) -> Response:
        draft = self._of(request)
        await run_in_threadpool(self._database.add, draft.survey, draft.pictures)
        del self._drafts[draft.survey.id]
        key = f"?results={quote(draft.results_key)}" if draft.results_key else ""
        return RedirectResponse(f"../surveys/{draft.survey.id}{key}", 303)

    # -- running it ----------------------------------------------------------------------------------------------

    async def _found(self, request: Request) -> Survey:
        found = await run_in_threadpool(self._database.find, request.path_params["survey"])
        if found is None:
            raise HTTPException(404)
        return found[0]

    def _link(self, request: Request, survey: Survey) -> str:
        base = self._address or f"{request.url.scheme}://{request.headers.get('host', '')}"
        return f"{base}/s/{survey.id}"

    async def _survey(self, request: Request, problem: str = "") -> Response:
        survey = await self._found(request)
        count = await run_in_threadpool(self._database.count, survey.id)
        shown = await run_in_threadpool(self._database.count, survey.id, shown=True)
        link = self._link(request, survey)
        values: dict[str, Any] = {
            "survey": survey,
            "count": count,
            "exportable": shown if survey.open else count,
            "link": link,
            "barrier": _barrier(link),
            "results_key": request.query_params.get("results", ""),
            "answers": self._pulse.counts(survey.id, "answer"),
            "refusals": sum(self._pulse.counts(survey.id, "refusal")),
            "limit": self._limit.per_minute,
            "problem": problem,
        }
        return show(request, "organiser_survey.html", 422 if problem else 200, **values)

    async def _code(self, request: Request) -> Response:
        """The QR code of a link that others can answer by."""
        survey = await self._found(request)
        link = self._link(request, survey)
        if survey.invited or _barrier(link):
            raise HTTPException(404)
        picture = io.BytesIO()
        segno.make(link, error="m").save(picture, kind="svg", scale=8, border=4, light="#ffffff", xmldecl=False)
        return Response(picture.getvalue(), media_type="image/svg+xml")

    async def _export(self, request: Request) -> Response:
        """The synthetic rankings with their release file."""
        survey = await self._found(request)

        def packed() -> bytes:
            with tempfile.TemporaryDirectory() as place:
                export_survey(self._database, survey, Path(place, f"survey-{survey.id}.csv"))
                target = io.BytesIO()
                with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                    for file in sorted(Path(place).iterdir()):
                        archive.write(file, file.name)
                return target.getvalue()

        try:
            content = await run_in_threadpool(packed)
        except InputError:
            raise HTTPException(404) from None
        return Response(content, media_type="application/zip", headers=_file(f"survey-{survey.id}.zip"))

    async def _invitations(self, request: Request) -> Response:
        """New links for a mail merge; they are nowhere else."""
        survey, form = await self._found(request), (await _parts(request))[0]
        number = form.get("number", "")
        words = all_texts()[language_of(request)]
        if not number.isdecimal() or not 1 <= int(number) <= 100_000 or not survey.open:
            return await self._survey(request, words["bad_number"])
        tokens = await run_in_threadpool(invite, self._database, survey, int(number))
        lines = ["link", *(f"{self._link(request, survey)}#{token}" for token in tokens)]
        return Response(
            "\r\n".join(lines) + "\r\n", media_type="text/csv", headers=_file(f"invitations-{survey.id}.csv")
        )

    async def _close(self, request: Request) -> Response:
        survey = await self._found(request)
        await run_in_threadpool(self._database.finish, survey.id)
        return RedirectResponse(f"../{survey.id}", 303)

    async def _delete(self, request: Request) -> Response:
        survey, form = await self._found(request), (await _parts(request))[0]
        if form.get("title", "").strip() != survey.title:
            return await self._survey(request, all_texts()[language_of(request)]["bad_delete"])
        await run_in_threadpool(self._database.delete, survey.id)
        self._pulse.forget(survey.id)
        return RedirectResponse("../../../organiser", 303)


def _barrier(link: str) -> str:
    """The name of the sentence that says why nobody else can answer by this link; empty where everybody can."""
    if not link.startswith("https://"):
        return "no_https"
    return "only_here" if _is_here(urlsplit(link).hostname or "") else ""


def _is_here(host: str) -> bool:
    """Whether this is the machine's name for itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


async def _parts(request: Request) -> tuple[dict[str, str], dict[str, bytes]]:
    """The fields of a form, and its pictures by file name without the ending.

    A form with pictures is sent by ``organiser.js``: a line of JSON for each picture, then the fields.
    """
    content = await body(request, _MOST_BYTES)
    if content is None:
        raise HTTPException(413)
    pictures: dict[str, bytes] = {}
    if request.headers.get("content-type", "").startswith("application/x-rankdp-form"):
        head, _, content = content.partition(b"\n")
        at = 0
        for part in parse_qsl(head.decode("utf-8", "replace")):
            size = int(part[1]) if part[1].isdecimal() else 0
            pictures[part[0].rpartition(".")[0] or part[0]] = content[at : at + size]
            at += size
        content = content[at:]
    return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100)), pictures


def _items(form: Mapping[str, str]) -> dict[str, str]:
    """Names and descriptions: an item a line, its description behind a |."""
    lines = [line.partition("|") for line in form.get("items", "").splitlines() if line.strip()]
    return {name.strip(): about.strip() for name, _, about in lines}


def _frames(form: Mapping[str, str]) -> list[str]:
    return [site.rstrip("/").lower() for site in form.get("frames", "").split()]


def _problem(form: Mapping[str, str], pictures: Mapping[str, bytes], words: Mapping[str, str]) -> str:
    """What is wrong with a form, in the organiser's language; empty where nothing is."""
    lines = [line for line in form.get("items", "").splitlines() if line.strip()]
    try:
        epsilon = float(form.get("epsilon", "").replace(",", "."))
    except ValueError:
        epsilon = 0.0
    items, closing, top = _items(form), form.get("closing", ""), form.get("rank_top", "").strip()
    texts = [form.get(name, "") for name in ("title", "question", "organiser", "contact")]
    rules = {
        "bad_title": bool(form.get("title", "").strip()),
        "bad_items": 2 <= len(lines) <= MOST_ITEMS,
        "bad_twins": len(items) == len(lines) and all(items),
        "bad_top": not top or (top.isdecimal() and 1 <= int(top) < len(lines)),
        "bad_epsilon": 0 < epsilon <= WEAK_EPSILON,
        "bad_closing": not closing or _good(closing_day, closing),
        "bad_frames": all(_good(frame_site, site) for site in _frames(form)),
        "bad_pictures": all(name in items and _good(picture_file, name, file) for name, file in pictures.items()),
        "bad_text": all(_good(page_text, "text", text, 0) for text in [*texts, *items, *items.values()])
        and _good(page_text, "legal", form.get("legal", ""), 0, LONGEST_NOTICE),
    }
    return next((words[name] for name, kept in rules.items() if not kept), "")


def _good(check: Callable[..., Any], *given: Any) -> bool:
    try:
        check(*given)
    except InputError:
        return False
    return True


def _asked(form: Mapping[str, str], pictures: Mapping[str, bytes], key: str) -> tuple[Survey, dict[str, bytes]]:
    items = _items(form)
    return new_survey(
        form["title"],
        list(items),
        form["epsilon"].replace(",", "."),
        question=form.get("question", ""),
        rank_top=int(form.get("rank_top", "").strip() or 0),
        invited=form.get("who") == "invited",
        results_key=key,
        descriptions=items,
        pictures=pictures,
        organiser=form.get("organiser", ""),
        contact=form.get("contact", ""),
        legal=form.get("legal", ""),
        closing=form.get("closing", ""),
        kiosk="kiosk" in form,
        listed="listed" in form,
        frames=_frames(form),
    )
