"""Specifications: every file of the package is whole, and a wrong one is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankdp.errors import InputError
from rankdp_papers.runner import _function
from rankdp_papers.specification import PAPERS, find, load, names, read

pytestmark = pytest.mark.slow

WANTED = {
    *(f"xu/figure{number}" for number in (2, 4, 5, 6, 7, 8)),
    *(f"cai/figure{number}" for number in range(1, 8)),
    *("jeong/table1", "jeong/figure2", "jeong/figure3", "jeong/tradeoff29", "jeong/tradeoff32", "jeong/tradeoff35"),
}
GOOD = """
paper = "xu"
title = "A title"
source = "Figure 2"
experiment = "kept_pairs.concordance"
setting = "What was done."
seen = "What we see."
settings = {scale = 2}
[quick]
repetitions = 3
grid = {items = [3, 4], mechanism = ["kendall", "laplace"]}
settings = {scale = 1}
[full]
repetitions = 30
grid = {items = [3]}
[[claims]]
text = "It holds"
by = "paper"
where = "Figure 2"
check = "at most"
bound = 1
"""


def test_every_figure_and_table_of_the_papers_has_a_file():
    assert set(names()) >= WANTED
    assert {name.split("/")[0] for name in names() if "erratum" in name} == set(PAPERS)


@pytest.mark.parametrize("name", names())
def test_each_file_is_whole(name: str):
    one = load(name)
    assert callable(_function(one.paper, one.experiment))
    assert one.claims
    assert all(len(text) > 60 for text in (one.setting, one.seen))
    for size in ("quick", "full"):
        assert one.cells(size)
    assert all(claim.text[0].isupper() and not claim.text.endswith(".") for claim in one.claims)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(text)
    return path


def test_cells_are_the_combinations_of_the_grid(tmp_path: Path):
    one = read(written(tmp_path, GOOD))
    cells = one.cells("quick")
    assert [(cell["items"], cell["mechanism"]) for cell in cells] == [
        (3, "kendall"),
        (3, "laplace"),
        (4, "kendall"),
        (4, "laplace"),
    ]
    assert {cell["scale"] for cell in cells} == {1}
    assert [cell["scale"] for cell in one.cells("full")] == [2]
    assert one.name == "xu/own"
    assert one.claims[0].options == {"bound": 1}


def test_streams_depend_on_seed_and_names_alone(tmp_path: Path):
    first, second, *_ = read(written(tmp_path, GOOD)).cells("quick")
    other = read(written(tmp_path, "seed = 1\n" + GOOD)).cells("quick")[0]
    assert first.stream("a", 1) == second.stream("a", 1)
    assert len({first.stream("a", 1), first.stream("a", 2), first.stream("a"), other.stream("a", 1)}) == 4


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('paper = "xu"', 'paper = "knuth"', "paper must be one of xu, cai, jeong, got 'knuth'"),
        ('title = "A title"', "", "the file must have title"),
        ('title = "A title"', 'titel = "A title"', "the file must not have titel"),
        ("repetitions = 30", "repetitions = 0", "repetitions must be an integer of at least 1, got 0"),
        ("items = [3]", "items = []", r"grid.items must be a list of at least one value, got \[\]"),
        ('by = "paper"', 'by = "me"', "by must be one of paper, rankdp, got 'me'"),
        ('by = "paper"', "", "must have by"),
        ("[quick]", "[quick", "it is not TOML"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, words: str):
    with pytest.raises(InputError, match=words):
        read(written(tmp_path, GOOD.replace(old, new, 1)))


def test_names_are_found():
    assert [one.name for one in find(["xu/figure2", "xu/figure2"])] == ["xu/figure2"]
    assert {one.paper for one in find(["jeong"])} == {"jeong"}
    assert [one.name for one in find([])] == names()
    with pytest.raises(InputError, match=r"a name must be one of .* got 'xu/figure3'"):
        find(["xu/figure3"])
