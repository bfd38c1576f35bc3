"""Cast vote records, Dominion's as CSV and JSON and Clear Ballot's: the same ballots by the same rules."""

import csv
import gzip
import io
import json
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.data.ballot_files import ballot_format
from rankdp.data.ballots import SHARES, Ballots
from rankdp.errors import InputError

MAYOR, COUNCIL, MEASURE = ["Ann", "Bob (Rob) Lee", "Write-in"], ["Cy", "Di", "Ed"], ["Yes", "No"]
# of each ballot: the mayors marked at rank 1, 2 and 3; the council members marked; None where a contest is missing
BALLOTS = [
    ([["Ann"], ["Bob (Rob) Lee"], []], ["Cy", "Di"]),
    ([[], ["Bob (Rob) Lee"], ["Ann"]], ["Cy"]),  # a rank is skipped
    ([["Ann"], ["Ann"], ["Write-in"]], []),  # somebody is ranked again
    ([["Write-in"], ["Ann", "Bob (Rob) Lee"], ["Ann"]], ["Cy", "Di", "Ed"]),  # overvotes
    ([["Ann", "Bob (Rob) Lee"], [], []], ["Ed"]),
    ([[], [], []], ["Ed"]),
    (None, ["Di"]),
    ([["Ann"], ["Bob (Rob) Lee"], []], None),
]
MEANT = {
    ("Ann", "Bob (Rob) Lee"): 2,
    ("Bob (Rob) Lee", "Ann"): 1,
    ("Ann", "Write-ins"): 1,
    ("Write-ins",): 1,
    (): 2,
}


def csv_text(version=True, bom="", odd=False):
    """The export as CSV; ``odd`` writes cells as some versions do."""
    ids = ["CvrNumber", "TabulatorNum", "BatchId", "RecordId", "ImprintedId", "BallotType"]
    mayor, council = "Mayor (Number of positions=1, Number of ranks=3)", "Council, Ward 2 (Vote For=2)"
    contests = [""] * 6 + [mayor] * 9 + [council] * 3 + ["Measure 1 (Vote For=1)"] * 2
    choices = [""] * 6 + [f"{name}({rank})" for rank in (1, 2, 3) for name in MAYOR] + COUNCIL + MEASURE
    rows = [["Spring Election", "5.13.17.1"]] if version else []
    rows += [contests, choices, [*ids, *["DEM"] * 3]]
    for number, (mayors, members) in enumerate(BALLOTS, 1):
        marks = [""] * 9 if mayors is None else [str(int(name in mayors[rank])) for rank in range(3) for name in MAYOR]
        marks += [""] * 3 if members is None else [str(int(name in members)) for name in COUNCIL]
        rows.append([str(number), "101", "1", str(number), f"101-1-{number}", "02", *marks, "1", "0"])
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL).writerows(rows)
    return bom + (text.getvalue().replace('"101"', '"=""101"""') if odd else text.getvalue())


def clear_text():
    """The records as Clear Ballot writes them."""
    ids = ["RowNumber", "BoxID", "BallotID", "Status"]
    mayor = [f"Choice_{at}_1:Mayor:{rank}:Vote For 1:{name}:NON" for rank in (1, 2, 3) for at, name in enumerate(MAYOR)]
    council = [f"Choice_{at}_1:Council, Ward 2:Number of Winners 2:{name}:DEM" for at, name in enumerate(COUNCIL)]
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow([*ids, *mayor, *council])
    for number, (mayors, members) in enumerate(BALLOTS, 1):
        marks = [""] * 9 if mayors is None else [int(name in mayors[rank]) for rank in range(3) for name in MAYOR]
        marks += [""] * 3 if members is None else [int(name in members) for name in COUNCIL]
        rows.writerow([number, "B-1", f"B-1+{number}", 0, *marks])
    return text.getvalue()


