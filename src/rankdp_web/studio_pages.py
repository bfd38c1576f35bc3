"""The studio's pages: what each shows, and what its form says.

A page is a form of plain HTML; what it sends is checked by the library, and a refusal is shown above the same form. The
studio decides nothing about privacy: it calls ``plan`` and the verbs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from rankdp.data.atomic import make_directory, write_whole
from rankdp.data.cells import check_items
from rankdp.data.private_files import tighten
from rankdp.errors import InputError, RankdpError
from rankdp.planning.situation import LEAST, MOST
from rankdp.privacy.exact import positive, rational
from rankdp.privacy.ledger import Ledger
from rankdp.report.results import listed
from rankdp_web import studio_plan
from rankdp_web.pages import show
from rankdp_web.studio_draft import Draft
from rankdp_web.studio_file import NOT_PRIVATE, FileSummary, choices, look
from rankdp_web.studio_kinds import KINDS
from rankdp_web.studio_progress import Progress
from rankdp_web.studio_rehearsal import rehearse
from rankdp_web.studio_release import SCRIPT, Releases, interrupted
from rankdp_web.studio_script import command

STEPS = ("file", "protect", "rule", "goal", "budget", "rehearse", "release")
DRAFTS = ".drafts"
_MOST_DRAFTS, _SHOWN_DRAFTS, _MOST_ITEMS, _MOST_NUMBER = 200, 10, 10_000, 10**12
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
    """What the pages need: unfinished drafts, files that were read, and releases.

    Parameters
    ----------
    directory
        Where files are looked for first, and where results go.
    ledger
        The file of budgets; it need not be there yet.
    """

    def __init__(self, directory: Path, ledger: Path) -> None:
        self.directory, self.releases = directory, Releases(directory, ledger)
        self.progress = Progress()
        self._place = self.releases.folder / DRAFTS
        self._found: dict[str, FileSummary] = {}

    def draft(self, name: str) -> Draft:
        """The draft of this name: released, or under way."""
        made = self.releases.find(name)
        draft = made.draft if made else self._read(name)
        if draft is None:
            raise HTTPException(404)
        return draft

    def _read(self, name: str) -> Draft | None:
        """A draft that was kept, None where there is none that can be read."""
        if not name.isalnum():
            return None
        try:
            return Draft.from_dict(json.loads((self._place / f"{name}.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, draft: Draft) -> Draft:
        """Keep a draft in a file, so that it survives the studio; the oldest are removed when there are many.

        Drafts name what is in a file before anybody has confirmed that it may be public: only their owner reaches them.
        """
        make_directory(self._place)
        tighten(self._place)
        write_whole(self._place / f"{draft.id}.json", json.dumps(draft.to_dict()).encode())
        for old in self._kept()[_MOST_DRAFTS:]:
            old.unlink(missing_ok=True)
            self._found.pop(old.stem, None)
        return draft

    def _kept(self) -> list[Path]:
        """The files of drafts, the newest first."""
        return sorted(self._place.glob("*.json"), key=lambda file: -file.stat().st_mtime)

    def unfinished(self) -> list[Draft]:
        """The newest drafts that were not released."""
        read = (self._read(file.stem) for file in self._kept() if self.releases.find(file.stem) is None)
        return [draft for draft in read if draft is not None and draft.path][:_SHOWN_DRAFTS]

    def open(self, path: str, columns: Mapping[str, str]) -> Draft:
        """A new draft about a file, or the sentence that says why the file cannot be read."""
        with self.progress.of("Opening the file"):
            found = look(path, columns)
        if found.refusal:
            raise InputError(found.refusal)
        draft = self.keep(Draft(path=path, kind=found.kinds[0], columns=columns, items=found.items))
        self._found[draft.id] = found
        return draft

    def change(self, draft: Draft, **values: Any) -> Draft:
        """The draft with other settings. One that was released stays as it is: another one begins."""
        changed = replace(draft, **values)
        if changed == draft:
            return draft
        return self.keep(replace(changed, id=Draft().id) if self.releases.find(draft.id) else changed)

    def found(self, draft: Draft) -> FileSummary:
        """What the file of a draft is."""
        if draft.id not in self._found:
            with self.progress.of("Opening the file"):
                self._found[draft.id] = look(draft.path, draft.columns)
        return self._found[draft.id]


def _numbered(words: str, name: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(words.strip().replace(",", ""))
    except ValueError:
        raise InputError(f"{name} must be a {'whole ' * (kind is int)}number, got {words.strip()!r}") from None


def _epsilon(words: str, name: str = "epsilon") -> str:
    if not rational(LEAST, name) <= positive(words.strip(), name) <= MOST:
        raise InputError(f"{name} must be between {LEAST:g} and {MOST:,.0f}, got {words.strip()[:20]}")
    return words.strip()


class Pages:
    """Each reads a form, or shows a template."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def page(self, request: Request, template: str, draft: Draft | None, problem: str = "", **values: Any) -> Response:
        """A template with what every page needs; 422 where a problem is shown above it."""
        step = template.removeprefix("studio_").removesuffix(".html")
        made = self.studio.releases.find(draft.id) if draft else None
        steps = [name for name in STEPS if name != "rule" or (draft and draft.what.asked_first)]
        shared = {"draft": draft, "step": step, "steps": steps, "made": made, "problem": problem, "kinds": KINDS}
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
        before = {"releases": self.studio.releases.all(), "drafts": self.studio.unfinished()}
        return self.page(request, "studio_open.html", None, problem, **known, **before)

    def opened(self, request: Request, form: Form) -> Response:
        """A file was chosen: look at it."""
        return _to(self.studio.open(str(_path(form.get("path", ""))), _columns(form.get("columns", ""))), "file")

    def without(self, request: Request, form: Form) -> Response:
        """No data yet: names are numbers."""
        count = _numbered(form.get("count", ""), "the number of items", int)
        if not 2 <= count <= _MOST_ITEMS or form.get("kind") not in KINDS:
            raise InputError(f"the number of items must be from 2 to {_MOST_ITEMS:,}, got {count}")
        names = tuple(f"item {number}" for number in range(1, count + 1))
        return _to(self.studio.keep(Draft(kind=form["kind"], items=names, protect="")), "protect")

    def file(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """What the file is, marked as not private."""
        if not draft.path:
            return _to(draft, "protect")
        found = self.studio.found(draft)
        settings = _file_settings(draft, form) if form else {}
        if settings.get("kind") in found.kinds:  # a refused form keeps what was typed
            draft = replace(draft, **settings)
        return self.page(request, "studio_file.html", draft, problem, found=found, not_private=NOT_PRIVATE)

    def said(self, request: Request, draft: Draft, form: Form) -> Response:
        """What should come out, the public names, and what to do with odd rows."""
        changes = _file_settings(draft, form)
        kind = changes["kind"]
        if kind not in self.studio.found(draft).kinds:
            raise InputError(f"this file cannot be read as {kind}")
        if kind != "scores":
            if not changes["items_confirmed"]:
                raise InputError("confirm the list of names first: everybody will see it")
            check_items(changes["items"])
        changes["items_confirmed"] = True
        if "drop" in self.studio.found(draft).asks and "drop" not in form:
            raise InputError("the file has damaged rows: skip them, or repair the file and open it again")
        if kind != "scores":
            _check_gone(kind, sorted(set(self.studio.found(draft).items) - set(changes["items"])), "drop" in form)
        changes["length"] = self.studio.found(draft).length if changes["listed_items_public"] else 0
        if kind != draft.kind:
            changes |= {"protect": "", "goal": "", "target": None, "option": "", "epsilon": "", "number": None}
        if kind == "scores":
            low, high = replace(draft, bounds=changes["bounds"]).numeric_bounds
            lowest, highest = self.studio.found(draft).span
            if changes["outside"] == "refuse" and not low <= lowest <= highest <= high:
                raise InputError(
                    f"some scores are not between {low:g} and {high:g}: name bounds that hold for every score, or move "
                    "scores outside to the nearest of them"
                )
        if len(changes["items"]) < 2:
            raise InputError("there must be at least two names to put in order")
        return _to(self._with_found(draft, **changes), "protect")

    def _with_found(self, draft: Draft, **changes: Any) -> Draft:
        found = self.studio.found(draft)
        changed = self.studio.change(draft, **changes)
        self.studio._found[changed.id] = found
        return changed

    # 2 protect

    def protect(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """The units, each with its picture and limits."""
        if draft.unconfirmed:
            return _to(draft, "file")
        limits = {
            unit.name: (*unit.limits, *replace(draft, protect=unit.name, epsilon="1", option="").promise.limits)
            for unit in draft.what.units
        }
        named = not draft.path or draft.kind != "comparisons" or "voters" in self.studio.found(draft).asks
        return self.page(request, "studio_protect.html", draft, problem, limits=limits, voters_named=named, asked=form)

    def protected(self, request: Request, draft: Draft, form: Form) -> Response:
        """A unit was chosen."""
        if draft.unconfirmed:
            return _to(draft, "file")
        unit = draft.what.unit(form.get("protect", ""))
        most = _numbered(form.get("max_per_voter", str(draft.max_per_voter)), "the most comparisons of a voter", int)
        if most < 1:
            raise InputError(f"the most comparisons of a voter must be at least 1, got {most}")
        if unit.name == "outcome" and draft.path and "outcomes" in self.studio.found(draft).asks:
            raise InputError(
                "outcomes are missing in the file, and skipping those rows would tell which: protect one comparison or "
                "everything a person said"
            )
        other = {} if unit.name == draft.protect else {"number": None, "option": "", "epsilon": ""}
        changed = self.studio.change(draft, protect=unit.name, max_per_voter=most, **other)
        return _to(changed, "rule" if draft.what.asked_first else "goal")

    # 3 the rule of an election

    def rule(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """The rules that count ballots."""
        if not draft.protect:
            return _to(draft, "protect")
        return self.page(request, "studio_rule.html", draft, problem)

    def ruled(self, request: Request, draft: Draft, form: Form) -> Response:
        """A rule was chosen."""
        if form.get("option") not in draft.what.option_words:
            raise InputError(f"choose one of {', '.join(draft.what.option_words)}")
        other = {} if form["option"] == draft.option else {"goal": "", "target": None, "epsilon": ""}
        return _to(self.studio.change(draft, option=form["option"], **other), "goal")

    # 4 goal

    def goal(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """The goals, three cards from public numbers, and the slider."""
        if not draft.protect:
            return _to(draft, "protect")
        if draft.what.asked_first and not draft.option:
            return _to(draft, "rule")
        public = draft.number_public
        if draft.number is None and draft.path and public:
            draft = replace(draft, number=self.studio.found(draft).rows.get(draft.kind))
        answer = None
        if draft.goal and "goal" not in form:
            try:
                with self.studio.progress.of("Planning"):
                    answer = studio_plan.answer(draft)
            except RankdpError as refusal:
                problem = problem or sentence(refusal)
        epsilon = form.get("epsilon", "") or draft.epsilon or (answer.cards[1].epsilon if answer else "1")
        values = {
            "answer": answer,
            "epsilon": epsilon,
            "public": public,
            "asked": form,
            "goals": studio_plan.goals(draft),
        }
        return self.page(request, "studio_goal.html", draft, problem, **values)

    def aimed(self, request: Request, draft: Draft, form: Form) -> Response:
        """A goal was chosen: ask the planner."""
        goal = draft.what.goal(form.get("goal", ""))
        target = _numbered(form.get(f"target-{goal.name}", ""), "the goal", float)
        changes: dict[str, Any] = {"goal": goal.name, "target": target / 100 if goal.unit == "%" else target}
        changes["top"] = _numbered(form.get("top", "10"), "the length of the top list", int)
        if not draft.what.asked_first:
            changes["option"] = ""
        if form.get("number", "").strip():
            changes["number"] = _numbered(form["number"], f"the number of {draft.what.rows}", int)
            if not 1 <= changes["number"] <= _MOST_NUMBER:
                raise InputError(f"the number of {draft.what.rows} must be from 1 to {_MOST_NUMBER:,}")
        with self.studio.progress.of("Planning"):
            studio_plan.answer(replace(draft, **changes, epsilon=""))
        return _to(self.studio.change(draft, **changes, epsilon=""), "goal", "#answer")

    def chosen(self, request: Request, draft: Draft, form: Form) -> Response:
        """Epsilon and the option were chosen."""
        card = form.get("card", "own")
        epsilon = _epsilon(form.get("epsilon", "") if card == "own" else card)
        known = sorted({curve.name for curve in studio_plan.answer(draft).curves} | {draft.what.own_choice} - {""})
        if form.get("option") not in known:
            raise InputError(f"choose one of {', '.join(known)}")
        changes = {"epsilon": epsilon, "option": form["option"], "title": form.get("title", "").strip()[:200]}
        return _to(self.studio.change(draft, **changes), "budget")

    # 5 budget

    def budget(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """The budgets, and whether the release fits."""
        if not draft.epsilon:
            return _to(draft, "goal")
        bars, ledger = self.studio.releases.bars(draft), str(self.studio.releases.ledger_file)
        chosen = draft.dataset or next((bar.dataset for bar in bars if bar.same_unit and bar.fits), "")
        return self.page(
            request, "studio_budget.html", draft, problem, budgets=bars, chosen=chosen, ledger=ledger, asked=form
        )

    def kept(self, request: Request, draft: Draft, form: Form) -> Response:
        """Keep a new budget in the ledger."""
        name, total = form.get("name", "").strip(), _epsilon(form.get("total", ""), "the total epsilon")
        Ledger.create(self.studio.releases.ledger_file, name, draft.protects, total).close()
        return _to(self.studio.change(draft, dataset=name), "budget")

    def charged(self, request: Request, draft: Draft, form: Form) -> Response:
        """A budget was chosen, or none."""
        dataset = form.get("dataset", "")
        bars = {bar.dataset: bar for bar in self.studio.releases.bars(draft)}
        if dataset and dataset not in bars:
            raise InputError(f"there is no budget for {dataset!r}")
        if dataset and not bars[dataset].fits:
            raise InputError(f"epsilon {draft.epsilon} does not fit the budget of {dataset}: {bars[dataset].words}")
        return _to(self.studio.change(draft, dataset=dataset, convert="convert" in form), "rehearse")

    # 6 rehearse

    def rehearse(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """What a reader would see, of invented rows."""
        if not draft.epsilon:
            return _to(draft, "goal")
        report, rows = None, 0
        try:
            with self.studio.progress.of("Rehearsing"):
                report, rows = rehearse(draft)
        except RankdpError as refusal:
            problem = sentence(refusal)
        return self.page(request, "studio_rehearse.html", draft, problem, report=report, rows=rows)

    def rehearsed(self, request: Request, draft: Draft, form: Form) -> Response:
        """Invent others."""
        seeds = {"seed": draft.seed % 1_000_000 + 1}
        return _to(draft if self.studio.releases.find(draft.id) else self.studio.change(draft, **seeds), "rehearse")

    # 7 release

    def release(self, request: Request, draft: Draft, form: Form, problem: str = "") -> Response:
        """The button, or what became of it."""
        if not draft.epsilon:
            return _to(draft, "goal")
        releases = self.studio.releases
        made = releases.find(draft.id)
        values: dict[str, Any] = {"making": draft.id in releases.making, "budgets": releases.bars(draft)}
        values["spent"] = interrupted(made, releases) if made and made.state == "begun" else []
        values["promise"] = draft.promise.explain()
        if made and made.state == "finished":
            values["script"] = (made.place / SCRIPT).read_text("utf-8")
            values["command"] = command(draft, made.place, str(releases.ledger_file) if draft.dataset else None)
        return self.page(request, "studio_release.html", draft, problem, **values)

    def released(self, request: Request, draft: Draft, form: Form) -> Response:
        """The button was pressed."""
        if self.studio.releases.find(draft.id) is None and form.get("seen") != draft.seen:
            raise InputError("the settings were changed in another tab: look at them again, nothing was released")
        with self.studio.progress.of("Making the release"):
            self.studio.releases.make(draft)
        return _to(draft, "release")

    def again(self, request: Request, draft: Draft, form: Form) -> Response:
        """The same settings as another release."""
        fresh = self.studio.keep(replace(draft, id=Draft().id))
        return _to(fresh, "goal" if draft.epsilon else "protect")

    def download(self, request: Request, draft: Draft, form: Form) -> Response:
        """A file of a release, and no other."""
        made = self.studio.releases.find(draft.id)
        name = request.path_params["name"]
        if made is None or name not in made.files:
            raise HTTPException(404)
        headers = {"Cache-Control": "no-store"}
        return FileResponse(made.place / name, filename=name, headers=headers)


def _file_settings(draft: Draft, form: Form) -> dict[str, Any]:
    """The settings of a draft that the form about its file holds, not checked yet."""
    kind = form.get("kind", draft.kind)
    names = tuple(line.strip() for line in form.get("items", "").splitlines() if line.strip())
    return {
        "kind": kind,
        "items": draft.items if kind == "scores" else names,
        "items_confirmed": "confirmed" in form,
        "on_problem": "drop" if "drop" in form else "refuse",
        "ties": form.get("ties", "refuse"),
        "outside": "clip" if "clip" in form else "refuse",
        "bounds": (form.get("low", "0").strip(), form.get("high", "1").strip()),
        **{name: name in form for name in ("listed_items_public", "repeated_voters", "keep_voters")},
    }


def _check_gone(kind: str, gone: Sequence[str], skipped: bool) -> None:
    """Refuse a list of names without some that the rows use, where those rows cannot be skipped or are not."""
    if gone and kind != "comparisons":
        raise InputError(f"the {kind} name {listed(gone[:4], 'and')}: put back what you took out, or change the file")
    if gone and not skipped:
        raise InputError(f"some comparisons name {listed(gone[:4], 'and')}: skip them, or put back what you took out")


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
    """A refusal in the words of the pages, or the system's own, and what it cost of a budget."""
    if isinstance(refusal, RankdpError):
        refusal.options = refusal.options or _SPOKEN
    said = f"the system refused: {refusal.strerror or refusal}" if isinstance(refusal, OSError) else str(refusal)
    words = "; ".join([said, *getattr(refusal, "__notes__", ())])
    return f"{words[0].upper()}{words[1:]}."


def _to(draft: Draft, step: str, part: str = "") -> Response:
    return RedirectResponse(f"/w/{draft.id}/{step}{part}", 303)
