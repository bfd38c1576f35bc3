"""Opening tables: workbooks, encodings, several files; a column of ranks per item; ratings; all bad rows at once."""

import codecs
import datetime
import zipfile

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from support import command, workbook

from rankdp.data.ballots import Ballots
from rankdp.data.comparisons import Comparisons
from rankdp.data.files import open_rankings
from rankdp.data.formats import excel
from rankdp.data.formats.texts import known_encoding
from rankdp.data.rankings import Rankings
from rankdp.data.tables import open_table
from rankdp.errors import InputError

RANKS = [["id", "tea", "coffee", "juice"], ["x", 1.0, 2.0, 3.0], ["y", 3.0, 1.0, 2.0], ["z", "2", "", "1"]]


def refused(call):
    with pytest.raises(InputError) as found:
        call()
    return str(found.value)


# -- excel -------------------------------------------------------------------------------------------------------


def test_a_sheet_is_a_table_of_texts(tmp_path):
    path = workbook(
        tmp_path / "poll.xlsx", One=[["a"]], Two=[["voter", "rank_1", "rank_2"], [7.0, "b", 0.5], [8.0, 3.0, "b"]]
    )
    assert "sheet must say which sheet is meant: One, Two" in refused(lambda: Rankings.read(path))
    assert "sheet is 'Three', but the sheets are One, Two" in refused(lambda: Rankings.read(path, sheet="Three"))
    rankings = Rankings.read(path, sheet="Two")
    assert list(rankings) == [("b", "0.5"), ("3", "b")]
    assert rankings.voters.tolist() == ["7", "8"]
    assert Rankings.of(open_table(path, sheet="Two")) == rankings


def test_cells_keep_a_plain_text_form():
    cells = {3.0: "3", 0.1: "0.1", True: "true", "  x ": "x", "": None, 1e22: "1e+22", 2: "2", "007": "007"}
    assert [excel._text(cell) for cell in cells] == list(cells.values())
    assert excel._text(datetime.date(2024, 2, 3)) == "2024-02-03"


def test_a_refusal_names_the_row_that_excel_shows(tmp_path):
    rows = [["voter", "rank_1", "rank_2"], ["u", "a", "b"], ["v", "b", "a"], ["w", "a", "a"], ["", "", ""]]
    path = workbook(tmp_path / "poll.xlsx", Sheet=rows)
    assert "poll.xlsx, row 4: 'a' is listed twice" in refused(lambda: Rankings.read(path))
    path = workbook(tmp_path / "wide.xlsx", Sheet=[*rows[:2], ["w", "a", "b", "stray"]])
    assert "row 3: a cell is in a column that the header does not name" in refused(lambda: Rankings.read(path))


def test_a_blank_row_of_a_sheet_may_be_a_ballot(tmp_path):
    """The number of ballots is public: passing over a blank one would tell that somebody ranked nobody."""
    ballots = [["rank_1", "rank_2"], ["a", "b"], ["b", "a"], ["a", ""]]
    ballots[2] = ["", " "]
    path = workbook(tmp_path / "ballots.xlsx", Sheet=ballots)
    assert "ballots.xlsx, row 3: the row is blank and rows follow it; delete it, or" in refused(
        lambda: Ballots.read(path)
    )
    ballots[2] = ["blank", ""]
    assert Ballots.read(workbook(path, Sheet=ballots)).count == 3


def test_damaged_and_large_workbooks_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "poll.xlsx"
    path.write_bytes(b"no workbook")
    assert "this is not a whole Excel workbook" in refused(lambda: Rankings.read(path))
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/workbook.xml", "<workbook>")
    assert "this is not a whole Excel workbook" in refused(lambda: Rankings.read(path))
    workbook(path, Sheet=RANKS)
    monkeypatch.setattr(excel, "LARGEST", 100)
    assert "the workbook unpacks to" in refused(lambda: Rankings.read(path, layout="ranks"))


