"""Respondents in a real browser: they rank, draw and send; and what the page refuses."""

from __future__ import annotations

import json

import pytest
from conftest import DRINKS, served
from survey_steps import PHONE, arrange, copy, order, ready

from rankdp.mechanisms import mechanism
from rankdp_web.browser_tables import browser_tables
from rankdp_web.surveys import create_survey, invite, mechanism_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chromium")]


def test_a_respondent_drags_and_sends(visit, server, survey, database):
    with visit(f"{server}/s/{survey.id}") as page:
        first = order(page)
        rows = page.locator("#list li")
        rows.nth(3).hover()
        page.mouse.down()
        box = rows.nth(0).bounding_box()
        page.mouse.move(box["x"] + 60, box["y"] + 30, steps=4)
        page.mouse.move(box["x"] + 60, box["y"] + 2, steps=4)
        page.mouse.up()
        assert order(page) == [first[3], *first[:3]]
        assert page.locator("#said").text_content() == f"{DRINKS[first[3]]}: place 1 of 4."
        page.reload()
        assert order(page) == [first[3], *first[:3]]
        page.click("#done")
        sent = copy(page)
        own = page.locator("#own li .name").all_text_contents()
        assert own == [DRINKS[item] for item in (first[3], *first[:3])]
        steps = [own.index(DRINKS[item]) - place for place, item in enumerate(sent)]
        marks = page.locator("#send .copy .mark [aria-hidden]").all_text_contents()
        assert marks == [f"{'↑' if step > 0 else '↓'}{abs(step)}" for step in steps if step]
        page.reload()
        assert copy(page) == sent
        assert page.locator("#own li .name").all_text_contents() == own
        assert page.locator("#rank").is_hidden()
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        assert page.evaluate("sessionStorage.length") == 0
        assert page.locator("#own li").count() == 0
        assert database.answers(survey.id) == [bytes(sent)]
        page.reload()
        page.wait_for_selector("#sent:not([hidden])")
        assert copy(page, "sent") == sent
        assert page.context.cookies() == []


def test_a_respondent_uses_the_keyboard_alone(visit, server, survey, database):
    with visit(f"{server}/s/{survey.id}", **PHONE, color_scheme="dark") as page:
        first = order(page)
        said = page.locator("#said")

        def press(*keys):
            for key in keys:
                page.keyboard.press(key)

        press("Tab", "Tab", "ArrowDown", "ArrowDown", "Space")
        assert said.text_content() == f"{DRINKS[first[2]]} taken. Place 3 of 4. Move it with the arrow keys."
        press("ArrowUp")
        assert said.text_content() == f"{DRINKS[first[2]]}: place 2 of 4."
        press("ArrowUp", "Space")
        assert said.text_content() == f"{DRINKS[first[2]]} put down at place 1 of 4."
        assert order(page) == [first[2], first[0], first[1], first[3]]
        press("Space", "End", "Escape")  # put back
        assert order(page) == [first[2], first[0], first[1], first[3]]
        press("Alt+ArrowDown", "Home")
        assert order(page) == [first[0], first[2], first[1], first[3]]
        assert page.evaluate("document.activeElement.role") == "option"
        press("Tab")
        assert page.evaluate("document.activeElement.id") == "done"
        press("Enter")
        sent = copy(page)
        assert page.evaluate("document.activeElement.id") == "send-title"
        page.wait_for_selector("#send-button:enabled")
        press("Tab", "Enter")
        page.wait_for_selector("#sent:not([hidden])")
        assert database.answers(survey.id) == [bytes(sent)]


@pytest.mark.parametrize(("grip", "press"), [(".handle", False), (".name", True)], ids=["handle", "long press"])
def test_a_respondent_drags_with_a_finger(visit, server, survey, grip, press):
    with visit(f"{server}/s/{survey.id}", **PHONE) as page:
        first = order(page)
        gripped = page.locator(f"#list li {grip}")
        start, end = gripped.nth(0).bounding_box(), gripped.nth(2).bounding_box()
        touch = page.context.new_cdp_session(page)

        def finger(kind, y):
            points = [{"x": start["x"] + 20, "y": y}] if kind != "touchEnd" else []
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        finger("touchStart", start["y"] + 10)
        if press:
            page.wait_for_selector("#list .dragging")
        for step in range(1, 6):
            finger("touchMove", start["y"] + 10 + step * (end["y"] - start["y"] + 25) / 5)
        finger("touchEnd", 0)
        assert order(page) == [first[1], first[2], first[0], first[3]]


