"""The runner: what is done is kept, what is interrupted goes on, and two processes find what one does."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from rankdp.errors import InputError, Unsupported
from rankdp_papers import runner
from rankdp_papers.command import _duration
from rankdp_papers.experiment import Cell, Row, mean_row
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import HOME, Claim, FigurePlan, Run, Specification, load, names

pytestmark = pytest.mark.slow


def specification(**other: object) -> Specification:
    quick = Run(5, {"size": [1, 2, 3], "kind": ["a", "b"]})
    claim = Claim("Squares grow", "paper", "trend", options={"along": "size", "direction": "up"})
    figure = FigurePlan("size", "kind")
    words = ("Squares", "Figure 0", "fake.squares", "Done.", "Seen.")
    return dataclasses.replace(Specification("xu/fake", "xu", *words, quick, quick, [claim], figure), **other)


class Calls:
    """An experiment that counts its calls and may fail at one of them."""

    def __init__(self, fail_at: int | None = None, problem: Exception | None = None) -> None:
        self.count, self.fail_at, self.problem = 0, fail_at, problem

    def __call__(self, cell: Cell) -> list[Row]:
        self.count += 1
        if self.count == self.fail_at:
            assert self.problem is not None
            raise self.problem
        noise = cell.generator("noise").normal(size=cell.repetitions)
        return [mean_row(cell["size"] ** 2 + 0.01 * noise, measure="square")]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Calls], Calls]:
    def install(calls: Calls) -> Calls:
        monkeypatch.setattr(runner, "_function", lambda paper, name: calls)
        return calls

    return install


def run(one: Specification, cache: Path) -> Reproduced:
    (result,) = runner.run([one], "quick", cache, jobs=1)
    return result


def test_a_table_has_the_grid_and_the_rows(use, tmp_path):
    use(Calls())
    result = run(specification(), tmp_path)
    assert [(row["size"], row["kind"]) for row in result.rows] == [(s, k) for s in (1, 2, 3) for k in "ab"]
    assert set(result.rows[0]) == {"size", "kind", "measure", "value", "error"}
    assert result.rows[2]["value"] == pytest.approx(4, abs=0.1)


def test_finished_cells_are_kept(use, tmp_path):
    calls = use(Calls())
    first = run(specification(), tmp_path)
    again = run(specification(title="Another title", claims=[]), tmp_path)
    assert (calls.count, again.rows) == (6, first.rows)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"settings": {"more": 1}}, {"experiment": "fake.cubes"}, {"quick": Run(6, {"size": [1]})}]
)
def test_what_changes_the_numbers_runs_again(use, tmp_path, change):
    calls = use(Calls())
    run(specification(), tmp_path)
    changed = dataclasses.replace(specification(), **change)
    run(changed, tmp_path)
    assert calls.count == 6 + len(changed.cells("quick"))


def test_another_library_runs_everything_again(use, tmp_path, monkeypatch):
    calls = use(Calls())
    run(specification(), tmp_path)
    monkeypatch.setattr(runner, "_library", lambda: "another")
    run(specification(), tmp_path)
    assert calls.count == 12


def test_an_interrupted_run_goes_on(use, tmp_path):
    use(Calls(fail_at=4, problem=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(specification(), tmp_path)
    rest = use(Calls())
    interrupted = run(specification(), tmp_path)
    assert rest.count == 3
    whole = run(specification(), tmp_path / "elsewhere")
    assert interrupted.rows == whole.rows


def test_a_torn_file_is_run_again(use, tmp_path):
    calls = use(Calls())
    whole = run(specification(), tmp_path)
    torn = sorted(tmp_path.glob("*.json"))[0]
    torn.write_bytes(torn.read_bytes()[:20])
    assert run(specification(), tmp_path).rows == whole.rows
    assert calls.count == 7


def test_a_refusal_leaves_one_figure_out(use, tmp_path):
    use(Calls(fail_at=2, problem=Unsupported("it needs an extra")))
    result = run(specification(), tmp_path)
    assert (result.missing, result.rows) == ("it needs an extra", [])


def test_missing_data_are_said_before_anything_runs(use, tmp_path, monkeypatch):
    calls = use(Calls())
    monkeypatch.delenv("RANKDP_DATA", raising=False)
    assert "RANKDP_DATA must name the directory that holds sushi" in str(
        run(specification(data=["sushi"]), tmp_path).missing
    )
    monkeypatch.setenv("RANKDP_DATA", str(tmp_path))
    assert f"holds sushi/, got {tmp_path}" in str(run(specification(data=["sushi"]), tmp_path).missing)
    assert calls.count == 0


def test_a_number_that_is_none_is_a_bug_and_said(use, tmp_path):
    use(lambda cell: [{"value": float("nan"), "error": 0.0}])
    with pytest.raises(ValueError, match="a row is not finite"):
        run(specification(), tmp_path)


def test_an_unknown_experiment_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"experiment must be module.function of rankdp_papers.xu, got 'fake.squares'"):
        runner._function("xu", "fake.squares")


def test_two_processes_find_what_one_does(tmp_path):
    from rankdp_papers.specification import load

    one = load("xu/figure2")
    small = Run(20, {name: points[:2] for name, points in one.quick.grid.items()})
    small_one = dataclasses.replace(one, quick=small)
    before = dict(os.environ)
    (alone,) = runner.run([small_one], "quick", tmp_path / "one", jobs=1)
    (together,) = runner.run([small_one], "quick", tmp_path / "two", jobs=2)
    assert together.rows == alone.rows
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 seconds"), (80, "80 seconds"), (150, "2 minutes"), (9000, "2 hours")]
)
def test_durations_in_words(seconds: float, words: str):
    assert _duration(seconds) == words


def test_the_time_is_what_is_left_of_the_measured_time(tmp_path: Path):
    one = load("cai/erratum-generator")
    whole = runner.expected_seconds([one], "quick", tmp_path, 1)
    assert whole > 1
    assert runner.expected_seconds([one], "quick", tmp_path, 2) == whole / 2
    assert runner.expected_seconds([one], "full", tmp_path, 1) > 5 * whole  # five times the repetitions, more items
    cells = one.cells("quick")
    for cell in cells[: len(cells) // 2]:
        (tmp_path / f"{runner._key(one, cell)}.json").touch()
    assert runner.expected_seconds([one], "quick", tmp_path, 1) == pytest.approx(whole / 2)
    assert runner.expected_seconds([dataclasses.replace(one, name="xu/own")], "quick", tmp_path, 1) == 0


def test_every_figure_has_a_measured_time():
    measured = tomllib.loads((HOME / "seconds.toml").read_text("utf-8"))
    assert list(measured) == names()
    assert min(measured.values()) > 0
