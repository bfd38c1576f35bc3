"""Reports on paper, and audits of commands."""

import json
import shlex
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from support import UNSEEDED, half_noise, seeded

import rankdp
from rankdp.audit import CommandSampler, audit_command, audit_independence, audit_mechanism, write_audit
from rankdp.cli import cli
from rankdp.errors import InputError

pytestmark = pytest.mark.slow

COMMAND = """
import random, sys
calls = open(sys.argv[0] + ".calls", "a")
random.seed(calls.tell())
calls.write(".")
lines = open(sys.argv[1]).read().splitlines()
out = open(sys.argv[2], "w")
out.write(lines[0] + chr(10))
for line in lines[1:]:
    cells = line.split(",")
    if random.random() < float(sys.argv[3]):
        random.shuffle(cells)
    out.write(",".join(cells) + chr(10))
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "shuffle.py"
    path.write_text(COMMAND, encoding="utf-8")
    return [sys.executable, str(path), "{in}", "{out}"]


# -- reports -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reports():
    mechanism = rankdp.mechanism("kendall", 4, 1)
    return {
        "honest": audit_mechanism(mechanism, draws=20_000, bits=rankdp.SeededBits(1)),
        "mutant": audit_mechanism(half_noise(mechanism), draws=20_000, bits=rankdp.SeededBits(1)),
    }


def test_a_report_holds_all_audits(reports):
    assert [one.kind for one in reports["honest"].audits] == ["exact", "statistical", "independence"]
    assert reports["honest"].holds
    assert not reports["mutant"].holds
    assert reports["honest"].explain().count("\n") == 2
    data = json.loads(json.dumps(reports["mutant"].to_dict()))
    assert data["holds"] is False
    assert data["claimed_epsilon"] == "1"
    assert [one["holds"] for one in data["audits"]] == [False, False, True]


def test_html_stands_alone(reports):
    for name, words in (("honest", "Audit: no violation found"), ("mutant", "Audit: violation")):
        text = reports[name].report().html()
        assert words in text
        assert "<svg" in text
        assert text.count("<script") == 1  # its own, which sorts tables
        assert "src=" not in text
        assert "is no proof of the claim" in text
    assert "class=note" in reports["mutant"].report().html()
    assert "class=warning" not in reports["honest"].report().html()


@pytest.mark.parametrize("ending", [".png", ".html", ".json", ".csv"])
def test_writing(reports, ending, tmp_path):
    path = tmp_path / f"audit{ending}"
    write_audit(reports["mutant"], path)
    content = path.read_bytes()
    assert content.startswith({".png": b"\x89PNG", ".html": b"<!doctype", ".json": b"{", ".csv": b"shown_by,"}[ending])
    with pytest.raises(InputError, match="the ending must be one of"):
        write_audit(reports["mutant"], tmp_path / "audit.txt")


def test_an_infinite_epsilon_has_a_bar(tmp_path):
    from audit_mutants import FloatKendall

    report = audit_mechanism(FloatKendall(3, 200), draws=0)
    assert report.bars() == [("exact", float("inf"))]
    write_audit(report, tmp_path / "audit.png")


def test_what_a_report_is_made_of(request):
    long = rankdp.mechanism("kendall", 9, 1)
    assert [one.kind for one in audit_mechanism(long, draws=2000, bits=seeded(request)).audits] == [
        "statistical",
        "independence",
    ]
    with pytest.raises(InputError, match="items must be an integer from 2 to 6, got 9"):
        audit_mechanism(long, exact=True)
    with pytest.raises(InputError, match="draws must be above 0 where there is no exact audit"):
        audit_mechanism(long, draws=0)
    with pytest.raises(InputError, match="mechanism must be one for rankings"):
        audit_mechanism(object())


# -- commands ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shuffled", "holds"), [("1", True), ("0.1", False)])
def test_a_command(program, shuffled, holds):
    found = audit_command([*program, shuffled], items=3, draws=6000, claimed_epsilon=1)
    assert found.holds is holds
    assert found.subject.endswith(f"{{in}} {{out}} {shuffled}")


@pytest.mark.parametrize(("shuffled", "code"), [("1", 0), ("0.1", 1)])
def test_the_exit_code_is_the_verdict(program, shuffled, code, tmp_path):
    command = shlex.join([*program, shuffled])
    out = tmp_path / "audit.json"
    told = CliRunner().invoke(
        cli, ["audit", "--items", "3", "-e", "1", "--draws", "6000", "--command", command, "-o", str(out)]
    )
    assert told.exit_code == code, told.output
    assert ("Audit: violation" in told.stdout) == bool(code)
    assert json.loads(out.read_text())["holds"] is not bool(code)


def test_a_commands_rows_are_checked_for_independence(program):
    assert audit_independence(CommandSampler([*program, "0.5"]), np.arange(3), np.array([1, 0, 2]), draws=1000).holds


OURS = [sys.executable, "-m", "rankdp", "privatize", "{in}", "{out}", "--epsilon", "1", "--mechanism", "kendall"]


def test_our_own_command_line_is_not_better_than_it_claims():
    found = audit_command(OURS, items=2, draws=6000, claimed_epsilon="0.5")
    assert not found.holds


@pytest.mark.long
def test_our_own_command_line():
    found = audit_command(OURS, items=3, draws=12_000, claimed_epsilon=1, confidence=1 - UNSEEDED)
    assert found.holds
    assert found.epsilon_low > 0.7
    assert not audit_command(OURS, items=3, draws=6000, claimed_epsilon="0.5").holds


def test_another_format(tmp_path):
    def write(path, secret, count):
        path.write_text(f"{secret} {count}", encoding="utf-8")

    script = "import sys; s, n = open(sys.argv[1]).read().split(); open(sys.argv[2], 'w').write((s + ' ') * int(n))"
    sampler = CommandSampler(
        [sys.executable, "-c", script, "{in}", "{out}"],
        ending=".txt",
        write=write,
        read=lambda path: np.array(path.read_text("utf-8").split(), dtype=int),
    )
    assert sampler(7, 3).tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["shuffle", "{in}"], "command must be a list of words with {in} and {out}"),
        (["no-such-program", "{in}", "{out}"], "command must be a program that can be run, got 'no-such-program'"),
        ([sys.executable, "-c", "import sys; sys.exit('out of ink')", "{in}", "{out}"], "ended with 1: out of ink"),
        ([sys.executable, "-c", "", "{in}", "{out}"], "command must write the file {out}"),
        ([sys.executable, "-c", "import time; time.sleep(9)", "{in}", "{out}"], "command must end within 0.5 seconds"),
        (
            [
                sys.executable,
                "-c",
                "import sys; open(sys.argv[2], 'w').writelines(open(sys.argv[1]).readlines()[:5])",
                "{in}",
                "{out}",
            ],
            "command must write as many rows as it reads, 20, got 4",
        ),
    ],
)
def test_commands_that_fail(command, words):
    with pytest.raises(InputError, match=words):
        CommandSampler(command, timeout=0.5 if "sleep" in str(command) else 30)([0, 1, 2], 20)


def test_refusals():
    with pytest.raises(InputError, match="timeout must be a number of seconds above 0, got 0"):
        CommandSampler(["{in}", "{out}"], timeout=0)
    with pytest.raises(InputError, match="items must be an integer of at least 2, got 1"):
        audit_command(["{in}", "{out}"], items=1, draws=1000, claimed_epsilon=1)
