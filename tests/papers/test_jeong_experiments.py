"""Jeong's figures: experiments against closed forms, the errata's essential numbers, every specification run small."""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace
from rankdp.theory.recovery import concordance
from rankdp.theory.score_laws import Uniform
from rankdp_papers.experiment import Cell
from rankdp_papers.jeong import misprints, sorting_error, tradeoffs
from rankdp_papers.jeong import partial as partial_recovery
from rankdp_papers.jeong.tradeoffs import p_best
from rankdp_papers.specification import load, names
from rankdp_papers.verdicts import judge, select

pytestmark = pytest.mark.slow

SPECIFICATIONS = [name for name in names() if name.startswith("jeong/")]
FEW = 400


def run(experiment, repetitions=1, seed=1, **values):
    return experiment(Cell(values, repetitions, seed))


def value(rows, **wanted):
    (row,) = select(rows, wanted)
    return row["value"]


# -- every specification ----------------------------------------------------------------------------------------------


def small_table(name):
    """The rows of one cell, the first of the quick grid, with the grid's columns as the runner adds them."""
    specification = load(name)
    cell = specification.cells("quick")[0]
    few = Cell(cell.values, min(cell.repetitions, FEW), cell.seed)
    module, _, function = specification.experiment.rpartition(".")
    rows = getattr(import_module(f"rankdp_papers.jeong.{module}"), function)(few)
    grid = {column: cell.values[column] for column in specification.quick.grid}
    return specification, grid, [{**grid, **row} for row in rows]


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_a_cell_has_the_columns_that_are_asked_for(name):
    specification, grid, rows = small_table(name)
    columns = {name for row in rows for name in row}
    assert all(math.isfinite(row["value"]) and row["error"] >= 0 for row in rows)
    assert all(type(item) in (int, float, str) for row in rows for item in row.values())
    assert not set(grid) & {"method", "measure", "value", "error"}
    figure = specification.figure
    if figure is not None:
        assert {figure.x, figure.lines, figure.panels, figure.rows} - {None, ""} <= columns
        assert set(figure.only) <= columns
        assert select(rows, figure.only)
    for claim in specification.claims:
        wanted = {*claim.select, *(claim.options[key] for key in ("along", "column") if key in claim.options)}
        assert wanted <= columns, claim.text
    assert "TODO" not in specification.seen


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_claims_select_values_that_both_grids_have(name):
    specification = load(name)
    for run_size in (specification.quick, specification.full):
        for claim in specification.claims:
            for column, wanted in claim.select.items():
                if column in run_size.grid and wanted not in ("smallest", "largest"):
                    listed = wanted if isinstance(wanted, list) else [wanted]
                    assert set(listed) <= set(run_size.grid[column]), (claim.text, column)


def test_a_cell_is_the_same_again_and_another_seed_is_not():
    values = {"noise": "laplace", "sigma": 0.3, "items": 6, "width": 10.0, "p": 0.5, "staircase_epsilon": 4.0}
    first = run(sorting_error.against_sigma, FEW, 7, **values)
    assert first == run(sorting_error.against_sigma, FEW, 7, **values)
    assert first != run(sorting_error.against_sigma, FEW, 8, **values)


# -- figures 2 and 3 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [Gaussian(), Laplace()])
def test_two_scores_have_a_closed_form(noise):
    """For two scores P_e is 1 minus the expected share of pairs in order."""
    draws, random = 200_000, np.random.default_rng(5)
    rows = sorting_error.compare(2, noise, 0.2, Uniform(), 2, draws, random)
    exact = 1 - concordance(noise, 0.2, Uniform())
    (simulated,) = select(rows, {"method": "simulated"})
    assert simulated["value"] == pytest.approx(exact, abs=5 * simulated["error"])
    assert simulated["error"] == pytest.approx(math.sqrt(exact * (1 - exact) / draws), rel=0.02)
    assert value(rows, method="integrated", measure="error probability") == pytest.approx(exact, abs=1e-4)


def test_orders_add_up_and_distances_are_to_the_simulation():
    sigmas = {"low noise": {"10": [0.002]}}
    rows = run(sorting_error.near_zero, 20_000, items=10, law="uniform", range="low noise", sigmas=sigmas)
    first, second = (value(rows, method=f"{order} order", measure="error probability") for order in ("first", "second"))
    assert first == pytest.approx(90 / math.sqrt(math.pi) * 0.002)  # Example 3.8
    c2 = -0.5 * 10 * 81 - 0.108998 * 720 - 5040 / (2 * math.pi)
    assert second == pytest.approx(first + c2 * 0.002**2, rel=1e-6)
    simulated = value(rows, method="simulated")
    for measure, expected in (
        ("minus simulated", first - simulated),
        ("distance", abs(first - simulated)),
        ("over simulated", first / simulated),
    ):
        assert value(rows, method="first order", measure=measure) == pytest.approx(expected)


# -- trade-offs -------------------------------------------------------------------------------------------------------


