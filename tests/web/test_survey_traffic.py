"""All that crosses the wire between the browser of a respondent and the server, and between two tabs."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from conftest import DRINKS, served
from survey_steps import DESKTOP, PIXEL, arrange, copy, order
from test_sampler import Stream

from rankdp.theory.permutations import places
from rankdp_web.survey_page import LOADED
from rankdp_web.surveys import create_survey, invite, mechanism_of, tables_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chromium")]


def words_fixed(word):
    """A script that lets WebCrypto return the words of ``Stream``, whose first is ``word`` where that is given."""
    return (
        "crypto.getRandomValues = (array) => { let state = 5n; const mask = (1n << 64n) - 1n;"
        "for (let i = 0; i < array.length; i += 1) { state = (state + 0x9e3779b97f4a7c15n) & mask; let w = state;"
        "w = ((w ^ (w >> 30n)) * 0xbf58476d1ce4e5b9n) & mask; w = ((w ^ (w >> 27n)) * 0x94d049bb133111ebn) & mask;"
        f"array[i] = w ^ (w >> 31n); }} {'' if word is None else f'array[0] = {word}n;'} return array; }};"
    )


def all_traffic(chromium, address, truth, word=None):
    """Everything that a visitor's browser sends while they rank, change their mind, reload and send."""
    context = chromium.new_context(**DESKTOP, locale="en-GB")
    context.set_default_timeout(60_000)
    page = context.new_page()
    crossed, sockets = [], []
    session = context.new_cdp_session(page)
    session.send("Network.enable")

    def record(event):
        request = event["request"]
        crossed.append([request["method"], request["url"], request["headers"], request.get("postData")])

    session.on("Network.requestWillBeSent", record)
    session.on("Network.webSocketCreated", lambda event: sockets.append(event))
    page.add_init_script(words_fixed(word))
    page.goto(address)
    arrange(page, [truth[-1], *truth[:-1]])
    arrange(page, truth)
    page.reload()
    assert order(page) == truth
    page.click("#done")
    page.reload()
    page.click("#send-button")
    page.wait_for_selector("#sent:not([hidden])")
    context.close()
    assert sockets == []
    return crossed


def test_nothing_but_the_copy_crosses(chromium, database):
    survey = create_survey(database, "Drinks", DRINKS, 1, invited=True)
    made = mechanism_of(survey)
    with served(database) as server:
        address = f"{server}/s/{survey.id}"
        truth = [3, 1, 0, 2]
        (token,) = invite(database, survey, 1)
        crossed = all_traffic(chromium, f"{address}#{token}", truth)
        posts = [request for request in crossed if request[0] != "GET"]
        expected = made.sample(np.array([truth], dtype=np.int32), Stream(5, ()))[0].tolist()
        asked = ["POST", f"{address}/invitation", json.dumps({"token": token}, separators=(",", ":"))]
        assert [post[:2] + post[3:] for post in posts] == [
            asked,
            asked,  # the page was reloaded
            ["POST", f"{address}/answers", json.dumps({"token": token, "ranking": expected}, separators=(",", ":"))],
        ]
        static = {f"{server}/static/{name}" for name in LOADED}
        assert {request[1] for request in crossed if request[0] == "GET"} <= static | {address}
        for _, url, headers, _ in crossed:
            assert token not in url
            assert token not in json.dumps(headers)
            named = {name.lower() for name, value in headers.items() if value}
            assert not {"cookie", "referer", "authorization"} & named


def test_pictures_are_asked_for_once_and_in_no_order_of_anybody(visit, database):
    """A server that forbids to cache them sees the same requests, whatever is moved."""
    pixel = base64.b64decode(PIXEL)
    for count, top in ((6, 0), (20, 3)):
        items = [f"item {number}" for number in range(count)]
        pictures = {item: pixel + bytes([number]) for number, item in enumerate(items)}
        survey = create_survey(database, "Pictures", items, 2, pictures=pictures, rank_top=top)
        asked = []

        def answer(route):
            asked.append(route.request.url.rpartition("/")[2])  # noqa: B023
            route.fulfill(body=pixel, content_type="image/png", headers={"Cache-Control": "no-store"})

        with served(database) as server, visit("about:blank") as page:
            page.route("**/pictures/*", answer)
            page.goto(f"{server}/s/{survey.id}")
            for _ in range(2):
                page.wait_for_function(f"document.querySelectorAll('#rank img:not([hidden])').length === {count}")
                for row in (3, 1, 2):
                    if top:
                        page.locator("#pool button").nth(row).click()
                    else:
                        page.locator("#list .name").nth(row).click()
                        page.click("[data-move=top]")
                page.wait_for_timeout(300)
                assert asked == list(survey.pictures)
                asked.clear()
                page.evaluate("sessionStorage.clear()") if top else None
                page.reload()


def test_another_tab_forgets_the_ranking_as_well(visit, server, survey):
    with visit(f"{server}/s/{survey.id}") as page:
        arrange(page, [3, 2, 1, 0])
        other = page.context.new_page()
        other.goto(f"{server}/s/{survey.id}")
        arrange(other, [0, 1, 2, 3])
        page.click("#done")
        other.wait_for_selector("#send:not([hidden])")  # the copy of this browser
        assert copy(other) == copy(page)
        assert other.locator("#own-part").is_hidden()  # the copy is not one of this ranking
        page.click("#send-button")
        other.wait_for_selector("#sent:not([hidden])")
        assert page.evaluate("sessionStorage.length") == other.evaluate("sessionStorage.length") == 0


def test_bytes_depend_on_the_ranking_only_through_the_copy(chromium, database):
    survey = create_survey(database, "Drinks", DRINKS, 1, invited=True, mechanism="reinsertion")
    (token,) = invite(database, survey, 1)
    cuts = [int(cut) for cut in tables_of(survey)["outputs"]["cuts"]]
    wanted = [2, 0, 3, 1]
    seen = []
    with served(database) as server:
        for truth in ([0, 1, 2, 3], [3, 2, 1, 0]):
            relative = np.array([[truth.index(item) for item in wanted]], dtype=np.int32)
            cell = int(places(relative)[0])
            word = (cuts[cell] + (cuts[cell - 1] if cell else 0)) // 2
            with database.engine.begin() as connection:  # the invitation is fresh again
                for table in ("used", "inbox"):
                    connection.exec_driver_sql(f"DELETE FROM {table}")
            seen.append(all_traffic(chromium, f"{server}/s/{survey.id}#{token}", truth, word))
            assert list(database.answers(survey.id)) == [bytes(wanted)]
    assert seen[0] == seen[1]
