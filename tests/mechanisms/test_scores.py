"""Noise for scores: exact audits over every shift, delta and Rényi sums, the samplers' laws, mutants, refusals."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support import LEVEL, assert_law, decimal_exp, seeded

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms import score_tails
from rankdp.mechanisms.score_grid import Asked, Grid, fitting_steps
from rankdp.mechanisms.score_noises import GaussianScores, GeneralizedNormalScores, LaplaceScores, StaircaseScores
from rankdp.mechanisms.scores import SCORE_MECHANISMS, score_mechanism
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import ONE_SCORE
from rankdp.privacy.noise import exp_enclosure
from rankdp.privacy.powers import GeneralizedNormal
from rankdp.privacy.zcdp import rho_of

PRECISE = 320
TINY = Fraction(1, 1 << 300)
DRAWS = 60_000


def built(noise, steps=None, **asked):
    return score_mechanism(noise, bounds=(0, 1), steps=steps, **asked)


# -- pure epsilon: the worst log-ratio over all outputs and all shifts ------------------------------------------------

PURE = {
    "laplace": ("laplace", {}),
    "staircase": ("staircase", {}),
    "staircase, gamma=0": ("staircase", {"gamma": 0}),
    "staircase, gamma=1": ("staircase", {"gamma": 1}),
    "staircase, gamma=0.3": ("staircase", {"gamma": "0.3"}),
    "p=1": ("generalized-normal", {"p": 1}),
    "p=0.5": ("generalized-normal", {"p": "0.5"}),
    "p=0.3": ("generalized-normal", {"p": "0.3"}),
    "p=2/7": ("generalized-normal", {"p": "2/7"}),
}


def worst_log_ratio(mechanism, window=12):
    """Bounds of the largest log P(j)/P(j+s) over all outputs within ``window`` ranges and every shift s = 1..K."""
    steps = mechanism.grid.steps
    reach = window * steps
    bounds = {j: mechanism.exponent(j, PRECISE) for j in range(-reach - steps, reach + steps + 1)}
    low = high = Fraction(0)
    for j, shift in itertools.product(range(-reach, reach + 1), range(1, steps + 1)):
        for other in (j - shift, j + shift):
            low = max(low, bounds[other][0] - bounds[j][1])
            high = max(high, bounds[other][1] - bounds[j][0])
    return low, high


def audit_pure(mechanism):
    """Fail unless the worst log-ratio is the promised epsilon, no more and no less."""
    low, high = worst_log_ratio(mechanism)
    assert high <= mechanism.guarantee.epsilon + TINY, "two neighbours differ by more than e^epsilon"
    assert low >= mechanism.guarantee.epsilon - TINY, "the noise is larger than epsilon asks for"


@pytest.mark.parametrize("which", PURE)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(5, 2)], ids=str)
@pytest.mark.parametrize("steps", [4, 7])
def test_the_worst_log_ratio_is_exactly_epsilon(which, epsilon, steps):
    noise, asked = PURE[which]
    mechanism = built(noise, steps, epsilon=epsilon, **asked)
    audit_pure(mechanism)
    assert (mechanism.guarantee.delta, mechanism.guarantee.idealized) == (0, False)


class HalfLaplace(LaplaceScores):
    scale = property(lambda self: super().scale / 2)


class NarrowLaplace(LaplaceScores):
    """Noise for K-1 steps."""

    scale = property(lambda self: (self.grid.steps - 1) / self.epsilon)


class HalfStairs(StaircaseScores):
    """Stairs of K/2 steps."""

    def level(self, j):
        return super().level(2 * j)


class NarrowStairs(StaircaseScores):
    def level(self, j):
        return super().level(j * self.grid.steps // (self.grid.steps - 1))


class DoubleRate(GeneralizedNormalScores):
    law = property(lambda self: GeneralizedNormal(self.p, 2 * self.epsilon, Fraction(self.grid.steps)))


class NarrowPower(GeneralizedNormalScores):
    law = property(lambda self: GeneralizedNormal(self.p, self.epsilon, Fraction(self.grid.steps - 1)))


class ScaleForPower(GeneralizedNormalScores):
    """``exp(-|j|^p/a)`` instead of ``exp(-(|j|/a)^p)`` with a = K/eps^(1/p)."""

    @property
    def law(self):
        a = Fraction(self.grid.steps) / Fraction(float(self.epsilon) ** (1 / float(self.p)))
        return GeneralizedNormal(self.p, 1 / a, Fraction(1))


class EpsilonForScale(GeneralizedNormalScores):
    """a = K/eps, as for Laplace noise, whatever p."""

    law = property(lambda self: GeneralizedNormal(self.p, Fraction(1), self.grid.steps / self.epsilon))


@pytest.mark.parametrize(
    ("mutant", "asked"),
    [
        (HalfLaplace, {}),
        (NarrowLaplace, {}),
        (HalfStairs, {}),
        (NarrowStairs, {"gamma": Fraction(1, 2)}),
        (DoubleRate, {"p": Fraction(1, 2)}),
        (NarrowPower, {"p": Fraction(1, 2)}),
        (ScaleForPower, {"p": Fraction(1, 2)}),
        (EpsilonForScale, {"p": Fraction(1, 2)}),
    ],
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)], ids=str)
def test_the_exact_audit_catches_mutants(mutant, asked, epsilon):
    mechanism = mutant(Grid(Fraction(0), Fraction(1), 6), Asked(epsilon=epsilon, **asked))
    with pytest.raises(AssertionError, match="epsilon"):
        audit_pure(mechanism)


@given(
    st.sampled_from(["laplace", "staircase", "generalized-normal"]),
    st.fractions(Fraction(1, 20), 8, max_denominator=50),
    st.fractions(Fraction(1, 8), 1, max_denominator=20),
    st.integers(1, 6),
)
@settings(max_examples=30, derandomize=True)
def test_the_log_ratio_never_exceeds_epsilon(noise, epsilon, share, steps):
    asked = {"staircase": {"gamma": share}, "generalized-normal": {"p": share}}.get(noise, {})
    assert worst_log_ratio(built(noise, steps, epsilon=epsilon, **asked), 6)[1] <= epsilon + TINY


# -- epsilon and delta --------------------------------------------------------------------------------------------

APPROXIMATE = {
    "gaussian": ("gaussian", {}),
    "p=1.5": ("generalized-normal", {"p": "1.5"}),
    "p=2": ("generalized-normal", {"p": 2}),
    "p=3": ("generalized-normal", {"p": 3}),
    "p=1.05": ("generalized-normal", {"p": "1.05"}),
    "p=12": ("generalized-normal", {"p": 12}),
}


def exact_deltas(mechanism, bits=128):
    """Upper bounds, from exact arithmetic, of the hockey-stick delta of every shift 1..K."""
    steps, epsilon = mechanism.grid.steps, mechanism.guarantee.epsilon
    lows, highs = [], []
    while not highs or highs[-1] > 1:  # down to 2^-128; what is left out is below the last times the standard deviation
        low, high = exp_enclosure(*mechanism.exponent(len(lows), bits), bits)
        lows.append(low)
        highs.append(high)
    reach = len(lows)
    low = dict(enumerate(lows)) | {-j: value for j, value in enumerate(lows)}
    whole = 2 * sum(lows) - lows[0]
    factor = Fraction(decimal_exp(epsilon, 90)) * (1 - Fraction(1, 10**80))
    return [
        sum(max(Fraction(0), highs[abs(j)] - factor * low.get(j + shift, 0)) for j in range(1 - reach, reach)) / whole
        for shift in range(1, steps + 1)
    ]


@pytest.mark.parametrize("which", APPROXIMATE)
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        ("1", "1e-3"),
        ("4", "1e-6"),
        pytest.param("0.2", "0.01", marks=pytest.mark.slow),
        pytest.param("1/7", "0.2", marks=pytest.mark.slow),
    ],
)
def test_the_exact_delta_is_at_most_what_is_stated_and_close_to_it(which, epsilon, delta):
    noise, asked = APPROXIMATE[which]
    for steps in (2, 5):
        mechanism = built(noise, steps, epsilon=epsilon, delta=delta, **asked)
        assert mechanism.guarantee.epsilon == Fraction(epsilon)
        assert mechanism.guarantee.delta == Fraction(delta)
        deltas = exact_deltas(mechanism)
        assert max(deltas) == deltas[-1], "the largest shift is not the worst"
        assert 0.999 * Fraction(delta) < deltas[-1] <= Fraction(delta)


class HalfSigma(GaussianScores):
    sigma = property(lambda self: GaussianScores(self.grid, self.asked).sigma / 2)


class NarrowSigma(GaussianScores):
    sigma = property(lambda self: GaussianScores(self.grid, self.asked).sigma * (self.grid.steps - 1) / self.grid.steps)


class HalfScale(GeneralizedNormalScores):
    @property
    def law(self):
        honest = GeneralizedNormalScores(self.grid, self.asked).law
        return GeneralizedNormal(honest.p, honest.rate, honest.scale / 2)


@pytest.mark.parametrize(
    ("mutant", "p"), [(HalfSigma, None), (NarrowSigma, None), (HalfScale, Fraction(3, 2)), (HalfScale, Fraction(3))]
)
def test_the_exact_delta_catches_mutants(mutant, p):
    asked = Asked(epsilon=Fraction(1), delta=Fraction(1, 1000), p=p)
    mechanism = mutant(Grid(Fraction(0), Fraction(1), 5), asked)
    assert max(exact_deltas(mechanism)) > Fraction(1, 1000)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("8", "1e-5"), ("0.01", "0.001")])
def test_sigma_is_below_what_zcdp_needs_and_not_below_the_continuous_optimum(epsilon, delta):
    """Balle and Wang's analytic Gaussian: the smallest sigma of all, which the grid approaches from above."""
    mechanism = built("gaussian", epsilon=epsilon, delta=delta)
    sigma = float(mechanism.sigma) / mechanism.grid.steps
    assert sigma < 1 / math.sqrt(2 * float(rho_of(Fraction(epsilon), Fraction(delta))))
    with mpmath.workdps(30):
        eps = mpmath.mpf(epsilon)

        def excess(s):
            return (
                mpmath.ncdf(1 / (2 * s) - eps * s)
                - mpmath.exp(eps) * mpmath.ncdf(-1 / (2 * s) - eps * s)
                - mpmath.mpf(delta)
            )

        best = mpmath.findroot(excess, (sigma * 0.9, sigma * 1.1), solver="anderson", tol=1e-20)
    assert float(best) * (1 - 1e-9) <= sigma <= float(best) * (1 + 1e-5)
    guarantee = mechanism.guarantee
    assert guarantee.rho >= 1 / (2 * sigma**2)
    assert guarantee.rho == pytest.approx(1 / (2 * sigma**2))