def test_closed_forms_of_the_trade_offs():
    """Examples 4.7 and 4.10 for 20 scores, and (35) at p = 1/2: E|V|/(2 h) = 6.5 times that of Laplace noise."""
    laplace = run(tradeoffs.laplace, items=20, alpha=math.inf, epsilon=50.0, staircase_up_to=30.0)
    assert value(laplace, method="laplace + first order (29)", measure="error probability") == pytest.approx(285 / 50)
    gaussian = run(tradeoffs.gaussian, items=20, alpha=8, epsilon=1e4)
    expected = 380 / math.sqrt(2 * math.pi) * math.sqrt(8 / 1e4)
    assert value(gaussian, method="gaussian + first order") == pytest.approx(expected)
    powers = run(tradeoffs.generalized_normal, items=20, epsilon=2.0, powers=[0.5], smallest=1e-4)
    assert value(powers, measure="(35) by p", p=1.0) == pytest.approx(285 / 2)
    assert value(powers, measure="(35) by p", p=0.5) == pytest.approx(6.5 * 285 / 4)


@pytest.fixture
def quick_errors(monkeypatch):
    """Stairs take a minute to the last digit."""
    quick = partial(sorting_error.order_probability_iid, most_cells=2048)
    monkeypatch.setattr(sorting_error, "order_probability_iid", quick)


@pytest.mark.usefixtures("quick_errors")
def test_table_1_has_its_slopes_and_the_everyday_error_none():
    specification = load("jeong/table1")
    rows = [
        {"noise": cell["noise"], **row} for cell in specification.cells("quick") for row in tradeoffs.exponents(cell)
    ]
    assert [judge(claim, rows).answer for claim in specification.claims] == ["holds"] * 3
    wrong = [{**row, "value": row["value"] ** 1.1} for row in rows]
    assert judge(specification.claims[0], wrong).answer == "does not hold"


@pytest.mark.usefixtures("quick_errors")
def test_staircase_noise_beats_the_best_generalised_normal():
    rows = run(tradeoffs.generalized_normal, items=20, epsilon=15.0, powers=[0.7, 0.4], smallest=1e-4)
    errors = {row["method"]: row["value"] for row in select(rows, {"measure": "the error itself"})}
    assert errors["staircase"] < 0.1 < 0.9 < errors["generalized-normal + best p"] < errors["laplace"]
    assert value(rows, method="staircase", measure="first order over the error itself") > 2


# -- errata -----------------------------------------------------------------------------------------------------------


def test_constants():
    rows = run(misprints.constants, 1000, items=10, sigma=1e-3)
    assert value(rows, method="closed form", measure="E[V1+ V2+]") == pytest.approx(0.108998, abs=5e-7)
    assert value(rows, method="N of variance one") == pytest.approx(1, abs=0.01)
    assert value(rows, method="N of variance sigma^2") < 0.01


def test_bound_75_is_false_and_30_is_true():
    rows = run(misprints.bound_75, alpha=2.0, ratio=1e-6)
    assert value(rows, method="upper bound in (28)") == pytest.approx(math.log(2 / 3) + 0.5, abs=1e-5)
    assert value(rows, measure="excess", method="epsilon itself, (27)") < 0
    for ratio in (0.01, 1.0, 5.0):
        assert 0 < value(run(misprints.bound_75, alpha=3.0, ratio=ratio), measure="sigma over (30)") < 1


def test_the_best_p_is_below_those_of_appendix_l():
    rows = run(tradeoffs.best_power, epsilon=10.0, items=20)
    assert [value(rows, measure="p", method=method) for method in ("p-hat (91)", "p of (92)", "best p")] == [
        pytest.approx(3 * math.sqrt(3) / 10),
        pytest.approx(0.5234, abs=1e-3),
        pytest.approx(p_best(10.0)),
    ]
    assert value(rows, method="p-hat (91)", measure="first-order error over the least") == pytest.approx(
        1.039, abs=1e-3
    )
    at_one = run(tradeoffs.best_power, epsilon=1.0, items=20)
    half, laplace = (tradeoffs.tradeoff(GeneralizedNormal(p), 1.0) for p in (0.5, 1.0))
    assert half / laplace == pytest.approx(6.5, abs=1e-6)
    assert value(at_one, method="best p", measure="p") == 1


def test_sorting_is_optimal_from_p_1_on_only():
    log_concave = run(sorting_error.decoders, 100, noise="laplace", items=3, load=1.0)
    assert value(log_concave, measure="lost by sorting") == pytest.approx(0, abs=1e-12)
    (lost,) = select(
        run(sorting_error.decoders, 600, noise="generalized-normal + p = 0.3", items=2, load=1.0),
        {"measure": "lost by sorting"},
    )
    assert lost["value"] - 3 * lost["error"] > 0.01


def test_what_the_exact_order_of_20_scores_costs():
    rows = run(partial_recovery.everyday, 20_000, items=20, probability=0.95)
    assert value(rows, method="laplace", measure="epsilon needed") == pytest.approx(5560, rel=0.01)
    assert value(rows, method="staircase", measure="epsilon needed") == pytest.approx(15.9, abs=0.1)
    assert value(rows, method="laplace + first order") == pytest.approx(285 / 0.05)
    for row in select(rows, {"measure": "error at that epsilon, simulated"}):
        assert row["value"] == pytest.approx(0.05, abs=5 * row["error"] + 0.002)
