"""`rankdp survey verify`: an honest server passes, and every kind of change is named."""

from __future__ import annotations

import dataclasses

import pytest
from click.testing import CliRunner
from conftest import DRINKS, served

from rankdp.cli import cli
from rankdp.errors import InputError, SystemProblem
from rankdp_web import survey_app, survey_page
from rankdp_web.survey_page import LOADED, verify
from rankdp_web.surveys import create_survey, tables_of


def test_an_honest_server_passes(server, survey):
    result = CliRunner().invoke(cli, ["survey", "verify", f"{server}/s/{survey.id}#invitation"])
    assert result.exit_code == 0, result.exception
    assert "tables, texts and scripts are the same as in this version" in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"invited": True, "results_key": "sesame", "question": ""},
        {"items": [f"item <{number}> & 'ä'" for number in range(20)]},
        {"mechanism": "tiers", "tiers": [1, 3]},
        {"protect": "position"},
        {"items": [f"item {number}" for number in range(30)], "rank_top": 5},
        {"items": [f"item {number}" for number in range(61)], "epsilon": "4"},
        {"epsilon": "12.5", "weak_promise_accepted": True},
    ],
)
def test_every_kind_of_survey_passes(database, options):
    asked = {"title": "Drinks </script>", "items": DRINKS, "epsilon": "1.5", "question": "Why?\nTell us."} | options
    survey = create_survey(database, **asked)
    with served(database) as address:
        assert verify(f"{address}/s/{survey.id}") == []


def test_the_tables_of_another_epsilon_are_found(database, monkeypatch):
    survey = create_survey(database, "Drinks", DRINKS, 2, protect="position")
    honest = survey_app.respondent_values

    def values(asked, ticket):
        made = honest(asked, ticket)
        return made | {"known": made["known"] | {"tables": tables_of(dataclasses.replace(asked, epsilon="50"))}}

    with served(database) as address:
        monkeypatch.setattr(survey_app, "respondent_values", values)
        result = CliRunner().invoke(cli, ["survey", "verify", f"{address}/s/{survey.id}"])
    assert result.exit_code == 1
    assert isinstance(result.exception, InputError)
    assert f"the tables of the noise are not those of {survey.mechanism} for 4 items at epsilon 2" in str(
        result.exception
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "before", "after", "words"),
    [
        (
            "?lang=de",
            b"h\xc3\xb6chstens zu 88,1",
            b"h\xc3\xb6chstens zu 73,2",
            ["the page in Deutsch is not that of rankdp"],
        ),
        ("?lang=en", b"</main>", b"<script src=x></script></main>", ["the page in English is not that of rankdp"]),
        ("?lang=en", b'"epsilon": "2"', b'"epsilon": "50"', ["the page in English"]),
        ("?lang=en", b'"radius": ', b'"radius": 1', ["the tables of the noise are not those"]),
        ("?lang=en", b'data-protect="ranking"', b'data-protect="position"', ["the page in English"]),
        ("?lang=en", b'"protect": "ranking"', b'"protect": "voter"', ["no survey can be what the page states"]),
        (
            "?lang=en",
            b'"epsilon": "2"',
            b'"epsilon": "nan"',
            ["no survey can be what the page states: epsilon must be"],
        ),
        ("?lang=en", b'"epsilon": "2"', b'"epsilon": [2]', ["the page does not state the facts"]),
        ("?lang=en", b'"version": "', b'"version": "9', ["the server has rankdp 9"]),
        *((name, b"\n", b"\n ", [f"static/{name} is not that"]) for name in LOADED if not name.endswith("svg")),
    ],
)
def test_a_change_is_named(server, survey, monkeypatch, where, before, after, words):
    honest = survey_page._downloaded

    def changed(address):
        content = honest(address)
        if not address.endswith(where):
            return content
        assert before in content
        return content.replace(before, after, 1)

    monkeypatch.setattr(survey_page, "_downloaded", changed)
    found = verify(f"{server}/s/{survey.id}")
    assert len(found) == len(words)
    for sentence, part in zip(found, words, strict=True):
        assert part in sentence


def test_what_is_no_survey_is_refused(server, survey, database):
    for address in ("ftp://example.org/s/x", "survey.db", "mailto:ann@example.org", "https://"):
        with pytest.raises(InputError, match="must begin with https:// or http://"):
            verify(address)
    with pytest.raises(InputError, match="the server answered 404"):
        verify(f"{server}/s/nowhere")
    with pytest.raises(InputError, match="not the page of a survey that takes answers"):
        verify(f"{server}/s/{survey.id}/results")
    database.finish(survey.id)
    with pytest.raises(InputError, match="answered 410; a closed survey"):
        verify(f"{server}/s/{survey.id}")
    with pytest.raises(SystemProblem, match="nothing could be downloaded"):
        verify("http://127.0.0.1:1/s/x")
