"""Releases of the studio: each is made once, whatever is pressed, reloaded, opened twice or killed.

Each draft has a directory, named after it. The order is

    1. ``draft.json`` is created there, and must be new: who finds it there does not draw
    2. the verb reads, refuses, charges the ledger, draws and writes the results, by the rules of ``privacy.ledger``
    3. the script is written, and ``draft.json`` is replaced by one that says "finished"

So a second press, a second tab and a second server find 1 and show what they find. A refusal before the charge, or a
charge that was given back, removes ``draft.json``: the same button works again. Whatever else goes wrong leaves it
there: a kill (it says "begun" and nobody works on it), or a failure after the charge (it says "failed"). That release
is never drawn again; the ledger's entry, found by the name of the draft in its description, says what is spent, and a
new draft is a new release.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rankdp
from rankdp.aggregation.aggregate_report import aggregate_report
from rankdp.aggregation.estimates import aggregate_file
from rankdp.data.atomic import NewFile, make_directory, sync, write_whole
from rankdp.data.score_files import read_scores
from rankdp.errors import InputError, RankdpError
from rankdp.privacy.exact import positive, shown
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.ledger.entries import Entry
from rankdp.privacy.release import Release
from rankdp.publish.board_report import board_report
from rankdp.publish.election_report import election_report
from rankdp.report.document import Report
from rankdp.report.plots import need_matplotlib
from rankdp_web.studio_draft import Draft
from rankdp_web.studio_reports import scores_report
from rankdp_web.studio_script import ITEMS, result_name, script

FOLDER = "rankdp-studio"
SCRIPT = "release.py"
_STATE = "draft.json"
_REPORTS: dict[str, Callable[..., Report]] = {"rank": board_report, "elect": election_report}


@dataclass(frozen=True, slots=True)
class Bar:
    """A budget as a bar: what is spent, what this release would take, what is left."""

    dataset: str
    protects: str
    same_unit: bool
    """Whether it is for what the draft protects; else a charge must be converted."""
    total: float
    spent: float
    this: float
    words: str
    fits: bool
    """Whether the release can be charged: it is not above what is left, or is converted, which only a charge tells."""


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """A release that was begun: ``state`` is begun, failed or finished, and ``words`` say more."""

    draft: Draft
    state: str
    words: tuple[str, ...]
    files: tuple[str, ...]
    place: Path

    @property
    def page(self) -> str:
        """The content of the published page, to be shown inside another."""
        text = (self.place / "result.html").read_text("utf-8")
        return text.partition("<main class=report>")[2].partition("<p class=downloads>")[0].partition("</main>")[0]


class Releases:
    """The releases below a directory, and the file of budgets, which need not be there."""

    def __init__(self, directory: Path, ledger: Path) -> None:
        self.folder, self.ledger_file = directory / FOLDER, ledger
        self._lock = threading.Lock()
        self.making: set[str] = set()
        """The drafts that this server is releasing just now."""

    def ledgers(self) -> list[Ledger]:
        """One for each data set with a budget; none where there is no file."""
        if not self.ledger_file.is_file():
            return []
        from rankdp.privacy.ledger.entries import all_budgets
        from rankdp.privacy.store import Store

        store = Store(self.ledger_file)
        try:
            names = sorted({budget.dataset for budget in store.read(all_budgets)})
        finally:
            store.close()
        return [Ledger.open(self.ledger_file, name) for name in names]

    def bars(self, draft: Draft) -> list[Bar]:
        """Every budget of the ledger, which is only read, and what a draft would be charged."""
        asked = float(positive(draft.epsilon)) if draft.epsilon else 0.0
        found = []
        for ledger in self.ledgers():
            with ledger:
                for budget in ledger.budgets:
                    total, spent = budget.terms.epsilon, budget.standing.epsilon
                    words = f"spent {shown(spent)} of {shown(total)}, left {shown(budget.remaining, up=False)}"
                    same = budget.protects == draft.protects
                    fits = not same or not draft.epsilon or positive(draft.epsilon) <= budget.remaining
                    numbers = (float(total), float(spent), asked)
                    found.append(Bar(ledger.dataset, budget.protects, same, *numbers, words, fits))
        return sorted(found, key=lambda bar: not bar.same_unit)

    def find(self, name: str) -> ReleaseRecord | None:
        """The release of a draft, None where it was not begun."""
        if not name.isalnum():
            return None
        place = self.folder / name
        try:
            facts = json.loads((place / _STATE).read_text("utf-8"))
            draft = Draft.from_dict(facts["draft"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        files = sorted(one.name for one in place.iterdir() if one.is_file() and not one.name.startswith("."))
        return ReleaseRecord(
            draft, facts["state"], tuple(facts["words"]), tuple(f for f in files if f != _STATE), place
        )

    def all(self) -> list[ReleaseRecord]:
        """Every release, the newest first."""
        if not self.folder.is_dir():
            return []
        newest = sorted(self.folder.iterdir(), key=lambda place: -place.stat().st_mtime)
        return [made for place in newest if (made := self.find(place.name))]

    def entries(self, draft: Draft) -> list[Entry]:
        """What the ledger has about a draft."""
        if not draft.dataset:
            return []
        with Ledger.open(self.ledger_file, draft.dataset) as ledger:
            return [entry for entry in ledger.history() if entry.what.endswith(_note(draft))]

    def make(self, draft: Draft) -> ReleaseRecord:
        """The release of a draft: made now, or found; what cannot be released is refused and not charged."""
        place = self.folder / draft.id
        with self._lock:  # a second press waits for the first
            if (made := self.find(draft.id)) is not None:
                return made
            make_directory(place)
            if not self._begin(draft):
                raise InputError("another studio is making this release just now: look again in a moment")
            self.making.add(draft.id)
            try:
                self._say(draft, place, "finished", self._publish(draft, place))
            except BaseException as problem:
                self._failed(draft, place, problem)
                raise
            finally:
                self.making.discard(draft.id)
        found = self.find(draft.id)
        assert found is not None
        return found

    def _failed(self, draft: Draft, place: Path, problem: BaseException) -> None:
        """Note a failure that may have let something out; after any other one the draft can be released as before."""
        entries = self.entries(draft)
        written = any(one.name.startswith(("result", "private", "noisy")) for one in place.iterdir())
        if written or any(entry.state != "cancelled" for entry in entries):
            self._say(draft, place, "failed", (f"{problem}.", *(f"{entry.summary}." for entry in entries)))
        else:
            shutil.rmtree(place)

    def _begin(self, draft: Draft) -> bool:
        """Claim the draft for this call, on disk; False where another call has."""
        path = self.folder / draft.id / _STATE
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"state": "begun", "words": [], "draft": draft.to_dict()}, file)
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
        return True

    def _say(self, draft: Draft, place: Path, state: str, words: tuple[str, ...]) -> None:
        content = json.dumps({"state": state, "words": list(words), "draft": draft.to_dict()})
        write_whole(place / _STATE, content.encode())

    def _publish(self, draft: Draft, place: Path) -> tuple[str, ...]:
        """Charge, draw and write; sentences for the curator."""
        if not draft.path:
            raise InputError("there are no data yet: open a file first")
        if draft.unconfirmed:
            raise InputError(
                "the list of names was found in the file and nobody has confirmed that it may be public: confirm it on "
                "the page about the file"
            )
        verb, settings = draft.call
        with NewFile(place / ITEMS) as file:
            file.write("".join(f"{item}\n" for item in draft.items).encode())
        notes: list[str] = []
        ledger = None
        if draft.dataset:
            ledger = Ledger.open(self.ledger_file, draft.dataset).using(convert=draft.convert, note=_note(draft))
        if verb in _REPORTS:

            def deliver(release: Release[Any], leaves: Callable[[], None]) -> None:
                _REPORTS[verb](release, draft.heading).write_all(_outputs(place), leaves)

            getattr(rankdp, verb)(draft.path, draft.epsilon, ledger=ledger, deliver=deliver, **settings)
        else:
            heard = {"told": lambda *parts: notes.append("".join(map(str, parts)))} if draft.kind == "rankings" else {}
            target = place / result_name(draft)
            release = getattr(rankdp, verb)(draft.path, target, draft.epsilon, ledger=ledger, **heard, **settings)
            _together(draft, release).write_all(_outputs(place))
        charged = str(self.ledger_file) if draft.dataset else None
        write_whole(place / SCRIPT, script(draft, place, charged).encode())
        told = [f"Charged once: {entry.summary}." for entry in self.entries(draft)]
        return (*(told or ["No budget is kept: nothing was charged."]), *notes)


def _together(draft: Draft, release: Release[Path]) -> Report:
    """What released files say, from those files alone."""
    if draft.kind == "scores":
        table = read_scores(release.value, draft.columns.get("item"), draft.columns.get("score"))
        noisy = dict(zip(table.names, table.scores.tolist(), strict=True))
        return scores_report(Release(noisy, release.guarantee, release.provenance), draft)
    try:
        return aggregate_report(aggregate_file(release.value), title=draft.heading)
    except RankdpError as refusal:  # too few, or lists of one item: the copies are released all the same
        facts: dict[str, Any] = {"rankings": release.value.name}
        return Report(title=draft.heading, records=[facts], facts=lambda: facts, words=[f"{refusal}."], release=release)


def _outputs(place: Path) -> list[Path]:
    pictures = [".png"]
    try:
        need_matplotlib()
    except RankdpError:
        pictures = []
    return [place / f"result{ending}" for ending in (".csv", ".json", *pictures, ".html")]


def _note(draft: Draft) -> str:
    return f"studio {draft.id}"


def interrupted(made: ReleaseRecord, releases: Releases) -> list[str]:
    """What is known about a release that nobody finished."""
    spent: list[str] = []
    with suppress(RankdpError):
        spent = [entry.summary for entry in releases.entries(made.draft)]
    if not made.draft.dataset:
        spent = ["no budget was kept for it"]
    return [f"{words[0].upper()}{words[1:]}." for words in spent or ["nothing was charged for it"]]
