"""Files as people have them: exports of survey tools, dumps of arenas, ballots of elections, compressed or not."""

import bz2
import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

from rankdp.data import queries
from rankdp.data.ballots import Ballots
from rankdp.data.columns import RANKED, WIDE, recognise
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.data.files import open_rankings
from rankdp.data.rankings import Rankings
from rankdp.data.score_files import read_scores
from rankdp.errors import InputError

ORDERS = [("tea", "milk", "water"), ("water", "tea", "milk")]


def write(tmp_path, name, text):
    path = tmp_path / name
    content = text if isinstance(text, bytes) else text.encode()
    packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda raw: pa.compress(raw, "zstd", asbytes=True)}
    path.write_bytes(packed.get(path.suffix, bytes)(content))
    return path


@pytest.mark.parametrize(
    "header",
    [
        "voter,rank_1,rank_2,rank_3",
        "voter,Choice 1,Choice 2,Choice 3",
        "voter,1st,2nd,3rd",
        "voter,1,2,3",
        "voter,First choice,Second choice,Third choice",
        "voter,1st preference,2nd preference,3rd preference",
        "voter,Rank these [1st choice],Rank these [2nd choice],Rank these [3rd choice]",
        "id,G01Q02[1],G01Q02[2],G01Q02[3]",
        "Response ID,Drinks? [Rank 1],Drinks? [Rank 2],Drinks? [Rank 3]",
    ],
)
def test_a_column_for_every_place(tmp_path, header):
    rankings = Rankings.read(write(tmp_path, "poll.csv", f"{header}\nann,tea,milk,water\nbob,water,tea,milk\n"))
    assert list(rankings) == ORDERS
    assert list(rankings.voters) == ["ann", "bob"]


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("rank of tea,rank of milk,rank of water", ("1,2,3", "2,3,1")),
        ("Rank these [tea],Rank these [milk],Rank these [water]", ("1st choice,2nd choice,3rd choice", "2,3,first")),
        ("rank_tea,rank_milk,rank_water", ("1.0,2.0,3.0", "2,3,1")),
        ("tea_rank,milk_rank,water_rank", ("Rank 1,Rank 2,Rank 3", "#2,#3,#1")),
    ],
)
def test_a_column_for_every_item(tmp_path, header, cells):
    text = "voter," + header + "\n" + "".join(f"v{row},{cell}\n" for row, cell in enumerate(cells))
    path = write(tmp_path, "poll.csv", text)
    rankings = Rankings.read(path)
    assert (list(rankings), rankings.items) == (ORDERS, ("tea", "milk", "water"))
    ballots = Ballots.read(path)
    assert sorted(ballots.items) == ["milk", "tea", "water"]
    assert ballots.count == 2


def test_qualtrics_names_its_items_in_the_second_line(tmp_path):
    text = (
        "StartDate,ResponseId,Q2_1,Q2_2,Q2_3\n"
        'Start Date,Response ID,"Rank these, please - tea",Rank these - milk,Rank these - water\n'
        '"{""ImportId"":""startDate""}","{""ImportId"":""_recordId""}","{""ImportId"":""QID2_1""}",'
        '"{""ImportId"":""QID2_2""}","{""ImportId"":""QID2_3""}"\n'
        "2026-01-01,R_1,1,2,3\n2026-01-02,R_2,2,3,1\n"
    )
    rankings = Rankings.read(write(tmp_path, "export.csv", text))
    assert (list(rankings), list(rankings.voters)) == (ORDERS, ["R_1", "R_2"])
    with pytest.raises(InputError, match=r"line 5: 'Q2 \[water\]' must be a rank such as 1, 2nd or blank, got 'best'"):
        Rankings.read(write(tmp_path, "bad.csv", text.replace("2,3,1\n", "2,3,best\n")))


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ("1,1,2", "line 2: 'tea' and 'milk' are tied at rank 1"),
        ("1,,3", "line 2: rank 2 is missing but 'water' has rank 3"),
        (",,", "line 2: no item is ranked"),
        ("1,x,2", "line 2: 'rank of milk' must be a rank such as 1, 2nd or blank, got 'x'"),
    ],
)
def test_bad_ranks(tmp_path, cells, sentence):
    path = write(tmp_path, "poll.csv", f"rank of tea,rank of milk,rank of water\n{cells}\n1,2,3\n")
    with pytest.raises(InputError, match=sentence):
        Rankings.read(path)


