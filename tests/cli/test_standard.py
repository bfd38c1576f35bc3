"""Standard input and output, ids left out, rows shuffled, columns mapped by hand."""

import gzip
import io
import json
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from rankdp.cli import cli
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError

POLL = b"email,1st,2nd,3rd\nann@x.org,tea,milk,water\nbob@x.org,milk,tea,water\ncid@y.com,water,milk,tea\n"
PRIVATIZE = ["-e", "2", "--mechanism", "kendall", "--voter-column", "email"]
BLT = b'3 1\n3 1 3 0\n2 2 1 0\n0\n"Ann" "Bob" "Cid"\n"Title"\n'
SOC = (
    b"# DATA TYPE: soc\n# NUMBER ALTERNATIVES: 2\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 1\n"
    b"# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n3: 1,2\n"
)


def run(*words, given=b""):
    result = CliRunner().invoke(cli, words, input=given)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def parquet(content):
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pc.read_csv(io.BytesIO(content)), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    "packed",
    [bytes, gzip.compress, lambda raw: pa.compress(raw, "zstd", asbytes=True), parquet],
    ids=["csv", "gz", "zst", "parquet"],
)
def test_from_standard_input_to_standard_output(packed):
    result = run("privatize", "-", "-", *PRIVATIZE, given=packed(POLL))
    head, *lines = result.stdout.splitlines()
    assert head == "email,rank_1,rank_2,rank_3"
    assert [line.split(",")[0] for line in lines] == ["ann@x.org", "bob@x.org", "cid@y.com"]
    assert "look like e-mail addresses and are published as they are; --drop-voters leaves them out" in result.stderr


@pytest.mark.parametrize("given", [BLT, SOC, b'{"rank_1": "a", "rank_2": "b"}\n'], ids=["blt", "soc", "jsonl"])
def test_formats_are_told_from_their_first_bytes(given):
    assert "rank_1,rank_2" in run("privatize", "-", "-", "-e", "2", "--listed-items-public", given=given).stdout


def test_a_cell_does_not_make_standard_input_another_format():
    remark = b'rank_1,rank_2,remark\na,b,fine\nb,a,"two lines\n# DATA TYPE: soc"\n'
    assert "rank_1,rank_2" in run("privatize", "-", "-", "-e", "2", given=remark).stdout


def test_nothing_is_written_to_standard_output_after_a_refusal():
    result = CliRunner().invoke(cli, ["privatize", "-", "-", *PRIVATIZE], input=POLL + b"dan@y.com,tea,tea,milk\n")
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("standard input, line 5: 'tea' is listed twice")
    assert result.stdout == ""


def test_scores_and_votes_from_standard_input():
    noisy = run("scores", "-", "-", "-e", "1", "--bounds", "0", "10", given=b"item,score\na,1\nb,2\n")
    assert noisy.stdout.splitlines()[0] == "item,score"
    words = ["-e", "1", "--protect", "outcome", "--items-from-data", "--json"]
    board = run("rank", "-", *words, given=b'{"left": "a", "right": "b", "winner": "left", "more": {"x": [1]}}\n')
    assert {row["item"] for row in json.loads(board.stdout)["leaderboard"]} == {"a", "b"}
    assert board.stderr.startswith("standard input: 'winner' says left, right or tie")


def test_ids_are_left_out_and_rows_shuffled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"v{number},a{number % 7},b\n" for number in range(200))
    Path("poll.csv").write_text("voter,rank_1,rank_2\n" + lines)
    asked = ("-e", "90", "--listed-items-public", "--mechanism", "kendall")
    run("privatize", "poll.csv", "same.csv", *asked)
    run("privatize", "poll.csv", "out.csv", *asked, "--drop-voters", "--shuffle")
    same, out = Rankings.read("same.csv"), Rankings.read("out.csv")
    assert out.voters is None
    assert Counter(out) == Counter(same)
    assert list(out) != list(same)
    facts = json.loads(Path("out.csv.release.json").read_text())["parameters"]
    assert (facts["shuffled"], facts["columns_left_out"]) == (True, ["voter"])


@pytest.mark.slow
def test_every_order_of_rows_is_as_likely(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("poll.csv").write_text("rank_1,rank_2\na,b\na,b\nb,a\n")
    firsts = Counter()
    for seed in range(60):
        asked = ("-e", "90", "--mechanism", "kendall", "--shuffle", "--force", "--rehearse", str(seed))
        run("privatize", "poll.csv", "out.csv", *asked)
        firsts[list(Rankings.read("out.csv")).index(("b", "a"))] += 1
    assert all(8 <= firsts[place] <= 35 for place in range(3)), firsts


def test_columns_by_hand():
    votes = b"home,away,who\nx,y,left\n"
    words = ["-e", "1", "--protect", "outcome", "--items-from-data", "--json"]
    run("rank", "-", *words, "--columns", "left=home,right=away", "--columns", "winner=who", given=votes)
    for wrong in ("left", "=home", "left="):
        assert CliRunner().invoke(cli, ["rank", "-", *words, "--columns", wrong], input=votes).exit_code == 2


def test_two_spellings_of_an_item_are_named_with_their_rows():
    given = b"rank_1,rank_2\nTea,milk\nmilk,Tea\ntea,milk\n"
    result = CliRunner().invoke(cli, ["privatize", "-", "-", "-e", "1"], input=given)
    assert "'Tea' in line 2, line 3, 'tea' in line 4; spell them alike, or list both by --items" in str(
        result.exception
    )
    assert "listed-items-public" not in str(result.exception)
    votes = CliRunner().invoke(
        cli,
        ["rank", "-", "-e", "1", "--protect", "outcome", "--items-from-data"],
        input=b"left,right,winner\nTea,milk,left\ntea,milk,left\n",
    )
    assert "'Tea' and 'tea' differ in capitals or spaces only" in str(votes.exception)


def test_json_and_a_table_do_not_share_standard_output():
    result = CliRunner().invoke(cli, ["privatize", "-", "-", *PRIVATIZE, "--json"], input=POLL)
    assert (result.exit_code, sys.stdin is not None) == (2, True)
