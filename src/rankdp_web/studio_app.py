"""The studio's routes: from a file to a release, on this machine only.

/                    1 open: choose a file, or none
/w/ID/file           1 what the file is (not private)
/w/ID/protect        2 what must be protected
/w/ID/rule           3 for elections: which rule counts
/w/ID/goal           4 how good it must be: three cards, a slider
/w/ID/budget         5 what it is charged to
/w/ID/rehearse       6 what a reader would see, on invented rows
/w/ID/release        7 one button; then the result
/progress            how far the work is that goes on just now
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rankdp.errors import RankdpError
from rankdp_web.pages import Guarded, body, serving, show, static_files
from rankdp_web.studio_guard import Locked
from rankdp_web.studio_pages import STEPS, Form, Pages, Studio, sentence

MOST_BYTES = 8 << 20
"""Of a form: a list of a hundred thousand names."""


async def _form(request: Request) -> Form:
    content = await body(request, MOST_BYTES)
    if content is None:
        raise HTTPException(413)
    return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=200))


def studio_app(studio: Studio, key: str, port: int) -> Starlette:
    """The application."""
    pages = Pages(studio)

    def shown(view: Callable[..., Response]) -> Any:
        async def endpoint(request: Request) -> Response:
            own = [studio.draft(request.path_params["draft"])] if "draft" in request.path_params else []
            return await run_in_threadpool(view, request, *own, {})

        return endpoint

    def sent(view: Callable[..., Response], back: Callable[..., Response]) -> Any:
        async def endpoint(request: Request) -> Response:
            form = await _form(request)
            own = [studio.draft(request.path_params["draft"])] if "draft" in request.path_params else []
            try:
                return await run_in_threadpool(view, request, *own, form)
            except (RankdpError, OSError) as refusal:
                return await run_in_threadpool(back, request, *own, form, sentence(refusal))

        return endpoint

    nothing: dict[str, Any] = {"draft": None, "step": "", "steps": STEPS, "made": None}

    async def missing(request: Request, _: Exception) -> Response:
        return show(request, "studio_missing.html", 404, language="en", **nothing, problem="")

    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, (RankdpError, OSError))
        return show(request, "studio_missing.html", 422, language="en", **nothing, problem=sentence(refusal))

    async def progress(_: Request) -> Response:
        return JSONResponse({"words": studio.progress.words()}, headers={"Cache-Control": "no-store"})

    steps = {name: getattr(pages, name) for name in STEPS}
    answers = {
        "file": (pages.said, pages.file),
        "protect": (pages.protected, pages.protect),
        "rule": (pages.ruled, pages.rule),
        "goal": (pages.aimed, pages.goal),
        "choose": (pages.chosen, pages.goal),
        "keep": (pages.kept, pages.budget),
        "budget": (pages.charged, pages.budget),
        "rehearse": (pages.rehearsed, pages.rehearse),
        "release": (pages.released, pages.release),
        "again": (pages.again, pages.release),
    }
    app = Starlette(
        routes=[
            Route("/", shown(pages.open)),
            Route("/open", sent(pages.opened, pages.open), methods=["POST"]),
            Route("/without", sent(pages.without, pages.open), methods=["POST"]),
            *(Route(f"/w/{{draft}}/{name}", sent(*views), methods=["POST"]) for name, views in answers.items()),
            *(Route(f"/w/{{draft}}/{name}", shown(view)) for name, view in steps.items()),
            Route("/w/{draft}/files/{name}", shown(pages.download)),
            Route("/progress", progress),
            static_files(),
        ],
        middleware=[Middleware(Guarded, forms=True), Middleware(Locked, key=key, port=port)],
        exception_handlers={404: missing, RankdpError: refused, OSError: refused},
    )
    app.router.redirect_slashes = False
    return app


def studio_config(studio: Studio, key: str, port: int) -> uvicorn.Config:
    """How the studio is served: to this machine only."""
    return serving(studio_app(studio, key, port), "127.0.0.1", port)