def test_ties_of_a_column_per_item(tmp_path):
    path = write(tmp_path, "poll.csv", "rank of tea,rank of milk,rank of water\n2,1,1\n")
    assert list(Rankings.read(path, ties="listed")) == [("milk", "water", "tea")]
    assert Ballots.read(path).tied.tolist() == [[False, True, False]]


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "csv.bz2", "tsv.gz"])
def test_compressed_tables(tmp_path, ending):
    mark = "\t" if ending.startswith("tsv") else ","
    lines = [mark.join(("voter", "rank_1", "rank_2", "rank_3")), *(mark.join(("v", *order)) for order in ORDERS)]
    path = write(tmp_path, f"poll.{ending}", "\n".join(lines).replace("\nv", "\nu", 1) + "\n")
    rankings = Rankings.read(path)
    assert list(rankings) == ORDERS
    if not ending.startswith("tsv"):
        rankings.write(tmp_path / f"out.{ending}")
        assert list(Rankings.read(tmp_path / f"out.{ending}")) == ORDERS
    broken = tmp_path / f"broken.{ending}"
    broken.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError) as refusal:
        Rankings.read(broken)
    assert "\n" not in str(refusal.value)


def test_the_line_of_a_mistake_in_a_compressed_file(tmp_path):
    path = write(tmp_path, "poll.csv.gz", "rank_1,rank_2\na,b\na,a\n")
    with pytest.raises(InputError, match=r"poll.csv.gz, line 3: 'a' is listed twice"):
        Rankings.read(path)


def test_latin_1_gets_a_hint(tmp_path):
    path = write(tmp_path, "poll.csv", "rank_1,rank_2\nMüller,Schmidt\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"line 2: the text is not valid UTF-8; in Windows-1252 .* 'Müller'.*encoding"):
        Rankings.read(path)
    with pytest.raises(InputError, match=r"line 1: .* 'Größe'"):
        Rankings.read(write(tmp_path, "head.csv", "Größe,rank_1\n1,a\n".encode("latin-1")))


ARENA = [
    {"model_a": "x", "model_b": "y", "winner": "model_a", "judge": "u1", "conversation": [{"role": "user", "n": 1}]},
    {"model_a": "y", "model_b": "x", "winner": "tie", "judge": "u2", "conversation": [{"role": None, "n": "two"}]},
    {"model_a": "y", "model_b": "z", "winner": "tie (bothbad)", "judge": "u2", "conversation": {"deep": [[1], [2]]}},
]


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "jsonl.gz", "json", "jsonl.zst"])
def test_json_lines_of_votes_with_nested_extras(tmp_path, ending):
    path = write(tmp_path, f"votes.{ending}", "".join(json.dumps(row) + "\n\n" for row in ARENA))
    votes = Comparisons.read(path, items_from_data=True, voter_column="judge")
    assert dict(zip(votes.items, votes.count().half_wins.tolist(), strict=True)) == {"x": 3, "y": 2, "z": 1}
    assert votes.bound(1).count().half_wins.sum() == 4 * STEPS
    assert "conversation" in votes.recognised


