"""The pages of a survey in a real browser: respondents, organisers, and all that crosses the wire."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import DRINKS, served
from test_sampler import Stream

from rankdp.mechanisms import mechanism
from rankdp.theory.permutations import places
from rankdp_web import pages, survey_results
from rankdp_web.browser_tables import browser_tables
from rankdp_web.survey_page import LOADED
from rankdp_web.surveys import create_survey, invite, mechanism_of, tables_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chromium")]
PIXEL = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1200, "height": 900}}


@pytest.fixture
def visit(chromium):
    """Opens an address in a fresh profile; what the page reports as an error fails the test, unless it is expected."""

    @contextmanager
    def opened(address, expected=(), **options):
        context = chromium.new_context(**{**DESKTOP, **options})
        context.set_default_timeout(60_000)
        page = context.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(address)
        try:
            yield page
            assert [words for words in problems if not words.startswith(expected)] == []
        finally:
            context.close()

    return opened


def order(page, part="list"):
    """The numbers of the items as the list shows them."""
    page.wait_for_selector("#rank:not([hidden])")
    return page.eval_on_selector_all(f"#{part} li", "rows => rows.map(row => Number(row.dataset.item))")


def ready(page, doubt="You have not moved anything"):
    """Say that an order is right that nobody made: the button wakes up late, so that a double tap says nothing."""
    page.wait_for_selector("#rank:not([hidden])")
    page.evaluate(
        "() => { const yes = document.querySelector('#sure [value=yes]'); window.changes = [];"
        "new MutationObserver(() => changes.push([yes.disabled, performance.now()]))"
        ".observe(yes, { attributeFilter: ['disabled'] }); }"
    )
    page.click("#done")
    assert doubt in page.locator("#sure-words").text_content()
    page.click("#sure [value=yes]")
    page.wait_for_selector("#send:not([hidden])")
    (asleep, began), (still, ended) = page.evaluate("changes")
    assert (asleep, still) == (True, False)
    assert ended - began > 450  # milliseconds


def copy(page, part="send"):
    return [DRINKS.index(name) for name in page.locator(f"#{part} .copy li .name").all_text_contents()]


def arrange(page, wanted):
    """Bring the list into an order with the buttons, as anybody may."""
    for item in reversed(wanted):
        page.click(f'#list [data-item="{item}"] .name')
        page.click("[data-move=top]")
        page.click(f'#list [data-item="{item}"] .name')
    assert order(page) == wanted


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


# -- what crosses the wire -------------------------------------------------------------------------------------------


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


# -- organisers, and everybody's eyes ----------------------------------------------------------------------------------


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