@pytest.mark.parametrize("p", ["1.1", "1.5", "3", "12", "64"])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-3"), ("5", "1e-9")])
def test_on_a_fine_grid_the_continuous_delta_is_met_and_hardly_more(p, epsilon, delta):
    """The hockey stick of the continuous law with the calibrated scale, from mpmath's incomplete gamma function."""
    mechanism = built("generalized-normal", epsilon=epsilon, delta=delta, p=p)
    with mpmath.workdps(40):
        a = mpmath.mpf(mechanism.law.scale.numerator) / mechanism.law.scale.denominator / mechanism.grid.steps
        shape, eps = mpmath.mpf(p), mpmath.mpf(epsilon)

        def tail(t):
            upper = mpmath.gammainc(1 / shape, (abs(t) / a) ** shape, regularized=True) / 2
            return upper if t > 0 else 1 - upper

        low, high = mpmath.mpf(-0.5), a * 800 ** (1 / shape)
        for _ in range(120):
            middle = (low + high) / 2
            above = (abs(middle + 1) / a) ** shape - (abs(middle) / a) ** shape > eps
            low, high = (low, middle) if above else (middle, high)
        exact = tail(high) - mpmath.exp(eps) * tail(high + 1)
    assert 0.999 < exact / float(delta) <= 1 + 1e-12


