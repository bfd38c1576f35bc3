"""The report in the documentation is that of the specifications as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankdp_papers.documents import _one_line
from rankdp_papers.specification import load, names

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[2] / "docs" / "papers"


@pytest.mark.parametrize("name", names())
def test_docs_show_it(name: str):
    one = load(name)
    page = (PAGES / f"{one.paper}.md").read_text("utf-8")
    index = (PAGES / "index.md").read_text("utf-8")
    assert f"## {one.title}\n" in page, "run make papers"
    for text in (one.setting, one.seen):
        assert _one_line(text) in page, "run make papers"
    for claim in one.claims:
        assert claim.text in page, "run make papers"
        assert claim.text in index, "run make papers"
    assert (one.figure is not None) == (PAGES / f"{name.replace('/', '-')}.png").exists()


def test_docs_show_nothing_else():
    assert {path.stem for path in PAGES.glob("*.png")} <= {name.replace("/", "-") for name in names()}
