"""The linear programme: what it may promise, whatever its solver answers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support import decimal_exp

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.optimal import Optimal
from rankdp.mechanisms.rankings.ulam import Ulam
from rankdp.theory.permutations import all_permutations, concordance, neighbour_places


def certify(mechanism):
    below = Fraction(decimal_exp(min(mechanism.epsilon, Fraction(250)), 400)) * (1 - Fraction(1, 10**390))
    weights = mechanism.weights
    for s, others in enumerate(neighbour_places(mechanism.items).tolist()):
        assert weights[s] <= below * min(weights[other] for other in others)


@pytest.mark.parametrize("answer", ["point", "uniform", "zero", "noise", "infeasible", "negative", "overshoot"])
@pytest.mark.parametrize("epsilon", ["1e-9", "1/2", "4"])
def test_any_answer_of_the_solver_is_made_private(answer, epsilon, monkeypatch):
    rng = np.random.default_rng(5)
    answers = {
        "point": np.eye(24)[7],
        "uniform": np.full(24, 1 / 24),
        "zero": np.zeros(24),
        "noise": rng.random(24),
        "infeasible": np.eye(24)[0] + 1e-9 * rng.random(24),
        "negative": -rng.random(24),
        "overshoot": 1e6 * rng.random(24),
    }
    monkeypatch.setattr(Optimal, "_solve", lambda self: answers[answer])
    mechanism = Optimal(4, epsilon)
    certify(mechanism)
    assert min(mechanism.weights) > 0
    assert mechanism.expected_concordance() == pytest.approx(
        float(np.array(mechanism._output_law) @ concordance(all_permutations(4))), rel=1e-12
    )


@pytest.mark.parametrize("epsilon", ["1e-100", "0.001", "9.9", "10.1", "1e50"])
@pytest.mark.parametrize("items", [2, 4])
def test_tiny_and_huge_epsilons_end_and_are_private(items, epsilon):
    certify(Optimal(items, epsilon))


@pytest.mark.parametrize("epsilon", [1, 2, 6])
@pytest.mark.parametrize("items", [3, 4, 5])
def test_certifying_costs_less_than_the_sixth_digit(items, epsilon):
    mechanism = Optimal(items, epsilon)
    solved = mechanism._solve()
    promised = float(solved @ concordance(all_permutations(items)))
    assert mechanism.expected_concordance() == pytest.approx(promised, abs=1e-6)
    assert mechanism.expected_concordance() <= promised + 1e-7


def test_two_items_are_randomized_response():
    for epsilon in (0.1, 1, 5, 12):
        mechanism = Optimal(2, epsilon)
        assert mechanism.keep_probability(0, 1) == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-7)


def test_ulam_is_the_optimum_for_large_epsilon():
    for items in (3, 4, 5):
        optimal, ulam = Optimal(items, "10.5"), Ulam(items, "10.5")
        assert optimal.expected_concordance() == pytest.approx(ulam.expected_concordance(), abs=1e-9)
        near = Optimal(items, 10).expected_concordance()
        assert near == pytest.approx(Ulam(items, 10).expected_concordance(), abs=1e-6)


def test_a_failed_programme_is_said(monkeypatch):
    import highspy

    monkeypatch.setattr(highspy.Highs, "run", lambda solver: None)
    with pytest.raises(Unsupported, match="the linear programme for 3 items at epsilon 1 failed: Not Set"):
        _ = Optimal(3, 1).weights