def test_json_lines_of_rankings_and_scores(tmp_path):
    rows = [{"voter": n, "rank_1": a, "rank_2": b, "rank_3": c} for n, (a, b, c) in enumerate(ORDERS)]
    path = write(tmp_path, "poll.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert list(Rankings.read(path)) == ORDERS
    scores = write(tmp_path, "scores.jsonl", '{"item": "a", "score": 1}\n{"item": "b", "score": 2.5}\n')
    assert read_scores(scores).scores.tolist() == [1, 2.5]


def test_json_lines_of_votes_are_counted_by_duckdb_too(tmp_path, monkeypatch):
    rows = [{key: row[key] for key in ("model_a", "model_b", "winner")} for row in ARENA]
    path = write(tmp_path, "votes.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert Comparisons.read(path, items=["x", "y", "z"]).count().half_wins.tolist() == [3, 2, 1]
    monkeypatch.setattr(queries, "FEW_ROWS", 1)
    assert Comparisons.read(path, items=["x", "y", "z"]).count().half_wins.tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"left": "a", "right": "b", "winner": "left"}\n{"left": 1', "line 2: this is not a JSON object on one line"),
        ('{"left": "a", "right": "b", "winner": "left"}\n5', "line 2: each line must be a JSON object"),
        ('[{"left": "a", "right": "b", "winner": "left"}, 5]', "object 2: an array must hold JSON objects"),
        ('[{"left": "a", "right": "b", "winner": "left"} {}]', "object 2: a comma or the end of the array must come"),
        ('[{"left": "a", "right": "b", "winner": "left"}', "object 2: a comma or the end of the array must come"),
        ('[{"left": "a", "right": "b", "winner": "left"}, {"left": ]', "object 2: this is not a JSON object"),
        ('[{"left": "a", "right": "b", "left": "c"}]', "object 1: the key 'left' is there twice"),
        ('{"left": "a", "right": "b", "right": "c"}', "line 1: the key 'right' is there twice"),
        ('[{"left": "a", "right": "b", "winner": "left"}] []', "there is more behind the end of the array"),
        (b'[{"left": "\xe9"}]', "near object 1: the text is not valid UTF-8"),
        ("[]", "there is no object with a key"),
        ('{"left": ["a"], "right": "b", "winner": "left"}\n', "line 1: 'left' must hold a text or a number, got"),
        ('{"a": 1}\n', "comparisons need the columns"),
        ("\n\n", "there is no object with a key"),
    ],
)
def test_bad_json_lines(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        Comparisons.read(write(tmp_path, "votes.jsonl", text), items_from_data=True).count()


def test_the_first_object_has_the_columns(tmp_path):
    vote = {"left": "a", "right": "b", "winner": "left", "weight": 2}
    text = "".join(json.dumps(row) + "\n" for row in (vote, vote | {"weight": 3}))
    assert Comparisons.read(write(tmp_path, "votes.jsonl", text), items=["a", "b"]).count().half_wins.sum() == 10
    missing = text + json.dumps({"left": "a", "right": "b", "winner": "left"})
    with pytest.raises(InputError, match="line 3: the key 'weight' is missing; write null for a blank"):
        Comparisons.read(write(tmp_path, "missing.jsonl", missing), items=["a", "b"]).count()
    unknown = text + json.dumps(vote | {"voter": "ann"})
    with pytest.raises(
        InputError, match="line 3: the key 'voter' is not in the first object, whose keys are the columns"
    ):
        Comparisons.read(write(tmp_path, "unknown.jsonl", unknown), items=["a", "b"]).count()
    with pytest.raises(InputError, match=r"line 2: '\\ud800' is not valid Unicode text"):
        Comparisons.read(
            write(tmp_path, "half.jsonl", text.replace('"b"', '"\\ud800"').replace("ud800", "u0062", 1)),
            items=["a", "b"],
        ).count()


@pytest.mark.parametrize("more", [{"rank_1": "b", "rank_2": "a"}, {"voter": "ann"}, {"weight": 1}])
def test_the_keys_of_the_first_object_do_not_change_how_others_are_read(tmp_path, more):
    """One ballot with more keys than the others, which come before theirs: 99 others would be blank."""
    rows = [{"choice_1": "a", "choice_2": "b"}] * 100
    text = "\n".join(map(json.dumps, [rows[0] | more, *rows[1:]]))
    assert Ballots.read(write(tmp_path, "ballots.jsonl", "\n".join(map(json.dumps, rows)))).first_preferences()[0]
    with pytest.raises(InputError, match=r"line 2: the key '\w+' is missing; write null for a blank"):
        Ballots.read(write(tmp_path, "more.jsonl", text), items=["a", "b"])


def test_the_order_of_items_is_not_that_of_the_first_object(tmp_path):
    text = "\n".join(map(json.dumps, [{"tea": 1, "coffee": 2}, {"coffee": 1, "tea": 2}]))
    assert Rankings.read(write(tmp_path, "ranks.jsonl", text), layout="ranks").items == ("coffee", "tea")


def test_numbers_in_json_are_the_text_that_is_written(tmp_path):
    ids = ["1152921504606846976", "1152921504606846977", "1e3", "1000", "1000.0", "0.10", "0.1", "true", '"7"']
    text = "".join(f'{{"voter": {one}, "winner": "a", "loser": "b"}}\n' for one in ids)
    votes = Comparisons.read(write(tmp_path, "votes.jsonl", text), items=["a", "b"]).bound(1)
    assert votes.load_counts().tolist() == [len(ids), *[0] * 10]


@pytest.mark.slow
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ending", ["json", "json.gz", "dump"])
def test_a_json_array_is_read_as_json_lines_are(tmp_path, monkeypatch, indent, ending):
    """With nested extras and names in other scripts, in pieces that end anywhere; and refusals name the object."""
    rows = [
        {"model_a": "茶", "model_b": "b", "winner": "model_a", "turns": [{"role": "user", "said": ["]", "}"]}]},
        {"model_a": "b", "model_b": "ü", "winner": "tie", "turns": None},
        {"model_b": "茶", "model_a": "ü", "winner": "model_b"},
    ] * 50
    lines = write(tmp_path, "votes.jsonl", "\n".join(map(json.dumps, rows)))
    array = write(tmp_path, f"votes.{ending}", "\ufeff \n" * (ending != "dump") + json.dumps(rows, indent=indent))
    counts = []
    for piece in (1 << 18, 7):
        monkeypatch.setattr("rankdp.data.formats.jsonlines._PIECE", piece)
        votes = [Comparisons.read(path, items_from_data=True) for path in (lines, array)]
        assert votes[0].items == votes[1].items == ("b", "ü", "茶")
        counts += [one.count().half_wins.tolist() for one in votes]
    assert counts == [[50, 50, 200]] * 4
    ballots = [{"rank_1": "a", "rank_2": "b"}, {"rank_1": "b", "rank_2": None}]
    ranked = write(tmp_path, "ballots.json", json.dumps(ballots))
    assert Ballots.read(ranked).first_preferences().tolist() == [720720, 720720]
    assert Rankings.read(ranked).orders.tolist() == [[0, 1], [1, -1]]
    bad = write(tmp_path, "bad.json", json.dumps([*rows, {"model_a": "x", "model_b": "b", "winner": "tie"}]))
    with pytest.raises(InputError, match="object 151: 'x' is not one of the 3 items given"):
        Comparisons.read(bad, items=["b", "ü", "茶"]).count()


@pytest.mark.slow
@pytest.mark.parametrize("few", [1 << 16, -1])
def test_one_column_marks_the_winner(few, monkeypatch):
    monkeypatch.setattr(queries, "FEW_ROWS", few)
    frame = pa.table(
        {
            "model_a": ["x", "y", "z", "x"],
            "model_b": ["y", "z", "x", "z"],
            "winner_model_a": [1, 0, 0, 0],
            "winner_model_b": [0, 1, 0, 0],
            "winner_tie": [0, 0, 1, None],
        }
    )
    votes = Comparisons.of(frame.slice(0, 3), items=["x", "y", "z"])
    assert votes.count().half_wins.tolist() == [3, 0, 3]
    with pytest.raises(InputError, match="winner_model_a and winner_model_b and winner_tie is blank"):
        Comparisons.of(frame, items=["x", "y", "z"]).count()
    both = frame.set_column(3, "winner_model_b", pa.array([1, 1, 0, 0]))
    with pytest.raises(InputError, match="one of winner_model_a, winner_model_b, winner_tie must be 1"):
        Comparisons.of(both, items=["x", "y", "z"]).count()


@pytest.mark.parametrize("header", ["player1,player2,score", "Player 1,Player 2,result", "white,black,result"])
def test_players_and_scores(tmp_path, header):
    path = write(tmp_path, "games.csv", f"{header}\nann,bob,1\nbob,ann,0.5\ncid,ann,0-1\nbob,cid,1/2-1/2\n")
    votes = Comparisons.read(path, items=["ann", "bob", "cid"])
    assert votes.count().half_wins.tolist() == [5, 2, 1]


def test_columns_mapped_by_hand(tmp_path):
    path = write(tmp_path, "odd.csv", "Who,A,B,Who won,n\nann,x,y,left,2\n")
    columns = {"voter": "Who", "left": "A", "right": "B", "winner": "Who won", "weight": "n"}
    votes = Comparisons.read(path, items=["x", "y"], columns=columns)
    assert votes.count().half_wins.tolist() == [4, 0]
    assert votes.columns.voter == "Who"
    poll = write(tmp_path, "poll.csv", "Who,Best,Next,Q9\nann,x,y,7\n")
    assert list(Rankings.read(poll, columns={"voter": "Who", "rank_1": "Best", "rank_2": "Next"})) == [("x", "y")]
    ranked = write(tmp_path, "ranked.csv", "Q9_1,Q9_2\n2,1\n")
    assert list(Rankings.read(ranked, columns={"rank of x": "Q9_1", "rank of y": "Q9_2"})) == [("y", "x")]
    with pytest.raises(InputError, match="columns calls 'Bast' rank_1, but the columns are Who, Best, Next, Q9"):
        Rankings.read(poll, columns={"rank_1": "Bast"})


def test_the_wrong_kind_of_table_points_to_the_right_verb(tmp_path):
    poll = write(tmp_path, "poll.csv", "voter,rank_1,rank_2\nann,x,y\n")
    with pytest.raises(InputError, match=r"these are rankings, not votes between two items: elect .* privatize"):
        Comparisons.read(poll, items=["x", "y"])
    votes = write(tmp_path, "votes.csv", "left,right,winner\nx,y,left\n")
    with pytest.raises(InputError, match="these are votes between two items, not rankings: rank makes a leaderboard"):
        Rankings.read(votes)


BLT = """4 1  # an election
-2
3 1 3 4 0
2 4 1=2 0
1 2 0
5 - 3 0
0
"Ann" "Bob"
"Cid the
Third" "Dan"
"Title"
""".replace("Cid the\nThird", "Cid")


def test_blt(tmp_path):
    path = write(tmp_path, "election.blt", BLT)
    ballots = Ballots.read(path)
    assert ballots.items == ("Ann", "Cid", "Dan")
    assert ballots.count == 11
    assert dict(zip(ballots.items, (ballots.first_preferences() // 720_720).tolist(), strict=True)) == {
        "Ann": 3,
        "Cid": 5,
        "Dan": 2,
    }
    assert any("'Bob' has withdrawn" in note for note in ballots.notes)
    assert any("1 ballot with nobody on it" in note for note in ballots.notes)
    with open_rankings(path) as reader:
        assert reader.rows == 10


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty"),
        ("2", "the file ends where the number of seats"),
        ("2 1\n1 1 2", "the file ends where the 0 that ends a ballot"),
        ("2 1\n1 3 0\n0\n", "line 2: a candidate must be a number from 1 to 2, got '3'"),
        ('2 1\n1 1 1 0\n0\n"a" "b"\n', "line 2: a candidate is listed twice"),
        ('2 1\n1 1 0\n0\n"a"\n', "the file ends where the name of candidate 2"),
        ('2 1\n1 1 0\n0\n"a"\n" "\n', "line 5: the name of candidate 2 is blank"),
        ("2 1\nx 1 0\n0\n", "line 2: a ballot must begin with how often it was cast, and 0 ends the ballots; got 'x'"),
        ("99999999999 1\n", "line 1: the number of candidates must be a whole number from 1 to 10,000"),
        ('2 1\n0\n"a" "b"\n', "no ballot ranks a candidate"),
        ("2 1\n1 1 0\n0\n1 2=1 0\na\nb\n", "line 4: there is a ballot after the 0 that ends the ballots"),
        ('2 1\n1 1 0\n0\n1 2 0\n0\n"a"\n"b"\n', "line 4: there is a ballot after the 0 that ends the ballots"),
        ('2 1\n1 1 0\n1 2 0 0\n0\n"a"\n"b"\n', "line 4: there is a ballot after the 0 that ends the ballots"),
        ('2 1\n1 1\n1 2 0\n0\n"a"\n"b"\n', "line 2: a ballot must end with 0 on its own line"),
        ('2 1\n1 1 0\n1\n0\n"a"\n"b"\n', "line 3: a ballot must end with 0 on its own line"),
        ('2 1\n1 1 0\n0\n"a" "b\n"a" "b"\n', "line 4: where names share a line, all must be in quotes, got"),
        ('2 1\n1 1 0\n0\n"a" "p"\n"b"\n"Title"\n', "line 4: two texts in quotes are a name and a party only if"),
    ],
)
def test_bad_blt(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        Rankings.read(write(tmp_path, "x.blt", text))


def test_blt_as_councils_publish_it(tmp_path):
    text = (
        '4,1,\n2,1,2,0\n3 4 3 0\n0\nAnn ROSS (SNP),\n"Bob ""Bo"" LEE (Lab)"\nAl ROY (Ind)\nAl ROY (Ind)\n"""Ward 5"""\n'
    )
    ballots = Ballots.read(write(tmp_path, "ward.blt", text))
    assert ballots.items == ("Ann ROSS (SNP)", 'Bob "Bo" LEE (Lab)', "Al ROY (Ind) (3)", "Al ROY (Ind) (4)")
    assert any("several candidates are called 'Al ROY (Ind)'" in note for note in ballots.notes)
    assert ballots.count == 5


@pytest.mark.parametrize(
    "written",
    ['"{}" "{}"', '"{}"  "{}",', '"""{}"" ""{}"""', '"""{}"" ""{}"" "', '"{}"" ""{}"', '"{}", "{}"'],
)
def test_blt_with_parties(tmp_path, written):
    lines = [written.format("Ann O'Hara", "Green Party"), written.format("Bob LEE", "Independent")]
    path = write(tmp_path, "ward.blt", "\n".join(["2 1", "3 1 2 0", "1 2 0", "0", *lines, '"Ward 5"', ""]))
    ballots = Ballots.read(path)
    assert ballots.items == ("Ann O'Hara (Green Party)", "Bob LEE (Independent)")
    assert ballots.title == "Ward 5"


def test_blt_in_another_encoding_and_with_a_candidate_ranked_again(tmp_path):
    path = tmp_path / "ward.blt"
    path.write_bytes('2 1\n3 1 1 2 0\n0\n"Renée"\n"Bob"\n"Ward"\n'.encode("cp1252"))
    with pytest.raises(InputError, match="line 4: the text is not valid UTF-8; in Windows-1252 it would say"):
        Ballots.read(path)
    ballots = Ballots.read(path, encoding="windows-1252")
    assert (ballots.items, ballots.orders.tolist()) == (("Renée", "Bob"), [[0, 1]])
    assert any("3 ballots with a candidate ranked again" in note for note in ballots.notes)


@pytest.mark.parametrize("names", ['"Ann" "Bob"\n"Ward 5"', '"Ann"\n"Bob"\n"Ward 5"', '"Ann" "Bob" "Ward 5"'])
def test_blt_with_names_that_share_a_line(tmp_path, names):
    ballots = Ballots.read(write(tmp_path, "ward.blt", f"2 1\n3 1 2 0\n0\n{names}\n"))
    assert (ballots.items, ballots.title) == (("Ann", "Bob"), "Ward 5")


@pytest.mark.slow
def test_every_scottish_contest_is_read(data_directory):
    found = sorted((data_directory / "scottish_stv").glob("*.blt"))
    if not found:
        pytest.skip("no Scottish contests in RANKDP_DATA")
    for path in found:
        ballots = Ballots.read(path)
        candidates = int(path.read_text().split()[0])
        assert len(ballots.items) == candidates, path
        assert ballots.count > 500, path
        assert not any("several candidates are called" in note for note in ballots.notes), path


CVR = """Cast Vote Record,Precinct,DEM Mayor Choice 1 of 3 Citywide (01),DEM Mayor Choice 2 of 3 Citywide (01),DEM Mayor Choice 3 of 3 Citywide (01)
1,P1,Ann,undervote,Bob
2,P1,undervote,Cid,Cid
3,P2,Ann,overvote,Bob
4,P2,undervote,undervote,undervote
5,P2,,Bob,Ann
"""  # noqa: E501


def test_cast_vote_records(tmp_path):
    ballots = Ballots.read(write(tmp_path, "cvr.csv", CVR))
    cast = {
        tuple(ballots.items[item] for item in order if item >= 0): int(many)
        for order, many in zip(ballots.orders, ballots.weights, strict=True)
    }
    assert cast == {("Ann", "Bob"): 1, ("Cid",): 1, ("Ann",): 1, ("Bob", "Ann"): 1, (): 1}
    assert "for your eyes only" in ballots.notes[-1]
    text = "Precinct,1st Choice Mayor M,2nd Choice Mayor M,Count\nP1,Ann,Bob,3\nP2,Bob,undervote,2\n"
    assert Ballots.read(write(tmp_path, "minneapolis.csv", text)).count == 5


def test_columns_that_a_machine_numbers_are_one_contest(tmp_path):
    text = (
        "Cast Vote Record,Precinct,For Mayor Choice 1 (45),For Mayor Choice 2 (50)\n1,P1,Ann,Bob\n2,P1,Bob,undervote\n"
    )
    assert Ballots.read(write(tmp_path, "numbered.csv", text)).count == 2


def test_several_contests_are_refused(tmp_path):
    text = "Mayor Choice 1 of 2,Mayor Choice 2 of 2,Judge Choice 1 of 2,Judge Choice 2 of 2\na,b,c,d\n"
    with pytest.raises(InputError, match=r"several contests \(Mayor Choice 1 of 2; Judge Choice 1 of 2\)"):
        Ballots.read(write(tmp_path, "cvr.csv", text))


def test_the_whole_of_preflib(tmp_path):
    head = "# NUMBER ALTERNATIVES: 2\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: {}\n"
    names = "# ALTERNATIVE NAME 1: a\x0bb\x85\n# ALTERNATIVE NAME 2: c\n"
    for unique in (1, 2):
        path = write(tmp_path, f"x{unique}.soi", head.format(unique) + names + "3: 1,2\n0: 2\n")
        with open_rankings(path) as reader:
            assert reader.rows == 3
            assert len(reader.notes) == 2
            assert "leaves 'a b'" in reader.notes[0]
            assert "(counted 0 times) are skipped, 1 of them" in reader.notes[1]
        assert len(Ballots.read(path).notes) == 2
    assert len(Rankings.read(write(tmp_path, "y.soi.gz", path.read_bytes()))) == 3


def test_the_patterns_recognise_their_own_examples():
    for example in WIDE:
        names = [name.split(" (")[0].split(" or ")[0].strip() for name in example.replace("…", "").split(",")][:2]
        names = [name.partition(" (")[0] for name in names if name]
        if len(names) == 2 and "Citywide" not in example:
            assert recognise(names, "x").layout == "wide", names
    for example in RANKED:
        assert recognise(example.replace("…", "").split(", ")[:2], "x").layout == "ranked"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "json"])
