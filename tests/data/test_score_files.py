"""Reading names and scores: which columns, which rows, and what is wrong with a file."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdp.data.score_files import read_scores
from rankdp.errors import InputError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("header", "item", "score", "left_out"),
    [
        ("item,score", "item", "score", ()),
        ("Score,Item", "Item", "Score", ()),
        ("id,name,value", "name", "value", ("id",)),
        ("ID;value", "ID", "value", ()),
        ("item name\trating\tx", "item name", "rating", ("x",)),
    ],
)
def test_columns_are_recognised(tmp_path, header, item, score, left_out):
    mark = next((one for one in ",;\t" if one in header), ",")
    row = mark.join(str(number) for number in range(1, header.count(mark) + 2))
    (tmp_path / "in.csv").write_text(f"{header}\n{row}\n")
    table = read_scores(tmp_path / "in.csv")
    assert (table.item_column, table.score_column, table.left_out) == (item, score, left_out)
    assert len(table.names) == len(table.scores) == 1


def test_given_columns_win_and_must_exist(tmp_path):
    (tmp_path / "in.csv").write_text("item,score,other,label\na,1,2,x\n")
    table = read_scores(tmp_path / "in.csv", item_column="label", score_column="other")
    assert (table.names, table.scores.tolist(), table.left_out) == (("x",), [2.0], ("item", "score"))
    with pytest.raises(InputError, match="score_column is 'points', and the columns are item, score, other, label"):
        read_scores(tmp_path / "in.csv", score_column="points")
    with pytest.raises(InputError, match="item_column and score_column must be two columns, got 'item' for both"):
        read_scores(tmp_path / "in.csv", score_column="item")


def test_names_and_blank_lines(tmp_path):
    (tmp_path / "in.csv").write_text('\ufeffitem,score\n\n"two\nlines", 1.5 \n b ,-2e3\n', encoding="utf-8")
    table = read_scores(tmp_path / "in.csv")
    assert table.names == ("two\nlines", "b")
    assert table.scores.tolist() == [1.5, -2000]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"item": ["a", None], "score": [1.0, 2.0]}, "row 2: the item is blank"),
        ({"item": ["a", "b"], "score": [1.0, None]}, "row 2: the score is blank"),
        ({"item": ["a", "b"], "score": [1.0, float("nan")]}, "row 2: the score must be a finite number, got nan"),
        ({"item": ["a", "b"], "score": ["1", "x"]}, "row 2: the score must be a number, got 'x'"),
        ({"item": ["a", "b"], "score": [True, False]}, "row 1: the score must be a number, got True"),
        ({"item": ["a", "a"], "score": [1, 2]}, "row 2: item 'a' is there twice, first in row 1"),
        ({"item": [["a"], ["b"]], "score": [1, 2]}, "the column 'item' must hold texts or numbers"),
        ({"item": pa.array([], pa.string()), "score": pa.array([], pa.float64())}, "there are no rows"),
    ],
)
def test_bad_parquet_cells(tmp_path, columns, sentence):
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    with pytest.raises(InputError) as refusal:
        read_scores(tmp_path / "in.parquet")
    assert sentence in str(refusal.value)


def test_what_is_not_a_file_of_scores(tmp_path):
    (tmp_path / "a.txt").write_text("item,score\n")
    (tmp_path / "latin.csv").write_bytes("item,score\nM\xfcller,1\n".encode("latin-1"))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    for name, sentence in [
        ("a.txt", "the ending must be one of .csv, .tsv, .parquet, .pq, .jsonl, .ndjson, .json, .xlsx, got '.txt'"),
        (".", "this is a directory, not a file of scores"),
        ("missing.csv", "there is no such file"),
        ("latin.csv", "the text is not valid UTF-8"),
        ("bad.parquet", "this is not a whole Parquet file"),
    ]:
        with pytest.raises(InputError, match=sentence):
            read_scores(tmp_path / name)


def test_a_damaged_parquet_file(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"item": [" a ", "b"], "score": [1, 2]}), path)
    assert read_scores(path).names == ("a", "b")
    data = path.read_bytes()
    for part in (data[:-9], data[:40] + data[60:]):
        path.write_bytes(part)
        with pytest.raises(InputError, match=r"in\.parquet: this is not a whole Parquet file|the file is damaged"):
            read_scores(path)
