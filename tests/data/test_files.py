"""Files: what goes out comes back, and every broken file is refused with one sentence and its place."""

from __future__ import annotations

import os
import string
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.data import Rankings, files
from rankdp.data.files import open_rankings, open_writer
from rankdp.errors import InputError

names = (
    st.text(st.sampled_from(string.ascii_letters + string.digits + " ,;'\"{}#:é漢-_."), min_size=1, max_size=6)
    .map(str.strip)
    .filter(bool)
)


@st.composite
def tables(draw) -> Rankings:
    items = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    rows = draw(
        st.lists(
            st.permutations(items).flatmap(lambda p: st.integers(1, len(p)).map(lambda k: p[:k])),
            min_size=1,
            max_size=8,
        )
    )
    ids = st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        # A CSV cell cannot keep a carriage return: line ends are read as LF, and a lone one is refused.
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1).map(str.strip).filter(bool),
    )
    voters = draw(st.none() | st.lists(ids, min_size=len(rows), max_size=len(rows), unique_by=str))
    if voters is not None and any(isinstance(voter, str) for voter in voters):
        voters = [str(voter) for voter in voters]
    epsilons = draw(st.none() | st.lists(st.floats(1e-9, 1e9), min_size=len(rows), max_size=len(rows)))
    return Rankings.from_orders(rows, items=items, voters=voters, epsilons=epsilons)


def same(one: Rankings, other: Rankings, voters: bool = True, epsilons: bool = True) -> None:
    assert one.items == other.items
    assert list(one) == list(other)
    if voters and one.voters is not None:
        assert [str(voter) for voter in one.voters] == [str(voter) for voter in other.voters]
    if epsilons and one.epsilons is not None:
        assert one.epsilons.tolist() == other.epsilons.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), [("t.csv", "wide"), ("t.csv", "long"), ("t.parquet", "wide")])
@given(rankings=tables())
@settings(max_examples=60)
def test_round_trip(tmp_path, name, layout, rankings):
    path = tmp_path / name
    rankings.write(path, layout=layout)
    column = None if rankings.epsilons is None else "epsilon"
    same(rankings, Rankings.read(path, items=rankings.items, epsilon_column=column))
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.slow
@given(rankings=tables())
@settings(max_examples=60)
def test_round_trip_through_preflib_keeps_the_counted_orders(tmp_path, rankings):
    path = tmp_path / "t.soi"
    rankings.write(path)
    again = Rankings.read(path)
    assert again.items == rankings.items
    assert sorted(again) == sorted(rankings)


