"""The studio in a real browser: each kind of data from file to release, by mouse, finger and keyboard, in both themes.

With STUDIO_SHOTS=DIRECTORY every page is saved as a picture there, to be looked at.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from studio_support import ITEMS, make_files, write

from rankdp.planning.plan import plan
from rankdp.privacy.ledger import Ledger
from rankdp_web.studio_app import studio_config
from rankdp_web.studio_pages import Studio
from rankdp_web.studio_plan import certainty

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chromium")]
KEY = "key-for-tests"
SHOTS = os.environ.get("STUDIO_SHOTS")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """The address and the directory of one server for all tests."""
    desk = tmp_path_factory.mktemp("desk")
    make_files(desk)
    with _free_port() as (listening, port):
        server = uvicorn.Server(studio_config(Studio(desk, desk / "budget.db"), KEY, port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until = time.monotonic() + 60
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}", desk
        server.should_exit = True
        thread.join()


@contextmanager
def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening, listening.getsockname()[1]


@contextmanager
def visiting(chromium, address, width=1200, scheme="light", **options):
    """A page of a fresh profile that has the key; whatever the page reports as an error fails the test."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
    context.set_default_timeout(60_000)
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(f"{address}/?key={KEY}")
    try:
        yield page
        assert problems == []
    finally:
        context.close()


def on(page, step):
    """Wait for a step; it fits the width of the page."""
    page.wait_for_url(f"**/{step}*")
    page.wait_for_load_state("load")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.locator("[aria-current=step]").count() == 1
    if SHOTS:
        name = f"{page.viewport_size['width']}-{step}-{time.monotonic_ns()}"
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def following(page, words="Next"):
    page.get_by_role("button", name=words).or_(page.get_by_role("link", name=words)).click()


def ready(page, file, said=lambda page: None, unit=None):
    """From the first page to the button."""
    page.get_by_role("button", name=file).click()
    on(page, "file")
    assert "NOT PRIVATE" in page.locator(".secret").inner_text()
    said(page)
    if file != "scores.csv":
        page.get_by_label("This list may be public").check()
    following(page)
    on(page, "protect")
    if unit:
        page.get_by_label(unit, exact=True).check()
    following(page)
    if file == "ballots.csv":
        on(page, "rule")
        page.get_by_label("borda").check()
        following(page)
    on(page, "goal")
    following(page, "Show what it takes")
    page.wait_for_selector("#answer")
    on(page, "goal")
    page.get_by_label("Balanced").check()
    following(page)
    on(page, "budget")
    if not page.get_by_label("One name for").is_visible():
        page.locator("#new summary").click()
    page.get_by_label("One name for").fill(f"people of {page.url.split('/')[4]}")
    page.get_by_label("Total epsilon").fill("40")
    following(page, "Keep a budget")
    page.wait_for_load_state("load")
    following(page)
    on(page, "rehearse")
    following(page)
    on(page, "release")


def charged(desk, page):
    return len(Ledger.open(desk / "budget.db", f"people of {page.url.split('/')[4]}").history())


WALKS = [
    ("ballots.csv", 1200, "light", lambda page: None, "One ballot"),
    ("votes.csv", 820, "dark", lambda page: None, "One comparison"),
    ("rankings.csv", 390, "light", lambda page: page.get_by_label("A synthetic copy").check(), "One position"),
    ("scores.csv", 390, "dark", lambda page: page.get_by_label("to", exact=True).fill("6"), None),
]


@pytest.mark.parametrize(
    ("file", "width", "scheme", "said", "unit"),
    [
        pytest.param(*walk, id=walk[0], marks=[] if walk[0] == "votes.csv" else [pytest.mark.long])  # others: see below
        for walk in WALKS
    ],
)
def test_from_file_to_release(chromium, axe, studio, file, width, scheme, said, unit):
    address, desk = studio
    with visiting(chromium, address, width, scheme, has_touch=width < 1000) as page:
        ready(page, file, said, unit)
        page.get_by_role("button", name="Release, charged once").dblclick()
        page.wait_for_selector(".done")
        on(page, "release")
        result = page.locator(".result").inner_text()
        assert charged(desk, page) == 1
        page.reload()
        page.go_back()
        page.go_forward()
        assert page.locator(".result").inner_text() == result
        assert charged(desk, page) == 1
        with page.expect_download() as saved:
            page.get_by_role("link", name="result.json").click()
        assert saved.value.path().stat().st_size
        session = page.context.new_cdp_session(page)
        session.send("Page.setBypassCSP", {"enabled": True})
        draft = page.url.rsplit("/", 1)[0]
        for step in ("file", "protect", "goal", "budget", "rehearse", "release"):
            page.goto(f"{draft}/{step}")
            page.evaluate(axe)
            found = page.evaluate("axe.run()")["violations"]
            assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], step


