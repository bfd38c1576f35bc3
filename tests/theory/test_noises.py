"""Every noise against scipy, plain integration and its own samples; the privacy of each against the definition."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats
from support import LEVEL, generator

from rankdp.errors import InputError
from rankdp.theory.noises import (
    NOISES,
    Ball,
    Gaussian,
    GeneralizedNormal,
    Laplace,
    Staircase,
    delta_inverse,
    noise,
    rdp_inverse,
)

pytestmark = pytest.mark.slow

INDEPENDENT = [
    Laplace(),
    Gaussian(),
    GeneralizedNormal(0.1),
    GeneralizedNormal(0.5),
    GeneralizedNormal(1.4),
    GeneralizedNormal(6),
    Staircase(1.0),
    Staircase(4.0, 0.8),
    Staircase(0.5),
    Ball(math.inf, 3),
]
BALLS = [Ball(2, 5), Ball(1, 3), Ball(0.5, 4), Ball(3, 2)]
ALL = [*INDEPENDENT, *BALLS]
every = pytest.mark.parametrize("family", ALL, ids=str)
independent = pytest.mark.parametrize("family", INDEPENDENT, ids=str)


def pieces(family, far=200.0):
    """Breakpoints for quad: a geometric ladder, and the jumps of a staircase."""
    ladder = [10.0**k for k in range(-12, 13) if 10.0**k < far]
    if isinstance(family, Staircase):
        ladder += [(k + family.gamma) * family.step for k in range(70) if (k + family.gamma) * family.step < far]
    if isinstance(family, Ball):
        ladder = [x for x in ladder if x < family.scale] + [family.scale]
    return sorted({0.0, *ladder, far})


def expectation(family, function, far=200.0):
    """E[function(|N|)] by quad between breakpoints."""
    edges = pieces(family, far)
    return 2 * sum(
        integrate.quad(lambda x: float(family.density(x)) * function(x), a, b, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )


@every
def test_the_density_has_mass_and_variance_one(family):
    far = 1e7 if getattr(family, "p", 1) < 0.2 else 200.0
    assert expectation(family, lambda x: 1.0, far) == pytest.approx(1, abs=1e-7)
    assert expectation(family, lambda x: x * x, far) == pytest.approx(1, abs=1e-6)


@every
@pytest.mark.parametrize("x", [0.02, 1.4])
def test_survival_excess_and_quantile_against_integration(family, x):
    edges = [x, *[edge for edge in pieces(family, 400.0) if edge > x]]
    parts = list(itertools.pairwise(edges))

    def above(function):
        return sum(
            integrate.quad(lambda t: float(family.density(t)) * function(t), a, b, limit=200)[0] for a, b in parts
        )

    loose = 1e-2 if getattr(family, "p", 1) < 0.2 else 1e-8  # p = 0.1 goes on far beyond 400
    assert float(family.survival(x)) == pytest.approx(above(lambda t: 1.0), abs=1e-8 + loose * 1e-2)
    assert float(family.excess(x)) == pytest.approx(above(lambda t: t - x), rel=loose, abs=loose)
    assert float(family.cdf(x)) + float(family.survival(x)) == pytest.approx(1, abs=1e-14)
    assert float(family.survival(-x)) == pytest.approx(float(family.cdf(x)), abs=1e-15)
    assert float(family.excess(-x)) == pytest.approx(float(family.excess(x)) + x, rel=1e-13)
    assert float(family.quantile(family.cdf(x))) == pytest.approx(x, rel=1e-7)
    assert float(family.quantile(family.survival(x))) == pytest.approx(-x, rel=1e-7)
    assert float(family.quick_excess(x)) == pytest.approx(float(family.excess(x)), rel=1e-8)


@every
def test_samples_follow_the_distribution_function(family, request):
    rng = generator(request)
    shape = (20_000, family.n) if isinstance(family, Ball) else 20_000
    drawn = np.asarray(family.sample(shape, rng)).reshape(20_000, -1)[:, 0]
    assert stats.kstest(drawn, lambda x: np.asarray(family.cdf(x))).pvalue > LEVEL


@pytest.mark.parametrize("p", [0.3, 1.0, 2.0, 5.0])
def test_generalized_normal_is_scipys(p, request):
    ours, theirs = GeneralizedNormal(p), stats.gennorm(p, scale=GeneralizedNormal(p).scale)
    x = np.linspace(-4, 4, 81)
    np.testing.assert_allclose(ours.density(x), theirs.pdf(x), rtol=1e-11)
    np.testing.assert_allclose(ours.survival(x), theirs.sf(x), rtol=1e-11)
    assert theirs.var() == pytest.approx(1, rel=1e-11)
    assert ours.scale == pytest.approx(math.sqrt(special.gamma(1 / p) / special.gamma(3 / p)), rel=1e-12)
    assert stats.kstest(ours.sample(20_000, generator(request)), theirs.cdf).pvalue > LEVEL


@independent
@pytest.mark.parametrize("d", [0.0, 0.2, 2.1])
def test_difference_survival_against_integration(family, d):
    """E[P(N > N' + d)], both signs of N' apart, with cuts where either density has a cusp or a jump."""
    edges = pieces(family, 1e5 if getattr(family, "p", 1) < 0.2 else 100.0)
    jumps = edges if isinstance(family, (Staircase, Ball)) else []
    cuts = sorted({abs(sign * edge + shift) for edge in [0.0, *jumps] for sign in (1, -1) for shift in (d, -d)})
    edges = sorted({*edges, *[cut for cut in cuts if cut < edges[-1]], *[abs(d - e) for e in edges if e < 1]})

    def integrand(y):
        return float(family.density(y)) * float(family.survival(d + y) + family.survival(d - y))

    total = sum(integrate.quad(integrand, a, b, limit=200, epsabs=1e-12)[0] for a, b in itertools.pairwise(edges))
    assert float(family.difference_survival(d)) == pytest.approx(total, abs=2e-9)


@pytest.mark.parametrize("family", BALLS, ids=str)
def test_difference_of_two_coordinates_of_a_ball(family, request):
    drawn = family.sample((100_000, family.n), generator(request))
    gaps = drawn[:, 0] - drawn[:, -1]
    for d in (0.0, 0.1, 0.6, 1.5, 2.4):
        chance = float(family.difference_survival(d))
        assert stats.binomtest(int(np.sum(gaps > d)), len(gaps), min(chance, 1.0)).pvalue > LEVEL
    assert family.mean_difference == pytest.approx(np.mean(np.abs(gaps)), abs=5 * np.std(np.abs(gaps)) / 447)
    assert np.mean(drawn**2) == pytest.approx(1, abs=0.02)


def test_two_coordinates_of_the_round_ball_are_one():
    """(N1 - N2)/sqrt(2) is a coordinate too, in another direction."""
    family, d = Ball(2, 7), np.linspace(0, 6, 200)
    np.testing.assert_allclose(family.difference_survival(d), family.survival(d / math.sqrt(2)), atol=1e-10)


def test_generalized_normal_meets_laplace_and_gauss():
    d = np.concatenate([np.geomspace(1e-9, 1, 60), np.linspace(1, 12, 60)])
    for p, same in ((1, Laplace()), (2, Gaussian())):
        ours = GeneralizedNormal(p)
        np.testing.assert_allclose(ours.difference_survival(d), same.difference_survival(d), rtol=1e-8, atol=1e-12)
        assert ours.mean_difference == pytest.approx(same.mean_difference, rel=1e-11)
        for alpha in (1, 1.5, 3, 40):
            assert ours.renyi(alpha, 0.8) == pytest.approx(same.renyi(alpha, 0.8), rel=1e-9)
        for epsilon in (0, 0.3, 2):
            assert ours.delta(epsilon, 1.1) == pytest.approx(same.delta(epsilon, 1.1), abs=1e-12)


def test_the_papers_mean_differences():
    assert Gaussian().mean_difference == pytest.approx(2 / math.sqrt(math.pi))
    assert Laplace().mean_difference == pytest.approx(3 / (2 * math.sqrt(2)))
    assert Ball(math.inf, 9).mean_difference == pytest.approx(2 / math.sqrt(3))


@every
def test_mean_difference_is_twice_the_integral_of_the_survival(family):
    heavy = getattr(family, "p", 1) < 0.2
    edges = pieces(family, 1e6 if heavy else 100.0)
    total = 2 * sum(
        integrate.quad(lambda d: float(family.difference_survival(d)), a, b, limit=300)[0]
        for a, b in itertools.pairwise(edges)
    )
    assert family.mean_difference == pytest.approx(total, rel=1e-6)


def plain_renyi(family, alpha, shift):
    places = pieces(family, 60.0)
    edges = sorted({sign * x + base for x in places for sign in (1, -1) for base in (0.0, shift)})

    def integrand(x):
        here, there = float(family.log_density(x)), float(family.log_density(x - shift))
        if alpha == 1:
            return math.exp(here) * (here - there)
        return math.exp(alpha * here + (1 - alpha) * there)

    total = sum(integrate.quad(integrand, a, b, limit=100)[0] for a, b in itertools.pairwise(edges))
    return total if alpha == 1 else math.log(total) / (alpha - 1)


@pytest.mark.parametrize(
    "family", [Laplace(), Gaussian(), GeneralizedNormal(0.5), GeneralizedNormal(3), Staircase(1.3)]
)
@pytest.mark.parametrize("alpha", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.3, 1.7])
def test_renyi_against_integration(family, alpha, shift):
    assert family.renyi(alpha, shift) == pytest.approx(plain_renyi(family, alpha, shift), rel=2e-6)


@pytest.mark.parametrize("family", [Laplace(), GeneralizedNormal(0.3), GeneralizedNormal(0.1), Staircase(0.7)], ids=str)
def test_renyi_grows_with_the_order_up_to_pure_dp_and_with_the_shift(family):
    for shift in (0.01, 0.4, 2.0):
        values = [family.renyi(alpha, shift) for alpha in (1, 1.01, 2, 8, 64, 2000, math.inf)]
        assert all(a <= b * (1 + 1e-9) + 1e-12 for a, b in itertools.pairwise(values))
        assert values[-2] > 0.5 * values[-1]
    for alpha in (1, 2, math.inf):
        values = [family.renyi(alpha, shift) for shift in np.linspace(0, 3, 40)]
        assert all(a <= b + 1e-9 for a, b in itertools.pairwise(values))


def test_pure_dp_of_each():
    """(27) and (33) at alpha = inf, a step of the staircase, none for p > 1 or a ball."""
    x = np.concatenate([-np.geomspace(1e-6, 50, 2000), np.linspace(0, 3, 3001)])
    for family in (Laplace(), GeneralizedNormal(0.5), Staircase(0.9), Staircase(2.0, 0.1)):
        for shift in (0.2, 0.9, 2.3):
            worst = float(np.max(family.log_density(x) - family.log_density(x - shift)))
            assert family.renyi(math.inf, shift) == pytest.approx(worst, rel=1e-6)
    assert Staircase(0.9).renyi(math.inf, Staircase(0.9).step) == pytest.approx(0.9)
    assert Gaussian().renyi(math.inf, 0.1) == GeneralizedNormal(1.5).renyi(math.inf, 0.1) == math.inf
    assert Ball(2, 3).renyi(2, 0.1) == math.inf
    assert all(family.renyi(2, 0) == 0 for family in ALL)


@independent
@pytest.mark.parametrize(("epsilon", "shift"), [(0.0, 0.5), (1.0, 2.0)])
def test_delta_against_the_hockey_stick(family, epsilon, shift):
    """A plain Riemann sum of max(f(x) - e^eps f(x - r), 0) over exact cell masses."""
    fine = np.concatenate([[0.0], np.geomspace(1e-13, 1e7, 40_000)])
    ends = np.array([-1.0, 1.0]) * math.sqrt(3)  # of the cube
    more = [ends, ends + shift, np.linspace(-8, 8, 20_001)]
    edges = np.unique(np.concatenate([fine, -fine, fine + shift, shift - fine, *more]))
    here = np.diff(family.cdf(edges))
    there = np.diff(family.cdf(edges - shift))
    plain = float(np.sum(np.maximum(here - math.exp(epsilon) * there, 0)))
    assert family.delta(epsilon, shift) == pytest.approx(plain, abs=2e-4 if isinstance(family, Staircase) else 2e-6)


@pytest.mark.parametrize("family", BALLS, ids=str)
def test_delta_of_a_ball_is_the_volume_that_moves_out(family, request):
    drawn = family.sample((100_000, family.n), generator(request))
    for shift in (0.1, 0.8):
        moved = drawn.copy()
        moved[:, 0] += shift
        out = int(np.sum(np.sum(np.abs(moved / family.scale) ** family.p, axis=1) > 1))
        assert stats.binomtest(out, len(drawn), family.delta(3.0, shift)).pvalue > LEVEL
        assert family.delta(0.0, shift) == family.delta(9.0, shift)


def test_the_bounds_of_the_paper_on_laplace():
    """(28) for epsilon and (30) for sigma; the excess in (28) over l/(sigma b) is not always negative (Appendix I)."""
    for alpha in (1.1, 2, 7, 60):
        c = math.log(alpha / (2 * alpha - 1)) / (alpha - 1)
        for t in (0.01, 0.5, 3):
            value = Laplace().renyi(alpha, t / math.sqrt(2))
            assert t + c - 1e-12 <= value <= t + c + math.exp(-(2 * alpha - 1) * t) / alpha + 1e-12
            assert value <= t
        for epsilon in (0.1, 1, 10):
            sigma = rdp_inverse(Laplace(), alpha, epsilon, 1.0)
            assert math.sqrt(2) / (epsilon - c) <= sigma <= math.sqrt(2) / epsilon
            assert Laplace().renyi(alpha, 1 / sigma) == pytest.approx(epsilon, rel=1e-9)
    assert math.log(2 / 3) + 1 / 2 > 0.09  # alpha = 2, l = 0: Appendix I says this is below 0


def test_inverses():
    """(24) with (31) and (34), and numerically for the others."""
    assert rdp_inverse(Gaussian(), 3, 0.7, 2.0) == pytest.approx(math.sqrt(3 * 4 / 1.4))
    assert rdp_inverse(Laplace(), math.inf, 0.5, 3.0) == pytest.approx(3 * math.sqrt(2) / 0.5)
    half = GeneralizedNormal(0.5)
    assert rdp_inverse(half, math.inf, 2.0, 1.0) == pytest.approx(2.0**-2 / half.scale)
    for family in (half, GeneralizedNormal(3), Staircase(1.0), Laplace()):
        sigma = rdp_inverse(family, 2.5, 0.8, 1.0)
        assert family.renyi(2.5, 1 / sigma) == pytest.approx(0.8, rel=1e-8)
    stairs = Staircase(1.0)
    assert rdp_inverse(stairs, math.inf, 1.0, 1.0) == pytest.approx(1 / stairs.step)
    assert rdp_inverse(stairs, math.inf, 2.9, 1.0) == pytest.approx(1 / (2 * stairs.step))
    assert rdp_inverse(stairs, math.inf, 0.9, 1.0) == math.inf
    assert rdp_inverse(Gaussian(), math.inf, 1.0, 1.0) == math.inf
    assert rdp_inverse(Ball(2, 3), 2, 1.0, 1.0) == math.inf
    for family in (Gaussian(), half, GeneralizedNormal(3), Ball(1, 20)):
        sigma = delta_inverse(family, 0.5, 1e-3, 1.0)
        assert family.delta(0.5, 1 / sigma) == pytest.approx(1e-3, rel=1e-6)


def test_the_staircase_beats_laplace_at_the_same_epsilon_on_the_first_order():
    """Its spread for a shift of one at pure epsilon, times E|V|: smaller than Laplace's from moderate eps on."""
    for epsilon in (2.0, 5.0, 8.0):
        stairs = Staircase(epsilon)
        ours = stairs.mean_difference * rdp_inverse(stairs, math.inf, epsilon, 1.0)
        assert ours < Laplace().mean_difference * rdp_inverse(Laplace(), math.inf, epsilon, 1.0)


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("cauchy", {}, "noise must be one of laplace"),
        ("laplace", {"p": 1}, "takes no parameters, got p"),
        ("generalized-normal", {}, "takes p, got none"),
        ("generalized-normal", {"p": -1}, "p must be a number from 0.02 to 100, got -1"),
        ("generalized-normal", {"p": math.nan}, "p must be"),
        ("staircase", {"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ("staircase", {"epsilon": 1, "gamma": 2}, "gamma must be a number from 0 to 1, got 2"),
        ("ball", {"p": 2, "n": 1}, "n must be an integer of at least 2, got 1"),
    ],
)
def test_refusals(name, parameters, words):
    with pytest.raises(InputError) as refusal:
        noise(name, **parameters)
    assert words in str(refusal.value)


def test_names_and_arguments():
    assert set(NOISES) == {"laplace", "gaussian", "generalized-normal", "staircase", "ball"}
    assert noise("ball", p=2, n=4) == Ball(2.0, 4)
    with pytest.raises(InputError, match="alpha must be"):
        Laplace().renyi(0.5, 1)
    with pytest.raises(InputError, match="shift must be"):
        Gaussian().delta(1, -1)
    with pytest.raises(InputError, match="n = 3"):
        Ball(2, 3).sample((5, 4), np.random.default_rng(0))