def test_shape_two_is_gaussian_and_shape_one_laplace(request):
    gaussian = built("gaussian", epsilon=1, delta="1e-6")
    as_power = built("generalized-normal", epsilon=1, delta="1e-6", p=2)
    assert as_power.standard_deviation == pytest.approx(gaussian.standard_deviation, rel=1e-6)
    for order, epsilon in gaussian.guarantee.renyi:
        assert as_power.renyi(order) == pytest.approx(epsilon, rel=2e-3)
    laplace = built("laplace", 64, epsilon=1)
    as_power = built("generalized-normal", 64, epsilon=1, p=1)
    assert as_power.standard_deviation == pytest.approx(laplace.standard_deviation, rel=1e-9)
    assert [as_power.exponent(j, 10) for j in range(9)] == [laplace.exponent(j, 10) for j in range(9)]
    assert as_power.guarantee == laplace.guarantee


# -- Rényi ----------------------------------------------------------------------------------------------------------


def exact_renyi(mechanism, order, shift):
    """By adding up every term within 200,000 steps; the rest makes the sum larger by a part in 10^4 at most."""
    j = np.arange(-200_000, 200_001)
    here, there = mechanism.log_prob(j), mechanism.log_prob(j + shift)
    h = order * here - (order - 1) * there
    return (h.max() + math.log(np.exp(h - h.max()).sum())) / (order - 1)


