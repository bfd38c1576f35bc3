"""Coverage: every numbered item of the papers has a row, and what a row names exists."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

from rankdp_papers.coverage import items, page, verdict_of
from rankdp_papers.specification import PAPERS, names
from rankdp_papers.tables import kept

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "papers"


def numbered(kind: str, *numbers: object) -> list[str]:
    return [f"{kind} {number}" for number in numbers]


def within(section: int, first: int, last: int) -> list[str]:
    return [f"{section}.{number}" for number in range(first, last + 1)]


ITEMS = {
    "xu": [
        *numbered("Definition", 1, 2, 3),
        *numbered("Algorithm", 1),
        *numbered("Lemma", *range(1, 10)),
        *numbered("Theorem", "1(1)", "1(2)", "1(3)", 2, 3),
        *numbered("Corollary", 1),
        *numbered("Assumption", *range(1, 6)),
        *numbered("Figure", *range(1, 9)),
        *("Generator of Section 6.3", "Sushi data"),
    ],
    "cai": [
        *numbered("Algorithm", 1, 2),
        *numbered("Condition", "A0", "A1", "A2"),
        *numbered("Proposition", *within(2, 1, 7)),
        *numbered("Theorem", *within(2, 1, 4), "3.1", "3.2"),
        *numbered("Corollary", "2.1", "3.1"),
        *numbered("Remark", 1, 2, 3),
        *numbered("Figure", *range(1, 8)),
        *("Adjacency", "Score attack", "Full ranking", "Generator of Section 4.1"),
        *("University data", "Immigration data"),
    ],
    "jeong": [
        *numbered("Definition", *within(2, 1, 4), "3.1", "4.1"),
        *numbered("Example", "2.5", "3.8", "3.9", "4.7", "4.10"),
        *numbered("Lemma", "3.2", "B.1"),
        *numbered("Theorem", "3.3", "3.6"),
        *numbered("Corollary", "3.7", "3.11", "4.5", "4.9", "4.13"),
        *numbered("Proposition", "3.14", "4.2", "4.4", "4.8", "4.11"),
        *numbered("Remark", "3.4", "3.5", "3.10", "3.12", "3.13", "3.15", "4.3", "4.6", "4.12", "4.14"),
        *numbered("Figure", 1, 2, 3),
        *numbered("Table", 1),
        *numbered("Appendix", "A", "B", "I", "L"),
        *numbered("Section 5", "(i)", "(ii)", "(iii)"),
    ],
}
"""The papers' own numbering."""


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_has_one_row(paper: str):
    assert sorted(one.item for one in items(paper)) == sorted(ITEMS[paper])


@pytest.mark.parametrize("paper", PAPERS)
def test_what_checks_an_item_exists(paper: str):
    for one in items(paper):
        assert one.checked_by in names() or (ROOT / one.checked_by).is_file() or one.verdict.startswith("undecided"), (
            one
        )
        assert one.what


@pytest.mark.parametrize("paper", PAPERS)
def test_where_an_item_is_said_to_be_can_be_imported(paper: str):
    for one in items(paper):
        for name in re.findall(r"rankdp\w*(?:\.\w+)+", one.where):
            assert pkgutil.resolve_name(name), one


@pytest.mark.slow
def test_every_verdict_is_stated_or_follows_from_a_claim():
    done = {one.specification.name: one for one in kept(PAGES / "tables")}
    found = {(paper, one.item): verdict_of(one, done) for paper in PAPERS for one in items(paper)}
    assert "not run" not in found.values()
    assert found["xu", "Theorem 1(1)"] == "does not hold"
    assert found["xu", "Lemma 2"] == "holds"
    assert found["cai", "Theorem 3.2"].startswith("undecided")
    assert found["jeong", "Appendix B"] == "does not hold, as printed"


def test_the_page_is_the_table():
    assert (PAGES / "coverage.md").read_text("utf-8") == page(kept(PAGES / "tables")), "run rankdp reproduce --redraw"
