"""What the studio says about a file: its kind, its columns, and everything that is odd about it."""

from __future__ import annotations

import json

import pytest
from studio_support import ITEMS, make_files, write

from rankdp_web.studio_file import choices, look

RANKS = ["rank_1", "rank_2", "rank_3"]


@pytest.fixture
def table(tmp_path):
    return lambda head, rows, name="table.csv": str(write(tmp_path / name, head, rows))


def odd(found, words):
    assert any(words in one for one in found.odd), found.odd


def test_kinds(tmp_path):
    make_files(tmp_path)
    kinds = {name: look(str(tmp_path / f"{name}.csv")).kinds for name in ("ballots", "rankings", "votes", "scores")}
    ranked = ("ballots", "rankings")
    assert kinds == {"ballots": ranked, "rankings": ranked, "votes": ("comparisons",), "scores": ("scores",)}
    found = look(str(tmp_path / "votes.csv"))
    assert found.rows == {"comparisons": 300}
    assert set(found.items) == set(ITEMS)
    assert "'voter' is the voter" in found.recognised[0]


def test_other_formats(tmp_path, table):
    names = "# ALTERNATIVE NAME 1: Tea\n# ALTERNATIVE NAME 2: Milk\n"
    (tmp_path / "a.soi").write_text(f"# DATA TYPE: soi\n{names}3: 1,2\n2: 2\n")
    found = look(str(tmp_path / "a.soi"))
    assert found.kinds == ("ballots", "rankings")
    assert found.rows == {"ballots": 5, "rankings": 5}
    assert look(table(["count", *RANKS], [[3, "a", "b", "c"]])).kinds == ("ballots",)
    lines = [json.dumps({"winner": "a", "loser": "b"}), json.dumps({"winner": "b", "loser": "a"})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert look(str(tmp_path / "a.jsonl")).kinds == ("comparisons",)


def test_a_voter_with_a_thousand_votes_and_damaged_rows(table):
    votes = [["bot", "Tea", "Milk", "left"]] * 1000 + [[f"v{row}", "Milk", "Water", "left"] for row in range(30)]
    votes += [["v1", "Coffee", "Tea", "tie"], ["v1", "Tea", "Tea", "left"], ["v2", "Tea", "", "left"]]
    found = look(table(["voter", "left", "right", "winner"], votes))
    odd(found, "1 voter of 31 gave 128 comparisons or more")
    odd(found, "2 of 1,033 rows are damaged: 1 with missing item, 1 with self-comparison")
    odd(found, "Never won: Water")
    assert found.asks == {"voters", "drop"}


def test_rankings_that_are_partial_tied_and_repeated(table):
    rows = [["a@b.org", "x", "y", "z"], ["a@b.org", "y", "x", "z"], ["c@b.org", "x", "", ""]]
    found = look(table(["voter", *RANKS], rows))
    assert found.kinds == ("rankings",)
    odd(found, "As ballots it would be refused")
    odd(found, "Voters with several rows: 1; 'a@b.org' has 2")
    odd(found, "e-mail addresses")
    assert found.asks == {"voters", "partial", "repeated"}
    long = [[voter, item, rank] for voter in "ab" for item, rank in (("x", 1), ("y", 1), ("z", 2))]
    found = look(table(["voter", "item", "rank"], long))
    odd(found, "2 ballots have ties")
    assert "ties" in found.asks


def test_scores_and_refusals(table, tmp_path):
    rows = [[f"n{row}", 1 + row % 3] for row in range(40)] + [["far", 900]]
    found = look(table(["name", "score", "town"], [[*row, "x"] for row in rows]))
    odd(found, "Far from all others: far")
    odd(found, "tied with another")
    assert "not read: town" in found.recognised[0]
    assert "there is no such file" in look(str(tmp_path / "none.csv")).refusal
    assert "line 3" in look(table(["name", "score"], [["a", 1], ["a", 2]])).refusal
    assert "differ in capitals or spaces only" in look(table(["winner", "loser"], [["Tea", "tea"]])).refusal
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    assert look(str(tmp_path / "broken.parquet")).refusal
    (tmp_path / "empty.csv").write_bytes(b"")
    assert look(str(tmp_path / "empty.csv")).refusal


def test_choices(tmp_path):
    for name in ("a.csv", "b.CSV.gz", "c.txt", ".hidden.csv", "d.toc"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert choices(str(tmp_path)) == (["folder"], ["a.csv", "b.CSV.gz", "d.toc"])
