"""`rankdp reproduce`: a directory of tables, pictures and verdicts, and words that a person can use."""

from __future__ import annotations

import contextlib
import csv
import html
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from pyarrow import parquet
from support import command

from rankdp import cli
from rankdp_papers.specification import names

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("reproduce")]  # one worker, so that the report is made once

pytest.importorskip("matplotlib")

OWN = """
paper = "xu"
title = "Pairs kept by short rankings"
source = "Figure 0"
experiment = "kept_pairs.concordance"
setting = "What was done."
seen = "What we see."
[quick]
repetitions = 500
grid = {items = [3], epsilon = [0.5, 2]}
[full]
repetitions = 200000
grid = {items = [3, 100], epsilon = [0.5, 2]}
[figure]
x = "epsilon"
lines = "method"
only = {measure = "simulated"}
[[claims]]
text = "Kendall keeps more than Laplace"
by = "paper"
where = "Lemma 4"
check = "above"
select = {measure = "exact"}
column = "method"
first = "kendall"
second = "laplace"
"""


def rankdp(*arguments: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = command("reproduce", *map(str, arguments), cwd=cwd)
    assert not check or done.returncode == 0, done.stderr
    return done


def test_list_names_everything(tmp_path: Path):
    shown = rankdp("--list", cwd=tmp_path).stdout
    assert all(name in shown for name in names())
    assert not any(tmp_path.iterdir())


def test_the_command_line_works_without_the_papers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    context = click.Context(cli.cli)
    assert "reproduce" not in cli.cli.list_commands(context)
    assert cli.cli.get_command(context, "reproduce") is None
    assert cli.cli.get_command(context, "privatize") is not None


def test_an_unknown_name_is_refused(tmp_path: Path):
    done = rankdp("xu/figure3", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "got 'xu/figure3'" in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    home = tmp_path_factory.mktemp("reproduced")
    (home / "own.toml").write_text(OWN)
    return home, rankdp("own.toml", "--output", "out", "--markdown", "pages", cwd=home)


def test_everything_is_written(reproduced):
    home, done = reproduced
    found = {str(path.relative_to(home / "out")) for path in (home / "out").rglob("*") if path.is_file()}
    assert {name for name in found if not name.startswith("cache")} == {
        *(f"xu/own.{ending}" for ending in ("parquet", "csv", "png", "svg")),
        *("claims.csv", "report.html"),
    }
    pages = {str(path.relative_to(home / "pages")) for path in (home / "pages").rglob("*") if path.is_file()}
    tables = {"tables/claims.csv", "tables/runs.json", "tables/xu-own.csv"}
    assert pages == {"index.md", "coverage.md", "xu.md", "xu-own.png", *tables}
    assert "xu/own: holds 1 (" in done.stderr
    assert "Kendall keeps more than Laplace" in done.stdout


def test_tables_agree(reproduced):
    home, _ = reproduced
    table = parquet.read_table(home / "out" / "xu" / "own.parquet").to_pylist()
    with (home / "out" / "xu" / "own.csv").open() as file:
        plain = list(csv.DictReader(file))
    assert [float(row["value"]) for row in plain] == [row["value"] for row in table]
    exact = {(row["epsilon"], row["method"]): row["value"] for row in table if row["measure"] == "exact"}
    with (home / "out" / "claims.csv").open() as file:
        (claim,) = csv.DictReader(file)
    smallest = min(exact[epsilon, "kendall"] - exact[epsilon, "laplace"] for epsilon in (0.5, 2.0))
    assert float(claim["number"]) == pytest.approx(smallest)
    assert claim["verdict"] == "holds"


def test_the_page_loads_nothing(reproduced):
    home, _ = reproduced
    page = (home / "out" / "report.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert 'src="http' not in page
    assert "Claims of the paper: 1 hold, 0 do not hold, 0 undecided." in html.unescape(page)
    assert all(words in page for words in ("What was done.", "What we see.", "✔ holds"))


def test_json_and_a_second_run_that_computes_nothing(reproduced):
    home, _ = reproduced
    kept = {path: path.stat().st_mtime_ns for path in (home / "out" / "cache").iterdir()}
    (said,) = json.loads(rankdp("own.toml", "-o", "out", "--json", cwd=home).stdout)
    assert (said["name"], said["claims"][0]["verdict"], said["missing"]) == ("xu/own", "holds", None)
    assert {path: path.stat().st_mtime_ns for path in (home / "out" / "cache").iterdir()} == kept


def test_pages_are_drawn_again_from_their_tables(tmp_path: Path):
    tables = Path(__file__).parents[2] / "docs" / "papers" / "tables"
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "xu-lemmas-algorithm.csv").write_bytes((tables / "xu-lemmas-algorithm.csv").read_bytes())
    (tmp_path / "tables" / "runs.json").write_text('{"xu/lemmas-algorithm": {"size": "quick", "core_seconds": 1}}')
    rankdp("--redraw", "--markdown", ".", cwd=tmp_path)
    assert "Algorithm 1 draws from Mallows' model" in (tmp_path / "xu.md").read_text("utf-8")
    refused = rankdp("--redraw", cwd=tmp_path, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "redraw needs the directory of --markdown" in refused.stderr
    refused = rankdp("--redraw", "--markdown", "empty", cwd=tmp_path, check=False)
    assert "empty: there are no tables to draw again" in refused.stderr
    assert not (tmp_path / "empty").exists()


def test_missing_data_leave_one_figure_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RANKDP_DATA", str(tmp_path))
    (tmp_path / "own.toml").write_text("data = ['sushi']\n" + OWN)
    done = rankdp("own.toml", "-o", "out", cwd=tmp_path)
    assert f"xu/own: left out, RANKDP_DATA must name a directory that holds sushi/, got {tmp_path}" in done.stderr
    assert "Left out" in (tmp_path / "out" / "report.html").read_text()


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path):
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "out").write_text("a file")
    done = rankdp("own.toml", "-o", "out", cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "out" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupt_keeps_what_is_done_and_leaves_nobody_behind(tmp_path: Path, number: signal.Signals):
    (tmp_path / "own.toml").write_text(OWN)
    started = [
        sys.executable,
        "-c",
        "from rankdp.cli import main; main()",
        "reproduce",
        "own.toml",
        "--full",
        "-j",
        "2",
    ]
    if number == signal.SIGTERM:  # as in the background of a script
        started = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *started]
    with subprocess.Popen(started, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 240
        while not list((tmp_path / "reproduction").glob("cache/*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said == (
        "rankdp: interrupted; what was done is kept in reproduction, the same command continues from there\n"
    )
    assert not (tmp_path / "reproduction" / "report.html").exists()
    deadline = time.monotonic() + 60
    while running_in_session(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running_in_session(leader: int) -> list[str]:
    """What still runs of the session that a process led."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            if int(session) == leader and state not in "ZX":
                found.append(path.parent.name)
    return found