def json_files(cards=True):
    """The export as JSON: two files of sessions, one of them adjudicated, with an ambiguous mark."""
    contests = [("MAYOR", 1, 1, 3), ("COUNCIL, WARD 2", 2, 2, 0), ("UNUSED", 3, 1, 0)]
    names = [(name, 10 + at, 1) for at, name in enumerate(MAYOR)] + [
        (name, 20 + at, 2) for at, name in enumerate(COUNCIL)
    ]
    ids = {name: number for name, number, _ in names}
    sessions = []
    for mayors, members in BALLOTS:
        held = []
        if mayors is not None:
            marks = [
                {"CandidateId": ids[name], "Rank": rank, "IsAmbiguous": False, "IsVote": True}
                for rank, several in enumerate(mayors, 1)
                for name in several
            ]
            marks.append({"CandidateId": ids["Write-in"], "Rank": 1, "IsAmbiguous": True, "IsVote": False})
            held.append({"Id": 1, "Marks": marks})
        if members is not None:
            marks = [{"CandidateId": ids[name], "Rank": 1, "IsAmbiguous": False} for name in members]
            held.append({"Id": 2, "Marks": marks})
        now = {"IsCurrent": True, "Cards": [{"Contests": held}]} if cards else {"IsCurrent": True, "Contests": held}
        sessions.append({"Original": now})
    scanned = {"IsCurrent": False, "Cards": [{"Contests": []}]}
    sessions[0] = {"Original": scanned, "Modified": sessions[0]["Original"]}
    keys = ("Description", "Id", "VoteFor", "NumOfRanks")
    return {
        "ContestManifest.json": {"List": [dict(zip(keys, one, strict=True)) for one in contests]},
        "CandidateManifest.json": {
            "List": [{"Description": name, "Id": number, "ContestId": contest} for name, number, contest in names]
        },
        "CvrExport_1.json": {"Sessions": sessions[:3]},
        "CvrExport_2.json": {"Sessions": sessions[3:]},
    }


def export(tmp_path, kind):
    if kind == "clear":
        (tmp_path / "cvr.csv").write_text(clear_text())
        return tmp_path / "cvr.csv"
    if kind.startswith("csv"):
        options = {"csv-odd": {"odd": True, "bom": "\ufeff"}, "csv-bare": {"version": False}}.get(kind, {})
        text = csv_text(**options).encode()
        path = tmp_path / ("cvr.csv.gz" if kind == "csv-gz" else "cvr.csv")
        path.write_bytes(gzip.compress(text) if kind == "csv-gz" else text)
        return path
    files = {name: json.dumps(held) for name, held in json_files(cards=kind != "json-old").items()}
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "cvr.zip", "w") as packed:
            for name, text in files.items():
                packed.writestr(name, text)
        return tmp_path / "cvr.zip"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "csv-odd", "csv-bare", "csv-gz", "clear", "json", "json-old", "zip"])
def test_ballots_of_every_export(tmp_path, kind):
    path = export(tmp_path, kind)
    assert ballot_format(str(path)) in ("marks", "dominion")
    ballots = Ballots.read(path)
    assert set(ballots.items) == {*MAYOR[:2], "Write-ins"}
    found = {
        tuple(ballots.items[item] for item in order if item >= 0): weight
        for order, weight in zip(ballots.orders.tolist(), ballots.weights.tolist(), strict=True)
    }
    assert found == MEANT
    assert not ballots.items_from_data
    assert "the contest 'mayor'" in ballots.notes[0].lower()


