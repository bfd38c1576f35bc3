"""What is promised about privatized rankings stands with whatever is made from them."""

import html
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import rankdp
from rankdp.aggregation.aggregate_report import aggregate_report
from rankdp.cli import cli
from rankdp.data.atomic import read_sidecar
from rankdp.errors import InputError, RankdpError, Unsupported
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.privacy.ledger import spending
from rankdp.privacy.release import Provenance

ENDINGS = ("csv", "json", "html")


@pytest.fixture
def private(tmp_path, monkeypatch):
    """``private(bits)`` privatizes a poll at epsilon 2, or with a column of epsilons, into private.csv."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{voter},x,y,z,{1 + voter % 2}" for voter in range(200)]
    (tmp_path / "poll.csv").write_text("\n".join(["voter,rank_1,rank_2,rank_3,mine", *lines]) + "\n")

    def make(bits=None, **how):
        return rankdp.privatize_file("poll.csv", "private.csv", **(how or {"epsilon": 2}), mechanism="ulam", bits=bits)

    return make


def run(*arguments):
    return CliRunner().invoke(cli, ["aggregate", "private.csv", *arguments])


def stated(ending):
    """The text that states what is promised about an output."""
    return html.unescape(Path("out.csv.release.json" if ending == "csv" else f"out.{ending}").read_text("utf-8"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_carries_the_guarantee(private, ending):
    release = private()
    told = run("-o", f"out.{ending}")
    assert told.exit_code == 0, told.output
    assert release.explain() in told.stderr
    assert release.explain() in stated(ending)
    if ending != "html":
        facts = json.loads(stated(ending))
        assert Guarantee.from_dict(facts["guarantee"]) == release.guarantee
        assert facts["parameters"] == json.loads(json.dumps(release.provenance.parameters))
        assert (facts["mechanism"], facts["when"]) == ("ulam", release.provenance.when)
    if ending == "csv":
        assert read_sidecar("out.csv")["guarantee"] == json.loads(stated("csv"))["guarantee"]  # made for this content


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_rehearsal_is_called_one_wherever_it_shows(private, ending):
    private(rankdp.SeededBits(7))
    told = run("-o", f"out.{ending}")
    assert "REHEARSAL, NOT PRIVATE: drawn from seed 7" in told.stderr
    assert "REHEARSAL, NOT PRIVATE: drawn from seed 7" in stated(ending)
    assert '"guarantee": null' in run("--json").stdout


@pytest.mark.parametrize("seed", [None, 7])
def test_pictures_say_it_too(private, seed, monkeypatch):
    from matplotlib.figure import Figure

    release, below, real = private(None if seed is None else rankdp.SeededBits(seed)), [], Figure.supxlabel
    monkeypatch.setattr(Figure, "supxlabel", lambda self, text, **how: below.append(text) or real(self, text, **how))
    assert run("-o", "out.png").exit_code == 0
    assert release.explain() in " ".join(" ".join(below).split())


def test_an_aggregate_of_a_release_in_memory_carries_it(private):
    poll = rankdp.Rankings.read("poll.csv") if private() else None
    release = rankdp.privatize(poll, 2, mechanism="ulam")
    found = rankdp.aggregate(release)
    assert found.release.guarantee == release.guarantee
    assert json.loads(aggregate_report(found).json())["guarantee"] == release.guarantee.to_dict()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (["--mechanism", "kendall"], "private.csv.release.json says that ulam made the rankings, got 'kendall'"),
        (["--epsilon", "1"], "private.csv.release.json says that the epsilon is 2, got 1"),
        (["--mechanism", "ulam", "--epsilon", "2.01"], "says that the epsilon is 2, got 2.01"),
        (["--epsilon-column", "mine"], "says that the epsilon is 2, got --epsilon-column mine"),
    ],
)
def test_what_contradicts_the_release_is_refused(private, tmp_path, said, sentence):
    private()
    before = sorted(tmp_path.iterdir())
    told = run(*said, "-o", "out.csv")
    assert isinstance(told.exception, RankdpError), told.output
    assert sentence in str(told.exception)
    assert sorted(tmp_path.iterdir()) == before
    assert run("--mechanism", "ulam", "--epsilon", "2").exit_code == 0


def test_the_column_of_personal_epsilons_is_found(private):
    private(epsilon_column="mine")
    found = rankdp.aggregate_file("private.csv")
    assert sorted(float(made_by.epsilon) for made_by in found.mechanisms) == [1, 2]
    assert found.release.guarantee.personal
    with pytest.raises(InputError, match="says that the epsilon is each voter's own, in column 'mine', got epsilon_co"):
        rankdp.aggregate_file("private.csv", epsilon_column="epsilon")
    with pytest.raises(InputError, match="says that the epsilon is each voter's own, got 2"):
        rankdp.aggregate_file("private.csv", epsilon=2)


def test_nothing_is_promised_where_only_the_caller_speaks(private, tmp_path):
    private()
    assert run("-o", "out.csv").exit_code == 0
    assert (tmp_path / "out.csv.release.json").exists()
    (tmp_path / "private.csv.release.json").unlink()
    asked = ("--mechanism", "ulam", "--epsilon", "2", "--force")
    told = run(*asked, "-o", "out.csv", "-o", "out.html", "-o", "out.json")
    assert told.exit_code == 0, told.output
    assert "Nothing is promised here" in told.stderr
    assert "Nothing is promised here" in stated("html")
    assert json.loads(stated("json"))["guarantee"] is None
    assert not (tmp_path / "out.csv.release.json").exists()  # an older promise does not stay beside it
    for missing in (["--epsilon", "2"], []):
        assert "private.csv.release.json is missing" in str(run(*missing).exception)
    assert "give either --epsilon or --epsilon-column" in str(run("--mechanism", "ulam").exception)


def test_a_release_that_states_no_promise_is_refused(private, tmp_path):
    private()
    sidecar = tmp_path / "private.csv.release.json"
    facts = json.loads(sidecar.read_text())
    for broken in ({**facts, "guarantee": None}, {**facts, "rehearsal": {}}, {**facts, "guarantee": {"epsilon": "2"}}):
        sidecar.write_text(json.dumps(broken))
        assert isinstance(run().exception, InputError)


def test_items_that_a_spreadsheet_would_run(private, tmp_path):
    text = (tmp_path / "poll.csv").read_text()
    (tmp_path / "poll.csv").write_text(text.replace(",x,", ",=x,"))
    private()
    assert "=x" in (tmp_path / "private.csv").read_text().split(",")  # rankings are read again: names stay as they are
    assert run("-o", "out.csv", "-o", "out.json").exit_code == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == {"'=x", "y", "z"}
    assert {row["item"] for row in json.loads(stated("json"))["items"]} == {"=x", "y", "z"}


@pytest.mark.parametrize("gone", ["ulam-tiers-1-2", "sliding-tiers-3x1", "ulam-tiers"])
def test_a_release_file_of_a_mechanism_that_is_gone_is_refused_with_the_version_that_reads_it(private, gone):
    release, sidecar = private(), Path("private.csv.release.json")
    facts = json.loads(sidecar.read_text("utf-8"))
    facts["mechanism"] = facts["parameters"]["choices"][0]["mechanism"] = gone
    sidecar.write_text(json.dumps(facts), "utf-8")
    told = run()
    assert told.exit_code == 1
    sentence = f"names the mechanism {gone}, which was dropped: rankdp 0.1.0 reads it"
    assert str(told.exception) == f"private.csv.release.json {sentence}"
    with pytest.raises(Unsupported, match=f"^the release {sentence}$"):
        rankdp.aggregate(
            replace(
                release,
                value=rankdp.Rankings.read("private.csv"),
                provenance=replace(release.provenance, parameters=facts["parameters"]),
            )
        )


def test_a_ledger_with_a_release_of_a_mechanism_that_is_gone_still_opens(tmp_path):
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", "position", epsilon=3)
    made = Provenance.now("sliding-tiers", {"choices": [{"mechanism": "sliding-tiers-3x1"}]}, SecureBits())
    with spending(ledger, Guarantee(ITEM_POSITION, Fraction(1)), "privatize", SecureBits()) as charge:
        charge.commit(made)
    again = rankdp.Ledger.open(tmp_path / "budget.db")
    assert [entry.release["mechanism"] for entry in again.history()] == ["sliding-tiers"]
    assert again.budgets[0].remaining == 2
    told = CliRunner().invoke(cli, ["budget", "show", str(tmp_path / "budget.db")])
    assert told.exit_code == 0, told.output
