"""zCDP as (epsilon, delta): against a dense grid of orders, against dp-accounting's numbers, at the edges."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rankdp.errors import InputError
from rankdp.privacy.zcdp import log_delta_of, rho_of

RHOS = [1e-4, 0.01, 0.3, 2.0]
EPSILONS = [0.01, 0.5, 1.0, 6.0]

# dp-accounting 0.6: RdpAccountant over 80,000 orders, GaussianDpEvent(1/sqrt(2 rho)), get_delta
ORACLE = [
    (0.001, 0.1, 0.0005831789473759219),
    (0.001, 0.5, 1.3523913032855994e-30),
    (0.01, 0.1, 0.038593622771242654),
    (0.01, 1, 1.6641142848133257e-13),
    (0.1, 0.5, 0.0770622924718716),
    (0.1, 4, 5.597459422457105e-19),
    (0.5, 1, 0.2468463340254414),
    (0.5, 10, 9.251123251181077e-22),
    (2.0, 4, 0.20751961409427047),
    (2.0, 10, 4.872630816698933e-05),
]


def delta_of(rho, epsilon):
    return math.exp(log_delta_of(rho, epsilon))


def on_a_grid(rho, epsilon):
    """Proposition 12's bound at 400,000 orders; log delta."""
    less_one = np.geomspace(1e-8, 1e8, 400_000)
    order = 1 + less_one
    return float((less_one * (order * rho - epsilon) + order * np.log1p(-1 / order) - np.log(less_one)).min())


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_search_finds_the_least_of_a_dense_grid(rho, epsilon):
    best = min(0.0, on_a_grid(rho, epsilon))
    assert log_delta_of(rho, epsilon) <= best + 1e-9 * abs(best)
    assert log_delta_of(rho, epsilon) == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("rho", "epsilon", "delta"), ORACLE)
def test_dp_accounting_agrees(rho, epsilon, delta):
    """Its grid can only be worse than the minimum, by what a step between orders costs."""
    assert delta_of(rho, epsilon) <= delta * (1 + 1e-9)
    assert delta_of(rho, epsilon) == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("rho", RHOS)
def test_delta_exceeds_that_of_the_gaussian_mechanism(rho):
    """The exact delta of Gaussian noise (Balle and Wang 2018), which rho-zCDP may not undercut."""
    ratio = math.sqrt(2 * rho)  # sensitivity over sigma
    for epsilon in EPSILONS:
        here, there = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
        exact = math.erfc(-here / math.sqrt(2)) / 2 - math.exp(epsilon) * math.erfc(-there / math.sqrt(2)) / 2
        assert delta_of(rho, epsilon) >= exact


@pytest.mark.parametrize("epsilon", ["0.01", "1", "7/3", "20"])
@pytest.mark.parametrize("delta", ["1/10", "1e-6", "1e-12", "1e-300"])
def test_rho_is_the_largest_that_gives_delta(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    rho = rho_of(epsilon, delta)
    assert Fraction(delta_of(float(rho), float(epsilon))) <= delta
    assert rho == Fraction(float(rho))
    assert delta_of(float(rho) * (1 + 1e-6), float(epsilon)) > delta or rho >= epsilon * Fraction(999, 1000)


@pytest.mark.parametrize("exponent", [320, 400, 5000])
def test_a_delta_below_the_smallest_float_is_met_all_the_same(exponent):
    """exp(log delta) is 0 here, and 0 must not pass for small enough."""
    rho = rho_of(Fraction(1), Fraction(1, 10**exponent))
    wanted = -exponent * math.log(10)
    # between orders e^s apart the grid misses the minimum by at most |log delta| s^2
    assert on_a_grid(float(rho), 1.0) <= wanted * (1 - (math.log(1e16) / 400_000) ** 2)
    assert on_a_grid(float(rho) * 1.0001, 1.0) > wanted


@pytest.mark.parametrize("delta", [0, 1, -1, 2])
def test_refusals(delta):
    with pytest.raises(InputError, match="delta must be above 0 and below 1 for Gaussian noise, got"):
        rho_of(Fraction(1), Fraction(delta))