@pytest.mark.long
def test_a_hundred_items_on_a_phone(visit, database):
    survey = create_survey(database, "Many", [f"item {number}" for number in range(100)], 1)
    with served(database) as server, visit(f"{server}/s/{survey.id}", **PHONE) as page:
        shown = order(page, "pool")
        assert sorted(shown) == list(range(100))
        assert shown != sorted(shown)
        first = [shown[70], shown[3], shown[99]]
        for item in first:
            page.click(f'#pool [data-item="{item}"] button')
        assert order(page) == first
        page.click(f'#list [data-item="{shown[3]}"] .name')
        page.click("[data-move=out]")
        assert order(page) == [shown[70], shown[99]]
        assert page.locator("#count").text_content() == "2 / 100"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ready(page, "You have ranked 2 of 100. The others would follow")
        own = page.eval_on_selector_all("#own li", "rows => rows.map(row => Number(row.dataset.item))")
        assert own[:3] == [shown[70], shown[99], shown[3]]
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        (stored,) = database.answers(survey.id)
        assert sorted(stored[:-1]) == list(range(100))
        assert stored[-1] < mechanism_of(survey).offsets
        assert page.evaluate("JSON.parse(Object.values(localStorage)[0]).offset") == stored[-1]


def test_a_cut_link_is_mended_and_the_next_invitee_starts_fresh(visit, database):
    survey = create_survey(database, "Drinks", DRINKS, 2, invited=True)
    first, second = invite(database, survey, 2)
    refused = ("Failed to load resource: the server responded with a status of 403",)
    with served(database) as server, visit(f"{server}/s/{survey.id}#{first[:-4]}", refused) as page:
        page.wait_for_selector("#link:not([hidden])")
        assert page.locator("#rank").is_hidden()
        page.fill("#link-given", first[:-1])
        page.click("#link-form button")
        page.wait_for_selector("#notice:has-text('not known either')")
        page.fill("#link-given", f"{server}/s/{survey.id}#{first}")
        page.click("#link-form button")
        ready(page)
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        page.evaluate(f"location.hash = '{second}'")  # the same tab
        arrange(page, [2, 0, 1, 3])
        page.goto(f"{server}/s/{survey.id}?lang=en#{first}")
        page.wait_for_selector("#sent:not([hidden])")
        page.goto(f"{server}/s/{survey.id}#{second}")
        assert order(page) == [2, 0, 1, 3]
        page.click("#more")  # a jump within the page that keeps the invitation
        page.click("#done")
        sent = copy(page)
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        assert bytes(sent) in database.answers(survey.id)
        page.evaluate("localStorage.clear()")
        page.reload()
        page.wait_for_selector("#used:not([hidden])")
    assert database.count(survey.id) == 2


def test_the_best_five_of_thirty(visit, database):
    survey = create_survey(database, "Films", [f"film {number}" for number in range(30)], 4, rank_top=5)
    with served(database) as server, visit(f"{server}/s/{survey.id}", **PHONE) as page:
        shown = order(page, "pool")
        assert sorted(shown) == list(range(30))
        for place in (7, 3, 11, 29):
            page.click(f'#pool [data-item="{shown[place]}"] button')
        assert page.locator("#done").is_disabled()
        page.click(f'#pool [data-item="{shown[0]}"] button')
        assert page.locator("#count").text_content() == "5 / 5"
        assert page.locator("#pool button:enabled").count() == 0
        page.reload()
        own = [shown[place] for place in (7, 3, 11, 29, 0)]
        assert order(page) == own
        page.click("#done")
        listed = page.eval_on_selector_all("#own li", "rows => rows.map(row => Number(row.dataset.item))")
        assert listed == own
        sent = page.eval_on_selector_all("#send .copy li", "rows => rows.map(row => Number(row.dataset.item))")
        new = page.locator("#send .copy .mark:has-text('new')").count()
        assert new == len(set(sent) - set(own))
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        assert database.answers(survey.id) == [bytes(sent)]


def test_a_kiosk_keeps_nothing_and_starts_again(visit, database):
    survey = create_survey(database, "Drinks", DRINKS, 2, kiosk=True)
    with served(database) as server, visit(f"{server}/s/{survey.id}") as page:
        for number in (1, 2):
            arrange(page, [3, 2, 1, 0])
            page.click("#done")
            page.click("#send-button")
            page.wait_for_selector("#sent:not([hidden])")
            assert page.evaluate("localStorage.length + sessionStorage.length") == 0
            page.click("#next")
            page.wait_for_selector("#rank:not([hidden])")
            assert database.count(survey.id) == number


def test_a_weak_promise_draws_what_it_warns_of(visit, database):
    weak = create_survey(database, "Drinks", DRINKS, "10.5", weak_promise_accepted=True)
    with served(database) as server, visit(f"{server}/s/{weak.id}") as page:
        assert "almost no protection: its epsilon is 10.5." in page.locator(".warning").first.text_content()
        page.click("#more")
        ready(page)
        assert sorted(copy(page)) == [0, 1, 2, 3]


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_a_double_tap_sends_nothing(visit, server, survey, database, width):
    with visit(f"{server}/s/{survey.id}", viewport={"width": width, "height": 780}) as page:
        arrange(page, [3, 2, 1, 0])
        place = page.locator("#done").bounding_box()
        page.dblclick("#done")
        page.wait_for_selector("#send-button:enabled")
        other = page.locator("#send-button").bounding_box()
        assert other["x"] + other["width"] < place["x"]  # wherever the page is scrolled to
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert database.count(survey.id) == 0


