"""A survey from its opening to its export: what organisers do, and what an answer must be.

A respondent's browser draws a synthetic ranking (``static/sampler.js``) from tables that ``browser_tables`` computed,
and sends that and nothing else. So what the collector holds is a file of synthetic rankings under the promise of the
mechanism, as ``rankdp privatize`` would have made it, and the same functions read it.

An answer comes with a token, by which it is stored once. An invitation is a token that was given to a person. Where
everybody may answer the page brings one along, a *ticket*: 128 random bits with their keyed hash, so that the server
need not remember the tickets that it gave out.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from os import PathLike
from typing import Any

import numpy as np

from rankdp.checks import whole
from rankdp.data.cells import check_items
from rankdp.data.files import open_writer
from rankdp.data.frames import OFFSET
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Setting
from rankdp.inference.draws import reach
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.registry import Protect, check_choice, mechanism, named
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.exact import Real, positive, shown
from rankdp.privacy.guarantee import WEAK_EPSILON, WHOLE_RANKING, Guarantee, odds_factor
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Provenance, Release, released
from rankdp_web.browser_tables import MOST_ITEMS, browser_tables, survey_mechanism
from rankdp_web.survey_database import BATCH, Survey, SurveyDatabase, today, token_hash
from rankdp_web.survey_plan import kept, sure, worst_error

_LONGEST_TEXT = 500
LONGEST_NOTICE = 5000
_LARGEST_PICTURE = 200 * 1024  # a hundred of them load in a minute on a slow phone
PICTURES = (("png", b"\x89PNG\r\n\x1a\n", b""), ("jpeg", b"\xff\xd8\xff", b""), ("webp", b"RIFF", b"WEBP"))
"""What a picture may be: its ending, how it begins, and what its first bytes contain."""
_MOST_INVITATIONS = 1_000_000
_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # none that looks like another


def create_survey(
    database: SurveyDatabase,
    title: str,
    items: Iterable[Any],
    epsilon: Real,
    *,
    ledger: Ledger | None = None,
    **settings: Any,
) -> Survey:
    """Open a new survey (``open_survey``).

    Parameters
    ----------
    database
        Where it is kept.
    title, items, epsilon
        As in ``new_survey``.
    ledger
        A budget to be charged.
    **settings
        As in ``new_survey``.
    """
    survey, files = new_survey(title, items, epsilon, **settings)
    open_survey(database, survey, files, ledger)
    return survey


def open_survey(
    database: SurveyDatabase, survey: Survey, pictures: Mapping[str, bytes], ledger: Ledger | None = None
) -> None:
    """Open a survey. A ledger is charged first: what all respondents together are promised, which is epsilon each.

    Parameters
    ----------
    database
        Where it is kept.
    survey, pictures
        As ``new_survey`` returned them.
    ledger
        A budget to be charged.
    """
    made, bits = mechanism_of(survey), SecureBits()
    with spending(ledger, guarantee_of(survey), f"survey {survey.id}", bits) as charge:
        charge.leaves()
        database.add(survey, pictures)
        charge.commit(Provenance.now(type(made).name, parameters(survey), bits))


def new_survey(
    title: str,
    items: Iterable[Any],
    epsilon: Real,
    *,
    protect: Protect = "ranking",
    question: str = "",
    mechanism: str = "auto",
    tiers: Sequence[int] | None = None,
    invited: bool = False,
    results_key: str = "",
    weak_promise_accepted: bool = False,
    rank_top: int = 0,
    pictures: Mapping[str, bytes] | None = None,
    **page: Any,
) -> tuple[Survey, dict[str, bytes]]:
    """A survey that no database has yet, and its pictures by their names.

    Parameters
    ----------
    title
        What respondents read first.
    items
        What they rank: 2 to 100 names.
    epsilon
        The privacy of what ``protect`` says.
    protect
        What is protected in an answer: the whole "ranking", or one item's "position".
    question
        A sentence or two below the title.
    mechanism
        "kendall-ball" (up to 60 items), "optimal" (up to five), "reinsertion", "tiers" or "offset-tiers"; "auto" takes
        the one whose results are most precise: kendall-ball for whole rankings of up to 60 items.
    tiers
        The sizes of tiers.
    invited
        Whether an answer needs an invitation (``invite``).
    results_key
        A word without which the results are not shown; empty for everybody's results.
    weak_promise_accepted
        Whether epsilon may be above 10. Respondents then read that the survey offers almost no protection.
    rank_top
        How many items respondents list, the best first; 0 for a ranking of all. Which items they list is protected too,
        so this needs ``protect="ranking"``.
    pictures
        PNG, JPEG or WebP files by the names of items.
    **page
        ``descriptions`` (texts by the names of items), ``organiser``, ``contact``, ``legal``, ``closing``, ``kiosk``,
        ``listed`` and ``frames`` as in ``rankdp_web.survey_database.Survey``.
    """
    if positive(epsilon) > WEAK_EPSILON and not weak_promise_accepted:
        raise InputError(
            Setting("epsilon"),
            f" must be at most {WEAK_EPSILON}, got {epsilon}: a larger one offers almost no protection; "
            "respondents read so if you accept that with ",
            Setting("weak_promise_accepted", True),
        )
    title, question = page_text("title", title), page_text("question", question, least=0)
    names = check_items(items)
    whole("the number of items", len(names), 2, MOST_ITEMS)
    for name in names:
        page_text("an item", name)
    chosen = named(mechanism, tiers)
    top = whole("rank_top", rank_top, 0, len(names) - 1) or None
    if top and protect != "ranking":
        raise InputError(
            Setting("rank_top"),
            " needs ",
            Setting("protect", "ranking"),
            f", got {protect}: which items are listed is secret as well",
        )
    check_choice(chosen, protect=protect, top=top)
    made = survey_mechanism(chosen, len(names), positive(epsilon), protect, top)
    survey = Survey(
        id="".join(secrets.choice(_ID_LETTERS) for _ in range(8)),
        title=title,
        question=question,
        items=names,
        mechanism=made.name,
        epsilon=_exact_text(positive(epsilon)),
        invited=invited,
        results_key=token_hash(results_key).hex() if results_key else "",
        day=today(),
        protect=protect,
        rank_top=rank_top,
        **_page(names, **page),
    )
    files = {item: picture_file(item, content) for item, content in (pictures or {}).items()}
    _known_items("pictures", files, names)
    if files:
        survey = dataclasses.replace(survey, pictures=tuple(files.get(name, ("",))[0] for name in names))
    return survey, dict(files.values())


def _exact_text(epsilon: Fraction) -> str:
    """A decimal number where one is exact, else a fraction."""
    text = shown(epsilon)
    return text if re.fullmatch(r"[\d.]+", text) and Fraction(text) == epsilon else str(epsilon)


def _page(
    names: Sequence[str],
    *,
    descriptions: Mapping[str, str] | None = None,
    organiser: str = "",
    contact: str = "",
    legal: str = "",
    closing: str = "",
    kiosk: bool = False,
    listed: bool = False,
    frames: Sequence[str] = (),
) -> dict[str, Any]:
    """The checked settings of the page that come after the question."""
    about = {name: page_text("a description", text, least=0) for name, text in (descriptions or {}).items()}
    _known_items("descriptions", about, names)
    return {
        "descriptions": tuple(about.get(name, "") for name in names) if any(about.values()) else (),
        "organiser": page_text("organiser", organiser, least=0),
        "contact": page_text("contact", contact, least=0),
        "legal": page_text("legal", legal, least=0, most=LONGEST_NOTICE),
        "closing": closing_day(closing) if closing else "",
        "kiosk": kiosk,
        "listed": listed,
        "frames": tuple(map(frame_site, frames)),
    }


def closing_day(day: str) -> str:
    """The last day of a survey."""
    try:
        day = datetime.date.fromisoformat(day).isoformat()
    except ValueError:
        raise InputError(Setting("closing"), f" must be a day such as 2030-12-31, got {day!r}") from None
    if day < today():
        raise InputError(Setting("closing"), f" must be today ({today()}) or later, got {day}")
    return day


def frame_site(site: str) -> str:
    """A site that may show results in a frame."""
    if not re.fullmatch(r"https://[a-z0-9.-]+(:\d{1,5})?", site):
        raise InputError(Setting("frames"), f" must be sites such as https://news.example, got {site!r}")
    return site


def _known_items(what: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    if strange := next((item for item in given if item not in names), None):
        raise InputError(f"{what} must belong to items of the survey, got one for {strange!r}")


def picture_file(item: str, content: bytes) -> tuple[str, bytes]:
    """The name of a picture, which says what it is, and the picture."""
    if len(content) > _LARGEST_PICTURE:
        raise InputError(
            f"a picture must have at most {_LARGEST_PICTURE // 1024} KB, got {len(content) // 1024} KB for {item!r}"
        )
    for ending, start, later in PICTURES:
        if content.startswith(start) and later in content[:16]:
            return f"{hashlib.sha256(content).hexdigest()[:16]}.{ending}", content
    raise InputError(f"a picture must be a PNG, JPEG or WebP file, got something else for {item!r}")


def the_survey(database: SurveyDatabase, survey_id: str | None) -> Survey:
    """The survey of this id, or the only one."""
    known = {survey.id: survey for survey in database.surveys()}
    if survey_id is None and len(known) == 1:
        return next(iter(known.values()))
    if survey_id not in known:
        listed = ", ".join(f"{survey.id} ({survey.title})" for survey in known.values()) or "none"
        raise InputError(f"survey must be the id of one in {database.name}, got {survey_id}; there are: {listed}")
    return known[survey_id]


def invite(database: SurveyDatabase, survey: Survey, number: int) -> list[str]:
    """New one-time tokens for a survey that needs them; only their hashes are stored."""
    if not survey.invited:
        raise InputError(f"survey {survey.id} needs no invitations: everybody may answer (create one with --invited)")
    tokens = [_encoded(secrets.token_bytes(16)) for _ in range(whole("number", number, 1, _MOST_INVITATIONS))]
    database.invite(survey.id, tokens)
    return tokens


def new_ticket(secret: bytes) -> str:
    """A token for a survey that everybody may answer."""
    number = secrets.token_bytes(16)
    return _encoded(number + _signature(secret, number))


def good_ticket(secret: bytes, ticket: str) -> bool:
    """Whether the ticket is one of ours."""
    try:
        raw = base64.urlsafe_b64decode(ticket.encode("ascii") + b"=" * (-len(ticket) % 4))
    except ValueError:
        return False
    return _encoded(raw) == ticket and hmac.compare_digest(_signature(secret, raw[:16]), raw[16:])


def _signature(secret: bytes, number: bytes) -> bytes:
    return hmac.digest(secret, number, "sha256")[:16]


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_token(content: Any) -> str:
    """The invitation that somebody asks about: {"token": text}."""
    if not isinstance(content, dict) or set(content) != {"token"}:
        raise InputError("an invitation must be an object with token and nothing else")
    return _token(content["token"])


def _token(token: Any) -> str:
    if not isinstance(token, str) or not 0 < len(token) <= 64 or not token.isascii():
        raise InputError("token must be a text of 1 to 64 characters")
    return token


def read_answer(survey: Survey, content: Any) -> tuple[str, bytes]:
    """The token and the ranking of a submission, or one sentence that says what is wrong with it.

    Parameters
    ----------
    survey
        What was asked.
    content
        What came: {"token": text, "ranking": the numbers of the items, the first choice first}, and the public
        "offset" of the ranking where the mechanism has them.

    Returns
    -------
    tuple
        The token, and what is stored: a byte for each item, and one for the offset.
    """
    made = mechanism_of(survey)
    parts = ["token", "ranking", *(["offset"] if made.has_offsets else [])]
    if not isinstance(content, dict) or set(content) != set(parts):
        raise InputError(f"an answer must be an object with {', '.join(parts)} and nothing else")
    token, ranking, items = _token(content["token"]), content["ranking"], len(survey.items)
    if not isinstance(ranking, list) or any(type(item) is not int for item in ranking):
        raise InputError("ranking must be a list of whole numbers")
    if survey.rank_top:
        if (
            len(ranking) != survey.rank_top
            or len(set(ranking)) != len(ranking)
            or not set(ranking) <= set(range(items))
        ):
            raise InputError(f"ranking must have {survey.rank_top} different numbers from 0 to {items - 1}")
    elif sorted(ranking) != list(range(items)):
        raise InputError(f"ranking must have each of the numbers 0 to {items - 1} once")
    if not made.has_offsets:
        return token, bytes(ranking)
    if type(content["offset"]) is not int or not 0 <= content["offset"] < made.offsets:
        raise InputError(f"offset must be a whole number from 0 to {made.offsets - 1}")
    return token, bytes([*ranking, content["offset"]])


# -- what answers say together --------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def mechanism_of(survey: Survey) -> RankingMechanism:
    """What adds the noise to the answers of a survey."""
    return mechanism(survey.mechanism, len(survey.items), survey.epsilon, protect=survey.protect)


def guarantee_of(survey: Survey) -> Guarantee:
    """What is promised about every answer."""
    if survey.protect == "ranking":
        return Guarantee(WHOLE_RANKING, positive(survey.epsilon))
    return mechanism_of(survey).guarantee


@lru_cache(maxsize=64)
def tables_of(survey: Survey) -> dict[str, Any]:
    """What its respondents' browsers draw from."""
    return browser_tables(mechanism_of(survey))


