"""The respondent's page in WebKit, the engine of Safari: the same steps as in Chromium, by WebKit's own driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from conftest import served
from test_survey_kills import free_port

from rankdp_web.surveys import create_survey

DRIVER, SCREEN = shutil.which("WebKitWebDriver"), shutil.which("Xvfb")
BROWSER = next(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"), None)
SECONDS = 60

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("chromium"),
    pytest.mark.skipif(not (DRIVER and SCREEN and BROWSER), reason="webkit2gtk-driver and xvfb are not installed"),
]


@contextmanager
def running(command, **options):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class WebKit:
    """A window of WebKit."""

    def __init__(self, driver):
        self.client = httpx.Client(base_url=driver, timeout=2 * SECONDS)
        options = {"binary": str(BROWSER), "args": ["--automation"]}
        wanted = {"acceptInsecureCerts": True, "webkitgtk:browserOptions": options}
        opened = self.post("/session", capabilities={"alwaysMatch": wanted})
        self.client.base_url = f"{driver}/session/{opened['sessionId']}"

    def post(self, path, **what):
        reply = self.client.post(path, json=what)
        assert reply.is_success, reply.text
        return reply.json()["value"]

    def ask(self, script):
        return self.post("/execute/sync", script=f"return {script}", args=[])

    def until(self, script):
        late = time.monotonic() + SECONDS
        while not self.ask(script):
            assert time.monotonic() < late, script
            time.sleep(0.05)

    def click(self, selector):
        self.until(f"!!document.querySelector('{selector}:enabled, {selector}:not(button)')")
        (element,) = self.post("/element", using="css selector", value=selector).values()
        self.post(f"/element/{element}/click")


@pytest.fixture(scope="module")
def webkit():
    port = free_port()
    with running([SCREEN, "-displayfd", "1", "-screen", "0", "1280x1000x24"], stdout=subprocess.PIPE) as screen:
        display = f":{screen.stdout.readline().decode().strip()}"
        settings = {"DISPLAY": display, "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
        with running([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, env={**os.environ, **settings}):
            late = time.monotonic() + SECONDS
            while True:
                try:
                    window = WebKit(f"http://127.0.0.1:{port}")
                    break
                except httpx.TransportError:
                    assert time.monotonic() < late
                    time.sleep(0.1)
            yield window
            window.client.delete("")


@pytest.mark.parametrize(("items", "settings"), [(6, {}), (20, {"mechanism": "offset-tiers"})], ids=["ball", "tiers"])
def test_webkit_ranks_draws_and_sends(webkit, database, certificate, items, settings):
    survey = create_survey(database, "Things", [f"item {number}" for number in range(items)], 2, **settings)
    with served(database, certificate=certificate) as server:
        webkit.post("/url", url=f"{server}/s/{survey.id}")
        webkit.until("document.body.dataset.step === 'rank'")
        if items > 12:
            for _ in range(5):
                webkit.click("#pool li:nth-child(2) button")
        else:
            webkit.click("#list li:nth-child(3) .name")
            webkit.click("[data-move=top]")
        own = webkit.ask("[...document.querySelectorAll('#list li')].map((row) => Number(row.dataset.item))")
        webkit.click("#done")
        if items == 20:
            webkit.click("#sure [value=yes]")
        webkit.until("document.body.dataset.step === 'send'")
        shown = webkit.ask("[...document.querySelectorAll('#own li')].map((row) => Number(row.dataset.item))")
        assert shown[: len(own)] == own
        webkit.click("#send-button")
        webkit.until("document.body.dataset.step === 'sent'")
        sent = webkit.ask("[...document.querySelectorAll('#sent .copy li')].map((row) => Number(row.dataset.item))")
        assert webkit.ask("sessionStorage.length") == 0
    (stored,) = type(database)(database.name).answers(survey.id)
    assert list(stored[: survey.listed_items]) == sent
