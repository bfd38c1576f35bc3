"""Pages of reports as a reader has them: opened from a file, in a browser, in both themes and three widths."""

import random

import pyarrow as pa
import pytest

from rankdp import Rankings, elect, rank
from rankdp.publish.board_report import board_report
from rankdp.publish.election_report import election_report

pytestmark = pytest.mark.slow

ITEMS = [f"item {letter}" for letter in "abcdefghijklm"] + [
    "<img src=x onerror=alert(1)>",
    "a name of some length, " * 3 + "at last",
]


FITS = """() => [document.documentElement, ...document.querySelectorAll("main *:not(svg *, .unseen, thead *, thead)")]
  .every((part) => part.scrollWidth <= innerWidth && part.getBoundingClientRect().right <= innerWidth + 1)"""
"""Nothing is wider than the window, so that nothing scrolls sideways."""


def _board():
    draws = random.Random(5)
    pairs = [draws.sample(ITEMS, 2) for _ in range(400)]
    votes = pa.table({"winner": [pair[0] for pair in pairs], "loser": [pair[1] for pair in pairs]})
    return board_report(rank(votes, 2, protect="outcome", items=ITEMS))


def _election():
    draws = random.Random(5)
    ballots = Rankings.from_orders([draws.sample(ITEMS[:6], 6) for _ in range(200)], items=ITEMS[:6])
    return election_report(elect(ballots, 2, rule="irv", protect="ballot"))


@pytest.fixture
def opened(chromium, tmp_path):
    """Opens a report's page; any message of the browser's console fails the test."""
    pages = []

    def open_page(report, width=1100, scheme="light"):
        path = tmp_path / "report.html"
        report.write(path)
        page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        pages.append((page, said))
        return page

    yield open_page
    for page, said in pages:
        page.close()
        assert said == []


def test_tables_sort_and_filter(opened):
    page = opened(_board())
    names = page.locator("table >> nth=0").locator("tbody tr:not([hidden]) .name")
    assert names.count() == len(ITEMS)
    page.get_by_role("button", name="item").first.click()
    assert names.all_inner_texts() == sorted(ITEMS)
    page.get_by_role("button", name="item").first.click()
    assert names.all_inner_texts() == sorted(ITEMS, reverse=True)
    page.get_by_label("Find:").fill("ITEM c")
    assert names.all_inner_texts() == ["item c"]
    with page.expect_download() as saved:
        page.get_by_role("link", name="CSV").click()
    assert saved.value.suggested_filename == "leaderboard.csv"


@pytest.mark.parametrize("make", [_board, _election])
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (800, "dark"), (1280, "light")])
def test_a_page_fits_and_axe_finds_nothing_serious(opened, axe, make, width, scheme):
    page = opened(make(), width, scheme)
    assert page.evaluate(FITS)
    session = page.context.new_cdp_session(page)
    session.send("Page.setBypassCSP", {"enabled": True})
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    assert [violation["id"] for violation in found if violation["impact"] in ("serious", "critical")] == []