@pytest.mark.slow
@given(rankings=tables())
@settings(max_examples=40)
def test_round_trip_through_arrow(rankings):
    column = None if rankings.epsilons is None else "epsilon"
    again = Rankings.from_frame(rankings, epsilon_column=column)
    assert again == rankings
    assert Rankings.from_frame(rankings.to_arrow(), items=rankings.items, epsilon_column=column) == rankings


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(path: object, **options) -> str:
    with pytest.raises(InputError) as caught:
        Rankings.read(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ": the file is empty"),
        ("\n", ", line 1: the header is blank"),
        ("voter,rank_1,rank_2\n", ": there is a header but no row"),
        ("voter,item,rank\n", ": there is a header but no row"),
        ("voter,name,score\n1,a,2\n", "the columns are voter, name, score"),
        ("voter,rank_1,rank_3\n1,a,b\n", ": there is a column 'rank_3' but none for rank 2"),
        ("voter,rank_0,rank_1\n1,a,b\n", ": the rank columns must start at rank_1, got 'rank_0'"),
        ("voter,rank_1,rank1\n1,a,b\n", ": the columns 'rank_1' and 'rank1' both hold rank 1"),
        ("voter,rank_1,rank_1\n1,a,b\n", ": two columns are called 'rank_1'"),
        (
            "voter,rank_1,rank_2\n1,a,b\n2,ebi,ebi\n",
            ", line 3: 'ebi' is listed twice; a ranking lists each item once",
        ),
        ("voter,rank_1,rank_2\n1,a,b\n\n\n2,a,a\n", ", line 5: 'a' is listed twice"),
        ('voter,rank_1,rank_2\n"1\n2",a,b\n2,a,a\n', ", line 4: 'a' is listed twice"),
        ("voter,rank_1,rank_2\n1,a,b\n2,,b\n", ", line 3: position 1 is blank but position 2 is 'b'"),
        ("voter,rank_1,rank_2\n1,a,b\n2,,\n", ", line 3: no item is listed"),
        ("voter,rank_1,rank_2\n1,a,b\n2,a\n", ", line 3: the line has 2 fields and the header 3"),
        ("voter,rank_1,rank_2\n1,a,b\n2,a,b,c\n", ", line 3: the line has 4 fields and the header 3"),
        ("voter,rank_1,rank_2\n1,a,b\n,a,b\n", ", line 3: the voter id is blank"),
        (
            "voter,rank_1,rank_2\n1,a,b\n2,a,\n3,a,NA\n",
            ", line 4: missing is spelled 'NA' here and as a blank at",
        ),
        ("voter,rank_1,rank_2\n1,a,-\n2,a,NA\n", ", line 3: missing is spelled 'NA' here and '-' at"),
        (
            "voter,rank_1,rank_2\n1,None,b\n2,a,b\n",
            ", line 2: position 1 is blank ('None' is read as missing unless",
        ),
        (b"voter,rank_1,rank_2\n1,a,b\n2,\xff,b\n", ", line 3: the text is not valid UTF-8"),
        (b"voter,rank_1,r\xffnk_2\n1,a,b\n", ", line 1: the text is not valid UTF-8"),
        ("voter,rank_1\n1,a\n".encode("utf-16")[:-1], ": the text is not valid UTF-16"),
        ("voter,item,rank\n1,a,1\n1,b,1\n", ", line 3: 'a' and 'b' are tied at rank 1; ties='listed' keeps"),
        ("voter,item,rank\n1,a,1\n2,a,1\n1,a,2\n", ", line 4: 'a' is listed twice by one voter"),
        ("voter,item,rank\n1,a,1\n1,b,3\n", ", line 3: rank 2 is missing but 'b' has rank 3"),
        ("voter,item,rank\n1,a,first\n", ", line 2: rank must be a number, got 'first'"),
        ("voter,item,rank\n1,a,1\n1,b,1.5\n", ", line 3: a rank must be a whole number from 1 on, got 1.5"),
        ("voter,item,rank\n1,a,0\n", ", line 2: a rank must be a whole number from 1 on, got 0"),
        ("voter,item,rank\n1,,1\n", ", line 2: the item is blank"),
        ("voter,item,rank\n1,a,1\n2,a,\n", ", line 3: voter '2' has no rank at all"),
        ("item,rank\na,1\n", "the columns are item, rank"),
    ],
)
def test_refused_csv(tmp_path, text, sentence):
    path = write(tmp_path / "votes.csv", text)
    answer = refused(path)
    assert answer.startswith(str(path))
    assert sentence in answer


def test_refused_paths(tmp_path):
    assert "there is no such file" in refused(tmp_path / "no.csv")
    assert "this is a directory" in refused(tmp_path)
    assert "the ending must be one of .csv" in refused(write(tmp_path / "votes.ods", "x"))
    path = write(tmp_path / "votes.csv", "rank_1\na\n")
    with pytest.raises(InputError, match="batch_rows must be an integer of at least 1, got 0"):
        open_rankings(path, batch_rows=0)
    if os.geteuid():
        path.chmod(0)
        assert "could not be read (Permission denied)" in refused(path)


def test_header_words_are_recognised_and_told(tmp_path):
    path = write(tmp_path / "v.csv", "\ufeffAge, Race ID ,rank2,Rank1,id\n30,7,b,a,x\n41,8, a ,b,y\n")
    with open_rankings(path) as reader:
        assert (reader.columns.layout, reader.rows, reader.width) == ("wide", None, 2)
        assert reader.columns.voter == "Race ID"
        assert reader.columns.ignored == ("Age", "id")
        assert not reader.declared_items
        (rankings,) = reader
    assert list(rankings) == [("a", "b"), ("b", "a")]
    assert rankings.voters.tolist() == ["7", "8"]
    assert Rankings.read(path, voter_column="id").voters.tolist() == ["x", "y"]
    assert "voter_column is 'who', but the columns are Age, Race ID" in refused(path, voter_column="who")
    assert "epsilon_column is 'eps'" in refused(path, epsilon_column="eps")
    for mark in "\t;":
        other = write(tmp_path / "v.tsv", f"user{mark}rank_1{mark}rank_2\n1{mark}a{mark}b,c\n")
        assert list(Rankings.read(other)) == [("a", "b,c")]
    assert Rankings.read(write(tmp_path / "n.csv", "rank_1,rank_2\na,b\n")).voters is None


