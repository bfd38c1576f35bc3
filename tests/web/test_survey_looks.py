"""Organisers in a real browser, and everybody's eyes: axe, widths, themes, languages, bytes."""

from __future__ import annotations

import base64

import pytest
from conftest import served
from survey_steps import PHONE, PIXEL, order, ready

from rankdp_web import pages, survey_results
from rankdp_web.surveys import create_survey

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chromium")]


def test_results_follow_without_reloading(visit, server, survey, database, monkeypatch):
    monkeypatch.setattr(survey_results, "_SECONDS", 0.1)
    with visit(f"{server}/s/{survey.id}/results") as page:
        assert "Collecting answers" in page.locator("#results").text_content()
        database.store(survey, [(str(number), bytes([0, 1, 2, 3])) for number in range(80)])
        page.wait_for_selector("#results .count:has-text('Answers shown: 32')")
        assert page.locator("#results tbody .name").first.text_content() == "Tea"
        assert page.locator("#results tbody svg").first.is_visible()


LOOKS = [(390, "dark"), (820, "light"), (1280, "light")]


def check(page, axe):
    """axe finds nothing, and nothing is wider than the window, on phones, tablets and desktops, in both themes."""
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if not page.evaluate("!!window.axe"):
            page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == [], (page.url, width, scheme)


def test_axe_finds_nothing_on_the_respondents_pages(visit, server, survey, database, axe):
    database.store(survey, [(str(number), bytes([0, 1, 2, 3])) for number in range(64)])
    with visit(f"{server}/s/{survey.id}") as page:
        page.locator("#list li").nth(1).click()
        check(page, axe)
        ready(page)
        page.wait_for_selector("#send-button:enabled")
        check(page, axe)
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        check(page, axe)
        page.goto(f"{server}/s/{survey.id}/results")
        check(page, axe)


def test_an_organiser_opens_a_survey_and_gets_a_code(visit, database, certificate, axe, tmp_path):
    picture = tmp_path / "A park.png"
    picture.write_bytes(base64.b64decode(PIXEL))
    with (
        served(database, certificate=certificate, organiser_key="sesame") as server,
        visit(f"{server}/organiser?key=sesame".replace("127.0.0.1", "survey.test"), ignore_https_errors=True) as page,
    ):
        check(page, axe)
        page.click("a.button")
        page.fill("[name=title]", "What first?")
        page.fill("#items", "A cycle path | along the river\nA park\nحديقة")
        page.set_input_files("#pictures", picture)
        page.fill("#epsilon", "1")
        page.wait_for_selector("#promise:has-text('73.2% sure')")
        check(page, axe)
        page.click("#new .main")
        page.wait_for_url("**/preview/*")
        inside = page.frame_locator("iframe")
        inside.locator("#list img").wait_for()
        assert inside.locator("#list img").evaluate("image => image.naturalWidth") == 1
        inside.locator("#done").click()
        inside.locator("#sure [value=yes]").click()
        inside.locator("#send-button").click()
        inside.locator("#notice:has-text('nothing was sent')").wait_for()
        check(page, axe)
        page.click("form .main")
        page.wait_for_selector(".code")
        assert page.locator(".code").evaluate("image => image.naturalWidth") > 100
        check(page, axe)
        link = page.locator("#link").text_content()
        page.goto(link)
        assert sorted(order(page)) == [0, 1, 2]
        assert page.evaluate("isSecureContext")


def test_a_language_from_right_to_left(visit, server, survey, monkeypatch):
    english = pages._read_texts()["en"]
    mirrored = {"en": english, "ar": {**english, "language": "العربية", "direction": "rtl"}}
    monkeypatch.setattr(pages, "_read_texts", lambda: mirrored)
    pages.all_texts.cache_clear()
    try:
        with visit(f"{server}/s/{survey.id}?lang=ar", **PHONE) as page:
            row, handle = page.locator("#list li").first, page.locator("#list .handle").first
            assert handle.bounding_box()["x"] < row.bounding_box()["x"] + 20
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            done = page.locator("#done").bounding_box()
            ready(page)
            assert done["x"] + done["width"] <= page.locator("#send-button").bounding_box()["x"]
    finally:
        pages.all_texts.cache_clear()


def test_the_page_is_light(chromium, database):
    """Bytes on the wire for a first visit, without pictures: 30 items, and 100, whose tables are the largest."""
    for items, most in ((30, 150_000), (100, 150_000)):
        survey = create_survey(database, "Many", [f"a rather long name of item {n}" for n in range(items)], 2)
        with served(database) as server:
            context = chromium.new_context()
            context.set_default_timeout(60_000)
            page, sizes = context.new_page(), []
            page.on("requestfinished", lambda request, sizes=sizes: sizes.append(request.sizes()["responseBodySize"]))
            page.goto(f"{server}/s/{survey.id}")
            page.wait_for_load_state("networkidle")
            context.close()
        assert 10_000 < sum(sizes) < most, (items, sum(sizes))
