"""`rankdp scores` as a person meets it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support import command

from rankdp.cli.options import NOISE
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS

pytestmark = pytest.mark.slow


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "grades.csv").write_text("name,score,town\nann,4.5,Ulm\nbob,2,Bonn\n")
    return tmp_path


def scores(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return command("scores", *arguments, cwd=cwd)


def test_words_go_to_stderr_and_scores_to_the_file(directory: Path) -> None:
    run = scores("grades.csv", "out.csv", "--epsilon", "2", "--bounds", "1", "6", cwd=directory)
    assert (run.returncode, run.stdout) == (0, "")
    assert "2 scores, laplace noise" in run.stderr
    assert "columns left out, because nothing protects them: town" in run.stderr
    assert "noise of standard deviation 3.54 on every score, bounds 1 to 6" in run.stderr
    assert "Protects one score" in run.stderr
    assert (directory / "out.csv").read_text().startswith("name,score\nann,")
    assert json.loads((directory / "out.csv.release.json").read_text())["guarantee"]["epsilon"] == "2"


def test_every_noise(directory: Path) -> None:
    assert NOISE.choices == tuple(SCORE_MECHANISMS)
    extra = {
        "gaussian": ["-e", "1", "--delta", "1e-6"],
        "generalized-normal": ["-e", "1", "--p", "0.5"],
        "ball": ["--delta", "0.1"],
    }
    for noise in SCORE_MECHANISMS:
        options = extra.get(noise, ["-e", "1"])
        run = scores(
            "grades.csv",
            "out.json",
            "--bounds",
            "-1",
            "6",
            "--noise",
            noise,
            *options,
            "--json",
            "--force",
            cwd=directory,
        )
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["rows"] == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-e", "1"], "--bounds must be given"),
        (["-e", "1", "--bounds", "1", "4"], "the score of 'ann' must lie within the bounds 1 to 4, got 4.5"),
        (["-e", "nan", "--bounds", "1", "6"], "epsilon must be a finite number above 0, got nan"),
        (["-e", "1", "--bounds", "1", "6", "--noise", "ball"], "epsilon"),
        (["-e", "1", "--bounds", "1", "6", "--score-column", "mark"], "mark"),
    ],
)
def test_refusals(directory: Path, options: list[str], sentence: str) -> None:
    run = scores("grades.csv", "out.csv", *options, cwd=directory)
    assert run.returncode == 1
    assert run.stderr.startswith("rankdp: ")
    assert sentence in run.stderr
    assert run.stderr.count("\n") == 1
    assert sorted(path.name for path in directory.iterdir()) == ["grades.csv"]
