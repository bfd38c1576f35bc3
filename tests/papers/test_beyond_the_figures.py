"""Rates, thresholds, attacks, dependent scores and high orders: against enumeration, closed forms and each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rankdp.data.rankings import Rankings
from rankdp.privacy.bits import SeededBits
from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace
from rankdp.theory.permutations import all_permutations
from rankdp.theory.recovery import first_order, taylor_coefficients
from rankdp.theory.whole_order import order_probability_iid
from rankdp_papers.cai import score_attacks, thresholds
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.jeong import beyond_iid
from rankdp_papers.jeong.sorting_error import LAWS
from rankdp_papers.verdicts import select
from rankdp_papers.xu import learning_rates
from rankdp_papers.xu.rivals import built

pytestmark = pytest.mark.slow


def value(rows: list[Row], **wanted: object) -> float:
    (row,) = select(rows, wanted)
    return float(row["value"])


# -- Xu: rates


def test_the_channel_is_algorithm_1_on_every_ranking() -> None:
    every, one = all_permutations(4), built("kendall", 4, 1.5)
    for row, order in zip(learning_rates._channel(4, 1.5), every, strict=True):
        assert row == pytest.approx(np.exp(one.log_prob(every, order)), abs=1e-12)


def test_the_order_by_wins_is_that_of_the_logistic_fit() -> None:
    from rankdp.learn.labels import labels_of
    from rankdp.learn.linear import Objective, fit_linear

    orders = built("kendall", 4, 1.0).sample(np.tile(np.arange(4, dtype=np.int32), (40, 1)), SeededBits(3))
    counts = np.bincount([int(np.flatnonzero((all_permutations(4) == order).all(axis=1))[0]) for order in orders])
    above = learning_rates._above(4)[: len(counts)]
    wins = np.tensordot(counts, above, 1).sum(axis=1)
    labels = labels_of(Rankings.from_orders(orders))
    scores = fit_linear(Objective(labels, np.zeros((40, 0)), np.eye(4)), None, "logistic")[0]
    assert list(np.argsort(scores)) == list(np.argsort(wins))


def test_excess_risk_is_zero_for_the_right_order_and_all_leads_for_the_reverse(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    assert learning_rates._excess(3, 1.0, (8.0,), 100_000, random) == (0.0, 0.0)
    true, above = learning_rates._law(3, 1.0), learning_rates._above(3)
    monkeypatch.setattr(
        learning_rates, "_channel", lambda items, epsilon: np.eye(6)[[5] * 6] * (1 - 1e-9)
    )  # all reversed
    lead = 2 * np.tensordot(true, above, 1) - 1
    expected = sum(lead[i, j] for i, j in itertools.combinations(range(3), 2)) / 6
    assert learning_rates._excess(3, 1.0, (8.0,), 1000, random)[0] == pytest.approx(expected)


def test_careful_users_cost_far_less_than_the_bound_says() -> None:
    rows = learning_rates.types(Cell({"items": 4, "types": 20, "users": 2000, "epsilon": 4.0}, 10, 1))
    risk, one = (value(rows, method=name, measure="excess risk") for name in (learning_rates.MIXED, learning_rates.ONE))
    psi, careful = (1 / math.tanh(epsilon / 6) for epsilon in (4.0, 0.1))
    bound = ((psi + careful) / 2 / psi) ** (4 / 3)
    assert 1 < risk / one < bound / 5


# -- Cai: thresholds and attacks


@pytest.mark.parametrize("tolerance", [0, 2])
def test_circles_are_d_apart_and_no_scores_explain_them(tolerance: int) -> None:
    chances = thresholds.circles(24, 6, tolerance, 0.1)
    assert chances + chances.T == pytest.approx(np.ones((24, 24)))
    assert ((chances >= 0) & (chances <= 1)).all()
    tau = chances.mean(axis=1)
    assert tau[: 6 - tolerance] == pytest.approx(tau[0])
    assert tau[6 + tolerance :] == pytest.approx(tau[-1])
    assert tau[0] - tau[-1] == pytest.approx(0.1)
    first, second, third = (chances[i, j] for i, j in ((8, 13), (13, 18), (18, 8)))
    assert min(first, second, third) > 0.5  # a circle


def test_no_algorithm_beats_the_least_failure() -> None:
    """At a tiny separation it nears 1 - 1/L; at epsilon 0 it is 1 - 1/L; at a large one it says nothing."""
    assert thresholds.least_failure(64, 16, 1.0, 1e-9, 0.3) == pytest.approx(1 - 1 / 48, abs=1e-6)
    assert thresholds.least_failure(64, 16, 1.0, 0.01, 1e-9) > 0.97
    assert thresholds.least_failure(64, 16, 1.0, 5.0, 0.3) == 0.0
    settings = {"items": 64, "p": 1, "epsilon": 0.05, "case": "exact", "c0": 0.5, "separations": {"exact": [0.02, 0.1]}}
    rows = thresholds.recovery(Cell(settings, 40, 1))
    for separation in (0.02, 0.1):
        least = value(rows, C=separation, method="any private algorithm")
        assert value(rows, C=separation, method="copeland") >= least


def test_far_enough_apart_the_top_is_found_and_close_together_it_is_not() -> None:
    for case, near, far in (("exact", 0.1, 2.0), ("within a tolerance", 0.1, 2.0), ("parametric", 0.5, 8.0)):
        settings = {"items": 128, "p": 1, "epsilon": 2.0, "case": case, "c0": 0.5, "separations": {case: [near, far]}}
        rows = thresholds.recovery(Cell(settings, 20, 1))
        assert value(rows, C=near, method="copeland") > 0.8
        assert value(rows, C=far, method="copeland") < 0.2


def test_the_attack_on_an_accurate_estimator_is_one_and_the_printed_one_cancels() -> None:
    rows = score_attacks.entrywise(Cell({"items": 100, "p": 1, "epsilon": 0.9, "c0": 0.5}, 30, 1))
    assert value(rows, method="bradley-terry + not private", measure="attack") == pytest.approx(0.9, abs=0.15)
    assert abs(value(rows, method="bradley-terry + not private", measure="attack, as printed")) < 0.15
    assert value(rows, method="bradley-terry + paper", measure="attack over (2.12)") < 1


# -- Jeong: dependent scores, affine decoders, orders


@pytest.mark.parametrize("name", list(beyond_iid._SCORES))
def test_the_constant_of_exchangeable_scores_is_the_density_of_their_spacings(name: str) -> None:
    sample, constant = beyond_iid._SCORES[name]
    gaps = np.diff(np.sort(sample(np.random.default_rng(2), (400_000, 5)), axis=1), axis=1)
    width = 0.02 / constant(5) * 4
    density = (gaps < width).mean(axis=0).sum() / width
    assert density == pytest.approx(constant(5), rel=0.04)


@pytest.mark.parametrize("noise", [Gaussian(), Laplace(), GeneralizedNormal(0.5)])
@pytest.mark.parametrize("items", [2, 5])
def test_all_orders_begin_with_the_known_ones(noise: object, items: int) -> None:
    sigma = 0.25 / first_order(items, noise, LAWS["exponential"])
    terms, error = beyond_iid.exponential_series(items, noise, sigma, 12)
    known = [c * sigma**k for k, c in enumerate(taylor_coefficients(items, noise, LAWS["exponential"], 3), 1)]
    assert terms[:3] == pytest.approx(known, rel=1e-4)
    whole = order_probability_iid(items, noise, sigma, LAWS["exponential"])
    assert error == pytest.approx(1 - whole.value, abs=3e-4)


def test_two_exponential_scores_with_normal_noise_have_closed_terms() -> None:
    """E[V+^k] of N(0, 2) is 2^(k/2) times half the absolute moment of a normal variable."""
    terms, _ = beyond_iid.exponential_series(2, Gaussian(), 0.5, 8)
    for k, term in enumerate(terms, 1):
        moment = 2**k * math.gamma((k + 1) / 2) / math.sqrt(math.pi) / 2
        assert term == pytest.approx(-((-0.5) ** k) * moment / math.factorial(k), rel=5e-4)


def test_the_diverging_series_to_four_digits() -> None:
    """E[V+^12] of generalised normal noise with p = 1/2 in closed form: the term that breaks the series."""
    noise, p = GeneralizedNormal(0.5), 0.5

    def absolute(k: int) -> float:
        return (math.gamma(1 / p) / math.gamma(3 / p)) ** (k / 2) * math.gamma((k + 1) / p) / math.gamma(1 / p)

    moment = sum(math.comb(12, j) * absolute(j) * absolute(12 - j) for j in range(0, 13, 2)) / 2
    terms, error = beyond_iid.exponential_series(2, noise, 0.5, 12)
    assert terms[11] == pytest.approx(-(0.5**12) * moment / math.factorial(12), rel=1e-3)
    sigma = 0.25 / first_order(2, noise, LAWS["exponential"])
    terms, error = beyond_iid.exponential_series(2, noise, sigma, 12)
    assert abs(terms.sum() - error) == pytest.approx(7.9858, rel=1e-3)  # by integration in 20 digits


def test_affine_decoders_gain_only_where_the_noise_has_memory() -> None:
    lost = {}
    for memory in ("independent", "equally correlated", "one item noisier"):
        rows = beyond_iid.affine(Cell({"memory": memory, "sigma": 1.0}, 150, 1))
        lost[memory] = [value(rows, method=method, measure="lost") for method in ("sorting", "affine decoder")]
        assert min(lost[memory]) >= 0
    assert lost["independent"] == pytest.approx([0, 0], abs=1e-6)
    assert lost["equally correlated"] == pytest.approx([0, 0], abs=1e-6)
    assert lost["one item noisier"][0] > 2 * lost["one item noisier"][1]
