"""(29), (32), (35) by hand, the bounds (30), and the best p against a plain grid search."""

import math

import numpy as np
import pytest
from scipy.special import digamma, gamma

from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, Staircase
from rankdp.theory.score_laws import Uniform
from rankdp_papers.jeong.tradeoffs import errors, laplace_bounds, p_best, p_exact, p_hat, tradeoff

pytestmark = pytest.mark.slow


def gn(epsilon: float, p: float, constant: float = 1.0, span: float = 1.0) -> float:
    return tradeoff(GeneralizedNormal(p), epsilon, constant, span)


@pytest.mark.parametrize(("n", "span"), [(5, 1.0), (20, 100.0)])
def test_examples_4_7_and_4_10(n, span):
    """Uniform scores: the span cancels."""
    constant = Uniform(0, span).spacing_density(n)
    for epsilon in (0.5, 3, 300):
        assert tradeoff(Laplace(), epsilon, constant, span) == pytest.approx(3 * n * (n - 1) / (4 * epsilon))
        for alpha in (1.5, 4):
            low, high = laplace_bounds(epsilon, n * (n - 1), 1.0, alpha)
            assert low <= errors(n, Laplace(), alpha, epsilon)[0] <= high
            value = n * (n - 1) / math.sqrt(2 * math.pi) * math.sqrt(alpha / epsilon)
            assert errors(n, Gaussian(), alpha, epsilon)[0] == pytest.approx(value)
    assert tradeoff(Gaussian(), 1.0, constant, span) == math.inf
    assert tradeoff(Laplace(), 285.0, Uniform().spacing_density(20)) == pytest.approx(1)  # P_e is about 285/eps


def test_35_by_hand():
    for p in (0.2, 0.5, 0.9, 1.0):
        for epsilon in (0.7, 4, 30):
            scale = math.sqrt(gamma(1 / p) / gamma(3 / p))
            value = GeneralizedNormal(p).mean_difference * 3.0 * 7.0 / (2 * scale) * (1 / epsilon) ** (1 / p)
            assert gn(epsilon, p, 7.0, 3.0) == pytest.approx(value, rel=1e-9)
    assert gn(2.0, 1.0) == pytest.approx(tradeoff(Laplace(), 2.0))
    assert gn(2.0, 1.5) == math.inf


def test_smaller_p_is_not_always_better():
    """At eps = 1, p = 1/2 is 6.5 times worse than Laplace noise; at eps = 20 a small p wins."""
    assert gn(1.0, 0.5) / tradeoff(Laplace(), 1.0) == pytest.approx(6.5, rel=1e-6)
    assert gn(20.0, 0.2) < 0.12 * tradeoff(Laplace(), 20.0)
    assert gn(20.0, 0.05) > tradeoff(Laplace(), 20.0)


@pytest.mark.parametrize("epsilon", [1.0, 4.5, 4.7, 5.2, 5.4, 6.0, 12.0, 30.0])
def test_best_p_against_a_grid(epsilon):
    powers = np.linspace(0.06, 1, 1500)
    full = [gn(epsilon, p) for p in powers]
    assert p_best(epsilon) == pytest.approx(powers[int(np.argmin(full))], abs=1e-3)
    half = [-math.log(GeneralizedNormal(p).scale) - math.log(epsilon) / p for p in powers]
    assert p_exact(epsilon) == pytest.approx(powers[int(np.argmin(half))], abs=1e-3)
    assert p_best(epsilon) <= p_exact(epsilon)
    assert p_hat(epsilon) == min(1, 3 * math.sqrt(3) / epsilon)


def test_92_holds_and_91_approximates_it():
    for epsilon in (6.0, 20.0, 200.0):
        x = 1 / p_exact(epsilon)
        assert 3 * digamma(3 * x) - digamma(x) == pytest.approx(2 * math.log(epsilon), rel=1e-10)
        assert p_hat(epsilon) == pytest.approx(p_exact(epsilon), rel=0.03)
    assert p_best(4.59) == 1
    assert p_best(4.61) < 1


def test_what_each_choice_buys():
    laplace = tradeoff(Laplace(), 20.0)
    assert gn(20.0, p_best(20.0)) / laplace == pytest.approx(0.1145, abs=1e-3)
    assert gn(20.0, p_hat(20.0)) / laplace == pytest.approx(0.1281, abs=1e-3)


def test_the_staircase_wins_where_epsilon_is_large():
    """Geng et al.: exponentially small noise; against both Laplace and the best generalised normal."""
    for epsilon in (6.0, 12.0, 20.0):
        stairs = tradeoff(Staircase(epsilon), epsilon)
        assert stairs < tradeoff(Laplace(), epsilon)
        assert stairs < gn(epsilon, p_best(epsilon))
