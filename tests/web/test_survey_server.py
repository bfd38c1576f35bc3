"""The server of surveys, as a program that speaks HTTP sees it."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import re
import string
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import pytest
from conftest import DRINKS, served
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.errors import InputError
from rankdp.privacy.guarantee import odds_factor
from rankdp.version import __version__
from rankdp_web import survey_results
from rankdp_web.pages import HEADERS, all_texts
from rankdp_web.survey_app import MOST_BYTES
from rankdp_web.survey_database import BATCH
from rankdp_web.surveys import (
    create_survey,
    good_ticket,
    invite,
    mechanism_of,
    new_ticket,
    read_answer,
    tables_of,
)


@pytest.fixture(autouse=True)
def results_at_once(monkeypatch):
    monkeypatch.setattr(survey_results, "_SECONDS", 0)
    monkeypatch.setattr(survey_results, "_PATIENCE", 0)


class Client(httpx.Client):
    """A visitor of one survey."""

    def __init__(self, address, survey):
        self.page = f"{address}/s/{survey.id}"
        super().__init__(base_url=self.page, timeout=60)


@pytest.fixture
def client(server, survey):
    with Client(server, survey) as opened:
        yield opened


@pytest.fixture
def ticket(database, survey):
    secret = database.find(survey.id)[1]
    return lambda: new_ticket(secret)


def send(client, token, ranking):
    return client.post("/answers", json={"token": token, "ranking": ranking})


def said(reply):
    content = reply.json()
    assert set(content) == {"outcome", "words"}
    assert content["words"].endswith(".")
    return reply.status_code, content["outcome"]


def test_an_answer_is_taken_once(client, ticket, database, survey):
    token = ticket()
    assert said(send(client, token, [3, 1, 0, 2])) == (201, "stored")
    assert said(send(client, token, [3, 1, 0, 2])) == (200, "before")
    assert said(send(client, token, [0, 1, 2, 3])) == (200, "before")
    assert database.answers(survey.id) == [bytes([3, 1, 0, 2])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[" * 2000, 422),
        (b"\xff\xfe", 422),
        (b"null", 422),
        (b'{"token": "x"}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, 3], "name": "Eve"}', 422),
        (b'{"token": 5, "ranking": [0, 1, 2, 3]}', 422),
        (b'{"token": "", "ranking": [0, 1, 2, 3]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, 2]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, 4]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, 3.0]}', 422),
        (b'{"token": "x", "ranking": [0, true, 2, 3]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, 1e400]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, -1]}', 422),
        (b'{"token": "x", "ranking": [0, 1, 2, 3]}', 403),
        (b" " * (MOST_BYTES + 1), 413),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_answer_gets_a_sentence_and_changes_nothing(client, database, survey, content, status):
    reply = client.post("/answers", content=content, headers={"Content-Type": "application/json"})
    assert said(reply)[0] == status
    assert database.count(survey.id) == 0


def test_only_json_to_a_survey_that_exists_is_taken(client, server, ticket):
    answer = json.dumps({"token": ticket(), "ranking": [0, 1, 2, 3]})
    assert client.post("/answers", content=answer, headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.get("/answers").status_code == 405
    assert client.put("/answers", content=answer).status_code == 405
    assert httpx.post(f"{server}/s/nowhere/answers", content=answer).status_code == 404
    assert httpx.get(f"{server}/s/nowhere").status_code == 404
    assert httpx.get(f"{server}/static/../survey_app.py").status_code == 404


@pytest.mark.slow
def test_anything_may_be_sent(client, database, survey, ticket):
    """Fuzzed: any JSON, or an answer with one thing wrong, is refused with a sentence and stores nothing."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    )
    wrong = st.fixed_dictionaries({"token": st.text(max_size=70), "ranking": st.permutations(range(4)) | anything})
    nearly = st.fixed_dictionaries(
        {"token": st.just(ticket()), "ranking": st.lists(st.integers(-1, 5) | anything, max_size=6)}
    )

    @settings(max_examples=80)
    @given(anything | wrong | nearly)
    def refused(content):
        try:
            read_answer(survey, content)
            right = good_ticket(database.find(survey.id)[1], content["token"])
        except InputError:
            right = False
        if not right:
            body, kind = json.dumps(content), {"Content-Type": "application/json"}
            assert said(client.post("/answers", content=body, headers=kind))[0] in (403, 413, 422)

    refused()
    assert database.count(survey.id) == 0
    assert said(send(client, ticket(), [0, 1, 2, 3]))[0] == 201


