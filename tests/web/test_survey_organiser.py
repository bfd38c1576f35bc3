"""The organiser's pages, the limits of open surveys, and what a server is told about https and proxies."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import zipfile
from collections import Counter
from pathlib import Path
from statistics import NormalDist

import httpx
import numpy as np
import pytest
import segno
from click.testing import CliRunner
from conftest import DRINKS, make_certificate, served
from starlette.testclient import TestClient

from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.bits import SeededBits
from rankdp.theory.estimators import rank_estimator
from rankdp_web import survey_command, survey_database
from rankdp_web.survey_app import survey_app
from rankdp_web.survey_limits import MOST_ADDRESSES, SLOTS, Pulse, TicketLimit
from rankdp_web.survey_plan import meaning
from rankdp_web.surveys import create_survey, good_ticket

KEY = "k" * 43
OWN = {"Sec-Fetch-Site": "same-origin"}
FORM = {"title": "What first?", "items": "Park | with trees\nLibrary\nBuses", "epsilon": "2", "who": "all"}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def visitor(database, scheme="http", client=("127.0.0.1", 1), **options):
    app = survey_app(database, organiser_key=KEY, **options)
    return TestClient(app, base_url=f"{scheme}://survey.example", client=client, follow_redirects=False)


@pytest.fixture
def organiser(database):
    with visitor(database, "https") as client:
        assert client.get(f"/organiser?key={KEY}").status_code == 303
        client.headers.update(OWN)
        yield client


def opened(organiser, **more):
    """A survey made on the pages; its id."""
    draft = organiser.post("/organiser/new", data=FORM | more)
    assert draft.status_code == 303, draft.text
    place = organiser.post(f"/organiser/{draft.headers['location']}").headers["location"]
    return re.search(r"surveys/(\w+)", place)[1]


# -- who may come in -----------------------------------------------------------------------------------------------


def test_the_key_opens_and_nothing_else_does(database):
    paths = ("/organiser", "/organiser/new", "/organiser/plan", "/organiser/surveys/x", "/organiser/drafts/x")
    with visitor(database, "https") as client:
        for path in (*paths, "/organiser?key=", f"/organiser?key={KEY[:-1]}"):
            assert client.get(path).status_code == 403, path
        assert client.post("/organiser/new", data=FORM).status_code == 403
        entered = client.get(f"/organiser?key={KEY}")
        cookie = entered.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Secure"} <= set(cookie.split("; "))
        assert client.get("/organiser").status_code == 200
        for site in ("cross-site", "same-site", "none", None):
            headers = {"Sec-Fetch-Site": site} if site else {}
            assert client.post("/organiser/new", data=FORM, headers=headers).status_code == 403
    with TestClient(survey_app(database)) as client:
        assert client.get(f"/organiser?key={KEY}").status_code == 404


def test_the_key_is_not_taken_over_a_network_without_https(database):
    with visitor(database, "http", ("203.0.113.7", 1)) as client:
        reply = client.get(f"/organiser?key={KEY}")
        assert reply.status_code == 403
        assert "needs https" in reply.text
        assert "set-cookie" not in reply.headers


# -- from a form to a deleted survey -------------------------------------------------------------------------------


def test_a_survey_from_its_form_to_its_end(organiser, database):
    draft = organiser.post("/organiser/new", data=FORM | {"kiosk": "on", "closing": "2999-01-01", "contact": "a@b"})
    preview = draft.headers["location"].rpartition("/")[2]
    assert database.surveys() == []
    assert f'src="../drafts/{preview}"' in organiser.get(f"/organiser/preview/{preview}").text
    page = organiser.get(f"/organiser/drafts/{preview}")
    assert "with trees" in page.text
    assert "frame-ancestors 'self'" in page.headers["Content-Security-Policy"]
    assert 'value="2999-01-01"' in organiser.get(f"/organiser/new?draft={preview}").text
    place = organiser.post(f"/organiser/preview/{preview}").headers["location"]
    (survey,) = database.surveys()
    assert place == f"../surveys/{survey.id}"
    assert (survey.kiosk, survey.contact, survey.descriptions) == (True, "a@b", ("with trees", "", ""))
    shown = organiser.get(f"/organiser/surveys/{survey.id}").text
    assert f"https://survey.example/s/{survey.id}<" in shown
    assert organiser.get(f"/organiser/surveys/{survey.id}/export.zip").status_code == 404
    database.store(survey, [(str(n), bytes([0, 1, 2])) for n in range(5)])
    assert "<dd>5</dd>" in organiser.get(f"/organiser/surveys/{survey.id}").text
    assert organiser.post(f"/organiser/surveys/{survey.id}/close").status_code == 303
    packed = zipfile.ZipFile(io.BytesIO(organiser.get(f"/organiser/surveys/{survey.id}/export.zip").content))
    assert packed.namelist() == [f"survey-{survey.id}.csv", f"survey-{survey.id}.csv.release.json"]
    assert len(packed.read(packed.namelist()[0]).splitlines()) == 6
    assert organiser.post(f"/organiser/surveys/{survey.id}/delete", data={"title": "other"}).status_code == 422
    assert organiser.post(f"/organiser/surveys/{survey.id}/delete", data={"title": survey.title}).status_code == 303
    assert database.surveys() == []


@pytest.mark.parametrize(
    ("change", "english", "german"),
    [
        ({"title": " "}, "write what you ask", "was Sie fragen"),
        ({"items": "one"}, "2 to 100 items", "2 bis 100"),
        ({"items": "a\na"}, "the same name", "eigenen Namen"),
        ({"epsilon": "11"}, "at most 10", "höchstens 10"),
        ({"epsilon": "nan"}, "at most 10", "höchstens 10"),
        ({"closing": "2001-01-01"}, "today or later", "heute oder später"),
        ({"frames": "http://x"}, "addresses such as https://news.example", "Adressen wie https://news.example"),
        ({"items": f"a\n{501 * 'b'}"}, "500 characters", "500 darstellbare Zeichen"),
        ({"contact": "\x07"}, "500 characters", "500 darstellbare Zeichen"),
    ],
)
def test_a_form_says_what_is_wrong_and_keeps_what_was_written(organiser, database, change, english, german):
    for language, words in (("en", english), ("de", german)):
        reply = organiser.post(f"/organiser/new?lang={language}", data=FORM | change)
        assert reply.status_code == 422
        assert words in reply.text
        assert "Library" in reply.text or "items" in change
    assert database.surveys() == []


def test_pictures_travel_with_the_form(organiser, database):
    def posted(picture):
        body = f"Park.png={len(picture)}\n".encode() + picture + httpx.QueryParams(FORM).__str__().encode()
        return organiser.post("/organiser/new", content=body, headers={"Content-Type": "application/x-rankdp-form"})

    for wrong in (b"<svg onload=alert(1)>", PNG + bytes(300 * 1024)):
        assert "Every picture must" in posted(wrong).text
    draft = posted(PNG).headers["location"].rpartition("/")[2]
    name = re.search(r"[0-9a-f]{16}\.png", organiser.get(f"/organiser/drafts/{draft}").text)[0]
    assert organiser.get(f"/organiser/drafts/{draft}/pictures/{name}").content == PNG
    organiser.post(f"/organiser/preview/{draft}")
    (survey,) = database.surveys()
    assert survey.pictures == (name, "", "")
    shown = organiser.get(f"/s/{survey.id}/pictures/{name}")
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    assert organiser.get(f"/s/{survey.id}/pictures/other.png").status_code == 404


def test_invitations_are_a_list_of_links_and_each_is_good_once(organiser, database):
    survey_id = opened(organiser, who="invited")
    place = f"/organiser/surveys/{survey_id}/invitations.csv"
    for wrong in ("0", "-1", "x", "100001"):
        assert "whole number from 1 to 100,000" in organiser.post(place, data={"number": wrong}).text
    rows = list(csv.DictReader(io.StringIO(organiser.post(place, data={"number": "3"}).text)))
    links = [row["link"] for row in rows]
    assert all(re.fullmatch(rf"https://survey\.example/s/{survey_id}#[\w-]{{22}}", link) for link in links)
    answer = {"token": links[0].partition("#")[2], "ranking": [0, 1, 2]}
    asked = {"token": answer["token"]}
    assert organiser.post(f"/s/{survey_id}/invitation", json=asked).json()["outcome"] == "fresh"
    assert organiser.post(f"/s/{survey_id}/answers", json=answer).json()["outcome"] == "stored"
    assert organiser.post(f"/s/{survey_id}/invitation", json=asked).json()["outcome"] == "before"
    cut = {"token": answer["token"][:-1]}
    assert organiser.post(f"/s/{survey_id}/invitation", json=cut).json()["outcome"] == "unknown"
    assert organiser.post(f"/s/{survey_id}/invitation", json={"token": 5}).status_code == 422
    database.finish(survey_id)
    fresh = {"token": links[1].partition("#")[2]}
    assert organiser.post(f"/s/{survey_id}/invitation", json=fresh).json()["outcome"] == "closed"


def test_results_behind_a_key_open_for_the_organiser_and_the_link_that_was_shown(organiser, database):
    draft = organiser.post("/organiser/new", data=FORM | {"private_results": "on"}).headers["location"]
    place = organiser.post(f"/organiser/{draft}").headers["location"]
    survey_id, key = re.fullmatch(r"../surveys/(\w+)\?results=(.+)", place).groups()
    assert f"/s/{survey_id}/results?key={key}" in organiser.get(f"/organiser/surveys/{survey_id}?results={key}").text
    assert organiser.get(f"/s/{survey_id}/results").status_code == 200
    with visitor(database, "https") as stranger:
        assert stranger.get(f"/s/{survey_id}/results").status_code == 403
        assert stranger.get(f"/s/{survey_id}/results?key={key}").status_code == 200


# -- https, codes and proxies --------------------------------------------------------------------------------------


def test_a_code_needs_https_and_holds_the_link(organiser, database):
    survey_id = opened(organiser)
    code = organiser.get(f"/organiser/surveys/{survey_id}/qr.svg")
    wanted = io.BytesIO()
    link = f"https://survey.example/s/{survey_id}"
    segno.make(link, error="m").save(wanted, kind="svg", scale=8, border=4, light="#ffffff", xmldecl=False)
    assert code.content == wanted.getvalue()
    with visitor(database) as plain:
        plain.get(f"/organiser?key={KEY}")
        shown = plain.get(f"/organiser/surveys/{survey_id}").text
        assert "There is no QR code" in shown
        assert "qr.svg" not in shown
        assert plain.get(f"/organiser/surveys/{survey_id}/qr.svg").status_code == 404
    for here in ("localhost", "127.0.0.1:8000", "[::1]:8000"):  # nobody else reaches that
        page = organiser.get(f"/organiser/surveys/{survey_id}", headers={"Host": here})
        assert "on this computer alone" in page.text
        assert organiser.get(f"/organiser/surveys/{survey_id}/qr.svg", headers={"Host": here}).status_code == 404


def test_a_proxy_counts_only_where_it_is_trusted(database):
    survey = create_survey(database, "Drinks", DRINKS, 2)
    for trusted, expected in (("127.0.0.1", [200, 200, 429]), ("", [200, 429, 429])):
        with served(database, trusted_proxy=trusted, tickets_per_minute=1) as address:
            seen = [
                httpx.get(f"{address}/s/{survey.id}", headers={"X-Forwarded-For": visitor}).status_code
                for visitor in ("203.0.113.1", "203.0.113.2", "203.0.113.1")
            ]
        assert seen == expected


def test_serve_prints_the_name_that_a_certificate_is_for(certificate, tmp_path):
    from cryptography import x509

    names = [x509.DNSName(name) for name in ("localhost", "*.example", "survey.example")]
    for found, shown in ((names, "survey.example"), (names[:2], "127.0.0.1"), ([], "127.0.0.1")):
        file = make_certificate(tmp_path, [x509.SubjectAlternativeName(found)] if found else [])[0]
        assert survey_command._certified(Path(file)) == shown


def test_a_server_with_a_certificate(database, certificate):
    survey = create_survey(database, "Drinks", DRINKS, 2)
    with served(database, certificate=certificate) as address:
        assert httpx.get(f"{address}/s/{survey.id}", verify=False).status_code == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--certificate", "items.txt"], "--certificate and --key must be given together"),
        (["--certificate", "items.txt", "--key", "items.txt"], "must be a PEM pair"),
        (["--trusted-proxy", "proxy"], "--trusted-proxy must be an address such as 127.0.0.1, got proxy"),
        (["--address", "survey.example"], "--address must begin with https:// or http://, got survey.example"),
    ],
)
def test_serve_refuses_what_it_cannot_use(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.txt").write_text("Tea", "utf-8")
    result = CliRunner().invoke(cli, ["survey", "serve", *options])
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert not (tmp_path / "surveys.db").exists()


def test_list_names_all_surveys_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    database = survey_database.SurveyDatabase("surveys.db", create=True)
    survey = create_survey(database, "Drinks", DRINKS, 2)
    database.finish(survey.id)
    line = CliRunner().invoke(cli, ["survey", "list", "--address", "https://x.example"]).output.rstrip("\n")
    assert line.split("\t") == [survey.id, "closed", "0", survey.day, "Drinks", f"https://x.example/s/{survey.id}"]


# -- limits ----------------------------------------------------------------------------------------------------------


def test_tickets_are_limited_by_address_and_minute(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(TicketLimit, "_now", staticmethod(lambda: now[0]))
    limit = TicketLimit(60)
    assert [limit.take("203.0.113.1") for _ in range(61)] == [True] * 60 + [False]
    assert limit.take("203.0.113.2")
    now[0] += 1
    assert [limit.take("203.0.113.1") for _ in range(2)] == [True, False]
    now[0] += 3600
    assert sum(limit.take("203.0.113.1") for _ in range(100)) == 60
    assert sum(limit.take(f"2001:db8::{n:x}") for n in range(100)) == 60  # one household
    assert limit.take("2001:db8:0:1::1")
    assert (
        sum(limit.take("::ffff:203.0.113.9") for _ in range(40)) + sum(limit.take("203.0.113.9") for _ in range(40))
        == 60
    )


def test_the_memory_of_limits_is_bounded_and_knows_no_address():
    limit = TicketLimit(60)
    for number in range(MOST_ADDRESSES + 500):
        limit.take(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(limit._buckets) == MOST_ADDRESSES
    assert all(len(key) == 16 for key in limit._buckets)
    assert TicketLimit(60)._hashed("10.0.0.1") != limit._hashed("10.0.0.1")


def test_the_organiser_sees_bursts(organiser, database, monkeypatch):
    now = [9000.0]
    monkeypatch.setattr(Pulse, "_now", staticmethod(lambda: int(now[0] // 300)))
    monkeypatch.setattr(TicketLimit, "_now", staticmethod(lambda: now[0]))
    survey_id = opened(organiser)
    secret = database.find(survey_id)[1]
    seen = [organiser.get(f"/s/{survey_id}") for _ in range(62)]
    assert Counter(page.status_code for page in seen) == {200: 60, 429: 2}
    assert seen[-1].headers["Retry-After"] == "60"
    token = re.search(r'"ticket": "([\w-]+)"', seen[0].text)[1]
    assert good_ticket(secret, token)
    organiser.post(f"/s/{survey_id}/answers", json={"token": token, "ranking": [0, 1, 2]})
    shown = organiser.get(f"/organiser/surveys/{survey_id}").text
    assert "2 pages were refused" in shown
    assert "five minutes, 1 at most" in shown
    now[0] += 300 * SLOTS
    assert "were refused" not in organiser.get(f"/organiser/surveys/{survey_id}").text


# -- days, the start page, the plan ------------------------------------------------------------------------------------


def test_a_survey_closes_after_its_last_day(database, monkeypatch):
    survey = create_survey(database, "Drinks", DRINKS, 2, closing=survey_database.today())
    assert database.store(survey, [("a", bytes(range(4)))]) == ["stored"]
    monkeypatch.setattr(survey_database, "today", lambda: "2999-01-02")
    assert database.store(survey, [("b", bytes(range(4)))]) == ["closed"]
    with visitor(database) as client:  # the server closes it, whatever is asked for
        assert client.get(f"/s/{survey.id}").status_code == 410
        for _ in range(100):
            if not database.find(survey.id)[0].open:
                break
            client.get("/")
    assert not database.find(survey.id)[0].open


def test_the_start_page_lists_what_organisers_list(database):
    create_survey(database, "Hidden", DRINKS, 2)
    with visitor(database) as client:
        assert "Every survey has its own link" in client.get("/").text
        listed = create_survey(database, "Shown", DRINKS, 2, listed=True, organiser="The club")
        text = client.get("/").text
        assert f'href="s/{listed.id}"' in text
        assert "The club" in text
        assert "Hidden" not in text
        database.finish(listed.id)
        assert "Shown" not in client.get("/").text


@pytest.mark.slow
def test_the_plan_is_the_worst_case_and_simulation_keeps_it(organiser):
    """Respondents who are split between two opposite orders, the widest that opinions differ."""
    known = meaning(5, "2", 400)
    assert known["sure"] == "88.1"
    made = mechanism("auto", 5, 2, protect="ranking")
    values = np.asarray(rank_estimator(made).values)
    truth = np.array([[0, 1, 2, 3, 4]] * 250 + [[4, 3, 2, 1, 0]] * 150, dtype=np.int32)  # mean places 2.5 and 3.0 first
    right = []
    for seed in range(200):
        drawn = made.sample(truth, SeededBits(seed))
        means = np.array([values[np.argsort(drawn, axis=1)[:, item]].mean() for item in range(5)])
        right.append(means[0] < means[2])  # half a place apart
    bound = NormalDist().cdf(0.5 / (2 * float(known["reach"]) / 1.96))  # the stated formula for half a place
    assert np.mean(right) >= bound - 3 * np.sqrt(bound * (1 - bound) / 200)
    reply = organiser.get("/organiser/plan?items=5&epsilon=2&answers=400&lang=de").json()
    assert "höchstens zu 88,1\xa0%" in reply["promise"]
    assert f"mindestens {known['right']}\xa0%" in reply["accuracy"]
    assert (
        "little better than a guess" in organiser.get("/organiser/plan?items=60&epsilon=1&answers=5").json()["accuracy"]
    )
    for wrong in ("items=1&epsilon=2&answers=5", "items=5&epsilon=x&answers=5", "items=5&epsilon=2&answers=0"):
        assert organiser.get(f"/organiser/plan?{wrong}").json()["promise"] == ""


def test_old_surveys_are_read(database):
    """Facts of surveys that were made before there were pictures, kiosks and last days."""
    survey = create_survey(database, "Drinks", DRINKS, 2)
    new = {"descriptions", "pictures", "organiser", "contact", "legal", "closing", "kiosk", "listed", "frames"}
    with database.engine.begin() as connection:
        facts = {name: value for name, value in dataclasses.asdict(survey).items() if name not in new | {"open"}}
        connection.exec_driver_sql("UPDATE surveys SET facts = ?", (json.dumps(facts),))
        connection.exec_driver_sql("DROP TABLE pictures")
    assert survey_database.SurveyDatabase(database.name).surveys() == [survey]
