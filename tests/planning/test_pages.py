"""A plan on paper and on the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.planning.plan import plan
from rankdp.planning.plan_report import plan_report, smooth

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made():
    return plan("ranking", items=6, pairs=0.8)


def test_the_table_has_a_row_for_each_option(made):
    table, promises = plan_report(made).tables
    assert len(promises.rows) == 3
    assert table.heads[:2] == ["option", "epsilon needed"]
    assert table.heads[2].startswith("at epsilon ")
    assert [row[0] for row in table.rows] == [choice.name for choice in made.choices]
    assert all(len(row) == len(table.heads) for row in table.rows)
    table, _ = plan_report(plan("ranking", items=6, epsilon=1)).tables
    assert "epsilon needed" not in table.heads
    assert all(len(row) == len(table.heads) for row in table.rows)


def test_html_stands_alone(made):
    text = plan_report(made).html()
    assert made.explain().split(".")[0] in text
    assert text.count("<svg") == 1
    assert text.count("<script") == 1  # its own, which sorts tables
    assert "src=" not in text
    for choice in made.choices:
        assert f">{choice.name}<" in text


@pytest.mark.parametrize("ending", [".png", ".html", ".json", ".csv"])
def test_files(made, tmp_path, ending):
    path = tmp_path / f"plan{ending}"
    plan_report(made).write(path)
    content = path.read_bytes()
    if ending == ".png":
        assert content.startswith(b"\x89PNG")
    elif ending == ".json":
        assert json.loads(content)["recommended"] == made.recommended.name
    elif ending == ".csv":
        assert content.decode().splitlines()[1].startswith(made.recommended.name)
    else:
        assert content.startswith(b"<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("situation", "asked"),
    [
        ("ranking", {"items": 10, "exact": 0.5}),
        ("scores", {"items": 20, "exact": 0.9}),
        ("comparisons", {"items": 30, "comparisons": 5000, "protect": "outcome", "half_width": 0.4}),
    ],
)
def test_lines_pass_near_what_was_not_computed(situation, asked):
    made = plan(situation, **asked)
    for name, values in made.curves.items():
        if np.isnan(values).any():
            continue
        x, y = smooth(made.measure, made.epsilons, values)
        steps = np.diff(y) if made.measure.share else -np.diff(y)
        assert steps.min() > -1e-9
        for epsilon in np.sqrt(np.array(made.epsilons[1:]) * made.epsilons[:-1]).tolist():
            truth = made.situation.accuracy(name, made.measure, epsilon, made.request)
            drawn = float(np.interp(epsilon, x, y))
            assert drawn == (pytest.approx(truth, abs=0.04) if made.measure.share else pytest.approx(truth, rel=0.08))


def run(*arguments):
    return CliRunner().invoke(cli, ["plan", *arguments])


def test_on_the_command_line(tmp_path):
    told = run("ranking", "--items", "8", "--pairs", "0.9", "-o", str(tmp_path / "plan.json"))
    assert told.exit_code == 0, told.output
    assert "90.0% of pairs in order needs an epsilon of about" in " ".join(told.output.split())
    assert json.loads((tmp_path / "plan.json").read_text())["measure"] == "pairs"
    told = run(
        "comparisons",
        "--items",
        "8",
        "--comparisons",
        "900",
        "--protect",
        "voter",
        "--max-per-voter",
        "5",
        "-e",
        "2",
        "--json",
    )
    assert json.loads(told.output)["protects"] == "one voter"
    told = run("scores", "--items", "8", "--bounds", "1", "5", "--half-width", "0.5", "--json")
    assert json.loads(told.output)["subject"] == "8 scores between 1 and 5"


def test_refusals_on_the_command_line(tmp_path):
    path = tmp_path / "plan.docx"
    told = run("ranking", "--items", "8", "--pairs", "0.9", "-o", str(path))
    assert isinstance(told.exception, InputError)
    assert not path.exists()
    unasked = run("ranking", "--items", "8")
    assert unasked.exit_code == 2
    assert "Missing: --epsilon NUMBER, or one of --pairs, --exact, --overlap, --win-rate." in unasked.stderr
    asked_twice = run("ranking", "--items", "8", "--pairs", "0.9", "--epsilon", "1")
    assert str(asked_twice.exception) == "give only one of --epsilon and --pairs"
    assert run("ranking").exit_code == 2