def test_an_invitation_is_needed_where_it_is_asked_for(database, tmp_path):
    survey = create_survey(database, "Drinks", DRINKS, 1, invited=True)
    tokens = invite(database, survey, 3)
    with served(database) as address, Client(address, survey) as client:
        assert '"ticket": null' in client.get(client.page).text
        assert said(send(client, "x" * 22, [0, 1, 2, 3])) == (403, "unknown")
        assert said(send(client, tokens[1], [0, 1, 2, 3])) == (201, "stored")
        assert said(send(client, tokens[1], [3, 1, 2, 0])) == (200, "before")
        database.finish(survey.id)
        assert said(send(client, tokens[0], [0, 1, 2, 3])) == (410, "closed")
        assert client.get(client.page).status_code == 410
        database.delete(survey.id)
        assert said(send(client, tokens[0], [0, 1, 2, 3])) == (410, "closed")
        assert client.get(client.page).status_code == 404


def test_tickets_are_ours_only():
    secret = b"s" * 32
    ticket = new_ticket(secret)
    assert good_ticket(secret, ticket)
    assert not good_ticket(b"t" * 32, ticket)
    changed = ("B" if ticket[0] == "A" else "A") + ticket[1:]
    for wrong in (changed, ticket[:-1], ticket + "=", ticket + "A", "", "é", "A" * 43):
        assert not good_ticket(secret, wrong), wrong


def test_every_answer_carries_the_headers_and_no_cookie(client, server):
    for address in (client.page, "/results", "/results/part", "/results.csv"):
        reply = client.get(address)
        assert {name: reply.headers[name] for name in HEADERS} == HEADERS
        assert "set-cookie" not in reply.headers
        assert "server" not in reply.headers
    reply = httpx.get(f"{server}/static/sampler.js")
    assert reply.headers["content-type"].startswith(("text/javascript", "application/javascript"))
    assert reply.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


def test_the_page_loads_from_here_only_and_shows_names_as_text(database):
    hostile = ("<script>alert(1)</script>", "</script><b>", "\"'&amp;", "{{ 7777 * 7777 }}")
    survey = create_survey(database, "<img src=x>", hostile, 1, question="</title><script>")
    with served(database) as address:
        text = httpx.get(f"{address}/s/{survey.id}").text
    assert "<img src=x>" not in text
    assert "<script>alert" not in text
    assert "</script><b>" not in text
    assert "60481729" not in text
    assert "//" not in text.replace("<!doctype", "").split('id="known"')[0]


def test_what_the_page_brings_along_is_public_and_the_same_for_all_but_the_ticket(client, survey):
    def brought():
        text = client.get(client.page).text
        return json.loads(text.split('id="known">')[1].split("</script>")[0])["known"]

    first, second = brought(), brought()
    assert first.pop("ticket") != second.pop("ticket")
    assert (
        first
        == second
        == {
            "id": survey.id,
            "version": __version__,
            "title": "Drinks",
            "question": "What at noon?",
            "items": list(DRINKS),
            "descriptions": [],
            "pictures": [],
            **dict.fromkeys(("organiser", "contact", "legal", "closing"), ""),
            **dict.fromkeys(("kiosk", "invited", "preview"), False),
            "rank_top": 0,
            "mechanism": survey.mechanism,
            "epsilon": "2",
            "protect": "ranking",
            "private_results": False,
            "tables": tables_of(survey),
        }
    )


