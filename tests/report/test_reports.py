"""Leaderboards as files: what each format holds, that the guarantee stands in all of them, and all or nothing."""

import base64
import csv
import errno
import hashlib
import io
import json
import math
import os
import re
import sys
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from rankdp.data import atomic
from rankdp.errors import InputError, Unsupported
from rankdp.privacy.bits import SeededBits
from rankdp.publish.board_report import board_report, write_board
from rankdp.publish.rank import rank
from rankdp.report.document import COMPUTED, PROMISED, SURE, Report, check_outputs
from rankdp.report.plots import new_figure
from rankdp.report.results import ResultRow, ResultTable, Table, leading, percent, rank_span, ticks

NASTY = ("<script>alert('x')</script>", 'a "quoted", name', "$\\frac{1$ & co", "[/bold]", "plain")
FORMATS = (".csv", ".json", ".html", ".png", ".svg", ".pdf")


def release_of(items=NASTY, bits=None, **options):
    """A small leaderboard; the last item is never compared."""
    table = pa.table(
        {
            "item_1": [items[0], items[1], items[2]] * 40,
            "item_2": [items[1], items[2], items[3]] * 40,
            "outcome": [1] * 120,
        }
    )
    return rank(table, 1, protect="outcome", items=items, top=2, bits=bits, **options)


@pytest.fixture(scope="module")
def release():
    return release_of()


@pytest.fixture(scope="module")
def rehearsal():
    return release_of(bits=SeededBits(3))