@pytest.mark.parametrize("which", [*PURE, *APPROXIMATE])
def test_the_renyi_curve_is_never_below_the_truth(which):
    noise, asked = (PURE | APPROXIMATE)[which]
    extra = {"delta": "0.01"} if which in APPROXIMATE else {}
    mechanism = built(noise, 3, epsilon=1, **asked, **extra)
    closed = which in ("laplace", "p=1")  # the others are bounds, summed or general
    for order in (1.5, 3.0):
        exact = [exact_renyi(mechanism, order, shift) for shift in (1, 2, 3)]
        stated = mechanism.renyi(order)
        assert max(exact) <= stated + 1e-12
        if closed or which in APPROXIMATE:
            assert stated <= exact[-1] * (1 + 1e-9) + 1e-9
            assert exact == sorted(exact)
        assert stated <= (1 if which in PURE else math.inf)


@pytest.mark.parametrize("p", ["1.2", "1.5", "2", "3"])
@pytest.mark.parametrize("order", [1.5, 4.0, 32.0])
def test_blocks_of_integers_bound_the_renyi_sum_closely(p, order):
    """A scale of 20,000 steps, in blocks, against every term."""
    law = score_tails.PowerTails(float(p), 1.0, 20_000.0)
    steps = 10_000
    t = np.arange(-400_000, 1_600_000, dtype=float)
    h = -order * (np.abs(t) / law.scale) ** law.p + (order - 1) * (np.abs(t + steps) / law.scale) ** law.p
    exact = (h.max() + math.log(np.exp(h - h.max()).sum() / law.whole[1])) / (order - 1)
    assert exact <= law.renyi(order, steps) <= exact * 1.002 + 2e-5


def test_the_laplace_curve_is_the_papers_on_a_fine_grid():
    mechanism = built("laplace", epsilon="0.7")
    for order, stated in mechanism.guarantee.renyi:
        paper = math.log(
            (order * math.exp((order - 1) * 0.7) - (1 - order) * math.exp(-order * 0.7)) / (2 * order - 1)
        ) / (order - 1)
        assert stated == pytest.approx(paper, rel=1e-6)


@pytest.mark.parametrize("noise", ["laplace", "staircase"])
@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3", "30", "2000"])
def test_curves_of_extreme_epsilons_are_finite_and_at_most_epsilon(noise, epsilon):
    for order, stated in built(noise, epsilon=epsilon).guarantee.renyi:
        assert 0 < stated <= float(epsilon) * (1 + 1e-12)
        if noise == "staircase":
            assert stated >= _response(Fraction(epsilon), Fraction(order)) * (1 - 1e-15)


def _response(epsilon, order):
    with mpmath.workdps(60):
        eps, a = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, order))
        return float(mpmath.log((mpmath.exp(a * eps) + mpmath.exp((1 - a) * eps)) / (1 + mpmath.exp(eps))) / (a - 1))


@pytest.mark.parametrize("alpha", [1, 0, -2, math.inf, math.nan, "x", None])
@pytest.mark.parametrize("noise", SCORE_MECHANISMS)
def test_orders_are_above_one(noise, alpha):
    with pytest.raises(InputError, match="alpha must be a finite number above 1, got"):
        built(noise, **EXAMPLES[noise]).renyi(alpha)


