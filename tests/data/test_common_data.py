"""Cast vote records in NIST's common data format: JSON and XML say the same ballots."""

import gzip
import json
from xml.sax.saxutils import escape

import pytest
from click.testing import CliRunner

from rankdp.cli import cli
from rankdp.data.ballots import SHARES, Ballots
from rankdp.data.formats import common_data
from rankdp.errors import InputError

MAYOR, COUNCIL = {"s1": ["c1"], "s2": ["c2"], "s3": []}, {"t1": ["c3"], "t2": ["c4"], "t3": ["c5"]}
NAMES = {"c1": "Ann <Lee>", "c2": "Bob", "c3": "Cy", "c4": "Di", "c5": "Di"}
# of each record: ranks and selections for mayor, selections for council; None where a contest is missing
RECORDS = [
    ([(1, "s1"), (2, "s2")], ["t1", "t2"]),
    ([(2, "s2"), (3, "s1")], ["t1"]),  # a rank is skipped
    ([(1, "s1"), (2, "s1"), (3, "s3")], []),  # somebody is ranked again
    ([(1, "s3"), (2, "s1"), (2, "s2"), (3, "s1")], ["t1", "t2", "t3"]),  # overvotes
    ([(1, None), (2, "s2")], ["t3"]),  # a write-in that refers to no choice
    ([], ["t3"]),
    (None, ["t2"]),
    ([(1, "s1"), (2, "s2")], None),
]
MEANT = {
    ("Ann <Lee>", "Bob"): 2,
    ("Bob", "Ann <Lee>"): 1,
    ("Ann <Lee>", "Write-ins"): 1,
    ("Write-ins",): 1,
    ("Write-ins", "Bob"): 1,
    (): 1,
}


def position(rank=None, marked="yes", written=False):
    ranked = {} if rank is None else {"Rank": rank}
    return {**({"CVRWriteIn": {"Text": "Zoe"}} if written else {}), "HasIndication": marked, "NumberVotes": 1, **ranked}


def record(number, mayors, members):
    contests = []
    if mayors is not None:
        chosen = [
            {**({"ContestSelectionId": key} if key else {}), "SelectionPosition": [position(rank, written=not key)]}
            for rank, key in mayors
        ]
        chosen.append({"ContestSelectionId": "s2", "SelectionPosition": [position(1, "unknown")]})
        contests.append({"ContestId": "mayor", "CVRContestSelection": chosen})
    if members is not None:
        chosen = [{"ContestSelectionId": key, "SelectionPosition": [position()]} for key in members]
        contests.append({"ContestId": "council", "CVRContestSelection": chosen})
    wrong = {"ContestId": "mayor", "CVRContestSelection": []}
    snapshots = [{"@id": f"{number}-old", "CVRContest": [wrong]}, {"@id": f"{number}-new", "CVRContest": contests}]
    return {"CurrentSnapshotId": f"{number}-new", "CVRSnapshot": snapshots}


def selections(of):
    return [{"@id": key, **({"CandidateIds": ids} if ids else {"IsWriteIn": "true"})} for key, ids in of.items()]


def report(records=RECORDS):
    mayor = {"@id": "mayor", "ContestSelection": selections(MAYOR), "Name": "Mayor", "VoteVariation": "rcv"}
    council = {"@id": "council", "ContestSelection": selections(COUNCIL), "Name": "Council", "VotesAllowed": 2}
    candidates = [{"@id": key, "Name": name} for key, name in NAMES.items()]
    return {
        "@type": "CVR.CastVoteRecordReport",
        "CVR": [record(number, *one) for number, one in enumerate(records)],
        "Election": [{"@id": "e", "Candidate": candidates, "Contest": [mayor, council]}],
    }


def as_xml(name, held):
    if isinstance(held, list):
        return "".join(as_xml(name, one) for one in held)
    if not isinstance(held, dict):
        return f"<n:{name}>{escape(str(held))}</n:{name}>"
    inner = "".join(as_xml(key, value) for key, value in held.items() if key[0] != "@")
    own = f' ObjectId="{held["@id"]}"' if "@id" in held else ""
    return f"<n:{name}{own}>\n{inner}</n:{name}>"


def xml_text(held):
    return as_xml("CastVoteRecordReport", held).replace("CastVoteRecordReport>", 'CastVoteRecordReport xmlns:n="N">', 1)


def write(folder, kind, held=None):
    held = held or report()
    text = json.dumps(held) if "json" in kind else xml_text(held)
    path = folder / f"cvr.{kind}"
    path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    return path


def said(ballots):
    return {
        tuple(ballots.items[item] for item in order if item >= 0): weight
        for order, weight in zip(ballots.orders.tolist(), ballots.weights.tolist(), strict=True)
    }


@pytest.mark.parametrize("kind", ["json", "xml", "json.gz", "xml.gz"])
def test_ballots(tmp_path, kind):
    """The contest with ranks is taken, and the current snapshots; marks that are not sure are not votes."""
    ballots = Ballots.read(write(tmp_path, kind))
    assert set(ballots.items) == {"Ann <Lee>", "Bob", "Write-ins"}
    assert said(ballots) == MEANT
    assert not ballots.items_from_data
    assert "the contest 'Mayor'" in ballots.notes[0]