def test_respondents_read_about_the_whole_ranking_and_a_weak_promise(database):
    strong = create_survey(database, "Drinks", DRINKS, 10, protect="position")
    weak = create_survey(database, "Drinks", DRINKS, "10.5", protect="position", weak_promise_accepted=True)
    with served(database) as address:
        texts = [httpx.get(f"{address}/s/{survey.id}").text for survey in (strong, weak)]
    for survey, text in zip((strong, weak), texts, strict=True):
        whole = mechanism_of(survey).guarantee.whole_ranking_epsilon
        assert f"there the factor is at most {odds_factor(whole)}." in text
        assert f"by a factor of at most {odds_factor(Fraction(survey.epsilon))}." in text
    shown = [text.split('id="known"')[0] for text in texts]
    assert "almost no protection" not in shown[0]
    assert "This survey offers almost no protection: its epsilon is 10.5." in shown[1]


def test_respondents_read_about_their_whole_answer(client):
    text = client.get(client.page).text
    assert "Your whole answer is protected" in text
    assert "Someone who was 50:50 between any two answers of yours can become at most 88.1% sure" in text
    assert 'epsilon <span id="epsilon" data-protect="ranking">2</span> for your whole answer' in text
    assert "Ihre ganze Antwort ist geschützt" in client.get(client.page + "?lang=de").text


@pytest.mark.parametrize(
    ("asked", "header", "language"),
    [("", "de-CH,de;q=0.9,en;q=0.1", "de"), ("", "fr", "en"), ("?lang=de", "en", "de"), ("?lang=xx", "de", "de")],
)
def test_languages(client, asked, header, language):
    text = client.get(client.page + asked, headers={"Accept-Language": header}).text
    assert f'<html lang="{language}" dir="ltr">' in text
    assert all_texts()[language]["done"] in text


def test_every_language_has_every_text():
    texts = all_texts()
    assert len(texts) > 1
    for known in texts.values():
        assert known.keys() == texts["en"].keys()
        for name, words in known.items():
            assert set(fields(words)) == set(fields(texts["en"][name])), name


def fields(words):
    return [field for _, field, _, _ in string.Formatter().parse(words) if field]


@pytest.mark.slow
def test_results_in_every_format(client, ticket, survey):
    assert "from 64 answers on" in client.get("/results").text
    assert client.get("/results.csv").status_code == 404
    for ranking in ([0, 1, 2, 3], [0, 1, 3, 2], [1, 0, 2, 3], [0, 2, 1, 3]) * 24:
        send(client, ticket(), ranking)
    part = client.get("/results/part")
    assert "Answers shown: 64" in part.text
    assert "192 more answers would make the intervals half as long" in part.text
    assert client.get("/results/part", headers={"If-None-Match": part.headers["ETag"]}).status_code == 304
    rows = list(csv.DictReader(io.StringIO(client.get("/results.csv").text)))
    facts = client.get("/results.json").json()
    assert [row["item"] for row in rows] == [record["item"] for record in facts["items"]]
    assert rows[0]["item"] == "Tea"
    assert (rows[0]["rank"], rows[-1]["rank"]) == ("1", str(facts["items"][-1]["rank"]))
    assert facts["guarantee"]["epsilon"] == "2"
    assert facts["answers"] == 64
    pictures = {language: client.get(f"/results.png?lang={language}").content for language in ("en", "de")}
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    assert b"Tea leads." in pictures["en"]  # what the file says about itself
    assert b"Tea liegt vorn." in pictures["de"]
    assert "Tea leads." in part.text
    german = client.get("/results?lang=de").text
    assert "Tea liegt vorn." in german
    assert "192 weitere Antworten" in german
    mean = f"{max(facts['items'][0]['mean_rank'], 1):.2f}"
    assert f"<td class=estimate>{mean}</td>" in part.text
    assert f"<td class=estimate>{mean.replace('.', ',')}</td>" in german