def test_long_files_are_grouped_by_voter(tmp_path):
    text = "user_id,candidate,position,age\n9,a,2,30\n4,b,1,41\n9,b,1,30\n4,a,,41\n9,c,3,30\n"
    with open_rankings(write(tmp_path / "v.csv", text)) as reader:
        assert (reader.columns.layout, reader.rows, reader.width) == ("long", 2, 3)
        assert (reader.columns.voter, reader.columns.ignored) == ("user_id", ("age",))
        (rankings,) = reader
    assert list(rankings) == [("b", "a", "c"), ("b",)]
    assert rankings.voters.tolist() == ["9", "4"]


def test_ties_in_long_files(tmp_path):
    path = write(tmp_path / "v.csv", "voter,item,rank\n1,c,2\n1,a,1\n1,b,2\n")
    assert list(Rankings.read(path, ties="listed")) == [("a", "c", "b")]
    assert {next(iter(Rankings.read(path, ties="random"))) for _ in range(60)} == {
        ("a", "b", "c"),
        ("a", "c", "b"),
    }


@pytest.mark.parametrize("blank", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-"])
def test_every_spelling_of_missing(tmp_path, blank):
    path = write(tmp_path / "v.csv", f"voter,rank_1,rank_2\n1,a,b\n2,b,{blank}\n")
    with open_rankings(path) as reader:
        assert list(Rankings.concatenate(reader)) == [("a", "b"), ("b",)]
        assert reader._known.blank == blank
    if blank:
        assert list(Rankings.read(path, items=["a", "b", blank])) == [("a", "b"), ("b", blank)]


def test_a_closed_list_of_items(tmp_path):
    path = write(tmp_path / "v.csv", "voter,rank_1,rank_2\n1,a,b\n2,b,x\n")
    assert refused(path, items=["b", "a"]).endswith(", line 3: 'x' is not one of the 2 items given")
    rankings = Rankings.read(path, items=["x", "b", "a", "never"])
    assert rankings.items == ("x", "b", "a", "never")
    assert rankings.orders.tolist() == [[2, 1], [1, 0]]


def test_an_epsilon_for_each_voter(tmp_path):
    path = write(tmp_path / "v.csv", "voter,eps,rank_1\n1,0.1,a\n2, 3 ,b\n")
    rankings = Rankings.read(path, epsilon_column="eps")
    assert rankings.epsilons.tolist() == [0.1, 3.0]
    for bad, sentence in [
        ("", "epsilon is blank; every voter needs one"),
        ("0", "epsilon must be a finite number above 0, got 0.0"),
        ("nan", "epsilon is blank"),
        ("inf", "epsilon must be a finite number above 0, got inf"),
        ("much", "epsilon must be a number, got 'much'"),
    ]:
        path = write(tmp_path / "b.csv", f"voter,eps,rank_1\n1,0.1,a\n2,{bad},b\n")
        assert f", line 3: {sentence}" in refused(path, epsilon_column="eps")
    long = write(tmp_path / "l.csv", "voter,item,rank,eps\n1,a,1,1\n1,b,2,2\n")
    assert ", line 3: the voter has the epsilons 1.0 and 2.0" in refused(long, epsilon_column="eps")


def test_batches_share_one_growing_list_of_items(tmp_path):
    path = write(tmp_path / "v.csv", "voter,rank_1,rank_2\n1,d,c\n2,a,b\n3,c,a\n")
    with open_rankings(path, batch_rows=1) as reader:
        first, second, third = reader
    assert (first.items, second.items) == (("c", "d"), ("c", "d", "a", "b"))
    assert third.orders.tolist() == [[0, 2]]
    assert Rankings.read(path).items == ("a", "b", "c", "d")
    assert list(Rankings.concatenate([first, second, third])) == list(Rankings.read(path))
    with pytest.raises(InputError, match="do not share one list"):
        Rankings.concatenate([second, first])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_large_file_streams_and_names_its_broken_row(tmp_path, ending):
    rows = 200_000
    orders = np.random.default_rng(1).random((rows, 6)).argsort(axis=1)
    big = Rankings.from_orders(orders, items=[f"item {i}" for i in range(6)], voters=range(rows))
    path = tmp_path / f"big.{ending}"
    big.write(path)
    with (
        open_rankings(path, batch_rows=30_000) as reader,
        open_writer(tmp_path / "copy.parquet", like=reader) as writer,
    ):
        lengths = []
        for batch in reader:
            writer.write(batch)
            lengths.append(len(batch))
    assert max(lengths) <= 30_000
    assert sum(lengths) == rows
    copied = Rankings.read(tmp_path / "copy.parquet")
    same(big, copied)
    table = pa.table({f"rank_{j + 1}": pa.array([f"item {i}" for i in orders[:, j]]) for j in range(6)})
    broken = table.column(5).to_pylist()
    broken[150_000] = table.column(0)[150_000].as_py()
    table = table.set_column(5, "rank_6", pa.array(broken))
    place = "row 150001" if ending == "parquet" else "line 150002"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=70_000)
    else:
        from pyarrow import csv

        csv.write_csv(table, path)
    assert f"{place}: {broken[150_000]!r} is listed twice" in refused(path)