def parameters(survey: Survey) -> dict[str, Any]:
    """The provenance of all answers, as ``aggregate``, ``learn`` and the others read it."""
    made = mechanism_of(survey)
    return {
        "asked_for": made.name,
        "protect": survey.protect,
        "epsilon": survey.epsilon,
        "choices": [
            {
                "mechanism": made.name,
                **made.parameters,
                **({"ranking_epsilon": survey.epsilon} if survey.protect == "ranking" else {}),
            }
        ],
        "survey": survey.id,
        "drawn_by": "the respondents' browsers",
        **({"lists": {"length": survey.rank_top, "items": list(survey.items)}} if survey.rank_top else {}),
        **({"offset_column": OFFSET} if made.has_offsets else {}),
    }


def collected(database: SurveyDatabase, survey: Survey, *, shown: bool = True) -> Release[Rankings]:
    """The synthetic rankings of respondents, in random order, with what is promised about them.

    Parameters
    ----------
    database
        Where the survey is kept.
    survey
        Which one.
    shown
        Whether only the answers are taken that results may show (``rankdp_web.survey_database.leaving``).
    """
    made, items = mechanism_of(survey), survey.listed_items
    answers = np.frombuffer(b"".join(database.answers(survey.id, shown=shown)), dtype=np.uint8)
    rows = answers.reshape(-1, items + made.has_offsets).astype(np.int32)
    if not len(rows):
        raise InputError(_too_few(survey, database.count(survey.id)))
    rankings = Rankings.from_orders(rows[:, :items], survey.items, offsets=rows[:, items] if made.has_offsets else None)
    return released(rankings, guarantee_of(survey), type(made).name, parameters(survey), SecureBits())


