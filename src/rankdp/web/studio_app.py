"""The studio's pages: six steps from a file to a release, on this machine only.

    /                    1 open: choose a file, or none
    /w/ID/file           1 what the file is (not private)
    /w/ID/protect        2 what must be protected
    /w/ID/goal           3 how good it must be; the planner, the slider, the budget
    /w/ID/rehearse       4 what a reader would see, on invented rows
    /w/ID/release        5 one button; then the result
    /w/ID/inside         6 an attacker's odds, an attack, an audit

A page is a form of plain HTML; what it sends is checked by the library, and a refusal is shown above the same form. The
studio decides nothing about privacy: it calls ``plan``, the verbs, ``attack`` and ``audit``.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from rankdp.data.tables import check_items
from rankdp.errors import InputError, RankdpError, Unsupported
from rankdp.privacy.exact import positive
from rankdp.privacy.ledger import Ledger
from rankdp.report.document import Report
from rankdp.web import studio_inside, studio_plan
from rankdp.web.pages import Guarded, show, static_files
from rankdp.web.studio_budget import bars, chosen_ledger
from rankdp.web.studio_file import NOT_PRIVATE, Found, choices, look
from rankdp.web.studio_guard import Locked
from rankdp.web.studio_kinds import KINDS
from rankdp.web.studio_rehearsal import rehearse
from rankdp.web.studio_release import Releases, interrupted
from rankdp.web.studio_work import Work

MOST_BYTES = 8 << 20
"""Of a form: a list of a hundred thousand names."""
STEPS = ("file", "protect", "goal", "rehearse", "release", "inside")
_MOST_WORKS, _MOST_ITEMS = 200, 10_000
_SPOKEN = {  # how the pages call the settings that refusals name
    "on_problem": "the box about damaged rows",
    "repeated_voters": "the box about voters in several rows",
    "listed_items_public": "the box about partial rankings",
    "outside": "the box about scores outside the bounds",
    "ties": "the choice about ties",
    "items": "the list of names",
    "convert": "the box about converting",
    "columns": "which column is which",
}

Form = Mapping[str, str]


class Studio:
    """What the pages need: works that are under way, files that were looked at, and releases.

    Parameters
    ----------
    directory
        Where files are looked for first, and where results go.
    ledger
        The file of budgets; it need not be there yet.
    """

    def __init__(self, directory: Path, ledger: Path) -> None:
        self.directory, self.releases = directory, Releases(directory, ledger)
        self._works: dict[str, Work] = {}
        self._found: dict[str, Found] = {}
        self._lock = threading.Lock()

    def work(self, name: str) -> Work:
        """The work of this name: released, or under way."""
        made = self.releases.find(name)
        work = made.work if made else self._works.get(name)
        if work is None:
            raise HTTPException(404)
        return work

    def keep(self, work: Work) -> Work:
        """Remember a work; the oldest are forgotten when there are many."""
        with self._lock:
            self._works[work.id] = work
            for old in list(self._works)[:-_MOST_WORKS]:
                del self._works[old]
                self._found.pop(old, None)
        return work

    def change(self, work: Work, **values: Any) -> Work:
        """The work with other settings. One that was released stays as it is: another one begins."""
        changed = replace(work, **values)
        if changed == work:
            return work
        return self.keep(replace(changed, id=Work().id) if self.releases.find(work.id) else changed)

    def found(self, work: Work) -> Found:
        """What the file of a work is."""
        if work.id not in self._found:
            self._found[work.id] = look(work.path, work.columns)
        return self._found[work.id]


def _numbered(words: str, name: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(words.strip().replace(",", ""))
    except ValueError:
        raise InputError(f"{name} must be a {'whole ' * (kind is int)}number, got {words.strip()!r}") from None


def _picture(report: Report | None) -> str:
    """A report's figure as an address that stands inside the page; empty where there is none or no matplotlib."""
    try:
        drawn = report.picture("png") if report else b""
    except Unsupported:
        drawn = b""
    return f"data:image/png;base64,{base64.b64encode(drawn).decode()}" if drawn else ""