@pytest.mark.slow
def test_no_two_results_differ_by_fewer_answers_than_a_batch(database):
    """``naive`` times ``answers``, subtracted between any two polls: the sum of a batch, never of one answer."""
    survey = create_survey(database, "Drinks", DRINKS, 2)
    rankings = [list(order) for order in itertools.permutations(range(4))]
    sent = [rankings[(7 * number) % 24] for number in range(150)]
    polls = [(0, np.zeros(4))]
    with served(database) as address, Client(address, survey) as client:

        def poll():
            reply = client.get("/results.json")
            part = client.get("/results/part").text
            if reply.status_code == 404:
                assert "Collecting answers" in part
                assert "Answers shown" not in part
                assert client.get("/results.csv").status_code == client.get("/results.png").status_code == 404
                return
            facts = reply.json()
            naive = {record["item"]: record["naive"] for record in facts["items"]}
            rows = list(csv.DictReader(io.StringIO(client.get("/results.csv").text)))
            assert {row["item"]: float(row["naive"]) for row in rows} == pytest.approx(naive)
            assert {int(row["answers"]) for row in rows} == {facts["answers"]}
            assert f"Answers shown: {facts['answers']}<" in part
            polls.append((facts["answers"], facts["answers"] * np.array([naive[drink] for drink in DRINKS])))

        for number, ranking in enumerate(sent, 1):
            assert database.store(survey, [(str(number), bytes(ranking))]) == ["stored"]
            poll()
        database.finish(survey.id)
        poll()
        assert "The survey is open" not in client.get("/results").text
    assert len({count for count, _ in polls}) == 5  # 0, 32, 64, 96 and all
    for (before, first), (after, second) in itertools.pairwise(polls):
        assert after - before == 0 or after - before >= BATCH
        assert (after == before) == np.allclose(first, second)
    assert polls[-1][0] == len(sent)
    places = np.argsort(np.array(sent), axis=1) + 1
    assert polls[-1][1] == pytest.approx(places.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("firsts", "english", "german"),
    [
        ((0, 1), "{} and {} lead; too close to call.", "{} und {} liegen vorn; zu knapp"),
        ((0, 1, 2), "{}, {} and {} lead; too close to call.", "{}, {} und {} liegen vorn; zu knapp"),
        ((0, 1, 2, 3), "each of the 4 items could be first.", "Jeder der 4 Einträge könnte der erste sein."),
    ],
)
def test_a_headline_that_can_be_read_aloud(client, database, survey, firsts, english, german):
    """As many answers for each of them: nobody can say who is first."""
    turns = [[*firsts[turn:], *firsts[:turn], *sorted({0, 1, 2, 3} - set(firsts))] for turn in range(len(firsts))]
    answers = [turns[number % len(turns)] for number in range(400)]
    database.store(survey, [(str(number), bytes(answer)) for number, answer in enumerate(answers)])
    database.finish(survey.id)
    orders = [[DRINKS[item] for item in order] for order in itertools.permutations(firsts)]
    for language, words in (("en", english), ("de", german)):
        shown = client.get("/results", params={"lang": language}).text
        assert any(words.format(*names) in shown for names in orders)


def test_places_stay_within_those_that_there_are(client, database, survey):
    """Everybody agrees: debiasing then leaves the range of places, the page does not."""
    database.store(survey, [(str(number), bytes(range(4))) for number in range(200)])
    database.finish(survey.id)
    assert client.get("/results.json").json()["items"][0]["low"] < 1
    cells = re.findall(r"<td[^>]*>([\d.]+)(?: to ([\d.]+))?</td>", client.get("/results").text)
    shown = [float(number) for pair in cells for number in pair if "." in number]
    assert len(shown) == 12
    assert min(shown) == 1
    assert max(shown) == 4


def test_a_survey_that_closed_with_few_answers_says_so(client, database, survey):
    database.store(survey, [(str(number), bytes(range(4))) for number in range(31)])
    database.finish(survey.id)
    assert "Collecting" not in client.get("/results").text
    assert "closed with fewer than 32 answers" in client.get("/results").text
    assert "mit weniger als 32 Antworten geschlossen" in client.get("/results?lang=de").text


