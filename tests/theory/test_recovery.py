"""Recovery: decoders, expansions, exact vectors and i.i.d. scores, each against simulation or a second derivation."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from support import generator

from rankdp.errors import InputError, Unsupported
from rankdp.theory import recovery
from rankdp.theory.assumed_laws import Tabulated, score_law
from rankdp.theory.noises import Ball, Gaussian, GeneralizedNormal, Laplace, Staircase
from rankdp.theory.recovery import order_constants
from rankdp.theory.score_laws import Exponential, Normal, Uniform
from rankdp.theory.whole_order import order_probability_iid
from rankdp_papers.jeong import decoders

pytestmark = pytest.mark.slow

LIGHT = [Gaussian(), Laplace(), GeneralizedNormal(0.4), Staircase(1.0)]
light = pytest.mark.parametrize("noise", LIGHT, ids=str)
BAND = 4.5
GAUSSIAN_PAIR = (math.sqrt(3) / 2 - math.pi / 6) / math.pi


def near(estimate, value, slack=0.0):
    """Within 4.5 standard errors, and a declared slack."""
    assert abs(estimate.value - value) <= BAND * max(estimate.error, 1e-9) + slack, (estimate, value)


# Decoders


def test_sorting_lists_the_best_first():
    assert decoders.sort_decoder([0.3, 2.0, 1.0]).tolist() == [1, 2, 0]
    assert decoders.sort_decoder([[1.0, 2.0], [2.0, 1.0]]).tolist() == [[1, 0], [0, 1]]
    assert decoders.sort_decoder([1.0, 1.0, 3.0]).tolist() == [2, 0, 1]


@pytest.mark.parametrize("noise", [Laplace(), Gaussian(), GeneralizedNormal(1.5), Ball(math.inf, 4)], ids=str)
@pytest.mark.parametrize("law", [Uniform(), Normal(), Exponential()], ids=lambda x: type(x).__name__)
def test_theorem_3_3_sorting_is_optimal_for_log_concave_noise(noise, law, request):
    rng = generator(request)
    for sigma in (0.05, 0.4, 2.0):
        for _ in range(3):
            y = law.sample(4, rng) + sigma * noise.sample(4, rng)
            orders, chances = decoders.order_posterior(y, noise, sigma, law)
            mine = chances[(orders == decoders.sort_decoder(y)).all(axis=1)][0]
            assert mine >= chances.max() - 1e-9
            assert chances.sum() == pytest.approx(1)


def test_posterior_of_two_against_plain_integration():
    """P(X1 > X2 given y) by a double integral on a fine grid, for a spiky noise."""
    noise, law, sigma, y = GeneralizedNormal(0.5), Normal(), 0.7, np.array([0.2, 1.1])
    x = np.linspace(-6, 6, 24_001)
    first, second = (law.density(x) * noise.density((x - at) / sigma) for at in y)
    below = integrate.cumulative_trapezoid(second, x, initial=0)
    chance = np.trapezoid(first * below, x) / (np.trapezoid(first, x) * below[-1])
    orders, chances = decoders.order_posterior(y, noise, sigma, law)
    assert chances[(orders == [0, 1]).all(axis=1)][0] == pytest.approx(chance, abs=2e-4)


def test_below_p_1_sorting_is_not_optimal(request):
    """Two uniform scores, p = 0.3: the best decoder errs 5 percentage points less, also when it is really played."""
    noise, law = GeneralizedNormal(0.3), Uniform()
    sigma = 3 / recovery.first_order(2, noise, law)
    rng = generator(request)
    better, lost = [], []
    for _ in range(4000):
        x = law.sample(2, rng)
        y = x + sigma * noise.sample(2, rng)
        orders, chances = decoders.order_posterior(y, noise, sigma, law)
        sorting = decoders.sort_decoder(y)
        lost.append(chances.max() - chances[(orders == sorting).all(axis=1)][0])
        truth = decoders.sort_decoder(x).tolist()
        best = orders[chances.argmax()].tolist() == truth
        better.append(float(best) - float(sorting.tolist() == truth))
    assert np.mean(lost) > 0.035
    assert np.mean(better) == pytest.approx(np.mean(lost), abs=BAND * np.std(better) / math.sqrt(4000))
    assert np.mean(better) > 3 * np.std(better) / math.sqrt(4000)


def test_decoders_refuse():
    with pytest.raises(InputError, match="2 to 7"):
        decoders.order_posterior(np.zeros(8), Gaussian(), 1.0, Uniform())
    with pytest.raises(Unsupported, match="dependent"):
        decoders.order_posterior(np.zeros(3), Ball(2, 3), 1.0, Uniform())


# Expansions


def test_constant_of_corollary_3_7():
    assert pytest.approx(0.108998, abs=1e-6) == GAUSSIAN_PAIR
    assert order_constants(Gaussian()).pair == pytest.approx(GAUSSIAN_PAIR, abs=1e-10)
    assert order_constants(Gaussian()).far == pytest.approx(1 / math.pi)


@pytest.mark.parametrize("noise", [*LIGHT, Ball(1, 6), Ball(math.inf, 6)], ids=str)
def test_moments_of_positive_parts(noise, request):
    drawn = noise.sample((200_000, 6), generator(request))
    v = np.maximum(np.diff(drawn, axis=1), 0)
    c = order_constants(noise)
    a, b, e, f, g = v.T
    for sample, value in (
        (a, c.single), (a * b, c.pair), (a * e, c.far), (a**3, c.cube), (a * a * b, c.square_pair),
        (a * b * b, c.square_pair), (a * a * e, c.square_far), (a * b * e, c.chain), (a * b * f, c.pair_single),
        (a * e * g, c.triple),
    ):  # fmt: skip
        assert np.mean(sample) == pytest.approx(value, abs=5 * np.std(sample) / math.sqrt(len(a)))


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_examples_3_8_and_3_9(n):
    pair = GAUSSIAN_PAIR
    c1, c2 = recovery.taylor_coefficients(n, Gaussian(), Uniform(), 2)
    assert c1 == pytest.approx(n * (n - 1) / math.sqrt(math.pi))
    far = n * (n - 1) * (n - 2) * (n - 3) / (2 * math.pi)
    assert c2 == pytest.approx(-n * (n - 1) ** 2 / 2 - pair * n * (n - 1) * (n - 2) - far)
    rate = 1.7
    c1, c2 = recovery.taylor_coefficients(n, Gaussian(), Exponential(rate), 2)
    assert c1 == pytest.approx(n * (n - 1) * rate / (2 * math.sqrt(math.pi)))
    terms = n * (2 * n**2 - 3 * n + 1) / 12 + pair * n * (n - 1) * (n - 2) / 3
    assert c2 == pytest.approx(-(rate**2) * (terms + n * (n - 1) * (n - 2) * (n - 3) / (8 * math.pi)))


@pytest.mark.parametrize("noise", [Gaussian(), Laplace(), GeneralizedNormal(0.6)], ids=str)
@pytest.mark.parametrize("law", [Uniform(), Exponential(), Normal(), Tabulated(stats.beta(3, 3))])
def test_expansion_of_two_scores_against_the_exact_integral(noise, law):
    """n = 2: P_e is 1 - concordance; the remainder after k terms falls like sigma^(k+1)."""
    coefficients = recovery.taylor_coefficients(2, noise, law)
    for orders in (1, 2, 3):
        rest = [
            1 - recovery.concordance(noise, s, law) - sum(c * s ** (i + 1) for i, c in enumerate(coefficients[:orders]))
            for s in (0.02, 0.01)
        ]
        if abs(rest[0]) > 1e-7:  # for the uniform law the series ends
            assert abs(rest[1] / rest[0]) < 0.75 * 0.5**orders


@pytest.mark.parametrize("noise", [Gaussian(), Laplace(), GeneralizedNormal(0.6), Ball(2, 6)], ids=str)
@pytest.mark.parametrize("law", [Uniform(), Exponential()], ids=lambda x: type(x).__name__)
def test_expansion_of_six_scores_against_simulation(noise, law, request):
    c1, c2, c3 = recovery.taylor_coefficients(6, noise, law)
    sigma = 0.12 / c1
    simulated = decoders.error_probability(6, noise, sigma, law, 100_000, generator(request))
    series = [c1 * sigma, c1 * sigma + c2 * sigma**2, c1 * sigma + c2 * sigma**2 + c3 * sigma**3]
    near(simulated, series[2], slack=3e-4)
    assert abs(simulated.value - series[2]) < abs(simulated.value - series[0])


def test_expansions_refuse_rough_densities():
    with pytest.raises(Unsupported, match="too rough"):
        recovery.taylor_coefficients(4, Gaussian(), Tabulated(stats.beta(0.4, 0.4)), 1)
    with pytest.raises(InputError, match="orders"):
        recovery.taylor_coefficients(4, Gaussian(), Uniform(), 4)
    with pytest.raises(InputError, match="n must be"):
        recovery.first_order(1, Gaussian(), Uniform())


def simulate(x, noise, sigma, k, rng):
    """The share of the top k that stays, a draw for each row of x."""
    x, n = np.sort(x, axis=1), x.shape[1]
    y = x + sigma * noise.sample(x.shape, rng)
    share = np.mean(y[:, n - k :] >= np.partition(y, n - k, axis=1)[:, [n - k]], axis=1)
    return decoders.Simulated.of(share)


# Scores drawn from a law


@pytest.mark.parametrize("noise", [*LIGHT, Ball(1, 5)], ids=str)
@pytest.mark.parametrize("law", [Uniform(0, 2), Exponential(), Tabulated(stats.beta(2, 5))])
def test_concordance_against_simulation(noise, law, request):
    rng = generator(request)
    x, z = law.sample((40_000, 5), rng), noise.sample((40_000, 5), rng)
    for sigma in (0.05, 0.6, 5.0):
        y = x + sigma * z
        kept = np.mean((x[:, 0] > x[:, 1]) == (y[:, 0] > y[:, 1]))
        value = recovery.concordance(noise, sigma, law)
        assert kept == pytest.approx(value, abs=BAND * math.sqrt(value * (1 - value) / 40_000))


def test_concordance_of_uniform_scores_with_laplace_noise_by_hand():
    """The integral of 2 (1-w) (1/2 + a w/4) e^(-a w), a = sqrt(2)/sigma."""
    for sigma in (0.01, 0.3, 4.0):
        a = math.sqrt(2) / sigma
        plain = integrate.quad(lambda w, a=a: 2 * (1 - w) * (0.5 + a * w / 4) * math.exp(-a * w), 0, 1, epsabs=1e-13)[0]
        assert recovery.concordance(Laplace(), sigma, Uniform()) == pytest.approx(1 - plain, abs=1e-9)
    normal = 0.5 + math.atan(1 / 0.6) / math.pi  # two normals: an angle
    assert recovery.concordance(Gaussian(), 0.6, Normal()) == pytest.approx(normal, abs=1e-9)


@light
@pytest.mark.parametrize(
    ("law", "n", "k", "sigma"),
    [
        (Uniform(), 5, 1, 0.3),
        (Normal(), 12, 3, 0.1),
        (Exponential(), 30, 20, 0.5),
        (Uniform(), 200, 10, 0.002),
        (Normal(), 200, 90, 0.3),
    ],
)
def test_top_k_of_a_law_against_simulation(noise, law, n, k, sigma, request):
    draws = 30_000 if n < 100 else 6_000
    rng = generator(request)
    overlap = simulate(law.sample((draws, n), rng), noise, sigma, k, rng)
    near(overlap, recovery.top_k_overlap_iid(n, k, noise, sigma, law), 3e-4)


def test_top_k_of_many_scores(request):
    """Hundreds on both sides: where the counts turn normal."""
    rng = generator(request)
    overlap = simulate(rng.random((500, 3000)), Gaussian(), 0.2, 900, rng)
    near(overlap, recovery.top_k_overlap_iid(3000, 900, Gaussian(), 0.2, Uniform()), 3e-4)


def test_adjacent_flips_against_simulation(request):
    rng = generator(request)
    for law, sigma in ((Uniform(), 0.02), (Exponential(), 0.1), (Normal(), 3.0)):
        y = np.sort(law.sample((40_000, 9), rng), axis=1) + sigma * Laplace().sample((40_000, 9), rng)
        count = np.sum(np.diff(y, axis=1) < 0, axis=1)
        value = recovery.adjacent_flips(9, Laplace(), sigma, law)
        assert np.mean(count) == pytest.approx(value, abs=BAND * np.std(count) / 200)


def test_a_public_sample_serves_as_a_law(request):
    law = score_law(Normal().sample(4000, generator(request)))
    for value, same in (
        (recovery.concordance(Laplace(), 0.3, law), recovery.concordance(Laplace(), 0.3, Normal())),
        (
            recovery.top_k_overlap_iid(50, 5, Laplace(), 0.3, law),
            recovery.top_k_overlap_iid(50, 5, Laplace(), 0.3, Normal()),
        ),
    ):
        assert value == pytest.approx(same, abs=0.02)


def test_simulations_agree_with_the_integral(request):
    noise, law, sigma = Laplace(), Uniform(), 0.1
    simulated = decoders.error_probability(6, noise, sigma, law, 40_000, generator(request))
    near(simulated, 1 - order_probability_iid(6, noise, sigma, law).value, 1e-4)


def test_a_million_draws_agree_with_the_expansion(request):
    """Figure 2's setting: Unif(0, 100), n = 20, 10^6 iterations."""
    simulated = decoders.error_probability(20, Laplace(), 0.05, Uniform(0, 100), 1_000_000, generator(request))
    c1, c2, c3 = recovery.taylor_coefficients(20, Laplace(), Uniform(0, 100))
    near(simulated, c1 * 0.05 + c2 * 0.05**2 + c3 * 0.05**3, 2e-4)
