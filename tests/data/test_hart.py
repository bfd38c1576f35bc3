"""Hart's cast vote records: one XML file per sheet, a directory or a .zip file."""

import zipfile

import pytest

import rankdp
from rankdp.data.ballot_files import ballot_format
from rankdp.data.ballots import Ballots
from rankdp.errors import InputError

ANN, BOB, CY, NAMELESS = "<Name>Ann</Name>", "<Name> Bob\n(Rob) </Name>", "<Name>Cy</Name>", ""
REJECTED = "<WriteInData><Text/><WriteInDataStatus>Rejected</WriteInDataStatus></WriteInData>"
OPEN = "<WriteInData><Text/><WriteInDataStatus>Unresolved</WriteInDataStatus></WriteInData>"


def contest(*options, name="Mayor", more=""):
    """A contest; an option is the element of its name, its Value, and what follows."""
    marked = [f"{who}<Id>x</Id><Value>{value}</Value>{''.join(rest)}" for who, value, *rest in options]
    held = "".join(f"<Option>{one}</Option>" for one in marked)
    return f"<Contest><Name>{name}</Name><Id>id-{name}</Id><Options>{held}</Options>{more}</Contest>"


def record(*contests):
    return f'<?xml version="1.0"?><Cvr xmlns="http://tempuri.org/CVRDesign.xsd"><Contests>{"".join(contests)}</Contests></Cvr>'


SIDE = contest((ANN, "1"), (BOB, "1"), name="Council")
RECORDS = [
    record(contest((ANN, "100"), (BOB, "010")), SIDE),
    record(SIDE, contest((BOB, "100"), (ANN, "001"))),  # a rank is skipped
    record(contest((ANN, "110"), (NAMELESS, "001", OPEN))),  # somebody is ranked again
    record(contest((BOB, "100"), (ANN, "010"), (CY, "010"))),  # an overvote
    record(contest((NAMELESS, "100", REJECTED), (CY, "010"))),
    record(contest((CY, "000"), more="<Undervotes>3</Undervotes>")),
    record(contest((ANN, "100"), more="<InvalidVote />")),
    record(SIDE),  # without the contest
]
MEANT = {
    ("Ann", "Bob (Rob)"): 1,
    ("Bob (Rob)", "Ann"): 1,
    ("Ann", "Write-ins"): 1,
    ("Bob (Rob)",): 1,
    ("Cy",): 1,
    (): 2,
}


@pytest.fixture
def folder(tmp_path):
    for number, text in enumerate(RECORDS):
        (tmp_path / f"1_{number}.xml").write_text("\ufeff" + text, encoding="utf-8")
    (tmp_path / "1_0.xml.sig.xml").write_text("<Signature/>")
    return tmp_path


@pytest.mark.parametrize("packed", [False, True])
def test_marks_are_read_as_ranks(folder, packed):
    path = folder
    if packed:
        path = folder / "CVRArchive_8_8_0_1.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in folder.glob("*.xml"):
                archive.write(file, file.name)
    assert ballot_format(str(path)) == "hart"
    ballots = Ballots.read(path)
    assert ballots.items == ("Ann", "Bob (Rob)", "Cy", "Write-ins")
    found = {
        tuple(ballots.items[item] for item in order if item >= 0): weight
        for order, weight in zip(ballots.orders.tolist(), ballots.weights.tolist(), strict=True)
    }
    assert found == MEANT


def test_the_candidates_are_found_in_the_ballots_unless_they_are_listed(folder):
    warned = "The list of candidates was taken from the ballots"
    found = rankdp.elect(folder, 1, rule="irv", seed=1).value
    assert any(line.startswith(warned) for line in found.warnings)
    items = ["Ann", "Bob (Rob)", "Cy", "Di", "Write-ins"]
    listed = rankdp.elect(folder, 1, rule="irv", seed=1, items=items).value
    assert set(listed.items) == set(items)
    assert not any(line.startswith(warned) for line in listed.warnings)
    with pytest.raises(InputError, match="'Cy' is not one of the 3 items given"):
        Ballots.read(folder, items=["Ann", "Bob (Rob)", "Write-ins"])


def test_a_contest_without_ranks_is_refused(folder):
    with pytest.raises(InputError, match="no ranks are marked in the contest 'Council'"):
        Ballots.read(folder, contest="council")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused(folder, encoding):
    text = RECORDS[0].replace("<Cvr", '<!DOCTYPE Cvr [<!ENTITY who "Ann">]><Cvr').replace(">Ann<", ">&who;<")
    (folder / "1_3.xml").write_text(text.removeprefix('<?xml version="1.0"?>'), encoding=encoding)
    with pytest.raises(InputError, match=r"1_3\.xml: .*document type"):
        Ballots.read(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<Cvr>", "could not be read as XML"),
        ("<Other/>", "its root is 'Other'"),
        ("x" * (1 << 20) + "x", "at most 1 MB"),
        (record(contest((ANN, "200"))), "a Value must consist of 0 and 1, got '200'"),
        (record(contest((ANN, ""))), "a Value must consist of 0 and 1, got ''"),
        (record(contest((ANN, "1000"))), "'Mayor': a Value has 4 digits and an earlier one 3"),
        (record(contest((ANN, "100")), contest((ANN, "100"))), "or is there twice"),
        (record(contest((ANN, "100"), name="")), "a contest has no Name or Id"),
    ],
)
def test_refusals_name_the_file(folder, text, words):
    (folder / "1_9.xml").write_text(text)
    with pytest.raises(InputError, match=rf"1_9\.xml: .*{words}"):
        Ballots.read(folder)
