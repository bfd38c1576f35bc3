"""What a respondent gets, and whether a server sends what this version of rankdp would send.

The page of a survey follows from public facts: its title, its items, the mechanism and epsilon. So anybody can compute
it again, with the tables of the noise and the scripts, and compare. ``verify`` does that for every language. It shows
what the server sent to the one who asked, at that moment: a server could still send something else to others.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rankdp.checks import whole
from rankdp.errors import InputError, RankdpError, SystemProblem
from rankdp.report.document import PAGE_FILES
from rankdp.version import __version__
from rankdp_web.browser_tables import MOST_ITEMS
from rankdp_web.pages import STATIC, all_texts, render
from rankdp_web.survey_database import Survey
from rankdp_web.surveys import promised, tables_of

LOADED: Mapping[str, Path] = {
    **{name: STATIC / name for name in ("survey.js", "sampler.js", "sortable.js", "survey.css", "icon.svg")},
    **{f"page/{name}": PAGE_FILES / name for name in ("style.css", "report.css")},
}
"""What the page loads, by its address below ``static/``."""
_STATED = tuple(
    fact.name for fact in fields(Survey) if fact.name not in ("results_key", "day", "open", "listed", "frames")
)
_LISTS = ("items", "descriptions", "pictures")
_UP = "../"  # from /s/ID
_SECONDS = 30
_MOST_BYTES = 20_000_000  # of one download; the page of a hundred items has 1% of it


def respondent_values(survey: Survey, ticket: str | None, *, preview: bool = False) -> dict[str, Any]:
    """What the template ``survey.html`` shows.

    Parameters
    ----------
    survey
        What is asked.
    ticket
        The token that the page brings along; None where respondents have invitations.
    preview
        Whether the page is one for the organiser, which sends nothing.
    """
    known = {name: getattr(survey, name) for name in _STATED} | {
        "version": __version__,
        "private_results": bool(survey.results_key),
        "tables": tables_of(survey),
        "ticket": ticket,
        "preview": preview,
    }
    return {"survey": survey, "known": known, "promised": promised(survey)}


def verify(address: str) -> list[str]:
    """What differs between the page at this address and the one that this version makes of the same public facts.

    Parameters
    ----------
    address
        The link to the page of a survey; the part after a # is not sent.

    Returns
    -------
    list
        A sentence for each difference: the tables, the page in a language, a script or another file. Empty where all
        is the same.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"the address must begin with https:// or http://, got {address}")
    plain = urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    differences: list[str] = []
    for language in all_texts():
        page = _downloaded(f"{plain}?lang={language}")
        differences += [words for words in _page_differences(plain, page, language) if words not in differences]
    for name, path in LOADED.items():
        if _downloaded(urllib.parse.urljoin(plain, f"{_UP}static/{name}")) != path.read_bytes():
            differences.append(f"static/{name} is not that of rankdp {__version__}")
    return differences


def _page_differences(address: str, page: bytes, language: str) -> list[str]:
    known = _known(address, page)
    try:
        whole("the number of items", len(known["items"]), 2, MOST_ITEMS)
        survey = _stated(known)
        values = respondent_values(survey, known["ticket"])
    except RankdpError as refusal:
        return [f"no survey can be what the page states: {refusal}"]
    except (KeyError, TypeError, ValueError, AttributeError):
        return [f"the page does not state the facts of a survey as rankdp {__version__} does"]
    differences = []
    if known.get("version") != __version__:
        differences.append(f"the server has rankdp {known.get('version')}, this is {__version__}: compare with its own")
    made = values["known"]["tables"]
    if known["tables"] != json.loads(json.dumps(made)):
        differences.append(
            f"the tables of the noise are not those of {survey.mechanism} for {len(survey.items)} items at epsilon "
            f"{survey.epsilon}"
        )
    values["known"] |= {"tables": known["tables"], "version": known.get("version")}
    if render("survey.html", language, _UP, **values).encode() != page:
        differences.append(f"the page in {all_texts()[language]['language']} is not that of rankdp {__version__}")
    return differences


def _stated(known: Mapping[str, Any]) -> Survey:
    """The survey that a page says it belongs to."""
    facts: dict[str, Any] = {name: tuple(known[name]) if name in _LISTS else known[name] for name in _STATED}
    return Survey(**facts, results_key="private" if known["private_results"] else "", day="")


def _known(address: str, page: bytes) -> dict[str, Any]:
    """The facts that the page brings along for its scripts."""
    try:
        known = json.loads(page.decode().split('id="known">')[1].split("</script>")[0])["known"]
        return dict(known)
    except (ValueError, LookupError, TypeError):
        raise InputError(f"{address}: this is not the page of a survey that takes answers") from None


def _downloaded(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as reply:
            content: bytes = reply.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as problem:
        closed = "; a closed survey has no page to compare" if problem.code == 410 else ""
        raise InputError(f"{address}: the server answered {problem.code}{closed}") from None
    except (OSError, http.client.HTTPException) as problem:
        reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
        raise SystemProblem(f"{address}: nothing could be downloaded ({reason})") from None
    if len(content) > _MOST_BYTES:
        raise InputError(f"{address}: a page must have at most {_MOST_BYTES:,} bytes")
    return content