@pytest.mark.parametrize("kind", ["json", "xml"])
def test_a_contest_without_ranks(tmp_path, kind):
    """Marks share the first place, too many are an overvote, and candidates of one name stay apart."""
    council = Ballots.read(write(tmp_path, kind), contest="council")
    assert council.items == ("Cy", "Di", "Di (t3)")
    assert council.count == 7
    assert council.first_k(1).tolist() == [SHARES // 2 + SHARES, SHARES // 2 + SHARES, 2 * SHARES]
    assert any("several candidates are called 'Di'" in note for note in council.notes)


@pytest.mark.parametrize("kind", ["json", "xml"])
def test_write_ins_that_a_contest_does_not_list_never_become_a_candidate(tmp_path, kind):
    """The candidates must not depend on what is on a ballot."""
    held = report([([(1, None), (2, "s2")], None), ([(1, None), (2, "s1")], None), ([(1, None)], None)])
    held["Election"][0]["Contest"][0]["ContestSelection"].pop()
    for items in (None, ["Bob", "Zed", "Ann <Lee>"]):
        ballots = Ballots.read(write(tmp_path, kind, held), items=items)
        assert ballots.items == tuple(items or ("Ann <Lee>", "Bob"))
        assert said(ballots) == {("Bob",): 1, ("Ann <Lee>",): 1, (): 1}


def damaged(key, value):
    held = report()
    at = held["CVR"][1]["CVRSnapshot"][1]["CVRContest"]
    if key == "snapshot":
        held["CVR"][1]["CurrentSnapshotId"] = value
    elif key == "contest":
        at[1]["ContestId"] = value
    elif key == "selection":
        at[0]["CVRContestSelection"][0]["ContestSelectionId"] = value
    elif key == "candidate":
        held["Election"][0]["Contest"][0]["ContestSelection"][0]["CandidateIds"] = [value]
    else:
        at[0]["CVRContestSelection"][0]["SelectionPosition"][0]["Rank"] = value
    return held


@pytest.mark.parametrize("kind", ["json", "xml"])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("rank", "1000000000", "record 2: .*a rank must be a whole number from 1 to 999, got '1000000000'"),
        ("rank", "first", "record 2: .*got 'first'"),
        ("rank", "", "record 2: .*some of the marks for a contest have ranks and others do not"),
        ("snapshot", "x", "record 2: .*0 of its snapshots are the current one"),
        ("contest", "mayor", "record 2: .*it has a contest twice"),
        ("selection", "t1", "a mark is for 't1', which 'Mayor' does not list"),
        ("selection", "", "record 2: .*a mark has no ContestSelectionId"),
        ("candidate", "c9", "its Election lacks what contests and candidates have .*c9"),
    ],
)
def test_damaged_records(tmp_path, kind, key, value, words):
    with pytest.raises(InputError, match=words):
        Ballots.read(write(tmp_path, kind, damaged(key, value)))


def test_damaged_files(tmp_path):
    path = write(tmp_path, "json")
    path.write_text(path.read_text()[:-1])
    with pytest.raises(InputError, match="could not be read as JSON"):
        Ballots.read(path)
    path.write_text(json.dumps({**report(), "CVR": ["x"]}))
    with pytest.raises(InputError, match=r"record 1: .*'x' is where CVRSnapshot should be"):
        Ballots.read(path)
    path = write(tmp_path, "xml")
    whole = path.read_text()
    path.write_text(whole[:-9])
    with pytest.raises(InputError, match="could not be read as XML"):
        Ballots.read(path)
    path.write_text(whole.replace("</n:CastVoteRecordReport>", "<x>" * 40))
    with pytest.raises(InputError, match="nested more than 32 deep"):
        Ballots.read(path)


@pytest.mark.parametrize("entity", ['"Ann"', 'SYSTEM "secret.txt"'])
def test_no_entities(tmp_path, entity):
    """A document type can read other files, or grow without end."""
    (tmp_path / "secret.txt").write_text("Ann")
    text = xml_text(report()).replace("Bob", "&e;")
    (tmp_path / "cvr.xml").write_text(f"<!DOCTYPE CastVoteRecordReport [<!ENTITY e {entity}>]>{text}")
    with pytest.raises(InputError, match="must have no document type"):
        Ballots.read(tmp_path / "cvr.xml")


def test_memory_is_bounded(tmp_path, monkeypatch):
    """Records in XML may go on; what is held at once may not."""
    many = write(tmp_path, "xml", report(RECORDS * 40))
    one = many.stat().st_size // 8
    monkeypatch.setattr(common_data, "_MOST_TREE", one)
    monkeypatch.setattr(common_data, "_BLOCK", 1 << 10)
    assert Ballots.read(many).count == 7 * 40
    many.write_text(many.read_text().replace("Ann", "A" * 2 * one))
    with pytest.raises(InputError, match="a record, or what is no record, takes over"):
        Ballots.read(many)
    monkeypatch.setattr(common_data, "_MOST_BYTES", 1000)
    with pytest.raises(InputError, match="may unpack to at most"):
        Ballots.read(write(tmp_path, "json"))


def test_an_election_from_the_command_line(tmp_path):
    asked = ["elect", str(write(tmp_path, "xml")), "--without-noise", "--rule", "irv", "--contest", "Mayor"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    assert "from 7 ballots: Ann <Lee>." in done.output
    asked[-1] = "Sheriff"
    refused = CliRunner().invoke(cli, asked)
    assert refused.exit_code == 1
    assert "must name one of Mayor, Council, got 'Sheriff'" in str(refused.exception)
