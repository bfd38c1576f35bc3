"""The guard in front of the CSV parser: rows that stand on their own pass, and no row can change another."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp.data.formats import csv as guarded
from rankdp.errors import InputError

CELLS = st.text(st.sampled_from("a\",'\n #\t;é"), max_size=4)
RAW_LINES = st.text(st.sampled_from("ab\",' #;"), max_size=8)


def rows_of(path):
    file = guarded.read_header(str(path))
    return [row for batch in file.batches(file.names, plain=file.names) for row in batch.to_pylist()]


@given(cells=st.lists(st.tuples(CELLS, CELLS), max_size=6), ends=st.sampled_from(["\n", "\r\n"]))
def test_what_a_csv_writer_writes_is_read_back(tmp_path_factory, cells, ends):
    path = tmp_path_factory.mktemp("guard") / "table.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator=ends).writerows([("x", "y"), *cells])
    path.write_bytes(text.getvalue().encode())
    said = [(row["x"] or "", row["y"] or "") for row in rows_of(path)]
    assert said == cells


@pytest.mark.slow
@given(before=st.lists(RAW_LINES, max_size=4), row=RAW_LINES, after=st.lists(RAW_LINES, max_size=4))
def test_a_raw_line_that_is_put_in_changes_no_other_row(tmp_path_factory, before, row, after):
    folder = tmp_path_factory.mktemp("guard")

    def read(lines):
        path = folder / "table.csv"
        path.write_text("\n".join(["x,y", *lines]) + "\n")
        try:
            return rows_of(path)
        except InputError:
            return None

    above, without, put_in = read(before), read([*before, *after]), read([*before, row, *after])
    if above is None or without is None or put_in is None:  # above: a line inside a cell is part of that cell's row
        return
    added = len(put_in) - len(without)
    assert added in (0, 1)
    start = len(above)
    assert put_in[:start] == without[:start]
    assert put_in[start + added :] == without[start:]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('x,y\n1,2\n3,"4\n5,6\n', "line 3: a quote is opened here and never closed"),
        ('x,y\n1,2\n3,4" pipe\n', "line 3: a quote inside a cell; put such a cell in quotes"),
        ('x,y\n"1"a,2\n', "line 2: a quote inside a cell"),
        ("x,y\n1,2\r3,4\n", "line 2: a carriage return without a line feed"),
        ("x,y\n1,\0\n", "line 2: the line holds a NUL byte"),
        ("x,y\n1,2\n3\n", "line 3: the line has 1 fields and the header 2"),
    ],
)
def test_refusals_name_the_line(tmp_path, text, sentence):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    with pytest.raises(InputError, match=sentence):
        rows_of(path)


def test_cells_and_quotes_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(guarded, "_CHUNK", 7)
    cells = [("a\n\nb", 'say "hi"'), ("", "x"), ("long " * 10, "\n")] * 3
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows([("x", "y"), *cells])
    assert [(row["x"] or "", row["y"]) for row in rows_of(path)] == cells


def test_a_parser_that_loses_rows_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    checked = guarded.Guard._checked

    def counting_one_more(self, data):
        self.records += 1 if not self._lines else 0
        return checked(self, data)

    monkeypatch.setattr(guarded.Guard, "_checked", counting_one_more)
    with pytest.raises(InputError, match="the file holds 3 rows and 2 were read"):
        rows_of(path)


@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_a_blank_line_of_one_column_may_be_a_ballot(tmp_path, monkeypatch, chunk):
    """The number of ballots is public: passing over a blank one would tell that somebody ranked nobody."""
    monkeypatch.setattr(guarded, "_CHUNK", chunk)
    path = tmp_path / "table.csv"
    for text, line in (("x\na\n\nb\n", 3), ("x\n\na\n", 2), ("x\r\na\r\nb\r\n\r\n\r\nc", 4), ('x\n"a\n\n"\n\nb\n', 5)):
        path.write_bytes(text.encode())
        with pytest.raises(InputError, match=f"line {line}: the line is blank and lines follow it; delete it, or"):
            rows_of(path)
    for text, rows in (("x\na\n\n\n", 1), ('x\na\n""\nb\n', 3), ('x\n"a\n\n"\nb\n', 2), ("x,y\na,b\n\nb,a\n", 2)):
        path.write_bytes(text.encode())
        assert len(rows_of(path)) == rows