def test_one_cell_far_away_is_refused_before_it_takes_the_memory(tmp_path):
    plain, far = workbook(tmp_path / "plain.xlsx", Sheet=RANKS), tmp_path / "far.xlsx"
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(far, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            cell = b'<row r="1048576"><c r="XFD1048576" t="str"><v>x</v></c></row></sheetData>'
            target.writestr(name, content.replace(b"</sheetData>", cell))
    said = refused(lambda: Rankings.read(far, layout="ranks"))
    assert "far.xlsx: a sheet may have at most 33,554,432 cells, got 17,179,869,184 in" in said


# -- encodings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["windows-1252", "latin-1", "utf-16", "cp437", "gb18030", "shift_jis"])
@pytest.mark.parametrize("name", ["poll.csv", "poll.jsonl", "poll.json"])
def test_other_encodings(tmp_path, name, encoding):
    item = "ミルク" if encoding in ("gb18030", "shift_jis") else "Müller"
    objects = [
        f'{{"voter": 1, "rank_1": "{item}", "rank_2": "b"}}',
        f'{{"voter": 2, "rank_1": "b", "rank_2": "{item}"}}',
    ]
    text = {
        "poll.csv": f"voter,rank_1,rank_2\n1,{item},b\n2,b,{item}\n",
        "poll.jsonl": "\n".join(objects),
        "poll.json": f"[{', '.join(objects)}]",
    }[name]
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    assert list(Rankings.read(path, encoding=encoding)) == [(item, "b"), ("b", item)]


def test_only_encodings_in_which_no_line_changes_another(tmp_path):
    """Bytes that switch to other characters, or that write a line end, would let one row change the next."""
    for name in (
        "utf-7",
        "unicode_escape",
        "raw_unicode_escape",
        "iso2022_jp",
        "hz",
        "cp037",
        "cp500",
        "rot13",
        "",
        "x",
    ):
        assert "encoding must be one such as latin-1" in refused(lambda name=name: known_encoding(name))
    every = {codecs.lookup(name).name for name in ("latin-1", "cp1252", "mac-roman", "koi8-r", "utf8", "UTF-16LE")}
    assert {known_encoding(name) for name in every} == every
    path = tmp_path / "poll.csv"
    path.write_bytes("voter,rank_1,rank_2\n1,a,b\n2,".encode("utf-16-le") + b"x")
    assert "the text is not valid UTF-16-LE" in refused(lambda: Rankings.read(path, encoding="utf-16-le"))
    assert "encoding is for files" in refused(lambda: Rankings.of(pa.table({"rank_1": ["a"]}), encoding="cp1252"))


# -- several files -----------------------------------------------------------------------------------------------


class Dataset:
    """What rankdp uses of a dataset of Hugging Face, which may stream."""

    __module__ = "datasets.arrow_dataset"

    def __init__(self, table):
        self.table = table

    def with_format(self, kind):
        assert kind == "arrow"
        return self

    def iter(self, batch_size):
        rows = min(batch_size, 2)
        return (self.table.slice(start, rows) for start in range(0, len(self.table), rows))


class DatasetDict(dict):
    """Several of them."""

    __module__ = "datasets.dataset_dict"


def test_datasets():
    table = pa.table({"voter": ["1", "2", "3"], "ranking": [["a", "b"], ["b"], ["b", "a"]]})
    assert list(Rankings.of(Dataset(table))) == [("a", "b"), ("b",), ("b", "a")]
    assert Ballots.of(Dataset(table)).count == 3
    assert "there are no rows" in refused(lambda: Ballots.of(Dataset(table.slice(0, 0))))
    assert "has the parts train, test" in refused(lambda: Ballots.of(DatasetDict(train=1, test=2)))


def test_several_files_are_one_table(tmp_path):
    for number, row in enumerate(("1,a,b", "2,b,a")):
        (tmp_path / f"{number}.csv").write_text(f"voter,rank_1,rank_2\n{row}\n")
    paths = [tmp_path / "0.csv", tmp_path / "1.csv"]
    whole = Rankings.read(paths)
    assert (list(whole), whole.voters.tolist()) == ([("a", "b"), ("b", "a")], ["1", "2"])
    assert Rankings.read(tmp_path / "?.csv") == whole
    assert Ballots.of(paths).count == 2
    assert "0.csv: the file is given twice" in refused(lambda: Rankings.read([*paths, paths[0]]))
    (tmp_path / "link.csv").symlink_to(paths[0])
    assert "link.csv: the file is given twice" in refused(lambda: Rankings.read([*paths, tmp_path / "link.csv"]))
    (tmp_path / "1.csv").write_text("voter,rank_1,rank_2\n2,b,b\n")
    assert "1.csv, line 2: 'b' is listed twice" in refused(lambda: Rankings.read(paths))
    (tmp_path / "1.csv").write_text("voter,rank_1,rank_2\n2,b,a\n")
    run = command("privatize", "0.csv", "1.csv", "out.csv", "--epsilon", "1", cwd=tmp_path)
    assert (run.returncode, len(Rankings.read(tmp_path / "out.csv"))) == (0, 2), run.stderr
    run = command("privatize", "0.csv", "1.csv", "1.csv", "--epsilon", "1", "--force", cwd=tmp_path)
    assert "this is the file being read" in run.stderr


# -- layouts -----------------------------------------------------------------------------------------------------


def test_a_column_of_ranks_per_item(tmp_path):
    path = workbook(tmp_path / "poll.xlsx", Sheet=RANKS)
    said = refused(lambda: Rankings.read(path))
    assert "if every column is an item and holds its rank, use layout='ranks'" in said
    rankings = Rankings.read(path, layout="ranks")
    assert list(rankings) == [("tea", "coffee", "juice"), ("coffee", "juice", "tea"), ("juice", "tea")]
    assert (rankings.items, rankings.items_from_data) == (("tea", "coffee", "juice"), False)
    assert Ballots.of(path, layout="ranks").margins().tolist() == [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]
    assert "needs a named column for each of at least two items" in refused(
        lambda: Rankings.of(pa.table({"voter": ["a"], "tea": [1]}), layout="ranks")
    )
    assert "layout must be" in refused(lambda: Rankings.read(path, layout="wide"))
    asked = ("elect", "poll.xlsx", "--epsilon", "1", "--rule", "borda")
    run = command(*asked, cwd=tmp_path)
    assert (run.returncode, "use --layout ranks" in run.stderr) == (1, True)
    run = command(*asked, "--layout", "ranks", cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_ratings_become_tied_rankings():
    rows = [
        ("1", "a", "5"),
        ("2", "c", "1"),
        ("1", "b", "4.5"),
        ("1", "c", "5"),
        ("2", "a", "2"),
        ("3", "b", ""),
        ("3", "a", "0"),
    ]
    table = pa.table(dict(zip(("user", "item", "rating"), map(list, zip(*rows, strict=True)), strict=True)))
    assert "'a' and 'c' are tied at rank 1" in refused(lambda: Rankings.of(table))
    kept = Rankings.of(table, ties="keep")
    assert kept.items == ("a", "b", "c")
    assert kept.ranks().tolist() == [[1, 2, 1], [1, 0, 2], [1, 0, 0]]
    ballots = Ballots.of(table)
    assert ballots.margins().tolist() == [[0, 3, 2], [-3, 0, -2], [-2, 2, 0]]
    with open_rankings(table, ties="keep") as reader:
        assert "'rating' holds ratings" in reader.notes[0] == ballots.notes[0]
    assert np.array_equal(Ballots.of(duckdb.connect().from_arrow(table)).margins(), ballots.margins())
    bad = table.set_column(2, "rating", pa.array(["5", "1", "x", "5", "2", "", "0"]))
    assert "row 3: rating must be a number, got 'x'" in refused(lambda: Rankings.of(bad))
    infinite = table.set_column(2, "rating", pa.array(["5", "1", "inf", "5", "2", "", "0"]))
    assert "row 3: a rating must be a finite number" in refused(lambda: Rankings.of(infinite))


def test_ranks_of_ratings_against_sorting():
    random = np.random.default_rng(7)
    voters, items = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    ratings = random.integers(1, 4, 200)
    shuffled = random.permutation(200)
    table = pa.table({"voter": voters[shuffled], "item": items[shuffled], "stars": ratings[shuffled]})
    found = Rankings.of(table, ties="keep", items=range(5))
    for row, voter in enumerate(found.voters.tolist()):
        own = ratings[voters == voter]
        expected = [len({other for other in own if other > one}) + 1 for one in own]
        assert found.ranks()[row].tolist() == expected


# -- bad rows ----------------------------------------------------------------------------------------------------


def test_all_kinds_of_bad_rows_are_named_at_once(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\na,b,left\na,a,tie\na,b,\na,x,left\nb,b,left\na,b,who\n")
    said = refused(lambda: Comparisons.read(path, items=["a", "b"]).count())
    assert said.endswith(
        "votes.csv, line 3: 'a' is compared with itself (2 such rows); line 4: 'winner' is blank; "
        "line 5: 'x' is not one of the 2 items given (on_problem='drop' leaves such rows out); line 7: "
        "'winner' must be left, right, tie, draw or the name of one of the two items, got 'who'"
    )
    said = refused(lambda: Comparisons.read(path, items=["a", "b"], on_problem="drop").count())
    assert said.startswith(f"{path}, line 7: 'winner' must be")
    path.write_text("left,right,winner\na,b,left\na,a,tie\na,b,\n")
    assert Comparisons.read(path, items=["a", "b"], on_problem="drop").count().comparisons.sum() == 1
