"""Lemmas that no figure shows: each number against another way to it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rankdp_papers.experiment import Cell, Row
from rankdp_papers.jeong import lemmas as jeong_lemmas
from rankdp_papers.jeong import partial
from rankdp_papers.xu import counterexamples, lemmas


def value(rows: list[Row], **columns: object) -> float:
    (found,) = (row["value"] for row in rows if all(row.get(name) == wanted for name, wanted in columns.items()))
    return float(found)


def test_the_printed_stages_are_a_law_and_halving_a_weight_is_noticed():
    every = list(itertools.permutations(range(4)))
    assert sum(lemmas._as_printed(list(order), 1.3) for order in every) == pytest.approx(1)
    rows = lemmas.algorithm(Cell({"items": 4, "epsilon": 1.3}))
    assert value(rows, measure="distance from Mallows' model") < 1e-14
    assert abs(lemmas._as_printed([0, 1, 2, 3], 1.3) - lemmas._as_printed([0, 1, 2, 3], 0.65)) > 0.01
    assert value(rows, measure="neighbours' distance over 2(m-1)") == 1  # the first item moved to the end


def test_lemma_5_needs_majorities_without_a_cycle():
    assert lemmas._kept_by_the_best((1, 0, 0, 1, 1, 0)) == pytest.approx(2 / 3)
    assert lemmas._kept_by_the_best((2, 0, 0, 2, 1, 0)) < 1  # three majorities of 3 : 2 and 4 : 1 in a cycle
    assert lemmas._kept_without_cycles() == 1


def test_lemma_7_holds_for_one_fixed_ranking(monkeypatch: pytest.MonkeyPatch):
    """With everybody of one mind every raw lead is 1, and the bound of Theorem 1(2) is true."""
    psi = 1 / math.tanh(1 / 6)
    assert lemmas._lemma_7(4, 1.0, psi) < 1
    monkeypatch.setattr(lemmas, "camps", lambda items: counterexamples.camps(items, 1.0))
    assert lemmas._lemma_7(4, 1.0, psi) >= 1 - 1e-9


def test_lemma_8_fails_between_two_best_functions():
    """At the tie the excess risk is 0; the variance is that of a sign over m(m-1)."""
    excess, variance = lemmas._lemma_8()
    assert abs(excess) < 1e-12
    assert variance == pytest.approx(1 / 20**2)


def test_the_product_of_means_is_beaten_by_two_kinds_of_users():
    rows = lemmas.population(Cell({"items": 3, "epsilon": 4}))
    large, small = (1 / math.tanh(one / 4) for one in (0.1, 4))
    assert value(rows, measure="E[Psi X] over E[Psi] E[X]") == pytest.approx(2 * large / (large + small))
    assert value(rows, measure="E(Psi^gamma), gamma = 1") > 1


@pytest.fixture(scope="module")
def statements() -> list[Row]:
    return jeong_lemmas.statements(Cell({}, repetitions=20_000, seed=1))


@pytest.mark.slow
def test_examples_and_propositions(statements: list[Row]):
    for example, constant in itertools.product(("Example 3.8", "Example 3.9"), ("c1", "c2")):
        assert value(statements, method=example, measure=f"relative deviation of {constant}") < 1e-5
    for proposition in ("Proposition 4.8", "Proposition 4.11"):
        assert value(statements, method=proposition) < 1e-6
    assert value(statements, method="uniform scores") == pytest.approx(1, abs=0.15)


@pytest.mark.slow
def test_small_powers_explode_in_low_noise(statements: list[Row]):
    """The errors are those of a simulation with 10^6 rankings, whose standard errors are below 4%."""
    assert value(statements, p=0.08, measure="(35) at epsilon 50") == pytest.approx(0.001, rel=0.5)
    assert value(statements, p=0.03, measure="(35) at epsilon 50") == pytest.approx(142, rel=0.01)
    for p, error in ((0.05, 0.004817), (0.08, 0.00095), (0.2, 0.01657)):
        assert value(statements, p=p, measure="error at epsilon 50") == pytest.approx(error, rel=0.08)


@pytest.mark.slow
def test_the_remainder_falls_more_slowly_than_the_square(statements: list[Row]):
    """0.6 sigma^1.5 times the integral of sqrt(u) P(V < -u), which is E[max(V, 0)^1.5]/1.5 for V ~ N(0, 2)."""
    moment = 2**0.75 * 2**0.75 * math.gamma(1.25) / math.sqrt(math.pi) / 2
    for sigma in (1e-4, 1e-2):
        assert value(statements, sigma=sigma) == pytest.approx(0.6 * sigma**1.5 * moment / 1.5, rel=1e-3)


def test_partial_recovery_against_a_direct_count():
    cell = Cell({"items": 4, "best": 1, "most_wrong": 2, "epsilon": 8}, repetitions=20_000, seed=2)
    rows = partial.recovery(cell)
    draw = np.random.default_rng(9)
    scores = draw.uniform(size=(40_000, 4))
    noisy = scores + draw.laplace(scale=1 / 8, size=scores.shape)
    ranks = [np.argsort(np.argsort(-one, axis=1), axis=1) for one in (scores, noisy)]
    wrong = (ranks[0] != ranks[1]).sum(axis=1)
    assert value(rows, method="laplace", measure="exact order") == pytest.approx((wrong == 0).mean(), abs=0.015)
    assert value(rows, method="laplace", measure="at most 2 places wrong") == pytest.approx(
        (wrong <= 2).mean(), abs=0.015
    )
    first = (noisy.argmax(axis=1) == scores.argmax(axis=1)).mean()
    assert value(rows, method="laplace", measure="the best 1 in order") == pytest.approx(first, abs=0.015)