# -- sums of the law --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "scale"),
    [
        *[(0.7, 0.4), (0.7, 3.7), (1.0, 0.4), (1.0, 90.0), (1.3, 0.4), (1.3, 90.0), (2.0, 3.7), (2.0, 900.0)],
        *[(5.0, 0.4), (5.0, 900.0), (40.0, 3.7), (40.0, 900.0), (64.0, 9e3)],
    ],
)
def test_tails_enclose_every_sum(p, scale, monkeypatch):
    monkeypatch.setattr(score_tails, "_TERMS", 16)  # most of the sum through the integral
    law = score_tails.PowerTails(p, 1.0, scale)
    with mpmath.workdps(40):
        reach = int(scale * 100 ** (1 / p)) + 60  # beyond, the sum is below 1e-40
        f = [mpmath.exp(-((mpmath.mpf(j) / scale) ** p)) for j in range(reach)]
        suffix = [mpmath.mpf(0)]
        for value in reversed(f):
            suffix.append(suffix[-1] + value)
        suffix.reverse()
        whole = 2 * suffix[0] - 1
        for start in (-7, -1, 0, 1, 2, 9, 17, reach // 9, reach // 4):
            exact = suffix[start] if start > 0 else whole - suffix[1 - start]
            low, high = law.tail(start)
            assert low <= exact <= high
        assert law.whole[0] <= whole <= law.whole[1]
        second = 2 * mpmath.fsum(mpmath.mpf(j) ** 2 * value for j, value in enumerate(f)) / whole
    monkeypatch.undo()
    assert score_tails.PowerTails(p, 1.0, scale).variance == pytest.approx(float(second), rel=1e-6)


@pytest.mark.parametrize("shape", [1.0, 0.9, 2 / 3, 0.5, 0.2, 1 / 64])
def test_the_incomplete_gamma_function_is_far_better_than_its_slack(shape):
    from scipy.special import gammaincc

    for x in [score_tails._FLAT, 1e-20, 1e-15, 1e-9, 1e-3, 0.3, 0.9, 1.0, 1.1, 2.0, 5.0, 17.0, 60.0, 200.0, 500.0]:
        with mpmath.workdps(40):
            exact = mpmath.gammainc(shape, x, regularized=True)
            assert abs(gammaincc(shape, x) / exact - 1) < score_tails._SLACK / 50


@given(
    st.floats(1.02, 40),
    st.floats(0.05, 60),
    st.floats(1e-3, 12),
    st.integers(1, 40),
)
@settings(max_examples=60, derandomize=True)
def test_delta_is_never_below_the_best_event(p, scale, epsilon, steps):
    """Against the sum of positive parts, in floats: a float's error is far below the slack."""
    law = score_tails.PowerTails(p, 1.0, scale)
    j = np.arange(-6000, 6001)
    with np.errstate(over="ignore"):
        f = np.exp(-((np.abs(j) / scale) ** p))
        shifted = np.exp(-((np.abs(j + steps) / scale) ** p))
    exact = np.maximum(f - math.exp(epsilon) * shifted, 0).sum() / f.sum()
    stated = law.delta(epsilon, steps)
    assert exact * (1 - 1e-12) <= stated
    assert stated <= exact * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("p", [1.01, 2.0, 30.0, 64.0])
def test_delta_of_vanishing_noise_is_one(p):
    for scale in (1e-6, 1e-3, 0.05):
        assert score_tails.PowerTails(p, 1.0, scale).delta(1.0, 5) == pytest.approx(1)


# -- the samplers draw the audited laws ----------------------------------------------------------------------------

EXAMPLES = {
    "laplace": {"epsilon": 1},
    "gaussian": {"epsilon": 1, "delta": "1e-3"},
    "generalized-normal": {"epsilon": 1, "p": "0.5"},
    "staircase": {"epsilon": 1},
    "ball": {"delta": "0.1", "count": DRAWS},
}
LAWS = [
    *EXAMPLES.items(),
    ("generalized-normal", {"epsilon": 2, "p": "0.3"}),
    ("generalized-normal", {"epsilon": 1, "p": "1.5", "delta": "0.01"}),
    ("generalized-normal", {"epsilon": 1, "p": 3, "delta": "0.01"}),
    ("staircase", {"epsilon": 3, "gamma": 0}),
    ("staircase", {"epsilon": "0.5", "gamma": 1}),
    ("laplace", {"epsilon": 9}),
]


@pytest.mark.parametrize(("noise", "asked"), LAWS, ids=str)
@pytest.mark.parametrize("steps", [4, pytest.param(1, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
def test_the_sampler_draws_the_law(noise, asked, steps, request):
    mechanism = built(noise, steps, **asked)
    cells = np.arange(2 * math.ceil(60 * mechanism.deviation) + 120)
    law = np.exp(mechanism.log_prob(np.where(cells % 2, cells // 2 + 1, -(cells // 2))))  # 0, 1, -1, 2, -2, …
    assert law.sum() == pytest.approx(1, abs=2e-4)  # all but the far tail of p = 0.3
    drawn = mechanism.noise(DRAWS, seeded(request))
    assert_law(np.where(drawn > 0, 2 * drawn - 1, -2 * drawn), law)


@pytest.mark.parametrize(("noise", "asked"), LAWS, ids=str)
def test_log_prob_is_the_audited_exponent(noise, asked):
    mechanism = built(noise, 4, **asked)
    reach = [0, 1, 2, 3, 4, 5, 9, -3, -4, -8]
    logs = mechanism.log_prob(reach)
    exponents = [float(mechanism.exponent(j, 100)[0]) for j in reach]
    assert logs[0] - logs == pytest.approx(np.array(exponents) - exponents[0], abs=1e-9)
    for j in reach:
        low, high = mechanism.exponent(j, 100)
        assert 0 <= high - low <= Fraction(1, 1 << 100)
        assert mechanism.exponent(-j, 100) == (low, high)


def test_the_chi_squared_catches_half_the_noise(request):
    honest = built("generalized-normal", 8, epsilon=1, p="0.5")
    mutant = DoubleRate(honest.grid, honest.asked)
    law = np.exp(honest.log_prob(np.arange(-2000, 2001)))
    with pytest.raises(AssertionError, match="p = "):
        assert_law(mutant.noise(4000, seeded(request)) + 2000, law)


@pytest.mark.parametrize("p", ["0.3", "0.5", "1", "1.5", "2", "3"])
def test_generalized_normal_on_a_fine_grid_is_the_continuous_law(p, request):
    delta = "1e-5" if Fraction(p) > 1 else 0
    mechanism = built("generalized-normal", epsilon=2, p=p, delta=delta)
    noise = mechanism.sample(np.full(DRAWS, 0.25), seeded(request)) - 0.25
    shape = float(Fraction(p))  # up to 1, (33) says eps = (l/a)^p
    a = 2 ** (-1 / shape) if shape <= 1 else float(mechanism.law.scale) / mechanism.grid.steps
    law = stats.gennorm(shape, scale=a)
    assert stats.kstest(noise, law.cdf).pvalue > LEVEL
    assert mechanism.standard_deviation == pytest.approx(law.std(), rel=1e-4)


def staircase_cdf(epsilon, gamma):
    """The distribution function of continuous staircase noise of sensitivity 1."""
    b = math.exp(-epsilon)
    height = (1 - b) / (2 * (gamma + b * (1 - gamma)))

    def upper(x):
        stairs, rest = np.divmod(x, 1)
        part = np.minimum(rest, gamma) + b * np.maximum(rest - gamma, 0)
        return height * ((gamma + b * (1 - gamma)) * (1 - b**stairs) / (1 - b) + b**stairs * part)

    return lambda x: 0.5 + np.sign(x) * upper(np.abs(x))


def test_fine_grids_are_the_continuous_laws(request):
    bits = seeded(request)
    gaussian = built("gaussian", epsilon=1, delta="1e-6")
    for mechanism, cdf in [
        (built("laplace", epsilon=3), stats.laplace(scale=1 / 3).cdf),
        (gaussian, stats.norm(scale=gaussian.standard_deviation).cdf),
        (built("staircase", epsilon=1), staircase_cdf(1, 1 / (1 + math.exp(0.5)))),
        (built("staircase", epsilon=4, gamma="0.3"), staircase_cdf(4, 0.3)),
        (built("ball", delta="0.05", count=DRAWS), stats.uniform(-10, 20).cdf),
    ]:
        noise = mechanism.sample(np.full(DRAWS, 0.5), bits) - 0.5
        assert stats.kstest(noise, cdf).pvalue > LEVEL
        assert noise.std() == pytest.approx(mechanism.standard_deviation, rel=0.05)


@pytest.mark.parametrize("noise", ["laplace", "staircase", "generalized-normal"])
@pytest.mark.parametrize("epsilon", ["1e-8", "25", "1000"])
def test_extreme_epsilons(noise, epsilon, request):
    asked = {"p": "0.9"} if noise == "generalized-normal" else {}
    mechanism = built(noise, epsilon=epsilon, **asked)
    drawn = mechanism.sample(np.full(DRAWS, 0.5), seeded(request)) - 0.5
    assert np.isfinite(drawn).all()
    if epsilon == "1e-8" or noise != "staircase":  # rare far draws make up a staircase's deviation
        assert drawn.std() == pytest.approx(mechanism.standard_deviation, rel=0.1)


def test_staircase_is_never_noisier_than_laplace_in_the_mean():
    """What the staircase is for: the smallest mean magnitude."""
    for epsilon in (1, 3, 6, 10):
        laplace, stairs = built("laplace", 256, epsilon=epsilon), built("staircase", 256, epsilon=epsilon)
        j = np.arange(-256 * 60, 256 * 60 + 1)
        means = [float(np.abs(j) @ np.exp(one.log_prob(j))) for one in (laplace, stairs)]
        assert means[1] < means[0] * 1.0001


# -- balls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "steps"), [("0.1", 4), ("1/3", 5), ("0.001", 8), ("0.9", 3)])
def test_the_cube_has_exactly_its_delta(delta, steps):
    mechanism = built("ball", steps, delta=delta, count=3)
    points = 2 * mechanism.reach + 1
    assert Fraction(steps, points) <= Fraction(delta)
    assert Fraction(steps, points - 2) > Fraction(delta) or points < steps + 2
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (0, Fraction(delta))
    assert not mechanism.guarantee.idealized
    assert mechanism.guarantee.renyi == ()
    law = np.exp(mechanism.log_prob(np.arange(-mechanism.reach - steps, mechanism.reach + steps + 1)))
    distances = [np.abs(law[shift:] - law[: len(law) - shift]).sum() / 2 + 0 for shift in range(1, steps + 1)]
    assert max(distances) <= float(Fraction(delta)) + 1e-12


@pytest.mark.parametrize("p", ["0.5", "1", "2", "7"])
@pytest.mark.parametrize(
    "count", [2, pytest.param(1, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.slow)]
)
def test_balls_have_the_stated_delta_and_deviation(p, count, request):
    """Overlap and deviation by drawing many balls; the marginal against its beta law."""
    delta = 0.2
    mechanism = built("ball", delta=str(delta), count=count, p=p)
    bits, size = seeded(request), 1500
    points = np.stack([mechanism.sample(np.zeros(count), bits) for _ in range(size)])
    radius, shape = mechanism.parameters["radius"], float(p)
    assert (np.abs(points) ** shape).sum(axis=1).max() <= (radius * (1 + 1e-4)) ** shape
    law = stats.beta(1 / shape, (count - 1) / shape + 1)
    assert stats.kstest((np.abs(points[:, 0]) / radius) ** shape, law.cdf).pvalue > LEVEL
    assert law.cdf((0.5 / radius) ** shape) == pytest.approx(delta, rel=1e-6)
    assert law.cdf((0.5 / radius) ** shape) <= delta
    moved = points.copy()
    moved[:, 0] += 1  # a neighbour's output: outside the ball with probability delta
    outside = ((np.abs(moved) ** shape).sum(axis=1) > radius**shape).sum()
    assert stats.binomtest(int(outside), size, delta).pvalue > LEVEL
    assert mechanism.standard_deviation == pytest.approx(points[:, 0].std(), rel=0.08)
    assert mechanism.guarantee.idealized


def test_a_small_delta_of_a_large_p_still_has_a_radius():
    mechanism = built("ball", delta="1e-9", count=5, p=64)
    assert 4e8 < mechanism.parameters["radius"] < 6e8
    assert built("ball", delta="1e-9", count=5).parameters["radius"] == pytest.approx(5e8, rel=1e-6)


def test_a_ball_is_drawn_whole():
    mechanism = built("ball", delta="0.1", count=5, p=2)
    with pytest.raises(InputError, match="count must be 5, the number of scores of this ball, got 4"):
        mechanism.noise(4, SeededBits(1))
    with pytest.raises(Unsupported, match="p = inf"):
        mechanism.log_prob([0])
    with pytest.raises(Unsupported, match="p = inf"):
        mechanism.exponent(0, 64)


# -- grid and contract ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", SCORE_MECHANISMS)
def test_the_contract(noise):
    mechanism = built(noise, **EXAMPLES[noise])
    assert mechanism.guarantee.protects == ONE_SCORE
    assert not mechanism.guarantee.local
    assert mechanism.parameters["noise"] == noise == mechanism.name
    assert mechanism.parameters["standard_deviation"] == mechanism.standard_deviation > 0
    assert mechanism == built(noise, **EXAMPLES[noise])
    with pytest.raises((AttributeError, TypeError)):
        mechanism.grid = None
    wide = score_mechanism(noise, bounds=(-10, 30), **EXAMPLES[noise])
    assert wide.standard_deviation == pytest.approx(40 * mechanism.standard_deviation, rel=1e-9)
    steps = mechanism.grid.steps
    assert steps >= 1 << 20
    assert steps & (steps - 1) == 0


def test_scores_land_on_the_nearest_step_and_never_beyond_the_bounds():
    grid = Grid(Fraction(-1), Fraction(3), 8)
    scores = np.array([-1, -0.8, -0.7, 0, 2.9, 3, 99, -1e300, 1e300])
    assert grid.integers(scores).tolist() == [0, 0, 1, 2, 8, 8, 8, 0, 8]
    assert grid.scores(np.array([-2, 0, 8, 9])).tolist() == [-2, -1, 3, 3.5]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
@settings(derandomize=True)
def test_every_finite_score_becomes_one_of_the_steps(low, width, scores):
    grid = Grid(Fraction(low), Fraction(low + width), 1 << 20)
    integers = grid.integers(np.array(scores))
    assert (integers >= 0).all()
    assert (integers <= grid.steps).all()


@pytest.mark.parametrize(("spread", "log"), [(1, 20), (1000, 20), (2.0**29, 20), (2.0**40, 10), (2.0**50, 0)])
def test_steps_fit_the_noise(spread, log):
    assert fitting_steps(spread) == 1 << log


@pytest.mark.parametrize(("spread", "log"), [(0.5, 21), (2.0**-10, 30), (2.0**-60, 40)])
def test_small_noise_gets_a_finer_grid(spread, log):
    assert fitting_steps(spread) == 1 << log


@pytest.mark.parametrize(
    ("noise", "asked", "sentence"),
    [
        ("cauchy", {}, "noise must be one of laplace, gaussian, generalized-normal, staircase, ball, got 'cauchy'"),
        ("laplace", {}, "epsilon must be a finite number above 0 for laplace noise, got None"),
        ("laplace", {"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ("laplace", {"epsilon": "nan"}, "epsilon must be a finite number above 0, got nan"),
        ("laplace", {"epsilon": 1, "delta": "1e-6"}, "delta must be 0 for laplace noise, which needs none, got"),
        ("laplace", {"epsilon": 1, "p": 2}, "p must not be given for laplace noise, got 2"),
        ("staircase", {"epsilon": 1, "gamma": 2}, "gamma must be between 0 and 1, got 2"),
        ("gaussian", {"epsilon": 1}, "delta must be above 0 and below 1 for gaussian noise"),
        ("gaussian", {"epsilon": 1, "delta": 1}, "delta must be at least 0 and below 1, got 1"),
        ("gaussian", {"epsilon": 1, "delta": "0.1", "gamma": 1}, "gamma must not be given for gaussian noise, got 1"),
        ("generalized-normal", {"epsilon": 1}, "p must be above 0 and at most 64 for generalized-normal noise, got"),
        ("generalized-normal", {"epsilon": 1, "p": "inf"}, "p must be above 0 and at most 64"),
        ("generalized-normal", {"epsilon": 1, "p": -1}, "p must be above 0 and at most 64"),
        ("generalized-normal", {"epsilon": 1, "p": 3}, "delta must be above 0 for generalized-normal noise with p"),
        ("generalized-normal", {"epsilon": 1, "p": "0.5", "delta": "0.1"}, "delta must be 0 for generalized-normal"),
        ("generalized-normal", {"epsilon": 1, "p": "0.01"}, "this privacy needs noise of 2^"),
        ("ball", {"epsilon": 1, "delta": "0.1", "count": 2}, "epsilon must not be given for ball noise"),
        ("ball", {"count": 2}, "delta must be above 0 and below 1 for ball noise, got 0"),
        ("ball", {"delta": "0.1"}, "count must be the number of scores, at least 1, for ball noise, got None"),
        ("ball", {"delta": "0.1", "count": 2, "p": 0}, "p must be above 0 and at most 64, or inf, for ball noise"),
        ("laplace", {"epsilon": "1e-20"}, "this privacy needs noise of 2^"),
        ("gaussian", {"epsilon": "1e-9", "delta": "1e-305"}, "no noise of shape p = 2 gives epsilon"),
    ],
)
def test_what_cannot_be_promised_is_refused(noise, asked, sentence):
    with pytest.raises(InputError) as refusal:
        built(noise, **asked)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), (0, math.inf), (math.nan, 1), (0,), (0, 1, 2), 5, "01", ("a", "b"), ("-1e400", "1e400")]
)
def test_bounds_are_two_numbers(bounds):
    with pytest.raises(InputError, match="bounds must be two finite numbers, the lower below the upper, got"):
        score_mechanism("laplace", bounds=bounds, epsilon=1)


@pytest.mark.parametrize("bounds", [(0, 5e-324), (1.0, "1.00000000000000000001")])
def test_bounds_that_floats_cannot_tell_apart_are_refused(bounds):
    with pytest.raises(InputError, match="bounds must be far enough apart for floating-point numbers"):
        score_mechanism("laplace", bounds=bounds, epsilon=1)
