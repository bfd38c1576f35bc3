"""Pages made of results: every figure has its section and picture, and the numbers in the texts are the table's."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from rankdp.errors import InputError
from rankdp_papers.documents import _picture_name, _pivot, _sizes, _summary, pages, write_markdown
from rankdp_papers.results import NUMBER, Reproduced, filled
from rankdp_papers.specification import PAPERS, Claim, TablePlan, load, names
from rankdp_papers.tables import from_csv, kept, to_csv

PAGES = Path(__file__).parents[2] / "docs" / "papers"
ROWS = [
    {"items": items, "method": method, "value": value, "error": 0.0}
    for items, method, value in ((5, "kendall", 0.751), (5, "laplace", 0.5), (9, "kendall", 12.0), (9, "laplace", 3.0))
]


@pytest.mark.slow
def test_the_pages_are_what_the_tables_give():
    """So every verdict on a page is the one that today's rule gives to the committed table."""
    made = pages(kept(PAGES / "tables"))
    for name, text in made.items():
        assert (PAGES / name).read_text("utf-8") == text, (
            f"{name}: run rankdp reproduce --redraw --markdown docs/papers"
        )
    assert {path.name for path in PAGES.glob("*.md")} == {name for name in made if "/" not in name}


def test_the_documentation_has_every_figure_and_its_pictures():
    every = kept(PAGES / "tables")
    assert [one.specification.name for one in every] == names(), "run make papers"
    pictures = {_picture_name(one, name) for one in every for name in one.plans}
    assert {path.name for path in PAGES.glob("*.png")} == pictures, "run make papers"


@pytest.mark.parametrize("paper", PAPERS)
def test_pages_are_short_enough_to_read(paper: str):
    """Words without the marks of tables; long tables are linked."""
    text = (PAGES / f"{paper}.md").read_text("utf-8")
    assert len(re.findall(r"[A-Za-z][\w'-]*", text)) < 4_500
    longest = max(len(block.splitlines()) for block in re.findall(r"(?:^\|.*\n)+", text, re.M))
    assert longest <= 32


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
    (_, summary), *rest = _summary([one])
    assert "Claims of the paper: 0 hold, 1 do not hold, 0 undecided." in summary
    assert "by our yardsticks: 0 hold, 1 do not hold, 0 undecided. Misprints shown: 1." in summary
    listed = {title: [row[1] for row in table[1]] for (_, title), (_, table) in batched(rest[1:])}
    assert list(listed.values()) == [
        ["paper claim"],
        ["paper misprint [as printed]"],
        ["paper yardstick [our yardstick]"],
    ]
    assert "1 repetitions" not in _sizes(one)
    assert "epsilon 0.001, 0.01, 0.1, 1" in _sizes(one)


@pytest.mark.slow
def test_claims_of_the_paper_come_before_ours_and_settings_are_folded():
    made = pages(kept(PAGES / "tables"))["xu.md"].partition("`xu/figure2`")[2].partition("\n## ")[0]
    parts = ["xu-figure2.png", "| claim of the paper |", "xu-figure2-ours.png", "| statement of ours |", "<details>"]
    assert sorted(parts, key=made.index) == parts
    assert "(tables/xu-figure2.csv)" in made


def test_a_run_of_one_figure_takes_the_others_from_their_tables(tmp_path: Path):
    (tmp_path / "tables").mkdir()
    for name in ("xu-lemmas-algorithm.csv", "cai-erratum-full-ranking.csv"):
        (tmp_path / "tables" / name).write_bytes((PAGES / "tables" / name).read_bytes())
    runs = {name: {"size": "quick", "core_seconds": 1} for name in ("xu/lemmas-algorithm", "cai/erratum-full-ranking")}
    (tmp_path / "tables" / "runs.json").write_text(json.dumps(runs))
    claims = [Claim("E|N| is small", "paper", "at most", options={"bound": 1.0})]
    specification = replace(load("xu/erratum-theorem2"), claims=claims, seen="Little.")
    write_markdown([Reproduced(specification, "quick", ROWS, 60.0)], tmp_path)
    xu = (tmp_path / "xu.md").read_text("utf-8")
    assert "E\\|N\\| is small" in xu
    assert "Algorithm 1 draws from Mallows' model" in xu
    assert "separations" in (tmp_path / "cai.md").read_text("utf-8")
    assert not (tmp_path / "jeong.md").exists()


def test_tables_come_back_as_they_were():
    rows = [
        {"n": 1, "p": 1.0, "method": 'a, "b"', "value": 0.1 + 0.2, "error": 0.0},
        {"n": 2, "value": 1e-300, "error": 1},
    ]
    assert from_csv(to_csv(rows)) == rows
    with pytest.raises(InputError, match="reads as a number, got '1998'"):
        to_csv([{"copy": "1998"}])


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
