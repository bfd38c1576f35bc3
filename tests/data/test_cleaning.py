"""Cleaning: words for nobody are never candidates, and the rule for each of them is applied ballot by ballot."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from rankdp.cli import cli
from rankdp.data.ballots import Ballots
from rankdp.data.cleaning import WRITE_INS, Cleaning
from rankdp.errors import InputError

WORDS = [
    "skipped",
    "SKIPPED",
    "Skip",
    "undervote",
    "Undervote",
    "under-vote",
    "Under_Vote",
    "undervoted",
    "blank",
    "Blank",
    "exhausted",
    "Exhausted",
    "no-vote",
    "no vote",
    "abstain",
    "overvote",
    "OVERVOTE",
    "over-vote",
    "over vote",
    "Overvoted",
    "Skipped Ranking",
    "skipped rank",
    "--",
    "—",
    "",
]
PILES = ["UWI", "uwi", "write-in", "Write-In", "writein", "write in", "Uncertified Write In", "Write-in 2", "Write-ins"]


def said(ballots: Ballots) -> list[tuple[str, ...]]:
    """The ballots by name, each as often as it was cast."""
    return sorted(
        tuple(ballots.items[item] for item in order if item >= 0)
        for order, count in zip(ballots.orders.tolist(), ballots.weights.tolist(), strict=True)
        for _ in range(count)
    )


def wide(rows, **options) -> Ballots:
    frame = pd.DataFrame(rows, columns=[f"rank_{place}" for place in range(1, len(rows[0]) + 1)])
    return Ballots.of(frame, **options)


SPELLINGS = {
    "skipped": "n/a, #N/A, n.a., Left Blank, (blank), not marked, Unused ranking, didn't vote, no answer, "
    "No further choice, Not Selected, void, Spoiled ballot, invalid vote, rejected, missing, ballot exhausted",
    "overvote": "over, over-ranked, Overvote: 2, Multiple marks, too many votes, double vote, Ann|Bob",
    "write-in": "Scattering, Unadjudicated Write-In, rejected write-in, Blank write-in, write-in image, Write-in: Al",
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_spellings(kind):
    for word in SPELLINGS[kind].split(", "):
        assert Cleaning().kind(word) == kind, word


@pytest.mark.parametrize("name", ["Ann Over", "Noel Voter", "Una Markham", "Will Blank", "Nona Ranked", "Sam Void"])
def test_names_of_people_are_no_words(name):
    assert Cleaning().kind(name) is None


@pytest.mark.parametrize(
    "header",
    [
        *("Choice_1,Choice_2", "1st Choice,2nd Choice", "Rank 1,Rank 2", "rank1,rank2", "First choice,Second choice"),
        *("Choice 1 of 2,Choice 2 of 2", "Choice One,Choice Two", "Rank #1,Rank #2", "Vote 1,Vote 2"),
        *("Mayor Rank1,Mayor Rank2", "Contest1_Rank1,Contest1_Rank2", "position_1,position_2", "1st Ranked,2nd Ranked"),
    ],
)
@pytest.mark.parametrize("before", ["", "Ballot ID,", "RecordId,Precinct ID,", "Cast Vote Record,Precinct,"])
def test_headers_of_cast_vote_records(header, before, tmp_path):
    numbers = "1," * before.count(",")  # of ballots in a precinct or batch: no voters
    rows = (f"{numbers}{row}\n" for row in ("Ann,Bob", "Ann,undervote", "overvote,Bob"))
    (tmp_path / "cvr.csv").write_text(f"{before}{header}\n{''.join(rows)}")
    ballots = Ballots.read(tmp_path / "cvr.csv")
    assert said(ballots) == [(), ("Ann",), ("Ann", "Bob")]
    assert any("not used: " in note for note in ballots.notes) == (before != "")


def test_columns_of_the_listed_candidates_hold_their_ranks(tmp_path):
    (tmp_path / "cvr.csv").write_text("Response ID,precinct_id,Ann,Bob,Write-In\nx,p1,2,1,\ny,p1,1,,2\n")
    ballots = Ballots.read(tmp_path / "cvr.csv", items=["Ann", "Bob", "Write-In"])
    assert said(ballots) == [("Ann", "Write-In"), ("Bob", "Ann")]
    assert not any("looks like a word" in note for note in ballots.notes)
    with pytest.raises(InputError, match="'precinct_id', of a column, is not one of the 3 items given"):
        Ballots.read(tmp_path / "cvr.csv", items=["Ann", "Bobby", "Write-In"], layout="ranks")


@pytest.mark.parametrize("name", ["count", "Freq", "frequency", "Number of ballots"])
def test_how_many_ballots_a_row_stands_for(name):
    assert Ballots.of(pd.DataFrame({name: [3, 2], "rank_1": ["Ann", "Bob"]})).count == 5


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("listed", [None, ["Ann", "Bob"]])
def test_no_spelling_of_a_blank_is_a_candidate_in_any_layout(word, listed, tmp_path):
    long = pd.DataFrame({"voter": [1, 1, 2, 2], "item": ["Ann", word, "Bob", "Ann"], "rank": [1, 2, 1, 2]})
    long = long[long["item"] != ""]
    found = [wide([["Ann", word], ["Bob", "Ann"]], items=listed), Ballots.of(long, items=listed)]
    if word:
        path = tmp_path / "x.soi"
        names = "".join(f"# ALTERNATIVE NAME {at}: {name}\n" for at, name in enumerate(("Ann", word, "Bob"), 1))
        path.write_text(f"{names}1: 1,2\n1: 3,1\n")
        blt = tmp_path / "x.blt"
        blt.write_text(f'3 1\n1 1 2 0\n1 3 1 0\n0\n"Ann"\n"{word}"\n"Bob"\n"Title"\n')
        found += [Ballots.read(path, items=listed), Ballots.read(blt, items=listed)]
        found.append(Ballots.of([["Ann", word], ["Bob", "Ann"]]))
    for ballots in found:
        assert ballots.items == ("Ann", "Bob")
        assert said(ballots) == [("Ann",), ("Bob", "Ann")]


WARD = """3,2,,
27,1,,
25,1,2,
4,3,1,2
2,,,
"Candidate 1","Ann Ross","Labour",
"Candidate 2","Bob Roy","Independent",
"Candidate 3","Bob Roy","Independent",
"Forfar and District",,
"""


def test_a_scottish_ward_with_commas(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text(WARD)
    ballots = Ballots.read(path)
    assert ballots.items == ("Ann Ross (Labour)", "Bob Roy (Independent) (2)", "Bob Roy (Independent) (3)")
    assert dict(zip(map(tuple, ballots.orders.tolist()), ballots.weights.tolist(), strict=True)) == {
        (0, -1, -1): 27,
        (0, 1, -1): 25,
        (2, 0, 1): 4,
        (-1, -1, -1): 2,
    }
    assert ballots.title == "Forfar and District"
    path.write_text(WARD.replace('"Forfar and District"', '""Forfar, Kirriemuir""'))
    assert Ballots.read(path).title == "Forfar, Kirriemuir"
    path.write_text(WARD)
    assert any("an election of 2 seats" in note for note in ballots.notes)
    path.write_text(WARD.replace("4,3,1,2", "4,3,1,9"))
    with pytest.raises(InputError, match="line 4: a candidate must be a number from 1 to 3"):
        Ballots.read(path)
    path.write_text(WARD.replace("4,3,1,2", ",3,1,2"))  # no count: the first choice is not one
    with pytest.raises(InputError, match="line 4: a ballot must be its count and candidates' numbers"):
        Ballots.read(path)


def test_the_four_lines_elect_ann(tmp_path):
    path = tmp_path / "four.csv"
    path.write_text("rank_1,rank_2,rank_3\nAnn,Cleo,Bob\nAnn,undervote,\nCleo,overvote,writein\n")
    ballots = Ballots.read(path)
    assert ballots.items == ("Ann", "Bob", "Cleo", WRITE_INS)
    assert said(ballots) == [("Ann",), ("Ann", "Cleo", "Bob"), ("Cleo",)]


@pytest.mark.parametrize("word", PILES)
def test_write_ins_count_together_as_spelled_or_not(word):
    rows = [["Ann", word], ["write_in", "Bob"], [word, "Ann"]]
    assert said(wide(rows)) == [("Ann", WRITE_INS), (WRITE_INS, "Ann"), (WRITE_INS, "Bob")]
    assert said(wide(rows, cleaning=Cleaning(write_ins="drop"))) == [("Ann",), ("Ann",), ("Bob",)]
    assert word in wide(rows, cleaning=Cleaning(write_ins="keep")).items
    assert said(wide(rows, items=["Ann", "Bob", "UWI"])) == [("Ann", "UWI"), ("UWI", "Ann"), ("UWI", "Bob")]
    with pytest.raises(InputError, match=r"row 1: .* is a write-in, and items has no 'Write-ins' to count it for"):
        wide(rows, items=["Ann", "Bob"])


def by_hand(row, rule: Cleaning) -> tuple[str, ...]:
    """The rule, written out rank by rank."""
    kept: list[str] = []
    before = None
    while row and row[-1] == "":
        row = row[:-1]
    for cell in row:
        if cell == "" and (rule.skipped == "exhaust" or (rule.skipped == "two" and before == "")):
            break
        before = cell
        if cell == "overvote" and rule.overvote == "exhaust":
            break
        if cell in kept and rule.repeated == "exhaust":
            break
        if cell in ("", "overvote", "Zed") or cell in kept:
            continue
        kept.append(cell)
    return tuple(kept)


@pytest.mark.parametrize("skipped", ["next", "two", "exhaust"])
@pytest.mark.parametrize("overvote", ["exhaust", "skip"])
@pytest.mark.parametrize("repeated", ["next", "exhaust"])
def test_every_rule_on_every_ballot(skipped, overvote, repeated):
    rule = Cleaning(skipped=skipped, overvote=overvote, repeated=repeated, exclude=("Zed",))
    rows = [list(row) for row in product(["Ann", "Bob", "Zed", "", "overvote"], repeat=4)]
    ballots = wide(rows, cleaning=rule)
    assert ballots.items == ("Ann", "Bob")
    assert said(ballots) == sorted(by_hand(row, rule) for row in rows)
    assert ballots.count == len(rows)  # one that ranks nobody is still a ballot


def test_ties_survive_the_removal_of_a_word_between_them(tmp_path):
    path = tmp_path / "x.toi"
    names = "".join(f"# ALTERNATIVE NAME {at}: {name}\n" for at, name in enumerate(("a", "skipped", "b", "c"), 1))
    path.write_text(f"{names}1: {{1,2,3}},4\n")
    ballots = Ballots.read(path)
    assert ballots.orders.tolist() == [[0, 1, 2]]
    assert ballots.tied.tolist() == [[False, True, False]]


def test_a_word_tied_with_a_candidate_is_read_alike_whatever_others_say():
    own = [("v", "Ann", 1), ("v", "overvote", 1), ("v", "Bob", 2)]
    before = [[("w", "overvote", 2), ("w", "Bob", 1)], [("w", "Bob", 1), ("w", "Ann", 2)]]
    kinds = {"voter": pa.string(), "item": pa.string(), "rank": pa.int64()}
    found = []
    for rows in (*before, []):
        columns = zip(*rows, *own, strict=True)
        table = pa.table({name: pa.array(cells, kinds[name]) for name, cells in zip(kinds, columns, strict=True)})
        ballots = Ballots.of(table, items=["Ann", "Bob"])
        found.append({tuple(order) for order in ballots.orders.tolist()})
    assert (0, -1) in found[0] & found[1] & found[2]


def test_own_words_and_suspicious_names():
    rows = [["Ann", "nix"], ["Blanko", "doppelt"], ["Bob", "Ann"]]
    rule = Cleaning(skipped_words=("NIX", "blanko"), overvote_words=("doppelt",))
    assert said(wide(rows, cleaning=rule)) == [(), ("Ann",), ("Bob", "Ann")]
    (note,) = [note for note in wide(rows).notes if "Blanko" in note]
    assert "'Blanko' is counted as a candidate, though it looks like a word for a blank" in note


def test_what_was_cleaned_is_told_to_the_officer_and_stays_out_of_the_release(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text(
        "rank_1,rank_2,rank_3\nAnn,,Bob\nAnn,Ann,Bob\novervote,Ann,Bob\nBob,Ann,\nskipped,skipped,skipped\n"
    )
    notes = " ".join(Ballots.read(path).notes)
    for words in (
        "1 ballot with a skipped rank",
        "1 ballot with an overvote",
        "1 ballot with a candidate ranked again",
    ):
        assert words in notes
    assert "2 ballots with nobody on it" in notes
    result = CliRunner().invoke(cli, ["elect", str(path), "--epsilon", "1", "--rule", "irv", "--json"])
    assert result.exit_code == 0, result.stderr
    assert "your eyes only" in result.stderr
    assert "eyes only" not in result.stdout
    assert "How ballots were cleaned: skipped ranks are passed over, overvotes end the ballot" in result.stdout


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"skipped": "stop"}, "skipped must be one of next, two, exhaust, got 'stop'"),
        ({"exclude": ("Zoe",)}, "exclude must name candidates, got 'Zoe'; they are Ann, Bob"),
        ({"skipped_words": " "}, "skipped_words must be a list of texts"),
    ],
)
def test_bad_rules_get_one_sentence(rule, words):
    with pytest.raises(InputError, match=words):
        wide([["Ann", "Bob"]], cleaning=Cleaning(**rule))


def test_a_list_of_candidates_has_no_word_for_nobody():
    with pytest.raises(
        InputError, match="items lists 'undervote', which stands for a skipped rank and is no candidate"
    ):
        wide([["Ann", "Bob"]], items=["Ann", "Bob", "undervote"])


def test_ballots_that_rank_nobody_count_as_ballots_and_move_nothing():
    some, more = wide([["a", "b"], ["b", "a"]]), wide([["a", "b"], ["b", "a"], ["", ""], ["skipped", "overvote"]])
    assert (some.count, more.count) == (2, 4)
    assert np.array_equal(some.margins(), more.margins())
    assert np.array_equal(some.first_k(2), more.first_k(2))
    assert np.array_equal(some.centred_borda(), more.centred_borda())


@pytest.mark.parametrize("skipped", ["next", "two", "exhaust"])
def test_a_rank_per_candidate_means_what_a_candidate_per_rank_means(skipped):
    """Every ballot of three candidates with different ranks up to 5: skipped ranks, and ballots that rank nobody."""
    rule, names = Cleaning(skipped=skipped), ["Ann", "Bob", "Cy"]
    rows = [row for row in product(range(6), repeat=3) if len(set(row) - {0}) == sum(rank > 0 for rank in row)]
    by_rank = [[names[row.index(rank)] if rank in row else "" for rank in range(1, 6)] for row in rows]
    meant = wide(by_rank, items=names, cleaning=rule)
    cells = pd.DataFrame([[str(rank or "") for rank in row] for row in rows], columns=names)
    long = [(voter, name, rank or "") for voter, row in enumerate(rows) for name, rank in zip(names, row, strict=True)]
    voters = pd.DataFrame(long, columns=["voter", "item", "rank"]).astype(str)
    for frame, layout in ((cells, "ranks"), (voters, "auto")):
        ballots = Ballots.of(frame, items=names, cleaning=rule, layout=layout)
        assert ballots.count == len(rows)
        assert said(ballots) == said(meant)


@pytest.mark.parametrize(
    ("cells", "skipped", "kept"),
    [
        ("1 1 2", "exhaust", [("Ann", "Bob"), ("Cy",)]),
        ("1 1 3", "exhaust", [("Ann", "Bob"), ("Cy",)]),
        ("1 1 4", "exhaust", [("Ann", "Bob")]),
        ("1 1 4", "two", [("Ann", "Bob"), ("Cy",)]),
        ("1 1 5", "two", [("Ann", "Bob")]),
        ("3 3 1", "next", [("Cy",), ("Ann", "Bob")]),
        ("blank skipped 2", "next", [("Cy",)]),
    ],
)
def test_skipped_ranks_around_ties(cells, skipped, kept):
    frame = pd.DataFrame([cells.split()], columns=["Ann", "Bob", "Cy"])
    ballots = Ballots.of(frame, layout="ranks", cleaning=Cleaning(skipped=skipped))
    groups: list[tuple[str, ...]] = []
    for item, tied in zip(ballots.orders[0].tolist(), ballots.tied[0].tolist(), strict=True):
        if item >= 0:
            groups = [*groups[:-1], (*groups[-1], ballots.items[item])] if tied else [*groups, (ballots.items[item],)]
    assert groups == kept
