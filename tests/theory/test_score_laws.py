"""Laws of scores: closed forms against quadrature, spacings against the order statistics' own densities and samples."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats
from support import LEVEL, generator

from rankdp.errors import InputError
from rankdp.theory.assumed_laws import Beta, Sampled, Tabulated, score_law
from rankdp.theory.score_laws import Exponential, Normal, Uniform

pytestmark = pytest.mark.slow

PAIRS = [
    (Uniform(2, 5), stats.uniform(2, 3)),
    (Normal(1, 2), stats.norm(1, 2)),
    (Exponential(3.0, 1.0), stats.expon(1, 1 / 3)),
]
closed = pytest.mark.parametrize(("law", "frozen"), PAIRS, ids=lambda x: type(x).__name__)


@closed
def test_closed_forms_are_scipys(law, frozen, request):
    x, u = np.linspace(-3, 8, 111), np.linspace(0.001, 0.999, 50)
    np.testing.assert_allclose(law.cdf(x), frozen.cdf(x), atol=1e-14)
    np.testing.assert_allclose(law.density(x), frozen.pdf(x), atol=1e-14)
    np.testing.assert_allclose(law.quantile(u), frozen.ppf(u), rtol=1e-11)
    assert stats.kstest(law.sample(20_000, generator(request)), frozen.cdf).pvalue > LEVEL


@closed
def test_tabulated_agrees_with_the_closed_forms(law, frozen):
    table = Tabulated(frozen)
    for k in (2, 3, 4):
        assert table.power_integral(k) == pytest.approx(law.power_integral(k), rel=1e-10)
    assert table.correlation_slope == pytest.approx(law.correlation_slope, rel=1e-8)
    assert table.triple_slope == pytest.approx(law.triple_slope, rel=1e-8)
    assert table.correlation_curvature == pytest.approx(law.correlation_curvature, rel=1e-3, abs=1e-9)
    d = np.array([0.0, 0.1, 0.7, 2.0])
    np.testing.assert_allclose(table.difference_density(d), law.difference_density(d), atol=1e-9)


@pytest.mark.parametrize(
    "frozen", [stats.beta(2, 2), stats.beta(1, 3), stats.gamma(2.5), stats.t(3), stats.weibull_max(2)]
)
def test_tabulated_integrals_against_quad(frozen):
    law = Tabulated(frozen)
    low, high = (max(min(end, 400), -400) for end in frozen.support())
    for k in (2, 3):
        plain = integrate.quad(lambda x, k=k: frozen.pdf(x) ** k, low, high, limit=400, points=[frozen.median()])[0]
        assert law.power_integral(k) == pytest.approx(plain, rel=1e-7)
    for d in (0.05, 0.4):
        top = high - d if math.isfinite(frozen.support()[1]) else high
        plain = integrate.quad(lambda x, d=d: 2 * frozen.pdf(x) * frozen.pdf(x + d), low, top, limit=400)[0]
        assert float(law.difference_density(d)) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize(("a", "b"), [(2, 2), (0.5, 3), (1, 1), (7, 0.9)])
def test_beta_is_scipys(a, b):
    ours, scipys = Beta(a, b, -1.0, 4.0), stats.beta(a, b, loc=-1, scale=4)
    x = np.array([-1.5, -1.0, -0.999, 0.0, 1.0, 2.9, 3.0, 3.5])
    assert ours.support() == scipys.support()
    for method, at in (("pdf", x), ("cdf", x), ("ppf", np.array([0.0, 1e-6, 0.3, 0.99, 1.0]))):
        np.testing.assert_allclose(getattr(ours, method)(at), getattr(scipys, method)(at), rtol=1e-12, atol=1e-300)
    drawn = ours.rvs((2000,), np.random.default_rng(1))
    assert stats.kstest(drawn, scipys.cdf).pvalue > 1e-3


def test_poles_of_the_density():
    """Beta(a, a) has ||f||^2 finite for a > 1/2: B(2a-1, 2a-1)/B(a, a)^2, and the integral of f^3 for a > 2/3."""
    from scipy.special import beta

    law = Tabulated(stats.beta(0.75, 0.75))
    assert law.squared_norm == pytest.approx(beta(0.5, 0.5) / beta(0.75, 0.75) ** 2, rel=1e-3)
    assert Tabulated(stats.beta(0.6, 0.6)).power_integral(3) == math.inf
    assert Tabulated(stats.beta(0.4, 0.4)).squared_norm == math.inf


def spacing_sum(frozen, n, w):
    """Sum over i of the density of X_(i+1) - X_(i) at w, from the joint density of neighbours."""

    def integrand(x):
        below, above, both = frozen.cdf(x), frozen.sf(x + w), frozen.pdf(x) * frozen.pdf(x + w)
        return both * sum(
            math.factorial(n)
            / (math.factorial(i - 1) * math.factorial(n - i - 1))
            * below ** (i - 1)
            * above ** (n - i - 1)
            for i in range(1, n)
        )

    low, high = (max(min(end, 60), -60) for end in frozen.support())
    return integrate.quad(integrand, low, high - w, limit=300, epsabs=1e-12, points=[frozen.median()])[0]


@closed
@pytest.mark.parametrize("n", [2, 3, 6])
def test_spacing_density_and_slope(law, frozen, n):
    assert law.spacing_density(n) == pytest.approx(spacing_sum(frozen, n, 0.0), rel=1e-8)
    h = 1e-3
    slope = (-3 * spacing_sum(frozen, n, 0.0) + 4 * spacing_sum(frozen, n, h) - spacing_sum(frozen, n, 2 * h)) / (2 * h)
    assert law.spacing_slope(n) == pytest.approx(slope, rel=2e-3, abs=2e-3)


def test_two_spacings_of_the_uniform_and_the_exponential():
    """(61) and (64), summed by hand."""
    for n in (3, 4, 7):
        rate = 2.0
        steps = [rate * (n - i) for i in range(1, n)]
        law = Exponential(rate)
        assert law.spacing_density(n) == pytest.approx(sum(steps))
        assert law.spacing_slope(n) == pytest.approx(-sum(step**2 for step in steps))
        assert law.neighbour_density(n) == pytest.approx(sum(a * b for a, b in itertools.pairwise(steps)))
        far = sum(steps[i] * steps[j] for i in range(n - 1) for j in range(i + 2, n - 1))
        assert law.far_density(n) == pytest.approx(far)
        assert Uniform().neighbour_density(n) == pytest.approx((n - 2) * n * (n - 1))
        assert Uniform().far_density(n) == pytest.approx((n - 2) * (n - 3) / 2 * n * (n - 1))


def test_remark_3_15():
    for n in (2, 9):
        assert Uniform(1, 4).spacing_density(n) == pytest.approx(n * (n - 1) / 3)
        assert Exponential(2.5).spacing_density(n) == pytest.approx(2.5 * n * (n - 1) / 2)
        assert Normal().spacing_density(n) == pytest.approx(n * (n - 1) / (2 * math.sqrt(math.pi)))


@pytest.mark.parametrize("law", [Uniform(), Normal(), Exponential(), Tabulated(stats.beta(2, 5))])
def test_difference_density_is_the_law_of_the_difference(law, request):
    x = law.sample((20_000, 2), generator(request))
    d = np.abs(x[:, 0] - x[:, 1])
    grid = np.linspace(0, 12, 4001)
    cdf = integrate.cumulative_trapezoid(law.difference_density(grid), grid, initial=0)
    assert stats.kstest(d, lambda t: np.interp(t, grid, cdf)).pvalue > LEVEL


@pytest.mark.parametrize("law", [Uniform(0, 10), Normal(), Exponential()], ids=lambda x: type(x).__name__)
def test_a_sample_tells_the_squared_norm(law, request):
    rng = generator(request)
    found = [score_law(law.sample(800, rng)) for _ in range(60)]
    values = np.array([one.squared_norm for one in found])
    assert np.mean(values) == pytest.approx(
        law.squared_norm, abs=4 * np.std(values) / math.sqrt(60) + 0.01 * law.squared_norm
    )


def test_a_sample_as_a_law(request):
    law = Sampled(Normal(3, 2).sample(5000, generator(request)))
    x = np.linspace(-2, 8, 21)
    np.testing.assert_allclose(law.cdf(x), Normal(3, 2).cdf(x), atol=0.03)
    np.testing.assert_allclose(law.density(x), Normal(3, 2).density(x), atol=0.03)
    np.testing.assert_allclose(law.quantile(law.cdf(x)), x, atol=1e-6)
    np.testing.assert_allclose(law.difference_density(x[6:]), Normal(3, 2).difference_density(x[6:]), atol=0.02)
    assert law.power_integral(3) == pytest.approx(Normal(3, 2).power_integral(3), rel=0.1)
    assert stats.kstest(law.sample(5000, generator(request)), law.cdf).pvalue > LEVEL


def test_names_and_refusals():
    assert score_law("uniform", 0, 10) == Uniform(0, 10)
    assert score_law("normal", 0, 6) == Normal(3, 1)
    assert score_law("exponential", 0, 5) == Exponential(1.0, 0.0)
    assert score_law("beta", 0, 2).squared_norm == pytest.approx(0.6)
    assert score_law(stats.norm()).squared_norm == pytest.approx(Normal().squared_norm)
    assert score_law(Normal()) == Normal()
    for bad, words in (
        ("cauchy", "law must be one of"),
        (3, "law must be"),
        ([1.0] * 20, "not all equal"),
        ([1, 2], "10"),
    ):
        with pytest.raises(InputError, match=words):
            score_law(bad)
    with pytest.raises(InputError, match="low < high"):
        score_law("uniform", 1, 1)
