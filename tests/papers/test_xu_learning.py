"""Figures 7 and 8 of Xu: the data are joined rightly, methods see the same people, and the linear model is Borda's."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankdp.data.rankings import Rankings
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.bits import SeededBits
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.specification import HOME
from rankdp_papers.xu import trained_models
from rankdp_papers.xu.populations import SUSHI_FIVE, simulated, sushi

pytestmark = pytest.mark.slow

TOWERS = {
    "preference": "paper",
    "items": 6,
    "users": 60,
    "epsilon": 2,
    "test_users": 50,
    "validation_users": 20,
    "hidden": 4,
}
SUSHI = {"epsilon": 0.3, "train_users": 3000}


@pytest.fixture
def home(data_directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RANKDP_DATA", str(data_directory))
    return str(data_directory)


@pytest.fixture
def torch() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")


def towers(*methods: str, repetitions: int = 2, seed: int = 1, **changed: Any) -> list[Row]:
    return trained_models.towers(Cell({**TOWERS, "methods": list(methods), **changed}, repetitions, seed))


def sushi_utility(*mechanisms: str, repetitions: int = 2, seed: int = 1, **changed: Any) -> list[Row]:
    cell = Cell({**SUSHI, "mechanisms": list(mechanisms), **changed}, repetitions, seed)
    return trained_models.sushi_utility(cell)


# -- the specifications
# ----------------------------------------------------------------------------------------------------------------------


def one_cell(name: str, repetitions: int, **changed: Any) -> tuple[dict[str, Any], list[Row]]:
    """The plain specification and the table of its first cell, grid columns included."""
    plain = tomllib.loads((HOME / "xu" / f"{name}.toml").read_text(encoding="utf-8"))
    point = {column: values[0] for column, values in plain["quick"]["grid"].items()}
    cell = Cell({**plain["settings"], **point, **changed}, repetitions, plain["seed"])
    experiment = getattr(trained_models, plain["experiment"].removeprefix("trained_models."))
    return plain, [{**point, **row} for row in experiment(cell)]


def check_columns(plain: dict[str, Any], rows: list[Row]) -> None:
    """Figure and claims speak of columns and values that are there."""
    columns = set(rows[0])
    assert all(set(row) == columns for row in rows)
    assert all(np.isfinite([row["value"], row["error"]]).all() for row in rows)
    figure = plain["figure"]
    assert {figure[part] for part in ("x", "lines", "panels", "rows") if part in figure} <= columns
    assert set(figure.get("only", {})) <= columns
    for claim in plain["claims"]:
        assert set(claim.get("select", {})) <= columns
        assert {claim["first"], claim["second"]} <= {row[claim["column"]] for row in rows}
    for grid in (plain["quick"]["grid"], plain["full"]["grid"]):
        assert set(grid) <= columns


def test_figure_7_has_the_columns_it_speaks_of(torch: None) -> None:
    plain, rows = one_cell("figure7", repetitions=2, items=6, users=60, validation_users=20, test_users=20)
    check_columns(plain, rows)
    assert [row["method"] for row in rows] == plain["settings"]["methods"]
    assert plain["full"]["grid"]["users"] == [200, 250, 300, 350]
    assert plain["full"]["grid"]["epsilon"] == [1, 2, 3, 4]


def test_figure_8_has_the_columns_it_speaks_of(home: str) -> None:
    plain, rows = one_cell("figure8", repetitions=2, epsilon=0.5)
    check_columns(plain, rows)
    for size in ("quick", "full"):
        steps = np.diff(plain[size]["grid"]["epsilon"])
        assert plain[size]["grid"]["epsilon"][0] == 0.06
        assert plain[size]["grid"]["epsilon"][-1] == 0.5
        assert np.allclose(steps, steps[0])


# -- Figure 7
# ----------------------------------------------------------------------------------------------------------------------


def test_the_papers_preferences_are_one_ranking_and_personal_ones_are_not() -> None:
    assert len(np.unique(simulated(40, 8, 3).orders, axis=0)) == 1
    assert len(np.unique(simulated(40, 8, 3, personal=True).orders, axis=0)) > 20


def test_a_cell_of_towers_is_repeatable_and_its_methods_do_not_disturb_each_other(torch: None) -> None:
    both = towers("laplace", "kendall", "kendall + debiased", "not private")
    alone = towers("kendall")
    assert alone == [both[1]]
    assert towers("kendall", seed=2) != alone
    assert both[3]["value"] > 0.8  # one ranking for all is learned from 60 users
    assert len({row["value"] for row in both}) == 4


def test_validation_users_are_private_too(torch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a tiny epsilon a ranking of 15 items that survives unchanged would be a miracle."""
    seen = []
    fit = trained_models.TwoTowerRanker.fit

    def watched(self: Any, users: Any, items: Any, rankings: Any, **known: Any) -> Any:
        seen.append((rankings, len(users), round(self.validation_fraction * len(users)), known))
        return fit(self, users, items, rankings, **known)

    monkeypatch.setattr(trained_models.TwoTowerRanker, "fit", watched)
    towers("kendall", "not private", repetitions=2, items=15, epsilon=0.01)
    (private, users, held, known), (true, *_, unknown) = seen[:2]
    assert len(private) == users == 60
    assert held == 20
    assert known["mechanism"] == "kendall"
    assert (private != true).any(axis=1).all()
    assert unknown == {}


# -- Figure 8
# ----------------------------------------------------------------------------------------------------------------------


