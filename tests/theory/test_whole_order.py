"""The chance that the whole order survives: two methods, against each other, against draws and at the ends."""

import math

import numpy as np
import pytest
from scipy import stats
from support import generator

from rankdp.errors import Unsupported
from rankdp.theory import recovery, whole_order
from rankdp.theory.assumed_laws import Tabulated
from rankdp.theory.noises import Ball, Gaussian, GeneralizedNormal, Laplace, Staircase
from rankdp.theory.score_laws import Exponential, Normal, Uniform
from rankdp.theory.whole_order import OrderProbability, order_probability_iid
from rankdp_papers.jeong import decoders

pytestmark = pytest.mark.slow

BAND = 4.5
NOISES = (Gaussian(), Laplace(), GeneralizedNormal(0.5), GeneralizedNormal(4.0), Staircase(2.0))
LAWS = (Uniform(), Normal(), Exponential(), Tabulated(stats.gamma(2.5)))


def _setting(number):
    """A noise, a law, n from 2 to 200 and a sigma from four decades around the one that flips one pair."""
    rng = np.random.default_rng(number)
    n, noise, law = round(np.exp(rng.uniform(np.log(2), np.log(200)))), rng.choice(NOISES), LAWS[rng.integers(4)]
    return n, noise, law, 10 ** rng.uniform(-3, 1) / recovery.first_order(n, noise, law)


@pytest.mark.parametrize(
    "number", [number if number < 6 else pytest.param(number, marks=pytest.mark.long) for number in range(40)]
)
def test_against_draws(number, request):
    """Off by less than 1e-4, besides what the draws are off, at random settings."""
    n, noise, law, sigma = _setting(number)
    draws = 20_000 if number < 6 else 400_000
    simulated = decoders.error_probability(n, noise, sigma, law, draws, generator(request))
    found = order_probability_iid(n, noise, sigma, law)
    assert found.error <= 1e-4
    assert abs(1 - simulated.value - found.value) < BAND * max(simulated.error, 1 / draws) + 1e-4


def test_issue_settings():
    """Two settings in which two million draws told a second-order expansion wrong."""
    assert 1 - order_probability_iid(10, Gaussian(), 0.016, Exponential()).value == pytest.approx(0.32562, abs=1.2e-3)
    assert 1 - order_probability_iid(20, Gaussian(), 0.5, Uniform(0, 100)).value == pytest.approx(0.65818, abs=1.2e-3)


@pytest.mark.parametrize(("noise", "law"), [(noise, law) for noise in NOISES[:2] for law in LAWS[:3]])
def test_both_methods_agree(noise, law, monkeypatch):
    sigma = 0.1 / recovery.first_order(8, noise, law)
    little = order_probability_iid(8, noise, sigma, law)
    assert little.method == "expansion to the third order"
    monkeypatch.setattr(whole_order, "_expanded", lambda *_: OrderProbability(0.0, 1.0, "none"))
    grid = order_probability_iid(8, noise, sigma, law)
    assert grid.method.startswith("integrated on ")
    assert grid.value == pytest.approx(little.value, abs=5e-5)


def test_the_ends():
    for n in (2, 4, 6):
        much = order_probability_iid(n, Gaussian(), 1e4, Uniform()).value
        assert much == pytest.approx(1 / math.factorial(n), rel=2e-3)
        assert order_probability_iid(n, Gaussian(), 1e-9, Uniform()).value == pytest.approx(1, abs=1e-6)
    for sigma in (0.03, 0.3):
        two = order_probability_iid(2, Laplace(), sigma, Normal())
        assert two.value == pytest.approx(recovery.concordance(Laplace(), sigma, Normal()), abs=1e-8)
    assert order_probability_iid(200, Laplace(), 1.0, Uniform()).method == "bound by every other pair"


def test_dependent_noise_is_refused_where_only_simulation_can_tell():
    ball = Ball(2.0, 6)
    assert order_probability_iid(6, ball, 1e-4, Uniform()).method == "expansion to the third order"
    with pytest.raises(Unsupported, match="only simulation can tell"):
        order_probability_iid(6, ball, 0.1, Uniform())


def test_a_grid_that_does_not_suffice_yields_to_a_better_expansion():
    """The planner's case: staircase noise that 512 cells are too coarse for; 200,000 draws say 0.0368 ± 0.0004."""
    noise, sigma = Staircase(13.8566), 0.018106208
    fine = order_probability_iid(10, noise, sigma, Uniform(), tolerance=1e-3, most_cells=1 << 12)
    quick = order_probability_iid(10, noise, sigma, Uniform(), tolerance=2e-3, most_cells=512)
    assert 1 - fine.value == pytest.approx(0.0368, abs=2e-3)
    assert quick.error < 2e-3
    assert quick.value == pytest.approx(fine.value, abs=2e-3)
