"""The experiments on synthetic rankings: against closed forms, enumeration and the library's own exact audits."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from rankdp.attack.inference import infer
from rankdp.audit.enumeration import audit_exact
from rankdp.mechanisms.registry import mechanism
from rankdp.privacy.bits import SeededBits
from rankdp.theory.concordance import laplace_keep
from rankdp.theory.mallows import reversal_tail
from rankdp.theory.permutations import all_permutations
from rankdp_papers.experiment import Cell
from rankdp_papers.pictures import draw
from rankdp_papers.runner import _function
from rankdp_papers.specification import load
from rankdp_papers.verdicts import judge
from rankdp_papers.xu import counterexamples, inference_error, kept_pairs, misprints, rivals

pytestmark = pytest.mark.slow

MINE = [
    *(f"xu/figure{number}" for number in (2, 4, 5, 6)),
    *(f"xu/erratum-{name}" for name in ("theorem1", "laplace", "kendall-not-best", "worst-case", "notation")),
    "xu/tradeoff-promises",
]


def value(rows, **wanted):
    """The only value with these columns."""
    (found,) = [row["value"] for row in rows if all(row[name] == one for name, one in wanted.items())]
    return found


# -- the specifications


@pytest.mark.parametrize("name", MINE)
def test_one_cell_has_the_columns_that_the_figure_and_the_claims_name(name):
    one = load(name)
    first = one.cells("quick")[0]
    values = {**first.values, "draws": 2000, "draws_of_others": 2000}
    if isinstance(values.get("releases"), list):
        values["releases"] = [10, 20]
    rows = _function(one.paper, one.experiment)(Cell(values, min(first.repetitions, 50), one.seed))
    rows = [{**{column: values[column] for column in one.quick.grid}, **row} for row in rows]
    columns = set(rows[0])
    assert all(set(row) == columns and math.isfinite(row["value"]) and row["error"] >= 0 for row in rows)
    assert len({tuple(v for k, v in row.items() if k not in ("value", "error")) for row in rows}) == len(rows)
    for claim in one.claims:
        options = [claim.options.get(part) for part in ("column", "along")]
        assert columns >= {*claim.select, *(part for part in options if part)}
    if one.figure is not None:
        only = {name: wanted for name, wanted in one.figure.only.items() if name != "items"}
        draw(replace(one.figure, only=only), rows)


@pytest.mark.parametrize("name", ["xu/erratum-theorem1", "xu/erratum-theorem2", "xu/erratum-worst-case"])
def test_exact_errata_come_to_their_verdicts(name):
    one = load(name)
    rows = []
    for cell in one.cells("quick"):
        grid = {column: cell[column] for column in one.quick.grid}
        rows += [{**grid, **row} for row in _function(one.paper, one.experiment)(cell)]
    answers = {claim.text: judge(claim, rows).answer for claim in one.claims}
    false = [text for text, answer in answers.items() if answer == "does not hold"]
    assert len(false) == {"xu/erratum-theorem1": 4, "xu/erratum-theorem2": 1, "xu/erratum-worst-case": 1}[name]
    assert {claim.by for claim in one.claims if claim.text in false} == {"paper"}
    assert set(answers.values()) == {"holds", "does not hold"}


def test_a_close_race_breaks_the_upper_bound_of_theorem_1():
    rows = counterexamples.majority(Cell({"items": 5, "epsilon": 1}))
    leads = {row["method"]: row["value"] for row in rows if row["measure"] == "ratio of leads, close race"}
    assert leads["kendall"] == pytest.approx(58.59, abs=0.01)
    assert leads["kendall + upper bound"] == pytest.approx(math.tanh(7 / 8))


def test_the_excess_risk_by_all_outputs():
    """The risk of 1, 2, 3 less the least one, over m(m-1), with shares of 50.1% and 49.9%, by enumeration."""
    one, every = mechanism("kendall", 3, 2), np.array(list(itertools.permutations(range(3))))
    law = sum(
        share * np.exp(one.log_prob(every, np.array(order)))
        for share, order in ((0.501, [0, 1, 2]), (0.499, [1, 2, 0]))
    )
    places = np.argsort(every, axis=1)
    risks = [
        sum(law @ (places[:, i] > places[:, j]) for i, j in itertools.combinations(order, 2)) / 6 for order in every
    ]
    rows = counterexamples.majority(Cell({"items": 3, "epsilon": 2}))
    found = value(rows, measure="synthetic excess risk of the best ranking")
    assert found == pytest.approx(risks[0] - min(risks))
    assert found == pytest.approx(0.01866, abs=1e-5)


def test_a_condorcet_cycle_does_not_reverse_the_pair():
    """2 above 1 in four of seven, 1 above 3 and 3 above 2 in five: Kemeny's order is 1, 3, 2."""
    cycle = [(1, 0, 2)] * 2 + [(2, 1, 0)] * 2 + [(0, 2, 1)] * 3
    every = [tuple(order) for order in misprints.all_permutations(3).tolist()]
    wanted = sorted(every.index(order) for order in cycle)
    one = misprints.built("kendall", 3, 1)
    chosen = list(misprints.itertools.combinations_with_replacement(range(6), 7))
    attacks = list(misprints._attacks(one, 7))
    assert sum(chance for chance, _, _ in attacks) == pytest.approx(1)
    _, reversed_by_most, optimal = attacks[chosen.index(tuple(wanted))]
    assert reversed_by_most
    assert optimal == [(0, 2, 1)]


