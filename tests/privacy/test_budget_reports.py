"""What a ledger says to people: tables, JSON, CSV and a plot."""

import csv
import json
from fractions import Fraction

import pytest

from rankdp.errors import InputError
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.release import Provenance
from rankdp.report import budgets as reports

pytestmark = pytest.mark.slow

VOTER = "one voter with at most 2 comparisons"


@pytest.fixture
def ledger(tmp_path):
    Ledger.create(tmp_path / "ledger.db", "poll", "one comparison", 1)
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", VOTER, 2)
    release = Guarantee("one comparison", Fraction(1, 3), local=False)
    with ledger.charge(release, what="=board", convert=True) as charge:
        charge.commit(Provenance.now("copeland", {}, SecureBits()))
    ledger.charge(release, what="crashed", convert=True)
    with ledger.charge(release, what="missing file", convert=True) as charge:
        charge.cancel("the file is missing")
    return ledger


def test_tables(ledger):
    table = reports.budget_table(ledger)
    assert table.heads == ["protects", "budget", "spent", "remaining epsilon", "counted by"]
    assert table.rows == [
        ["one comparison", "1", "0.666667", "0.333333", "basic"],
        [VOTER, "2", "1.33334", "0.666666", "basic"],
    ]
    rows = reports.history_table(ledger).rows
    assert len(rows) == 6
    assert rows[3][2:] == ["crashed", "reserved (counts as spent)", "0.666667 (converted)", "1.33334", VOTER]


def test_json(ledger):
    data = json.loads(reports.budget_report(ledger).json())
    assert [budget["spent_epsilon"] for budget in data["budgets"]] == ["2/3", "4/3"]
    assert [entry["state"] for entry in data["entries"]] == ["committed", "reserved", "cancelled"]
    assert data["entries"][0]["release"]["mechanism"] == "copeland"


def test_csv(ledger, tmp_path):
    reports.budget_report(ledger).write(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert tuple(rows[0]) == reports.COLUMNS
    assert (rows[1]["charged_epsilon"], rows[1]["epsilon"], rows[1]["what"]) == ("2/3", "1/3", "'=board")
    assert rows[0]["mechanism"] == "copeland"


def test_pictures_and_pages(ledger, tmp_path):
    pytest.importorskip("matplotlib")
    report = reports.budget_report(ledger)
    report.write(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "counts as spent" in report.html()
    with pytest.raises(InputError, match="the ending must be one of"):
        report.write(tmp_path / "plot.txt")
    empty = reports.budget_report(Ledger.create(tmp_path / "empty.db", "$poll", VOTER, 1))
    empty.write(tmp_path / "empty.svg")
    assert empty.csv() == ",".join(reports.COLUMNS) + "\n"