class _Pages:
    """The routes: each reads a form or shows a template."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def page(self, request: Request, template: str, work: Work | None, problem: str = "", **values: Any) -> Response:
        step = template.removeprefix("studio_").removesuffix(".html")
        made = self.studio.releases.find(work.id) if work else None
        shared = {"work": work, "step": step, "steps": STEPS, "made": made, "problem": problem, "kinds": KINDS}
        return show(request, template, 422 if problem else 200, language="en", **shared, **values)

    # 1 open

    def open(self, request: Request, form: Form, problem: str = "") -> Response:
        at = str(Path(request.query_params.get("at") or self.studio.directory).resolve())
        try:
            folders, files = choices(at)
        except InputError as refusal:
            folders, files, problem = [], [], problem or str(refusal)
        known = {"at": at, "parent": str(Path(at).parent), "folders": folders, "files": files, "asked": form}
        return self.page(request, "studio_open.html", None, problem, **known, releases=self.studio.releases.all())

    def opened(self, request: Request, form: Form) -> Response:
        path, columns = str(Path(form.get("path", "").strip()).expanduser()), _columns(form.get("columns", ""))
        found = look(path, columns)
        if found.refusal:
            raise InputError(found.refusal)
        work = self.studio.keep(Work(path=path, kind=found.kinds[0], columns=columns, items=found.items))
        self.studio._found[work.id] = found
        return _to(work, "file")

    def without(self, request: Request, form: Form) -> Response:
        count = _numbered(form.get("count", ""), "the number of items", int)
        if not 2 <= count <= _MOST_ITEMS or form.get("kind") not in KINDS:
            raise InputError(f"the number of items must be from 2 to {_MOST_ITEMS:,}, got {count}")
        names = tuple(f"item {number}" for number in range(1, count + 1))
        return _to(self.studio.keep(Work(kind=form["kind"], items=names, protect="")), "protect")

    def file(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        if not work.path:
            return _to(work, "protect")
        found = self.studio.found(work)
        return self.page(request, "studio_file.html", work, problem, found=found, not_private=NOT_PRIVATE)

    def said(self, request: Request, work: Work, form: Form) -> Response:
        kind = form.get("kind", work.kind)
        if kind not in self.studio.found(work).kinds:
            raise InputError(f"this file cannot be read as {kind}")
        listed = tuple(line.strip() for line in form.get("items", "").splitlines() if line.strip())
        changes: dict[str, Any] = {
            "kind": kind,
            "items": work.items if kind == "scores" else check_items(listed),
            "on_problem": "drop" if "drop" in form else "refuse",
            "ties": form.get("ties", "refuse"),
            "outside": "clip" if "clip" in form else "refuse",
            "bounds": (form.get("low", "0").strip(), form.get("high", "1").strip()),
        }
        changes |= {name: name in form for name in ("listed_items_public", "repeated_voters", "keep_voters")}
        if kind != work.kind:
            changes |= {"protect": "", "goal": "", "target": None, "option": "", "epsilon": "", "number": None}
        if kind == "scores":
            replace(work, bounds=changes["bounds"]).numeric_bounds  # noqa: B018  refuses what are no bounds
        if len(changes["items"]) < 2:
            raise InputError("there must be at least two names to put in order")
        return _to(self._with_found(work, **changes), "protect")

    def _with_found(self, work: Work, **changes: Any) -> Work:
        found = self.studio.found(work)
        changed = self.studio.change(work, **changes)
        self.studio._found[changed.id] = found
        return changed

    # 2 protect

    def protect(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        limits = {
            unit.name: (*unit.limits, *replace(work, protect=unit.name, epsilon="1", option="").promise.limits)
            for unit in work.what.units
        }
        named = not work.path or work.kind != "comparisons" or "voters" in self.studio.found(work).asks
        return self.page(request, "studio_protect.html", work, problem, limits=limits, voters_named=named)

    def protected(self, request: Request, work: Work, form: Form) -> Response:
        unit = work.what.unit(form.get("protect", ""))
        most = _numbered(form.get("max_per_voter", str(work.max_per_voter)), "the most comparisons of a voter", int)
        if most < 1:
            raise InputError(f"the most comparisons of a voter must be at least 1, got {most}")
        other = {} if unit.name == work.protect else {"number": None, "option": "", "epsilon": ""}
        return _to(self.studio.change(work, protect=unit.name, max_per_voter=most, **other), "goal")

    # 3 goal

    def goal(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        if not work.protect:
            return _to(work, "protect")
        public = work.what.unit(work.protect).number_public
        if work.number is None and work.path and public:
            work = replace(work, number=self.studio.found(work).rows.get(work.kind))
        drawn = None
        if work.goal and not problem:
            try:
                drawn = studio_plan.drawn(work)
            except RankdpError as refusal:
                problem = _sentence(refusal)
        option, epsilon = studio_plan.proposed(work, drawn) if drawn else ("", "1")
        epsilon = work.epsilon or epsilon
        budgets = bars(self.studio.releases, work)
        values = {"drawn": drawn, "epsilon": epsilon, "option": option, "budgets": budgets, "public": public}
        said = studio_plan.meaning(float(positive(epsilon)))
        ledger = str(self.studio.releases.ledger_file)
        return self.page(request, "studio_goal.html", work, problem, **values, meaning=said, ledger=ledger)

    def aimed(self, request: Request, work: Work, form: Form) -> Response:
        goal = work.what.goal(form.get("goal", ""))
        target = _numbered(form.get(f"target-{goal.name}", ""), "the goal", float)
        changes: dict[str, Any] = {"goal": goal.name, "target": target / 100 if goal.unit == "%" else target}
        changes["top"] = _numbered(form.get("top", "10"), "the length of the top list", int)
        if form.get("number", "").strip():
            changes["number"] = _numbered(form["number"], f"the number of {work.what.rows}", int)
        changed = replace(work, **changes, epsilon="")
        studio_plan.drawn(changed)
        return _to(self.studio.change(work, **changes, epsilon="", option=""), "goal", "#answer")

    def chosen(self, request: Request, work: Work, form: Form) -> Response:
        epsilon = form.get("epsilon", "").strip()
        positive(epsilon)
        known = {curve.name for curve in studio_plan.drawn(work).curves} | {work.what.own_choice}
        if form.get("option") not in known:
            raise InputError(f"choose one of {', '.join(sorted(filter(None, known)))}")
        dataset = chosen_ledger(self.studio.releases, form.get("dataset", ""))
        changes = {"epsilon": epsilon, "option": form["option"], "dataset": dataset, "convert": "convert" in form}
        return _to(self.studio.change(work, **changes, title=form.get("title", "").strip()[:200]), "rehearse")

    def budget(self, request: Request, work: Work, form: Form) -> Response:
        name, total = form.get("name", "").strip(), form.get("total", "").strip()
        Ledger.create(self.studio.releases.ledger_file, name, work.protects, total).close()
        return _to(self.studio.change(work, dataset=name), "goal", "#budget")

    # 4 rehearse

    def rehearse(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        if not work.epsilon:
            return _to(work, "goal")
        report, rows = None, 0
        try:
            report, rows = rehearse(work)
        except RankdpError as refusal:
            problem = _sentence(refusal)
        return self.page(request, "studio_rehearse.html", work, problem, report=report, rows=rows)

    def rehearsed(self, request: Request, work: Work, form: Form) -> Response:
        seeds = {"seed": work.seed % 1_000_000 + 1}
        return _to(work if self.studio.releases.find(work.id) else self.studio.change(work, **seeds), "rehearse")

    # 5 release

    def release(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        if not work.epsilon:
            return _to(work, "goal")
        releases = self.studio.releases
        made = releases.find(work.id)
        values: dict[str, Any] = {"making": work.id in releases.making, "budgets": bars(releases, work)}
        values["spent"] = interrupted(made, releases) if made and made.state == "begun" else []
        values["promise"] = work.promise.explain()
        values["meaning"] = studio_plan.meaning(float(positive(work.epsilon)))
        if made and made.state == "finished":
            values["sources"] = {name: (made.place / name).read_text("utf-8") for name in ("release.py", "release.sh")}
        return self.page(request, "studio_release.html", work, problem, **values)

    def released(self, request: Request, work: Work, form: Form) -> Response:
        if self.studio.releases.find(work.id) is None and form.get("seen") != work.seen:
            raise InputError("the settings were changed in another tab: look at them again, nothing was released")
        self.studio.releases.make(work)
        return _to(work, "release")

    def again(self, request: Request, work: Work, form: Form) -> Response:
        fresh = self.studio.keep(replace(work, id=Work().id))
        return _to(fresh, "goal" if work.epsilon else "protect")

    def download(self, request: Request, work: Work, form: Form) -> Response:
        made = self.studio.releases.find(work.id)
        name = request.path_params["name"]
        if made is None or name not in made.files:
            raise HTTPException(404)
        headers = {"Cache-Control": "no-store"}
        return FileResponse(made.place / name, filename=name, headers=headers)

    # 6 look inside

    def inside(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        if not work.epsilon:
            return _to(work, "goal")
        values: dict[str, Any] = {"odds": studio_inside.odds(work.epsilon), "attack": None, "audit": None}
        try:
            if "attack" in request.query_params:
                report, words = studio_inside.attack(work)
                values["attack"] = {"report": report, "words": words, "picture": _picture(report)}
            if "audit" in request.query_params:
                report, words = studio_inside.audit(work)
                values["audit"] = {"report": report, "words": words, "picture": _picture(report)}
        except RankdpError as refusal:
            problem = _sentence(refusal)
        return self.page(request, "studio_inside.html", work, problem, **values)


def _columns(words: str) -> dict[str, str]:
    """``rank_1=Q7, rank_2=Q8`` as a mapping."""
    found = {}
    for part in filter(str.strip, words.split(",")):
        name, sign, column = (piece.strip() for piece in part.partition("="))
        if not (name and sign and column):
            raise InputError(f"columns must be NAME=COLUMN with commas between, such as rank_1=Q7, got {part!r}")
        found[name] = column
    return found


def _sentence(refusal: RankdpError) -> str:
    """A refusal in the words of the pages, with what of a budget is spent."""
    refusal.options = refusal.options or _SPOKEN
    words = "; ".join([str(refusal), *getattr(refusal, "__notes__", ())])
    return f"{words[0].upper()}{words[1:]}."


def _to(work: Work, step: str, part: str = "") -> Response:
    return RedirectResponse(f"/w/{work.id}/{step}{part}", 303)


async def _form(request: Request) -> Form:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BYTES:
            raise HTTPException(413)
    return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=200))


def studio_app(studio: Studio, key: str, port: int) -> Starlette:
    """The application.

    Parameters
    ----------
    studio
        What it works on.
    key, port
        As for ``Locked``.
    """
    pages = _Pages(studio)

    def shown(view: Callable[..., Response]) -> Any:
        async def endpoint(request: Request) -> Response:
            own = [studio.work(request.path_params["work"])] if "work" in request.path_params else []
            return await run_in_threadpool(view, request, *own, {})

        return endpoint

    def sent(view: Callable[..., Response], back: Callable[..., Response]) -> Any:
        async def endpoint(request: Request) -> Response:
            form = await _form(request)
            own = [studio.work(request.path_params["work"])] if "work" in request.path_params else []
            try:
                return await run_in_threadpool(view, request, *own, form)
            except RankdpError as refusal:
                return await run_in_threadpool(back, request, *own, form, _sentence(refusal))

        return endpoint

    nothing: dict[str, Any] = {"work": None, "step": "", "steps": STEPS, "made": None}

    async def missing(request: Request, _: Exception) -> Response:
        return show(request, "studio_missing.html", 404, language="en", **nothing, problem="")

    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, RankdpError)
        return show(request, "studio_missing.html", 422, language="en", **nothing, problem=_sentence(refusal))

    steps = {name: getattr(pages, name) for name in STEPS}
    answers = {
        "file": (pages.said, pages.file),
        "protect": (pages.protected, pages.protect),
        "goal": (pages.aimed, pages.goal),
        "choose": (pages.chosen, pages.goal),
        "budget": (pages.budget, pages.goal),
        "rehearse": (pages.rehearsed, pages.rehearse),
        "release": (pages.released, pages.release),
        "again": (pages.again, pages.release),
    }
    app = Starlette(
        routes=[
            Route("/", shown(pages.open)),
            Route("/open", sent(pages.opened, pages.open), methods=["POST"]),
            Route("/without", sent(pages.without, pages.open), methods=["POST"]),
            *(Route(f"/w/{{work}}/{name}", sent(*views), methods=["POST"]) for name, views in answers.items()),
            *(Route(f"/w/{{work}}/{name}", shown(view)) for name, view in steps.items()),
            Route("/w/{work}/files/{name}", shown(pages.download)),
            static_files(),
        ],
        middleware=[Middleware(Guarded, forms=True), Middleware(Locked, key=key, port=port)],
        exception_handlers={404: missing, RankdpError: refused},
    )
    app.router.redirect_slashes = False
    return app


def studio_config(directory: Path, ledger: Path, key: str, port: int) -> uvicorn.Config:
    """How the studio is served: to this machine only.

    Parameters
    ----------
    directory, ledger
        As for ``Studio``.
    key, port
        As for ``Locked``.
    """
    app = studio_app(Studio(directory, ledger), key, port)
    return uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