@pytest.mark.parametrize(
    ("experiment", "values"),
    [
        (kept_pairs.concordance, {"items": 4, "epsilon": 1}),
        (kept_pairs.privacy, {"items": 3, "epsilon": 1, "method": "kendall", "draws": 2000, "draws_of_others": 2000}),
        (inference_error.adaptive, {"items": 3, "schedule": "with log", "releases": [10]}),
        (misprints.notation, {"items": 3, "epsilon": 1, "releases": 5}),
    ],
)
def test_a_cell_depends_on_its_seed_alone(experiment, values):
    assert experiment(Cell(values, 50, 7)) == experiment(Cell(values, 50, 7))
    assert experiment(Cell(values, 50, 7)) != experiment(Cell(values, 50, 8))


# -- Laplace noise at the epsilon that it realises


@pytest.mark.parametrize("name", ["kendall", "ulam", "reinsertion", "laplace"])
def test_the_realised_epsilon_is_that_of_the_exact_audit(name):
    one = mechanism(name, 4, 1.5)
    audit = audit_exact(one, draws=0)
    assert float(audit.epsilon_low) - 1e-9 <= rivals.realised_epsilon(one) <= float(audit.epsilon_high) + 1e-9


@pytest.mark.parametrize("items", [3, 5, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_scale_m_over_epsilon_is_enough_and_the_calibrated_one_exact(items, epsilon):
    enough = rivals.built("noisy-ranks", items, epsilon)
    assert float(enough.scale) == pytest.approx(items / epsilon)
    assert rivals.realised_epsilon(enough) <= epsilon
    calibrated = rivals.built(rivals.EQUAL_REALISED, items, epsilon)
    assert rivals.realised_epsilon(calibrated) == pytest.approx(epsilon, rel=1e-7)
    assert calibrated.scale < enough.scale < rivals.built("laplace", items, epsilon).scale


def test_no_two_neighbours_are_farther_apart_than_m_once_all_ranks_may_shift():
    items = 6
    ranks = np.arange(items)
    farthest = 0.0
    for step in all_permutations(items)[1:]:
        moved = np.argsort(step)  # the ranks of the items in the order ``step``
        if any((rest := [item for item in step if item != out]) == sorted(rest) for out in range(items)):
            farthest = max(farthest, min(np.abs(moved + shift - ranks).sum() for shift in (-1, 0, 1)))
    assert farthest == items


def test_the_bound_of_a_long_ranking_is_nearly_attained():
    rows = rivals.laplace(Cell({"items": 40, "epsilon": 1}))
    measure = "realised epsilon divided by epsilon"
    low = value(rows, method="noisy-ranks", measure=f"{measure}, at least")
    assert 0.999 < low < value(rows, method="noisy-ranks", measure=f"{measure}, at most") == pytest.approx(1)
    kept = {row["method"]: row["value"] for row in rows if row["measure"] == "concordance"}
    assert kept["laplace"] < kept["kendall"] < kept["noisy-ranks"]


# -- figures


def test_simulated_shares_agree_with_the_closed_forms():
    rows = kept_pairs.concordance(Cell({"items": 8, "epsilon": 2}, 4000, 3))
    for row in rows:
        if row["measure"] == "simulated minus exact":
            assert abs(row["value"]) < 5 * row["error"]
    scale = 2 * 7 / 2
    keep = [float(laplace_keep(np.array([j - i]), scale)[0]) for i, j in itertools.combinations(range(8), 2)]
    assert value(rows, method="laplace", measure="exact") == pytest.approx(np.mean(keep))
    lead = value(rows, measure="lead, share of pairs")
    assert value(rows, measure="lead, number of pairs") == pytest.approx(28 * lead)


def test_equation_8_errs_upwards_and_the_held_out_bound_does_not():
    values = {"items": 4, "epsilon": 1, "method": "kendall", "draws": 20_000, "draws_of_others": 1}
    rows = kept_pairs.privacy(Cell(values, 1, 2))
    estimate, error = next((row["value"], row["error"]) for row in rows if row["measure"] == "estimate (8)")
    assert value(rows, measure="held-out lower bound") < value(rows, measure="exact") == pytest.approx(1)
    assert 1 < estimate < 1 + 6 * error


def test_the_counts_are_those_of_the_law():
    one = mechanism("ulam", 3, 1)
    counts = kept_pairs._counts(one, np.array([1, 2, 0], dtype=np.int32), 60_000, SeededBits(5))
    law = np.exp(one.log_prob(all_permutations(3), [1, 2, 0]))
    assert counts.sum() == 60_000
    assert ((counts - 60_000 * law) ** 2 / (60_000 * law)).sum() < 25  # chi-squared with 5 degrees of freedom


def test_the_attackers_error_is_exact_for_two_items_and_above_its_bound():
    rows = inference_error.fixed_epsilon(Cell({"items": 2, "epsilon": 1, "releases": [5]}, 4000, 1))
    tail = value(rows, method="kendall + binomial bound")
    assert tail == reversal_tail(5, 2, 1)
    assert value(rows, method="kendall") == pytest.approx(tail, abs=0.03)  # an odd N has no ties: it is the error
    assert value(rows, method="kendall") < value(rows, method="laplace")


def test_an_epsilon_that_falls_with_n_keeps_the_attacker_wrong_unless_it_has_its_logarithm():
    values = {"items": 3, "releases": [400]}
    without, with_log = (
        value(inference_error.adaptive(Cell({**values, "schedule": schedule}, 300, 1)), method="kendall")
        for schedule in ("without log", "with log")
    )
    assert without > 0.4 > 0.05 > with_log


# -- errata


def test_a_strong_minority_overrules_a_weak_majority():
    rows = counterexamples.majority(Cell({"items": 5, "epsilon": 1}))
    keep = mechanism("kendall", 5, 1).keep_probability
    share = 0.7 * keep(0, 1) + 0.3 * (1 - keep(0, 4))
    assert value(rows, method="kendall", measure="share") == pytest.approx(share)
    assert round(share, 2) == 0.49
    for name in ("kendall", "ulam", "reinsertion"):
        assert value(rows, method=f"{name} + debiased", measure="share") == pytest.approx(0.7)
    assert value(rows, method="kendall + debiased", measure="largest variance") == pytest.approx(45.3, abs=0.1)


def test_worst_cases_are_exactly_epsilon_and_half_m_epsilon():
    rows = counterexamples.worst_case(Cell({"items": 4, "epsilon": 1.5}))
    audit = audit_exact(mechanism("kendall", 4, 1.5), draws=0)
    assert float(audit.epsilon_low) <= 1.5 <= float(audit.epsilon_high)
    assert float(audit.epsilon_high - audit.epsilon_low) < 1e-12
    assert value(rows, method="kendall", measure="worst log-ratio over neighbours") == pytest.approx(1.5)
    assert value(rows, method="kendall", measure="worst log-ratio over any two rankings") == pytest.approx(3)
    assert counterexamples._neighbours_by_the_letter(4) == 6  # of 9


def test_formulas_as_printed():
    rows = misprints.notation(Cell({"items": 3, "epsilon": 1, "releases": 9}, 300, 4))
    assert value(rows, method="T a sum, as printed") == pytest.approx(6)
    assert value(rows, method="T a share") == pytest.approx(1)
    assert value(rows, method="argmin, as printed") < 0.1 < 0.4 < value(rows, method="argmax")
    assert value(rows, method="f higher for worse, as printed") == 0
    assert value(rows, method="f higher for better") == 1


def test_the_argmax_is_kemenys_ranking():
    one = mechanism("kendall", 4, 2)
    releases, repetitions = 7, 60
    cell = Cell({"items": 4, "epsilon": 2, "releases": releases}, repetitions, 3)
    drawn = one.sample(np.tile(np.arange(4), (repetitions * releases, 1)), cell.bits(4, 2)).reshape(repetitions, -1, 4)
    every = all_permutations(4)
    expected = 0.0
    for some in drawn:
        likelihood = np.array([one.log_prob(some, secret).sum() for secret in every])
        top = likelihood > likelihood.max() - 1e-9
        expected += top[0] / top.sum() / repetitions
        assert likelihood.max() == pytest.approx(infer(some, one).log_likelihood)
    assert value(misprints._argmin(cell), method="argmax") == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.01, 1])
def test_the_proof_of_theorem_2_counts_ties_as_errors(epsilon):
    rows = misprints._ties(Cell({"items": 2, "epsilon": epsilon}))
    exact = value(rows, method="exact")
    assert exact == pytest.approx(1 / (1 + math.exp(epsilon)))  # with two releases, as good as with one
    assert value(rows, method="tail without ties") < exact < value(rows, method="tail with ties, as in the proof")


def test_shares_and_variances_to_three_digits():
    rows = rivals.best(Cell({"items": 6, "epsilon": 2}))
    kept = {row["method"]: round(row["value"], 3) for row in rows if row["measure"] == "concordance"}
    assert [kept[name] for name in ("optimal", "ulam", "reinsertion", "kendall", "laplace")] == [
        *(0.748, 0.741, 0.728, 0.677, 0.611)
    ]
    variance = {row["method"]: row["value"] for row in rows if row["measure"] == "variance"}
    assert variance["kendall"] == pytest.approx(16.3, abs=0.05)
    assert variance["ulam"] == pytest.approx(0.92, abs=0.01)
    assert variance["reinsertion"] == pytest.approx(1.14, abs=0.01)