def test_parquet_columns_of_every_kind(tmp_path):
    path = tmp_path / "v.parquet"
    want = [("b", "a"), ("a",)]
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int8(), pa.string()),
    ):
        plain = [pa.array(["b", "a"]), pa.array(["a", None])]
        columns = [c.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else c.cast(kind) for c in plain]
        pq.write_table(pa.table({"rank_1": columns[0], "rank_2": columns[1]}), path)
        assert list(Rankings.read(path)) == want, kind
    for kind in (pa.int64(), pa.uint8(), pa.float64()):
        pq.write_table(pa.table({"rank_1": pa.array([10, 9], kind), "rank_2": pa.array([9, None], kind)}), path)
        rankings = Rankings.read(path)
        assert list(rankings) == [("10", "9"), ("9",)]
        assert rankings.items == ("9", "10")
    pq.write_table(pa.table({"rank_1": [1.5]}), path)
    assert ", row 1: an item must be a text or a whole number, got 1.5" in refused(path)
    pq.write_table(pa.table({"rank_1": [True]}), path)
    assert "got True" in refused(path)
    pq.write_table(pa.table({"rank_1": pa.array([b"a", b"\xff"])}), path)
    assert ", row 2: b'\\xff' is not valid UTF-8 text" in refused(path)
    pq.write_table(pa.table({"voter": [1, 1], "item": ["a", "b"], "rank": [2, 1]}), path)
    assert list(Rankings.read(path)) == [("b", "a")]
    pq.write_table(pa.table({"rank_1": pa.array([], pa.string())}), path)
    assert "there are no rows" in refused(path)


def test_unused_categories_are_not_items(tmp_path):
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["a", "unused", "c", ""]))
    assert Rankings.from_frame(pa.table({"rank_1": column})).items == ("a", "c")


def test_damaged_parquet(tmp_path):
    path = tmp_path / "v.parquet"
    Rankings.from_orders([["a", "b"]] * 1000).write(path)
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], whole[:-4], b"PAR1" * 3):
        path.write_bytes(part)
        assert "this is not a whole Parquet file" in refused(path)
    path.write_bytes(b"PAR1" + b"\x7f" * 60 + whole[64:])
    assert str(path) in refused(path)


def test_a_blank_after_the_first_batch_is_written_all_the_same(tmp_path):
    full = Rankings.from_orders([["a", "b"], ["b", "a"]], items=["a", "b"], voters=[1, 2], epsilons=[1, 2])
    partial = Rankings.from_orders([["b", None]], items=["a", "b"], voters=[3], epsilons=[3])
    path = tmp_path / "v.parquet"
    with open_writer(path, like=full) as writer:
        for batch in (full, partial, full):
            writer.write(batch)
    again = Rankings.read(path, epsilon_column="epsilon")
    assert list(again) == [*full, *partial, *full]
    assert again.voters.tolist() == [1, 2, 3, 1, 2]
    assert again.epsilons.tolist() == [1, 2, 3, 1, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["v.parquet"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "soi"])