def _too_few(survey: Survey, count: int) -> str:
    if not count:
        return f"survey {survey.id} has no answers yet"
    if survey.open:
        return f"an open survey shows results from {2 * BATCH} answers on, survey {survey.id} has {count}"
    return (
        f"a survey shows results from {BATCH} answers on, survey {survey.id} has {count}; rankdp survey export writes "
        "the synthetic rankings of a closed survey however few they are"
    )


def export_survey(database: SurveyDatabase, survey: Survey, path: str | PathLike[str]) -> int:
    """Write the synthetic rankings to a CSV, Parquet or PrefLib file, with its release file; the number of rankings.

    While the survey is open these are the rankings that its results show, since two exports can be subtracted as well.

    Parameters
    ----------
    database
        Where the survey is kept.
    survey
        Which one.
    path
        The new file.
    """
    release = collected(database, survey, shown=survey.open)
    with open_writer(path, like=release.value) as writer:
        writer.write(release.value)
        writer.promise(release.to_dict())
    return len(release.value)


@lru_cache(maxsize=64)
def promised(survey: Survey) -> Mapping[str, Any]:
    """The numbers of the sentences about privacy, from public facts alone.

    ``factor`` bounds the change of anyone's odds about what is protected, ``whole`` about the whole ranking; ``sure``
    is how sure a reader who was 50:50 about it may become; ``weak`` says that this is almost no protection; ``reach``
    is half the length of the 95% interval of an item's mean place after 500 answers, at worst; ``kept`` is the share of
    pairs that keep their order, or of a list's items that stay listed.
    """
    made = mechanism_of(survey)
    epsilon = positive(survey.epsilon)
    half_width = reach(0.95) * worst_error(made, 500)
    return {
        "factor": odds_factor(epsilon),
        "whole": odds_factor(guarantee_of(survey).to_local_dp().epsilon),
        "weak": epsilon > WEAK_EPSILON,
        "sure": sure(float(epsilon)),
        "epsilon": survey.epsilon,
        "kept": kept(made),
        "reach": f"{half_width:.1f}" if half_width < made.items else "",
    }


def page_text(name: str, text: str, least: int = 1, most: int = _LONGEST_TEXT) -> str:
    """A text for the page: not too short, not too long, without characters that cannot be shown."""
    plain = str(text).strip()
    plain = plain.replace("\r\n", "\n")
    if not least <= len(plain) <= most or not plain.replace("\n", " ").isprintable():
        raise InputError(f"{name} must have {least} to {most} printable characters, got {plain[:60]!r}")
    return plain