def test_utf_16_is_recognised_by_its_first_bytes(tmp_path, encoding, ending):
    mark = "" if encoding in ("utf-16", "utf-8-sig") else "\ufeff"
    rows = [("ann", "茶", "🦊"), ("bob", "🦊", "茶"), ("cid", "é", "茶")] * 3000
    header = ("voter", "winner", "loser")
    text = "\r\n".join(",".join(row) for row in [header, *rows])
    if "json" in ending:
        objects = [json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) for row in rows]
        text = "\n".join(objects) if ending == "jsonl" else "[" + ",".join(objects) + "]"
    path, data = tmp_path / f"votes.{ending}", (mark + text).encode(encoding)
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    votes = Comparisons.read(path, items=["茶", "🦊", "é"])
    assert votes.count().half_wins.tolist() == [6000, 6000, 6000]
    with pytest.raises(InputError, match=r"(line|object) [34]: 'é' is not one of the 2 items given"):
        Comparisons.read(path, items=["茶", "🦊"]).count()


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("chosen,rejected", ["a,b", "b,c", "a,c"]),
        ("left,right,label", ["a,b,a", "c,b,b", "a,c,left"]),
        ("item_x,item_y,label", ["a,b,a", "c,b,b", "a,c,a"]),
        ("player_1,player_2,score", ["a,b,1", "c,b,0", "a,c,1"]),
    ],
)
def test_columns_of_other_tools_are_recognised_and_said(tmp_path, header, rows):
    votes = Comparisons.read(write(tmp_path, "votes.csv", "\n".join([header, *rows])), items=["a", "b", "c"])
    assert votes.count().half_wins.tolist() == [4, 2, 0]
    assert header.rpartition(",")[2] in votes.recognised