def test_sushi_features_belong_to_the_sushi_that_is_ranked(home: str) -> None:
    """Joined here by another way: from the table of all hundred kinds, and from the file of set-A numbers."""
    directory = Path(home) / "sushi"
    with (directory / "items_b.csv").open(encoding="utf-8") as file:
        hundred = {row["name"]: row for row in csv.DictReader(file)}
    with (directory / "items_a.csv").open(encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    with (directory / "sushi3a_rankings_itemids.csv").open(encoding="utf-8") as file:
        by_number = [[names[int(number)] for number in row[1:]] for row in list(csv.reader(file))[1:]]
    features = ("style", "major_group", "oiliness", "frequency_eaten", "price_normalized", "frequency_sold")
    english = [hundred[name]["name_en"] for name in SUSHI_FIVE]
    assert english == ["tuna", "salmon roe", "egg", "fatty tuna", "cucumber roll"]
    one = sushi(home, seed=0, train=5000)
    assert one.items == pytest.approx(np.array([[float(hundred[name][f]) for f in features] for name in SUSHI_FIVE]))
    shuffled = np.random.default_rng(0).permutation(5000)
    wanted = [[SUSHI_FIVE.index(name) for name in by_number[row] if name in SUSHI_FIVE] for row in shuffled[:500]]
    assert one.orders[:500].tolist() == wanted
    assert sushi(home, seed=0).orders.tolist() == one.orders[:3000].tolist()


@pytest.mark.parametrize("epsilon", [None, 0.5, 2])
def test_the_linear_model_sorts_by_borda_count(home: str, epsilon: float | None) -> None:
    """Its features can give five items any scores, and in balanced data the logistic fit orders items by their wins."""
    items, orders = trained_models._plates(home)
    assert np.linalg.matrix_rank(items) == 4
    assert items.std(axis=0) == pytest.approx(1)
    if epsilon is not None:
        orders = mechanism("kendall", 5, epsilon).sample(orders, SeededBits(3))
    mean_ranks = np.argsort(orders, axis=1).mean(axis=0)
    scores = items @ trained_models._one_ranking(items, trained_models._labels(orders))
    assert np.argsort(-scores).tolist() == np.argsort(mean_ranks).tolist()


@pytest.mark.parametrize("debias", [False, "always"])
def test_the_linear_model_is_the_librarys(home: str, debias: bool | str) -> None:
    pytest.importorskip("sklearn")
    from rankdp.learn import LinearPairwiseRanker

    one = sushi(home, seed=4)
    items, _ = trained_models._plates(home)
    noisy = mechanism("reinsertion", 5, 1)
    synthetic = noisy.sample(one.orders, SeededBits(4))
    whole = LinearPairwiseRanker(interaction=False, debias=debias)
    whole.fit(one.users, one.items, synthetic, mechanism=noisy.name, epsilon=1)
    ours = items @ trained_models._one_ranking(items, trained_models._labels(synthetic, noisy if debias else None))
    theirs = whole.predict(one.users[:1])[0]
    assert ours - ours.mean() == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_a_cell_of_sushi_is_repeatable_and_its_mechanisms_do_not_disturb_each_other(home: str) -> None:
    both = sushi_utility("laplace", "kendall")
    assert sushi_utility("kendall") == both[2:]
    assert sushi_utility("kendall", seed=2) != both[2:]
    assert [(row["method"], row["labels"]) for row in both[2:]] == [
        ("kendall", "as released"),
        ("kendall", "debiased"),
    ]


def test_nothing_is_lost_where_there_is_next_to_no_noise(home: str) -> None:
    assert all(row["value"] == pytest.approx(1, abs=1e-3) for row in sushi_utility("ulam", epsilon=12))
    assert all(row["value"] < 0.999 for row in sushi_utility("laplace", epsilon=0.02, repetitions=4))


def test_the_utility_is_a_ratio_of_means_with_the_error_of_their_difference() -> None:
    best = [0.7, 0.8, 0.75]
    row = trained_models._ratio_row([0.9 * one for one in best], best)
    assert row["value"] == pytest.approx(0.9)
    assert row["error"] == pytest.approx(0, abs=1e-15)
    constant = trained_models._ratio_row([0.6, 0.7, 0.8], [0.5, 0.5, 0.5])
    assert constant["value"] == pytest.approx(1.4)
    assert constant["error"] == pytest.approx(0.2 / np.sqrt(3))


def test_every_noise_of_figure_8_can_be_undone_at_every_epsilon_of_its_grids() -> None:
    plain = tomllib.loads((HOME / "xu" / "figure8.toml").read_text(encoding="utf-8"))
    table = Rankings.from_orders([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    for epsilon in plain["full"]["grid"]["epsilon"]:
        for name in plain["settings"]["mechanisms"]:
            noisy = trained_models.built(name, 5, epsilon)
            if "tiers" in name:  # what is within a tier is lost: these lines have no debiased labels
                continue
            wins = trained_models._labels(table.orders, noisy).wins[0]
            law = noisy.position_matrix()
            assert law @ wins == pytest.approx(np.arange(4, -1, -1), abs=1e-5)


def test_figure_8_needs_no_learning_packages_and_figure_7_says_that_it_does(home: str) -> None:
    script = """
import sys
sys.modules["sklearn"] = sys.modules["torch"] = sys.modules["threadpoolctl"] = None
from rankdp.errors import Unsupported
from rankdp_papers.experiment import Cell
from rankdp_papers.xu import trained_models
cell = Cell({"epsilon": 0.3, "train_users": 3000, "mechanisms": ["kendall"]}, 2, 1)
assert len(trained_models.sushi_utility(cell)) == 2
cell = Cell({"preference": "paper", "items": 5, "users": 30, "epsilon": 1, "test_users": 9, "validation_users": 9,
             "hidden": 4, "methods": ["kendall"]}, 2, 1)
try:
    trained_models.towers(cell)
except Unsupported as reason:
    print("refused:", reason)
"""
    environment = {**os.environ, "RANKDP_DATA": home}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: ")
    assert "rankdp[learn]" in done.stdout