@pytest.mark.parametrize("kind", ["csv", "clear", "json"])
def test_a_contest_without_ranks(tmp_path, kind):
    """Marks share the first place; more than may be voted for are no vote."""
    council = Ballots.read(export(tmp_path, kind), contest="council, ward 2")
    assert council.items == ("Cy", "Di", "Ed")
    assert council.count == 7
    assert council.first_k(1).tolist() == [SHARES // 2 + SHARES, SHARES // 2 + SHARES, 2 * SHARES]


def test_one_contest_must_be_named(tmp_path):
    path = export(tmp_path, "csv")
    with pytest.raises(InputError, match="contest must name one of Mayor, Council, Ward 2, Measure 1, got 'Sheriff'"):
        Ballots.read(path, contest="Sheriff")
    path.write_text(csv_text().replace("Number of positions=1, Number of ranks=3", "Vote For=1"))
    with pytest.raises(InputError, match=r"contest must name one of .*, got none"):
        Ballots.read(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("101-1-2,02,0,", "101-1-2,02,7,", "line 6: a mark must be 1, 0 or blank, got '7'"),
        ("101-1-2,02,0,", "101-1-2,02,0,0,", "line 6: the line has 21 fields and the header 20"),
        ("Ann(2)", "Ann", "column 10: 'Ann' has no rank, and others of its contest do"),
    ],
)
def test_refusals(tmp_path, old, new, words):
    text = csv_text()
    assert old in text
    (tmp_path / "cvr.csv").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=words):
        Ballots.read(tmp_path / "cvr.csv")


def test_refusals_of_options_and_names(tmp_path):
    path = export(tmp_path, "csv")
    with pytest.raises(InputError, match="'Bob \\(Rob\\) Lee' is not one of the 2 items given"):
        Ballots.read(path, items=["Ann", "Write-in"])
    with pytest.raises(InputError, match="voter_column is for tables, not for a file of this kind"):
        Ballots.read(path, voter_column="RecordId")
    (tmp_path / "plain.csv").write_text("rank_1,rank_2\na,b\n")
    with pytest.raises(InputError, match="contest is for cast vote records"):
        Ballots.read(tmp_path / "plain.csv", contest="Mayor")


def test_a_session_is_one_ballot_on_however_many_cards(tmp_path):
    path = export(tmp_path, "json")
    file = path / "CvrExport_2.json"
    held = json.loads(file.read_text())
    cards = held["Sessions"][0]["Original"]["Cards"]
    held["Sessions"][0]["Original"]["Cards"] = cards * 310
    before = Ballots.read(path)
    file.write_text(json.dumps(held))
    assert Ballots.read(path).weights.tolist() == before.weights.tolist()


def test_a_contest_that_officials_set_aside_counts_for_nobody(tmp_path):
    path = export(tmp_path, "json")
    conditions = [{"Description": "Ambiguous", "Id": 0}, {"Description": "InvalidContest", "Id": 7}]
    (path / "OutstackConditionManifest.json").write_text(json.dumps({"List": conditions}))
    before = Ballots.read(path).first_preferences().tolist()
    held = json.loads((path / "CvrExport_1.json").read_text())
    held["Sessions"][1]["Original"]["Cards"][0]["Contests"][0]["OutstackConditionIds"] = [7]  # Bob's, then Ann's
    (path / "CvrExport_1.json").write_text(json.dumps(held))
    after = Ballots.read(path)
    assert after.count == 7
    lost = dict(zip(after.items, np.subtract(before, after.first_preferences()).tolist(), strict=True))
    assert lost == {"Ann": 0, "Bob (Rob) Lee": SHARES, "Write-ins": 0}


@pytest.mark.parametrize("damage", ["no manifest", "no list", "strange session", "no session", "no json"])
def test_damaged_json(tmp_path, damage):
    path = export(tmp_path, "json")
    if damage == "no manifest":
        (path / "CandidateManifest.json").unlink()
    elif damage == "no list":
        (path / "CandidateManifest.json").write_text("[]")
    else:
        text = {"strange session": '{"Sessions": [{}]}', "no session": '{"Sessions": [{"Original": 7}]}'}
        (path / "CvrExport_2.json").write_text(text.get(damage, "{"))
    with pytest.raises(InputError):
        Ballots.read(path)


def test_an_election_from_the_command_line(tmp_path):
    path = export(tmp_path, "zip")
    asked = ["elect", str(path), "--epsilon", "30", "--rule", "irv", "--contest", "Mayor", "--rehearse", "1", "--json"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    assert "Ann" in done.output
    assert rankdp.elect(path, 30, rule="irv", contest="MAYOR").value.winners == ("Ann",)