def test_lists_and_matrices_of_other_libraries():
    items = ["a", "b", "c"]
    won = Comparisons.from_pairs(["a", "b", "a"], ["b", "c", "c"], items=items)
    assert won.count().half_wins.tolist() == [4, 2, 0]
    said = Comparisons.from_pairs(
        np.array(["a", "c"]), np.array(["b", "b"]), ["tie", "b"], items=items, voter=[7, 8], weight=[2, 1]
    )
    assert said.count().half_wins.tolist() == [2, 4, 0]
    assert said.load_counts().tolist()[:2] == [1, 1]
    numbers = Comparisons.from_pairs([0, 1], [1, 2], items=range(3))
    assert numbers.count().half_wins.tolist() == [2, 2, 0]
    with pytest.raises(InputError, match="must have equal lengths, got left 1, right 2, winner 1"):
        Comparisons.from_pairs(["a"], ["b", "c"], ["left"], items=items)
    wins = np.array([[0, 3, 0.5], [1, 0, 0], [0.5, 2, 0]])
    assert np.array_equal(Comparisons.from_wins(wins, items).count().dense(), wins)
    assert Comparisons.from_wins([[0, 2], [1, 0]]).items == ("0", "1")
    with pytest.raises(InputError, match="or halves on both sides of a pair for a tie"):
        Comparisons.from_wins([[0, 0.5], [1, 0]])