def test_the_keyboard_alone(chromium, studio):
    address, _ = studio
    with visiting(chromium, address) as page:

        def reach(words):
            for _ in range(60):
                page.keyboard.press("Tab")
                here = "document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText"
                if words in (page.evaluate(here) or page.evaluate("document.activeElement.ariaLabel") or ""):
                    return
            raise AssertionError(f"{words} is not reached")

        def enter(words):
            reach(words)
            page.keyboard.press("Enter")

        enter("scores.csv")
        on(page, "file")
        reach("to")
        page.keyboard.press("Control+a")
        page.keyboard.type("6")
        enter("Next")
        on(page, "protect")
        enter("Next")
        on(page, "goal")
        enter("Show what it takes")
        page.wait_for_selector("#answer")
        enter("Adjust")
        reach("More private")
        before = page.locator("#epsilon").input_value(), page.locator("[data-curve]").first.inner_text()
        page.keyboard.press("ArrowLeft")  # to the slider's own steps,
        page.keyboard.press("ArrowLeft")  # and one less
        after = page.locator("#epsilon").input_value(), page.locator("[data-curve]").first.inner_text()
        assert float(after[0]) < float(before[0])
        assert after[1] != before[1]
        enter("Next")
        on(page, "budget")
        page.get_by_label("keep no account").focus()
        page.keyboard.press("Space")
        enter("Next")
        on(page, "rehearse")
        enter("Next")
        on(page, "release")
        enter("Release, charged once")
        page.wait_for_selector(".done")


def test_the_slider_follows_without_the_server(chromium, studio):
    """In the same task as the event, from what the page has; 3,000 steps show what a curve of the planner says."""
    address, _ = studio
    with visiting(chromium, address) as page:
        ready(page, "votes.csv", unit="One answer")
        page.goto(page.url.replace("/release", "/goal"))
        page.wait_for_load_state("networkidle")  # the icon may come late
        page.context.set_offline(True)
        moved = page.evaluate(
            """() => {
              const slider = document.getElementById("slider"), seen = [], began = performance.now();
              for (let step = 0; step < 3000; step++) {
                slider.value = step % 1000;
                slider.dispatchEvent(new Event("input"));
                seen.push([Number(document.getElementById("epsilon").value),
                           document.querySelector("[data-curve=bradley-terry]").textContent,
                           document.getElementById("meaning").textContent]);
              }
              return [seen, (performance.now() - began) / 3000];
            }"""
        )
        page.context.set_offline(False)
    seen, each = moved
    print(f"{each:.2f} ms a step of the slider")
    for epsilon, value, sure in seen[100:1000:180]:
        made = plan("comparisons", items=len(ITEMS), comparisons=300, protect="outcome", epsilon=epsilon, top=1)
        (chosen,) = (one for one in made.choices if one.name == "bradley-terry")
        # The curve goes through shares that are counted in 2,000 draws each: 1.1 points of standard deviation.
        assert float(value.rstrip("%")) / 100 == pytest.approx(chosen.accuracy["overlap"], abs=0.025)
        assert sure == certainty(epsilon)


@pytest.mark.long  # without a browser: test_studio.py
def test_two_tabs(chromium, studio):
    address, desk = studio
    with visiting(chromium, address) as page:
        ready(page, "ballots.csv", unit="One ballot")
        other = page.context.new_page()
        other.goto(page.url)
        other.get_by_role("button", name="Release, charged once").click(no_wait_after=True)
        page.get_by_role("button", name="Release, charged once").click(no_wait_after=True)
        for tab in (page, other):
            tab.wait_for_selector(".done")
        assert page.locator(".result").inner_text() == other.locator(".result").inner_text()
        assert charged(desk, page) == 1


@pytest.mark.long  # without a browser: test_studio.py
def test_hostile_names_run_nothing(chromium, studio):
    address, desk = studio
    names = ["<img src=x onerror=alert(1)>", "</textarea><script>alert(1)</script>", "=1+1", '" onfocus=alert(1) x="']
    write(desk / "<img src=x onerror=alert(1)>.csv", ["winner", "loser"], [names[:2], names[2:], names[1:3]] * 30)
    with visiting(chromium, address) as page:
        page.on("dialog", lambda dialog: pytest.fail("a script ran"))
        ready(page, "<img", unit="One answer")
        page.get_by_role("button", name="Release, charged once").click()
        page.wait_for_selector(".done")
        assert names[0] in page.locator(".result table").first.inner_text()