class Page(HTMLParser):
    """Tags, attributes and the text of each cell."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.cells, self.words, self.inside = [], [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "td":
            self.cells.append("")
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "td":
            self.cells[-1] += data
        self.words.append(data)


def _rows(*ranks):
    return [ResultRow(name=name, estimate=0.0, ranks=span) for name, span in zip("abcdefgh", ranks, strict=False)]


def test_one_sentence_names_what_cannot_be_told_apart_at_the_top():
    assert (rank_span(2, 2), rank_span(2, 5)) == ("2", "2–5")
    assert leading([]) == ""
    assert leading(_rows((1, 1), (2, 3), (2, 3))) == "a ranks first."
    assert leading(_rows((1, 2), (1, 2), (3, 3)), first_probability=0.671) == (
        "a is ahead (probability 67%), but cannot be told apart from b."
    )
    assert leading(_rows((1, 3), (1, 3), (1, 3)), "candidate") == (
        "a is ahead, but any of the 3 candidates may be first."
    )
    assert leading(_rows(*[(1, 7)] * 7, (8, 8))) == "a is ahead, but 6 other items cannot be told apart from it."
    assert [percent(value) for value in (0.0, 0.5, 0.999)] == ["below 1%", "50%", "over 99%"]


@pytest.mark.parametrize(("least", "most"), [(0, 1), (-3.2, 7.9), (1e-9, 3e-9), (995.0, 1012.0), (0, 1e7)])
def test_round_numbers_above_bars(least, most):
    found = ticks(least, most, 4)
    assert 2 <= len(found) <= 5
    assert all(least <= tick <= most for tick in found)
    assert ticks(2.0, 2.0, 4) == [2.0]


def test_numbers_of_a_column_have_the_same_digits():
    rows = [
        ResultRow(name="a", estimate=1012.3, low=-math.inf, high=2000.0, ranks=(1, 2), mark="elected", cells=["7"]),
        ResultRow(name="b", estimate=-0.2, ranks=(1, 2), cells=[""]),
    ]
    table = ResultTable(rows=rows, measure="points", subject="candidate", heads=["votes"])
    assert table.table().rows == [["1–2", "a (elected)", "1,012", "– to 2,000", "7"], ["1–2", "b", "0", "–", ""]]
    assert table.table().heads == ["rank", "candidate", "points", "95% interval", "votes"]
    page = Page(table.html("a is ahead"))
    assert page.words[0] == "a is ahead"
    assert page.tags.count("circle") == 2
    assert [value for name, value in page.attributes if name == "x1" and value == "3.00%"]  # it has no end: the edge


@pytest.mark.parametrize(
    ("estimates", "shown"), [([2.0, 0.0], ["2", "0"]), ([2.5, 0.0], ["2.50", "0.00"]), ([math.nan], ["–"])]
)
def test_counts_have_no_decimals(estimates, shown):
    rows = [ResultRow(name=f"{number}", estimate=number, cells=[]) for number in estimates]
    table = ResultTable(rows=rows, measure="votes", subject="candidate").table()
    column = table.heads.index("votes")
    assert [row[column] for row in table.rows] == shown


def test_one_interval_that_reaches_far_does_not_squeeze_the_others():
    rows = [ResultRow(name=str(at), estimate=at / 10, low=at / 10 - 0.2, high=at / 10 + 0.2) for at in range(9, 0, -1)]
    table = ResultTable(rows=[*rows, ResultRow(name="new", estimate=0, low=-50, high=50)], measure="score")
    assert table.shown_span == pytest.approx((-0.8, 1.7))
    assert table.html().count("class=cut") == 2
    assert "-50.0 to 50.0" in table.html()
    assert ResultTable(rows=rows, measure="score").shown_span == pytest.approx((-0.1, 1.1))
    assert "class=cut" not in ResultTable(rows=rows, measure="score").html()


def test_long_tables_of_parts_are_folded_and_warnings_are_one_note():
    def one(rows):
        results = ResultTable(rows=[ResultRow(name=str(at), estimate=at) for at in range(rows)], measure="score")
        return Report(title=f"{rows} rows", records=[], facts=dict, results=results, warnings=["One.", "Two."])

    page = Report(title="All", records=[], facts=dict, parts=[one(12), one(13)]).html()
    assert page.count("<summary>") == 1
    assert "<summary>All 13 items</summary><table" in page
    assert page.count("<p class=note>One. Two.</p>") == 2


def test_csv_comes_back(release):
    rows = list(csv.DictReader(io.StringIO(board_report(release).csv())))
    board = release.value
    assert [row["item"] for row in rows] == list(board.items)
    assert sorted(row["item"] for row in rows) == sorted(NASTY)
    for name, values in (("score", board.scores), ("low", board.low), ("high", board.high)):
        assert [float(row[name]) for row in rows] == pytest.approx(values.tolist(), rel=1e-5)
    for name, values in (("rank", board.ranks), ("rank_low", board.rank_low), ("rank_high", board.rank_high)):
        assert [int(row[name]) for row in rows] == values.tolist()
    assert [row["in_top"] for row in rows] == ["True", "True", "False", "False", "False"]


def test_json_schema(release):
    said = json.loads(board_report(release).json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert set(said) == {
        *(
            "headline",
            "leaderboard",
            "level",
            "warnings",
            "rankdp",
            "guarantee",
            "rehearsal",
            "mechanism",
            "parameters",
            "when",
        )
    }
    assert said["guarantee"]["epsilon"] == "1"
    assert said["guarantee"]["protects"] == "one comparison's outcome"
    assert said["rehearsal"] is None
    assert said["warnings"] == list(release.value.warnings)
    columns = {"item", "score", "low", "high", "rank", "rank_low", "rank_high", "in_top", "top_probability"}
    assert all(set(row) == columns | {"best_probability"} for row in said["leaderboard"])
    assert all(row["low"] <= row["score"] <= row["high"] for row in said["leaderboard"])


def test_html_loads_nothing_and_runs_only_its_own_script(release):
    text = board_report(release, "Best <b>& brightest</b>").html()
    page = Page(text)
    assert not re.search(r"https?:|url\(|@import", text)
    assert not {"link", "img", "iframe", "object", "b"} & set(page.tags)
    assert page.tags.count("script") == 1
    ((_, policy),) = [(name, value) for name, value in page.attributes if name == "content" and "-src" in value]
    script = text.partition('<script type="module">')[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert "Best <b>& brightest</b>" in page.words


def test_html_holds_the_csv_and_the_json(release):
    report = board_report(release)
    links = [value for name, value in Page(report.html()).attributes if name == "href"]
    saved = [base64.b64decode(link.partition("base64,")[2]) for link in links]
    assert saved[:2] == [report.csv().encode(), report.json().encode()]
    assert saved[2].startswith(b"\x89PNG")
    assert report.headline.encode() in saved[2]
    assert not Page(report.fragment({})).attributes.count("href")
    assert '<a href="board.csv?a=1&amp;b=2">CSV</a>' in report.fragment({"CSV": "board.csv?a=1&b=2"})


def test_the_page_says_the_result_first_and_folds_the_rest(release):
    report = board_report(release)
    html = report.html()
    places = [html.index(words) for words in ("class=headline", "class=results", SURE, PROMISED)]
    assert places == sorted(places)
    assert html.count("<details>") == html.count("<summary>") == 2
    page = Page(html)
    assert [word for word in page.words if word == report.headline]
    assert COMPUTED not in page.words  # an empty part is left out


def test_html_shows_every_item_as_it_is_called(release):
    html = board_report(release, "Board").html()
    page = Page(html)
    assert set(NASTY) <= set(page.words)
    without_files = re.sub(r'base64,[^"]*', "", html)
    assert "nan" not in without_files
    assert "inf<" not in without_files


def test_html_has_a_plot_with_a_dot_for_each_item(release):
    page = Page(board_report(release, "Board").html())
    assert page.tags.count("circle") == len(NASTY)
    numbers = [value for name, value in page.attributes if name in ("x1", "x2", "cx")]
    assert all(0 <= float(number.removesuffix("%")) <= 100 for number in numbers)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["log-strength", "elo"])
def test_png(scale):
    picture = board_report(release_of(scale=scale), "Costs $5 and $x").picture()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.endswith(b"IEND\xaeB`\x82")


@pytest.mark.slow
def test_a_board_without_intervals():
    votes = pa.table({"winner": ["a", "b"], "loser": ["b", "c"]})
    release = rank(votes, 1, protect="comparison", link="secant", items=("a", "b", "c"), top=1)
    page = Page(board_report(release, "Board").html())
    assert "95% interval" not in page.words
    assert sorted(cell for cell in page.cells if cell in ("1", "2", "3")) == ["1", "2", "3"]
    assert sorted(cell for cell in page.cells if cell in ("yes", "no")) == ["no", "no", "yes"]
    assert board_report(release).picture().startswith(b"\x89PNG")
    assert [row["low"] for row in json.loads(board_report(release).json())["leaderboard"]] == [None] * 3


def test_the_page_shows_who_beats_whom():
    votes = pa.table({"winner": ["a", "b"] * 50, "loser": ["b", "c"] * 50})
    report = board_report(rank(votes, 1000, protect="comparison", items=("a", "b", "c")))
    grid = report.tables[0]
    assert grid.title.startswith("Who beats whom")
    assert [list(row) for row in grid.rows] == [["a", "", "50", "0"], ["b", "0", "", "50"], ["c", "0", "0", ""]]
    assert json.loads(report.json())["wins_over"][0][1] == 50


@pytest.mark.slow
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("rehearsed", [False, True])
def test_the_guarantee_stands_with_every_format(release, rehearsal, ending, rehearsed, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path, real, said = tmp_path / f"board{ending}", Figure.supxlabel, []
    monkeypatch.setattr(Figure, "supxlabel", lambda self, text, **how: said.append(text) or real(self, text, **how))
    write_board(rehearsal if rehearsed else release, path)
    if ending in (".csv", ".json", ".html"):
        said = [(tmp_path / "board.csv.release.json" if ending == ".csv" else path).read_text("utf-8")]
    shown = " ".join(" ".join(said).replace("&#x27;", "'").split())
    words = "REHEARSAL, NOT PRIVATE" if rehearsed else "Protects one comparison's outcome"
    assert words in shown
    if ending == ".html":
        assert (shown.index(words) < shown.index("<table")) == rehearsed  # that nothing is promised comes first
        assert ("<p class=warning>REHEARSAL" in shown) == rehearsed


@pytest.mark.slow
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing(release, ending, failing, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((atomic.os, "fsync", full) if failing == "fsync" else (atomic.Path, "replace", full)))
    with pytest.raises(InputError) as refusal:
        write_board(release, tmp_path / f"board{ending}")
    assert "could not be written (No space left on device)" in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_the_old_file(release, tmp_path, monkeypatch):
    old = tmp_path / "board.html"
    old.write_text("old")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(InputError):
        write_board(release, old)
    assert [path.name for path in tmp_path.iterdir()] == ["board.html"]
    assert old.read_text() == "old"


def test_a_csv_is_never_there_without_its_guarantee(release, tmp_path, monkeypatch):
    """The second write fails: the guarantee may be left alone, the numbers may not."""
    real, calls = atomic.os.fsync, []

    def second_fails(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(atomic.os, "fsync", second_fails)
    with pytest.raises(InputError):
        write_board(release, tmp_path / "board.csv")
    assert not (tmp_path / "board.csv").exists()


@pytest.mark.parametrize("place", ["nowhere/board.csv", "file/board.csv"])
def test_a_directory_that_is_not_there(release, place, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(InputError, match="the file could not be written"):
        write_board(release, tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    check_outputs([tmp_path / "BOARD.HTML", tmp_path / "board.csv"])
    assert list(tmp_path.iterdir()) == []
    for name in ("board", "board.xlsx", ".csv"):
        with pytest.raises(InputError, match=r"the ending must be one of \.csv, \.json, \.html, \.png, .* got "):
            check_outputs([tmp_path / name])
    with pytest.raises(InputError, match="could not be written"):
        check_outputs([tmp_path / "nowhere" / "board.csv"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    check_outputs([tmp_path / "board.html"])
    with pytest.raises(Unsupported, match="plots need matplotlib"):
        check_outputs([tmp_path / "board.png"])


@pytest.mark.parametrize("rows", [[], [{"a": 1}]])
def test_a_page_needs_no_matplotlib(rows, monkeypatch):
    results = ResultTable(rows=[ResultRow(name="a", estimate=1.0)], measure="score") if rows else None
    report = Report(title="T", records=rows, facts=dict, figure=lambda: new_figure(1, 4, 3)[0], results=results)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert ("No picture" in report.html()) == (not rows)
    assert "PNG" not in report.html()


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'quoted")


def test_no_cell_is_a_formula_and_numbers_stay_numbers():
    records = [{"item": item, "score": -1.5, "rank": -2, "exact": Fraction(-1, 3)} for item in (*FORMULAS, "plain", "")]
    text = Report(title="T", records=records, facts=dict).csv()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["item"] for row in rows] == [*(f"'{item}" for item in FORMULAS), "plain", ""]
    assert {(float(row["score"]), int(row["rank"]), row["exact"]) for row in rows} == {(-1.5, -2, "'-1/3")}


def test_items_that_a_spreadsheet_would_run_are_neutralised_in_boards(tmp_path):
    items = ("=cmd|'/c calc'!A1", "@x", "-y", "+z", "plain")
    release = release_of(items)
    write_board(release, tmp_path / "board.csv")
    with (tmp_path / "board.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["item"] for row in rows) == sorted([*(f"'{item}" for item in items[:4]), "plain"])
    assert [row["item"].removeprefix("'") for row in rows] == list(release.value.items)
    assert [float(row["score"]) for row in rows] == pytest.approx(release.value.scores.tolist())
    names = [row["item"] for row in json.loads(board_report(release).json())["leaderboard"]]
    assert names == list(release.value.items)  # JSON has them as they are


@pytest.mark.slow
def test_long_lists_are_cut_in_pictures_and_whole_in_tables():
    items = tuple(f"item {k}" for k in range(80))
    table = pa.table({"winner": items[:-1], "loser": items[1:]})
    release = rank(table, 5, protect="comparison", items=items)
    page = Page(board_report(release, "Board").html())
    assert page.tags.count("circle") == 80
    assert page.tags.count("tr") == 81
    assert np.isfinite(release.value.scores).all()


def test_a_table_with_many_columns_continues_below_with_the_rows_that_go_on():
    rows = [["long", *map(str, range(1, 11))], ["short", "1", *[""] * 9]]
    page = Table(["name", *(f"round {n}" for n in range(1, 11))], rows).html()
    first, second = page.split("</table>")[:2]
    assert page.count("<table") == page.count("</table>") == 2
    assert [first.count("<tr>"), second.count("<tr>")] == [3, 2]
    assert "short" not in second
    assert [head in first for head in ("round 5<", "round 6<")] == [True, False]
    assert [head in second for head in ("round 5<", "round 6<")] == [False, True]
