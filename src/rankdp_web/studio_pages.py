"""The studio's pages: what each shows, and what its form says.

A page is a form of plain HTML; what it sends is checked by the library, and a refusal is shown above the same form. The
studio decides nothing about privacy: it calls ``plan`` and the verbs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from rankdp.data.cells import check_items
from rankdp.errors import InputError, RankdpError
from rankdp.planning.situation import LEAST, MOST
from rankdp.privacy.exact import positive
from rankdp.privacy.ledger import Ledger
from rankdp_web import studio_plan
from rankdp_web.pages import show
from rankdp_web.studio_file import NOT_PRIVATE, Found, choices, look
from rankdp_web.studio_kinds import KINDS
from rankdp_web.studio_rehearsal import rehearse
from rankdp_web.studio_release import SCRIPT, Releases, interrupted
from rankdp_web.studio_work import Work

STEPS = ("file", "protect", "goal", "rehearse", "release")
_MOST_WORKS, _MOST_ITEMS, _MOST_NUMBER = 200, 10_000, 10**12
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


def _epsilon(words: str) -> str:
    if not LEAST <= positive(words.strip()) <= MOST:
        raise InputError(f"epsilon must be between {LEAST:g} and {MOST:,.0f}, got {words.strip()[:20]}")
    return words.strip()


class Pages:
    """Each reads a form, or shows a template."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def page(self, request: Request, template: str, work: Work | None, problem: str = "", **values: Any) -> Response:
        """A template with what every page needs; 422 where a problem is shown above it."""
        step = template.removeprefix("studio_").removesuffix(".html")
        made = self.studio.releases.find(work.id) if work else None
        shared = {"work": work, "step": step, "steps": STEPS, "made": made, "problem": problem, "kinds": KINDS}
        return show(request, template, 422 if problem else 200, language="en", **shared, **values)

    # 1 open

    def open(self, request: Request, form: Form, problem: str = "") -> Response:
        """The files of a directory, and the releases made here."""
        at = str(self.studio.directory)
        try:
            at = str(_path(request.query_params.get("at") or at))
            folders, files = choices(at)
        except InputError as refusal:
            folders, files, problem = [], [], problem or str(refusal)
        known = {"at": at, "parent": str(Path(at).parent), "folders": folders, "files": files, "asked": form}
        return self.page(request, "studio_open.html", None, problem, **known, releases=self.studio.releases.all())

    def opened(self, request: Request, form: Form) -> Response:
        """A file was chosen: look at it."""
        path, columns = str(_path(form.get("path", ""))), _columns(form.get("columns", ""))
        found = look(path, columns)
        if found.refusal:
            raise InputError(found.refusal)
        work = self.studio.keep(Work(path=path, kind=found.kinds[0], columns=columns, items=found.items))
        self.studio._found[work.id] = found
        return _to(work, "file")

    def without(self, request: Request, form: Form) -> Response:
        """No data yet: names are numbers."""
        count = _numbered(form.get("count", ""), "the number of items", int)
        if not 2 <= count <= _MOST_ITEMS or form.get("kind") not in KINDS:
            raise InputError(f"the number of items must be from 2 to {_MOST_ITEMS:,}, got {count}")
        names = tuple(f"item {number}" for number in range(1, count + 1))
        return _to(self.studio.keep(Work(kind=form["kind"], items=names, protect="")), "protect")

    def file(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        """What the file is, marked as not private."""
        if not work.path:
            return _to(work, "protect")
        found = self.studio.found(work)
        return self.page(request, "studio_file.html", work, problem, found=found, not_private=NOT_PRIVATE)

    def said(self, request: Request, work: Work, form: Form) -> Response:
        """What should come out, the public names, and what to do with odd rows."""
        kind = form.get("kind", work.kind)
        if kind not in self.studio.found(work).kinds:
            raise InputError(f"this file cannot be read as {kind}")
        if kind != "scores" and "confirmed" not in form:
            raise InputError("confirm the list of names first: everybody will see it")
        listed = tuple(line.strip() for line in form.get("items", "").splitlines() if line.strip())
        changes: dict[str, Any] = {
            "kind": kind,
            "items": work.items if kind == "scores" else check_items(listed),
            "items_confirmed": True,
            "on_problem": "drop" if "drop" in form else "refuse",
            "ties": form.get("ties", "refuse"),
            "outside": "clip" if "clip" in form else "refuse",
            "bounds": (form.get("low", "0").strip(), form.get("high", "1").strip()),
        }
        changes |= {name: name in form for name in ("listed_items_public", "repeated_voters", "keep_voters")}
        changes["length"] = self.studio.found(work).length if changes["listed_items_public"] else 0
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
        """The units, each with its picture and limits."""
        if work.unconfirmed:
            return _to(work, "file")
        limits = {
            unit.name: (*unit.limits, *replace(work, protect=unit.name, epsilon="1", option="").promise.limits)
            for unit in work.what.units
        }
        named = not work.path or work.kind != "comparisons" or "voters" in self.studio.found(work).asks
        return self.page(request, "studio_protect.html", work, problem, limits=limits, voters_named=named)

    def protected(self, request: Request, work: Work, form: Form) -> Response:
        """A unit was chosen."""
        if work.unconfirmed:
            return _to(work, "file")
        unit = work.what.unit(form.get("protect", ""))
        most = _numbered(form.get("max_per_voter", str(work.max_per_voter)), "the most comparisons of a voter", int)
        if most < 1:
            raise InputError(f"the most comparisons of a voter must be at least 1, got {most}")
        other = {} if unit.name == work.protect else {"number": None, "option": "", "epsilon": ""}
        return _to(self.studio.change(work, protect=unit.name, max_per_voter=most, **other), "goal")

    # 3 goal

    def goal(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        """The goals, the planner's answer, the slider and the budget."""
        if not work.protect:
            return _to(work, "protect")
        public = work.number_public
        if work.number is None and work.path and public:
            work = replace(work, number=self.studio.found(work).rows.get(work.kind))
        drawn = None
        if work.goal and not problem and (work.option or not work.what.asked_first):
            try:
                drawn = studio_plan.drawn(work)
            except RankdpError as refusal:
                problem = sentence(refusal)
        option, epsilon = studio_plan.proposed(work, drawn) if drawn else ("", "1")
        epsilon = work.epsilon or epsilon
        budgets = self.studio.releases.bars(work)
        values = {"drawn": drawn, "epsilon": epsilon, "option": option, "budgets": budgets, "public": public}
        said = studio_plan.meaning(float(positive(epsilon)))
        ledger = str(self.studio.releases.ledger_file)
        return self.page(request, "studio_goal.html", work, problem, **values, meaning=said, ledger=ledger)

    def aimed(self, request: Request, work: Work, form: Form) -> Response:
        """A goal was chosen: ask the planner."""
        goal = work.what.goal(form.get("goal", ""))
        target = _numbered(form.get(f"target-{goal.name}", ""), "the goal", float)
        changes: dict[str, Any] = {"goal": goal.name, "target": target / 100 if goal.unit == "%" else target}
        changes["top"] = _numbered(form.get("top", "10"), "the length of the top list", int)
        changes["option"] = form.get("option", "") if work.what.asked_first else ""
        if form.get("number", "").strip():
            changes["number"] = _numbered(form["number"], f"the number of {work.what.rows}", int)
            if not 1 <= changes["number"] <= _MOST_NUMBER:
                raise InputError(f"the number of {work.what.rows} must be from 1 to {_MOST_NUMBER:,}")
        changed = replace(work, **changes, epsilon="")
        studio_plan.drawn(changed)
        return _to(self.studio.change(work, **changes, epsilon=""), "goal", "#answer")

    def chosen(self, request: Request, work: Work, form: Form) -> Response:
        """Epsilon, the option and the budget were chosen."""
        epsilon = _epsilon(form.get("epsilon", ""))
        known = sorted({curve.name for curve in studio_plan.drawn(work).curves} | {work.what.own_choice} - {""})
        if form.get("option") not in known:
            raise InputError(f"choose one of {', '.join(known)}")
        dataset = form.get("dataset", "")
        if dataset and dataset not in {ledger.dataset for ledger in self.studio.releases.ledgers()}:
            raise InputError(f"there is no budget for {dataset!r}")
        changes = {"epsilon": epsilon, "option": form["option"], "dataset": dataset, "convert": "convert" in form}
        return _to(self.studio.change(work, **changes, title=form.get("title", "").strip()[:200]), "rehearse")

    def budget(self, request: Request, work: Work, form: Form) -> Response:
        """Keep a new budget in the ledger."""
        name, total = form.get("name", "").strip(), _epsilon(form.get("total", ""))
        Ledger.create(self.studio.releases.ledger_file, name, work.protects, total).close()
        return _to(self.studio.change(work, dataset=name), "goal", "#budget")

    # 4 rehearse

    def rehearse(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        """What a reader would see, of invented rows."""
        if not work.epsilon:
            return _to(work, "goal")
        report, rows = None, 0
        try:
            report, rows = rehearse(work)
        except RankdpError as refusal:
            problem = sentence(refusal)
        return self.page(request, "studio_rehearse.html", work, problem, report=report, rows=rows)

    def rehearsed(self, request: Request, work: Work, form: Form) -> Response:
        """Invent others."""
        seeds = {"seed": work.seed % 1_000_000 + 1}
        return _to(work if self.studio.releases.find(work.id) else self.studio.change(work, **seeds), "rehearse")

    # 5 release

    def release(self, request: Request, work: Work, form: Form, problem: str = "") -> Response:
        """The button, or what became of it."""
        if not work.epsilon:
            return _to(work, "goal")
        releases = self.studio.releases
        made = releases.find(work.id)
        values: dict[str, Any] = {"making": work.id in releases.making, "budgets": releases.bars(work)}
        values["spent"] = interrupted(made, releases) if made and made.state == "begun" else []
        values["promise"] = work.promise.explain()
        values["meaning"] = studio_plan.meaning(float(positive(work.epsilon)))
        if made and made.state == "finished":
            values["script"] = (made.place / SCRIPT).read_text("utf-8")
        return self.page(request, "studio_release.html", work, problem, **values)

    def released(self, request: Request, work: Work, form: Form) -> Response:
        """The button was pressed."""
        if self.studio.releases.find(work.id) is None and form.get("seen") != work.seen:
            raise InputError("the settings were changed in another tab: look at them again, nothing was released")
        self.studio.releases.make(work)
        return _to(work, "release")

    def again(self, request: Request, work: Work, form: Form) -> Response:
        """The same settings as another release."""
        fresh = self.studio.keep(replace(work, id=Work().id))
        return _to(fresh, "goal" if work.epsilon else "protect")

    def download(self, request: Request, work: Work, form: Form) -> Response:
        """A file of a release, and no other."""
        made = self.studio.releases.find(work.id)
        name = request.path_params["name"]
        if made is None or name not in made.files:
            raise HTTPException(404)
        headers = {"Cache-Control": "no-store"}
        return FileResponse(made.place / name, filename=name, headers=headers)


def _path(words: str) -> Path:
    try:
        return Path(words.strip()).expanduser().resolve()
    except (ValueError, RuntimeError, OSError):
        raise InputError(f"{words.strip()!r} is not a path of this machine") from None


def _columns(words: str) -> dict[str, str]:
    """``rank_1=Q7, rank_2=Q8`` as a mapping."""
    found = {}
    for part in filter(str.strip, words.split(",")):
        name, sign, column = (piece.strip() for piece in part.partition("="))
        if not (name and sign and column):
            raise InputError(f"columns must be NAME=COLUMN with commas between, such as rank_1=Q7, got {part!r}")
        found[name] = column
    return found


def sentence(refusal: RankdpError | OSError) -> str:
    """A refusal in the words of the pages, or the system's own, with what of a budget is spent."""
    if isinstance(refusal, RankdpError):
        refusal.options = refusal.options or _SPOKEN
    said = f"the system refused: {refusal.strerror or refusal}" if isinstance(refusal, OSError) else str(refusal)
    words = "; ".join([said, *getattr(refusal, "__notes__", ())])
    return f"{words[0].upper()}{words[1:]}."


def _to(work: Work, step: str, part: str = "") -> Response:
    return RedirectResponse(f"/w/{work.id}/{step}{part}", 303)