@pytest.mark.parametrize("accident", [KeyboardInterrupt, RuntimeError])
def test_an_accident_leaves_the_old_file_and_nothing_else(tmp_path, ending, accident):
    path = write(tmp_path / f"out.{ending}", "old")
    rankings = Rankings.from_orders([["a", "b"]])
    with pytest.raises(accident), open_writer(path, like=rankings) as writer:  # noqa: PT012 - the accident is inside
        writer.write(rankings)
        raise accident
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    rankings.write(path)
    same(rankings, Rankings.read(path))


@pytest.mark.parametrize("ending", ["csv", "parquet", "soi"])
def test_a_full_disk_is_told_and_cleaned_up(tmp_path, ending):
    resource = pytest.importorskip("resource", reason="no file size limits here")
    rankings = Rankings.from_orders(np.random.default_rng(1).random((3000, 8)).argsort(axis=1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(InputError, match=r"out\.\w+: the file could not be written \(File too large\)"):
            rankings.write(tmp_path / f"out.{ending}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_a_page_lost_on_the_way_to_the_disk_is_told(tmp_path, monkeypatch):
    def fails(descriptor):
        raise OSError(5, "lost")

    monkeypatch.setattr(files.os, "fsync", fails)
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"]])
    with pytest.raises(InputError, match=r"v\.parquet: the file could not be written \(Input/output error\)"):
        rankings.write(tmp_path / "v.parquet")
    assert not list(tmp_path.iterdir())


def test_refused_writing(tmp_path):
    rankings = Rankings.from_orders([["a", "b"], ["b"]])
    path = tmp_path / "v.csv"
    rankings.write(path)

    def refusal(target: object, like: object = rankings, **options) -> str:
        with pytest.raises(InputError) as caught:
            open_writer(target, like, **options)
        return str(caught.value)

    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with open_rankings(path) as reader:
        assert "this is the file being read" in refusal(path, reader)
        assert "this is the file being read" in refusal(link, reader)
    assert "this is a directory" in refusal(Path(tmp_path / "d.csv").mkdir() or tmp_path / "d.csv")
    assert "could not be written (No such file or directory)" in refusal(tmp_path / "no" / "v.csv")
    assert "not a regular file" in refusal(os.mkfifo(tmp_path / "f.csv") or tmp_path / "f.csv")
    assert "there are no ties to write" in refusal(tmp_path / "v.toc")
    assert "only CSV files are written in the long layout" in refusal(tmp_path / "v.parquet", layout="long")
    assert "layout must be one of wide, long, got 'tall'" in refusal(path, layout="tall")
    for ending in ("doc", "json", "blt", "xlsx"):
        assert ".soi, .toc, .toi, got" in refusal(tmp_path / f"v.{ending}")
    assert "only .csv may be compressed" in refusal(tmp_path / "v.soc.gz")
    with pytest.raises(InputError, match=r"a \.soc file holds complete rankings only"):
        rankings.write(tmp_path / "v.soc")
    with (
        pytest.raises(InputError, match="2 rank columns, got rankings of width 3"),
        open_writer(path, rankings) as w,
    ):
        w.write(Rankings.from_orders([["a", "b", "c"]]))
    with pytest.raises(InputError, match="no rankings were written"), open_writer(path, rankings):
        pass
    with open_writer(tmp_path / "w.csv", rankings) as w:
        w.write(rankings)
        with pytest.raises(InputError, match="every batch must have voters"):
            w.write(Rankings.from_orders([["a", "b"]], voters=[1]))
    assert list(Rankings.read(path)) == list(rankings)
    rankings[:1].write(link)
    assert link.is_symlink()
    assert list(Rankings.read(path)) == [("a", "b")]


def test_written_files_obey_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        Rankings.from_orders([["a"]]).write(tmp_path / "v.csv")
    finally:
        os.umask(old)
    assert (tmp_path / "v.csv").stat().st_mode & 0o777 == 0o640
