"""Pages made of results: every figure has its section and picture, and the numbers in the texts are the table's."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from rankdp.errors import InputError
from rankdp_papers.documents import _claims, _pivot, _sizes, _summary, write_markdown
from rankdp_papers.results import NUMBER, Reproduced, filled
from rankdp_papers.specification import PAPERS, Claim, Size, TablePlan, load, names

PAGES = Path(__file__).parents[2] / "docs" / "papers"
ROWS = [
    {"items": items, "method": method, "value": value, "error": 0.0}
    for items, method, value in ((5, "kendall", 0.751), (5, "laplace", 0.5), (9, "kendall", 12.0), (9, "laplace", 3.0))
]


def test_the_documentation_has_every_figure_and_no_other():
    shown = {
        paper: re.findall(r"^`([a-z]+/[^`]+)`:", (PAGES / f"{paper}.md").read_text("utf-8"), re.M) for paper in PAPERS
    }
    assert [name for paper in PAPERS for name in shown[paper]] == names(), "run make papers"
    pictures = {name.replace("/", "-") for name in names() if load(name).figure}
    assert {path.stem for path in PAGES.glob("*.png")} == pictures, "run make papers"


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("size", ["quick", "full"])
def test_numbers_in_texts_are_points_of_the_grid(name: str, size: str):
    specification = load(name)
    for wanted in NUMBER.findall(specification.seen):
        columns = tomllib.loads(f"number = {wanted}")["number"]
        for column, points in getattr(specification, size).grid.items():
            asked = columns.get(column, points[0] if "take" in columns else None)
            assert asked in (*points, "smallest", "largest") or len(points) == 1, (wanted, column)


def test_failures_are_listed_by_kind_and_our_own_statements_are_not_counted():
    claims = [
        Claim(f"{by} {kind}", by, "at most", kind=kind, options={"bound": 1.0})
        for by, kind in (("paper", "claim"), ("paper", "misprint"), ("paper", "yardstick"), ("rankdp", "claim"))
    ]
    one = Reproduced(replace(load("xu/erratum-theorem2"), claims=claims), "quick", ROWS, 60.0)
    (_, summary), *rest = _summary(_claims([one]), 1)
    assert "The papers' claims: 0 hold, 1 do not, 0 are undecided." in summary
    assert "by our yardsticks: 0 hold, 1 do not, 0 are undecided. Misprints shown: 1." in summary
    listed = {title: [row[1] for row in table[1]] for (_, title), (_, table) in batched(rest[1:])}
    assert list(listed.values()) == [["paper claim"], ["paper misprint"], ["paper yardstick"]]
    assert "1 repetitions" not in _sizes(one)
    assert "epsilon 0.001, 0.01, 0.1, 1" in _sizes(one)


def test_a_run_of_some_figures_leaves_the_sections_of_others_as_they_are(tmp_path: Path):
    for page in PAGES.glob("*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
    claims = [Claim("E|N| is small", "paper", "at most", options={"bound": 1.0})]
    specification = replace(load("xu/erratum-theorem2"), claims=claims, seen="Little.")

    def lines(size: Size) -> dict[str, list[str]]:
        write_markdown([Reproduced(specification, size, ROWS, 60.0)], tmp_path)
        return {page.name: page.read_text("utf-8").splitlines() for page in tmp_path.iterdir()}

    quick, full = lines("quick"), lines("full")
    assert [name for name in quick if quick[name] != full[name]] == ["xu.md"]
    (changed,) = set(full["xu.md"]) - set(quick["xu.md"])
    assert changed.startswith("Run here, at the full size: nothing is repeated; epsilon 0.001")
    old = {page.name: page.read_text("utf-8").splitlines() for page in PAGES.glob("*.md")}
    assert all(full[name] == old[name] for name in ("cai.md", "jeong.md"))
    headings = [[line for line in lines if line.startswith("## ")] for lines in (full["xu.md"], old["xu.md"])]
    assert headings[0] == headings[1]
    ours = [line for line in full["index.md"] if "E\\|N\\| is small" in line]
    assert len(ours) == 2
    assert len([line for line in full["index.md"] if line.startswith("| xu/erratum-theorem1 |")]) > 8


def test_a_table_has_a_line_and_a_column_for_each_value():
    one = Reproduced(load("xu/erratum-theorem2"), "quick", ROWS, 60.0)
    assert _pivot(TablePlan("method", "items"), one) == (
        ["method", "5", "9"],
        [["kendall", "0.751", "12"], ["laplace", "0.5", "3"]],
    )


def batched(blocks):
    return zip(blocks[::2], blocks[1::2], strict=True)


def test_numbers_in_texts_come_from_the_table():
    text = """Kendall has {method = "kendall", items = "smallest", show = ".0%"},
    others from {items = 9, take = "smallest"} to {items = 9, take = "largest", show = ".1f"}."""
    assert filled(text, ROWS) == "Kendall has 75%, others from 3 to 12.0."
    assert filled("It is {items = 7}.", ROWS) == "It is (not run)."


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ('{items = 5, method = "kendall", minus = "laplace", show = ".3f"}', "0.251"),
        ('{items = 9, method = "kendall", over = "laplace"}', "4"),
        ('{method = "kendall", minus = "laplace", take = "mean", show = ".4f"}', "4.6255"),
        ('{method = "kendall", take = "mean", show = ".4f"}', "6.3755"),
        ('{method = "laplace", of = "items", take = "largest"}', "9"),
        ('{items = 7, method = "kendall", over = "laplace"}', "(not run)"),
    ],
)
def test_numbers_are_compared_and_averaged(wanted: str, shown: str):
    assert filled(wanted, ROWS) == shown


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("{items = 9}", "must select one value, got 2"),
        ('{size = 9, method = "kendall"}', "there is no column 'size'"),
        ("{items 9}", "must be an inline table of TOML"),
    ],
)
def test_a_number_that_is_not_in_the_table_is_refused(wanted: str, words: str):
    with pytest.raises(InputError, match=words):
        filled(f"It is {wanted}.", ROWS)