@pytest.mark.slow
def test_other_sites_may_frame_the_embed_page_where_the_organiser_says_so(database):
    plain = create_survey(database, "Drinks", DRINKS, 1)
    framed = create_survey(database, "Drinks", DRINKS, 1, frames=["https://news.example", "https://a.example:8443"])
    secret = create_survey(database, "Drinks", DRINKS, 1, frames=["https://news.example"], results_key="sesame")
    with served(database) as address:
        assert httpx.get(f"{address}/s/{plain.id}/embed").status_code == 404
        assert httpx.get(f"{address}/s/{secret.id}/embed").status_code == 404
        for end in ("", "/part"):
            policy = httpx.get(f"{address}/s/{framed.id}/embed{end}").headers["Content-Security-Policy"]
            assert policy.endswith("frame-ancestors https://news.example https://a.example:8443")
        for page in ("", "/results"):
            policy = httpx.get(f"{address}/s/{framed.id}{page}").headers["Content-Security-Policy"]
            assert policy.endswith("frame-ancestors 'none'")


def test_results_behind_a_key(database):
    survey = create_survey(database, "Drinks", DRINKS, 1, results_key="open sesame")
    with served(database) as address, Client(address, survey) as client:
        assert "/results" not in client.get(client.page).text
        for end in ("", ".csv", ".json", ".png", "/part"):
            assert client.get(f"/results{end}").status_code == 403
            assert client.get(f"/results{end}", params={"key": "close sesame"}).status_code == 403
            assert client.get(f"/results{end}", params={"key": "open sesame"}).status_code in (200, 404)
        shown = client.get("/results?key=open+sesame&lang=de").text
        assert 'href="?key=open+sesame&amp;lang=en"' in shown  # who changes the language keeps the key
    assert b"sesame" not in Path(database.name).read_bytes()


def test_noise_that_cannot_be_undone_completely_says_so(database):
    survey = create_survey(database, "Drinks", DRINKS, 1, tiers=[2, 2])
    assert survey.mechanism == "tiers-2x2"
    database.store(survey, [(str(n), bytes([0, 1, 2, 3])) for n in range(64)])
    with served(database) as address:
        reply = httpx.get(f"{address}/s/{survey.id}/results", timeout=60).text
    assert "The noise cannot be removed completely: a bias of at most" in reply


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"items": ["a"]}, "number of items must be an integer from 2 to 100"),
        ({"items": [str(n) for n in range(101)]}, "from 2 to 100"),
        ({"items": ["a", "a"]}, "must be different"),
        ({"items": ["a", "b" * 501]}, "an item must have 1 to 500 printable"),
        ({"title": " "}, "title must have 1 to 500 printable"),
        ({"title": "a\x07"}, "title must have"),
        ({"question": "x" * 501}, "question must have 0 to 500"),
        ({"epsilon": "nan"}, "epsilon must be a finite number above 0"),
        ({"epsilon": "10.01"}, "epsilon must be at most 10, got 10.01: .* weak_promise_accepted=True"),
        ({"mechanism": "kendall"}, "mechanism must be one of"),
        ({"mechanism": "nothing"}, "mechanism must be auto or one of"),
        ({"mechanism": "optimal", "items": list("abcdef")}, "mechanism must be one of"),
        ({"tiers": [1, 1]}, "tiers must be"),
    ],
)
def test_a_survey_that_cannot_be_is_refused_and_nothing_is_stored(database, changes, words):
    asked = {"title": "Drinks", "items": DRINKS, "epsilon": 1} | changes
    with pytest.raises((InputError, NotImplementedError), match=words):
        create_survey(database, **asked)
    assert database.surveys() == []


def test_invitations_are_for_surveys_that_need_them(database, survey):
    with pytest.raises(InputError, match="needs no invitations"):
        invite(database, survey, 1)
    closed = dataclasses.replace(survey, invited=True)
    for number in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="number must be an integer"):
            invite(database, closed, number)