@pytest.mark.long
def test_visitors_see_different_orders(visit, server, survey):
    with visit(f"{server}/s/{survey.id}") as page:
        seen = set()
        for _ in range(6):
            seen.add(tuple(order(page)))
            page.reload()
            assert tuple(order(page)) in seen  # the same for the whole visit
            page.evaluate("sessionStorage.clear()")
            page.reload()
    assert len(seen) > 1  # all the same: one in 24^5


@pytest.mark.long
def test_a_browser_that_stores_nothing_is_told_so(visit, server, survey, chromium, database):
    with visit("about:blank") as page:
        page.add_init_script(
            "for (const name of ['localStorage', 'sessionStorage'])"
            "Object.defineProperty(window, name, { get() { throw new DOMException('blocked'); } });"
        )
        page.goto(f"{server}/s/{survey.id}?lang=de")
        ready(page, "Sie haben nichts verschoben")
        assert "speichert nichts" in page.locator("#notice").text_content()
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
    assert database.count(survey.id) == 1


@pytest.mark.long
def test_an_answer_waits_for_a_server_that_is_away(visit, server, survey, database):
    with visit(f"{server}/s/{survey.id}") as page:
        ready(page)
        sent = copy(page)
        page.evaluate("() => { window.before = fetch; window.fetch = () => Promise.reject(new TypeError('away')); }")
        page.click("#send-button")
        assert "could not be sent" in page.locator("#notice").text_content()
        page.evaluate("() => { window.fetch = window.before; }")
        page.click("#send-button")
        page.wait_for_selector("#sent:not([hidden])")
        assert page.locator("#notice").is_hidden()
    assert database.answers(survey.id) == [bytes(sent)]


# -- what the page refuses -------------------------------------------------------------------------------------------


def forged(page, epsilon):
    """Let the server send the tables of another epsilon in an otherwise honest page."""

    def change(route):
        reply = route.fetch()
        head, rest = reply.text().split('id="known">')
        brought, tail = rest.split("</script>", 1)
        content = json.loads(brought)
        content["known"]["tables"] = browser_tables(mechanism("reinsertion", len(DRINKS), epsilon, protect="ranking"))
        route.fulfill(response=reply, body=f'{head}id="known">{json.dumps(content)}</script>{tail}')

    page.route("**/s/*", change)


@pytest.mark.parametrize(("epsilon", "honest"), [(50, False), ("2.01", False), (2, True)])
def test_the_page_refuses_tables_that_allow_more_than_it_says(visit, server, survey, epsilon, honest):
    with visit("about:blank") as page:
        forged(page, epsilon)
        page.goto(f"{server}/s/{survey.id}")
        assert page.locator("#epsilon").text_content() == "2"
        if honest:
            ready(page)
            assert sorted(copy(page)) == [0, 1, 2, 3]
        else:
            words = "epsilon 2, but its sentences or the numbers that it would draw the noise from do not keep"
            assert words in page.locator("#notice").text_content()
            assert page.locator("#rank").is_hidden()
            assert page.evaluate("localStorage.length + sessionStorage.length") == 0


@pytest.mark.parametrize("where", [".promised span", ".promises"])
def test_sentences_that_promise_more_than_epsilon_are_refused(visit, server, survey, where):
    with visit(f"{server}/s/{survey.id}") as page:
        for said, refused in (("88.1", "88.0"), ("88,1 ", "88,0 "), ("at most 88.1", "hardly")):
            for words, draws in ((said, True), (refused, False)):
                page.evaluate(
                    f"document.querySelector('{where}').firstChild.data = '{words}% sure.'.replace('y%', 'y')"
                )
                page.click("#done")
                if draws:
                    page.click("#sure [value=no]")
                else:
                    assert "This page promises epsilon 2, but" in page.locator("#notice").text_content()
                    assert not page.locator("#sure").is_visible()


@pytest.mark.parametrize("shown", ["textContent = '1'", "dataset.protect = 'ranking'"])
def test_the_promise_that_is_shown_counts_when_the_copy_is_drawn(visit, server, database, shown):
    survey = create_survey(database, "Drinks", DRINKS, 2, protect="position", mechanism="reinsertion")
    with visit(f"{server}/s/{survey.id}") as page:
        page.evaluate(f"document.getElementById('epsilon').{shown}")
        page.click("#done")
        assert f"This page promises epsilon {1 if '1' in shown else 2}, but" in page.locator("#notice").text_content()
        assert page.locator("#send").is_hidden()
        assert page.evaluate("localStorage.length") == 0


def test_the_page_draws_nothing_over_plain_http(visit, server, survey, database):
    ignored = ("The Cross-Origin-Opener-Policy header has been ignored",)
    with visit(f"{server.replace('127.0.0.1', 'survey.test')}/s/{survey.id}", ignored) as page:
        assert page.evaluate("isSecureContext") is False
        assert "not encrypted (http://)" in page.locator("#notice").text_content()
        assert page.locator("#rank").is_hidden()
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    with visit(f"{server.replace('127.0.0.1', 'localhost')}/s/{survey.id}") as page:
        ready(page)
        assert sorted(copy(page)) == [0, 1, 2, 3]
