"""The risks of Xu, Section 5, by definition and by enumeration, and where the paper's claims about them stop."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from support import generator

from rankdp.errors import InputError
from rankdp.learn.losses import LOSSES
from rankdp.mechanisms.rankings.contract import all_permutations
from rankdp.mechanisms.rankings.estimators import pair_estimator
from rankdp.mechanisms.registry import mechanism
from rankdp.theory import risks

pytestmark = pytest.mark.slow

LOGISTIC = LOSSES["logistic"].value


def by_definition(scores, ranks, cost):
    """The double sum of (2) and (4), higher scores being better."""
    n, m = scores.shape
    total = 0.0
    for u, i, j in itertools.product(range(n), range(m), range(m)):
        if i != j and ranks[u, i] < ranks[u, j]:
            total += cost(scores[u, i] - scores[u, j])
    return total / (n * m * (m - 1))


def ranks_of(orders):
    return np.argsort(orders, axis=1) + 1


def test_the_empirical_risks_are_the_double_sums_of_2_and_4(request):
    draw = generator(request)
    scores, ranks = draw.normal(size=(7, 5)), draw.permuted(np.tile(np.arange(1, 6), (7, 1)), axis=1)
    scores[0, :2] = 1.0  # a tie
    assert risks.ranking_risk(scores, ranks) == pytest.approx(by_definition(scores, ranks, lambda d: d <= 0))
    for loss in LOSSES.values():
        expected = by_definition(scores, ranks, lambda d, v=loss.value: float(v(np.array(d))))
        assert risks.surrogate_risk(scores, ranks, loss.value) == pytest.approx(expected)


def test_higher_scores_mean_more_preferred():
    ranks = np.array([[1, 2, 3], [3, 1, 2]])
    assert risks.ranking_risk(-ranks, ranks) == 0
    assert risks.pairwise_accuracy(-ranks, ranks) == 1
    assert risks.ranking_risk(ranks, ranks) == 0.5  # all pairs wrong: the paper divides by m(m-1)
    assert risks.pairwise_accuracy(ranks * 0.0, ranks) == 0  # ties are errors


def test_partial_rankings_count_the_pairs_among_listed_items():
    ranks = np.array([[1, 2, 0], [0, 2, 1]])
    assert risks.pairwise_accuracy([[3, 2, 9], [5, 1, 0]], ranks) == 0.5


def test_the_expected_risk_is_the_mean_of_the_empirical_one(request):
    draw = generator(request)
    orders, law = all_permutations(4), draw.dirichlet(np.ones(24))
    eta = risks.preferences(ranks_of(orders), law)
    for _ in range(5):
        scores = draw.normal(size=(1, 4))
        mean = sum(p * risks.ranking_risk(scores, ranks_of(order[None])) for p, order in zip(law, orders, strict=True))
        assert risks.expected_risk(scores, eta) == pytest.approx(mean)


def test_the_least_risk_is_reached_by_the_better_orders_and_3_tells_them(request):
    strengths = np.array([2.0, 1.0, 0.0, -1.0])
    eta = 1 / (1 + np.exp(strengths - strengths[:, None]))
    best = min(all_permutations(4), key=lambda scores: risks.expected_risk(scores[None], eta))
    assert risks.expected_risk(best[None], eta) == pytest.approx(risks.least_risk(eta))
    assert (np.argsort(-best) == np.arange(4)).all()
    for scores in all_permutations(4):
        excess = risks.excess_risk(scores[None], eta)
        assert excess >= -1e-12
        assert risks.is_optimal(scores[None], eta) == (abs(excess) < 1e-12)


def test_no_function_has_the_least_risk_where_preferences_go_round():
    eta = np.array([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])
    assert min(risks.excess_risk(scores[None], eta) for scores in all_permutations(3)) > 0.1


@pytest.mark.parametrize("name", ["kendall", "ulam", "reinsertion"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_debiased_risk_has_the_mean_of_4_on_true_rankings(name, loss, request):
    m, draw, v = 4, generator(request), LOSSES[loss].value
    built = mechanism(name, m, 1)
    values, outputs = pair_estimator(built).values, all_permutations(m)
    scores, true = draw.normal(size=(1, m)), draw.permutation(m)[None]
    law = np.exp(built.log_prob(outputs, true))
    debiased = [risks.debiased_surrogate_risk(scores, ranks_of(one[None]), v, values) for one in outputs]
    naive = [risks.surrogate_risk(scores, ranks_of(one[None]), v) for one in outputs]
    truth = risks.surrogate_risk(scores, ranks_of(true), v)
    assert law @ debiased == pytest.approx(truth, abs=1e-8)
    assert abs(law @ naive - truth) > 1e-3  # (5) is not an unbiased version of (4)


def counterexample(epsilon=1.0):
    """NOTES, Xu 5: preferences before and after the Kendall mechanism."""
    orders, law = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]), np.array([0.7, 0.3])
    built, outputs = mechanism("kendall", 5, epsilon), all_permutations(5)
    after = sum(p * np.exp(built.log_prob(outputs, order[None])) for p, order in zip(law, orders, strict=True))
    return risks.preferences(ranks_of(orders), law), risks.preferences(ranks_of(outputs), after)


def test_lemma_6_and_7_fail_for_random_rankings():
    eta, synthetic = counterexample()
    assert eta[0, 1] == pytest.approx(0.7)
    assert synthetic[0, 1] < 0.5  # the synthetic optimum has the other order
    ratio = abs(2 * synthetic[0, 1] - 1) / abs(2 * eta[0, 1] - 1)
    assert ratio < risks.excess_risk_factors(5, 1)[0]


def test_7_holds_for_a_fixed_ranking():
    built, outputs = mechanism("kendall", 5, 1.5), all_permutations(5)
    eta = risks.preferences(np.arange(1, 6)[None], [1.0])
    law = np.exp(built.log_prob(outputs, np.arange(5)[None]))
    synthetic = risks.preferences(ranks_of(outputs), law)
    low, high = risks.excess_risk_factors(5, 1.5)
    for scores in outputs[::7]:
        before, after = (risks.excess_risk(scores[None], one) for one in (eta, synthetic))
        assert low * before - 1e-12 <= after <= high * before + 1e-12


def test_psi_is_the_fraction_of_assumption_3():
    x = math.exp(2 / 4)
    assert float(risks.psi(5, 2)) == pytest.approx((x + 1) / (x - 1))
    low, _ = risks.excess_risk_factors(5, 2)
    assert float(risks.psi(5, 2)) == pytest.approx(1 / low)
    assert risks.low_noise_bound(0.1, 5, 2, 1.0) == pytest.approx(0.1 * (x + 1) / (x - 1))
    assert risks.low_noise_bound(1.0, 5, 2, 1.0) == 1


def test_corollary_1_in_its_special_case():
    n, p, m, gamma = 100_000, 10, 8, 1.7
    for epsilon in (1e-3, 2e-3):
        special = (p * (m - 1) ** 2 / n / epsilon**2 * math.log(n / p)) ** ((gamma + 1) / (gamma + 2))
        constant = 4 ** ((gamma + 1) / (gamma + 2))  # Psi is about 2(m-1)/eps
        assert risks.excess_risk_rate(n, p, m, epsilon, gamma=gamma) == pytest.approx(constant * special, rel=1e-6)
    assert risks.excess_risk_rate(n, p, m, np.full(50, 0.5)) == pytest.approx(risks.excess_risk_rate(n, p, m, 0.5))


def test_corollary_1_without_noise_is_the_parametric_rate():
    rate = risks.excess_risk_rate(10_000, 5, 4, 1e6, gamma=math.inf)
    assert rate == pytest.approx(5 / 10_000 * math.log(2000))
    assert risks.excess_risk_rate(10_000, 5, 4, 2.0, gamma=1e6) == pytest.approx(
        risks.excess_risk_rate(10_000, 5, 4, 2.0, gamma=math.inf), rel=1e-4
    )


def test_more_users_and_more_epsilon_help():
    rates = [risks.excess_risk_rate(n, 5, 4, e, alpha=0.5) for n, e in ((1000, 1), (10_000, 1), (10_000, 2))]
    assert rates[0] > rates[1] > rates[2]
    assert risks.smallest_epsilon(1000, 5, 4) > risks.smallest_epsilon(10_000, 5, 4)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: risks.ranking_risk([[1, 2]], [[1, 2, 3]]), "one shape"),
        (lambda: risks.ranking_risk([[1, 2]], [[1, 0]]), "no pair"),
        (lambda: risks.psi(4, [1, 0]), "above 0"),
        (lambda: risks.psi(1, 1), "at least 2"),
        (lambda: risks.excess_risk_rate(10, 10, 4, 1), "parameters"),
        (lambda: risks.excess_risk_rate(100, 10, 4, 1, alpha=0), "alpha"),
        (lambda: risks.smallest_epsilon(100, 10, 4, 0), "zeta"),
        (lambda: risks.preferences([[1, 2]], [0.5]), "adding up to 1"),
        (lambda: risks.debiased_surrogate_risk([[1, 2, 3]], [[1, 2, 0]], LOGISTIC, np.eye(3)), "complete"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(InputError, match=said):
        call()
