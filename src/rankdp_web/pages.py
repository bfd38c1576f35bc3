"""What all pages share: templates, texts in several languages, one stylesheet, and headers that let nothing in or out.

Pages are plain HTML from Jinja templates with plain ES modules, all from this server. The Content-Security-Policy
forbids anything else; respondents get no cookies, and nothing is cached but what is the same for everybody.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankdp.errors import InputError
from rankdp.report.document import PAGE_FILES

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
SECTIONS = ("page", "script", "results", "organiser")
"""Of a language's file: the respondent's page, its script, the results and the organiser's pages."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{images}; connect-src 'self'; "
    "form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY.format(images="", forms="'none'"),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
}
"""Of every answer."""
WITH_FORMS = {
    "Content-Security-Policy": _POLICY.format(images=" data:", forms="'self'"),
    "Referrer-Policy": "same-origin",  # without any, browsers do not say where a form comes from
}
"""Instead, for pages with forms."""


@cache
def all_texts() -> Mapping[str, Mapping[str, str]]:
    """By language and name: every sentence of a survey's pages. A language is a file in ``texts``."""
    return {
        language: {
            "language": read["language"],
            "direction": read["direction"],
            "decimal": read["decimal"],
            **{name: words for section in SECTIONS for name, words in read.get(section, {}).items()},
        }
        for language, read in _read_texts().items()
    }


def script_texts(language: str) -> Mapping[str, str]:
    """The sentences that the scripts of a page show."""
    texts: Mapping[str, str] = _read_texts()[language]["script"]
    return texts


@cache
def _read_texts() -> Mapping[str, Mapping[str, Any]]:
    files = sorted((_HERE / "texts").glob("*.json"))
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}


def language_of(request: Request) -> str:
    """The language that a visitor chose, or the first that their browser asks for and that we have."""
    wanted = [request.query_params.get("lang", "")]
    wanted += [part.partition(";")[0] for part in request.headers.get("accept-language", "").split(",")]
    short = [word.strip().lower().partition("-")[0] for word in wanted]
    return next((word for word in short if word in all_texts()), "en")


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def show(request: Request, template: str, status: int = 200, *, language: str | None = None, **values: Any) -> Response:
    """A page.

    Parameters
    ----------
    request
        Whose language decides about ``text``, a function of the template that looks sentences up.
    template
        Its file.
    status
        The status of the answer.
    language
        The language of pages that have only one.
    **values
        What the template shows.
    """
    up = "../" * (request.url.path.removeprefix(request.scope.get("root_path", "")).count("/") - 1)
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != "lang"]
    kept = f"{urlencode(rest)}&" if rest else ""
    page = render(template, language or language_of(request), up or "./", kept=kept, **values)
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})


def render(template: str, language: str, up: str, *, kept: str = "", **values: Any) -> str:
    """The text of a page.

    Parameters
    ----------
    template
        Its file.
    language
        The language of its sentences.
    up
        The relative address of the directory that ``static`` is in.
    kept
        What the address asks for besides a language.
    **values
        What the template shows.
    """
    known, text = all_texts()[language], partial(sentence, language)
    others = {other: words["language"] for other, words in all_texts().items() if other != language}
    shared = {
        "text": text,
        "language": language,
        "languages": others,
        "kept": kept,
        "direction": known["direction"],
        "up": up,
        "script_texts": script_texts(language),
    }
    return _templates().get_template(template).render(**shared, **values)


def sentence(language: str, name: str, /, **values: Any) -> str:
    """A sentence in a language; numbers get that language's decimal sign."""
    known = all_texts()[language]
    swapped = str.maketrans(".,", ",.") if known["decimal"] == "," else {}
    shown = {key: value.translate(swapped) if _is_number(value) else value for key, value in values.items()}
    return known[name].format(**shown)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"±?\d[\d,]*(\.\d+)?%?", value) is not None


def static_files() -> BaseRoute:
    """The modules and the icon, and what these pages share with reports."""
    shared, own = (StaticFiles(directory=directory) for directory in (PAGE_FILES, STATIC))
    return Mount("/static", routes=[Mount("/page", shared), Mount("/", own)], name="static")


async def body(request: Request, most: int) -> bytes | None:
    """The content of a request, None where it is longer than ``most`` bytes."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            return None
    return content


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, on any free port if it is 0."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise InputError(f"{host}:{port} cannot be listened on ({os.strerror(problem.errno or 0)})") from None


def serving(app: ASGIApp, host: str, port: int) -> uvicorn.Config:
    """How an application is served: it says nothing about itself, logs no request and believes no proxy."""
    return uvicorn.Config(
        *(app, host, port),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=10,
    )


class Guarded:
    """Adds the headers of every page to every answer.

    Parameters
    ----------
    app
        The application behind it.
    forms
        Whether its pages send forms, to itself alone, and show pictures that are part of the page.
    """

    def __init__(self, app: ASGIApp, forms: bool = False) -> None:
        self.app = app
        self.headers = HEADERS | (WITH_FORMS if forms else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await self.app(scope, receive, with_headers)
